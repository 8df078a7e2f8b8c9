//! Transient-local history of a bag: the latest messages of each transient-local
//! publisher. After a split, a file starts with them.
//!
//! Memory is limited. Above the limit, the oldest messages of all publishers are dropped.

use std::collections::{BTreeMap, VecDeque};

/// Limit of payload bytes.
const BYTES_MAX: usize = 64 << 20;
/// Limit of messages of all publishers. It also bounds small messages and publishers that
/// are created and removed.
const MESSAGES_MAX: usize = 10_000;

/// Channel and publisher of a message. A bag does not record the publisher, so copied
/// messages have `None`.
type Source = (u16, Option<u128>);

/// The latest messages of each publisher, bounded by depth and memory.
#[derive(Debug, Default)]
pub(crate) struct TransientLocalMessages {
    /// By number, in the order of reception.
    messages: BTreeMap<u64, Kept>,
    /// Numbers of each publisher's messages; no entry is empty.
    by_source: BTreeMap<Source, VecDeque<u64>>,
    bytes: usize,
    /// Number for the next message.
    next: u64,
    has_dropped: bool,
}

#[derive(Debug)]
struct Kept {
    source: Source,
    publish_time: u64,
    payload: Vec<u8>,
}

impl TransientLocalMessages {
    /// Keeps a message, and drops those of its publisher beyond `depth`.
    pub(crate) fn keep(
        &mut self,
        channel: u16,
        publisher: Option<u128>,
        depth: usize,
        publish_time: u64,
        payload: &[u8],
    ) {
        self.keep_within(
            BYTES_MAX,
            (channel, publisher),
            depth,
            publish_time,
            payload,
        );
    }

    fn keep_within(
        &mut self,
        bytes_max: usize,
        source: Source,
        depth: usize,
        publish_time: u64,
        payload: &[u8],
    ) {
        let number = self.next;
        self.next += 1;
        self.bytes += payload.len();
        let kept = Kept {
            source,
            publish_time,
            payload: payload.to_vec(),
        };
        self.messages.insert(number, kept);
        let numbers = self.by_source.entry(source).or_default();
        numbers.push_back(number);
        while numbers.len() > depth.max(1)
            && let Some(old) = numbers
                .pop_front()
                .and_then(|old| self.messages.remove(&old))
        {
            self.bytes -= old.payload.len();
        }
        while self.bytes > bytes_max || self.messages.len() > MESSAGES_MAX {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((_, old)) = self.messages.pop_first() else {
            return;
        };
        self.bytes -= old.payload.len();
        // It is the oldest of its publisher as well.
        if let Some(numbers) = self.by_source.get_mut(&old.source) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.by_source.remove(&old.source);
            }
        }
        if !self.has_dropped {
            self.has_dropped = true;
            tracing::warn!(
                "transient local messages exceed {BYTES_MAX} bytes or {MESSAGES_MAX} messages; the oldest are not repeated in the next file"
            );
        }
    }

    /// Channel, publish time and payload of each, in the order of reception.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (u16, u64, &[u8])> {
        let all = self.messages.values();
        all.map(|kept| (kept.source.0, kept.publish_time, kept.payload.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(transient_local: &TransientLocalMessages) -> Vec<&[u8]> {
        let all = transient_local.in_order();
        all.map(|(_, _, payload)| payload).collect()
    }

    #[test]
    fn each_publisher_has_its_latest_messages_in_the_order_of_all() {
        let mut transient_local = TransientLocalMessages::default();
        for (publisher, payload) in [(9, b"a"), (1, b"b"), (9, b"c"), (1, b"d"), (9, b"e")] {
            transient_local.keep(3, Some(publisher), 2, 0, payload);
        }
        assert_eq!(payloads(&transient_local), [b"b", b"c", b"d", b"e"]);
        assert_eq!(
            (transient_local.bytes, transient_local.messages.len()),
            (4, 4)
        );
    }

    #[test]
    fn the_oldest_make_room_for_the_latest() {
        let mut transient_local = TransientLocalMessages::default();
        for publisher in 0..5 {
            transient_local.keep_within(20, (1, Some(publisher)), 1, 0, &[publisher as u8; 9]);
        }
        assert_eq!(payloads(&transient_local), [[3; 9], [4; 9]]);
        assert_eq!(
            (transient_local.bytes, transient_local.by_source.len()),
            (18, 2)
        );
        // Without the limit of messages, empty ones of many publishers would accumulate.
        let mut transient_local = TransientLocalMessages::default();
        for publisher in 0..MESSAGES_MAX as u128 + 7 {
            transient_local.keep(1, Some(publisher), 1, 0, &[]);
        }
        assert_eq!(transient_local.by_source.len(), MESSAGES_MAX);
    }
}
