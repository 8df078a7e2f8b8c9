//! Time points of any clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use pteros_interfaces::builtin_interfaces::msg;

const SECOND: i64 = 1_000_000_000;

/// Nanoseconds since the epoch of a clock: 1970 for system time, boot for steady
/// time, the simulation's own for simulated time. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// Creates a time from nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Time in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Time in seconds, rounded to a double.
    #[expect(clippy::cast_precision_loss, reason = "as documented")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

/// Seconds beyond the range of the message (year 2038) saturate.
impl From<Time> for msg::Time {
    fn from(time: Time) -> Self {
        let seconds = time.0.div_euclid(SECOND);
        Self {
            sec: i32::try_from(seconds).unwrap_or(if seconds < 0 { i32::MIN } else { i32::MAX }),
            nanosec: u32::try_from(time.0.rem_euclid(SECOND)).unwrap_or(0),
        }
    }
}

impl From<&msg::Time> for Time {
    fn from(time: &msg::Time) -> Self {
        Self(i64::from(time.sec) * SECOND + i64::from(time.nanosec))
    }
}

impl fmt::Display for Time {
    /// Seconds with nine decimal places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / SECOND, (self.0 % SECOND).abs());
        let sign = if self.0 < 0 && seconds == 0 { "-" } else { "" };
        write!(f, "{sign}{seconds}.{nanos:09}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_convert_to_messages_and_back_and_print_as_seconds() {
        for nanos in [0, 1, 1_500_000_000, -1, -1_500_000_000] {
            let time = Time::from_nanos(nanos);
            assert_eq!(Time::from(&msg::Time::from(time)), time);
        }
        assert_eq!(Time::from_nanos(-1_500_000_000).to_string(), "-1.500000000");
        assert_eq!(Time::from_nanos(-5).to_string(), "-0.000000005");
        let far = Time::from_nanos(i64::MAX) + Duration::from_secs(1);
        assert_eq!(far, Time::from_nanos(i64::MAX));
        assert_eq!(msg::Time::from(far).sec, i32::MAX);
    }
}
