//! YAML launch files, parsed by the reader of messages and parameters. It reports
//! locations and has limits.

use std::path::Path;
use std::sync::Arc;

use pteros::msg::yaml::{self, YamlContent, YamlEntry, YamlNode};
use pteros::parameter::tagged_scalar;

use super::{
    ATTRIBUTES_MAX, Attribute, DEPTH_MAX, Element, Scalar, Value, too_deep, too_many_attributes,
};
use crate::error::{LaunchFileError, LaunchFileErrors, SourceLocation};

/// Namespace of YAML's own tags.
const CORE: &str = "tag:yaml.org,2002:";

/// Parses the tree.
pub fn read(file: &Arc<Path>, text: &str) -> Result<Element, LaunchFileErrors> {
    let mut reader = Reader {
        file,
        errors: LaunchFileErrors::default(),
    };
    let root = YamlNode::read_with_aliases(text).map_err(|error| {
        let place = reader.location(error.place);
        LaunchFileError::at(&place, format!("not valid YAML: {}", error.message))
    })?;
    let root = match &root.content {
        YamlContent::Mapping(entries) if entries.len() == 1 => {
            let entry = &entries[0];
            reader.element(&entry.key, entry.place, &entry.value, 0)
        }
        _ => {
            let found = format!(
                "found {}; a launch file is one mapping: launch: [ … ]",
                root.found_text()
            );
            return Err(LaunchFileError::at(&reader.location(root.place), found).into());
        }
    };
    if reader.errors.is_empty() {
        Ok(root)
    } else {
        Err(reader.errors)
    }
}

struct Reader<'f> {
    file: &'f Arc<Path>,
    errors: LaunchFileErrors,
}

impl Reader<'_> {
    fn location(&self, place: yaml::YamlPosition) -> SourceLocation {
        SourceLocation {
            file: self.file.clone(),
            line: place.line,
            column: place.column,
        }
    }

    fn element(
        &mut self,
        name: &str,
        at: yaml::YamlPosition,
        value: &YamlNode,
        depth: usize,
    ) -> Element {
        let mut element = Element {
            name: name.into(),
            location: self.location(at),
            attributes: Vec::new(),
            children: Vec::new(),
        };
        if depth > DEPTH_MAX {
            self.errors.push(too_deep(&element.location));
            return element;
        }
        match &value.content {
            YamlContent::Mapping(entries) if entries.len() > ATTRIBUTES_MAX => {
                self.errors.push(too_many_attributes(&element.location));
            }
            YamlContent::Mapping(entries) => {
                for entry in entries {
                    self.entry(entry, &mut element, depth);
                }
            }
            YamlContent::List(items) => self.actions(items, &mut element, depth),
            YamlContent::Scalar { .. } if value.is_null() => {}
            YamlContent::Scalar { .. } => self.errors.push(LaunchFileError::at(
                &self.location(value.place),
                format!(
                    "{name} has {}; write a mapping of its attributes, or a list of actions",
                    value.found_text()
                ),
            )),
        }
        element
    }

    fn entry(&mut self, entry: &YamlEntry, element: &mut Element, depth: usize) {
        let YamlEntry {
            key, place, value, ..
        } = entry;
        let is_twice = element.attribute(key).is_some();
        match &value.content {
            _ if is_twice => self.errors.push(LaunchFileError::at(
                &self.location(*place),
                format!("{key:?} is given twice; keep one"),
            )),
            YamlContent::Scalar { .. } => {
                let attribute = self.scalar(value).map(|scalar| Attribute {
                    name: key.clone(),
                    value: Value::Scalar(scalar),
                    location: self.location(value.place),
                });
                element.attributes.extend(attribute);
            }
            YamlContent::List(items) if key == "children" => self.actions(items, element, depth),
            YamlContent::List(items) if key == "on_exit" => {
                let mut part = Element {
                    name: key.clone(),
                    location: self.location(*place),
                    attributes: Vec::new(),
                    children: Vec::new(),
                };
                self.actions(items, &mut part, depth + 1);
                element.children.push(part);
            }
            YamlContent::List(items) if items.iter().all(is_mapping) && !items.is_empty() => {
                for item in items {
                    let child = self.element(key, item.place, item, depth + 1);
                    element.children.push(child);
                }
            }
            YamlContent::List(items) => {
                let has_scalars_only = items.iter().all(is_scalar);
                let list = items.iter().filter_map(|item| self.scalar(item));
                let list: Vec<Scalar> = list.collect();
                if list.len() == items.len() {
                    element.attributes.push(Attribute {
                        name: key.clone(),
                        value: Value::List(list),
                        location: self.location(value.place),
                    });
                } else if !has_scalars_only {
                    self.errors.push(LaunchFileError::at(
                        &self.location(value.place),
                        format!("{key} has a list of mixed types; write a list of scalars, or of mappings: - {{name: …}}"),
                    ));
                }
            }
            YamlContent::Mapping(_) => self.errors.push(LaunchFileError::at(
                &self.location(value.place),
                format!("{key} has a mapping; write a list of mappings: - {{…}}"),
            )),
        }
    }

    /// A scalar; its tag decides its type, as in PyYAML.
    fn scalar(&mut self, item: &YamlNode) -> Option<Scalar> {
        let YamlContent::Scalar { text, quoted } = &item.content else {
            return None;
        };
        let tag = item.tag.as_deref().and_then(|tag| tag.strip_prefix(CORE));
        let (text, quoted) = match tag {
            Some("str") => (text.clone(), true),
            Some(tag @ ("bool" | "int" | "float")) => match tagged_scalar(text, tag) {
                Some(value) => (value.to_yaml(), false),
                None => {
                    self.errors.push(LaunchFileError::at(
                        &self.location(item.place),
                        format!("{text:?} is no !!{tag}; write such a value, or leave the tag out"),
                    ));
                    return None;
                }
            },
            _ => (text.clone(), *quoted),
        };
        Some(Scalar { text, quoted })
    }

    /// A list of actions: mappings of one key each, which is the action's name.
    fn actions(&mut self, items: &[YamlNode], element: &mut Element, depth: usize) {
        for item in items {
            match &item.content {
                YamlContent::Mapping(entries) if entries.len() == 1 => {
                    let YamlEntry {
 key, place, value, .. } = &entries[0];
                    let child = self.element(key, *place, value, depth + 1);
                    element.children.push(child);
                }
                YamlContent::Scalar { text, quoted: false } if is_word(text) => {
                    element.children.push(Element {
                        name: text.clone(),
                        location: self.location(item.place),
                        attributes: Vec::new(),
                        children: Vec::new(),
                    });
                }
                _ => self.errors.push(LaunchFileError::at(
                    &self.location(item.place),
                    format!(
                        "found {} where an action is expected; an action is a mapping of one key, its name, to its attributes (indented below it): - node: {{pkg: …}}",
                        item.found_text()
                    ),
                )),
            }
        }
    }
}

fn is_scalar(node: &YamlNode) -> bool {
    matches!(node.content, YamlContent::Scalar { .. })
}

fn is_mapping(node: &YamlNode) -> bool {
    matches!(node.content, YamlContent::Mapping(_))
}

/// An action without attributes is a single word, as `- reset_env`.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
