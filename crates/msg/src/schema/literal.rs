//! Literals in interface files: constants and defaults.
//!
//! A literal is parsed for a given type and checked against it at once, so a
//! [`Literal`] inside an `InterfaceFile` always fits its field.

use super::{BaseType, Shape, TypeSpec};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// A constant's value or a field's default.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `true`, `false`, `1` or `0` for a `bool`.
    Bool(bool),
    /// Any integer type; fits the type it was read for.
    Int(i128),
    /// `float32` or `float64`.
    Float(f64),
    /// `string` or `wstring`, without quotes and escapes.
    Text(String),
    /// An array's or sequence's default.
    List(Vec<Literal>),
}

/// Shows values as ROS 2's type descriptions do in `default_value`.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => f.write_str(text),
            Self::List(items) => {
                f.write_str("(")?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    match item {
                        Self::Text(text) => write!(f, "'{}'", text.replace('\'', "\\'"))?,
                        other => write!(f, "{other}")?,
                    }
                }
                f.write_str(")")
            }
        }
    }
}

/// Parses a default for a field of type `ty`; the error is the reason.
pub(super) fn read_default(ty: &TypeSpec, text: &str) -> Result<Literal, String> {
    if let BaseType::Nested { .. } = ty.base {
        return Err(format!(
            "\"{text}\" cannot be a default of {ty}: only numbers, bools, strings and arrays of them have defaults; remove it"
        ));
    }
    if ty.shape == Shape::Single {
        return read_value(&ty.base, text);
    }
    let items = split_list(text)?
        .into_iter()
        .map(|item| read_value(&ty.base, &item))
        .collect::<Result<Vec<_>, _>>()?;
    let count = items.len() as u64;
    match ty.shape {
        Shape::Array(expected) if count != u64::from(expected) => Err(format!(
            "the default has {count} values, {ty} needs exactly {expected}"
        )),
        Shape::Bounded(bound) if count > u64::from(bound) => Err(format!(
            "the default has {count} values, {ty} allows at most {bound}"
        )),
        _ => Ok(Literal::List(items)),
    }
}

/// Parses one value of an element type; the error is the reason.
pub(super) fn read_value(base: &BaseType, text: &str) -> Result<Literal, String> {
    match base {
        BaseType::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Literal::Bool(true)),
            "false" | "0" => Ok(Literal::Bool(false)),
            _ => Err(format!("\"{text}\" is not a bool; write true or false")),
        },
        BaseType::Float32 => {
            let value = read_float(text)?;
            if value.is_finite() && (value as f32).is_infinite() {
                return Err(format!(
                    "{text} is too large for float32; use float64 or a smaller value"
                ));
            }
            Ok(Literal::Float(value))
        }
        BaseType::Float64 => read_float(text).map(Literal::Float),
        BaseType::String(bound) => {
            let value = read_text(text)?;
            check_length(base, *bound, value.len())?;
            Ok(Literal::Text(value))
        }
        BaseType::WString(bound) => {
            let value = read_text(text)?;
            check_length(base, *bound, value.encode_utf16().count())?;
            Ok(Literal::Text(value))
        }
        BaseType::Nested { .. } => Err(format!("{base} has no literal values")),
        integer => read_integer(integer, text),
    }
}

/// A text, checked against its type; the error is the reason.
pub(super) fn text_value(base: &BaseType, text: String) -> Result<Literal, String> {
    match base {
        BaseType::WString(bound) => check_length(base, *bound, text.encode_utf16().count())?,
        BaseType::String(bound) => check_length(base, *bound, text.len())?,
        _ => return Err(format!("a text is not a value of {base}")),
    }
    Ok(Literal::Text(text))
}

fn check_length(base: &BaseType, bound: Option<u32>, length: usize) -> Result<(), String> {
    match bound {
        Some(bound) if length as u64 > u64::from(bound) => Err(format!(
            "the text has {length} units, {base} allows {bound}"
        )),
        _ => Ok(()),
    }
}

fn integer_range(base: &BaseType) -> (i128, i128) {
    match base {
        BaseType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        BaseType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        BaseType::Uint16 => (0, u16::MAX.into()),
        BaseType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        BaseType::Uint32 => (0, u32::MAX.into()),
        BaseType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        BaseType::Uint64 => (0, u64::MAX.into()),
        _ => (0, u8::MAX.into()),
    }
}

fn read_integer(base: &BaseType, text: &str) -> Result<Literal, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.split_at_checked(2) {
        Some(("0x" | "0X", rest)) => (16, rest),
        Some(("0o" | "0O", rest)) => (8, rest),
        Some(("0b" | "0B", rest)) => (2, rest),
        _ => (10, digits),
    };
    let magnitude = if digits.starts_with(['+', '-']) {
        None
    } else {
        i128::from_str_radix(digits, radix).ok()
    };
    let Some(magnitude) = magnitude else {
        return Err(format!("\"{text}\" is not a whole number, as {base} needs"));
    };
    let value = if negative {
        magnitude.saturating_neg()
    } else {
        magnitude
    };
    let (min, max) = integer_range(base);
    if value < min || value > max {
        return Err(format!(
            "{text} does not fit {base}, which holds {min} to {max}; use a wider type or another value"
        ));
    }
    Ok(Literal::Int(value))
}

fn read_float(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .map_err(|_| format!("\"{text}\" is not a number; write for example 1.5 or -2e-3"))
}

/// Text with or without quotes. Quotes of the same kind inside need a `\`.
fn read_text(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    let Some(quote) = chars.next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok(text.to_string());
    };
    let mut value = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('"' | '\'' | '\\')) => value.push(escaped),
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some(other) => {
                    value.push('\\');
                    value.push(other);
                }
                None => break,
            },
            c if c == quote => {
                let rest = chars.as_str().trim();
                if rest.is_empty() {
                    return Ok(value);
                }
                return Err(format!(
                    "\"{rest}\" follows the closing quote; write \\{quote} for a quote inside the text"
                ));
            }
            c => value.push(c),
        }
    }
    Err(format!("the text {text} lacks its closing {quote}"))
}

/// Splits `[a, "b, c", d]` into its items, quotes kept.
fn split_list(text: &str) -> Result<Vec<String>, String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| {
            format!("\"{text}\" is not an array default; write values in brackets: [1, 2, 3]")
        })?;
    let mut items = Vec::new();
    let mut item = String::new();
    let mut open_quote = None;
    let mut escaped = false;
    for c in inner.chars() {
        match open_quote {
            Some(quote) => {
                if c == quote && !escaped {
                    open_quote = None;
                }
                escaped = c == '\\' && !escaped;
                item.push(c);
            }
            None if c == ',' => items.push(core::mem::take(&mut item)),
            None => {
                if matches!(c, '"' | '\'') && item.trim().is_empty() {
                    open_quote = Some(c);
                }
                item.push(c);
            }
        }
    }
    if !inner.trim().is_empty() {
        items.push(item);
    }
    let items: Vec<String> = items.iter().map(|item| item.trim().to_string()).collect();
    if items.iter().any(String::is_empty) {
        return Err(format!(
            "\"{text}\" has an empty item; remove the extra comma"
        ));
    }
    Ok(items)
}
