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
        })
    }

    /// The next key that was pressed. Never blocks.
    pub fn poll_key(&mut self) -> Option<Key> {
        if self.keys.is_empty() && is_in_foreground() && has_input() {
            let mut bytes = [0; READ_BYTES];
            let count = rustix::io::read(stdin(), &mut bytes).unwrap_or(0);
            self.keys
                .extend(keys_of(bytes.get(..count).unwrap_or_default()));
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

/// The known keys among the bytes of a terminal.
fn keys_of(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b' ' {
            keys.push(Key::Space);
        }
        if let (0x1b, [b'[' | b'O', arrow, after @ ..]) = (*first, rest) {
            match arrow {
                b'A' => keys.push(Key::Up),
                b'B' => keys.push(Key::Down),
                b'C' => keys.push(Key::Right),
                _ => {}
            }
            rest = after;
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_arrows_are_known_and_others_left_out() {
        let keys = keys_of(b"x \x1b[A\x1bOB\x1b[D\x1b[Cq\x1b");
        assert_eq!(keys, [Key::Space, Key::Up, Key::Down, Key::Right]);
    }
}
