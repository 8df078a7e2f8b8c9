//! YAML, by the reader of messages and parameters, which knows places and has
//! limits.

use std::path::Path;
use std::sync::Arc;

use pteros::msg::yaml::{self, Content, Entry, Node};

use super::{Attribute, DEPTH_MAX, Element, Scalar, Value, too_deep};
use crate::fault::{Fault, Faults, Place};

/// Reads the tree.
pub fn read(file: &Arc<Path>, text: &str) -> Result<Element, Faults> {
    let mut reader = Reader {
        file,
        faults: Faults::default(),
    };
    let root = Node::read(text).map_err(|error| {
        let place = reader.place(error.place);
        Fault::at(&place, format!("this is no YAML: {}", error.message))
    })?;
    let root = match &root.content {
        Content::Mapping(entries) if entries.len() == 1 => {
            let entry = &entries[0];
            reader.element(&entry.key, entry.place, &entry.value, 0)
        }
        _ => {
            let found = format!(
                "found {}; a launch file is one mapping: launch: [ … ]",
                root.found_text()
            );
            return Err(Fault::at(&reader.place(root.place), found).into());
        }
    };
    match reader.faults.is_empty() {
        true => Ok(root),
        false => Err(reader.faults),
    }
}

struct Reader<'f> {
    file: &'f Arc<Path>,
    faults: Faults,
}

impl Reader<'_> {
    fn place(&self, place: yaml::Place) -> Place {
        Place {
            file: self.file.clone(),
            line: place.line,
            column: place.column,
        }
    }

    fn element(&mut self, name: &str, at: yaml::Place, value: &Node, depth: usize) -> Element {
        let mut element = Element {
            name: name.into(),
            place: self.place(at),
            attributes: Vec::new(),
            children: Vec::new(),
        };
        if depth > DEPTH_MAX {
            self.faults.push(too_deep(&element.place));
            return element;
        }
        match &value.content {
            Content::Mapping(entries) => {
                for entry in entries {
                    self.entry(entry, &mut element, depth);
                }
            }
            Content::List(items) => self.actions(items, &mut element, depth),
            Content::Scalar { .. } if value.is_null() => {}
            Content::Scalar { .. } => self.faults.push(Fault::at(
                &self.place(value.place),
                format!(
                    "{name} has {}; write a mapping of its attributes, or a list of actions",
                    value.found_text()
                ),
            )),
        }
        element
    }

    fn entry(&mut self, entry: &Entry, element: &mut Element, depth: usize) {
        let Entry { key, place, value } = entry;
        let is_twice = element.attribute(key).is_some();
        match &value.content {
            _ if is_twice => self.faults.push(Fault::at(
                &self.place(*place),
                format!("{key:?} is there twice; keep one"),
            )),
            Content::Scalar { text, quoted } => element.attributes.push(Attribute {
                name: key.clone(),
                value: Value::Scalar(Scalar {
                    text: text.clone(),
                    quoted: *quoted,
                }),
                place: self.place(value.place),
            }),
            Content::List(items) if key == "children" => self.actions(items, element, depth),
            Content::List(items) if key == "on_exit" => {
                let mut part = Element {
                    name: key.clone(),
                    place: self.place(*place),
                    attributes: Vec::new(),
                    children: Vec::new(),
                };
                self.actions(items, &mut part, depth + 1);
                element.children.push(part);
            }
            Content::List(items) if items.iter().all(is_mapping) && !items.is_empty() => {
                for item in items {
                    let child = self.element(key, item.place, item, depth + 1);
                    element.children.push(child);
                }
            }
            Content::List(items) => {
                let list = items.iter().filter_map(Self::scalar);
                let list: Vec<Scalar> = list.collect();
                if list.len() == items.len() {
                    element.attributes.push(Attribute {
                        name: key.clone(),
                        value: Value::List(list),
                        place: self.place(value.place),
                    });
                } else {
                    self.faults.push(Fault::at(
                        &self.place(value.place),
                        format!("{key} has a list of different things; write a list of scalars, or of mappings: - {{name: …}}"),
                    ));
                }
            }
            Content::Mapping(_) => self.faults.push(Fault::at(
                &self.place(value.place),
                format!("{key} has a mapping; write a list of mappings: - {{…}}"),
            )),
        }
    }

    fn scalar(item: &Node) -> Option<Scalar> {
        match &item.content {
            Content::Scalar { text, quoted } => Some(Scalar {
                text: text.clone(),
                quoted: *quoted,
            }),
            _ => None,
        }
    }

    /// A list of actions: mappings of one key each, the action's name.
    fn actions(&mut self, items: &[Node], element: &mut Element, depth: usize) {
        for item in items {
            match &item.content {
                Content::Mapping(entries) if entries.len() == 1 => {
                    let Entry { key, place, value } = &entries[0];
                    let child = self.element(key, *place, value, depth + 1);
                    element.children.push(child);
                }
                Content::Scalar { text, quoted: false } if is_word(text) => {
                    element.children.push(Element {
                        name: text.clone(),
                        place: self.place(item.place),
                        attributes: Vec::new(),
                        children: Vec::new(),
                    });
                }
                _ => self.faults.push(Fault::at(
                    &self.place(item.place),
                    format!(
                        "found {} where an action should be; an action is a mapping of one key, its name, to its attributes (indented below it): - node: {{pkg: …}}",
                        item.found_text()
                    ),
                )),
            }
        }
    }
}

fn is_mapping(node: &Node) -> bool {
    matches!(node.content, Content::Mapping(_))
}

/// `- reset_env` is an action that says nothing more.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
