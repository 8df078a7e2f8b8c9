//! Messages from YAML: the input of `ros2 topic pub`, JSON included.
//!
//! The field's type decides, not YAML's: `1` is a valid float, `5` a valid string.
//! Missing or null fields keep their defaults. Numbers out of range, unknown fields
//! and wrong lengths are errors that name the field, the value and what was
//! expected; nothing is wrapped or rounded to fit.

use super::error::{ValueError, ValueProblem, join};
use super::length::check_length;
use super::literal::{read_bool, read_f32, read_f64, read_integer};
use super::message::DynamicMessage;
use super::path::{field_at, unknown_field};
use super::types::{DynamicType, Element, MessageField, Shape};
use super::value::{Value, expected_text};
use crate::message::WString;
use crate::yaml::{YamlContent, YamlError, YamlNode};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl DynamicMessage {
    /// Reads a message from block or flow YAML, or JSON.
    pub fn from_yaml(ty: &DynamicType, text: &str) -> Result<Self, ValueError> {
        let mut reader = Reader { stamps: None };
        let mut message = Self::new(ty);
        reader.message(&mut message, &read(text)?, "")?;
        Ok(message)
    }

    /// As [`Self::from_yaml`], also taking `auto` for a `std_msgs/msg/Header`
    /// and `now` for a `builtin_interfaces/msg/Time`.
    ///
    /// Returns the paths of these stamps, for [`Self::set_stamp`] before each
    /// publication; so `ros2 topic pub` understands them.
    pub fn from_yaml_with_stamps(
        ty: &DynamicType,
        text: &str,
    ) -> Result<(Self, Vec<String>), ValueError> {
        let mut reader = Reader {
            stamps: Some(Vec::new()),
        };
        let mut message = Self::new(ty);
        reader.message(&mut message, &read(text)?, "")?;
        Ok((message, reader.stamps.unwrap_or_default()))
    }

    /// Replaces the value at a path by YAML text, parsed as its type.
    pub fn set_yaml(&mut self, path: &str, text: &str) -> Result<(), ValueError> {
        let field = field_at(self.ty(), path)?;
        let mut reader = Reader { stamps: None };
        let value = reader.value(&field, &read(text)?, path)?;
        self.set(path, value)
    }
}

impl DynamicMessage {
    /// Sets the `sec` and `nanosec` of the time at a path.
    pub fn set_stamp(&mut self, path: &str, sec: i32, nanosec: u32) -> Result<(), ValueError> {
        self.set(&join(path, "sec"), sec)?;
        self.set(&join(path, "nanosec"), nanosec)
    }
}

struct Reader {
    /// Paths of times to be filled later; `None` if that is not supported.
    stamps: Option<Vec<String>>,
}

impl Reader {
    fn message(
        &mut self,
        message: &mut DynamicMessage,
        node: &YamlNode,
        path: &str,
    ) -> Result<(), ValueError> {
        let ty = message.ty().clone();
        let entries = match &node.content {
            YamlContent::Mapping(entries) => entries,
            _ if node.is_null() || self.is_stamp(&ty, node, path) => return Ok(()),
            _ => {
                return Err(wrong_type(
                    format!("a mapping {{NAME: VALUE}} of the fields of {}", ty.name()),
                    node,
                    path,
                ));
            }
        };
        for (at, entry) in entries.iter().enumerate() {
            let (name, node) = (&entry.key, &entry.value);
            let Some((index, field)) = ty.field(name) else {
                return Err(unknown_field(&ty, path, name));
            };
            let path = join(path, name);
            if entries.iter().take(at).any(|earlier| earlier.key == *name) {
                return Err(ValueError {
                    path,
                    problem: ValueProblem::Duplicate,
                });
            }
            if node.is_null() {
                continue;
            }
            let value = self.value(field, node, &path)?;
            if let Some(target) = message.value_mut(index) {
                *target = value;
            }
        }
        Ok(())
    }

    /// Whether the node is a placeholder for a time; records its path.
    fn is_stamp(&mut self, ty: &DynamicType, node: &YamlNode, path: &str) -> bool {
        let (Some(stamps), YamlContent::Scalar { text, .. }) = (&mut self.stamps, &node.content)
        else {
            return false;
        };
        match (ty.name(), text.as_str()) {
            ("std_msgs/msg/Header", "auto") => stamps.push(join(path, "stamp")),
            ("builtin_interfaces/msg/Time", "now") => stamps.push(path.into()),
            _ => return false,
        }
        true
    }

    fn value(
        &mut self,
        field: &MessageField,
        node: &YamlNode,
        path: &str,
    ) -> Result<Value, ValueError> {
        let element = &field.element;
        if field.shape == Shape::Single {
            return self.one(element, node, path);
        }
        let items = match &node.content {
            YamlContent::List(items) => items,
            _ if node.is_null() => return Ok(field.default_value()),
            _ => return Err(wrong_type(expected_text(element, field.shape), node, path)),
        };
        check_length(field.shape, items.len(), path)?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            values.push(self.one(element, item, &format!("{path}[{index}]"))?);
        }
        Value::gather(element, values)
            .ok_or_else(|| wrong_type(expected_text(element, field.shape), node, path))
    }

    fn one(&mut self, element: &Element, node: &YamlNode, path: &str) -> Result<Value, ValueError> {
        if let Element::Message(ty) = element {
            let mut message = DynamicMessage::new(ty);
            self.message(&mut message, node, path)?;
            return Ok(Value::Message(message));
        }
        let value = match &node.content {
            YamlContent::Scalar { text, quoted } => read_scalar(element, text, *quoted),
            _ => None,
        };
        let value =
            value.ok_or_else(|| wrong_type(expected_text(element, Shape::Single), node, path))?;
        value.check_strings(element, path)?;
        Ok(value)
    }
}

fn read(text: &str) -> Result<YamlNode, ValueError> {
    YamlNode::read(text).map_err(|YamlError { place, message }| ValueError {
        path: String::new(),
        problem: ValueProblem::Syntax {
            line: place.line as usize,
            column: place.column as usize,
            message,
        },
    })
}

/// A scalar as its field's type; `None` when it is none.
fn read_scalar(element: &Element, text: &str, quoted: bool) -> Option<Value> {
    Some(match element {
        Element::String { .. } => Value::String(text.into()),
        Element::WString { .. } => Value::WString(WString::from(text)),
        Element::Bool => Value::Bool(read_bool(text)?),
        Element::F32 => Value::F32(read_f32(text)?),
        Element::F64 => Value::F64(read_f64(text)?),
        Element::Byte => Value::U8(read_byte(text, quoted)?),
        Element::Message(_) => return None,
        _ => {
            // Python's int(1.0) is 1: a float without fraction is an integer.
            let whole = text.strip_suffix(".0").unwrap_or(text);
            Value::integer(element, read_integer(whole)?)?
        }
    })
}

/// A `byte`: a number, or one character up to U+00FF as `to_yaml` prints it.
fn read_byte(text: &str, quoted: bool) -> Option<u8> {
    let mut chars = text.chars();
    let character = match (chars.next(), chars.next()) {
        (Some(c), None) => u8::try_from(u32::from(c)).ok(),
        _ => None,
    };
    let number = read_integer(text).and_then(|number| u8::try_from(number).ok());
    if quoted {
        character.or(number)
    } else {
        number.or(character)
    }
}

fn wrong_type(expected: String, node: &YamlNode, path: &str) -> ValueError {
    ValueError {
        path: path.into(),
        problem: ValueProblem::WrongType {
            expected,
            found: node.found_text(),
        },
    }
}
