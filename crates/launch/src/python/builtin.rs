//! Built-in functions and classes.

use std::rc::Rc;

use super::arithmetic::binary;
use super::compare::is_less;
use super::fault::Outcome;
use super::format_spec;
use super::given_arguments::Given;
use super::item::{self, TYPES};
use super::iterate;
use super::iterator_functions::{iterator, next};
use super::machine::{Arguments, Machine};
use super::number_functions::{double_of, integer_of, number};
use super::number_text::exact_integer;
use super::printed::{ascii, representation, short, text};
use super::tree::BinaryOperator;
use super::value::{Kind, Range, Value};

/// Functions that are no classes.
const FUNCTIONS: &[&str] = &[
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "callable",
    "chr",
    "dir",
    "divmod",
    "format",
    "getattr",
    "hasattr",
    "hex",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "max",
    "min",
    "next",
    "oct",
    "ord",
    "pow",
    "repr",
    "round",
    "sorted",
    "sum",
];

/// Classes that can be called or named.
const CLASSES: &[&str] = &[
    "bool",
    "bytes",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "int",
    "list",
    "map",
    "object",
    "range",
    "reversed",
    "set",
    "slice",
    "str",
    "tuple",
    "type",
    "zip",
];

/// Functions of Python that an expression cannot use, and the reason.
const REFUSED: &[(&str, &str)] = &[
    ("__import__", "an expression imports nothing"),
    ("open", "an expression reads no files"),
    ("print", "an expression prints nothing"),
    ("input", "an expression asks for nothing"),
    ("eval", "an expression runs no other code"),
    ("exec", "an expression runs no other code"),
    ("compile", "an expression runs no other code"),
    ("globals", "an expression has no global variables"),
    ("locals", "an expression has no local variables"),
    ("complex", "complex numbers are not supported"),
    ("bytearray", "bytes cannot change here; use bytes"),
    ("memoryview", "use bytes"),
    ("vars", "use dir(…)"),
    ("id", "a value has no address here"),
    ("hash", "a value has no number here"),
    ("setattr", "an expression changes nothing"),
    ("delattr", "an expression changes nothing"),
];

/// The built-in function or class of that name.
pub(super) fn named(name: &str) -> Option<Value> {
    let function = FUNCTIONS.iter().find(|known| **known == name);
    let class = || CLASSES.iter().find(|known| **known == name);
    match function {
        Some(name) => Some(Value(Kind::Function(name))),
        None => class().map(|name| Value(Kind::Type(name))),
    }
}

/// Why a function of Python is not available here.
pub(super) fn refused(name: &str) -> Option<&'static str> {
    let found = REFUSED.iter().find(|(known, _)| *known == name);
    found.map(|(_, reason)| *reason)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().chain(CLASSES).copied()
}

/// Calls a built-in function or class.
pub(super) fn call(
    machine: &mut Machine,
    name: &'static str,
    arguments: Arguments,
) -> Outcome<Value> {
    let mut given = Given { name, arguments };
    match name {
        "int" | "float" | "bool" | "str" | "bytes" => conversion(machine, &mut given),
        "list" | "tuple" | "set" | "frozenset" | "dict" => collection(machine, &mut given),
        "range" | "slice" => range(&given),
        "zip" | "enumerate" | "map" | "filter" | "reversed" | "iter" => iterator(machine, given),
        "next" => next(machine, &given),
        "any" | "all" | "sum" => folded(machine, &mut given),
        "min" | "max" => extreme(machine, &mut given),
        "sorted" => sorted(machine, &mut given),
        "abs" | "round" | "divmod" | "pow" | "bin" | "hex" | "oct" => number(machine, &mut given),
        "chr" | "ord" | "format" | "repr" | "ascii" => printed(machine, &given),
        "len" => length(&given),
        _ => inspection(machine, &mut given),
    }
}

fn conversion(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    if given.count() == 0 && given.arguments.named.is_empty() {
        return match given.name {
            "int" => Ok(0i128.into()),
            "float" => Ok(0.0.into()),
            "bool" => Ok(false.into()),
            "bytes" => Ok(Value::bytes(&[])),
            _ => Ok("".into()),
        };
    }
    let base = given.named("base");
    if let Some(base) = base {
        given.arguments.positional.push(base);
    }
    let most = if matches!(given.name, "int" | "bytes" | "str") {
        2
    } else {
        1
    };
    given.between(1, most)?;
    let value = given.value(0)?;
    let wrong = || {
        let kind = if given.name == "int" {
            "an integer"
        } else {
            "a number"
        };
        format!("{}({}): this is not {kind}", given.name, short(value))
    };
    match (given.name, &value.0) {
        ("int", Kind::Text(text)) => {
            let base = if given.count() == 2 {
                given.integer(1)?
            } else {
                10
            };
            integer_of(text, base)
                .ok_or_else(|| wrong().into())
                .map(Value::from)
        }
        ("int", Kind::Double(double)) => {
            let integer = exact_integer(double.trunc());
            integer.ok_or_else(|| wrong().into()).map(Value::from)
        }
        ("int", _) => value
            .as_integer()
            .ok_or_else(|| wrong().into())
            .map(Value::from),
        ("float", Kind::Text(text)) => double_of(text)
            .ok_or_else(|| wrong().into())
            .map(Value::from),
        ("float", _) => value
            .as_double()
            .ok_or_else(|| wrong().into())
            .map(Value::from),
        ("bool", _) => Ok(value.truth().into()),
        ("str", Kind::Bytes(bytes)) if given.count() == 2 => match std::str::from_utf8(bytes) {
            Ok(text) => machine.text(text),
            Err(_) => Err(format!("{} is not UTF-8", short(value)).into()),
        },
        ("str", _) => machine.text(text(value)),
        (_, Kind::Text(text)) => machine.bytes(text.as_bytes().to_vec()),
        (_, Kind::Bytes(_)) => Ok(value.clone()),
        (_, Kind::Integer(count)) => {
            let count = usize::try_from(*count).map_err(|_| "bytes: the length is negative")?;
            machine.check_text(count)?;
            machine.bytes(vec![0; count])
        }
        _ => {
            let items = iterate::collect(machine, value)?;
            let bytes = items.iter().map(|item| {
                let byte = item.as_integer().and_then(|byte| u8::try_from(byte).ok());
                byte.ok_or_else(|| {
                    format!("bytes holds numbers from 0 to 255, not {}", short(item))
                })
            });
            machine.bytes(bytes.collect::<Result<_, _>>()?)
        }
    }
}

fn collection(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    if given.name == "dict" {
        return dictionary(machine, given);
    }
    given.between(0, 1)?;
    let items = match given.arguments.positional.first() {
        Some(values) => iterate::collect(machine, values)?,
        None => Vec::new(),
    };
    match given.name {
        "list" => machine.list(items),
        "tuple" => machine.tuple(items),
        name => machine.set(items, name == "frozenset"),
    }
}

fn dictionary(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    let named = std::mem::take(&mut given.arguments.named);
    given.between(0, 1)?;
    let mut entries = Vec::new();
    match given.arguments.positional.first() {
        None => {}
        Some(Value(Kind::Dictionary(other))) => entries.extend(other.entries.iter().cloned()),
        Some(values) => {
            for pair in iterate::collect(machine, values)? {
                let items = iterate::collect(machine, &pair)?;
                let [name, value] = <[Value; 2]>::try_from(items)
                    .map_err(|_| format!("dict needs pairs, not {}", short(&pair)))?;
                entries.push((name, value));
            }
        }
    }
    entries.extend(
        named
            .into_iter()
            .map(|(name, value)| (Value(Kind::Text(name)), value)),
    );
    machine.dictionary(entries)
}

fn range(given: &Given) -> Outcome<Value> {
    given.between(1, 3)?;
    let values = &given.arguments.positional;
    let all = match values.len() {
        1 => [None, values.first(), None],
        _ => [values.first(), values.get(1), values.get(2)],
    };
    if given.name == "slice" {
        let parts = all.map(|part| part.cloned().unwrap_or(Value::NONE));
        return Ok(Value(Kind::Slice(Rc::new(parts))));
    }
    let part = |value: Option<&Value>, default: i128| match value {
        None => Ok(default),
        Some(value) => value.as_integer().ok_or_else(|| {
            format!(
                "range needs integers, not {}, a {}",
                short(value),
                value.type_name()
            )
        }),
    };
    let range = Range {
        start: part(all[0], 0)?,
        stop: part(all[1], 0)?,
        step: part(all[2], 1)?,
    };
    if range.step == 0 {
        return Err("range: the step is 0".into());
    }
    Ok(Value(Kind::Range(range)))
}

fn folded(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    let start = given.named("start");
    given.between(1, if given.name == "sum" { 2 } else { 1 })?;
    let mut source = iterate::iterator(machine, given.value(0)?)?;
    if given.name != "sum" {
        let wanted = given.name == "any";
        while let Some(item) = source.next(machine)? {
            if item.truth() == wanted {
                return Ok(wanted.into());
            }
        }
        return Ok((!wanted).into());
    }
    let start = start.or_else(|| given.arguments.positional.get(1).cloned());
    let mut sum = start.unwrap_or(0i128.into());
    if matches!(sum.0, Kind::Text(_)) {
        return Err("sum adds no texts; ''.join(…) does".into());
    }
    while let Some(item) = source.next(machine)? {
        sum = binary(machine, &sum, BinaryOperator::Add, &item)?;
    }
    Ok(sum)
}

/// A value for an order: the value itself, or what the key function makes of it.
fn order_key(machine: &mut Machine, key: Option<&Value>, value: &Value) -> Outcome<Value> {
    match key {
        Some(function) => machine.call_with(function, value.clone()),
        None => Ok(value.clone()),
    }
}

fn key_function(given: &mut Given) -> Option<Value> {
    given
        .named("key")
        .filter(|key| !matches!(key.0, Kind::None))
}

fn extreme(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    let key = key_function(given);
    let default = given.named("default");
    given.between(1, usize::MAX)?;
    let items = match given.arguments.positional.as_slice() {
        [values] => iterate::collect(machine, values)?,
        several => several.to_vec(),
    };
    let mut best: Option<(Value, Value)> = None;
    for item in items {
        let order = order_key(machine, key.as_ref(), &item)?;
        let is_better = match &best {
            None => true,
            Some((_, known)) if given.name == "min" => is_less(machine, &order, known)?,
            Some((_, known)) => is_less(machine, known, &order)?,
        };
        if is_better {
            best = Some((item, order));
        }
    }
    best.map(|(item, _)| item)
        .or(default)
        .ok_or_else(|| format!("{} of no values; give a default=VALUE", given.name).into())
}

fn sorted(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    let key = key_function(given);
    let is_reversed = given
        .named("reverse")
        .is_some_and(|reverse| reverse.truth());
    given.between(1, 1)?;
    let items = iterate::collect(machine, given.value(0)?)?;
    let mut rows = Vec::with_capacity(items.len());
    for item in items {
        let order = order_key(machine, key.as_ref(), &item)?;
        rows.push((order, item));
    }
    let rows = merge_sorted(machine, rows, is_reversed)?;
    machine.list(rows.into_iter().map(|(_, item)| item).collect())
}

type Row = (Value, Value);

/// Merge sort: stable, and a comparison may fail.
fn merge_sorted(machine: &mut Machine, mut rows: Vec<Row>, is_reversed: bool) -> Outcome<Vec<Row>> {
    if rows.len() < 2 {
        return Ok(rows);
    }
    let right = rows.split_off(rows.len() / 2);
    let mut left = merge_sorted(machine, rows, is_reversed)?
        .into_iter()
        .peekable();
    let mut right = merge_sorted(machine, right, is_reversed)?
        .into_iter()
        .peekable();
    let mut merged = Vec::with_capacity(left.len() + right.len());
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        // Equal rows keep their order, also in reverse.
        let is_right_first = match is_reversed {
            true => is_less(machine, &one.0, &other.0)?,
            false => is_less(machine, &other.0, &one.0)?,
        };
        merged.extend(if is_right_first {
            right.next()
        } else {
            left.next()
        });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

fn printed(machine: &mut Machine, given: &Given) -> Outcome<Value> {
    given.between(1, if given.name == "format" { 2 } else { 1 })?;
    let value = given.value(0)?;
    match given.name {
        "chr" => {
            let code = given.integer(0)?;
            let letter = u32::try_from(code).ok().and_then(char::from_u32);
            let letter = letter.ok_or_else(|| format!("chr({code}) is no character"))?;
            Ok(letter.to_string().into())
        }
        "ord" => {
            let mut letters = value.as_text().unwrap_or("").chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => Ok(i128::from(letter as u32).into()),
                _ => Err(format!("ord needs one character, not {}", short(value)).into()),
            }
        }
        "repr" => machine.text(representation(value)),
        "ascii" => machine.text(ascii(value)),
        _ => {
            let specification = match given.arguments.positional.get(1) {
                None => "",
                Some(specification) => specification.as_text().ok_or_else(|| {
                    format!(
                        "format needs a text as format, not {}",
                        short(specification)
                    )
                })?,
            };
            let text = format_spec::format(machine, value, specification)?;
            machine.text(text)
        }
    }
}

fn length(given: &Given) -> Outcome<Value> {
    given.between(1, 1)?;
    let value = given.value(0)?;
    let length = match &value.0 {
        Kind::Text(text) => Some(text.chars().count()),
        Kind::Bytes(bytes) => Some(bytes.len()),
        Kind::List(sequence) | Kind::Tuple(sequence) => Some(sequence.items.len()),
        Kind::Set(set) => Some(set.length()),
        Kind::Dictionary(dictionary) | Kind::View(_, dictionary) => Some(dictionary.length()),
        Kind::Range(range) => Some(range.length()),
        Kind::Object(object) => object.length(),
        _ => None,
    };
    let length = length.ok_or_else(|| {
        format!(
            "len needs a text or a collection, not {}, a {}",
            short(value),
            value.type_name()
        )
    })?;
    Ok((length as i128).into())
}

/// Functions that look at a value's type and attributes.
fn inspection(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    match given.name {
        "type" => {
            given.between(1, 1)?;
            let value = given.value(0)?;
            item::type_of(value).ok_or_else(|| {
                format!(
                    "type: {} has no class here; use isinstance or its attributes",
                    value.type_name()
                )
                .into()
            })
        }
        "isinstance" | "issubclass" => {
            given.between(2, 2)?;
            let value = given.value(0)?;
            let name = match (given.name, &value.0) {
                ("issubclass", Kind::Type(name)) => (*name).to_owned(),
                ("issubclass", _) => {
                    return Err(format!("issubclass needs a class, not {}", short(value)).into());
                }
                _ => value.type_name(),
            };
            is_of(&name, given.value(1)?).map(Value::from)
        }
        "callable" => {
            given.between(1, 1)?;
            Ok(matches!(
                given.value(0)?.0,
                Kind::Function(_)
                    | Kind::Type(_)
                    | Kind::Method(_)
                    | Kind::TypeMethod(..)
                    | Kind::Lambda(_)
            )
            .into())
        }
        "getattr" | "hasattr" => {
            let most = if given.name == "getattr" { 3 } else { 2 };
            given.between(2, most)?;
            let name = given.value(1)?;
            let name = name.as_text().ok_or_else(|| {
                format!("{} needs a text as name, not {}", given.name, short(name))
            })?;
            let value = given.value(0)?;
            let found = item::find_attribute(value, name)?;
            if given.name == "hasattr" {
                return Ok(found.is_some().into());
            }
            match found.or_else(|| given.arguments.positional.get(2).cloned()) {
                Some(found) => Ok(found),
                None => item::attribute(machine, value, name),
            }
        }
        "dir" => {
            given.between(1, 1)?;
            let mut names = item::attribute_names(given.value(0)?);
            names.sort();
            machine.list(names.into_iter().map(Value::from).collect())
        }
        name => Err(format!("{name} makes nothing here; it is only for isinstance").into()),
    }
}

/// Whether a type is one of these classes.
fn is_of(name: &str, classes: &Value) -> Outcome<bool> {
    match &classes.0 {
        Kind::Type(class) => {
            Ok(*class == "object" || *class == name || (*class == "int" && name == "bool"))
        }
        Kind::Tuple(several) => {
            let mut holds = false;
            for class in &several.items {
                holds |= is_of(name, class)?;
            }
            Ok(holds)
        }
        _ => {
            let known: Vec<&str> = TYPES.iter().take(10).copied().collect();
            Err(format!(
                "isinstance needs a class or a tuple of classes, not {}; there are {}",
                short(classes),
                known.join(", ")
            )
            .into())
        }
    }
}
