//! XML launch files, parsed by roxmltree. It reports the location of every
//! attribute and refuses document types, so entities cannot expand.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use roxmltree::{Node, NodeType, ParsingOptions};

use super::{
    ATTRIBUTES_MAX, Attribute, DEPTH_MAX, Element, Scalar, Value, too_deep, too_many_attributes,
};
use crate::error::{LaunchFileError, LaunchFileErrors, SourceLocation};

/// Largest number of XML nodes in a file.
const NODES_MAX: u32 = 200_000;

/// Parses the tree.
pub fn read(file: &Arc<Path>, text: &str) -> Result<Element, LaunchFileErrors> {
    let reader = Reader {
        file,
        text,
        line_starts: line_starts(text),
        last_column: Cell::default(),
    };
    reader.refuse_depth()?;
    reader.refuse_attributes()?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        let location = SourceLocation {
            file: file.clone(),
            line: at.row,
            column: at.col,
        };
        // The error ends with its location, which the caller adds.
        let message = error.to_string();
        let message = message
            .rsplit_once(" at ")
            .map_or(message.as_str(), |(text, _)| text);
        LaunchFileError::at(&location, format!("not valid XML: {message}"))
    })?;
    let mut errors = LaunchFileErrors::default();
    let root = reader.element(document.root_element(), 0, &mut errors);
    if errors.is_empty() {
        Ok(root)
    } else {
        Err(errors)
    }
}

struct Reader<'t> {
    file: &'t Arc<Path>,
    text: &'t str,
    line_starts: Vec<usize>,
    /// The last location's byte and its column, from 0, where the next one begins to
    /// count: a file may be one line.
    last_column: Cell<(usize, usize)>,
}

fn line_starts(text: &str) -> Vec<usize> {
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0)
        .chain(breaks.map(|(at, _)| at + 1))
        .collect()
}

impl Reader<'_> {
    /// Limits the nesting depth before parsing, since the parser is recursive. Tags
    /// within comments count too, so a few valid files are refused.
    fn refuse_depth(&self) -> Result<(), LaunchFileError> {
        let mut depth = 0usize;
        let bytes = self.text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let next = bytes.get(at + 1);
            match (byte, next) {
                (b'<', Some(b'/')) | (b'/', Some(b'>')) => depth = depth.saturating_sub(1),
                (b'<', Some(b'!' | b'?')) => {}
                (b'<', _) => depth += 1,
                _ => {}
            }
            if depth > DEPTH_MAX * 4 {
                return Err(too_deep(&self.location(at)));
            }
        }
        Ok(())
    }

    /// Limits the attributes of an element before parsing, since the parser compares
    /// each with all others.
    fn refuse_attributes(&self) -> Result<(), LaunchFileError> {
        let (mut at, bytes) = (0, self.text.as_bytes());
        // Where the text goes on after `end`, or its end.
        let after = |from: usize, end: &str| {
            let found = self.text.get(from..).and_then(|rest| rest.find(end));
            found.map_or(bytes.len(), |found| from + found + end.len())
        };
        while let Some(tag) = self.text.get(at..).and_then(|rest| rest.find('<')) {
            let tag = at + tag;
            let rest = self.text.get(tag..).unwrap_or("");
            let ends = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
            if let Some((_, end)) = ends.iter().find(|(begin, _)| rest.starts_with(begin)) {
                at = after(tag, end);
                continue;
            }
            let (mut quote, mut attributes) = (None, 0);
            at = bytes.len();
            for (offset, byte) in rest.bytes().enumerate() {
                match (quote, byte) {
                    (Some(open), _) if open == byte => quote = None,
                    (Some(_), _) => {}
                    (None, b'"' | b'\'') => quote = Some(byte),
                    (None, b'=') => attributes += 1,
                    (None, b'>') => {
                        at = tag + offset + 1;
                        break;
                    }
                    (None, _) => {}
                }
                if attributes > ATTRIBUTES_MAX {
                    return Err(too_many_attributes(&self.location(tag)));
                }
            }
        }
        Ok(())
    }

    fn location(&self, byte: usize) -> SourceLocation {
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = self.line_starts.get(line.saturating_sub(1)).copied();
        let start = start.unwrap_or(0);
        let (last, column) = self.last_column.get();
        let (from, column) = match (start..=byte).contains(&last) {
            true => (last, column),
            false => (start, 0),
        };
        let between = self.text.get(from..byte).unwrap_or("");
        let column = column + between.chars().count();
        self.last_column.set((byte, column));
        SourceLocation {
            file: self.file.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column + 1).unwrap_or(u32::MAX),
        }
    }

    fn element(&self, node: Node<'_, '_>, depth: usize, errors: &mut LaunchFileErrors) -> Element {
        let location = self.location(node.range().start);
        let mut element = Element {
            name: node.tag_name().name().into(),
            location: location.clone(),
            attributes: self.attributes(node),
            children: Vec::new(),
        };
        if depth > DEPTH_MAX {
            errors.push(too_deep(&location));
            return element;
        }
        for child in node.children() {
            match child.node_type() {
                NodeType::Element => {
                    let child = self.element(child, depth + 1, errors);
                    element.children.push(child);
                }
                NodeType::Text => self.refuse_text(child, errors),
                _ => {}
            }
        }
        element
    }

    /// Reports text between elements, which has no meaning in a launch file.
    fn refuse_text(&self, node: Node<'_, '_>, errors: &mut LaunchFileErrors) {
        let text = node.text().unwrap_or("");
        let Some(blank) = text.find(|letter: char| !letter.is_whitespace()) else {
            return;
        };
        let found: String = text.trim().chars().take(40).collect();
        errors.push(LaunchFileError::at(
            &self.location(node.range().start + blank),
            format!("the text {found:?} is outside of any attribute; write it as name=\"value\", or as a comment <!-- … -->"),
        ));
    }

    fn attributes(&self, node: Node<'_, '_>) -> Vec<Attribute> {
        let separator = |name: &str| node.attribute(format!("{name}-sep").as_str());
        let is_separator = |name: &str| {
            let of = name.strip_suffix("-sep");
            of.is_some_and(|name| node.has_attribute(name))
        };
        let scalar = |text: &str| Scalar {
            text: text.into(),
            quoted: false,
        };
        let attributes = node.attributes();
        let attributes = attributes.filter(|one| !is_separator(one.name()));
        attributes
            .map(|one| Attribute {
                name: one.name().into(),
                value: match separator(one.name()) {
                    Some(separator) if !separator.is_empty() => {
                        Value::List(one.value().split(separator).map(scalar).collect())
                    }
                    _ => Value::Scalar(scalar(one.value())),
                },
                location: self.location(one.range_value().start),
            })
            .collect()
    }
}
