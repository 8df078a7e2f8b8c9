//! Bags of ROS 1 as storage: their messages become CDR of ROS 2's types as they are
//! read.

use std::collections::BTreeMap;
use std::path::Path;

use pteros::msg::library::InterfaceLibrary;
use pteros::qos::QosProfile;

use super::{Block, BlockMessage, LoadedBlock, StorageFile, StoredTopic};
use crate::error::BagError;
use crate::mcap::CHUNK_BYTES_MAX;
use crate::ros1::{ChunkInfo, Connection, Container, Converter, TypePairs, parse_records};
use crate::source::{PROBLEMS_MAX, Source};
use crate::topic::BagTopic;

/// The QoS of a publisher in ROS 1 is a queue alone.
const DEPTH: usize = 10;

/// An open bag of ROS 1.
pub(super) struct Ros1File {
    container: Container,
    topics: Vec<Ros1Topic>,
    /// Channels by connection.
    channels: BTreeMap<u32, u16>,
    chunks: Vec<ChunkInfo>,
    problems: Vec<String>,
    is_complete: bool,
}

struct Ros1Topic {
    topic: BagTopic,
    converter: Converter,
    count: u64,
    /// Latching publishers.
    latching: usize,
    /// The type in ROS 1.
    ros1_type: String,
}

impl Ros1File {
    /// Reads the index, and finds the types. Without an index, the whole bag is read.
    pub(super) fn open(
        file: Box<dyn Source>,
        bytes: u64,
        path: &Path,
        library: &InterfaceLibrary,
    ) -> Result<Self, BagError> {
        let mut container = Container::new(file, bytes, path);
        let contents = container.contents()?;
        let mut open = Self {
            container,
            topics: Vec::new(),
            channels: BTreeMap::new(),
            chunks: contents.chunks,
            problems: contents.problems,
            is_complete: contents.is_complete,
        };
        let mut pairs = TypePairs::new(library.clone());
        for connection in &contents.connections {
            open.add_connection(connection, &mut pairs);
        }
        for chunk in &open.chunks {
            for (connection, count) in &chunk.counts {
                let channel = open.channels.get(connection).copied();
                let topic = channel.and_then(|at| open.topics.get_mut(usize::from(at)));
                if let Some(topic) = topic {
                    topic.count += count;
                }
            }
        }
        for topic in &mut open.topics {
            let qos = QosProfile::default();
            topic.topic.offered_qos = vec![match topic.latching {
                0 => qos.keep_last(DEPTH),
                count => qos.keep_last(count).transient_local(),
            }];
        }
        Ok(open)
    }

    fn note(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn add_connection(&mut self, connection: &Connection, pairs: &mut TypePairs) {
        let name = format!("/{}", connection.topic.trim_start_matches('/'));
        let known =
            self.topics.iter_mut().zip(0..).find(|(known, _)| {
                known.topic.name == name && known.ros1_type == connection.type_name
            });
        if let Some((known, channel)) = known {
            known.latching += usize::from(connection.is_latching);
            self.channels.insert(connection.id, channel);
            return;
        }
        let Ok(channel) = u16::try_from(self.topics.len()) else {
            return self.note(format!(
                "topic {name} is left out: at most 65535 topics are read"
            ));
        };
        let type_name = &connection.type_name;
        match pairs.converter(type_name, &connection.definition) {
            Ok(converter) => {
                if let Some(note) = &converter.note {
                    self.note(format!("topic {name}: {note}"));
                }
                self.topics.push(Ros1Topic {
                    topic: BagTopic {
                        name,
                        type_name: converter.type_name.clone(),
                        definition: converter.definition.clone(),
                        serialization_format: "cdr".into(),
                        offered_qos: Vec::new(),
                        type_hash: converter.type_hash.clone(),
                    },
                    converter,
                    count: 0,
                    latching: usize::from(connection.is_latching),
                    ros1_type: type_name.clone(),
                });
                self.channels.insert(connection.id, channel);
            }
            Err(problem) => self.note(format!(
                "topic {name} of type {type_name} is left out: {problem}"
            )),
        }
    }
}

impl StorageFile for Ros1File {
    fn path(&self) -> &Path {
        self.container.path()
    }

    fn bytes(&self) -> u64 {
        self.container.bytes()
    }

    fn topics(&self) -> Vec<StoredTopic> {
        let numbered = (0..).zip(&self.topics);
        let stored = numbered.map(|(channel, known)| StoredTopic {
            channel,
            topic: known.topic.clone(),
            message_count: known.count,
            problem: None,
        });
        stored.collect()
    }

    fn blocks(&self) -> Vec<Block> {
        let chunks = self.chunks.iter();
        chunks
            .map(|chunk| {
                let counted = chunk.counts.iter();
                let known = counted.filter_map(|(connection, _)| self.channels.get(connection));
                Block {
                    start: chunk.start,
                    end: chunk.end,
                    channels: Some(known.copied().collect()),
                }
            })
            .collect()
    }

    fn span(&self) -> Option<(u64, u64)> {
        let spans = self.chunks.iter().map(|chunk| (chunk.start, chunk.end));
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn message_count(&self) -> u64 {
        self.topics.iter().map(|topic| topic.count).sum()
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn texts(&self, _name: &str) -> Option<&BTreeMap<String, String>> {
        None
    }

    fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    fn load(&mut self, block: usize) -> Result<LoadedBlock, BagError> {
        let Some(chunk) = self.chunks.get(block) else {
            return Ok(LoadedBlock::default());
        };
        let offset = chunk.offset;
        let records = self.container.load(offset)?;
        let parsed = parse_records(&records);
        let shown = self.container.path().display();
        let mut problem = parsed
            .problem
            .filter(|_| self.is_complete)
            .map(|problem| format!("{shown}, chunk at byte {offset}: {problem}"));
        let mut data = Vec::with_capacity(records.len());
        let mut messages = Vec::with_capacity(parsed.messages.len());
        for message in parsed.messages {
            let Some(channel) = self.channels.get(&message.connection) else {
                continue;
            };
            let Some(topic) = self.topics.get(usize::from(*channel)) else {
                continue;
            };
            let start = data.len();
            let content = records.get(message.data).unwrap_or_default();
            let converted = if start as u64 > CHUNK_BYTES_MAX {
                Err("the chunk would be too large in ROS 2".to_owned())
            } else {
                topic.converter.convert(content, &mut data)
            };
            if let Err(reason) = converted {
                data.truncate(start);
                problem.get_or_insert_with(|| {
                    format!(
                        "{shown}, chunk at byte {offset}: a message of {}: {reason}",
                        topic.topic.name
                    )
                });
                continue;
            }
            messages.push(BlockMessage {
                channel: *channel,
                log_time: message.time,
                publish_time: message.time,
                payload: start..data.len(),
            });
        }
        Ok(LoadedBlock {
            data: data.into(),
            messages,
            problem,
        })
    }
}
