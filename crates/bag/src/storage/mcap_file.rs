//! MCAP files as storage: channels with their schemas are topics, chunks are blocks.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Block, BlockMessage, LoadedBlock, StorageFile, StoredTopic};
use crate::error::BagError;
use crate::mcap::{ChannelRecord, McapFile, SchemaRecord, parse_chunk};
use crate::qos_text::parse_profiles;
use crate::topic::BagTopic;

impl StorageFile for McapFile {
    fn path(&self) -> &Path {
        Self::path(self)
    }

    fn bytes(&self) -> u64 {
        Self::bytes(self)
    }

    fn topics(&self) -> Vec<StoredTopic> {
        let channels = self.channels.iter();
        let stored = channels.map(|(id, channel)| {
            let schema = self.schemas.get(&channel.schema_id);
            let count = self.counts.get(id).copied().unwrap_or(0);
            stored_topic(channel, schema, count)
        });
        stored.collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let chunks = self.chunks.iter();
        chunks
            .map(|chunk| Block {
                start: chunk.start,
                end: chunk.end,
                channels: chunk.channels.clone(),
            })
            .collect()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    fn message_count(&self) -> u64 {
        Self::message_count(self)
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn texts(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.metadata.get(name)
    }

    fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    fn load(&mut self, block: usize) -> Result<LoadedBlock, BagError> {
        let Some(location) = self.chunks.get(block).cloned() else {
            return Ok(LoadedBlock::default());
        };
        let location = self.with_checksum(&location);
        let records = Self::load(self, &location)?;
        let parsed = parse_chunk(&records);
        // A torn file has said so when it was opened.
        let problem = parsed.problem.filter(|_| self.is_complete);
        let problem = problem.map(|problem| {
            let path = Self::path(self).display();
            format!("{path}, chunk at byte {}: {problem}", location.offset)
        });
        let messages = parsed.messages.into_iter();
        let messages = messages.map(|message| BlockMessage {
            channel: message.channel,
            log_time: message.log_time,
            publish_time: message.publish_time,
            payload: message.payload,
        });
        Ok(LoadedBlock {
            messages: messages.collect(),
            data: records.into(),
            problem,
        })
    }
}

fn stored_topic(
    channel: &ChannelRecord,
    schema: Option<&SchemaRecord>,
    message_count: u64,
) -> StoredTopic {
    let value = |key: &str| channel.metadata.get(key).cloned().unwrap_or_default();
    let (offered_qos, problem) = match parse_profiles(&value("offered_qos_profiles")) {
        Ok(profiles) => (profiles, None),
        Err(problem) => {
            let problem = format!("topic {}: its QoS profiles: {problem}", channel.topic);
            (Vec::new(), Some(problem))
        }
    };
    let definition = schema.filter(|schema| schema.encoding == "ros2msg");
    let definition = definition.map(|schema| {
        let text = String::from_utf8_lossy(&schema.data).into_owned();
        // That of an empty message.
        if text.is_empty() { "\n".into() } else { text }
    });
    StoredTopic {
        channel: channel.id,
        topic: BagTopic {
            name: channel.topic.clone(),
            type_name: schema.map(|schema| schema.name.clone()).unwrap_or_default(),
            definition: definition.unwrap_or_default(),
            serialization_format: channel.message_encoding.clone(),
            offered_qos,
            type_hash: value("topic_type_hash"),
        },
        message_count,
        problem,
    }
}
