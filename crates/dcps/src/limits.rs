//! Limits on remote peers: every quantity that the network can fill, with default
//! and overflow behaviour.
//!
//! Without security any host on the network is a peer, so these limits apply to
//! unauthenticated peers too. The needs of ROS itself (a node list, the names of
//! its own topics) fit the smallest values.

use core::ops::RangeInclusive;

use pteros_rtps::discovery::data::DataLimits;
use pteros_rtps::participant::ParticipantLimits;
use pteros_rtps::reader::ReaderLimits;
use pteros_rtps::writer::WriterLimits;
use thiserror::Error;

/// Limits of one context; all of them have defaults.
///
/// ```
/// use pteros_dcps::limits::Limits;
///
/// let small = Limits { sample_bytes: 1 << 20, endpoints: 1_000, ..Limits::default() };
/// assert!(small.validate().is_ok());
/// let none = Limits { remote_participants: 0, ..Limits::default() };
/// assert!(none.validate().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Remote participants that have replied; 512. When full, a newcomer takes the
    /// place of the least useful one from the address with the most of them, or is
    /// ignored. Participants of this host and static peers lose no place to others.
    pub remote_participants: usize,
    /// Unvalidated remote participants, known by announcements only; 64. When full,
    /// one from the address with the most of them is dropped. Each is sent at most
    /// three times the bytes received from it, for five seconds.
    pub unverified_participants: usize,
    /// Endpoints of one remote participant; 4 096. More are not matched.
    pub endpoints_per_participant: usize,
    /// Remote endpoints in all; 8 192. When full, a new one takes the place of one
    /// from the address with the most of them, or is not matched.
    pub endpoints: usize,
    /// Topic, type and partition names of a remote endpoint, bytes each; 256. An
    /// endpoint with a longer name is ignored.
    pub name_bytes: usize,
    /// A peer's serialized property list, bytes; 4 KiB. A longer one is ignored,
    /// the participant stays.
    pub property_list_bytes: usize,
    /// A peer's user, topic and group data, bytes each; 1 KiB. Longer data is
    /// ignored, the entity stays, but its type hash is unknown.
    pub user_data_bytes: usize,
    /// The largest sample; 64 MiB. `publish` refuses a larger one as too large,
    /// unless it stays in this process. A larger received one is dropped and
    /// counted (fragment reassembly).
    pub sample_bytes: usize,
    /// Incomplete fragmented samples per matched writer; 8, and twice
    /// `sample_bytes` in all. When full, a reliable subscription keeps the lowest
    /// sequence numbers and requests the others again; a best-effort one keeps the
    /// highest.
    pub fragmented_samples: usize,
    /// Receive memory of one remote participant, bytes; 64 MiB. It holds samples in
    /// reassembly with their announced size, reordered samples, samples of at least
    /// 1 KiB that the subscription has not taken, and what discovery stores. Samples in
    /// shared memory do not count. The samples of one publisher at one subscription
    /// take at most as much as they leave free, so half. KEEP_LAST then drops older
    /// samples. Else further ones are refused, counted and logged once, and a reliable
    /// publisher sends them again. At least `sample_bytes` in effect. Raise it for
    /// deep queues of large samples, or several of them at once: 256 MiB for point
    /// clouds of 8 MB with depth 10, or for eight cameras with images of 25 MB.
    pub participant_memory_bytes: usize,
    /// The same of all remote participants, bytes; 256 MiB. A participant gets at most
    /// as much as is free, so that one alone gets half. At least twice
    /// `participant_memory_bytes` in effect.
    pub receive_memory_bytes: usize,
    /// Intervals of sequence numbers per matched writer; 256. Samples beyond more
    /// gaps than this are not recorded; reliable ones are retransmitted.
    pub gap_intervals: usize,
    /// Bytes of retransmissions in one burst of a publisher; 512 KiB. The rest
    /// follows in the next bursts. Of requests only sequence numbers are kept.
    pub repair_bytes: usize,
    /// Nesting of parentheses and `NOT` in a content filter; 32. A deeper local
    /// filter is an error. A deeper remote filter is not applied here, so the peer
    /// receives everything and filters itself.
    pub filter_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            remote_participants: 512,
            unverified_participants: 64,
            endpoints_per_participant: 4_096,
            endpoints: 8_192,
            name_bytes: 256,
            property_list_bytes: 4 << 10,
            user_data_bytes: 1 << 10,
            sample_bytes: 64 << 20,
            fragmented_samples: 8,
            participant_memory_bytes: 64 << 20,
            receive_memory_bytes: 256 << 20,
            gap_intervals: 256,
            repair_bytes: 512 << 10,
            filter_depth: pteros_msg::filter::NESTING_MAX,
        }
    }
}

/// A limit that is out of range.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("limit {name} = {value}: out of range {} to {}; choose a value in the range", .range.start(), .range.end())]
pub struct LimitError {
    /// The field of [`Limits`].
    pub name: &'static str,
    /// The rejected value.
    pub value: usize,
    /// The valid range.
    pub range: RangeInclusive<usize>,
}

pteros_msg::debug_as_display!(LimitError);

impl Limits {
    /// Checks all limits: none is too small for ROS itself or too large to be a
    /// limit.
    ///
    /// # Errors
    /// The first limit that is out of range, with its range.
    pub fn validate(&self) -> Result<(), LimitError> {
        let all = [
            ("remote_participants", self.remote_participants, 1..=65_536),
            (
                "unverified_participants",
                self.unverified_participants,
                // All are scanned for each new one beyond the limit.
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
            // The content of one datagram is never too large; 32 bits on the wire.
            (
                "sample_bytes",
                self.sample_bytes,
                65_536..=u32::MAX as usize,
            ),
            ("fragmented_samples", self.fragmented_samples, 1..=4_096),
            (
                "participant_memory_bytes",
                self.participant_memory_bytes,
                1 << 20..=usize::MAX / 4,
            ),
            (
                "receive_memory_bytes",
                self.receive_memory_bytes,
                1 << 20..=usize::MAX / 4,
            ),
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

    /// The limits of discovery.
    pub fn participant_limits(&self) -> ParticipantLimits {
        ParticipantLimits {
            participants: self.remote_participants,
            unvalidated_participants: self.unverified_participants,
            endpoints_per_participant: self.endpoints_per_participant,
            endpoints: self.endpoints,
            participant_memory_bytes: self.receive_memory().0,
            memory_bytes: self.receive_memory().1,
            data: DataLimits {
                name_bytes: self.name_bytes,
                user_data_bytes: self.user_data_bytes,
                property_list_bytes: self.property_list_bytes,
            },
            ..ParticipantLimits::default()
        }
    }

    /// The budgets in effect for unfinished samples: of one participant, and of all.
    pub fn receive_memory(&self) -> (usize, usize) {
        let participant = self.participant_memory_bytes.max(self.sample_bytes);
        let context = self.receive_memory_bytes;
        (participant, context.max(participant.saturating_mul(2)))
    }

    /// The remote endpoints that one endpoint may match: all in the tables of two
    /// transports. The tables have quotas for each address, so a source with many endpoints
    /// takes no newcomer's place here.
    fn matches_max(&self) -> usize {
        self.endpoints.saturating_mul(2)
    }

    /// Applies them to a reader's machine.
    pub fn bound_reader(&self, limits: &mut ReaderLimits) {
        limits.writers_max = self.matches_max();
        limits.intervals_max = self.gap_intervals;
        limits.reorder_bytes_max = self.sample_bytes;
        limits.defrag.samples_max = self.fragmented_samples;
        limits.defrag.sample_bytes_max = self.sample_bytes;
        limits.defrag.bytes_max = self.sample_bytes.saturating_mul(2);
    }

    /// Applies them to a writer's machine.
    pub fn bound_writer(&self, limits: &mut WriterLimits) {
        limits.readers_max = self.matches_max();
        limits.sample_bytes_max = self.sample_bytes;
        limits.history_bytes_max = limits.history_bytes_max.max(self.sample_bytes);
        limits.retransmission_bytes_max = self.repair_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// The defaults here equal those of the protocol.
    #[test]
    fn the_defaults_are_those_of_the_protocol() {
        let default = Limits::default();
        assert_eq!(default.validate(), Ok(()));
        assert_eq!(default.participant_limits(), ParticipantLimits::default());
        let mut reader = ReaderLimits::default();
        default.bound_reader(&mut reader);
        assert_eq!(reader, ReaderLimits::default());
        let mut writer = WriterLimits::default();
        default.bound_writer(&mut writer);
        assert_eq!(writer, WriterLimits::default());
    }

    /// Otherwise a source with thousands of endpoints fills a writer, and a newcomer is
    /// shown as matched but hears nothing.
    #[test]
    fn an_endpoint_matches_as_many_as_the_tables_hold() {
        for endpoints in [16, 8_192, 1 << 20] {
            let limits = Limits {
                endpoints,
                ..Limits::default()
            };
            let (mut reader, mut writer) = (ReaderLimits::default(), WriterLimits::default());
            limits.bound_reader(&mut reader);
            limits.bound_writer(&mut writer);
            assert!(reader.writers_max >= endpoints && writer.readers_max >= endpoints);
        }
    }

    #[test]
    fn a_limit_out_of_range_is_an_error_with_its_range() {
        let error = Limits {
            sample_bytes: 1_000,
            ..Limits::default()
        }
        .validate()
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "limit sample_bytes = 1000: out of range 65536 to 4294967295; choose a value in the range"
        );
    }
}
