//! What peers can make a context keep and do: every number that the network
//! fills, with its default and what happens beyond.
//!
//! Without security anybody on the network is a peer, so these hold for
//! strangers too. Sizes that ROS itself needs (a node list, the names of its
//! own topics) fit the smallest values allowed.

use std::ops::RangeInclusive;

use pteros_rtps::discovery::data::DataLimits;
use pteros_rtps::participant::ParticipantLimits;
use pteros_rtps::reader::ReaderLimits;
use pteros_rtps::writer::WriterLimits;
use thiserror::Error;

/// Limits of one context; all of them have defaults.
///
/// ```
/// use pteros_rmw::Limits;
///
/// let small = Limits { sample_bytes: 1 << 20, endpoints: 1_000, ..Limits::default() };
/// assert!(small.validate().is_ok());
/// let none = Limits { remote_participants: 0, ..Limits::default() };
/// assert!(none.validate().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Remote participants that have answered us; 512. When full, newcomers
    /// are not met, and none that lives is given up for one.
    pub remote_participants: usize,
    /// Remote participants that only claim to exist; 64. When full, one from
    /// the address with the most claims is forgotten. Each is sent at most
    /// three times the bytes that came from it, for five seconds.
    pub unverified_participants: usize,
    /// Endpoints of one remote participant; 1 024. More are not matched.
    pub endpoints_per_participant: usize,
    /// Remote endpoints in all; 8 192. More are not matched.
    pub endpoints: usize,
    /// Topic, type and partition names of a peer's endpoint, bytes each; 256.
    /// An endpoint with a longer one does not exist for us.
    pub name_bytes: usize,
    /// A peer's property list as sent, bytes; 4 KiB. A longer one is left out,
    /// the participant stays known.
    pub property_list_bytes: usize,
    /// A peer's user, topic and group data, bytes each; 1 KiB. Longer ones are
    /// left out, the entity stays known (but its type hash does not).
    pub user_data_bytes: usize,
    /// The largest sample; 64 MiB. `publish` refuses a larger one as too large,
    /// unless it is for this process alone; one that comes in fragments is
    /// dropped and counted.
    pub sample_bytes: usize,
    /// Samples in fragments per matched writer; 8, and twice `sample_bytes` in
    /// all. When full, a reliable subscription keeps the lowest numbers and asks
    /// for the others again, a best-effort one keeps the highest.
    pub fragmented_samples: usize,
    /// Intervals of sequence numbers per matched writer; 256. Samples beyond
    /// more holes than this are not remembered; reliable ones come again.
    pub gap_intervals: usize,
    /// Bytes of repeated samples in one go of a publisher; 512 KiB. The rest is
    /// sent in the next goes; of requests only numbers are kept.
    pub repair_bytes: usize,
    /// Parentheses and `NOT`s of a content filter inside one another; 32. Our
    /// own deeper filter is an error; a peer's is not applied here, so that it
    /// gets everything and filters by itself.
    pub filter_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            remote_participants: 512,
            unverified_participants: 64,
            endpoints_per_participant: 1_024,
            endpoints: 8_192,
            name_bytes: 256,
            property_list_bytes: 4 << 10,
            user_data_bytes: 1 << 10,
            sample_bytes: 64 << 20,
            fragmented_samples: 8,
            gap_intervals: 256,
            repair_bytes: 512 << 10,
            filter_depth: pteros_msg::filter::NESTING_MAX,
        }
    }
}

/// A limit that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("limit {name} = {value}: {} to {} can be kept; choose one of these", .range.start(), .range.end())]
pub struct LimitError {
    /// The field of [`Limits`].
    pub name: &'static str,
    /// Its value.
    pub value: usize,
    /// What it may be.
    pub range: RangeInclusive<usize>,
}

impl Limits {
    /// Whether all of them can be kept: none is so small that ROS itself would
    /// not work, or so large that it is no limit.
    ///
    /// # Errors
    /// The first that cannot, with its range.
    pub fn validate(&self) -> Result<(), LimitError> {
        let all = [
            ("remote_participants", self.remote_participants, 1..=65_536),
            (
                "unverified_participants",
                self.unverified_participants,
                // All are looked at for each newcomer beyond the limit.
                1..=4_096,
            ),
            (
                "endpoints_per_participant",
                self.endpoints_per_participant,
                1..=1 << 20,
            ),
            ("endpoints", self.endpoints, 1..=1 << 24),
            // ROS's own names have up to 54 bytes.
            ("name_bytes", self.name_bytes, 64..=65_535),
            ("property_list_bytes", self.property_list_bytes, 0..=65_535),
            ("user_data_bytes", self.user_data_bytes, 0..=65_535),
            // What one datagram carries is never too large; 32 bits on the wire.
            (
                "sample_bytes",
                self.sample_bytes,
                65_536..=u32::MAX as usize,
            ),
            ("fragmented_samples", self.fragmented_samples, 1..=4_096),
            ("gap_intervals", self.gap_intervals, 1..=65_536),
            ("repair_bytes", self.repair_bytes, 1..=1 << 30),
            // A level costs stack.
            ("filter_depth", self.filter_depth, 1..=128),
        ];
        let wrong = all.into_iter().find(|(_, v, range)| !range.contains(v));
        wrong.map_or(Ok(()), |(name, value, range)| {
            Err(LimitError { name, value, range })
        })
    }

    pub(crate) fn of_participant(&self) -> ParticipantLimits {
        ParticipantLimits {
            participants: self.remote_participants,
            candidates: self.unverified_participants,
            endpoints_per_participant: self.endpoints_per_participant,
            endpoints: self.endpoints,
            data: DataLimits {
                name_bytes: self.name_bytes,
                user_data_bytes: self.user_data_bytes,
                property_list_bytes: self.property_list_bytes,
            },
            ..ParticipantLimits::default()
        }
    }

    pub(crate) fn bound_reader(&self, limits: &mut ReaderLimits) {
        limits.intervals_max = self.gap_intervals;
        limits.reorder_bytes_max = self.sample_bytes;
        limits.defrag.samples_max = self.fragmented_samples;
        limits.defrag.sample_bytes_max = self.sample_bytes;
        limits.defrag.bytes_max = self.sample_bytes.saturating_mul(2);
    }

    pub(crate) fn bound_writer(&self, limits: &mut WriterLimits) {
        limits.sample_bytes_max = self.sample_bytes;
        limits.history_bytes_max = limits.history_bytes_max.max(self.sample_bytes);
        limits.repair_bytes_max = self.repair_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults are one set of numbers, here and in the protocol.
    #[test]
    fn the_defaults_are_those_of_the_protocol() {
        let default = Limits::default();
        assert_eq!(default.validate(), Ok(()));
        assert_eq!(default.of_participant(), ParticipantLimits::default());
        let mut reader = ReaderLimits::default();
        default.bound_reader(&mut reader);
        assert_eq!(reader, ReaderLimits::default());
        let mut writer = WriterLimits::default();
        default.bound_writer(&mut writer);
        assert_eq!(writer, WriterLimits::default());
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_named_with_its_range() {
        let error = Limits {
            sample_bytes: 1_000,
            ..Limits::default()
        }
        .validate()
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "limit sample_bytes = 1000: 65536 to 4294967295 can be kept; choose one of these"
        );
    }
}
