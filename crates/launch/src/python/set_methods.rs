//! Methods of sets and frozen sets.

use std::rc::Rc;

use super::dictionary::Set;
use super::fault::Outcome;
use super::iterate;
use super::list_methods::changes;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::tree::BinaryOperator;
use super::value::{Kind, Value};

pub(super) const NAMES: &[&str] = &[
    "add",
    "clear",
    "copy",
    "difference",
    "discard",
    "intersection",
    "isdisjoint",
    "issubset",
    "issuperset",
    "pop",
    "remove",
    "symmetric_difference",
    "union",
    "update",
];
pub(super) const FROZEN_NAMES: &[&str] = &[
    "copy",
    "difference",
    "intersection",
    "isdisjoint",
    "issubset",
    "issuperset",
    "symmetric_difference",
    "union",
];

/// `|`, `&`, `-` or `^` of two collections.
pub(super) fn combine(
    machine: &mut Machine,
    left: Vec<Value>,
    operator: BinaryOperator,
    right: Vec<Value>,
    is_frozen: bool,
) -> Outcome<Value> {
    machine.steps(left.len() + right.len())?;
    let left = Set::of(left, true)?;
    let right = Set::of(right, true)?;
    let mut items = Vec::new();
    for item in &left.items {
        let is_in_both = right.contains(item)?;
        let is_kept = match operator {
            BinaryOperator::BitAnd => is_in_both,
            BinaryOperator::BitOr => true,
            _ => !is_in_both,
        };
        if is_kept {
            items.push(item.clone());
        }
    }
    if matches!(operator, BinaryOperator::BitOr | BinaryOperator::BitXor) {
        for item in &right.items {
            if !left.contains(item)? {
                items.push(item.clone());
            }
        }
    }
    machine.set(items, is_frozen)
}

pub(super) fn call(
    machine: &mut Machine,
    receiver: Value,
    name: &'static str,
    arguments: &Arguments,
) -> Outcome<Value> {
    let Kind::Set(set) = receiver.0 else {
        return Err(format!("{name} is a method of sets").into());
    };
    let operator = match name {
        "union" => Some(BinaryOperator::BitOr),
        "intersection" => Some(BinaryOperator::BitAnd),
        "difference" => Some(BinaryOperator::Subtract),
        "symmetric_difference" => Some(BinaryOperator::BitXor),
        _ => None,
    };
    if let Some(operator) = operator {
        let mut items = set.items.clone();
        for other in &arguments.positional {
            let other = iterate::collect(machine, other)?;
            let both = combine(machine, items, operator, other, set.is_frozen)?;
            items = iterate::collect(machine, &both)?;
        }
        return machine.set(items, set.is_frozen);
    }
    match (name, arguments.positional.as_slice()) {
        ("copy", []) => machine.set(set.items.clone(), set.is_frozen),
        ("issubset" | "issuperset" | "isdisjoint", [other]) => {
            let other = Set::of(iterate::collect(machine, other)?, true)?;
            Ok(match name {
                "issubset" => set.is_within(&other),
                "issuperset" => other.is_within(&set),
                _ => {
                    let mut is_disjoint = true;
                    for item in &set.items {
                        is_disjoint &= !other.contains(item)?;
                    }
                    is_disjoint
                }
            }
            .into())
        }
        (_, given) => {
            let Ok(set) = Rc::try_unwrap(set) else {
                return Err(changes(name, "set"));
            };
            match (name, given) {
                ("pop", []) => {
                    let first = set.items.first().cloned();
                    first.ok_or_else(|| "pop: the set is empty".into())
                }
                ("remove", [item]) if !set.contains(item)? => {
                    Err(format!("remove: {} is not in the set", short(item)).into())
                }
                ("add" | "remove" | "discard", [item]) => {
                    super::dictionary::key(item).map(|_| Value::NONE)
                }
                ("clear", []) => Ok(Value::NONE),
                ("update", others) => {
                    for other in others {
                        Set::of(iterate::collect(machine, other)?, true)?;
                    }
                    Ok(Value::NONE)
                }
                _ => Err(format!("{name} does not take {} arguments", given.len()).into()),
            }
        }
    }
}
