//! Methods of texts.

use super::fault::Outcome;
use super::iterate;
use super::limits::TEXT_BYTES_MAX;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::text_format;
use super::value::{Kind, Value};

pub(super) const NAMES: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];

pub(super) fn call(
    machine: &mut Machine,
    text: &str,
    name: &'static str,
    arguments: Arguments,
) -> Outcome<Value> {
    machine.steps(text.len() / 16)?;
    let given = Given { name, arguments };
    match name {
        "format" => {
            let text = text_format::format(machine, text, &given.arguments)?;
            machine.text(text)
        }
        "format_map" => format_map(machine, text, &given),
        "join" => join(machine, text, &given),
        "split" | "rsplit" | "splitlines" => split(machine, text, &given),
        "partition" | "rpartition" => partition(machine, text, &given),
        "startswith" | "endswith" => ends(text, &given),
        "find" | "rfind" | "index" | "rindex" | "count" => find(machine, text, &given),
        "replace" => replace(machine, text, &given),
        "encode" => machine.bytes(text.as_bytes().to_vec()),
        "strip" | "lstrip" | "rstrip" | "removeprefix" | "removesuffix" => {
            machine.text(stripped(text, &given)?)
        }
        "center" | "ljust" | "rjust" | "zfill" | "expandtabs" => padded(machine, text, &given),
        "lower" | "upper" | "casefold" | "capitalize" | "title" | "swapcase" => {
            given.at_most(0)?;
            machine.text(with_case(text, name))
        }
        _ => {
            given.at_most(0)?;
            Ok(is(text, name).into())
        }
    }
}

/// The arguments of a method.
struct Given {
    name: &'static str,
    arguments: Arguments,
}

impl Given {
    fn at_most(&self, most: usize) -> Outcome<()> {
        let count = self.arguments.positional.len() + self.arguments.named.len();
        if count > most {
            return Err(
                format!("{} takes at most {most} arguments, not {count}", self.name).into(),
            );
        }
        Ok(())
    }

    /// An argument by position or name; none if it is missing or `None`.
    fn value(&self, index: usize, name: &str) -> Option<&Value> {
        let positional = self.arguments.positional.get(index);
        let mut named = self.arguments.named.iter();
        let found = positional.or_else(|| {
            named
                .find(|(known, _)| **known == *name)
                .map(|(_, value)| value)
        });
        found.filter(|value| !matches!(value.0, Kind::None))
    }

    fn text(&self, index: usize, name: &str) -> Outcome<Option<&str>> {
        match self.value(index, name) {
            None => Ok(None),
            Some(value) => value.as_text().map(Some).ok_or_else(|| {
                format!(
                    "{} needs a text, not {}, a {}",
                    self.name,
                    short(value),
                    value.type_name()
                )
                .into()
            }),
        }
    }

    fn required(&self, index: usize, name: &str) -> Outcome<&str> {
        let text = self.text(index, name)?;
        text.ok_or_else(|| format!("{} needs a text", self.name).into())
    }

    fn integer(&self, index: usize, name: &str) -> Outcome<Option<i128>> {
        match self.value(index, name) {
            None => Ok(None),
            Some(value) => value.as_integer().map(Some).ok_or_else(|| {
                format!("{} needs an integer, not {}", self.name, short(value)).into()
            }),
        }
    }
}

fn format_map(machine: &mut Machine, text: &str, given: &Given) -> Outcome<Value> {
    let Some(Kind::Dictionary(names)) = given.value(0, "mapping").map(|value| &value.0) else {
        return Err("format_map needs a dictionary".into());
    };
    let named = names.entries.iter();
    let named = named.filter_map(|(name, value)| Some((name.as_text()?.into(), value.clone())));
    let arguments = Arguments {
        positional: Vec::new(),
        named: named.collect(),
    };
    let text = text_format::format(machine, text, &arguments)?;
    machine.text(text)
}

fn join(machine: &mut Machine, delimiter: &str, given: &Given) -> Outcome<Value> {
    let Some(values) = given.value(0, "iterable") else {
        return Err("join needs a list of texts".into());
    };
    let items = iterate::collect(machine, values)?;
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        let part = item.as_text().ok_or_else(|| {
            format!(
                "join needs texts; element {index} is {}, a {}; str(…) makes a text",
                short(item),
                item.type_name()
            )
        })?;
        if index > 0 {
            out += delimiter;
        }
        out += part;
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    machine.text(out)
}

fn split(machine: &mut Machine, text: &str, given: &Given) -> Outcome<Value> {
    let mut parts: Vec<&str> = Vec::new();
    if given.name == "splitlines" {
        parts.extend(text.lines());
    } else {
        let most = given.integer(1, "maxsplit")?.unwrap_or(-1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let is_reversed = given.name == "rsplit";
        match given.text(0, "sep")? {
            Some("") => {
                return Err(format!("{} needs a separator that is not empty", given.name).into());
            }
            Some(separator) if is_reversed => {
                parts.extend(text.rsplitn(most.saturating_add(1), separator));
                parts.reverse();
            }
            Some(separator) => parts.extend(text.splitn(most.saturating_add(1), separator)),
            None if is_reversed => {
                let mut rest = text.trim_end();
                while parts.len() < most && !rest.is_empty() {
                    let start = rest.rfind(char::is_whitespace);
                    let start = start.map_or(0, |at| {
                        at + rest[at..].chars().next().map_or(1, char::len_utf8)
                    });
                    parts.push(&rest[start..]);
                    rest = rest[..start].trim_end();
                }
                parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
                parts.reverse();
            }
            None => {
                let mut rest = text.trim_start();
                while parts.len() < most && !rest.is_empty() {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    parts.push(&rest[..end]);
                    rest = rest[end..].trim_start();
                }
                parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
            }
        }
    }
    machine.steps(parts.len())?;
    machine.allocate(text.len())?;
    let items = parts.into_iter().map(Value::from).collect();
    machine.list(items)
}

fn partition(machine: &mut Machine, text: &str, given: &Given) -> Outcome<Value> {
    let separator = given.required(0, "sep")?;
    if separator.is_empty() {
        return Err(format!("{} needs a separator that is not empty", given.name).into());
    }
    let parts = match given.name {
        "partition" => text.split_once(separator).map(|(a, b)| [a, separator, b]),
        _ => text.rsplit_once(separator).map(|(a, b)| [a, separator, b]),
    };
    let parts = parts.unwrap_or(match given.name {
        "partition" => [text, "", ""],
        _ => ["", "", text],
    });
    machine.allocate(text.len())?;
    machine.tuple(parts.into_iter().map(Value::from).collect())
}

fn ends(text: &str, given: &Given) -> Outcome<Value> {
    let check = |part: &str| match given.name {
        "startswith" => text.starts_with(part),
        _ => text.ends_with(part),
    };
    match given.value(0, "prefix").map(|value| &value.0) {
        Some(Kind::Tuple(parts)) => {
            let mut holds = false;
            for part in &parts.items {
                let part = part.as_text();
                holds |= check(part.ok_or_else(|| format!("{} needs texts", given.name))?);
            }
            Ok(holds.into())
        }
        _ => Ok(check(given.required(0, "prefix")?).into()),
    }
}

fn find(machine: &mut Machine, text: &str, given: &Given) -> Outcome<Value> {
    let part = given.required(0, "sub")?;
    machine.steps(text.len() / 16)?;
    let letters = text.chars().count() as i128;
    let bound = |given: Option<i128>, default: i128| {
        let given = given.unwrap_or(default);
        let given = if given < 0 {
            given.saturating_add(letters)
        } else {
            given
        };
        usize::try_from(given.clamp(0, letters)).unwrap_or(0)
    };
    let start = bound(given.integer(1, "start")?, 0);
    let end = bound(given.integer(2, "end")?, letters);
    let byte = |letter: usize| {
        text.char_indices()
            .nth(letter)
            .map_or(text.len(), |(at, _)| at)
    };
    let Some(range) = text.get(byte(start)..byte(end.max(start))) else {
        return Ok((-1i128).into());
    };
    if given.name == "count" {
        let count = match part.is_empty() {
            true => range.chars().count() + 1,
            false => range.matches(part).count(),
        };
        return Ok((count as i128).into());
    }
    let found = match given.name.starts_with('r') {
        true => range.rfind(part),
        false => range.find(part),
    };
    match found {
        Some(at) => Ok(((start + range[..at].chars().count()) as i128).into()),
        None if given.name.ends_with("find") => Ok((-1i128).into()),
        None => Err(format!(
            "{}: {part:?} is not in {}",
            given.name,
            short(&Value::from(text))
        )
        .into()),
    }
}

fn replace(machine: &mut Machine, text: &str, given: &Given) -> Outcome<Value> {
    let (old, new) = (given.required(0, "old")?, given.required(1, "new")?);
    let most = given.integer(2, "count")?.unwrap_or(-1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = match old.is_empty() {
        true => text.chars().count() + 1,
        false => text.matches(old).count(),
    };
    machine.check_text(
        text.len()
            .saturating_add(found.min(most).saturating_mul(new.len())),
    )?;
    Ok(text.replacen(old, new, most).into())
}

fn stripped<'t>(text: &'t str, given: &Given) -> Outcome<&'t str> {
    let part = given.text(0, "chars")?;
    Ok(match (given.name, part) {
        ("removeprefix", Some(part)) => text.strip_prefix(part).unwrap_or(text),
        ("removesuffix", Some(part)) => text.strip_suffix(part).unwrap_or(text),
        ("removeprefix" | "removesuffix", None) => {
            return Err(format!("{} needs a text", given.name).into());
        }
        ("strip", None) => text.trim(),
        ("lstrip", None) => text.trim_start(),
        ("rstrip", None) => text.trim_end(),
        (name, Some(letters)) => {
            let is_stripped = |letter: char| letters.contains(letter);
            match name {
                "strip" => text.trim_matches(is_stripped),
                "lstrip" => text.trim_start_matches(is_stripped),
                _ => text.trim_end_matches(is_stripped),
            }
        }
        _ => text,
    })
}

fn padded(machine: &mut Machine, text: &str, given: &Given) -> Outcome<Value> {
    if given.name == "expandtabs" {
        let size = given.integer(0, "tabsize")?.unwrap_or(8).clamp(0, 1_000) as usize;
        machine.check_text(text.len().saturating_add(text.matches('\t').count() * size))?;
        let (mut out, mut column) = (String::new(), 0usize);
        for letter in text.chars() {
            match letter {
                '\t' if size > 0 => {
                    let count = size - column % size;
                    out.extend(std::iter::repeat_n(' ', count));
                    column += count;
                }
                '\t' => {}
                '\n' => {
                    out.push(letter);
                    column = 0;
                }
                _ => {
                    out.push(letter);
                    column += 1;
                }
            }
        }
        return machine.text(out);
    }
    let width = given.integer(0, "width")?;
    let width = width.ok_or_else(|| format!("{} needs a width", given.name))?;
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    machine.check_text(width)?;
    let missing = width.saturating_sub(text.chars().count());
    let fill = match given.name {
        "zfill" => "0",
        _ => given.text(1, "fillchar")?.unwrap_or(" "),
    };
    if fill.chars().count() != 1 {
        return Err(format!(
            "{} needs one character to fill with, not {fill:?}",
            given.name
        )
        .into());
    }
    machine.check_text(missing.saturating_mul(fill.len()))?;
    let pad = |count: usize| fill.repeat(count);
    let out = match given.name {
        "ljust" => format!("{text}{}", pad(missing)),
        "rjust" => format!("{}{text}", pad(missing)),
        "center" => {
            // Python puts the odd one left if the width is odd.
            let left = missing / 2 + (missing & width & 1);
            format!("{}{text}{}", pad(left), pad(missing - left))
        }
        _ => match text.strip_prefix(['+', '-']) {
            Some(rest) => format!("{}{}{rest}", &text[..1], pad(missing)),
            None => format!("{}{text}", pad(missing)),
        },
    };
    machine.text(out)
}

fn with_case(text: &str, name: &str) -> String {
    match name {
        "lower" | "casefold" => text.to_lowercase(),
        "upper" => text.to_uppercase(),
        "swapcase" => text
            .chars()
            .flat_map(|letter| {
                let swapped: Vec<char> = match letter.is_uppercase() {
                    true => letter.to_lowercase().collect(),
                    false => letter.to_uppercase().collect(),
                };
                swapped
            })
            .collect(),
        _ => {
            let mut out = String::new();
            let mut is_inside = false;
            for letter in text.chars() {
                match is_inside {
                    true => out.extend(letter.to_lowercase()),
                    false => out.extend(letter.to_uppercase()),
                }
                is_inside = name == "capitalize" || letter.is_alphabetic();
            }
            out
        }
    }
}

fn is(text: &str, name: &str) -> bool {
    let all = |check: fn(char) -> bool| !text.is_empty() && text.chars().all(check);
    let has_case = |letter: char| letter.is_lowercase() || letter.is_uppercase();
    match name {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "isdigit" | "isdecimal" => all(|letter| letter.is_ascii_digit()),
        "isnumeric" => all(char::is_numeric),
        "isspace" => all(char::is_whitespace),
        "isprintable" => text.chars().all(|letter| !letter.is_control()),
        "islower" => text.chars().any(has_case) && !text.chars().any(char::is_uppercase),
        "isupper" => text.chars().any(has_case) && !text.chars().any(char::is_lowercase),
        "istitle" => text.chars().any(has_case) && with_case(text, "title") == text,
        _ => {
            let mut letters = text.chars();
            let is_start = |letter: char| letter == '_' || letter.is_alphabetic();
            letters.next().is_some_and(is_start)
                && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
        }
    }
}
