//! Sequence number and fragment number (RTPS 2.5 §8.3.5.4, §8.3.5.6), and the sample
//! identity, by which service correlation (request id) works.

use core::fmt;

/// The sequence number of a change, from 1 on, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SequenceNumber(pub i64);

impl SequenceNumber {
    /// SEQUENCENUMBER_UNKNOWN.
    pub const UNKNOWN: Self = Self(-(1 << 32));
    /// Before the first change.
    pub const ZERO: Self = Self(0);
    /// The first change.
    pub const FIRST: Self = Self(1);

    /// The following number, saturating.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number before, saturating.
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Wire form: high and low words.
    pub const fn to_wire(self) -> (i32, u32) {
        ((self.0 >> 32) as i32, self.0 as u32)
    }

    /// From high and low words.
    pub const fn from_wire(high: i32, low: u32) -> Self {
        Self(((high as i64) << 32) | low as i64)
    }

    /// Whether a writer may have used it (positive).
    pub const fn is_valid(self) -> bool {
        self.0 > 0
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a fragment within its sample, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FragmentNumber(pub u32);

/// The identity of a sample: writer and sequence number. Services correlate replies
/// with requests by it (request id; DDS-RPC, PID_RELATED_SAMPLE_IDENTITY).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SampleIdentity {
    /// The writer (for ROS services often the reply reader) it belongs to.
    pub writer: crate::id::Guid,
    /// Its number, or [`SequenceNumber::UNKNOWN`].
    pub sequence: SequenceNumber,
}
