//! A text that must not be readable on the network, such as protected user data.

use std::ops::Range;

/// Looks for a text in the datagrams of some processes.
#[derive(Debug)]
pub struct WatchedText {
    pub text: &'static [u8],
    /// The processes that must not send it.
    pub processes: Range<usize>,
    /// Datagrams of these processes.
    pub looked_at: u64,
    /// Datagrams of them with the text.
    pub readable: u64,
}

impl WatchedText {
    /// Nothing was sent yet.
    pub fn new(text: &'static [u8], processes: Range<usize>) -> Self {
        Self {
            text,
            processes,
            looked_at: 0,
            readable: 0,
        }
    }

    /// Looks at a datagram that a process sends.
    pub fn look_at(&mut self, process: usize, bytes: &[u8]) {
        if !self.processes.contains(&process) {
            return;
        }
        self.looked_at += 1;
        let is_readable = bytes
            .windows(self.text.len())
            .any(|window| window == self.text);
        self.readable += u64::from(is_readable);
    }
}
