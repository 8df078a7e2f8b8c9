//! Limit of log lines that remote participants can cause.

use pteros_rtps::time::{Duration, Instant};

/// Lines in one period.
const LINES_MAX: u32 = 20;

const PERIOD: Duration = Duration::from_secs(60);

/// Admits [`LINES_MAX`] log lines per minute, then logs once that further lines are
/// suppressed.
pub(crate) struct LogLimiter {
    period_ends_at: Instant,
    lines: u32,
}

impl LogLimiter {
    pub(crate) fn new() -> Self {
        Self {
            period_ends_at: Instant::ZERO,
            lines: 0,
        }
    }

    /// Whether to write a line now.
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        if now >= self.period_ends_at {
            self.period_ends_at = now + PERIOD;
            self.lines = 0;
        }
        self.lines = self.lines.saturating_add(1);
        if self.lines == LINES_MAX + 1 {
            tracing::warn!("further lines of this kind are left out for a minute");
        }
        self.lines <= LINES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_writes_twenty_lines_a_minute() {
        let mut limiter = LogLimiter::new();
        let mut lines = |from: i64| {
            let at = |n: i64| Instant::ZERO + Duration::from_millis(from + n);
            (0..1_000).filter(|n| limiter.admits(at(*n))).count()
        };
        assert_eq!(lines(5), 20);
        assert_eq!(lines(58_000), 0);
        assert_eq!(lines(60_005), 20);
    }
}
