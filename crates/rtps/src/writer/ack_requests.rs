//! Acknowledgement requests of a writer: after how many samples, bytes or how much
//! silence a heartbeat asks for an ACKNACK (final flag not set, RTPS 2.5 §8.3.8.6).

use crate::time::{Duration, Instant};

/// Samples and bytes since the last request, and when the next one is due.
#[derive(Debug)]
pub(super) struct AckRequests {
    /// When a heartbeat requests acknowledgement of the newest changes.
    pub new_data_at: Instant,
    /// Samples and bytes sent since the last request for acknowledgements.
    samples: u32,
    bytes: usize,
    /// Time of the last write, and whether an idle period preceded it.
    last_write: Instant,
    pub is_first_after_idle: bool,
    heartbeat_count: u32,
}

impl AckRequests {
    pub const NONE: AckRequests = AckRequests {
        new_data_at: Instant::FAR_FUTURE,
        samples: 0,
        bytes: 0,
        last_write: Instant::ZERO,
        is_first_after_idle: false,
        heartbeat_count: 0,
    };

    /// Notes a write. A silence of `idle_min` makes it the first after idle.
    pub fn note_write(&mut self, now: Instant, idle_min: Duration) {
        self.is_first_after_idle =
            self.last_write == Instant::ZERO || now.since(self.last_write) >= idle_min;
        self.last_write = now;
    }

    /// Counts a sample that is sent.
    pub fn count(&mut self, bytes: usize) {
        self.samples = self.samples.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Samples sent since the last request.
    pub const fn samples(&self) -> u32 {
        self.samples
    }

    /// Bytes sent since the last request.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Resets the counts: readers are asked now, or have acknowledged.
    pub fn restart(&mut self) {
        self.samples = 0;
        self.bytes = 0;
    }

    /// Counts one heartbeat and returns its number, which wraps after `u32::MAX`.
    pub fn next_heartbeat_count(&mut self) -> u32 {
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        self.heartbeat_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_after_silence_is_the_first_after_idle() {
        let idle = Duration::from_millis(100);
        let mut requests = AckRequests::NONE;
        let start = Instant::ZERO.after(Duration::from_millis(5));
        requests.note_write(start, idle);
        assert!(requests.is_first_after_idle);
        requests.note_write(start.after(Duration::from_millis(99)), idle);
        assert!(!requests.is_first_after_idle);
        requests.note_write(start.after(Duration::from_millis(199)), idle);
        assert!(requests.is_first_after_idle);
    }

    #[test]
    fn counts_begin_anew_and_heartbeats_do_not() {
        let mut requests = AckRequests::NONE;
        requests.count(7);
        requests.count(8);
        assert_eq!((requests.samples(), requests.bytes()), (2, 15));
        assert_eq!(requests.next_heartbeat_count(), 1);
        requests.restart();
        assert_eq!((requests.samples(), requests.bytes()), (0, 0));
        assert_eq!(requests.next_heartbeat_count(), 2);
    }
}
