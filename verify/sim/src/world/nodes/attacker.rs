//! Datagrams of attackers, which the engine would never send. The workloads inject
//! them.

use bytes::Bytes;
use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::{MessageBuilder, Outbox};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::wire::{AckNack, SequenceSet};

/// The bytes of one datagram.
pub fn datagram(
    from: GuidPrefix,
    to: GuidPrefix,
    fill: impl FnOnce(&mut MessageBuilder<'_>),
) -> Bytes {
    let mut out = Outbox::new();
    let nowhere = [Locator::udp_v4([10, 0, 0, 1], 1)].into();
    let mut message = out.begin(from, &nowhere, 65_000);
    message.info_destination(to);
    fill(&mut message);
    message.finish();
    let parts: Vec<u8> = out.iter().flat_map(|one| one.parts.concat()).collect();
    parts.into()
}

/// An ACKNACK that acknowledges all numbers below `base` and requests `numbers`.
pub fn acknack(
    reader: EntityId,
    writer: EntityId,
    numbers: &[i64],
    base: i64,
    count: u32,
) -> AckNack {
    let mut state = SequenceSet::empty(SequenceNumber(base));
    for number in numbers {
        state.insert(SequenceNumber(*number));
    }
    AckNack {
        reader,
        writer,
        state,
        count,
        is_final: true,
    }
}

/// The sender that a datagram names.
pub fn sender(bytes: &[u8]) -> Option<GuidPrefix> {
    let prefix = bytes.get(8..20)?;
    prefix.try_into().ok().map(GuidPrefix)
}

/// Whether a datagram contains these bytes.
pub fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Replaces one sequence of bytes by another of the same length.
pub fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let mut at = 0;
    while at + old.len() <= bytes.len() {
        if bytes[at..].starts_with(old) {
            bytes[at..at + new.len()].copy_from_slice(new);
            at += old.len();
        } else {
            at += 1;
        }
    }
}
