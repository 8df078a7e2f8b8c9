//! Timer table of a state machine: one slot per reason to wake up.
//!
//! The state machine defines the meaning of each slot. Times are on the monotonic
//! clock that callers pass as `now`.

use crate::time::Instant;

/// `N` slots, each armed for an instant or off. Copies, never allocates.
#[derive(Clone, Debug)]
pub struct Timers<const N: usize> {
    at: [Instant; N],
}

impl<const N: usize> Timers<N> {
    /// All off.
    pub const fn new() -> Self {
        Self {
            at: [Instant::FAR_FUTURE; N],
        }
    }

    /// Arms a slot; [`Instant::FAR_FUTURE`] turns it off. Slots outside the
    /// table are ignored.
    pub fn set(&mut self, slot: usize, at: Instant) {
        if let Some(timer) = self.at.get_mut(slot) {
            *timer = at;
        }
    }

    /// Arms a slot unless it fires earlier already.
    pub fn set_no_later(&mut self, slot: usize, at: Instant) {
        if let Some(timer) = self.at.get_mut(slot) {
            *timer = at.min(*timer);
        }
    }

    /// Turns a slot off.
    pub fn stop(&mut self, slot: usize) {
        self.set(slot, Instant::FAR_FUTURE);
    }

    /// When a slot fires; [`Instant::FAR_FUTURE`] when off.
    pub fn at(&self, slot: usize) -> Instant {
        self.at.get(slot).copied().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Turns the slot off and returns true if its time has come.
    pub fn take_due(&mut self, slot: usize, now: Instant) -> bool {
        let due = self.at(slot) <= now && self.at(slot) != Instant::FAR_FUTURE;
        if due {
            self.stop(slot);
        }
        due
    }

    /// The earliest armed slot.
    pub fn next(&self) -> Option<Instant> {
        self.at
            .iter()
            .copied()
            .min()
            .filter(|at| *at != Instant::FAR_FUTURE)
    }
}

impl<const N: usize> Default for Timers<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_armed_timer_wakes_and_fires_once() {
        let mut timers = Timers::<2>::new();
        assert_eq!(timers.next(), None);
        timers.set(0, Instant::from_nanos(20));
        timers.set_no_later(1, Instant::from_nanos(10));
        timers.set_no_later(1, Instant::from_nanos(15));
        assert_eq!(timers.next(), Some(Instant::from_nanos(10)));
        assert!(timers.take_due(1, Instant::from_nanos(10)));
        assert!(!timers.take_due(1, Instant::from_nanos(10)));
        assert!(!timers.take_due(0, Instant::from_nanos(19)));
        assert_eq!(timers.next(), Some(Instant::from_nanos(20)));
    }
}
