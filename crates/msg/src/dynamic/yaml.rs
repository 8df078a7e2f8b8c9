//! YAML as `ros2 topic echo` prints it.
//!
//! Two spaces per level, lists at the level of their field, strings quoted
//! when YAML needs it. `byte` values are characters there, and a `float32` has the
//! digits of a double (0.10000000149011612 for 0.1), as in rclpy.

use super::error::ValueError;
use super::message::DynamicMessage;
use super::number::{python_float, yaml_float};
use super::path;
use super::types::{Element, MessageField, Shape};
use super::value::Value;
use super::yaml_scalar::write_string;
use crate::cdr::UNBOUNDED;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Write;

/// Selection and format of printed fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YamlOptions {
    /// Lists on one line: `[1, 2, 3]`, `[{x: 1}, {x: 2}]`. Fields keep theirs,
    /// as in `ros2 topic echo --flow-style`.
    pub flow_style: bool,
    /// Only type and length of arrays and sequences.
    pub no_arr: bool,
    /// Only the length of strings.
    pub no_str: bool,
    /// Longer lists and strings end in `...`; `None` prints all.
    pub truncate_length: Option<usize>,
}

impl DynamicMessage {
    /// The message as YAML, with a final line break.
    pub fn to_yaml(&self, options: &YamlOptions) -> String {
        let mut writer = Writer::new(options);
        if self.fields().len() == 0 {
            writer.out.push_str("{}\n");
        } else {
            writer.block_message(self, 0, false);
        }
        writer.out
    }

    /// The value at a path: messages and lists as YAML, numbers and strings
    /// bare; what `ros2 topic echo --field` prints. With a final line break.
    pub fn to_yaml_at(&self, path: &str, options: &YamlOptions) -> Result<String, ValueError> {
        let value = self.get(path)?;
        let field = path::field_at(self.ty(), path)?;
        let mut writer = Writer::new(options);
        match &*value {
            Value::Message(message) => return Ok(message.to_yaml(options)),
            Value::String(text) => {
                writer.out = limited_string(text, options).unwrap_or_else(|| text.clone());
            }
            Value::WString(text) => {
                let text = text.to_string();
                writer.out = limited_string(&text, options).unwrap_or(text);
            }
            Value::F32(number) => writer.out = python_float(*number),
            Value::F64(number) => writer.out = python_float(*number),
            list if writer.shows_as_block_list(list) => {
                writer.block_list(&field.element, list, 0);
                return Ok(writer.out);
            }
            other => writer.inline(&field, other, 0, false),
        }
        writer.out.push('\n');
        Ok(writer.out)
    }
}

/// `<sequence type: uint8, length: 10>`: a list's summary without its content.
pub(super) fn list_summary(field: &MessageField, len: usize) -> String {
    let name = match &field.element {
        Element::Bool => "boolean".to_string(),
        Element::Byte => "octet".to_string(),
        Element::F32 => "float".to_string(),
        Element::F64 => "double".to_string(),
        Element::String { .. } => "string".to_string(),
        Element::WString { .. } => "wstring".to_string(),
        element => element.type_text(),
    };
    match field.shape {
        Shape::Array(count) => format!("<array type: {name}[{count}]>"),
        Shape::Sequence { bound } if bound != UNBOUNDED => {
            format!("<sequence type: {name}[{bound}], length: {len}>")
        }
        _ => format!("<sequence type: {name}, length: {len}>"),
    }
}

/// A string as the options shorten it; `None` when they leave it alone.
pub(super) fn limited_string(text: &str, options: &YamlOptions) -> Option<String> {
    if options.no_str {
        return Some(format!("<string length: <{}>>", text.chars().count()));
    }
    let (cut, _) = text.char_indices().nth(options.truncate_length?)?;
    Some(format!("{}...", text.get(..cut)?))
}

/// How many elements are printed, and whether `...` follows.
pub(super) fn limited_len(len: usize, options: &YamlOptions) -> (usize, bool) {
    match options.truncate_length {
        Some(limit) if len > limit => (limit, true),
        _ => (len, false),
    }
}

struct Writer<'a> {
    out: String,
    options: &'a YamlOptions,
}

impl<'a> Writer<'a> {
    fn new(options: &'a YamlOptions) -> Self {
        Self {
            out: String::new(),
            options,
        }
    }

    /// Lines `name: value`; in a list, the first one stands behind its dash.
    fn block_message(&mut self, message: &DynamicMessage, indent: usize, behind_dash: bool) {
        for (index, (field, value)) in message.fields().enumerate() {
            if index > 0 || !behind_dash {
                self.indent(indent);
            }
            write_string(&mut self.out, &field.name, indent, false);
            self.out.push(':');
            match value {
                Value::Message(inner) if inner.fields().len() > 0 => {
                    self.out.push('\n');
                    self.block_message(inner, indent.saturating_add(2), false);
                    continue;
                }
                list if self.shows_as_block_list(list) => {
                    self.out.push('\n');
                    self.block_list(&field.element, list, indent);
                    continue;
                }
                _ => {}
            }
            self.out.push(' ');
            self.inline(field, value, indent.saturating_add(2), false);
            self.out.push('\n');
        }
    }

    fn shows_as_block_list(&self, value: &Value) -> bool {
        let spread = !self.options.no_arr && !self.options.flow_style;
        spread && value.len().is_some_and(|len| len > 0)
    }

    fn block_list(&mut self, element: &Element, list: &Value, indent: usize) {
        let (shown, cut) = limited_len(list.len().unwrap_or(0), self.options);
        for index in 0..shown {
            self.indent(indent);
            self.out.push_str("- ");
            match list {
                Value::Messages(messages) => match messages.get(index) {
                    Some(message) if message.fields().len() > 0 => {
                        self.block_message(message, indent.saturating_add(2), true);
                        continue;
                    }
                    _ => self.out.push_str("{}"),
                },
                _ => self.element(element, list, index, indent.saturating_add(2), false),
            }
            self.out.push('\n');
        }
        if cut {
            self.indent(indent);
            self.out.push_str("- '...'\n");
        }
    }

    /// A value that stays on the line of its field.
    fn inline(&mut self, field: &MessageField, value: &Value, indent: usize, in_flow: bool) {
        match value {
            Value::Message(message) => self.flow_message(message, indent.saturating_add(2)),
            list if list.len().is_some() => {
                if self.options.no_arr {
                    let summary = list_summary(field, list.len().unwrap_or(0));
                    write_string(&mut self.out, &summary, indent, in_flow);
                } else {
                    self.flow_list(&field.element, list, indent.saturating_add(2));
                }
            }
            _ => self.scalar(&field.element, value, indent, in_flow),
        }
    }

    fn flow_message(&mut self, message: &DynamicMessage, indent: usize) {
        self.out.push('{');
        for (index, (field, value)) in message.fields().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            write_string(&mut self.out, &field.name, indent, true);
            self.out.push_str(": ");
            self.inline(field, value, indent, true);
        }
        self.out.push('}');
    }

    fn flow_list(&mut self, element: &Element, list: &Value, indent: usize) {
        self.out.push('[');
        let (shown, cut) = limited_len(list.len().unwrap_or(0), self.options);
        for index in 0..shown {
            if index > 0 {
                self.out.push_str(", ");
            }
            match list {
                Value::Messages(messages) => {
                    if let Some(message) = messages.get(index) {
                        self.flow_message(message, indent.saturating_add(2));
                    }
                }
                _ => self.element(element, list, index, indent, true),
            }
        }
        if cut {
            self.out
                .push_str(if shown > 0 { ", '...'" } else { "'...'" });
        }
        self.out.push(']');
    }

    fn element(
        &mut self,
        element: &Element,
        list: &Value,
        index: usize,
        indent: usize,
        in_flow: bool,
    ) {
        match list {
            Value::Strings(texts) => {
                if let Some(text) = texts.get(index) {
                    self.string(text, indent, in_flow);
                }
            }
            _ => {
                if let Some(value) = list.element(index) {
                    self.scalar(element, &value, indent, in_flow);
                }
            }
        }
    }

    fn scalar(&mut self, element: &Element, value: &Value, indent: usize, in_flow: bool) {
        match value {
            Value::U8(byte) if *element == Element::Byte => {
                let text = char::from(*byte).to_string();
                write_string(&mut self.out, &text, indent, in_flow);
            }
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::F32(value) => self.out.push_str(&yaml_float(*value)),
            Value::F64(value) => self.out.push_str(&yaml_float(*value)),
            Value::String(text) => self.string(text, indent, in_flow),
            Value::WString(text) => self.string(&text.to_string(), indent, in_flow),
            _ => {
                if let Some(number) = value.as_integer() {
                    // Writing to a string cannot fail.
                    let _ = write!(self.out, "{number}");
                }
            }
        }
    }

    fn string(&mut self, text: &str, indent: usize, in_flow: bool) {
        match limited_string(text, self.options) {
            Some(short) => write_string(&mut self.out, &short, indent, in_flow),
            None => write_string(&mut self.out, text, indent, in_flow),
        }
    }

    fn indent(&mut self, columns: usize) {
        (0..columns).for_each(|_| self.out.push(' '));
    }
}
