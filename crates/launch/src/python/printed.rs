//! Printed values: Python's `str(…)` and `repr(…)`.

use std::fmt;

use super::number_text::double;
use super::value::{Kind, Object, Value};

/// Longest text of a value in an error, in characters.
const SHORT_MAX: usize = 60;
/// Longest printed text in bytes; the rest is cut off with "…". An evaluation
/// never makes a value that is printed longer, except by repetition.
const PRINTED_BYTES_MAX: usize = 4 << 20;

/// As `str(…)`.
pub(super) fn text(value: &Value) -> String {
    match &value.0 {
        Kind::Text(text) => text.to_string(),
        _ => representation(value),
    }
}

/// As `repr(…)`.
pub(super) fn representation(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, PRINTED_BYTES_MAX);
    out
}

/// A short text for errors.
pub(super) fn short(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 4 * SHORT_MAX);
    match out.char_indices().nth(SHORT_MAX) {
        None => out,
        Some((end, _)) => format!("{}…", &out[..end]),
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short(self))
    }
}

impl fmt::Display for Value {
    /// Writes it as Python's `str(…)` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}

fn write(out: &mut String, value: &Value, bytes_max: usize) {
    if out.len() > bytes_max {
        out.push('…');
        return;
    }
    match &value.0 {
        Kind::None => out.push_str("None"),
        Kind::Ellipsis => out.push_str("Ellipsis"),
        Kind::Bool(true) => out.push_str("True"),
        Kind::Bool(false) => out.push_str("False"),
        Kind::Integer(value) => out.push_str(&value.to_string()),
        Kind::Double(value) => out.push_str(&double(*value)),
        Kind::Text(text) => quote(out, text),
        Kind::Bytes(bytes) => quote_bytes(out, bytes),
        Kind::List(sequence) => several(out, "[", sequence.items.iter(), "]", bytes_max),
        Kind::Tuple(sequence) => {
            let end = if sequence.items.len() == 1 { ",)" } else { ")" };
            several(out, "(", sequence.items.iter(), end, bytes_max);
        }
        Kind::Set(set) => {
            let name = set.type_name();
            if set.items.is_empty() {
                out.push_str(&format!("{name}()"));
            } else if set.is_frozen {
                several(out, "frozenset({", set.items.iter(), "})", bytes_max);
            } else {
                several(out, "{", set.items.iter(), "}", bytes_max);
            }
        }
        Kind::Dictionary(dictionary) => {
            out.push('{');
            for (index, (name, value)) in dictionary.entries.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write(out, name, bytes_max);
                out.push_str(": ");
                write(out, value, bytes_max);
            }
            out.push('}');
        }
        Kind::View(kind, dictionary) => {
            let items: Vec<Value> = dictionary
                .entries
                .iter()
                .map(|entry| kind.item(entry))
                .collect();
            out.push_str(kind.type_name());
            several(out, "([", items.iter(), "])", bytes_max);
        }
        Kind::Range(range) => {
            let end = match range.step {
                1 => ")".to_owned(),
                step => format!(", {step})"),
            };
            out.push_str(&format!("range({}, {}{end}", range.start, range.stop));
        }
        Kind::Slice(parts) => several(out, "slice(", parts.iter(), ")", bytes_max),
        Kind::Iterator(iterator) => out.push_str(&format!("<{} object>", iterator.name)),
        Kind::Type(name) => out.push_str(&format!("<class '{name}'>")),
        Kind::Function(name) => out.push_str(&format!("<built-in function {name}>")),
        Kind::Module(name) => out.push_str(&format!("<module '{name}'>")),
        Kind::Method(method) => out.push_str(&format!(
            "<built-in method {} of {} object>",
            method.name,
            method.receiver.type_name()
        )),
        Kind::TypeMethod(of, name) => out.push_str(&format!("<method '{name}' of '{of}' objects>")),
        Kind::Lambda(_) => out.push_str("<function <lambda>>"),
        Kind::Object(object) => write_object(out, &**object, bytes_max),
    }
}

fn several<'v>(
    out: &mut String,
    start: &str,
    values: impl Iterator<Item = &'v Value>,
    end: &str,
    bytes_max: usize,
) {
    out.push_str(start);
    for (index, value) in values.enumerate() {
        if out.len() > bytes_max {
            out.push('…');
            break;
        }
        out.push_str(if index == 0 { "" } else { ", " });
        write(out, value, bytes_max);
    }
    out.push_str(end);
}

fn write_object(out: &mut String, object: &dyn Object, bytes_max: usize) {
    if let Some(text) = object.text() {
        return out.push_str(&text);
    }
    if let Some(length) = object.length() {
        let items = (0..length).map_while(|index| object.item(index));
        out.push('[');
        for (index, item) in items.enumerate() {
            if out.len() > bytes_max {
                out.push('…');
                break;
            }
            out.push_str(if index == 0 { "" } else { ", " });
            write(out, &item, bytes_max);
        }
        return out.push(']');
    }
    out.push_str(&object.type_name());
    out.push('(');
    for (index, name) in object.attribute_names().iter().enumerate() {
        if out.len() > bytes_max {
            out.push('…');
            break;
        }
        out.push_str(if index == 0 { "" } else { ", " });
        out.push_str(name);
        out.push('=');
        match object.attribute(name) {
            Some(value) => write(out, &value, bytes_max),
            None => out.push('…'),
        }
    }
    out.push(')');
}

/// Writes a text in the quotes that need fewer escapes, as Python does.
fn quote(out: &mut String, text: &str) {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if letter == quote => out.extend(['\\', quote]),
            _ if letter.is_control() => out.push_str(&escaped(letter)),
            _ => out.push(letter),
        }
    }
    out.push(quote);
}

fn escaped(letter: char) -> String {
    match letter as u32 {
        code @ 0..=0xff => format!("\\x{code:02x}"),
        code @ 0..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// As `ascii(…)`: every other character is an escape.
pub(super) fn ascii(value: &Value) -> String {
    let mut out = String::new();
    for letter in representation(value).chars() {
        match letter.is_ascii() {
            true => out.push(letter),
            false => out.push_str(&escaped(letter)),
        }
    }
    out
}

fn quote_bytes(out: &mut String, bytes: &[u8]) {
    let quote = match bytes.contains(&b'\'') && !bytes.contains(&b'"') {
        true => '"',
        false => '\'',
    };
    out.extend(['b', quote]);
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ if byte == quote as u8 => out.extend(['\\', quote]),
            b' '..=b'~' => out.push(byte as char),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(quote);
}
