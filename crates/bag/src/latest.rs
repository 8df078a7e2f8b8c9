//! The latest messages of topics before a time, as a late joiner would have them.
//!
//! Blocks are read backwards, and only those that may have a message that is still
//! missing. So a seek reads a few chunks, and not everything before it.

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

/// The place of a message: its time, and among equal times its file, its block and its
/// place there.
type Place = (u64, usize, usize, usize);

/// The latest messages by topic, in the order of time.
type Latest = BTreeMap<usize, Vec<(Place, BagMessage)>>;

impl BagReader {
    /// The latest messages before a time, in the order of time: of each topic as many as
    /// `depths` says. Payloads are copied. Empty if reading was
    /// [interrupted](Self::interrupt_when).
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
                // Each further block ends earlier.
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

    /// The blocks that begin before a time. The one that ends last is the first.
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

    /// Adds the latest messages of a block.
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
                    // A view would keep its whole chunk.
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

/// Whether a block that ends at a time may have a message that belongs to the latest.
fn is_missing(known: Option<&Vec<(Place, BagMessage)>>, depth: usize, end: u64) -> bool {
    let Some(known) = known.filter(|known| known.len() >= depth) else {
        return true;
    };
    known.first().is_none_or(|((first, ..), _)| *first <= end)
}
