//! Methods of texts.

use super::cost::Cost;
use super::fault::{Fault, Outcome};
use super::printed::short;
use super::value::{Kind, Value};

/// Methods that need no Python.
const NAMES: &str = "count, endswith, find, join, lower, lstrip, replace, rsplit, rstrip, split, startswith, strip, upper";

/// Calls `text.name(…)`.
pub(super) fn call(cost: &mut Cost, text: &str, name: &str, arguments: &[Value]) -> Outcome<Value> {
    cost.add(text.len())?;
    // Python knows more blanks and other cases of letters than Rust.
    let is_plain = text
        .chars()
        .all(|letter| matches!(letter, ' '..='~' | '\t' | '\n' | '\r'));
    let part = |index: usize| arguments.get(index).and_then(Value::as_text);
    match (name, arguments.len()) {
        ("lower", 0) if is_plain => cost.text(text.to_ascii_lowercase()),
        ("upper", 0) if is_plain => cost.text(text.to_ascii_uppercase()),
        ("strip" | "lstrip" | "rstrip", 0) if is_plain => {
            cost.text(stripped(text, name, char::is_whitespace).into())
        }
        ("strip" | "lstrip" | "rstrip", 1) if let Some(letters) = part(0) => {
            cost.add(text.len().saturating_mul(letters.len()))?;
            cost.text(stripped(text, name, |letter| letters.contains(letter)).into())
        }
        ("split", 0) if is_plain => list(cost, text.split_whitespace()),
        ("split" | "rsplit", 1 | 2) if let Some(separator) = part(0) => {
            split(cost, text, name, separator, arguments.get(1))
        }
        ("join", 1) => join(cost, text, &arguments[0]),
        ("startswith", 1) if let Some(part) = part(0) => Ok(text.starts_with(part).into()),
        ("endswith", 1) if let Some(part) = part(0) => Ok(text.ends_with(part).into()),
        ("count", 1) if let Some(part) = part(0) => {
            let count = match part.is_empty() {
                true => text.chars().count() + 1,
                false => text.matches(part).count(),
            };
            Ok((count as i128).into())
        }
        ("find", 1) if let Some(part) = part(0) => {
            let found = text.find(part).map(|at| text[..at].chars().count() as i128);
            Ok(found.unwrap_or(-1).into())
        }
        ("replace", 2 | 3) if let (Some(old), Some(new)) = (part(0), part(1)) => {
            let most = at_most(arguments.get(2), "replace")?;
            let count = text.matches(old).count().min(most);
            cost.add_text(text.len().saturating_add(count.saturating_mul(new.len())))?;
            Ok(text.replacen(old, new, most).into())
        }
        _ => Err(Fault::needs_python(format!(
            "{name} of {}, with these arguments or at all (methods of texts without Python: {NAMES})",
            short(&text.into())
        ))),
    }
}

fn stripped<'t>(text: &'t str, name: &str, is_removed: impl Fn(char) -> bool) -> &'t str {
    let text = match name {
        "rstrip" => text,
        _ => text.trim_start_matches(&is_removed),
    };
    match name {
        "lstrip" => text,
        _ => text.trim_end_matches(&is_removed),
    }
}

/// The largest number of parts; a negative one is no limit.
fn at_most(value: Option<&Value>, name: &str) -> Outcome<usize> {
    let Some(value) = value else {
        return Ok(usize::MAX);
    };
    let most = value
        .as_integer()
        .ok_or_else(|| Fault::from(format!("{name} needs an integer, not {}", short(value))))?;
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}

fn split(
    cost: &mut Cost,
    text: &str,
    name: &str,
    separator: &str,
    most: Option<&Value>,
) -> Outcome<Value> {
    if separator.is_empty() {
        return Err(format!("{name} needs a separator that is not empty").into());
    }
    let most = at_most(most, name)?.saturating_add(1);
    if name == "split" {
        return list(cost, text.splitn(most, separator));
    }
    let mut parts: Vec<&str> = text.rsplitn(most, separator).collect();
    parts.reverse();
    list(cost, parts.into_iter())
}

fn list<'t>(cost: &mut Cost, parts: impl Iterator<Item = &'t str>) -> Outcome<Value> {
    let mut items = Vec::new();
    for part in parts {
        items.push(cost.text(part.into())?);
    }
    cost.list(items)
}

fn join(cost: &mut Cost, delimiter: &str, values: &Value) -> Outcome<Value> {
    let (Kind::List(items) | Kind::Tuple(items)) = &values.0 else {
        return Err(Fault::needs_python(format!("join of {}", short(values))));
    };
    let mut parts = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let part = item.as_text().ok_or_else(|| {
            let (item, of) = (short(item), item.type_name());
            format!("join needs texts; element {index} is {item}, a {of}; str(…) makes a text")
        })?;
        parts.push(part);
    }
    let bytes: usize = parts.iter().map(|part| part.len() + delimiter.len()).sum();
    cost.add_text(bytes)?;
    Ok(parts.join(delimiter).into())
}
