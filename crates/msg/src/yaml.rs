//! YAML text as a small tree with line and column numbers, and with limits.
//! Messages, parameters and settings are parsed from it.
//!
//! Documents of mappings, lists and scalars. Scalars stay text, because the caller
//! knows their type. Messages, parameters and settings have no aliases, as in rcl.
//! [`YamlNode::read_with_aliases`] copies them up to a limit, so a short text cannot
//! become a large tree.

use crate::cdr::DEPTH_MAX;
use alloc::borrow::{Cow, ToOwned};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

/// One YAML value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlNode {
    /// A scalar, a list or a mapping.
    pub content: YamlContent,
    /// Its tag, in full: `tag:yaml.org,2002:str` for `!!str`.
    pub tag: Option<String>,
    /// Position of its first character.
    pub place: YamlPosition,
}

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct YamlPosition {
    /// From 1.
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
    /// In block style, `- a`, or flow style, `[a]`.
    List(Vec<YamlNode>),
    /// A mapping, in its order; keys may come twice.
    Mapping(Vec<YamlEntry>),
}

/// One line of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlEntry {
    /// The key, a scalar's text.
    pub key: String,
    /// Whether the key is a string regardless of its content.
    pub is_key_quoted: bool,
    /// Where the key begins.
    pub place: YamlPosition,
    /// An empty scalar if the key has none.
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
        Self::only(Self::read_documents(text)?)
    }

    /// As [`YamlNode::read`], and puts copies in the place of aliases and of merged
    /// mappings (`<<: *base`), of which a key of the mapping itself wins.
    ///
    /// # Errors
    /// As [`YamlNode::read`], and copies of more than [`COPIED_BYTES_MAX`].
    pub fn read_with_aliases(text: &str) -> Result<Self, YamlError> {
        let builder = Builder {
            anchors: Some(BTreeMap::new()),
            ..Builder::default()
        };
        Self::only(builder.read(text)?)
    }

    fn only(documents: Vec<Self>) -> Result<Self, YamlError> {
        let mut documents = documents.into_iter();
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
        Builder::default().read(text)
    }

    /// Memory of the tree, in bytes.
    fn size(&self) -> usize {
        let inner = match &self.content {
            YamlContent::Scalar { text, .. } => text.len(),
            YamlContent::List(items) => items.iter().map(Self::size).sum(),
            YamlContent::Mapping(entries) => {
                let beside = size_of::<YamlEntry>().saturating_sub(size_of::<Self>());
                let sizes = entries.iter().map(|entry| {
                    let key = entry.key.len().saturating_add(beside);
                    key.saturating_add(entry.value.size())
                });
                sizes.sum()
            }
        };
        size_of::<Self>().saturating_add(inner)
    }

    /// Levels of collections in the tree.
    fn depth(&self) -> usize {
        let inner = match &self.content {
            YamlContent::Scalar { .. } => return 0,
            YamlContent::List(items) => items.iter().map(Self::depth).max(),
            YamlContent::Mapping(entries) => entries.iter().map(|entry| entry.value.depth()).max(),
        };
        inner.unwrap_or(0).saturating_add(1)
    }
}

/// The most memory that the copies of anchors and aliases of a text may take: 16 MiB.
pub const COPIED_BYTES_MAX: usize = 16 << 20;

#[derive(Default)]
struct Builder {
    documents: Vec<YamlNode>,
    open: Vec<Open>,
    /// Anchored nodes by the parser's numbers; `None` where aliases are refused.
    anchors: Option<BTreeMap<usize, YamlNode>>,
    copied_bytes: usize,
    /// The character that stands for a hyphen, see [`with_stand_in`].
    stand_in: Option<char>,
}

struct Open {
    content: OpenContent,
    tag: Option<String>,
    place: YamlPosition,
    anchor: usize,
}

enum OpenContent {
    List(Vec<YamlNode>),
    Mapping {
        entries: Vec<YamlEntry>,
        key: Option<Key>,
    },
}

struct Key {
    text: String,
    is_quoted: bool,
    place: YamlPosition,
}

/// Twice the nesting of messages.
fn check_depth(depth: usize) -> Result<(), &'static str> {
    if depth > usize::from(DEPTH_MAX).saturating_mul(2) {
        return Err("nested deeper than any message");
    }
    Ok(())
}

/// The text with a stand-in for each hyphen that is a word of its own before a flow
/// indicator (`{a: b -}`, `[-, c]`), and the stand-in; `None` if it has no such hyphen.
///
/// saphyr-parser refuses such a hyphen everywhere within brackets. libyaml and PyYAML, which
/// ROS 2 reads and prints with, take it as text. The stand-in is a character that the text
/// does not have, so putting the hyphens back is exact, also in quotes and blocks.
fn with_stand_in(text: &str) -> Option<(String, char)> {
    let is_flow = |c: char| matches!(c, ',' | '[' | ']' | '{' | '}');
    let begins_word =
        |before: Option<char>| before.is_none_or(|c| c.is_whitespace() || is_flow(c) || c == ':');
    let is_lone = |(at, _): &(usize, &str)| {
        let (before, after) = text.split_at(*at);
        let follows = after.chars().nth(1);
        follows.is_some_and(is_flow) && begins_word(before.chars().next_back())
    };
    let mut hyphens = text.match_indices('-').filter(is_lone).peekable();
    hyphens.peek()?;
    // The private use area of the basic plane.
    let private = '\u{e000}'..='\u{f8ff}';
    let used: BTreeSet<char> = text.chars().filter(|c| private.contains(c)).collect();
    let stand_in = private.clone().find(|c| !used.contains(c))?;
    let mut changed = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, hyphen) in hyphens {
        changed.push_str(text.get(copied..at)?);
        changed.push(stand_in);
        copied = at.saturating_add(hyphen.len());
    }
    changed.push_str(text.get(copied..)?);
    Some((changed, stand_in))
}

impl Builder {
    fn read(mut self, text: &str) -> Result<Vec<YamlNode>, YamlError> {
        let changed = with_stand_in(text);
        self.stand_in = changed.as_ref().map(|(_, stand_in)| *stand_in);
        let text = changed.as_ref().map_or(text, |(changed, _)| changed);
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| YamlError {
                place: YamlPosition::of(error.marker()),
                message: match error.info() {
                    text if text.starts_with("invalid indentation") => {
                        format!("{text}; indent it deeper than the key above it")
                    }
                    text => text.to_string(),
                },
            })?;
            let place = YamlPosition::of(&span.start);
            self.handle(event, place).map_err(|message| YamlError {
                place,
                message: message.to_owned(),
            })?;
        }
        Ok(self.documents)
    }

    fn handle(&mut self, event: Event<'_>, place: YamlPosition) -> Result<(), &'static str> {
        let tag_text =
            |tag: Option<Cow<'_, Tag>>| tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
        match event {
            Event::Scalar(text, style, anchor, tag) => self.add_anchored(
                YamlNode {
                    content: YamlContent::Scalar {
                        text: self.restored(text),
                        quoted: style != ScalarStyle::Plain,
                    },
                    tag: tag_text(tag),
                    place,
                },
                anchor,
            ),
            Event::SequenceStart(anchor, tag) => self.push(Open {
                content: OpenContent::List(Vec::new()),
                tag: tag_text(tag),
                place,
                anchor,
            }),
            Event::MappingStart(anchor, tag) => self.push(Open {
                content: OpenContent::Mapping {
                    entries: Vec::new(),
                    key: None,
                },
                tag: tag_text(tag),
                place,
                anchor,
            }),
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.open.pop().ok_or("an end without a start")?;
                let content = match open.content {
                    OpenContent::List(items) => YamlContent::List(items),
                    OpenContent::Mapping { entries, .. } if self.anchors.is_some() => {
                        YamlContent::Mapping(merged(entries)?)
                    }
                    OpenContent::Mapping { entries, .. } => YamlContent::Mapping(entries),
                };
                let node = YamlNode {
                    content,
                    tag: open.tag,
                    place: open.place,
                };
                self.add_anchored(node, open.anchor)
            }
            Event::Alias(anchor) => {
                let Some(anchors) = &self.anchors else {
                    return Err("aliases (*name) are not supported; repeat the value");
                };
                let node = anchors.get(&anchor);
                let node = node.ok_or("an alias lies in the value that it stands for")?;
                // So each tree is bounded, and with it what recurses over it.
                check_depth(self.open.len().saturating_add(node.depth()))?;
                let node = Self::copied(&mut self.copied_bytes, node)?;
                self.add(YamlNode { place, ..node })
            }
            _ => Ok(()),
        }
    }

    fn restored(&self, text: Cow<'_, str>) -> String {
        match self.stand_in {
            Some(stand_in) => text.replace(stand_in, "-"),
            None => text.into_owned(),
        }
    }

    fn copied(copied_bytes: &mut usize, node: &YamlNode) -> Result<YamlNode, &'static str> {
        *copied_bytes = copied_bytes.saturating_add(node.size());
        if *copied_bytes > COPIED_BYTES_MAX {
            return Err(
                "anchors (&name) and aliases (*name) repeat more than 16 MiB; write fewer of them",
            );
        }
        Ok(node.clone())
    }

    /// Adds a node, and keeps a copy if it has an anchor (numbers count from 1).
    fn add_anchored(&mut self, node: YamlNode, anchor: usize) -> Result<(), &'static str> {
        if let Some(anchors) = self.anchors.as_mut().filter(|_| anchor > 0) {
            anchors.insert(anchor, Self::copied(&mut self.copied_bytes, &node)?);
        }
        self.add(node)
    }

    fn push(&mut self, open: Open) -> Result<(), &'static str> {
        check_depth(self.open.len().saturating_add(1))?;
        self.open.push(open);
        Ok(())
    }

    fn add(&mut self, node: YamlNode) -> Result<(), &'static str> {
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.documents.push(node),
            Some(OpenContent::List(items)) => items.push(node),
            Some(OpenContent::Mapping { entries, key }) => match (key.take(), node) {
                (Some(key), value) => entries.push(YamlEntry {
                    key: key.text,
                    is_key_quoted: key.is_quoted,
                    place: key.place,
                    value,
                }),
                (None, node) => match node.content {
                    YamlContent::Scalar { text, quoted } => {
                        *key = Some(Key {
                            text,
                            is_quoted: quoted
                                || node.tag.as_deref() == Some("tag:yaml.org,2002:str"),
                            place: node.place,
                        });
                    }
                    _ => return Err("a key must be a name"),
                },
            },
        }
        Ok(())
    }
}

/// The entries with those of merged mappings in front. A key of the mapping itself wins,
/// then that of the mapping that is merged first.
fn merged(entries: Vec<YamlEntry>) -> Result<Vec<YamlEntry>, &'static str> {
    let is_merge = |entry: &YamlEntry| entry.key == "<<" && !entry.is_key_quoted;
    let (merges, own): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_merge);
    if merges.is_empty() {
        return Ok(own);
    }
    let mut keys: BTreeSet<String> = own.iter().map(|entry| entry.key.clone()).collect();
    let mut all = Vec::new();
    for merge in merges {
        let mappings = match merge.value {
            YamlNode {
                content: YamlContent::List(items),
                ..
            } => items,
            mapping => Vec::from([mapping]),
        };
        for mapping in mappings {
            let YamlContent::Mapping(entries) = mapping.content else {
                return Err("'<<' merges mappings only");
            };
            all.extend(
                entries
                    .into_iter()
                    .filter(|entry| keys.insert(entry.key.clone())),
            );
        }
    }
    all.extend(own);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases(text: &str) -> Result<YamlNode, String> {
        YamlNode::read_with_aliases(text).map_err(|error| error.message)
    }

    /// What PyYAML reads, and so what `ros2 topic pub` and parameter files mean.
    #[test]
    fn a_hyphen_before_a_flow_indicator_is_text() {
        let scalar = |text: &str, expected: &str| {
            let node = YamlNode::read(text).unwrap();
            let found = match node.content {
                YamlContent::List(items) => items[0].content.clone(),
                YamlContent::Mapping(entries) => entries[0].value.content.clone(),
                scalar => scalar,
            };
            let YamlContent::Scalar { text: found, .. } = found else {
                panic!("{text}: {found:?}");
            };
            assert_eq!(found, expected, "{text}");
        };
        for (text, expected) in [
            ("{k: a -}", "a -"),
            ("[a -, b]", "a -"),
            ("[a - b -, c]", "a - b -"),
            ("[-]", "-"),
            ("[-, a]", "-"),
            ("{\"x\":-}", "-"),
            ("[a\n -]", "a -"),
            ("[\"a -]\", b]", "a -]"),
            ("['a -,']", "a -,"),
            ("[é -, \u{e000}]", "é -"),
            ("- -]", "-]"),
            ("x: a -]", "a -]"),
            ("x: |\n  a -]\n", "a -]\n"),
            ("x: a-b # -]", "a-b"),
        ] {
            scalar(text, expected);
        }
        let YamlContent::Mapping(entries) =
            YamlNode::read("{b: {a -: 1}, c -: -}").unwrap().content
        else {
            panic!("a mapping");
        };
        assert_eq!(entries[1].key, "c -");
        let place = YamlNode::read("[a -, b, [c -], *d]").unwrap_err().place;
        assert_eq!((place.line, place.column), (1, 17));
        for text in ["[- -]", "{k: - , b: 1}", "[a -", "{a: -"] {
            assert!(YamlNode::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_alias_is_a_copy_and_a_merged_key_yields_to_the_mappings_own() {
        let text = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\nsame: *b\n";
        let written = "base: {x: 1, y: 2}\nown: {y: 3, x: 1}\nsame: {x: 1, y: 2}\n";
        let shown = |node: &YamlNode| {
            let YamlContent::Mapping(entries) = &node.content else {
                panic!("a mapping");
            };
            let value = |entry: &YamlEntry| match &entry.value.content {
                YamlContent::Mapping(inner) => {
                    let mut keys: Vec<_> = inner
                        .iter()
                        .map(|entry| match &entry.value.content {
                            YamlContent::Scalar { text, .. } => (entry.key.clone(), text.clone()),
                            _ => panic!("a scalar"),
                        })
                        .collect();
                    keys.sort();
                    keys
                }
                _ => panic!("a mapping"),
            };
            entries.iter().map(value).collect::<Vec<_>>()
        };
        let read = aliases(text).unwrap();
        assert_eq!(shown(&read), shown(&aliases(written).unwrap()));
        assert!(YamlNode::read(text).is_err(), "messages refuse aliases");
    }

    #[test]
    fn aliases_are_bounded_in_depth_and_in_memory() {
        let levels = 100;
        let nested = format!("{}0{}", "[".repeat(levels), "]".repeat(levels));
        let once = format!("a: &a {nested}\nb: *a\n");
        assert!(aliases(&once).is_ok());
        let deeper = format!(
            "a: &a {nested}\nb: {}*a{}\n",
            "[".repeat(levels),
            "]".repeat(levels)
        );
        assert_eq!(
            aliases(&deeper).unwrap_err(),
            "nested deeper than any message"
        );
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let copy = format!("*a{}, ", level - 1);
            let copies = copy.repeat(10);
            bomb += &format!("a{level}: &a{level} [{copies}]\n");
        }
        let reason = aliases(&bomb).unwrap_err();
        assert!(reason.contains("16 MiB"), "{reason}");
        let itself = aliases("a: &a [*a]\n").unwrap_err();
        assert!(itself.contains("lies in the value"), "{itself}");
    }
}
