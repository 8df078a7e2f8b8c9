//! Attributes, indices and slices of values.

use std::rc::Rc;

use super::fault::Outcome;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::value::{Kind, Method, Value, checked};
use super::{
    bytes_methods, dictionary_methods, list_methods, math_module, os_module, set_methods,
    text_methods,
};
use crate::close_names::did_you_mean;

/// `value.name`
pub(super) fn attribute(machine: &mut Machine, value: &Value, name: &str) -> Outcome<Value> {
    machine.steps(1)?;
    if let Some(found) = find_attribute(value, name)? {
        return Ok(found);
    }
    let known = attribute_names(value);
    let similar = match known.is_empty() {
        true => "; it has none".to_owned(),
        false => did_you_mean(
            name,
            known.iter().map(String::as_str),
            &format!(
                "it has: {}",
                crate::close_names::listed(known.iter().map(String::as_str))
            ),
        ),
    };
    let hint = match (&value.0, name.starts_with("__")) {
        (_, true) => "; names with two underscores are not available",
        _ => &similar,
    };
    let of = match &value.0 {
        Kind::Module(module) => format!("the module {module}"),
        Kind::Object(_) => format!("a {}", value.type_name()),
        _ => format!("{}, a {},", short(value), value.type_name()),
    };
    Err(format!("{of} has no attribute {name:?}{hint}").into())
}

/// The attribute; none if the value has none of that name.
pub(super) fn find_attribute(value: &Value, name: &str) -> Outcome<Option<Value>> {
    let number = |value: i128| Some(Value::from(value));
    Ok(match (&value.0, name) {
        (Kind::Object(object), _) => object.attribute(name),
        (Kind::Module("math"), _) => math_module::attribute(name),
        (Kind::Module(_), _) => os_module::path_attribute(name),
        (Kind::Integer(_) | Kind::Bool(_), "real" | "numerator") => {
            value.as_integer().map(Value::from)
        }
        (Kind::Integer(_) | Kind::Bool(_), "imag") => number(0),
        (Kind::Integer(_) | Kind::Bool(_), "denominator") => number(1),
        (Kind::Double(value), "real") => Some((*value).into()),
        (Kind::Double(_), "imag") => Some(0.0.into()),
        (Kind::Range(range), "start") => number(range.start),
        (Kind::Range(range), "stop") => number(range.stop),
        (Kind::Range(range), "step") => number(range.step),
        (Kind::Slice(parts), "start") => Some(parts[0].clone()),
        (Kind::Slice(parts), "stop") => Some(parts[1].clone()),
        (Kind::Slice(parts), "step") => Some(parts[2].clone()),
        (Kind::Type(of), "__name__") => Some((*of).into()),
        (Kind::Function(of), "__name__") => Some((*of).into()),
        (_, "__class__") => type_of(value),
        (Kind::Type(of), _) => {
            let method = methods_of(of).iter().find(|known| **known == name);
            method.map(|name| Value(Kind::TypeMethod(of, name)))
        }
        _ => match methods_of(&value.type_name())
            .iter()
            .find(|known| **known == name)
        {
            Some(name) => {
                let depth = checked(value.depth() + 1)?;
                let receiver = value.clone();
                let method = Method {
                    receiver,
                    name,
                    depth,
                };
                Some(Value(Kind::Method(Rc::new(method))))
            }
            None => None,
        },
    })
}

/// The type of a value; none for structures of the program.
pub(super) fn type_of(value: &Value) -> Option<Value> {
    let name = value.type_name();
    let known = TYPES.iter().find(|known| **known == name);
    known.map(|name| Value(Kind::Type(name)))
}

/// Every type of a value that an expression can make.
pub(super) const TYPES: &[&str] = &[
    "int",
    "float",
    "bool",
    "str",
    "bytes",
    "list",
    "tuple",
    "set",
    "frozenset",
    "dict",
    "range",
    "slice",
    "type",
    "object",
    "NoneType",
    "ellipsis",
    "function",
    "module",
    "dict_keys",
    "dict_values",
    "dict_items",
    "generator",
    "map",
    "filter",
    "zip",
    "enumerate",
    "reversed",
    "iterator",
    "builtin_function_or_method",
    "method_descriptor",
];

/// The methods of a type.
fn methods_of(type_name: &str) -> &'static [&'static str] {
    match type_name {
        "str" => text_methods::NAMES,
        "bytes" => bytes_methods::NAMES,
        "list" => list_methods::NAMES,
        "tuple" | "range" => &["count", "index"],
        "set" => set_methods::NAMES,
        "frozenset" => set_methods::FROZEN_NAMES,
        "dict" => dictionary_methods::NAMES,
        "int" | "bool" => &["bit_length", "bit_count", "conjugate", "is_integer"],
        "float" => &["is_integer", "conjugate"],
        _ => &[],
    }
}

/// The names of all attributes of a value.
pub(super) fn attribute_names(value: &Value) -> Vec<String> {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match &value.0 {
        Kind::Object(object) => object.attribute_names(),
        Kind::Module("math") => math_module::names(),
        Kind::Module(_) => texts(os_module::PATH_FUNCTIONS),
        Kind::Type(of) => texts(methods_of(of)),
        _ => texts(methods_of(&value.type_name())),
    }
}

/// Calls a method of a value that the program did not give.
pub(super) fn call_method(
    machine: &mut Machine,
    receiver: Value,
    name: &'static str,
    arguments: Arguments,
) -> Outcome<Value> {
    match &receiver.0 {
        Kind::Text(text) => text_methods::call(machine, &text.clone(), name, arguments),
        Kind::Bytes(bytes) => bytes_methods::call(machine, &bytes.clone(), name, &arguments),
        Kind::List(_) => list_methods::call(machine, receiver, name, arguments),
        Kind::Tuple(_) | Kind::Range(_) => list_methods::read(machine, &receiver, name, &arguments),
        Kind::Set(_) => set_methods::call(machine, receiver, name, &arguments),
        Kind::Dictionary(_) => dictionary_methods::call(machine, receiver, name, arguments),
        _ => math_module::number_method(&receiver, name),
    }
}

/// `value[index]`
pub(super) fn item(machine: &mut Machine, value: &Value, index: &Value) -> Outcome<Value> {
    machine.steps(1)?;
    if let Kind::Dictionary(dictionary) = &value.0 {
        let found = dictionary.value(index)?.cloned();
        return found.ok_or_else(|| {
            let keys: Vec<String> = dictionary
                .entries
                .iter()
                .take(12)
                .map(|(key, _)| short(key))
                .collect();
            format!(
                "there is no key {}; there are: {}",
                short(index),
                keys.join(", ")
            )
            .into()
        });
    }
    let Some(length) = length(value) else {
        return Err(format!(
            "{} is a {}; it has no elements",
            short(value),
            value.type_name()
        )
        .into());
    };
    if let Kind::Slice(parts) = &index.0 {
        return slice(machine, value, length, parts);
    }
    let wanted = index.as_integer().ok_or_else(|| {
        format!(
            "the index {} is a {}, not an integer",
            short(index),
            index.type_name()
        )
    })?;
    let place = if wanted < 0 {
        wanted.saturating_add(length as i128)
    } else {
        wanted
    };
    let place = usize::try_from(place).ok().filter(|place| *place < length);
    let found = place.and_then(|place| element(value, place));
    found.ok_or_else(|| {
        format!(
            "the index {wanted} is out of range; {} has {length} elements",
            short(value)
        )
        .into()
    })
}

/// Number of elements of a sequence.
fn length(value: &Value) -> Option<usize> {
    match &value.0 {
        Kind::List(sequence) | Kind::Tuple(sequence) => Some(sequence.items.len()),
        Kind::Text(text) => Some(text.chars().count()),
        Kind::Bytes(bytes) => Some(bytes.len()),
        Kind::Range(range) => Some(range.length()),
        Kind::Object(object) => object.length(),
        _ => None,
    }
}

fn element(value: &Value, index: usize) -> Option<Value> {
    match &value.0 {
        Kind::List(sequence) | Kind::Tuple(sequence) => sequence.items.get(index).cloned(),
        Kind::Text(text) => text
            .chars()
            .nth(index)
            .map(|letter| letter.to_string().into()),
        Kind::Bytes(bytes) => bytes.get(index).map(|byte| i128::from(*byte).into()),
        Kind::Range(range) => Some(range.item(index).into()),
        Kind::Object(object) => object.item(index),
        _ => None,
    }
}

/// Start, step and number of the elements that a slice selects.
pub(super) fn slice_range(parts: &[Value; 3], length: usize) -> Outcome<(i128, i128, usize)> {
    let part = |index: usize| -> Outcome<Option<i128>> {
        match parts[index].0 {
            Kind::None => Ok(None),
            _ => parts[index].as_integer().map(Some).ok_or_else(|| {
                format!("the slice index {} is not an integer", short(&parts[index])).into()
            }),
        }
    };
    let step = part(2)?.unwrap_or(1);
    if step == 0 {
        return Err("the step of a slice is 0".into());
    }
    let length = length as i128;
    let (low, high) = if step > 0 {
        (0, length)
    } else {
        (-1, length - 1)
    };
    let clamp = |given: Option<i128>, default: i128| match given {
        None => default,
        Some(given) if given < 0 => given.saturating_add(length).clamp(low, high),
        Some(given) => given.clamp(low, high),
    };
    let start = clamp(part(0)?, if step > 0 { low } else { high });
    let stop = clamp(part(1)?, if step > 0 { high } else { low });
    let range = super::value::Range { start, stop, step };
    Ok((start, step, range.length()))
}

fn slice(
    machine: &mut Machine,
    value: &Value,
    length: usize,
    parts: &[Value; 3],
) -> Outcome<Value> {
    let (start, step, count) = slice_range(parts, length)?;
    machine.steps(count / 16)?;
    let at = |index: usize| usize::try_from(start + step * index as i128).unwrap_or(0);
    match &value.0 {
        Kind::Text(text) => {
            machine.steps(length / 16)?;
            let letters: Vec<char> = text.chars().collect();
            let text: String = (0..count)
                .filter_map(|index| letters.get(at(index)))
                .collect();
            machine.text(text)
        }
        Kind::Bytes(bytes) => {
            let bytes = (0..count).filter_map(|index| bytes.get(at(index)).copied());
            machine.bytes(bytes.collect())
        }
        Kind::Range(range) => Ok(Value(Kind::Range(super::value::Range {
            start: range.item(at(0)),
            stop: range.item(at(0)).saturating_add(
                range
                    .step
                    .saturating_mul(step)
                    .saturating_mul(count as i128),
            ),
            step: range.step.saturating_mul(step),
        }))),
        _ => {
            machine.allocate(count.saturating_mul(size_of::<Value>()))?;
            let items = (0..count)
                .filter_map(|index| element(value, at(index)))
                .collect();
            match &value.0 {
                Kind::Tuple(_) => machine.tuple(items),
                _ => machine.list(items),
            }
        }
    }
}
