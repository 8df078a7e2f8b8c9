//! Iteration over values.

use std::rc::Rc;

use super::dictionary::Dictionary;
use super::fault::Outcome;
use super::machine::Machine;
use super::printed::short;
use super::value::{Kind, Object, Range, SharedIterator, Value, ValueIterator, ViewKind};

/// An iterator over a value.
///
/// # Errors
/// Values that have no elements, as numbers.
pub(super) fn iterator(machine: &mut Machine, value: &Value) -> Outcome<Box<dyn ValueIterator>> {
    Ok(match &value.0 {
        Kind::List(sequence) | Kind::Tuple(sequence) => {
            let sequence = sequence.clone();
            indexed(move |index| Ok(sequence.items.get(index).cloned()))
        }
        Kind::Set(set) => {
            let set = set.clone();
            indexed(move |index| Ok(set.items.get(index).cloned()))
        }
        Kind::Text(text) => {
            machine.allocate(text.len() * size_of::<char>())?;
            let letters: Vec<char> = text.chars().collect();
            indexed(move |index| {
                Ok(letters
                    .get(index)
                    .map(|letter| Value::from(letter.to_string())))
            })
        }
        Kind::Bytes(bytes) => {
            let bytes = bytes.clone();
            indexed(move |index| Ok(bytes.get(index).map(|byte| Value::from(i128::from(*byte)))))
        }
        Kind::Dictionary(dictionary) => view(ViewKind::Keys, dictionary),
        Kind::View(kind, dictionary) => view(*kind, dictionary),
        Kind::Range(range) => {
            let range: Range = *range;
            let length = range.length();
            indexed(move |index| Ok((index < length).then(|| range.item(index).into())))
        }
        Kind::Iterator(iterator) => Box::new(Shared(iterator.clone())),
        Kind::Object(object) if object.length().is_some() => {
            let object: Rc<dyn Object> = object.clone();
            let length = object.length().unwrap_or(0);
            indexed(move |index| {
                Ok(if index < length {
                    object.item(index)
                } else {
                    None
                })
            })
        }
        _ => {
            return Err(format!(
                "{} is a {}; it has no elements to go through",
                short(value),
                value.type_name()
            )
            .into());
        }
    })
}

/// All elements of a value.
pub(super) fn collect(machine: &mut Machine, value: &Value) -> Outcome<Vec<Value>> {
    let mut source = iterator(machine, value)?;
    drain(machine, &mut *source)
}

/// All remaining values of an iterator.
pub(super) fn drain(machine: &mut Machine, source: &mut dyn ValueIterator) -> Outcome<Vec<Value>> {
    let mut items = Vec::new();
    while let Some(item) = source.next(machine)? {
        machine.allocate(size_of::<Value>())?;
        items.push(item);
    }
    Ok(items)
}

/// Whether a value can be iterated.
pub(super) fn is_iterable(value: &Value) -> bool {
    match &value.0 {
        Kind::Object(object) => object.length().is_some(),
        kind => matches!(
            kind,
            Kind::List(_)
                | Kind::Tuple(_)
                | Kind::Set(_)
                | Kind::Text(_)
                | Kind::Bytes(_)
                | Kind::Dictionary(_)
                | Kind::View(..)
                | Kind::Range(_)
                | Kind::Iterator(_)
        ),
    }
}

fn view(kind: ViewKind, dictionary: &Rc<Dictionary>) -> Box<dyn ValueIterator> {
    let dictionary = dictionary.clone();
    indexed(move |index| {
        let entry = dictionary.entries.get(index);
        Ok(entry.map(|entry| kind.item(entry)))
    })
}

/// An iterator that reads by index.
pub(super) fn indexed(
    item: impl Fn(usize) -> Outcome<Option<Value>> + 'static,
) -> Box<dyn ValueIterator> {
    Box::new(Indexed { index: 0, item })
}

struct Indexed<F> {
    index: usize,
    item: F,
}

impl<F: Fn(usize) -> Outcome<Option<Value>>> ValueIterator for Indexed<F> {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        machine.steps(1)?;
        let item = (self.item)(self.index)?;
        self.index += usize::from(item.is_some());
        Ok(item)
    }
}

/// An iterator that other values may hold, too.
struct Shared(Rc<SharedIterator>);

impl ValueIterator for Shared {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        let mut inner = self
            .0
            .inner
            .try_borrow_mut()
            .map_err(|_| "an iterator reads from itself")?;
        machine.deeper(|machine| inner.next(machine))
    }
}
