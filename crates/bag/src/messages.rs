//! Iterates over the messages of a bag in the order of time, merging the blocks of all
//! files.

use std::cmp::Reverse;

use bytes::Bytes;

use crate::mcap::growth_limit;
use crate::reader::{BagMessage, BagReader, MessageFilter, time_of};
use crate::storage::{BlockMessage, LoadedBlock};

/// Limit of overlapping chunks in memory, beside a multiple of the bag's size. Beyond it,
/// messages follow the order of the chunks.
const LOADED_BYTES_MAX: u64 = 1 << 30;

/// A block that is not loaded.
struct WaitingBlock {
    start: u64,
    file: usize,
    at: usize,
}

struct OpenBlock {
    file: usize,
    at: usize,
    data: Bytes,
    /// In reverse order: the next message is the last.
    messages: Vec<BlockMessage>,
}

/// The messages of a bag, see [`BagReader::messages`].
pub struct Messages<'a> {
    reader: &'a mut BagReader,
    filter: MessageFilter,
    /// Whether each topic is read; `None` for all.
    wanted: Option<Vec<bool>>,
    waiting: Vec<WaitingBlock>,
    loaded: Vec<OpenBlock>,
    loaded_bytes: u64,
    loaded_max: u64,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(reader: &'a mut BagReader, filter: MessageFilter) -> Self {
        let count = reader.topics().len();
        let wanted = filter.topics.as_ref().map(|topics| {
            let mut wanted = vec![false; count];
            for topic in topics {
                if let Some(wanted) = wanted.get_mut(*topic) {
                    *wanted = true;
                }
            }
            wanted
        });
        let mut messages = Self {
            loaded_max: growth_limit(reader.bytes()).min(LOADED_BYTES_MAX),
            reader,
            filter,
            wanted,
            waiting: Vec::new(),
            loaded: Vec::new(),
            loaded_bytes: 0,
        };
        messages.find_blocks();
        messages
    }

    fn find_blocks(&mut self) {
        let (from, until) = (self.filter.from, self.filter.until);
        // An interrupted read yields no messages.
        let blocks = self.reader.blocks_by(self.filter.order);
        for (file, blocks) in blocks.unwrap_or_default().iter().enumerate() {
            for (at, block) in blocks.iter().enumerate() {
                let is_late = until.is_some_and(|until| block.start >= until);
                let is_early = from.is_some_and(|from| block.end < from);
                let is_wanted = |topic: usize| self.is_wanted(topic);
                let may_have =
                    self.wanted.is_none() || self.reader.may_have(file, block, &is_wanted);
                if !is_late && !is_early && may_have {
                    self.waiting.push(WaitingBlock {
                        start: block.start,
                        file,
                        at,
                    });
                }
            }
        }
        // Taken from the back.
        self.waiting
            .sort_by_key(|block| Reverse((block.start, block.file, block.at)));
    }

    fn is_wanted(&self, topic: usize) -> bool {
        let wanted = self.wanted.as_ref();
        wanted.is_none_or(|wanted| wanted.get(topic).copied().unwrap_or(false))
    }

    fn time(&self, message: &BlockMessage) -> u64 {
        time_of(self.filter.order, message.log_time, message.publish_time)
    }

    /// The loaded block with the earliest message; among equal times, the first in the
    /// files.
    fn earliest(&self) -> Option<(usize, u64)> {
        let firsts = self.loaded.iter().enumerate();
        let earliest = firsts
            .filter_map(|(number, block)| {
                let time = self.time(block.messages.last()?);
                Some((time, block.file, block.at, number))
            })
            .min();
        earliest.map(|(time, _, _, number)| (number, time))
    }

    fn load(&mut self, block: &WaitingBlock) {
        let LoadedBlock {
            data, mut messages, ..
        } = self.reader.load_block(block.file, block.at);
        messages.retain(|message| {
            let topic = self.reader.topic_of(block.file, message.channel);
            let time = self.time(message);
            topic.is_some_and(|topic| self.is_wanted(topic))
                && self.filter.from.is_none_or(|from| time >= from)
                && self.filter.until.is_none_or(|until| time < until)
        });
        if messages.is_empty() {
            return;
        }
        // Stable: equal times keep the order of the file.
        messages.sort_by_key(|message| self.time(message));
        messages.reverse();
        self.loaded_bytes += data.len() as u64;
        self.loaded.push(OpenBlock {
            file: block.file,
            at: block.at,
            data,
            messages,
        });
    }

    /// Takes the next message of a loaded block. Drops the block after its last message.
    fn take(&mut self, at: usize) -> Option<(usize, BlockMessage, Bytes)> {
        let block = self.loaded.get_mut(at)?;
        let message = block.messages.pop()?;
        let stored = block.data.slice(message.payload.clone());
        let file = block.file;
        if block.messages.is_empty() {
            self.loaded_bytes -= self.loaded.remove(at).data.len() as u64;
        }
        Some((file, message, stored))
    }
}

impl Iterator for Messages<'_> {
    type Item = BagMessage;

    fn next(&mut self) -> Option<BagMessage> {
        loop {
            let earliest = self.earliest();
            let has_room = self.loaded_bytes < self.loaded_max;
            let is_due = self.waiting.last().is_some_and(|block| {
                earliest.is_none_or(|(_, time)| block.start <= time && has_room)
            });
            if is_due && let Some(block) = self.waiting.pop() {
                if self.reader.is_interrupted() {
                    self.waiting.clear();
                    self.loaded.clear();
                    return None;
                }
                self.load(&block);
                continue;
            }
            let (at, _) = earliest?;
            let (file, message, stored) = self.take(at)?;
            let topic = self.reader.topic_of(file, message.channel)?;
            let Some(payload) = self.reader.payload(file, stored) else {
                continue;
            };
            return Some(BagMessage {
                topic,
                file,
                log_time: message.log_time,
                publish_time: message.publish_time,
                payload,
            });
        }
    }
}
