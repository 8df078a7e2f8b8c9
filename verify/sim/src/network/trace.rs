//! Trace of a run: always as a hash, on request as readable lines.
//!
//! Two runs of one seed have the same hash (I16). The hash covers the bytes of
//! every datagram, every event and every sample, except where the content is random.

use std::collections::VecDeque;
use std::fmt;

/// Maximum lines. The oldest are dropped.
const LINES_MAX: usize = 200_000;

/// The trace of one run.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    /// Leaves the content of datagrams out of the hash: keys and signatures of
    /// secured participants are random.
    pub omits_content: bool,
    lines: Option<VecDeque<String>>,
}

impl Trace {
    /// An empty trace that records lines if `readable`.
    pub fn new(readable: bool) -> Self {
        Self {
            hash: 0x9e37_79b9_7f4a_7c15,
            omits_content: false,
            lines: readable.then(VecDeque::new),
        }
    }

    /// The hash so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether lines are recorded.
    pub fn is_readable(&self) -> bool {
        self.lines.is_some()
    }

    /// Adds a number to the hash.
    pub fn number(&mut self, number: u64) {
        self.hash = mix(self.hash ^ number);
    }

    /// Adds bytes to the hash.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.omits_content {
            return;
        }
        let mut hash = self.hash ^ bytes.len() as u64;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            hash = mix(hash ^ u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.hash = mix(hash ^ u64::from_le_bytes(last));
    }

    /// Adds a line, if lines are recorded.
    pub fn line(&mut self, at: u64, line: fmt::Arguments<'_>) {
        let Some(lines) = &mut self.lines else {
            return;
        };
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        let (secs, micros) = (at / 1_000_000_000, at % 1_000_000_000 / 1_000);
        lines.push_back(format!("{secs:>4}.{micros:06} {line}"));
    }

    /// The recorded lines.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flatten().map(String::as_str)
    }
}

/// A cheap mixing step (the finalizer of `splitmix64`, one round less).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 29)
}
