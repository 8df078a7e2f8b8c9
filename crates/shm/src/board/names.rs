//! Who has a board: the kernel's own list of Unix sockets.
//!
//! ```text
//! Num: RefCount Protocol Flags Type St Inode Path
//! ffff...: 00000002 00000000 00010000 0005 01 31415 @pteros-board-0-0102…0c
//! ```
//! Flag 0x10000 marks a listener. The list is of our network namespace alone,
//! as the sockets are.

use std::io::BufRead;

use crate::error::Name;

/// What the name of a listener begins with; the domain and the owner follow.
pub(crate) const PREFIX: &str = "pteros-board-";

const LISTENS: u32 = 0x1_0000;
/// Lines that are looked at; a machine has a few thousand sockets.
const LINES_MAX: usize = 262_144;

/// The owners of all boards of a domain; empty where the system keeps the list
/// to itself.
pub(crate) fn listed(domain: u32) -> Vec<Name> {
    let Ok(list) = std::fs::File::open("/proc/net/unix") else {
        return Vec::new();
    };
    let lines = std::io::BufReader::with_capacity(64 << 10, list).split(b'\n');
    let lines = lines.take(LINES_MAX).map_while(Result::ok);
    let mut names: Vec<Name> = lines.filter_map(|line| owner(&line, domain)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The owner in one line of the list, if it is a board's listener.
fn owner(line: &[u8], domain: u32) -> Option<Name> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
    if flags & LISTENS == 0 {
        return None;
    }
    let rest = words.nth(3)?.strip_prefix('@')?.strip_prefix(PREFIX)?;
    let (of, name) = rest.split_once('-')?;
    if of.parse::<u32>().ok()? != domain || name.len() != 24 {
        return None;
    }
    let mut bytes = Name::default();
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_of_the_domain_are_read_and_nothing_else() {
        let line = |flags: &str, path: &str| {
            format!("0000000000000000: 00000002 00000000 {flags} 0005 01 31415 {path}")
        };
        let name = "0102030405060708090a0b0c";
        let path = format!("@{PREFIX}7-{name}");
        let expected: Name = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        assert_eq!(owner(line("00010000", &path).as_bytes(), 7), Some(expected));
        for (flags, path, domain) in [
            ("00000000", path.as_str(), 7),
            ("00010000", path.as_str(), 8),
            ("00010000", "@pteros-board-7-0102", 7),
            ("00010000", "@pteros-board-7-zz02030405060708090a0b0c", 7),
            ("00010000", "@pteros-board-7-é2030405060708090a0b0c", 7),
            (
                "00010000",
                "/run/pteros-board-7-0102030405060708090a0b0c",
                7,
            ),
        ] {
            assert_eq!(owner(line(flags, path).as_bytes(), domain), None, "{path}");
        }
        assert_eq!(
            owner(b"Num RefCount Protocol Flags Type St Inode Path", 7),
            None
        );
        assert_eq!(owner(b"", 7), None);
    }
}
