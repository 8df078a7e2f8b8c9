//! `str.format`: fields in braces with positions, names, attributes and indices.

use super::fault::Outcome;
use super::format_spec;
use super::item;
use super::limits::TEXT_BYTES_MAX;
use super::machine::{Arguments, Machine};
use super::printed::{ascii, representation, text};
use super::value::Value;

/// Deepest nesting of fields in specifications, as in Python.
const NESTING_MAX: usize = 2;

/// Formats a template with arguments.
pub(super) fn format(
    machine: &mut Machine,
    template: &str,
    arguments: &Arguments,
) -> Outcome<String> {
    let letters: Vec<char> = template.chars().collect();
    let mut next = 0;
    formatted(machine, &letters, arguments, &mut next, 0)
}

fn formatted(
    machine: &mut Machine,
    letters: &[char],
    arguments: &Arguments,
    next: &mut usize,
    depth: usize,
) -> Outcome<String> {
    let mut out = String::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        machine.steps(1)?;
        if out.len() > TEXT_BYTES_MAX {
            machine.check_text(out.len())?;
        }
        let is_doubled = letters.get(at + 1) == Some(&letter);
        match letter {
            '{' | '}' if is_doubled && depth == 0 => {
                out.push(letter);
                at += 2;
            }
            '{' if depth >= NESTING_MAX => {
                return Err(format!("fields are nested more than {NESTING_MAX} deep").into());
            }
            '{' => {
                let end = field_end(letters, at + 1)
                    .ok_or("in a format { is not closed; write {{ for the character")?;
                out += &field(machine, &letters[at + 1..end], arguments, next, depth)?;
                at = end + 1;
            }
            '}' => {
                return Err("in a format } stands alone; write }} for the character".into());
            }
            _ => {
                out.push(letter);
                at += 1;
            }
        }
    }
    Ok(out)
}

fn field_end(letters: &[char], start: usize) -> Option<usize> {
    let mut open = 0usize;
    for (index, letter) in letters.iter().enumerate().skip(start) {
        match letter {
            '{' => open += 1,
            '}' if open == 0 => return Some(index),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// One field: `name!conversion:specification`.
fn field(
    machine: &mut Machine,
    letters: &[char],
    arguments: &Arguments,
    next: &mut usize,
    depth: usize,
) -> Outcome<String> {
    let colon = letters.iter().position(|letter| *letter == ':');
    let (head, specification) = match colon {
        Some(colon) => (&letters[..colon], &letters[colon + 1..]),
        None => (letters, &[][..]),
    };
    let mark = head.iter().position(|letter| *letter == '!');
    let (name, conversion) = match mark {
        Some(mark) => (&head[..mark], head.get(mark + 1).copied()),
        None => (head, None),
    };
    let name: String = name.iter().collect();
    let value = argument(machine, name.trim(), arguments, next)?;
    let specification = formatted(machine, specification, arguments, next, depth + 1)?;
    let value = match (mark, conversion) {
        (None, _) => value,
        (_, Some('r')) => machine.text(representation(&value))?,
        (_, Some('s')) => machine.text(text(&value))?,
        (_, Some('a')) => machine.text(ascii(&value))?,
        _ => {
            return Err(format!("in the field {{{name}!…}} the ! is followed by r, s or a").into());
        }
    };
    format_spec::format(machine, &value, &specification)
}

/// The value of a field: the argument, then `.attribute` and `[index]`.
fn argument(
    machine: &mut Machine,
    name: &str,
    arguments: &Arguments,
    next: &mut usize,
) -> Outcome<Value> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut rest) = name.split_at(end);
    let mut value = if first.is_empty() {
        *next += 1;
        positional(arguments, *next - 1)?
    } else if let Ok(index) = first.parse::<usize>() {
        positional(arguments, index)?
    } else {
        let found = arguments.named.iter().find(|(known, _)| **known == *first);
        let (_, value) = found.ok_or_else(|| format!("format has no argument {first:?}"))?;
        value.clone()
    };
    while !rest.is_empty() {
        if let Some(attribute) = rest.strip_prefix('.') {
            let end = attribute.find(['.', '[']).unwrap_or(attribute.len());
            value = item::attribute(machine, &value, &attribute[..end])?;
            rest = &attribute[end..];
        } else if let Some((index, after)) =
            rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            let index = match index.parse::<i64>() {
                Ok(index) => Value::from(index),
                Err(_) => Value::from(index),
            };
            value = item::item(machine, &value, &index)?;
            rest = after;
        } else {
            return Err(format!(
                "the field {{{name}}} is not understood; write {{name.attribute[index]}}"
            )
            .into());
        }
    }
    Ok(value)
}

fn positional(arguments: &Arguments, index: usize) -> Outcome<Value> {
    let count = arguments.positional.len();
    let value = arguments.positional.get(index).cloned();
    value.ok_or_else(|| format!("format has {count} arguments; field {index} has none").into())
}
