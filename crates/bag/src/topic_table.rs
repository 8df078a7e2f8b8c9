//! The topics of a bag by name, type and definition.
//!
//! Merged bags, and recordings of several publishers, may have several definitions of a
//! topic's type. Each definition is a separate topic here. Texts that describe the same
//! type, for example with other comments, count as one.

use std::collections::BTreeMap;

use pteros::msg::library::InterfaceLibrary;

use crate::definitions::message_type;
use crate::topic::{BagTopic, RecordedTopic};

/// Definitions per topic and type. Recordings of two distributions have two.
const DEFINITIONS_MAX: usize = 64;

/// The topics, in the order in which they were added.
#[derive(Default)]
pub(crate) struct TopicTable {
    all: Vec<RecordedTopic>,
    /// Definitions by name, type and serialization format.
    known: BTreeMap<(String, String, String), Vec<Definition>>,
}

/// A definition of a topic's type.
struct Definition {
    /// Index of its topic.
    topic: usize,
    /// Hash of the type that it describes; `Some(None)` if it describes none. Computed
    /// when another definition of the topic is added.
    hash: Option<Option<String>>,
}

impl TopicTable {
    pub(crate) fn all(&self) -> &[RecordedTopic] {
        &self.all
    }

    /// Adds the messages of a channel. Returns the index of their topic.
    ///
    /// # Errors
    /// The topic has too many definitions.
    pub(crate) fn add(
        &mut self,
        topic: BagTopic,
        messages: u64,
        library: &InterfaceLibrary,
    ) -> Result<usize, String> {
        let format = topic.serialization_format.clone();
        let key = (topic.name.clone(), topic.type_name.clone(), format);
        let definitions = self.known.entry(key).or_default();
        let mut same_text = definitions.iter().filter_map(|definition| {
            let known = &self.all.get(definition.topic)?.topic;
            // Without a text, only the hash distinguishes definitions.
            let is_same = known.definition == topic.definition
                && (!topic.definition.is_empty() || known.type_hash == topic.type_hash)
                && known.foreign_schema == topic.foreign_schema;
            is_same.then_some(definition.topic)
        });
        let mut found = same_text.next();
        let mut hash = None;
        if found.is_none() && !definitions.is_empty() {
            let described = hash_of(&topic, library);
            for known in definitions.iter_mut() {
                let recorded = self.all.get(known.topic);
                let hash = known
                    .hash
                    .get_or_insert_with(|| recorded.and_then(|r| hash_of(&r.topic, library)));
                if described.is_some() && *hash == described {
                    found = Some(known.topic);
                    break;
                }
            }
            hash = Some(described);
        }
        let index = match found {
            Some(index) => index,
            None if definitions.len() >= DEFINITIONS_MAX => {
                return Err(format!(
                    "topic {}: more than {DEFINITIONS_MAX} definitions of {}; {messages} messages of a further one are left out",
                    topic.name, topic.type_name
                ));
            }
            None => {
                let index = self.all.len();
                definitions.push(Definition { topic: index, hash });
                self.all.push(RecordedTopic {
                    topic,
                    message_count: 0,
                });
                index
            }
        };
        if let Some(known) = self.all.get_mut(index) {
            known.message_count += messages;
        }
        Ok(index)
    }
}

fn hash_of(topic: &BagTopic, library: &InterfaceLibrary) -> Option<String> {
    let ty = message_type(topic, library).ok()?;
    Some(ty.hash().to_string())
}
