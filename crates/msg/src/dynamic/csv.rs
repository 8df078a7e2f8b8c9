//! One line of comma-separated values, as `ros2 topic echo --csv` prints.
//!
//! All values in the order of their fields, lists and nested messages flattened,
//! strings verbatim: a comma inside a string is not escaped, as in ROS 2. As there,
//! empty values in front of the first other one of a message or list have no column.

use super::message::DynamicMessage;
use super::number::python_float;
use super::types::{Element, MessageField};
use super::value::Value;
use super::yaml::{YamlOptions, limited_len, limited_string, list_summary};
use alloc::string::{String, ToString};
use core::fmt::Write;

impl DynamicMessage {
    /// The message as one line, without a line break; `flow_style` is ignored.
    pub fn to_csv(&self, options: &YamlOptions) -> String {
        let mut out = String::new();
        write_message(&mut out, self, options);
        out
    }
}

fn write_message(out: &mut String, message: &DynamicMessage, options: &YamlOptions) {
    let start = out.len();
    for (field, value) in message.fields() {
        separate(out, start);
        write_field(out, field, value, options);
    }
}

fn write_field(out: &mut String, field: &MessageField, value: &Value, options: &YamlOptions) {
    let Some(len) = value.len() else {
        return write_one(out, &field.element, value, options);
    };
    if options.no_arr {
        out.push_str(&list_summary(field, len));
        return;
    }
    let (shown, cut) = limited_len(len, options);
    let start = out.len();
    for index in 0..shown {
        separate(out, start);
        match value {
            Value::Messages(messages) => {
                if let Some(message) = messages.get(index) {
                    write_message(out, message, options);
                }
            }
            _ => {
                if let Some(element) = value.element(index) {
                    write_one(out, &field.element, &element, options);
                }
            }
        }
    }
    if cut {
        separate(out, start);
        out.push_str("...");
    }
}

/// A comma behind what has been written since `start`, if anything has.
fn separate(out: &mut String, start: usize) {
    if out.len() > start {
        out.push(',');
    }
}

fn write_one(out: &mut String, element: &Element, value: &Value, options: &YamlOptions) {
    match value {
        Value::Message(message) => write_message(out, message, options),
        Value::U8(byte) if *element == Element::Byte => write_python_byte(out, *byte),
        Value::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
        Value::F32(value) => out.push_str(&python_float(*value)),
        Value::F64(value) => out.push_str(&python_float(*value)),
        Value::String(text) => write_string(out, text, options),
        Value::WString(text) => write_string(out, &text.to_string(), options),
        _ => {
            if let Some(number) = value.as_integer() {
                // Writing to a string cannot fail.
                let _ = write!(out, "{number}");
            }
        }
    }
}

fn write_string(out: &mut String, text: &str, options: &YamlOptions) {
    match limited_string(text, options) {
        Some(short) => out.push_str(&short),
        None => out.push_str(text),
    }
}

/// `b'A'`, `b'\x01'`: a Python bytes literal.
fn write_python_byte(out: &mut String, byte: u8) {
    let _ = match byte {
        b'\t' => write!(out, "b'\\t'"),
        b'\n' => write!(out, "b'\\n'"),
        b'\r' => write!(out, "b'\\r'"),
        b'\\' => write!(out, "b'\\\\'"),
        b'\'' => write!(out, "b\"'\""),
        b' '..=b'~' => write!(out, "b'{}'", char::from(byte)),
        _ => write!(out, "b'\\x{byte:02x}'"),
    };
}
