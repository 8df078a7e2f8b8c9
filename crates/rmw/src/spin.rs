//! Polling for a while before sleeping, for those who would rather spend CPU
//! than wait for a wake-up. Off unless asked for.
//!
//! It adapts: as long as something comes while it polls, it polls for as long as
//! it may. Each time in vain halves the span, down to nothing; a sleep that was
//! so short that polling would have spared it brings the whole span back.

use pteros_rtps::time::Duration;

/// The longest that may be asked for. Beyond it a thread is busy for good.
pub const SPIN_MAX: Duration = Duration::from_millis(100);

/// Below this part of the longest span polling is not worth beginning.
const GIVE_UP: i64 = 16;

/// How long one thread polls.
pub(crate) struct Spin {
    longest: Duration,
    span: Duration,
}

impl Spin {
    /// Polls for at most `longest`; zero is never.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            span: longest,
        }
    }

    /// For how long to poll now; `None`: not at all.
    pub(crate) fn span(&self) -> Option<Duration> {
        (self.span > Duration::ZERO).then_some(self.span)
    }

    /// Something came meanwhile, or nothing did.
    pub(crate) fn note_polled(&mut self, in_vain: bool) {
        if !in_vain {
            self.span = self.longest;
            return;
        }
        self.span = self.span.half();
        if self.span.times(GIVE_UP) < self.longest {
            self.span = Duration::ZERO;
        }
    }

    /// It slept for so long.
    pub(crate) fn note_slept(&mut self, slept: Duration) {
        if slept <= self.longest {
            self.span = self.longest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(n: i64) -> Duration {
        Duration::from_nanos(n * 1_000)
    }

    #[test]
    fn polling_in_vain_ends_soon_and_begins_again_when_it_would_have_paid() {
        let mut spin = Spin::new(micros(160));
        let mut spent = Duration::ZERO;
        for _ in 0..1_000 {
            let Some(span) = spin.span() else { continue };
            spent = Duration::from_nanos(spent.as_nanos() + span.as_nanos());
            spin.note_polled(true);
            spin.note_slept(micros(20_000));
        }
        assert_eq!(spin.span(), None);
        assert!(spent < micros(320), "twice the span, then never: {spent:?}");
        spin.note_slept(micros(150));
        assert_eq!(spin.span(), Some(micros(160)));
        spin.note_polled(true);
        assert_eq!(spin.span(), Some(micros(80)));
        spin.note_polled(false);
        assert_eq!(spin.span(), Some(micros(160)));
    }

    #[test]
    fn who_does_not_ask_never_polls() {
        let mut spin = Spin::new(Duration::ZERO);
        assert_eq!(spin.span(), None);
        spin.note_slept(Duration::ZERO);
        assert_eq!(spin.span(), None);
    }
}
