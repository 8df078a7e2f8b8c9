//! Datagrams of one destination become one: what several endpoints have to tell a
//! peer at a time costs one system call, one protection and one wake-up.

use alloc::vec::Vec;

use super::{Entry, INFO_DST_BYTES, Outbox};
use crate::id::GuidPrefix;
use crate::wire::{Header, write_info_timestamp};

/// The header and the destination hold for all that is joined.
const KNOWN_BYTES: usize = Header::SIZE_BYTES + INFO_DST_BYTES;
/// What takes back a time stamp: a submessage's header.
const STAMP_END_BYTES: usize = 4;

impl Outbox {
    /// Puts datagrams that are for the same participant, at the same places, into
    /// the first of them that has room, each behind those before it, so that one has
    /// at most `bytes_max_to(participant)` bytes. Others stay as they are. Payloads
    /// of joined ones are copied: meant for what participants tell each other of
    /// themselves. Allocates when there are several.
    pub fn join(&mut self, bytes_max_to: impl Fn(GuidPrefix) -> usize) {
        if self.entries.len() < 2 {
            return;
        }
        // Where each goes: its own place, or an earlier one's.
        let mut hosts: Vec<usize> = Vec::with_capacity(self.entries.len());
        let mut sizes: Vec<usize> = Vec::with_capacity(self.entries.len());
        let mut joins = false;
        for (at, entry) in self.entries.iter().enumerate() {
            let size = entry.size_bytes();
            // Only the last of its destination: their order stays.
            let host = (0..at)
                .rev()
                .find(|host| {
                    self.entries
                        .get(*host)
                        .is_some_and(|host| host.is_like(entry))
                })
                .and_then(|like| hosts.get(like).copied());
            // All but what holds for it already.
            let news = size
                .saturating_sub(KNOWN_BYTES)
                .saturating_add(STAMP_END_BYTES);
            let grown = host
                .and_then(|host| sizes.get(host))
                .map(|held| held.saturating_add(news));
            match (host, grown, entry.destination) {
                (Some(host), Some(grown), Some(to)) if grown <= bytes_max_to(to) => {
                    if let Some(held) = sizes.get_mut(host) {
                        *held = grown;
                    }
                    hosts.push(host);
                    joins = true;
                }
                _ => hosts.push(at),
            }
            sizes.push(size);
        }
        if joins {
            self.rewrite(&hosts);
        }
    }

    fn rewrite(&mut self, hosts: &[usize]) {
        let mut bytes = Vec::with_capacity(self.size_bytes());
        let mut entries = Vec::with_capacity(self.entries.len());
        for (at, entry) in self.entries.iter().enumerate() {
            if hosts.get(at) != Some(&at) {
                continue;
            }
            let start = bytes.len();
            let mut joined = entry.clone();
            let is_of_it = |other: &usize| hosts.get(*other) == Some(&at);
            let others = at.saturating_add(1)..self.entries.len();
            let mut others = others.filter(is_of_it).peekable();
            let is_alone = others.peek().is_none();
            for part in self.parts(entry, is_alone) {
                bytes.extend_from_slice(part);
            }
            joined.split = match is_alone {
                true => start.saturating_add(entry.split.saturating_sub(entry.start)),
                false => bytes.len(),
            };
            for other in others.filter_map(|other| self.entries.get(other)) {
                if joined.is_stamped {
                    write_info_timestamp(&mut bytes, None);
                }
                let mut known = KNOWN_BYTES;
                for part in self.parts(other, false) {
                    let news = part.get(known.min(part.len())..).unwrap_or_default();
                    known = known.saturating_sub(part.len());
                    bytes.extend_from_slice(news);
                }
                joined.is_stamped = other.is_stamped;
                joined.waits &= other.waits;
            }
            if !is_alone {
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

    /// Head, payload and tail; or head and tail of one that keeps its payload.
    fn parts<'a>(&'a self, entry: &'a Entry, keeps_body: bool) -> [&'a [u8]; 3] {
        let head = self.bytes.get(entry.start..entry.split).unwrap_or_default();
        let tail = self.bytes.get(entry.split..entry.end).unwrap_or_default();
        let body: &[u8] = if keeps_body { &[] } else { &entry.body };
        [head, body, tail]
    }
}

impl Entry {
    fn size_bytes(&self) -> usize {
        self.end
            .saturating_sub(self.start)
            .saturating_add(self.body.len())
    }

    /// Whether both are for one participant, at the same places.
    fn is_like(&self, other: &Self) -> bool {
        self.destination.is_some()
            && self.destination == other.destination
            && self.own == other.own
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
    const ANNA: GuidPrefix = GuidPrefix([2; 12]);
    const BERT: GuidPrefix = GuidPrefix([3; 12]);

    fn place(port: u16) -> Arc<[Locator]> {
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
            group: None,
        }
    }

    fn tell(out: &mut Outbox, to: GuidPrefix, port: u16, count: u32) {
        let mut message = out.begin(OWN, &place(port), 1_400);
        message.info_destination(to);
        message.heartbeat(&heartbeat(count));
        assert!(message.finish());
    }

    fn write(out: &mut Outbox, to: GuidPrefix, stamp: Option<Timestamp>, payload: &Bytes) {
        let head = DataHead {
            sequence: SequenceNumber(1),
            ..DataHead::default()
        };
        let mut message = out.begin(OWN, &place(7), 64_000);
        message.info_destination(to);
        message.info_timestamp(stamp);
        assert!(message.data(&head, payload));
        assert!(message.finish());
    }

    /// What one who reads the datagrams finds in them: for whom, what, and whether
    /// it was stamped.
    fn read(out: &Outbox) -> Vec<Vec<(GuidPrefix, usize, bool)>> {
        let datagrams = out.iter().map(|datagram| datagram.to_vec());
        let contents = datagrams.map(|bytes| {
            let mut found = Vec::new();
            for own in [ANNA, BERT] {
                for (source, submessage) in MessageReader::new(&bytes, own).unwrap() {
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
    fn what_is_for_one_shares_a_datagram_and_keeps_its_order() {
        let mut out = Outbox::new();
        for count in 1..=3 {
            tell(&mut out, ANNA, 7, count);
            tell(&mut out, BERT, 9, 10 * count);
        }
        // Elsewhere, so apart.
        tell(&mut out, ANNA, 8, 4);
        out.join(|_| 1_400);
        let of = |to, counts: [usize; 3]| counts.map(|count| (to, count, false)).to_vec();
        assert_eq!(
            read(&out),
            [
                of(ANNA, [1, 2, 3]),
                of(BERT, [10, 20, 30]),
                vec![(ANNA, 4, false)]
            ]
        );
    }

    #[test]
    fn a_full_datagram_is_followed_by_another_and_nothing_overtakes() {
        let mut out = Outbox::new();
        for count in 1..=5 {
            tell(&mut out, ANNA, 7, count);
        }
        let one = out.iter().next().unwrap().size_bytes();
        out.join(|_| 2 * one);
        let counts: Vec<Vec<_>> = read(&out)
            .iter()
            .map(|found| found.iter().map(|(_, count, _)| *count).collect())
            .collect();
        assert_eq!(counts, [vec![1, 2], vec![3, 4], vec![5]]);
        assert!(out.iter().all(|datagram| datagram.size_bytes() <= 2 * one));
    }

    #[test]
    fn a_time_stamp_holds_for_what_it_was_written_for_alone() {
        let (mut out, now) = (Outbox::new(), Timestamp::from_nanos(5));
        let (small, large) = (Bytes::from(vec![1; 8]), Bytes::from(vec![2; 2_000]));
        write(&mut out, ANNA, Some(now), &large);
        write(&mut out, ANNA, None, &small);
        tell(&mut out, ANNA, 7, 9);
        write(&mut out, ANNA, Some(now), &large);
        out.join(|_| 16_000);
        let all = [(2_000, true), (8, false), (9, false), (2_000, true)];
        assert_eq!(
            read(&out),
            [all.map(|(what, stamped)| (ANNA, what, stamped)).to_vec()]
        );
    }

    #[test]
    fn alone_a_payload_stays_shared() {
        let mut out = Outbox::new();
        let large = Bytes::from(vec![2; 2_000]);
        write(&mut out, ANNA, None, &large);
        tell(&mut out, BERT, 9, 1);
        tell(&mut out, BERT, 9, 2);
        out.join(|_| 1_400);
        let first = out.iter().next().unwrap();
        assert_eq!(first.body.as_ptr(), large.as_ptr());
        assert_eq!(read(&out)[0], [(ANNA, 2_000, false)]);
        assert_eq!(read(&out)[1].len(), 2);
    }
}
