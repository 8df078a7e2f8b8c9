//! Evaluator: computes the value of an expression.

use std::rc::Rc;
use std::sync::Arc;

use super::arithmetic::{binary, unary};
use super::compare::compare;
use super::cost::Cost;
use super::error::ExpressionError;
use super::fault::{Fault, Outcome};
use super::functions;
use super::limits::CHARACTERS_MAX;
use super::names::Names;
use super::parser;
use super::printed::short;
use super::text_methods;
use super::tree::{Node, NodeKind};
use super::value::{Kind, Value};
use crate::close_names::did_you_mean;

/// A parsed expression of the basics. It may be evaluated by several threads at once.
///
/// ```
/// use pteros_launch::python::{Expression, Names, Value};
///
/// let expression = Expression::parse("speed > limit and 'base' in frame")?;
/// let names = Names::new()
///     .with("speed", Value::from(2.5))
///     .with("limit", Value::from(1.0))
///     .with("frame", "base_link".into());
/// assert!(expression.evaluate(&names)?.truth());
/// # Ok::<(), pteros_launch::python::ExpressionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    root: Arc<Node>,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// Invalid grammar, with the position; an expression beyond a limit; a construct
    /// that needs Python.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let text: Arc<str> = source.into();
        let wrong = |fault| ExpressionError::new(&text, fault);
        let letters: Vec<char> = source.chars().collect();
        if letters.len() > CHARACTERS_MAX {
            let message = format!("it is longer than {CHARACTERS_MAX} characters");
            return Err(wrong(message.into()));
        }
        let root = parser::parse(&letters).map_err(wrong)?;
        Ok(Self {
            source: text,
            root: root.into(),
        })
    }

    /// Computes the value. Blocks for a tenth of a second at most, and reads
    /// nothing but the names.
    ///
    /// # Errors
    /// An operation that is not possible, with its position and the values; a
    /// limit that is exceeded; an operation that needs Python.
    pub fn evaluate(&self, names: &Names) -> Result<Value, ExpressionError> {
        let mut cost = Cost::new();
        value_of(&mut cost, &self.root, names)
            .map_err(|fault| ExpressionError::new(&self.source, fault))
    }
}

/// The value of a node. A fault without a position gets this node's.
fn value_of(cost: &mut Cost, node: &Node, names: &Names) -> Outcome<Value> {
    unplaced_value(cost, node, names).map_err(|fault| fault.or_at(node.at))
}

fn unplaced_value(cost: &mut Cost, node: &Node, names: &Names) -> Outcome<Value> {
    cost.add(1)?;
    match &node.kind {
        NodeKind::Constant(constant) => Ok(constant.value()),
        NodeKind::Name(name) => name_value(name, names),
        NodeKind::Tuple(nodes) => {
            let items = values_of(cost, nodes, names)?;
            cost.add_items(items.len())?;
            Ok(Value(Kind::Tuple(items.into())))
        }
        NodeKind::List(nodes) => {
            let items = values_of(cost, nodes, names)?;
            cost.list(items)
        }
        NodeKind::Not(node) => Ok((!value_of(cost, node, names)?.truth()).into()),
        NodeKind::Unary(sign, node) => unary(*sign, &value_of(cost, node, names)?),
        NodeKind::Binary(operator, both) => {
            let left = value_of(cost, &both[0], names)?;
            let right = value_of(cost, &both[1], names)?;
            binary(cost, &left, *operator, &right)
        }
        NodeKind::And(nodes) => first_with(cost, nodes, names, false),
        NodeKind::Or(nodes) => first_with(cost, nodes, names, true),
        NodeKind::Comparison(first, others) => {
            let mut left = value_of(cost, first, names)?;
            for (comparator, node) in others {
                let right = value_of(cost, node, names)?;
                if !compare(cost, &left, *comparator, &right)? {
                    return Ok(false.into());
                }
                left = right;
            }
            Ok(true.into())
        }
        NodeKind::Conditional(all) => {
            let [condition, then, otherwise] = &**all;
            let holds = value_of(cost, condition, names)?.truth();
            value_of(cost, if holds { then } else { otherwise }, names)
        }
        NodeKind::Attribute(of, name) => attribute(of, name, cost, names),
        NodeKind::Item(both) => {
            let of = value_of(cost, &both[0], names)?;
            let index = value_of(cost, &both[1], names)?;
            item(cost, &of, &index)
        }
        NodeKind::Slice(of, parts) => {
            let of = value_of(cost, of, names)?;
            let mut values = [None; 3];
            for (value, node) in values.iter_mut().zip(parts) {
                if let Some(node) = node {
                    *value = slice_index(&value_of(cost, node, names)?)?;
                }
            }
            slice(cost, &of, values)
        }
        NodeKind::Call(function, arguments) => call(cost, function, arguments, names),
    }
}

fn values_of(cost: &mut Cost, nodes: &[Node], names: &Names) -> Outcome<Vec<Value>> {
    let values = nodes.iter().map(|node| value_of(cost, node, names));
    values.collect()
}

/// `and` and `or`: the first value with this truth, else the last one.
fn first_with(cost: &mut Cost, nodes: &[Node], names: &Names, truth: bool) -> Outcome<Value> {
    let mut last = Value::NONE;
    for node in nodes {
        last = value_of(cost, node, names)?;
        if last.truth() == truth {
            break;
        }
    }
    Ok(last)
}

fn name_value(name: &Arc<str>, names: &Names) -> Outcome<Value> {
    if let Some(value) = names.value(name) {
        return Ok(value);
    }
    if functions::NAMES.contains(&&**name) || functions::of_python(name) || names.has_module(name) {
        // A call of it never asks for its value.
        return Err(Fault::needs_python(format!("the name {name} as a value")));
    }
    let known = names.known().chain(functions::NAMES.iter().copied());
    let hint = format!("a text needs quotes: '{name}'");
    let similar = did_you_mean(name, known, &hint);
    Err(Fault {
        unknown_name: Some(name.clone()),
        ..format!("the name {name} is not known{similar}").into()
    })
}

fn attribute(of: &Node, name: &Arc<str>, cost: &mut Cost, names: &Names) -> Outcome<Value> {
    if let Some(value) = module_name(of, name, names).and_then(functions::constant) {
        return Ok(value);
    }
    let value = value_of(cost, of, names)?;
    let Kind::Object(object) = &value.0 else {
        return Err(Fault::needs_python(format!(
            "the attribute {name:?} of a {}",
            value.type_name()
        )));
    };
    if let Some(value) = object.attribute(name) {
        return Ok(value);
    }
    let attributes = object.attribute_names();
    if attributes.is_empty() || name.starts_with("__") {
        return Err(Fault::needs_python(format!(
            "the attribute {name:?} of a {}",
            value.type_name()
        )));
    }
    let hint = format!("there are: {}", attributes.join(", "));
    let similar = did_you_mean(name, attributes.iter().map(String::as_str), &hint);
    let of = value.type_name();
    Err(format!("a {of} has no attribute {name:?}{similar}").into())
}

/// The name in a module of the names, for `math.NAME`.
fn module_name<'n>(of: &Node, name: &'n str, names: &Names) -> Option<&'n str> {
    match &of.kind {
        NodeKind::Name(module) if names.has_module(module) => {
            (names.value(module).is_none() && **module == *"math").then_some(name)
        }
        _ => None,
    }
}

fn call(cost: &mut Cost, function: &Node, arguments: &[Node], names: &Names) -> Outcome<Value> {
    match &function.kind {
        NodeKind::Name(name) if names.value(name).is_none() => {
            let in_math = names.has_module("math") && functions::in_math(name);
            if !in_math && !functions::NAMES.contains(&&**name) {
                let fault = match functions::of_python(name) {
                    true => Fault::needs_python(format!("the function {name}")),
                    false => name_value(name, names)
                        .err()
                        .unwrap_or_else(|| format!("{name} is no function").into()),
                };
                return Err(fault.or_at(function.at));
            }
            let arguments = values_of(cost, arguments, names)?;
            match in_math {
                true => functions::call_math(name, &arguments),
                false => functions::call(cost, name, &arguments),
            }
        }
        NodeKind::Attribute(of, name) => {
            if let Some(name) = module_name(of, name, names) {
                let arguments = values_of(cost, arguments, names)?;
                return functions::call_math(name, &arguments);
            }
            let of = value_of(cost, of, names)?;
            let arguments = values_of(cost, arguments, names)?;
            match &of.0 {
                Kind::Text(text) => text_methods::call(cost, text, name, &arguments),
                _ => Err(Fault::needs_python(format!(
                    "the method {name} of a {}",
                    of.type_name()
                ))),
            }
        }
        _ => {
            let value = value_of(cost, function, names)?;
            Err(format!("{} is no function", short(&value)).into())
        }
    }
}

/// `value[index]`
fn item(cost: &mut Cost, value: &Value, index: &Value) -> Outcome<Value> {
    let Some(length) = value.length() else {
        let of = value.type_name();
        return Err(format!("{} is a {of}; it has no elements", short(value)).into());
    };
    cost.add(length / 16)?;
    let Some(wanted) = index.as_integer() else {
        let of = index.type_name();
        let message = format!("the index {} is a {of}, not an integer", short(index));
        return Err(message.into());
    };
    let place = if wanted < 0 {
        wanted.saturating_add(length as i128)
    } else {
        wanted
    };
    let place = usize::try_from(place).ok().filter(|place| *place < length);
    let found = place.and_then(|place| value.elements(std::iter::once(place)).pop());
    found.ok_or_else(|| {
        format!(
            "the index {wanted} is out of range; {} has {length} elements",
            short(value)
        )
        .into()
    })
}

fn slice_index(value: &Value) -> Outcome<Option<i128>> {
    match value.0 {
        Kind::None => Ok(None),
        _ => value.as_integer().map(Some).ok_or_else(|| {
            let message = format!("the slice index {} is not an integer", short(value));
            message.into()
        }),
    }
}

/// `value[start:stop:step]`
fn slice(cost: &mut Cost, value: &Value, [start, stop, step]: [Option<i128>; 3]) -> Outcome<Value> {
    let Some(length) = value.length() else {
        let of = value.type_name();
        return Err(format!("{} is a {of}; it has no elements", short(value)).into());
    };
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err("the step of a slice is 0".into());
    }
    let all = length as i128;
    let (low, high) = if step > 0 { (0, all) } else { (-1, all - 1) };
    let clamp = |given: Option<i128>, default: i128| match given {
        None => default,
        Some(given) if given < 0 => given.saturating_add(all).clamp(low, high),
        Some(given) => given.clamp(low, high),
    };
    let first = clamp(start, if step > 0 { low } else { high });
    let end = clamp(stop, if step > 0 { high } else { low });
    let distance = if step > 0 { end - first } else { first - end };
    let count = (distance.max(0) as u128).div_ceil(step.unsigned_abs()) as usize;
    cost.add_items(length.max(count))?;
    let places = (0..count).map(|index| (first + step * index as i128) as usize);
    let items = value.elements(places);
    Ok(match &value.0 {
        Kind::Text(_) => items
            .iter()
            .filter_map(Value::as_text)
            .collect::<String>()
            .into(),
        Kind::Bytes(_) => {
            let bytes = items.iter().filter_map(Value::as_integer);
            Value::bytes(&bytes.map(|byte| byte as u8).collect::<Vec<u8>>())
        }
        Kind::Tuple(_) => Value(Kind::Tuple(Rc::from(items))),
        _ => Value(Kind::List(Rc::from(items))),
    })
}
