//! YAML text as a small tree, with limits: what `from_yaml` works on.
//!
//! Only what messages need: one document of mappings, lists and scalars.
//! Anchors and aliases are refused rather than expanded, so a short text cannot
//! become a large tree.

use super::error::{ValueError, ValueProblem};
use crate::cdr::DEPTH_MAX;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// One YAML value.
pub(super) enum Node {
    Scalar { text: String, quoted: bool },
    List(Vec<Node>),
    Mapping(Vec<(String, Node)>),
}

impl Node {
    /// An unquoted nothing: `~`, `null` or empty.
    pub(super) fn is_null(&self) -> bool {
        match self {
            Self::Scalar { text, quoted } => {
                !quoted && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// For error messages.
    pub(super) fn found_text(&self) -> String {
        match self {
            Self::Scalar { text, quoted: true } => alloc::format!("the string {text:?}"),
            Self::Scalar { text, .. } if text.is_empty() => "nothing".into(),
            Self::Scalar { text, .. } => text.clone(),
            Self::List(items) => alloc::format!("a list of {}", items.len()),
            Self::Mapping(_) => "a mapping".into(),
        }
    }
}

/// Reads the only document of `text`; an empty text is an empty scalar.
pub(super) fn read_tree(text: &str) -> Result<Node, ValueError> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            syntax(mark.line(), mark.col().saturating_add(1), error.info())
        })?;
        builder.handle(event, &span)?;
    }
    Ok(builder.root.unwrap_or(Node::Scalar {
        text: String::new(),
        quoted: false,
    }))
}

fn syntax(line: usize, column: usize, message: &str) -> ValueError {
    ValueError {
        path: String::new(),
        problem: ValueProblem::Syntax {
            line,
            column,
            message: message.to_string(),
        },
    }
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
}

enum Open {
    List(Vec<Node>),
    Mapping {
        entries: Vec<(String, Node)>,
        key: Option<String>,
    },
}

impl Builder {
    fn handle(&mut self, event: Event<'_>, span: &Span) -> Result<(), ValueError> {
        let fail = |message| {
            syntax(
                span.start.line(),
                span.start.col().saturating_add(1),
                message,
            )
        };
        match event {
            Event::Scalar(text, style, ..) => {
                let node = Node::Scalar {
                    text: text.into_owned(),
                    quoted: style != ScalarStyle::Plain,
                };
                self.add(node).map_err(fail)
            }
            Event::SequenceStart(..) => self.push(Open::List(Vec::new())).map_err(fail),
            Event::MappingStart(..) => {
                let mapping = Open::Mapping {
                    entries: Vec::new(),
                    key: None,
                };
                self.push(mapping).map_err(fail)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let node = match self.open.pop() {
                    Some(Open::List(items)) => Node::List(items),
                    Some(Open::Mapping { entries, .. }) => Node::Mapping(entries),
                    None => return Err(fail("an end without a start")),
                };
                self.add(node).map_err(fail)
            }
            Event::Alias(_) => Err(fail("aliases (*name) are not supported; repeat the value")),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(fail("a second document; give one message only"))
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, open: Open) -> Result<(), &'static str> {
        if self.open.len() >= usize::from(DEPTH_MAX) * 2 {
            return Err("nested deeper than any message");
        }
        self.open.push(open);
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), &'static str> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(items)) => items.push(node),
            Some(Open::Mapping { entries, key }) => match (key.take(), node) {
                (Some(key), node) => entries.push((key, node)),
                (None, Node::Scalar { text, .. }) => *key = Some(text),
                (None, _) => return Err("a key must be a field name"),
            },
        }
        Ok(())
    }
}
