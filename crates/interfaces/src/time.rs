//! Conversions of `builtin_interfaces` times and durations from and to the standard
//! library's.
//!
//! ROS counts seconds in 32 signed bits: times outside 1901…2038 and durations over
//! 68 years saturate at the nearest value.

use crate::builtin_interfaces::msg::{Duration, Time};
use std::time::SystemTime;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl Time {
    /// From nanoseconds since 1970-01-01 UTC.
    pub fn from_nanos(nanos: i64) -> Self {
        let (sec, nanosec) = split(nanos);
        Self { sec, nanosec }
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub fn as_nanos(self) -> i64 {
        i64::from(self.sec) * NANOS_PER_SECOND + i64::from(self.nanosec)
    }
}

impl Duration {
    /// From nanoseconds, negative ones too.
    pub fn from_nanos(nanos: i64) -> Self {
        let (sec, nanosec) = split(nanos);
        Self { sec, nanosec }
    }

    /// The whole duration in nanoseconds.
    pub fn as_nanos(self) -> i64 {
        i64::from(self.sec) * NANOS_PER_SECOND + i64::from(self.nanosec)
    }
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Fails for negative durations, which the standard library does not have.
impl TryFrom<Duration> for std::time::Duration {
    type Error = std::num::TryFromIntError;

    fn try_from(duration: Duration) -> Result<Self, Self::Error> {
        Ok(Self::from_nanos(u64::try_from(duration.as_nanos())?))
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let nanos = |span: std::time::Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self::from_nanos(match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => nanos(after),
            Err(before) => -nanos(before.duration()),
        })
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        let nanos = time.as_nanos();
        let span = std::time::Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 {
            SystemTime::UNIX_EPOCH - span
        } else {
            SystemTime::UNIX_EPOCH + span
        }
    }
}

/// Seconds rounded down, so that the nanoseconds count upwards always.
fn split(nanos: i64) -> (i32, u32) {
    let seconds = nanos.div_euclid(NANOS_PER_SECOND);
    match i32::try_from(seconds) {
        Ok(seconds) => (seconds, nanos.rem_euclid(NANOS_PER_SECOND) as u32),
        Err(_) if seconds < 0 => (i32::MIN, 0),
        Err(_) => (i32::MAX, NANOS_PER_SECOND as u32 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_count_upwards_before_and_after_zero() {
        assert_eq!(
            Time::from_nanos(-1),
            Time {
                sec: -1,
                nanosec: 999_999_999
            }
        );
        for nanos in [0, 1, -1, 1_500_000_000, -1_500_000_000] {
            assert_eq!(Duration::from_nanos(nanos).as_nanos(), nanos);
            let time = Time::from_nanos(nanos);
            assert_eq!(Time::from(SystemTime::from(time)), time);
        }
    }

    #[test]
    fn values_that_do_not_fit_end_at_the_nearest() {
        assert_eq!(Duration::from(std::time::Duration::MAX).sec, i32::MAX);
        assert_eq!(
            Time::from_nanos(i64::MIN),
            Time {
                sec: i32::MIN,
                nanosec: 0
            }
        );
        assert!(std::time::Duration::try_from(Duration::from_nanos(-1)).is_err());
    }
}
