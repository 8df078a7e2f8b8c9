//! Latest messages of topics before a time, as a late joiner would receive them.
//!
//! Reads blocks backwards, and only blocks that may have a message still missing. So a
//! seek reads a few chunks instead of everything before the time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;

use crate::reader::{BagMessage, BagReader, MessageOrder, time_of};
use crate::storage::{Block, LoadedBlock};

/// A block that may have messages before the time.
struct EarlierBlock {
    block: Block,
    file: usize,
    at: usize,
}

/// Position of a message: time, then file, block and index in the block.
type Place = (u64, usize, usize, usize);

/// Latest messages by topic, ordered by time.
type Latest = BTreeMap<usize, Vec<(Place, BagMessage)>>;

impl BagReader {
    /// The latest messages before a time, ordered by time, up to `depths` per topic.
    /// Payloads are copied. Empty if reading was [interrupted](Self::interrupt_when).
    pub(crate) fn latest_before(
        &mut self,
        depths: &BTreeMap<usize, usize>,
        time: u64,
        order: MessageOrder,
    ) -> Vec<BagMessage> {
        let mut latest = Latest::new();
        for earlier in self.earlier_blocks(time, order) {
            if self.is_interrupted() {
                return Vec::new();
            }
            let end = earlier.block.end;
            let missing: Vec<usize> = depths
                .iter()
                .filter(|(topic, depth)| is_missing(latest.get(topic), **depth, end))
                .map(|(topic, _)| *topic)
                .collect();
            if missing.is_empty() {
                // All further blocks end earlier.
                break;
            }
            let is_wanted = |topic: usize| missing.contains(&topic);
            if self.may_have(earlier.file, &earlier.block, &is_wanted) {
                self.add_latest(&earlier, depths, time, order, &mut latest);
            }
        }
        let mut all: Vec<(Place, BagMessage)> = latest.into_values().flatten().collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, message)| message).collect()
    }

    /// Blocks that start before a time, the latest end first.
    fn earlier_blocks(&mut self, time: u64, order: MessageOrder) -> Vec<EarlierBlock> {
        let blocks = self.blocks_by(order).unwrap_or_default();
        let mut earlier = Vec::new();
        for (file, blocks) in blocks.into_iter().enumerate() {
            for (at, block) in blocks.into_iter().enumerate() {
                if block.start < time {
                    earlier.push(EarlierBlock { block, file, at });
                }
            }
        }
        earlier.sort_by_key(|earlier| Reverse(earlier.block.end));
        earlier
    }

    /// Merges the latest messages of a block.
    fn add_latest(
        &mut self,
        earlier: &EarlierBlock,
        depths: &BTreeMap<usize, usize>,
        time: u64,
        order: MessageOrder,
        latest: &mut Latest,
    ) {
        let (file, at) = (earlier.file, earlier.at);
        let LoadedBlock { data, messages, .. } = self.load_block(file, at);
        let mut places: BTreeMap<usize, Vec<(Place, usize)>> = BTreeMap::new();
        for (number, message) in messages.iter().enumerate() {
            let sent = time_of(order, message.log_time, message.publish_time);
            let topic = self.topic_of(file, message.channel);
            if let Some(topic) = topic.filter(|topic| depths.contains_key(topic))
                && sent < time
            {
                let places = places.entry(topic).or_default();
                places.push(((sent, file, at, number), number));
            }
        }
        for (topic, mut places) in places {
            let depth = depths.get(&topic).copied().unwrap_or(1);
            places.sort_unstable();
            let kept = latest.entry(topic).or_default();
            for (place, number) in places.into_iter().rev().take(depth) {
                let is_late = kept.len() < depth || kept.first().is_some_and(|k| k.0 < place);
                let (true, Some(message)) = (is_late, messages.get(number)) else {
                    continue;
                };
                let stored = data.slice(message.payload.clone());
                let Some(payload) = self.payload(file, stored) else {
                    continue;
                };
                let message = BagMessage {
                    topic,
                    file,
                    log_time: message.log_time,
                    publish_time: message.publish_time,
                    // A view would keep its whole chunk in memory.
                    payload: Bytes::copy_from_slice(&payload),
                };
                let behind = kept.partition_point(|(known, _)| *known < place);
                kept.insert(behind, (place, message));
                if kept.len() > depth {
                    kept.remove(0);
                }
            }
        }
    }
}

/// Whether a block that ends at `end` may have one of the latest messages.
fn is_missing(known: Option<&Vec<(Place, BagMessage)>>, depth: usize, end: u64) -> bool {
    let Some(known) = known.filter(|known| known.len() >= depth) else {
        return true;
    };
    known.first().is_none_or(|((first, ..), _)| *first <= end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::MessageFilter;
    use crate::topic::BagTopic;
    use crate::writer::{BagOptions, BagWriter};
    use pteros_test_support::folder::Folder;

    /// Finds the latest messages by reading forward from the start of the bag.
    fn by_reading_forward(
        bag: &mut BagReader,
        depths: &BTreeMap<usize, usize>,
        time: u64,
        order: MessageOrder,
    ) -> Vec<BagMessage> {
        let filter = MessageFilter {
            until: Some(time),
            order,
            ..MessageFilter::default()
        };
        let mut kept: BTreeMap<usize, Vec<BagMessage>> = BTreeMap::new();
        for message in bag.messages(filter) {
            let Some(depth) = depths.get(&message.topic) else {
                continue;
            };
            let queue = kept.entry(message.topic).or_default();
            queue.push(message);
            if queue.len() > *depth {
                queue.remove(0);
            }
        }
        let mut all: Vec<BagMessage> = kept.into_values().flatten().collect();
        all.sort_by_key(|message| message.time(order));
        all
    }

    /// Chunks and files overlap in time, in both orders.
    #[test]
    fn reading_backwards_gives_the_same_as_reading_forward() {
        let folder = Folder::absent("latest");
        let options = BagOptions {
            chunk_bytes: 300,
            split_bytes: Some(4000),
            ..BagOptions::default()
        };
        let mut writer = BagWriter::create(&folder, options).unwrap();
        for name in ["/map", "/often", "/scan", "/never"] {
            let topic = BagTopic {
                name: name.into(),
                type_name: "std_msgs/msg/String".into(),
                ..BagTopic::default()
            };
            writer.add_topic(topic).unwrap();
        }
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % limit
        };
        for n in 0..600 {
            let channel = match random(40) {
                0 => 1,
                1..10 => 2,
                _ => 3,
            };
            // All times differ.
            let (log, publish) = (1000 * (n + random(60)) + n, 1000 * (n + random(200)) + n);
            writer.write(channel, log, publish, &[n as u8; 20]).unwrap();
        }
        writer.finish(&BTreeMap::new()).unwrap();
        let mut bag = BagReader::open(&folder).unwrap();
        assert!(bag.files().count() > 3);
        let depths = BTreeMap::from([(0, 3), (1, 5), (3, 1)]);
        let mut most = 0;
        for order in [MessageOrder::Received, MessageOrder::Sent] {
            for step in 0..90 {
                let time = 10_000 * step;
                let expected = by_reading_forward(&mut bag, &depths, time, order);
                let found = bag.latest_before(&depths, time, order);
                assert_eq!(found, expected, "{order:?} {time}");
                most = most.max(found.len());
            }
        }
        assert_eq!(most, 8);
    }
}
