//! Keys of a terminal, read without waiting for the end of a line.
//!
//! Nothing is read where standard input is no terminal, or while the process runs in
//! the background: the shell would stop it.

use pteros_launch::run::own_process_group;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use std::collections::VecDeque;
use std::io::{IsTerminal, stdin};

/// A key that a verb of `bag` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The space bar.
    Space,
    /// Arrow to the right.
    Right,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
}

/// The terminal, until it is dropped. Then it is as it was.
pub struct Keyboard {
    saved: Termios,
    keys: VecDeque<Key>,
    /// The beginning of a sequence whose end was not read yet, at most two bytes.
    unread: Vec<u8>,
}

/// Bytes that are read at once.
const READ_BYTES: usize = 64;

impl Keyboard {
    /// Takes over the terminal; `None` where there is none.
    pub fn open() -> Option<Self> {
        if !stdin().is_terminal() || !is_in_foreground() {
            return None;
        }
        let saved = tcgetattr(stdin()).ok()?;
        let mut raw = saved.clone();
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self {
            saved,
            keys: VecDeque::new(),
            unread: Vec::new(),
        })
    }

    /// The next key that was pressed. Never blocks.
    pub fn poll_key(&mut self) -> Option<Key> {
        if self.keys.is_empty() && is_in_foreground() && has_input() {
            let mut bytes = [0; READ_BYTES];
            let count = rustix::io::read(stdin(), &mut bytes).unwrap_or(0);
            self.unread
                .extend_from_slice(bytes.get(..count).unwrap_or_default());
            self.keys.extend(take_keys(&mut self.unread));
        }
        self.keys.pop_front()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if is_in_foreground() {
            // The receiver of reports is gone.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.saved);
        }
    }
}

fn is_in_foreground() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| own_process_group() == Some(group.as_raw_nonzero().get()))
}

fn has_input() -> bool {
    let stdin = stdin();
    let mut descriptors = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec::default();
    poll(&mut descriptors, Some(&at_once)).is_ok_and(|count| count > 0)
}

/// Takes the known keys out of the bytes of a terminal. An arrow is a sequence of three
/// bytes, which slow lines deliver in parts: its beginning stays.
fn take_keys(unread: &mut Vec<u8>) -> Vec<Key> {
    const ESCAPE: u8 = 0x1b;
    let mut keys = Vec::new();
    let mut rest = unread.as_slice();
    loop {
        rest = match rest {
            [] | [ESCAPE] | [ESCAPE, b'[' | b'O'] => break,
            [ESCAPE, b'[' | b'O', arrow, after @ ..] => {
                match arrow {
                    b'A' => keys.push(Key::Up),
                    b'B' => keys.push(Key::Down),
                    b'C' => keys.push(Key::Right),
                    _ => {}
                }
                after
            }
            [first, after @ ..] => {
                if *first == b' ' {
                    keys.push(Key::Space);
                }
                after
            }
        };
    }
    *unread = rest.to_vec();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_arrows_are_known_and_others_left_out() {
        let mut unread = b"x \x1b[A\x1bOB\x1b[D\x1b[Cq\x1bz".to_vec();
        let keys = take_keys(&mut unread);
        assert_eq!(keys, [Key::Space, Key::Up, Key::Down, Key::Right]);
        assert!(unread.is_empty());
    }

    #[test]
    fn an_arrow_that_arrives_in_parts_is_one_key() {
        for parts in [
            &[b"\x1b".as_slice(), b"[C"][..],
            &[b"\x1b[", b"C"],
            &[b"\x1b", b"[", b"C"],
        ] {
            let mut unread = Vec::new();
            let mut keys = Vec::new();
            for part in parts {
                unread.extend_from_slice(part);
                keys.extend(take_keys(&mut unread));
            }
            assert_eq!(keys, [Key::Right], "{parts:?}");
        }
    }
}
