//! Segmented send (UDP GSO): consecutive datagrams of equal size in one system
//! call.
//!
//! The fragments of a sample have one size and one destination. The kernel splits
//! them after it has done the rest of its work once (UDP_SEGMENT). Where that is
//! unsupported, each datagram is sent alone. See also GRO and MTU in `pteros-net`.

use std::io::{self, IoSlice};
use std::iter::Peekable;
use std::sync::atomic::Ordering;

use pteros_net::DATAGRAM_BYTES_MAX;
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Datagram;

use super::SendPath;
use super::back_pressure::BlockingBudget;

/// Head, payload and tail.
const PARTS_PER_SEGMENT: usize = 3;

/// Few enough that the receiver starts while the sender continues. A message of 64 KB
/// sent at once, 46 datagrams, arrives later than in groups of eight. The kernel accepts
/// 64.
const SEGMENTS_PER_SEND: usize = 8;

/// Smaller datagrams are not batched: the gain is small, and packet captures on the
/// sender would show them as one packet.
const SEGMENT_BYTES_MIN: usize = 1_000;

/// Several datagrams to the same destinations; only the last may be shorter.
pub(crate) struct SegmentedSend<'a> {
    to: &'a [Locator],
    parts: [IoSlice<'a>; PARTS_PER_SEGMENT * SEGMENTS_PER_SEND],
    count: usize,
    segment_bytes: u16,
}

impl<'a> SegmentedSend<'a> {
    /// Collects the first datagram and those that can join it, and removes them from the
    /// iterator. `None` if no other one can join.
    pub(crate) fn collect(
        first: &Datagram<'a>,
        rest: &mut Peekable<impl Iterator<Item = Datagram<'a>>>,
    ) -> Option<Self> {
        let segment = first.size_bytes();
        let follows = |next: &Datagram<'_>| next.to == first.to && next.size_bytes() <= segment;
        let may_join = segment >= SEGMENT_BYTES_MIN && first.to.iter().all(|to| to.is_unicast());
        if !may_join || !rest.peek().is_some_and(follows) {
            return None;
        }
        let mut segments = Self {
            to: first.to,
            parts: [IoSlice::new(&[]); PARTS_PER_SEGMENT * SEGMENTS_PER_SEND],
            count: 0,
            segment_bytes: u16::try_from(segment).ok()?,
        };
        segments.add(first);
        let (mut total, mut last) = (segment, segment);
        while segments.count < SEGMENTS_PER_SEND && last == segment {
            let fits = |next: &Datagram<'_>| {
                follows(next) && total + next.size_bytes() <= DATAGRAM_BYTES_MAX
            };
            let Some(next) = rest.next_if(fits) else {
                break;
            };
            last = next.size_bytes();
            total += last;
            segments.add(&next);
        }
        Some(segments)
    }

    fn add(&mut self, datagram: &Datagram<'a>) {
        let at = self.count * PARTS_PER_SEGMENT;
        self.parts[at..at + PARTS_PER_SEGMENT].copy_from_slice(&datagram.parts.map(IoSlice::new));
        self.count += 1;
    }

    fn parts(&self) -> &[IoSlice<'a>] {
        &self.parts[..self.count * PARTS_PER_SEGMENT]
    }
}

impl SendPath {
    /// Sends them, in one call where possible.
    pub(super) fn send_segmented_batch(
        &self,
        segments: &SegmentedSend<'_>,
        budget: &BlockingBudget,
    ) {
        let parts = segments.parts();
        for to in segments.to {
            let together = || {
                self.sockets
                    .send_segmented(parts, segments.segment_bytes, to)
            };
            let alone = |each: &[IoSlice<'_>]| self.send_to(each, to, 0, budget);
            let counter = match self.send_within_budget(budget, together) {
                Ok(()) => &self.counters.sent,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    parts.chunks(PARTS_PER_SEGMENT).for_each(alone);
                    continue;
                }
                Err(error) => {
                    tracing::trace!(%error, locator = %to, "send");
                    &self.counters.errors
                }
            };
            counter.fetch_add(segments.count as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use pteros_rtps::id::GuidPrefix;
    use pteros_rtps::outbox::Outbox;
    use pteros_rtps::seq::SequenceNumber;
    use pteros_rtps::wire::DataHead;

    use super::*;

    const PLACE: Locator = Locator::udp_v4([10, 0, 0, 1], 7411);

    /// Datagrams with payloads of these sizes.
    fn outbox(datagrams: &[(Locator, usize)]) -> Outbox {
        let mut outbox = Outbox::new();
        for (to, bytes) in datagrams {
            let to: Arc<[Locator]> = [*to].into();
            let mut message = outbox.begin(GuidPrefix([1; 12]), &to, 2_000);
            let head = DataHead {
                sequence: SequenceNumber(1),
                ..DataHead::default()
            };
            message.data(&head, &Bytes::from(vec![0; *bytes]));
            message.finish();
        }
        outbox
    }

    /// The number of datagrams of each send.
    fn gathered(datagrams: &[(Locator, usize)]) -> Vec<usize> {
        let outbox = outbox(datagrams);
        let mut rest = outbox.iter().peekable();
        let mut counts = Vec::new();
        while let Some(first) = rest.next() {
            let segments = SegmentedSend::collect(&first, &mut rest);
            counts.push(segments.map_or(1, |segments| segments.count));
        }
        counts
    }

    #[test]
    fn datagrams_of_equal_size_are_one_send_and_the_last_may_be_shorter() {
        let (long, short) = ((PLACE, 1_300), (PLACE, 1_000));
        assert_eq!(gathered(&[long, long, long, short, short]), [4, 1]);
        assert_eq!(gathered(&[short, long, long]), [1, 2]);
        assert_eq!(gathered(&[long; 20]), [8, 8, 4]);
        let tiny = (PLACE, 40);
        assert_eq!(gathered(&[tiny, tiny, tiny]), [1, 1, 1]);
        assert_eq!(gathered(&[long, tiny, tiny]), [2, 1]);
    }

    #[test]
    fn other_destinations_multicast_and_shared_memory_are_not_segmented() {
        let other = (Locator::udp_v4([10, 0, 0, 2], 7411), 1_300);
        let here = (PLACE, 1_300);
        assert_eq!(gathered(&[here, here, other, other, here]), [2, 2, 1]);
        let group = (Locator::udp_v4([239, 255, 0, 1], 7400), 1_300);
        assert_eq!(gathered(&[group, group]), [1, 1]);
        let connection = (Locator::shared_memory(7, GuidPrefix([3; 12])), 1_300);
        assert_eq!(gathered(&[connection, connection]), [1, 1]);
    }
}
