//! Duplicate filter for samples replayed by durable publishers
//! (ORIGINAL_WRITER_INFO).
//!
//! A restarted publisher replays samples that an earlier process stored. A
//! subscription that received them before does not get them again (RTPS 2.5 §8.7.9,
//! DDS 1.4 §2.2.3.4).
//!
//! A sample is identified by its original writer and the sequence number there.
//! Publishers deliver in order, so one number per writer records what was received.
//! It is kept after the writer is gone, since it is needed then. Samples that
//! another peer attributes to a writer are recorded separately: no peer can
//! suppress a living writer.

use alloc::collections::{BTreeMap, BTreeSet};

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::seq::SampleIdentity;

/// Writers remembered per subscription: restarts of its publishers. Beyond it the
/// least recently used is forgotten, and its samples may be delivered again.
const WRITERS_MAX: usize = 1_024;

/// Samples of durable publishers that one subscription has received.
#[derive(Debug, Default)]
pub struct DuplicateFilter {
    /// Matched durable publishers.
    durable: BTreeSet<Guid>,
    received: BTreeMap<Guid, ReceivedRange>,
    clock: u64,
    /// Samples that were received before.
    pub repeated: u64,
}

#[derive(Debug, Default)]
struct ReceivedRange {
    /// Received from the writer itself.
    own_through: i64,
    /// Received from others that replay its samples.
    replayed_through: i64,
    /// The writer was matched and is gone.
    is_gone: bool,
    /// When it was last used, counted in samples.
    last_used: u64,
}

impl DuplicateFilter {
    /// Adds a matched durable publisher.
    pub fn note_durable(&mut self, writer: Guid) {
        self.durable.insert(writer);
        if let Some(range) = self.received.get_mut(&writer) {
            range.is_gone = false;
        }
    }

    /// Notes that a publisher is gone; its received numbers stay. Call it before the
    /// samples that waited for a missing one are delivered: a restarted publisher may
    /// have replayed them meanwhile.
    pub fn note_gone(&mut self, writer: Guid) {
        if self.durable.remove(&writer) {
            self.range_of(writer).is_gone = true;
        }
    }

    /// The received numbers of a writer. The least recently used one makes room.
    fn range_of(&mut self, writer: Guid) -> &mut ReceivedRange {
        self.clock += 1;
        if self.received.len() >= WRITERS_MAX
            && !self.received.contains_key(&writer)
            && let Some(oldest) = self
                .received
                .iter()
                .min_by_key(|(_, range)| range.last_used)
        {
            let oldest = *oldest.0;
            self.received.remove(&oldest);
        }
        let range = self.received.entry(writer).or_default();
        range.last_used = self.clock;
        range
    }

    /// Whether the subscription has not received the sample yet.
    pub fn admits(
        &mut self,
        writer: Guid,
        sequence: i64,
        original: Option<SampleIdentity>,
    ) -> bool {
        let (writer, number) = match original {
            Some(original) => (original.writer, original.sequence.0),
            None if self.durable.contains(&writer) => (writer, sequence),
            None if self.received.get(&writer).is_some_and(|r| r.is_gone) => (writer, sequence),
            None => return true,
        };
        let range = self.range_of(writer);
        let (known, noted) = match original {
            Some(_) => (
                range.own_through.max(range.replayed_through),
                &mut range.replayed_through,
            ),
            None if range.is_gone => (
                range.own_through.max(range.replayed_through),
                &mut range.own_through,
            ),
            None => (range.own_through, &mut range.own_through),
        };
        if number <= known {
            self.repeated += 1;
            return false;
        }
        *noted = number;
        true
    }

    /// The writers of a restarted participant count from 1 again.
    pub fn forget_participant(&mut self, prefix: GuidPrefix) {
        let all = self.received.iter_mut();
        for (_, range) in all.filter(|(writer, _)| writer.prefix == prefix) {
            range.replayed_through = range.replayed_through.max(range.own_through);
            range.own_through = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use pteros_rtps::seq::SequenceNumber;

    use crate::sample::queued_sample::tests::item_of;
    use crate::sample::queued_sample::{QueuedSample, RelatedIdentity};

    impl DuplicateFilter {
        fn admits_item(&mut self, item: &QueuedSample) -> bool {
            let original = item.original();
            self.admits(item.meta.publisher, item.meta.sequence, original)
        }
    }

    fn live(writer: u8, n: i64) -> QueuedSample {
        item_of(writer, n)
    }

    /// Sample `n` of `writer`, replayed by `by` under another sequence number.
    fn brought(by: u8, writer: u8, n: i64) -> QueuedSample {
        QueuedSample {
            related_identity: RelatedIdentity::new(
                Some(SampleIdentity {
                    writer: live(writer, n).meta.publisher,
                    sequence: SequenceNumber(n),
                }),
                None,
            ),
            ..live(by, n + 100)
        }
    }

    /// Samples 2 and 3 wait for sample 1 when the publisher is killed. It starts again
    /// and replays all of them; then the lease of its former process ends.
    #[test]
    fn samples_that_waited_in_a_reader_are_not_delivered_after_their_replay() {
        let mut filter = DuplicateFilter::default();
        let of = |item: QueuedSample| item.meta.publisher;
        filter.note_durable(of(live(1, 1)));
        filter.note_durable(of(live(2, 1)));
        assert!((1..=3).all(|n| filter.admits_item(&brought(2, 1, n))));
        filter.note_gone(of(live(1, 1)));
        assert!(!filter.admits_item(&live(1, 2)));
        assert!(!filter.admits_item(&live(1, 3)));
        assert!(filter.admits_item(&live(1, 4)), "never replayed");
    }

    #[test]
    fn samples_that_waited_in_a_reader_are_not_replayed_after_their_delivery() {
        let mut filter = DuplicateFilter::default();
        filter.note_durable(live(1, 1).meta.publisher);
        filter.note_gone(live(1, 1).meta.publisher);
        assert!(filter.admits_item(&live(1, 2)));
        assert!(!filter.admits_item(&brought(2, 1, 2)));
        assert!(filter.admits_item(&brought(2, 1, 3)));
    }

    #[test]
    fn a_peer_suppresses_no_volatile_publisher_by_claiming_its_samples() {
        let mut filter = DuplicateFilter::default();
        filter.note_durable(live(2, 1).meta.publisher);
        assert!(filter.admits_item(&brought(2, 1, 9)));
        filter.note_gone(live(1, 1).meta.publisher);
        assert!(filter.admits_item(&live(1, 1)), "it never was durable");
    }

    #[test]
    fn samples_received_before_a_restart_are_not_delivered_again() {
        let mut originals = DuplicateFilter::default();
        originals.note_durable(live(1, 0).meta.publisher);
        assert!((1..=3).all(|n| originals.admits_item(&live(1, n))));
        originals.note_gone(live(1, 0).meta.publisher);
        originals.note_durable(live(2, 0).meta.publisher);
        let come: Vec<_> = (1..=5)
            .filter(|n| originals.admits_item(&brought(2, 1, *n)))
            .collect();
        assert_eq!((come, originals.repeated), (vec![4, 5], 3));
        // Its own samples, and a third incarnation that has both.
        assert!(originals.admits_item(&live(2, 1)));
        assert!(!originals.admits_item(&brought(3, 1, 5)));
        assert!(!originals.admits_item(&brought(3, 2, 1)));
        assert!(originals.admits_item(&brought(3, 2, 2)));
    }

    #[test]
    fn a_peer_cannot_suppress_a_living_writer_by_replaying_its_samples() {
        let mut originals = DuplicateFilter::default();
        originals.note_durable(live(1, 0).meta.publisher);
        assert!(originals.admits_item(&live(1, 1)));
        assert!(originals.admits_item(&brought(9, 1, i64::MAX - 100)));
        assert!(originals.admits_item(&live(1, 2)));
        assert!(!originals.admits_item(&live(1, 2)));
    }

    #[test]
    fn a_process_restarted_under_its_guid_prefix_is_delivered_from_its_first_sample() {
        let mut originals = DuplicateFilter::default();
        let writer = live(1, 0).meta.publisher;
        originals.note_durable(writer);
        assert!((1..=3).all(|n| originals.admits_item(&live(1, n))));
        originals.forget_participant(writer.prefix);
        assert!(originals.admits_item(&live(1, 1)));
        // It replays nothing new of its earlier incarnation.
        assert!(!originals.admits_item(&brought(1, 1, 3)));
    }

    #[test]
    fn beyond_the_limit_the_least_recently_used_writer_is_forgotten() {
        let mut originals = DuplicateFilter::default();
        assert!(originals.admits_item(&brought(9, 1, 5)));
        for n in 0..WRITERS_MAX {
            let mut item = brought(9, 1, 1);
            let original = item
                .related_identity
                .as_mut()
                .unwrap()
                .original
                .as_mut()
                .unwrap();
            original.writer.prefix.0[..8].copy_from_slice(&(n as u64).to_le_bytes());
            assert!(originals.admits_item(&item));
        }
        assert_eq!(originals.received.len(), WRITERS_MAX);
        assert!(originals.admits_item(&brought(9, 1, 1)));
    }
}
