//! YAML text as a small tree with line and column numbers, and with limits.
//! Messages, parameters and settings are parsed from it.
//!
//! Documents of mappings, lists and scalars. Scalars stay text, because the caller
//! knows their type. Anchors and aliases are rejected instead of expanded,
//! so a short text cannot become a large tree.

use crate::cdr::DEPTH_MAX;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

/// One YAML value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlNode {
    /// Its content.
    pub content: YamlContent,
    /// Its tag, in full: `tag:yaml.org,2002:str` for `!!str`.
    pub tag: Option<String>,
    /// Position of its first character.
    pub place: YamlPosition,
}

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct YamlPosition {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl YamlPosition {
    /// Of a marker, which counts columns from 0.
    fn of(marker: &Marker) -> Self {
        let counted = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            line: counted(marker.line()),
            column: counted(marker.col().saturating_add(1)),
        }
    }
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlContent {
    /// A text, quoted (or a block) or plain.
    Scalar {
        /// Without the quotes, escapes resolved.
        text: String,
        /// Whether it is a string regardless of its content.
        quoted: bool,
    },
    /// A list.
    List(Vec<YamlNode>),
    /// A mapping, in its order; keys may come twice.
    Mapping(Vec<YamlEntry>),
}

/// One line of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlEntry {
    /// The key, a scalar's text.
    pub key: String,
    /// Where the key begins.
    pub place: YamlPosition,
    /// The value.
    pub value: YamlNode,
}

/// Text that is no YAML, or more of it than is read here.
#[derive(Clone, PartialEq, Eq)]
pub struct YamlError {
    /// Where.
    pub place: YamlPosition,
    /// The problem.
    pub message: String,
}

crate::debug_as_display!(YamlError);

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let YamlPosition { line, column } = self.place;
        write!(f, "line {line}, column {column}: {}", self.message)
    }
}

impl core::error::Error for YamlError {}

impl YamlNode {
    /// An unquoted nothing: `~`, `null` or empty.
    pub fn is_null(&self) -> bool {
        match &self.content {
            YamlContent::Scalar { text, quoted } => {
                !quoted && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// A description for error messages.
    pub fn found_text(&self) -> String {
        match &self.content {
            YamlContent::Scalar { text, quoted: true } => format!("the string {text:?}"),
            YamlContent::Scalar { text, .. } if text.is_empty() => "nothing".into(),
            YamlContent::Scalar { text, .. } => text.clone(),
            YamlContent::List(items) => format!("a list of {}", items.len()),
            YamlContent::Mapping(_) => "a mapping".into(),
        }
    }

    /// Reads the only document of `text`; an empty text is an empty scalar.
    ///
    /// # Errors
    /// See [`YamlNode::read_documents`], and a second document.
    pub fn read(text: &str) -> Result<Self, YamlError> {
        let mut documents = Self::read_documents(text)?.into_iter();
        let first = documents.next().unwrap_or(Self {
            content: YamlContent::Scalar {
                text: String::new(),
                quoted: false,
            },
            tag: None,
            place: YamlPosition { line: 1, column: 1 },
        });
        match documents.next() {
            None => Ok(first),
            Some(second) => Err(YamlError {
                place: second.place,
                message: "a second document; give one only".to_owned(),
            }),
        }
    }

    /// Reads all documents of `text`, which `---` separates; an empty text has none.
    ///
    /// # Errors
    /// Text that is no YAML, aliases, keys that are no scalars, and nesting deeper
    /// than twice that of messages.
    pub fn read_documents(text: &str) -> Result<Vec<Self>, YamlError> {
        let mut builder = Builder::default();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| YamlError {
                place: YamlPosition::of(error.marker()),
                message: error.info().to_string(),
            })?;
            builder.handle(event, &span)?;
        }
        Ok(builder.documents)
    }
}

#[derive(Default)]
struct Builder {
    documents: Vec<YamlNode>,
    open: Vec<Open>,
}

struct Open {
    content: OpenContent,
    tag: Option<String>,
    place: YamlPosition,
}

enum OpenContent {
    List(Vec<YamlNode>),
    Mapping {
        entries: Vec<YamlEntry>,
        key: Option<(String, YamlPosition)>,
    },
}

impl Builder {
    fn handle(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlError> {
        let place = YamlPosition::of(&span.start);
        let handled = match event {
            Event::Scalar(text, style, _, tag) => self.add(YamlNode {
                content: YamlContent::Scalar {
                    text: text.into_owned(),
                    quoted: style != ScalarStyle::Plain,
                },
                tag: tag.map(|tag| format!("{}{}", tag.handle, tag.suffix)),
                place,
            }),
            Event::SequenceStart(_, tag) => self.push(Open {
                content: OpenContent::List(Vec::new()),
                tag: tag.map(|tag| format!("{}{}", tag.handle, tag.suffix)),
                place,
            }),
            Event::MappingStart(_, tag) => self.push(Open {
                content: OpenContent::Mapping {
                    entries: Vec::new(),
                    key: None,
                },
                tag: tag.map(|tag| format!("{}{}", tag.handle, tag.suffix)),
                place,
            }),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.add(YamlNode {
                    content: match open.content {
                        OpenContent::List(items) => YamlContent::List(items),
                        OpenContent::Mapping { entries, .. } => YamlContent::Mapping(entries),
                    },
                    tag: open.tag,
                    place: open.place,
                }),
                None => Err("an end without a start"),
            },
            Event::Alias(_) => Err("aliases (*name) are not supported; repeat the value"),
            _ => Ok(()),
        };
        handled.map_err(|message| YamlError {
            place,
            message: message.to_owned(),
        })
    }

    fn push(&mut self, open: Open) -> Result<(), &'static str> {
        if self.open.len() >= usize::from(DEPTH_MAX).saturating_mul(2) {
            return Err("nested deeper than any message");
        }
        self.open.push(open);
        Ok(())
    }

    fn add(&mut self, node: YamlNode) -> Result<(), &'static str> {
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.documents.push(node),
            Some(OpenContent::List(items)) => items.push(node),
            Some(OpenContent::Mapping { entries, key }) => match (key.take(), node) {
                (Some((key, place)), value) => entries.push(YamlEntry { key, place, value }),
                (None, node) => match node.content {
                    YamlContent::Scalar { text, .. } => *key = Some((text, node.place)),
                    _ => return Err("a key must be a name"),
                },
            },
        }
        Ok(())
    }
}
