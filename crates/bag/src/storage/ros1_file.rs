//! ROS 1 bags as storage: messages are converted to CDR of ROS 2 types while reading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pteros::msg::library::InterfaceLibrary;
use pteros::qos::QosProfile;

use super::{Block, BlockMessage, LoadedBlock, StorageFile, StoredTopic};
use crate::definitions::CDR;
use crate::error::BagError;
use crate::ros1::{ChunkInfo, Connection, Container, Converter, TypePairs, parse_records};
use crate::source::{PROBLEMS_MAX, Source};
use crate::topic::BagTopic;

/// MD5 of a message without fields.
const MD5_OF_NOTHING: &str = "d41d8cd98f00b204e9800998ecf8427e";
/// Depth of the QoS: a ROS 1 publisher has only a queue.
const DEPTH: usize = 10;

/// An open bag of ROS 1.
pub(super) struct Ros1File {
    container: Container,
    topics: Vec<Ros1Topic>,
    /// Channels by connection.
    channels: BTreeMap<u32, u16>,
    /// Connections whose messages cannot be converted, which is noted.
    left_out: BTreeSet<u32>,
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
    /// Type name in ROS 1, and its definition.
    ros1_type: String,
    ros1_definition: Option<String>,
}

impl Ros1File {
    /// Reads the index and finds the types. Without an index, reads the whole bag.
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
            left_out: BTreeSet::new(),
            chunks: contents.chunks,
            problems: contents.problems,
            is_complete: contents.is_complete,
        };
        for connection in &contents.connections {
            let definition = definition_of(connection, &contents.connections);
            open.add_connection(connection, definition, library);
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

    fn add_connection(
        &mut self,
        connection: &Connection,
        definition: Option<&str>,
        library: &InterfaceLibrary,
    ) {
        let name = format!("/{}", connection.topic.trim_start_matches('/'));
        let type_name = &connection.type_name;
        let known = self.topics.iter_mut().zip(0..).find(|(known, _)| {
            known.topic.name == name
                && known.ros1_type == *type_name
                && known.ros1_definition.as_deref() == definition
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
        match TypePairs::converter(library, type_name, definition) {
            Ok(converter) => {
                if let Some(note) = &converter.note {
                    self.note(format!("topic {name}: {note}"));
                }
                self.topics.push(Ros1Topic {
                    topic: BagTopic {
                        name,
                        type_name: converter.type_name.clone(),
                        definition: converter.definition.clone(),
                        serialization_format: CDR.into(),
                        offered_qos: Vec::new(),
                        type_hash: converter.type_hash.clone(),
                        foreign_schema: None,
                    },
                    converter,
                    count: 0,
                    latching: usize::from(connection.is_latching),
                    ros1_type: type_name.clone(),
                    ros1_definition: definition.map(str::to_owned),
                });
                self.channels.insert(connection.id, channel);
            }
            Err(problem) => {
                self.left_out.insert(connection.id);
                self.note(format!(
                    "topic {name} of type {type_name} is left out: {problem}"
                ));
            }
        }
    }
}

/// Definition of a connection, or of another connection with the same type; `None` if the
/// bag has none.
fn definition_of<'a>(connection: &'a Connection, all: &'a [Connection]) -> Option<&'a str> {
    let has_text = |other: &&Connection| !other.definition.trim().is_empty();
    if has_text(&connection) || connection.md5 == MD5_OF_NOTHING {
        return Some(&connection.definition);
    }
    let is_known = |md5: &str| !["", "*"].contains(&md5);
    let is_same = |other: &&Connection| {
        other.type_name == connection.type_name
            && (!is_known(&connection.md5) || connection.md5 == other.md5)
    };
    let found = all.iter().filter(is_same).find(has_text);
    found.map(|other| other.definition.as_str())
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
        let (records, is_torn) = self.container.load(offset)?;
        let parsed = parse_records(&records);
        let shown = self.container.path().display();
        let at = format!("{shown}, chunk at byte {offset}");
        // A truncated chunk was noted when the file was opened.
        let problem = parsed.problem.filter(|_| !is_torn);
        let mut problem = problem.map(|problem| format!("{at}: {problem}"));
        let mut unknown = 0u64;
        let mut data = Vec::with_capacity(records.len());
        let mut messages = Vec::with_capacity(parsed.messages.len());
        for message in parsed.messages {
            let channel = self.channels.get(&message.connection);
            let topic = channel.and_then(|channel| self.topics.get(usize::from(*channel)));
            let (Some(channel), Some(topic)) = (channel, topic) else {
                unknown += u64::from(!self.left_out.contains(&message.connection));
                continue;
            };
            let content = records.get(message.data).unwrap_or_default();
            let payload = match topic.converter.append(content, &mut data) {
                Ok(payload) => payload,
                Err(reason) => {
                    problem.get_or_insert_with(|| {
                        format!("{at}: a message of {}: {reason}", topic.topic.name)
                    });
                    continue;
                }
            };
            messages.push(BlockMessage {
                channel: *channel,
                log_time: message.time,
                publish_time: message.time,
                payload,
            });
        }
        if unknown > 0 {
            problem.get_or_insert_with(|| {
                format!("{at}: {unknown} messages of connections that the bag does not describe are left out")
            });
        }
        Ok(LoadedBlock {
            data: data.into(),
            messages,
            problem,
        })
    }
}
