//! Exact JSON: printed messages parse back to the same message.
//!
//! Integers are written in full (a `uint64` may exceed what JavaScript keeps),
//! floats with the shortest digits of their width, `byte` as a number. JSON has no
//! infinities and no NaN: they are the strings `"inf"`, `"-inf"`, `"nan"`, which
//! `from_yaml` accepts for floats. One line, no spaces.

use super::error::ValueError;
use super::message::DynamicMessage;
use super::path;
use super::types::MessageField;
use super::value::{Value, with_numbers};
use super::yaml::{YamlOptions, limited_len, limited_string, list_summary};
use crate::message::WString;
use alloc::string::{String, ToString};
use core::fmt::{Debug, Write};

impl DynamicMessage {
    /// The message as one JSON object, without a line break.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_message(&mut out, self);
        out
    }

    /// As [`to_json`](Self::to_json), with arrays and strings left out or cut as
    /// [`to_yaml`](Self::to_yaml) does; `flow_style` is ignored. A cut array ends
    /// in the string `"..."`, and a left-out one is a string with type and length,
    /// so the result no longer parses back to the message.
    pub fn to_json_with(&self, options: &YamlOptions) -> String {
        let mut out = String::new();
        write_limited_message(&mut out, self, options);
        out
    }

    /// The value at a path as JSON, with the same options.
    ///
    /// # Errors
    /// The path leads to no value.
    pub fn to_json_at(&self, path: &str, options: &YamlOptions) -> Result<String, ValueError> {
        let value = self.get(path)?;
        let mut out = String::new();
        write_limited(&mut out, &path::field_at(self.ty(), path)?, &value, options);
        Ok(out)
    }
}

impl Value {
    /// The value as JSON, as it stands within a message.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_value(&mut out, self);
        out
    }
}

fn write_message(out: &mut String, message: &DynamicMessage) {
    out.push('{');
    for (index, (field, value)) in message.fields().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, &field.name);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_limited_message(out: &mut String, message: &DynamicMessage, options: &YamlOptions) {
    out.push('{');
    for (index, (field, value)) in message.fields().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, &field.name);
        out.push(':');
        write_limited(out, field, value, options);
    }
    out.push('}');
}

fn write_limited(out: &mut String, field: &MessageField, value: &Value, options: &YamlOptions) {
    let Some(len) = value.len() else {
        return write_limited_one(out, value, options);
    };
    if options.no_arr {
        return write_string(out, &list_summary(field, len));
    }
    let (shown, cut) = limited_len(len, options);
    out.push('[');
    for index in 0..shown {
        if index > 0 {
            out.push(',');
        }
        match value {
            Value::Messages(messages) => {
                if let Some(message) = messages.get(index) {
                    write_limited_message(out, message, options);
                }
            }
            _ => {
                if let Some(element) = value.element(index) {
                    write_limited_one(out, &element, options);
                }
            }
        }
    }
    if cut {
        out.push_str(if shown > 0 { ",\"...\"" } else { "\"...\"" });
    }
    out.push(']');
}

fn write_limited_one(out: &mut String, value: &Value, options: &YamlOptions) {
    let short = match value {
        Value::Message(message) => return write_limited_message(out, message, options),
        Value::String(text) => limited_string(text, options),
        Value::WString(text) => limited_string(&text.to_string(), options),
        _ => None,
    };
    match short {
        Some(short) => write_string(out, &short),
        None => write_value(out, value),
    }
}

fn write_list<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Numbers of all widths; Rust's `Debug` is the shortest exact form.
fn write_number<T: Debug>(out: &mut String, value: &T) {
    let start = out.len();
    // Writing to a string cannot fail.
    let _ = write!(out, "{value:?}");
    let text = match out.get(start..) {
        Some("NaN") => "\"nan\"",
        Some("inf") => "\"inf\"",
        Some("-inf") => "\"-inf\"",
        _ => return,
    };
    out.truncate(start);
    out.push_str(text);
}

macro_rules! define_write_value {
    ($($one:ident $many:ident $ty:ident),*) => {
        fn write_value(out: &mut String, value: &Value) {
            match value {
                $(
                    Value::$one(value) => write_number(out, value),
                    Value::$many(values) => write_list(out, values, write_number),
                )*
                Value::Bool(value) => write_number(out, value),
                Value::Bools(values) => write_list(out, values, write_number),
                Value::String(text) => write_string(out, text),
                Value::Strings(texts) => write_list(out, texts, |out, text| write_string(out, text)),
                Value::WString(text) => write_wide(out, text),
                Value::WStrings(texts) => write_list(out, texts, write_wide),
                Value::Message(message) => write_message(out, message),
                Value::Messages(messages) => write_list(out, messages, write_message),
            }
        }
    };
}
with_numbers!(define_write_value);

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    text.chars().for_each(|c| write_char(out, c));
    out.push('"');
}

/// Unpaired surrogates are written as escapes.
fn write_wide(out: &mut String, text: &WString) {
    out.push('"');
    for unit in char::decode_utf16(text.0.iter().copied()) {
        match unit {
            Ok(c) => write_char(out, c),
            Err(lone) => {
                let _ = write!(out, "\\u{:04x}", lone.unpaired_surrogate());
            }
        }
    }
    out.push('"');
}

fn write_char(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // More than JSON requires: YAML readers reject the rest.
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{feff}'
        | '\u{fffe}'..='\u{ffff}' => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        _ => out.push(c),
    }
}
