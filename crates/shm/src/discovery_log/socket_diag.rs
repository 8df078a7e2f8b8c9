//! Socket diagnostics: asks the kernel which processes of this host have a
//! discovery log.
//!
//! Netlink socket diagnostics (`sock_diag(7)`) list only listeners. Where they are
//! missing, the list of all Unix sockets is read, which grows with the square of
//! the processes:
//! ```text
//! Num: RefCount Protocol Flags Type St Inode Path
//! ffff...: 00000002 00000000 00010000 0005 01 31415 @pteros-board-0-0102…0c
//! ```
//! Flag 0x10000 marks a listener. Both lists cover our network namespace only, as
//! the sockets do.

use std::io::BufRead;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::error::PeerName;

/// Prefix of a listener's abstract name. The domain and the owner follow. Part of
/// the protocol: older versions look for the same bytes.
pub(crate) const PREFIX: &str = "pteros-board-";

const LISTENING_FLAG: u32 = 0x1_0000;
/// Limit of lines read. A machine has a few thousand sockets.
const LINES_MAX: usize = 262_144;
/// Limit of the kernel's answers, with up to a few hundred sockets each.
const ANSWERS_MAX: usize = 4_096;

/// The owners of all discovery logs of a domain; empty where the system does not
/// list sockets.
pub(crate) fn listening_peers(domain: u32) -> Vec<PeerName> {
    let mut names = match from_sock_diag(domain) {
        Ok(names) => names,
        Err(_) => from_proc_net_unix(domain),
    };
    names.sort_unstable();
    names.dedup();
    names
}

/// Queries the socket diagnostics.
///
/// ```text
/// request:  length u32, type u16, flags u16, number u32, sender u32,
///           family u8, protocol u8, 0 u16, states u32, inode u32, show u32, cookie u64
/// replies:  the same header, then family u8, type u8, state u8, 0 u8, inode u32,
///           cookie u64, then attributes: length u16, type u16, bytes, padded to four
/// ```
fn from_sock_diag(domain: u32) -> Result<Vec<PeerName>, Errno> {
    const BY_FAMILY: u16 = 20;
    const REQUEST_DUMP: u16 = 0x301;
    const UNIX: u8 = 1;
    const LISTENING: u32 = 1 << 10;
    const SHOW_NAME: u32 = 1;
    let mut request = Vec::with_capacity(40);
    request.extend_from_slice(&40_u32.to_ne_bytes());
    request.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    request.extend_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    request.extend_from_slice(&[UNIX, 0, 0, 0]);
    for word in [LISTENING, 0, SHOW_NAME, u32::MAX, u32::MAX] {
        request.extend_from_slice(&word.to_ne_bytes());
    }
    let kind = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = rustix::net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &request, SendFlags::empty(), &kernel)?;
    let mut names = Vec::new();
    let mut buffer = vec![0; 32 << 10];
    for _ in 0..ANSWERS_MAX {
        // The kernel replies during the request, so this does not wait.
        let (len, _) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT)?;
        let mut answers = &buffer[..len];
        while let Some((answer, rest)) = split_reply(answers) {
            answers = rest;
            match answer {
                DiagReply::Done => return Ok(names),
                DiagReply::Refused => return Err(Errno::NOTSUP),
                DiagReply::Socket(path) => names.extend(peer_of_address(path, domain)),
            }
        }
        if !answers.is_empty() || len == 0 {
            return Err(Errno::PROTO);
        }
    }
    Ok(names)
}

/// One reply of the socket diagnostics.
#[derive(Debug, PartialEq, Eq)]
enum DiagReply<'a> {
    Done,
    Refused,
    /// Name of a socket; empty if it has none.
    Socket(&'a [u8]),
}

/// The first reply and the bytes after it.
fn split_reply(bytes: &[u8]) -> Option<(DiagReply<'_>, &[u8])> {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    const NAME: u16 = 0;
    const HEADER: usize = 16;
    let short = |bytes: &[u8], at: usize| {
        let part = bytes.get(at..at + 2)?;
        Some(u16::from_ne_bytes(part.try_into().ok()?))
    };
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let body = bytes.get(HEADER..length)?;
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    let answer = match short(bytes, 4)? {
        DONE => DiagReply::Done,
        ERROR => DiagReply::Refused,
        _ => {
            let mut attributes = body.get(16..).unwrap_or_default();
            let mut name: &[u8] = &[];
            while let (Some(length), Some(kind)) = (short(attributes, 0), short(attributes, 2)) {
                let length = usize::from(length);
                let Some(value) = attributes.get(4..length) else {
                    break;
                };
                if kind == NAME {
                    name = value;
                }
                attributes = attributes
                    .get(length.next_multiple_of(4)..)
                    .unwrap_or_default();
            }
            DiagReply::Socket(name)
        }
    };
    Some((answer, rest))
}

/// The owner in an abstract name, whose first byte is zero, if it names a discovery
/// log.
fn peer_of_address(name: &[u8], domain: u32) -> Option<PeerName> {
    let (&0, name) = name.split_first()? else {
        return None;
    };
    peer_of_name(std::str::from_utf8(name).ok()?, domain)
}

/// Reads the list of all Unix sockets.
fn from_proc_net_unix(domain: u32) -> Vec<PeerName> {
    let Ok(list) = std::fs::File::open("/proc/net/unix") else {
        return Vec::new();
    };
    let lines = std::io::BufReader::with_capacity(64 << 10, list).split(b'\n');
    let lines = lines.take(LINES_MAX).map_while(Result::ok);
    lines
        .filter_map(|line| peer_of_line(&line, domain))
        .collect()
}

/// The owner in one line of the list, if it is the listener of a discovery log.
fn peer_of_line(line: &[u8], domain: u32) -> Option<PeerName> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
    if flags & LISTENING_FLAG == 0 {
        return None;
    }
    peer_of_name(words.nth(3)?.strip_prefix('@')?, domain)
}

/// The owner in the name of a listener.
fn peer_of_name(name: &str, domain: u32) -> Option<PeerName> {
    let (of, name) = name.strip_prefix(PREFIX)?.split_once('-')?;
    if of.parse::<u32>().ok()? != domain || name.len() != 24 {
        return None;
    }
    let mut bytes = PeerName::default();
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kernel_lists_name_the_listeners() {
        let name: PeerName = *b"names of two";
        let domain = 4_000_000_001;
        let _listener = crate::discovery_log::listener::listen(domain, &name).expect("a listener");
        assert_eq!(from_proc_net_unix(domain), [name]);
        match from_sock_diag(domain) {
            Ok(names) => assert_eq!(names, [name]),
            // Some kernels are built without.
            Err(error) => assert!(matches!(error, Errno::NOTSUP | Errno::PROTONOSUPPORT)),
        }
        assert_eq!(listening_peers(domain), [name]);
        assert!(listening_peers(domain + 1).is_empty());
    }

    #[test]
    fn truncated_replies_are_rejected() {
        let mut answer = 48_u32.to_ne_bytes().to_vec();
        answer.extend_from_slice(&20_u16.to_ne_bytes());
        answer.resize(32, 0);
        answer.extend_from_slice(&13_u16.to_ne_bytes());
        answer.extend_from_slice(b"\0\0\0pteros-x");
        answer.resize(48, 0);
        let whole = (DiagReply::Socket(&b"\0pteros-x"[..]), &[][..]);
        assert_eq!(split_reply(&answer), Some(whole));
        for len in 0..answer.len() {
            assert_eq!(split_reply(&answer[..len]), None, "{len}");
        }
        answer[32..34].copy_from_slice(&99_u16.to_ne_bytes());
        let nameless = (DiagReply::Socket(&[][..]), &[][..]);
        assert_eq!(split_reply(&answer), Some(nameless));
    }

    #[test]
    fn listeners_of_the_domain_are_read_and_nothing_else() {
        let line = |flags: &str, path: &str| {
            format!("0000000000000000: 00000002 00000000 {flags} 0005 01 31415 {path}")
        };
        let name = "0102030405060708090a0b0c";
        let path = format!("@{PREFIX}7-{name}");
        let expected: PeerName = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        assert_eq!(
            peer_of_line(line("00010000", &path).as_bytes(), 7),
            Some(expected)
        );
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
            assert_eq!(
                peer_of_line(line(flags, path).as_bytes(), domain),
                None,
                "{path}"
            );
        }
        assert_eq!(
            peer_of_line(b"Num RefCount Protocol Flags Type St Inode Path", 7),
            None
        );
        assert_eq!(peer_of_line(b"", 7), None);
    }
}
