//! Batching of discovery datagrams: datagrams of one destination are coalesced.
//! Messages of several endpoints to one peer then cost one system call, one
//! protection and one wake-up.

use alloc::vec::Vec;

use super::{INFO_DST_BYTES, Outbox, QueuedDatagram};
use crate::id::GuidPrefix;
use crate::wire::{Header, write_info_timestamp};

/// The header and INFO_DST are common to all coalesced datagrams.
const KNOWN_BYTES: usize = Header::SIZE_BYTES + INFO_DST_BYTES;
/// An INFO_TS that invalidates the timestamp: a submessage header.
const STAMP_END_BYTES: usize = 4;

impl Outbox {
    /// Coalesces datagrams for the same participant at the same locators, in order,
    /// so that each has at most `bytes_max_to(participant)` bytes.
    ///
    /// Other datagrams stay unchanged. Payloads of coalesced ones are copied, so
    /// this is meant for discovery traffic. Allocates when there are several.
    pub fn coalesce(&mut self, bytes_max_to: impl Fn(GuidPrefix) -> usize) {
        if self.entries.len() < 2 {
            return;
        }
        // The index of the datagram that each one goes into.
        let mut targets: Vec<usize> = Vec::with_capacity(self.entries.len());
        let mut sizes: Vec<usize> = Vec::with_capacity(self.entries.len());
        let mut joins = false;
        for (at, entry) in self.entries.iter().enumerate() {
            let size = entry.size_bytes();
            // Only the last of its destination, to keep their order.
            let target = (0..at)
                .rev()
                .find(|target| {
                    self.entries
                        .get(*target)
                        .is_some_and(|target| target.is_like(entry))
                })
                .and_then(|like| targets.get(like).copied());
            // Without the common bytes.
            let added_bytes = size
                .saturating_sub(KNOWN_BYTES)
                .saturating_add(STAMP_END_BYTES);
            let grown = target
                .and_then(|target| sizes.get(target))
                .map(|held| held.saturating_add(added_bytes));
            match (target, grown, entry.destination) {
                (Some(target), Some(grown), Some(to)) if grown <= bytes_max_to(to) => {
                    if let Some(held) = sizes.get_mut(target) {
                        *held = grown;
                    }
                    targets.push(target);
                    joins = true;
                }
                _ => targets.push(at),
            }
            sizes.push(size);
        }
        if joins {
            self.rewrite(&targets);
        }
    }

    fn rewrite(&mut self, targets: &[usize]) {
        let mut bytes = Vec::with_capacity(self.size_bytes());
        let mut entries = Vec::with_capacity(self.entries.len());
        for (at, entry) in self.entries.iter().enumerate() {
            if targets.get(at) != Some(&at) {
                continue;
            }
            let start = bytes.len();
            let mut joined = entry.clone();
            let is_of_it = |other: &usize| targets.get(*other) == Some(&at);
            let others = at.saturating_add(1)..self.entries.len();
            let mut others = others.filter(is_of_it).peekable();
            let is_uncoalesced = others.peek().is_none();
            for part in self.parts(entry, is_uncoalesced) {
                bytes.extend_from_slice(part);
            }
            joined.split = if is_uncoalesced {
                start.saturating_add(entry.split.saturating_sub(entry.start))
            } else {
                bytes.len()
            };
            for other in others.filter_map(|other| self.entries.get(other)) {
                if joined.has_timestamp {
                    write_info_timestamp(&mut bytes, None);
                }
                let mut known = KNOWN_BYTES;
                for part in self.parts(other, false) {
                    let added_bytes = part.get(known.min(part.len())..).unwrap_or_default();
                    known = known.saturating_sub(part.len());
                    bytes.extend_from_slice(added_bytes);
                }
                joined.has_timestamp = other.has_timestamp;
                joined.is_deferrable &= other.is_deferrable;
            }
            if !is_uncoalesced {
                joined.body = bytes::Bytes::new();
                joined.split = bytes.len();
            }
            joined.start = start;
            joined.end = bytes.len();
            entries.push(joined);
        }
        self.bytes = bytes;
        self.entries = entries;
    }

    /// Head, payload and tail; or head and tail of a datagram that keeps its
    /// payload.
    fn parts<'a>(&'a self, entry: &'a QueuedDatagram, keeps_body: bool) -> [&'a [u8]; 3] {
        let head = self.bytes.get(entry.start..entry.split).unwrap_or_default();
        let tail = self.bytes.get(entry.split..entry.end).unwrap_or_default();
        let body: &[u8] = if keeps_body { &[] } else { &entry.body };
        [head, body, tail]
    }
}

impl QueuedDatagram {
    fn size_bytes(&self) -> usize {
        self.end
            .saturating_sub(self.start)
            .saturating_add(self.body.len())
    }

    /// Whether both are for one participant, at the same locators.
    fn is_like(&self, other: &Self) -> bool {
        self.destination.is_some()
            && self.destination == other.destination
            && self.source == other.source
            && self.to == other.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntityId;
    use crate::locator::Locator;
    use crate::receiver::MessageReader;
    use crate::seq::SequenceNumber;
    use crate::time::Timestamp;
    use crate::wire::{DataHead, Heartbeat, Submessage};
    use alloc::sync::Arc;
    use alloc::vec;
    use bytes::Bytes;

    const OWN: GuidPrefix = GuidPrefix([1; 12]);
    const FIRST_PEER: GuidPrefix = GuidPrefix([2; 12]);
    const SECOND_PEER: GuidPrefix = GuidPrefix([3; 12]);

    fn locators_at(port: u16) -> Arc<[Locator]> {
        Arc::from([Locator::udp_v4([127, 0, 0, 1], port)].as_slice())
    }

    fn heartbeat(count: u32) -> Heartbeat {
        Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            first: SequenceNumber(1),
            last: SequenceNumber(2),
            count,
            is_final: false,
            liveliness: false,
            group_info: None,
        }
    }

    fn send_heartbeat(out: &mut Outbox, to: GuidPrefix, port: u16, count: u32) {
        let mut message = out.begin(OWN, &locators_at(port), 1_400);
        message.info_destination(to);
        message.heartbeat(&heartbeat(count));
        assert!(message.finish());
    }

    fn write(out: &mut Outbox, to: GuidPrefix, stamp: Option<Timestamp>, payload: &Bytes) {
        let head = DataHead {
            sequence: SequenceNumber(1),
            ..DataHead::default()
        };
        let mut message = out.begin(OWN, &locators_at(7), 64_000);
        message.info_destination(to);
        message.info_timestamp(stamp);
        assert!(message.data(&head, payload));
        assert!(message.finish());
    }

    /// The content of each datagram: destination, size or count, and whether it has
    /// a timestamp.
    fn read(out: &Outbox) -> Vec<Vec<(GuidPrefix, usize, bool)>> {
        let datagrams = out.iter().map(|datagram| datagram.to_vec());
        let contents = datagrams.map(|bytes| {
            let mut found = Vec::new();
            for source in [FIRST_PEER, SECOND_PEER] {
                for (source, submessage) in MessageReader::new(&bytes, source).unwrap() {
                    let what = match submessage {
                        Submessage::Heartbeat(heartbeat) => heartbeat.count as usize,
                        Submessage::Data(data) => data.payload.len(),
                        _ => continue,
                    };
                    found.push((source.destination, what, source.timestamp.is_some()));
                }
            }
            found
        });
        contents.collect()
    }

    #[test]
    fn datagrams_for_one_participant_are_coalesced_in_order() {
        let mut out = Outbox::new();
        for count in 1..=3 {
            send_heartbeat(&mut out, FIRST_PEER, 7, count);
            send_heartbeat(&mut out, SECOND_PEER, 9, 10 * count);
        }
        // Another locator, so not coalesced.
        send_heartbeat(&mut out, FIRST_PEER, 8, 4);
        out.coalesce(|_| 1_400);
        let of = |to, counts: [usize; 3]| counts.map(|count| (to, count, false)).to_vec();
        assert_eq!(
            read(&out),
            [
                of(FIRST_PEER, [1, 2, 3]),
                of(SECOND_PEER, [10, 20, 30]),
                vec![(FIRST_PEER, 4, false)]
            ]
        );
    }

    #[test]
    fn a_full_datagram_is_followed_by_another_without_reordering() {
        let mut out = Outbox::new();
        for count in 1..=5 {
            send_heartbeat(&mut out, FIRST_PEER, 7, count);
        }
        let one = out.iter().next().unwrap().size_bytes();
        out.coalesce(|_| 2 * one);
        let counts: Vec<Vec<_>> = read(&out)
            .iter()
            .map(|found| found.iter().map(|(_, count, _)| *count).collect())
            .collect();
        assert_eq!(counts, [vec![1, 2], vec![3, 4], vec![5]]);
        assert!(out.iter().all(|datagram| datagram.size_bytes() <= 2 * one));
    }

    #[test]
    fn a_timestamp_applies_only_to_its_own_submessages_after_coalescing() {
        let (mut out, now) = (Outbox::new(), Timestamp::from_nanos(5));
        let (small, large) = (Bytes::from(vec![1; 8]), Bytes::from(vec![2; 2_000]));
        write(&mut out, FIRST_PEER, Some(now), &large);
        write(&mut out, FIRST_PEER, None, &small);
        send_heartbeat(&mut out, FIRST_PEER, 7, 9);
        write(&mut out, FIRST_PEER, Some(now), &large);
        out.coalesce(|_| 16_000);
        let all = [(2_000, true), (8, false), (9, false), (2_000, true)];
        assert_eq!(
            read(&out),
            [all.map(|(what, stamped)| (FIRST_PEER, what, stamped))
                .to_vec()]
        );
    }

    #[test]
    fn a_single_datagram_keeps_its_payload_shared() {
        let mut out = Outbox::new();
        let large = Bytes::from(vec![2; 2_000]);
        write(&mut out, FIRST_PEER, None, &large);
        send_heartbeat(&mut out, SECOND_PEER, 9, 1);
        send_heartbeat(&mut out, SECOND_PEER, 9, 2);
        out.coalesce(|_| 1_400);
        let first = out.iter().next().unwrap();
        assert_eq!(first.body.as_ptr(), large.as_ptr());
        assert_eq!(read(&out)[0], [(FIRST_PEER, 2_000, false)]);
        assert_eq!(read(&out)[1].len(), 2);
    }
}
