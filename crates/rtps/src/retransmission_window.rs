//! Initial window of retransmissions: what one remote participant may be sent again
//! before it proves that it received anything (amplification limit).
//!
//! All writers of a participant share one window per remote participant. Otherwise
//! forged requests to twenty writers would direct twenty windows at one victim.
//! `writer/retransmission_credit.rs` draws from it after a writer's own credit.
//!
//! The counters are atomic: the writers of a context have different locks. Writers that
//! send at the same instant may exceed the window by one burst each.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::time::{Duration, Instant};

/// Bytes that need no proof.
pub(crate) const INITIAL_BYTES: usize = 1 << 20;
/// The shortest time between probes of different writers, see [`RetransmissionWindow`].
const PROBE_SPACING: Duration = Duration::from_millis(25);

/// The window of one remote participant. Thread-safe; nothing blocks.
///
/// Proved bytes fill it again, whichever writer earned them. It also spaces the probes
/// of writers that have no credit: many writers together send little more than one.
#[derive(Debug)]
pub struct RetransmissionWindow {
    left: AtomicUsize,
    /// When a writer last probed; zero before.
    probed_at: AtomicU64,
}

impl RetransmissionWindow {
    /// A full window.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(INITIAL_BYTES),
            probed_at: AtomicU64::new(0),
        })
    }

    /// The bytes left.
    pub fn left(&self) -> usize {
        self.left.load(Relaxed)
    }

    /// Whether nothing of it is spent.
    pub(crate) fn is_full(&self) -> bool {
        self.left() >= INITIAL_BYTES
    }

    /// Takes `bytes`. Returns the part that it does not have.
    pub(crate) fn spend(&self, bytes: usize) -> usize {
        let take = |left: usize| Some(left.saturating_sub(bytes));
        let before = self.left.fetch_update(Relaxed, Relaxed, take);
        bytes.saturating_sub(before.unwrap_or(0))
    }

    /// Fills it with `bytes`. Returns the part that it has no space for.
    pub(crate) fn refill(&self, bytes: usize) -> usize {
        if self.is_full() {
            return bytes;
        }
        let add = |left: usize| Some(left.saturating_add(bytes).min(INITIAL_BYTES));
        let before = self.left.fetch_update(Relaxed, Relaxed, add);
        let space = INITIAL_BYTES.saturating_sub(before.unwrap_or(INITIAL_BYTES));
        bytes.saturating_sub(space)
    }

    /// When a writer may probe whose own last probe was at `own`.
    pub(crate) fn next_probe(&self, own: Instant) -> Instant {
        let last = Instant::from_nanos(self.probed_at.load(Relaxed));
        if last == own {
            Instant::ZERO
        } else {
            last.after(PROBE_SPACING)
        }
    }

    /// Notes a probe.
    pub(crate) fn note_probe(&self, now: Instant) {
        self.probed_at.store(now.as_nanos(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_can_be_filled_again_and_no_more() {
        let window = RetransmissionWindow::new();
        assert_eq!(window.refill(5), 5);
        assert_eq!(window.spend(INITIAL_BYTES - 10), 0);
        assert_eq!(window.spend(15), 5);
        assert_eq!(window.left(), 0);
        assert_eq!(window.refill(7), 0);
        assert_eq!(window.left(), 7);
        assert_eq!(window.refill(INITIAL_BYTES), 7);
        assert!(window.is_full());
    }

    #[test]
    fn probes_of_different_writers_are_spaced() {
        let window = RetransmissionWindow::new();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert_eq!(window.next_probe(Instant::ZERO), Instant::ZERO);
        window.note_probe(at(100));
        assert_eq!(window.next_probe(at(100)), Instant::ZERO, "its own");
        assert_eq!(window.next_probe(at(90)), at(125));
    }
}
