//! Methods of lists, tuples and ranges.
//!
//! A method that changes a list works on a list without another name. Then nothing
//! but its result can be seen.

use std::rc::Rc;

use super::compare::{equal, is_less};
use super::fault::Outcome;
use super::iterate;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::value::{Kind, Value};

pub(super) const NAMES: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
    "sort",
];

/// `count` and `index`.
pub(super) fn read(
    machine: &mut Machine,
    receiver: &Value,
    name: &str,
    arguments: &Arguments,
) -> Outcome<Value> {
    let Some(wanted) = arguments.positional.first() else {
        return Err(format!("{name} needs a value").into());
    };
    let items = iterate::collect(machine, receiver)?;
    if name == "count" {
        let mut count: i128 = 0;
        for item in &items {
            count += i128::from(equal(machine, item, wanted)?);
        }
        return Ok(count.into());
    }
    let bound = |index: usize, default: usize| -> Outcome<usize> {
        match arguments.positional.get(index).map(Value::as_integer) {
            None => Ok(default),
            Some(Some(given)) => {
                let given = if given < 0 {
                    given + items.len() as i128
                } else {
                    given
                };
                Ok(usize::try_from(given.max(0))
                    .unwrap_or(usize::MAX)
                    .min(items.len()))
            }
            Some(None) => Err("index needs integers as start and end".into()),
        }
    };
    let (start, end) = (bound(1, 0)?, bound(2, items.len())?);
    for (index, item) in items.iter().enumerate().take(end).skip(start) {
        if equal(machine, item, wanted)? {
            return Ok((index as i128).into());
        }
    }
    Err(format!("{} is not in {}", short(wanted), short(receiver)).into())
}

/// A method of a list.
pub(super) fn call(
    machine: &mut Machine,
    receiver: Value,
    name: &'static str,
    arguments: Arguments,
) -> Outcome<Value> {
    if matches!(name, "count" | "index") {
        return read(machine, &receiver, name, &arguments);
    }
    let Kind::List(sequence) = receiver.0 else {
        return Err(format!("{name} is a method of lists").into());
    };
    machine.steps(sequence.items.len() / 16)?;
    if name == "copy" {
        return machine.list(sequence.items.clone());
    }
    let Ok(sequence) = Rc::try_unwrap(sequence) else {
        return Err(changes(name, "list"));
    };
    let items = sequence.items;
    match (name, arguments.positional.as_slice()) {
        ("pop", positions @ ([] | [_])) => {
            let wanted = match positions.first() {
                None => -1,
                Some(index) => index
                    .as_integer()
                    .ok_or_else(|| format!("pop needs an integer, not {}", short(index)))?,
            };
            let place = if wanted < 0 {
                wanted.saturating_add(items.len() as i128)
            } else {
                wanted
            };
            let found = usize::try_from(place)
                .ok()
                .and_then(|place| items.get(place).cloned());
            found.ok_or_else(|| format!("pop: the index {wanted} is out of range").into())
        }
        ("remove", [wanted]) => {
            for item in &items {
                if equal(machine, item, wanted)? {
                    return Ok(Value::NONE);
                }
            }
            Err(format!("remove: {} is not in the list", short(wanted)).into())
        }
        ("extend", [more]) => iterate::collect(machine, more).map(|_| Value::NONE),
        ("sort", []) => {
            // A list that has no order is an error, too.
            for pair in items.windows(2) {
                is_less(machine, &pair[0], &pair[1])?;
            }
            Ok(Value::NONE)
        }
        ("append", [_]) | ("insert", [_, _]) | ("clear" | "reverse", []) => Ok(Value::NONE),
        (_, given) => Err(format!("{name} does not take {} arguments", given.len()).into()),
    }
}

/// The error of a method that would change a value with another name.
pub(super) fn changes(name: &str, of: &str) -> super::fault::Fault {
    let instead = match name {
        "append" => "; write LIST + [VALUE]",
        "extend" => "; write LIST + OTHER",
        "sort" => "; write sorted(LIST)",
        "reverse" => "; write LIST[::-1]",
        "pop" if of == "list" => "; write LIST[-1]",
        "update" if of == "dict" => "; write DICT | OTHER",
        "update" | "add" => "; write SET | {VALUE}",
        "remove" | "discard" if of != "list" => "; write SET - {VALUE}",
        _ => "",
    };
    format!("{name} changes a {of} that has a name; an expression changes nothing{instead}").into()
}
