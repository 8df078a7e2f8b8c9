//! MCAP storage: channels with their schemas are topics, chunks are blocks. ROS 1
//! messages are converted to CDR of ROS 2 types while reading.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pteros::msg::library::InterfaceLibrary;
use pteros::qos::QosProfile;

use super::{Block, BlockMessage, LoadedBlock, StorageFile, StoredTopic};
use crate::definitions::{CDR, readable_definition};
use crate::error::BagError;
use crate::mcap::{ChannelRecord, McapFile, REDEFINED, SchemaRecord, parse_chunk};
use crate::qos_text::parse_profiles;
use crate::ros1::{Converter, TypePairs};
use crate::topic::{BagTopic, ForeignSchema};

/// An open file, with converters for its ROS 1 messages.
pub(super) struct McapStorage {
    file: McapFile,
    /// Converter by channel, or why there is none. Channels of one schema share it.
    ros1: BTreeMap<u16, Result<Arc<Converter>, String>>,
}

/// Encoding of ROS 1 messages, and of their schemas.
const ROS1: &str = "ros1";
const ROS1_SCHEMA: &str = "ros1msg";

impl McapStorage {
    pub(super) fn new(file: McapFile, library: &InterfaceLibrary) -> Self {
        let mut by_schema = BTreeMap::new();
        let channels = file.known.channels.iter();
        let channels = channels.filter(|(_, channel)| channel.message_encoding == ROS1);
        let ros1 = channels.map(|(id, channel)| {
            let schema = file.known.schemas.get(&channel.schema_id);
            let converter = by_schema
                .entry(channel.schema_id)
                .or_insert_with(|| ros1_converter(schema, library).map(Arc::new));
            (*id, converter.clone())
        });
        let ros1 = ros1.collect();
        Self { file, ros1 }
    }

    fn stored_topic(&self, id: u16, channel: &ChannelRecord) -> StoredTopic {
        let schema = self.file.known.schemas.get(&channel.schema_id);
        let count = self.file.counts.get(&id).copied().unwrap_or(0);
        let mut stored = stored_topic(channel, schema, count);
        match self.ros1.get(&id) {
            Some(Ok(converter)) => become_ros2(&mut stored, channel, converter),
            Some(Err(problem)) => stored.note(format!(
                "topic {}: its messages of ROS 1 are not converted: {problem}",
                channel.topic
            )),
            None => {}
        }
        stored
    }
}

fn ros1_converter(
    schema: Option<&SchemaRecord>,
    library: &InterfaceLibrary,
) -> Result<Converter, String> {
    let schema = schema.ok_or("its channel has no schema")?;
    if ![ROS1_SCHEMA, ""].contains(&schema.encoding.as_str()) {
        return Err(format!(
            "its schema is {}, and messages of ROS 1 need {ROS1_SCHEMA}",
            schema.encoding
        ));
    }
    let text = String::from_utf8_lossy(&schema.data);
    let text = Some(&*text).filter(|text| schema.encoding == ROS1_SCHEMA && !text.is_empty());
    TypePairs::converter(library, &schema.name, text)
}

/// Describes a ROS 1 topic by the type of its converted messages.
fn become_ros2(stored: &mut StoredTopic, channel: &ChannelRecord, converter: &Converter) {
    let name = format!("/{}", channel.topic.trim_start_matches('/'));
    if let Some(note) = &converter.note {
        stored.note(format!("topic {name}: {note}"));
    }
    let is_latching = channel
        .metadata
        .get("latching")
        .is_some_and(|word| word == "1");
    stored.topic = BagTopic {
        name,
        type_name: converter.type_name.clone(),
        definition: converter.definition.clone(),
        serialization_format: CDR.into(),
        offered_qos: if is_latching {
            vec![QosProfile::default().keep_last(1).transient_local()]
        } else {
            std::mem::take(&mut stored.topic.offered_qos)
        },
        type_hash: converter.type_hash.clone(),
        foreign_schema: None,
    };
}

impl StorageFile for McapStorage {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn topics(&self) -> Vec<StoredTopic> {
        let channels = self.file.known.channels.iter();
        channels
            .map(|(id, channel)| self.stored_topic(*id, channel))
            .collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let chunks = self.file.chunks.iter();
        chunks
            .map(|chunk| Block {
                start: chunk.start,
                end: chunk.end,
                channels: chunk.channels.clone(),
            })
            .collect()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.file.span
    }

    fn message_count(&self) -> u64 {
        self.file.message_count()
    }

    fn is_complete(&self) -> bool {
        self.file.is_complete
    }

    fn texts(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.file.metadata.get(name)
    }

    fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.file.problems)
    }

    fn load(&mut self, block: usize) -> Result<LoadedBlock, BagError> {
        let Some(location) = self.file.chunks.get(block).cloned() else {
            return Ok(LoadedBlock::default());
        };
        // A scanned file has reported what it leaves out when it was opened.
        let is_scanned = location.crc.is_some();
        let location = self.file.with_checksum(&location);
        let mut records = self.file.load(&location)?;
        let mut parsed = parse_chunk(&records);
        let mut redefined = location.redefined.clone();
        let redefined = self.file.known.retain_known(&mut parsed, &mut redefined);
        let at = format!(
            "{}, chunk at byte {}",
            self.file.path().display(),
            location.offset
        );
        // A truncated file has reported it when it was opened.
        let problem = parsed.problem.filter(|_| self.file.is_complete);
        let mut problem = problem.map(|problem| format!("{at}: {problem}"));
        if redefined > 0 && !is_scanned {
            problem.get_or_insert_with(|| format!("{at}: {redefined} messages {REDEFINED}"));
        }
        let mut unknown = 0u64;
        let mut messages = Vec::with_capacity(parsed.messages.len());
        // Converted messages follow the records.
        let mut converted = Vec::new();
        for message in parsed.messages {
            let Some(known) = self.file.known.channels.get(&message.channel) else {
                unknown += 1;
                continue;
            };
            let mut payload = message.payload;
            if let Some(Ok(converter)) = self.ros1.get(&message.channel) {
                let content = records.get(payload).unwrap_or_default();
                match converter.append(content, &mut converted) {
                    Ok(place) => {
                        payload = records.len() + place.start..records.len() + place.end;
                    }
                    Err(reason) => {
                        problem.get_or_insert_with(|| {
                            format!("{at}: a message of {}: {reason}", known.topic)
                        });
                        continue;
                    }
                }
            }
            messages.push(BlockMessage {
                channel: message.channel,
                log_time: message.log_time,
                publish_time: message.publish_time,
                payload,
            });
        }
        if unknown > 0 {
            problem.get_or_insert_with(|| {
                format!("{at}: {unknown} messages of channels that the file does not describe are left out")
            });
        }
        records.append(&mut converted);
        Ok(LoadedBlock {
            messages,
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
    let definition = schema.map(|schema| {
        let text = String::from_utf8_lossy(&schema.data);
        readable_definition(&schema.encoding, &text)
    });
    let is_foreign = definition.as_ref().is_some_and(String::is_empty);
    let foreign = schema.filter(|schema| is_foreign && !schema.encoding.is_empty());
    StoredTopic {
        channel: channel.id,
        topic: BagTopic {
            name: channel.topic.clone(),
            type_name: schema.map(|schema| schema.name.clone()).unwrap_or_default(),
            definition: definition.unwrap_or_default(),
            serialization_format: channel.message_encoding.clone(),
            offered_qos,
            type_hash: value("topic_type_hash"),
            foreign_schema: foreign.map(|schema| ForeignSchema {
                encoding: schema.encoding.clone(),
                data: schema.data.clone(),
            }),
        },
        message_count,
        problem,
    }
}
