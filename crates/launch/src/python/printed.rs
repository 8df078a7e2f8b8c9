//! Printed values: Python's `str(…)` and `repr(…)`.

use std::fmt::{self, Write};

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
        _ => printed(value, PRINTED_BYTES_MAX),
    }
}

fn printed(value: &Value, bytes_max: usize) -> String {
    let mut out = String::new();
    write(&mut out, value, bytes_max);
    out
}

/// A short text for errors.
pub(super) fn short(value: &Value) -> String {
    let out = printed(value, 4 * SHORT_MAX);
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

/// A number as `str(…)` prints it: the shortest text that gives it back.
pub(super) fn double(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string().to_ascii_lowercase();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse().unwrap_or(0) {
        -4..16 => format!("{value:?}"),
        exponent => format!("{digits}e{exponent:+03}"),
    }
}

fn write(out: &mut String, value: &Value, bytes_max: usize) {
    match &value.0 {
        Kind::None => out.push_str("None"),
        Kind::Bool(true) => out.push_str("True"),
        Kind::Bool(false) => out.push_str("False"),
        Kind::Integer(value) => out.push_str(&value.to_string()),
        Kind::Double(value) => out.push_str(&double(*value)),
        Kind::Text(text) => quoted(out, text.chars(), false),
        Kind::Bytes(bytes) => {
            out.push('b');
            quoted(out, bytes.iter().map(|byte| char::from(*byte)), true);
        }
        Kind::List(items) => several(out, "[", items.iter().cloned(), "]", bytes_max),
        Kind::Tuple(items) => {
            let end = if items.len() == 1 { ",)" } else { ")" };
            several(out, "(", items.iter().cloned(), end, bytes_max);
        }
        Kind::Object(object) => write_object(out, &**object, bytes_max),
    }
}

fn several(
    out: &mut String,
    start: &str,
    values: impl Iterator<Item = Value>,
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
        write(out, &value, bytes_max);
    }
    out.push_str(end);
}

fn write_object(out: &mut String, object: &dyn Object, bytes_max: usize) {
    if let Some(length) = object.length() {
        let items = (0..length).map_while(|index| object.item(index));
        return several(out, "[", items, "]", bytes_max);
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
        write(
            out,
            &object.attribute(name).unwrap_or(Value::NONE),
            bytes_max,
        );
    }
    out.push(')');
}

/// Writes a text in the quotes that need fewer escapes, as Python does. Bytes come as
/// letters up to U+00FF; those of a text from there on need no escapes.
fn quoted(out: &mut String, letters: impl Iterator<Item = char> + Clone, is_bytes: bool) {
    let has = |wanted: char| letters.clone().any(|letter| letter == wanted);
    let quote = if has('\'') && !has('"') { '"' } else { '\'' };
    out.push(quote);
    for letter in letters {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if letter == quote => out.extend(['\\', quote]),
            _ if letter.is_control() || (is_bytes && !letter.is_ascii()) => {
                // Writing to a text never fails.
                let _ = write!(out, "\\x{:02x}", letter as u32);
            }
            _ => out.push(letter),
        }
    }
    out.push(quote);
}
