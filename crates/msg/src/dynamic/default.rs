//! Default values, which type descriptions have as text.
//!
//! Single values are verbatim (`42`, `True`, `Hello`), lists in brackets: `(1, 2)`,
//! also `[1, 2]`, with quoted strings inside.

use super::length::check_length;
use super::literal::{read_bool, read_f32, read_f64, read_integer};
use super::types::{Element, MessageField, Shape};
use super::value::Value;
use crate::message::WString;
use alloc::string::String;
use alloc::vec::Vec;

/// The value of `text`; `None` when it does not fit the field.
pub(super) fn read_default(field: &MessageField, text: &str) -> Option<Value> {
    let element = &field.element;
    let value = if field.shape == Shape::Single {
        read_one(element, text)?
    } else {
        let items = split_list(text.trim())?;
        let values = items
            .iter()
            .map(|item| read_one(element, item))
            .collect::<Option<Vec<_>>>()?;
        Value::gather(element, values)?
    };
    if let Some(len) = value.len() {
        check_length(field.shape, len, "").ok()?;
    }
    value.check_strings(element, "").ok()?;
    Some(value)
}

fn read_one(element: &Element, text: &str) -> Option<Value> {
    Some(match element {
        Element::Bool => Value::Bool(read_bool(text)?),
        Element::F32 => Value::F32(read_f32(text)?),
        Element::F64 => Value::F64(read_f64(text)?),
        Element::String { .. } => Value::String(text.into()),
        Element::WString { .. } => Value::WString(WString::from(text)),
        Element::Message(_) => return None,
        _ => Value::integer(element, read_integer(text)?)?,
    })
}

/// The items between the outer brackets, unquoted and unescaped.
fn split_list(text: &str) -> Option<Vec<String>> {
    let inner = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']'))?;
    let mut items = Vec::new();
    let mut chars = inner.trim().chars().peekable();
    while let Some(&first) = chars.peek() {
        let mut item = String::new();
        if matches!(first, '\'' | '"') {
            chars.next();
            loop {
                match chars.next()? {
                    '\\' => item.push(chars.next()?),
                    c if c == first => break,
                    c => item.push(c),
                }
            }
            while chars.next_if(|c| *c != ',').is_some() {}
        } else {
            while let Some(c) = chars.next_if(|c| *c != ',') {
                item.push(c);
            }
            item.truncate(item.trim_end().len());
        }
        items.push(item);
        chars.next();
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_split_at_commas_outside_quotes() {
        let split = |text| split_list(text).unwrap();
        assert_eq!(split("(1, -2)"), ["1", "-2"]);
        assert_eq!(split("('a, b', 'it\\'s', '')"), ["a, b", "it's", ""]);
        assert_eq!(split("[1.5]"), ["1.5"]);
        assert!(split("()").is_empty());
        assert_eq!(split_list("1, 2"), None);
        assert_eq!(split_list("('open)"), None);
    }
}
