//! Methods of dictionaries.

use std::rc::Rc;

use super::dictionary::key;
use super::fault::Outcome;
use super::list_methods::changes;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::value::{Kind, Value, ViewKind};

pub(super) const NAMES: &[&str] = &[
    "clear",
    "copy",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

pub(super) fn call(
    machine: &mut Machine,
    receiver: Value,
    name: &'static str,
    arguments: Arguments,
) -> Outcome<Value> {
    let Kind::Dictionary(dictionary) = receiver.0 else {
        return Err(format!("{name} is a method of dictionaries").into());
    };
    let view = |kind| Ok(Value(Kind::View(kind, dictionary.clone())));
    match (name, arguments.positional.as_slice()) {
        ("keys", []) => return view(ViewKind::Keys),
        ("values", []) => return view(ViewKind::Values),
        ("items", []) => return view(ViewKind::Items),
        ("copy", []) => return machine.dictionary(dictionary.entries.clone()),
        ("get", [wanted]) => {
            return Ok(dictionary.value(wanted)?.cloned().unwrap_or(Value::NONE));
        }
        ("get", [wanted, default]) => {
            return Ok(dictionary.value(wanted)?.unwrap_or(default).clone());
        }
        _ => {}
    }
    let Ok(dictionary) = Rc::try_unwrap(dictionary) else {
        return Err(changes(name, "dict"));
    };
    match (name, arguments.positional.as_slice()) {
        ("pop", [wanted]) => {
            let found = dictionary.value(wanted)?.cloned();
            found.ok_or_else(|| format!("pop: there is no key {}", short(wanted)).into())
        }
        ("pop" | "setdefault", [wanted, default]) => {
            Ok(dictionary.value(wanted)?.unwrap_or(default).clone())
        }
        ("setdefault", [wanted]) => Ok(dictionary.value(wanted)?.cloned().unwrap_or(Value::NONE)),
        ("popitem", []) => {
            let last = dictionary.entries.last().cloned();
            let (wanted, value) = last.ok_or("popitem: the dictionary is empty")?;
            machine.tuple(vec![wanted, value])
        }
        ("update", [] | [_]) | ("clear", []) => {
            // Only the keys of another dictionary can be wrong.
            if let Some(Kind::Dictionary(other)) = arguments.positional.first().map(|one| &one.0) {
                for (wanted, _) in &other.entries {
                    key(wanted)?;
                }
            }
            Ok(Value::NONE)
        }
        (_, given) => Err(format!("{name} does not take {} arguments", given.len()).into()),
    }
}
