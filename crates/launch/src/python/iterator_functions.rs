//! Built-in functions that make and read iterators: `zip`, `map`, `next`.

use super::fault::Outcome;
use super::given_arguments::Given;
use super::iterate::{self, indexed};
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::value::{Kind, Value, ValueIterator};

/// Functions that give their values one after the other.
pub(super) fn iterator(machine: &mut Machine, mut given: Given) -> Outcome<Value> {
    let name = given.name;
    let start = given.named("start");
    let is_strict = given.named("strict").is_some_and(|strict| strict.truth());
    let depth = given
        .arguments
        .positional
        .iter()
        .map(Value::depth)
        .max()
        .unwrap_or(0);
    let inner: Box<dyn ValueIterator> = match name {
        "zip" => {
            let values = given.arguments.positional.iter();
            let sources = values.map(|value| iterate::iterator(machine, value));
            Box::new(Zip {
                sources: sources.collect::<Outcome<_>>()?,
                is_strict,
            })
        }
        "enumerate" => {
            given.between(1, 2)?;
            let start = start.as_ref().or(given.arguments.positional.get(1));
            Box::new(Enumerate {
                source: iterate::iterator(machine, given.value(0)?)?,
                index: start.and_then(Value::as_integer).unwrap_or(0),
            })
        }
        "map" => {
            let Some((function, values)) = given.arguments.positional.split_first() else {
                return Err("map needs a function and values".into());
            };
            let sources = values.iter().map(|value| iterate::iterator(machine, value));
            Box::new(Map {
                function: function.clone(),
                sources: Zip {
                    sources: sources.collect::<Outcome<_>>()?,
                    is_strict: false,
                },
            })
        }
        "filter" => {
            given.between(2, 2)?;
            Box::new(Filter {
                function: given.value(0)?.clone(),
                source: iterate::iterator(machine, given.value(1)?)?,
            })
        }
        "reversed" => {
            given.between(1, 1)?;
            let mut items = iterate::collect(machine, given.value(0)?)?;
            items.reverse();
            indexed(move |index| Ok(items.get(index).cloned()))
        }
        _ => {
            given.between(1, 1)?;
            let value = given.value(0)?;
            if matches!(value.0, Kind::Iterator(_)) {
                return Ok(value.clone());
            }
            iterate::iterator(machine, value)?
        }
    };
    let name = if name == "iter" { "iterator" } else { name };
    machine.iterator(name, depth, inner)
}

struct Zip {
    sources: Vec<Box<dyn ValueIterator>>,
    is_strict: bool,
}

impl Zip {
    fn items(&mut self, machine: &mut Machine) -> Outcome<Option<Vec<Value>>> {
        let mut items = Vec::with_capacity(self.sources.len());
        for source in &mut self.sources {
            match source.next(machine)? {
                Some(item) => items.push(item),
                None if self.is_strict && !items.is_empty() => {
                    return Err("zip: the values have different lengths".into());
                }
                None => return Ok(None),
            }
        }
        Ok(Some(items).filter(|items| !items.is_empty()))
    }
}

impl ValueIterator for Zip {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        match self.items(machine)? {
            Some(items) => machine.tuple(items).map(Some),
            None => Ok(None),
        }
    }
}

struct Enumerate {
    source: Box<dyn ValueIterator>,
    index: i128,
}

impl ValueIterator for Enumerate {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        let Some(item) = self.source.next(machine)? else {
            return Ok(None);
        };
        let index = self.index;
        self.index = self.index.saturating_add(1);
        machine.tuple(vec![index.into(), item]).map(Some)
    }
}

struct Map {
    function: Value,
    sources: Zip,
}

impl ValueIterator for Map {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        let Some(positional) = self.sources.items(machine)? else {
            return Ok(None);
        };
        let arguments = Arguments {
            positional,
            named: Vec::new(),
        };
        machine.call(self.function.clone(), arguments).map(Some)
    }
}

struct Filter {
    /// `None` keeps true values.
    function: Value,
    source: Box<dyn ValueIterator>,
}

impl ValueIterator for Filter {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        while let Some(item) = self.source.next(machine)? {
            let is_kept = match self.function.0 {
                Kind::None => item.truth(),
                _ => machine.call_with(&self.function, item.clone())?.truth(),
            };
            if is_kept {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

pub(super) fn next(machine: &mut Machine, given: &Given) -> Outcome<Value> {
    given.between(1, 2)?;
    let value = given.value(0)?;
    if !matches!(value.0, Kind::Iterator(_)) {
        return Err(format!(
            "next needs an iterator, not {}, a {}; iter(…) makes one",
            short(value),
            value.type_name()
        )
        .into());
    }
    let item = iterate::iterator(machine, value)?.next(machine)?;
    let default = given.arguments.positional.get(1).cloned();
    item.or(default)
        .ok_or_else(|| "next: there is no further value; next(…, DEFAULT) gives one".into())
}
