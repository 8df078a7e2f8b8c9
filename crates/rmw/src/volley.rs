//! Datagrams of one size that follow each other to one place, as the fragments
//! of a sample do: one system call hands all of them over, and the kernel cuts
//! them apart when it has done the rest of its work once (UDP_SEGMENT). Where it
//! cannot, each goes alone.

use std::io::{self, IoSlice};
use std::iter::Peekable;
use std::sync::atomic::Ordering;

use pteros_net::DATAGRAM_BYTES_MAX;
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Datagram;

use crate::core::Core;
use crate::room::Patience;

/// Head, payload and tail.
const PARTS_EACH: usize = 3;

/// Few enough for the receiver to begin while the sender goes on: a message of
/// 64 KB that goes at once, 46 datagrams, is there later than by eights. The
/// kernel takes 64.
const TOGETHER_MAX: usize = 8;

/// What is smaller goes alone: it hardly gains, and who looks at the sender's packets
/// sees those that go together as one.
const SEGMENT_BYTES_MIN: usize = 1_000;

/// Several datagrams to the same places; only the last may be shorter.
pub(crate) struct Volley<'a> {
    to: &'a [Locator],
    parts: [IoSlice<'a>; PARTS_EACH * TOGETHER_MAX],
    count: usize,
    segment_bytes: u16,
}

impl<'a> Volley<'a> {
    /// The first and all that follow it, if any does; takes those from the rest.
    pub(crate) fn gather(
        first: &Datagram<'a>,
        rest: &mut Peekable<impl Iterator<Item = Datagram<'a>>>,
    ) -> Option<Self> {
        let segment = first.size_bytes();
        let follows = |next: &Datagram<'_>| next.to == first.to && next.size_bytes() <= segment;
        let may_join = segment >= SEGMENT_BYTES_MIN && first.to.iter().all(|to| to.is_unicast());
        if !may_join || !rest.peek().is_some_and(follows) {
            return None;
        }
        let mut volley = Self {
            to: first.to,
            parts: [IoSlice::new(&[]); PARTS_EACH * TOGETHER_MAX],
            count: 0,
            segment_bytes: u16::try_from(segment).ok()?,
        };
        volley.add(first);
        let (mut total, mut last) = (segment, segment);
        while volley.count < TOGETHER_MAX && last == segment {
            let fits = |next: &Datagram<'_>| {
                follows(next) && total + next.size_bytes() <= DATAGRAM_BYTES_MAX
            };
            let Some(next) = rest.next_if(fits) else {
                break;
            };
            last = next.size_bytes();
            total += last;
            volley.add(&next);
        }
        Some(volley)
    }

    fn add(&mut self, datagram: &Datagram<'a>) {
        let at = self.count * PARTS_EACH;
        self.parts[at..at + PARTS_EACH].copy_from_slice(&datagram.parts.map(IoSlice::new));
        self.count += 1;
    }

    fn parts(&self) -> &[IoSlice<'a>] {
        &self.parts[..self.count * PARTS_EACH]
    }
}

impl Core {
    /// Hands them to the sockets, together where that is possible.
    pub(crate) fn send_volley(&self, volley: &Volley<'_>, patience: &Patience) {
        let parts = volley.parts();
        for to in volley.to {
            let together = || {
                self.transport
                    .send_segmented(parts, volley.segment_bytes, to)
            };
            let alone = |each: &[IoSlice<'_>]| self.send_to(each, to, 0, patience);
            let counter = match self.send_when_roomy(patience, together) {
                Ok(()) => &self.counters.sent,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    parts.chunks(PARTS_EACH).for_each(alone);
                    continue;
                }
                Err(error) => {
                    tracing::trace!(%error, locator = %to, "send");
                    &self.counters.send_errors
                }
            };
            counter.fetch_add(volley.count as u64, Ordering::Relaxed);
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

    /// Datagrams with a payload of so many bytes.
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

    /// How many go together, one after another.
    fn gathered(datagrams: &[(Locator, usize)]) -> Vec<usize> {
        let outbox = outbox(datagrams);
        let mut rest = outbox.iter().peekable();
        let mut counts = Vec::new();
        while let Some(first) = rest.next() {
            let volley = Volley::gather(&first, &mut rest);
            counts.push(volley.map_or(1, |volley| volley.count));
        }
        counts
    }

    #[test]
    fn datagrams_of_one_size_go_together_with_a_shorter_last_one() {
        let (long, short) = ((PLACE, 1_300), (PLACE, 1_000));
        assert_eq!(gathered(&[long, long, long, short, short]), [4, 1]);
        assert_eq!(gathered(&[short, long, long]), [1, 2]);
        assert_eq!(gathered(&[long; 20]), [8, 8, 4]);
        let tiny = (PLACE, 40);
        assert_eq!(gathered(&[tiny, tiny, tiny]), [1, 1, 1]);
        assert_eq!(gathered(&[long, tiny, tiny]), [2, 1]);
    }

    #[test]
    fn what_goes_elsewhere_or_to_a_group_or_by_a_link_goes_alone() {
        let other = (Locator::udp_v4([10, 0, 0, 2], 7411), 1_300);
        let here = (PLACE, 1_300);
        assert_eq!(gathered(&[here, here, other, other, here]), [2, 2, 1]);
        let group = (Locator::udp_v4([239, 255, 0, 1], 7400), 1_300);
        assert_eq!(gathered(&[group, group]), [1, 1]);
        let link = (Locator::shared_memory(7, GuidPrefix([3; 12])), 1_300);
        assert_eq!(gathered(&[link, link]), [1, 1]);
    }
}
