//! Time values: the monotonic [`Instant`], the wall clock's [`Timestamp`], and
//! durations that may be infinite. This crate reads no clock; callers pass `now`.
//!
//! Wire form: RTPS 2.5 §9.3.2 (`Time_t`, `Duration_t`: seconds and 2^-32 s).

use core::num::NonZeroU64;
use core::ops::{Add, Sub};

/// A point on the monotonic clock, nanoseconds since an arbitrary start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

impl Instant {
    /// The earliest instant.
    pub const ZERO: Self = Self(0);
    /// Later than every instant a clock shows.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// An instant from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        let nanos = self.0.saturating_sub(earlier.0);
        Duration(if nanos > i64::MAX as u64 {
            i64::MAX
        } else {
            nanos as i64
        })
    }

    /// The instant `span` later; [`Instant::FAR_FUTURE`] for an infinite span.
    pub const fn after(self, span: Duration) -> Self {
        if span.is_infinite() {
            return Self::FAR_FUTURE;
        }
        let nanos = if span.0 < 0 { 0 } else { span.0 as u64 };
        Self(self.0.saturating_add(nanos))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        self.after(span)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

/// A span of time in nanoseconds, or infinite. Never negative in policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Duration(i64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Infinite (DURATION_INFINITE).
    pub const INFINITE: Self = Self(i64::MAX);

    /// A span from nanoseconds; `i64::MAX` is infinite.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// A span from microseconds, saturating.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span from milliseconds, saturating.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span from seconds, saturating.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds; `i64::MAX` when infinite.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whether the span never ends.
    pub const fn is_infinite(self) -> bool {
        self.0 == i64::MAX
    }

    /// The standard library's form; `None` when infinite.
    pub const fn to_std(self) -> Option<core::time::Duration> {
        if self.is_infinite() {
            return None;
        }
        Some(core::time::Duration::from_nanos(if self.0 < 0 {
            0
        } else {
            self.0 as u64
        }))
    }

    /// `Duration_t`: seconds and fraction of 2^-32 s, rounded to nearest.
    pub const fn to_wire(self) -> (i32, u32) {
        if self.is_infinite() || self.0 / 1_000_000_000 >= i32::MAX as i64 {
            return (i32::MAX, u32::MAX);
        }
        let nanos = if self.0 < 0 { 0 } else { self.0 };
        let (secs, fraction) = fraction_of(nanos);
        (secs as i32, fraction)
    }

    /// From `Duration_t`. Negative seconds read as zero. The infinite forms of
    /// several stacks (0x7fffffff with fraction 0xffffffff, 0x7fffffff or 0) read
    /// as infinite.
    pub const fn from_wire(secs: i32, fraction: u32) -> Self {
        if secs == i32::MAX {
            return Self::INFINITE;
        }
        if secs < 0 {
            return Self::ZERO;
        }
        Self(nanos_of(secs.unsigned_abs(), fraction))
    }

    /// Half the span; infinite stays infinite.
    pub const fn half(self) -> Self {
        if self.is_infinite() {
            self
        } else {
            Self(self.0 / 2)
        }
    }

    /// `count` times the span, saturating at infinite.
    pub const fn times(self, count: i64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A point on the wall clock, nanoseconds since 1970. For source timestamps only;
/// leases and deadlines never use it.
///
/// An `Option` of it has the same size: the number is kept with its sign bit flipped,
/// which is never zero and keeps the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

const SIGN_BIT: u64 = 1 << 63;

impl Timestamp {
    /// A stamp from nanoseconds since 1970. The lowest number becomes the next one.
    pub const fn from_nanos(nanos: i64) -> Self {
        match NonZeroU64::new(nanos.cast_unsigned() ^ SIGN_BIT) {
            Some(flipped) => Self(flipped),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Nanoseconds since 1970.
    pub const fn as_nanos(self) -> i64 {
        (self.0.get() ^ SIGN_BIT).cast_signed()
    }

    /// `Time_t`: seconds and fraction of 2^-32 s, rounded to nearest.
    pub const fn to_wire(self) -> (u32, u32) {
        let nanos = self.as_nanos();
        let nanos = if nanos < 0 { 0 } else { nanos };
        let (secs, fraction) = fraction_of(nanos);
        (secs as u32, fraction)
    }

    /// From `Time_t`; `None` for TIME_INVALID.
    pub const fn from_wire(secs: u32, fraction: u32) -> Option<Self> {
        if secs == u32::MAX && fraction == u32::MAX {
            return None;
        }
        Some(Self::from_nanos(nanos_of(secs, fraction)))
    }
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::from_nanos(0)
    }
}

impl core::fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Timestamp").field(&self.as_nanos()).finish()
    }
}

const fn fraction_of(nanos: i64) -> (i64, u32) {
    let secs = nanos / 1_000_000_000;
    let rest = (nanos % 1_000_000_000) as u64;
    // Rounded up, so that reading it back (rounded down) gives the same nanos.
    (secs, (rest << 32).div_ceil(1_000_000_000) as u32)
}

/// Cannot overflow: far below the largest number of nanoseconds.
const fn nanos_of(secs: u32, fraction: u32) -> i64 {
    let below = ((fraction as u64).saturating_mul(1_000_000_000) >> 32) as i64;
    (secs as i64)
        .saturating_mul(1_000_000_000)
        .saturating_add(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_survives_the_wire() {
        for nanos in [0, 1, 2, 999, 123_456_789, 500_000_000, 999_999_999] {
            let span = Duration::from_nanos(7_000_000_000 + nanos);
            let (secs, fraction) = span.to_wire();
            assert_eq!(Duration::from_wire(secs, fraction), span);
            let stamp = Timestamp::from_nanos(1_700_000_000_000_000_000 + nanos);
            let (secs, fraction) = stamp.to_wire();
            assert_eq!(Timestamp::from_wire(secs, fraction), Some(stamp));
        }
    }

    #[test]
    fn an_optional_timestamp_is_one_word_and_keeps_the_order() {
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
        let nanos = [i64::MIN + 1, -5, 0, 7, i64::MAX];
        let stamps = nanos.map(Timestamp::from_nanos);
        assert!(stamps.is_sorted());
        assert_eq!(stamps.map(Timestamp::as_nanos), nanos);
        assert_eq!(Timestamp::default().as_nanos(), 0);
    }

    #[test]
    fn infinite_stays_infinite() {
        let (secs, fraction) = Duration::INFINITE.to_wire();
        assert!(Duration::from_wire(secs, fraction).is_infinite());
        assert!(Duration::from_wire(i32::MAX, 0).is_infinite());
        assert_eq!(Instant::ZERO.after(Duration::INFINITE), Instant::FAR_FUTURE);
    }
}
