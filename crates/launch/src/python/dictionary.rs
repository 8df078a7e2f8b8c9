//! Dictionaries and sets. Both keep the order of insertion.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::fault::Outcome;
use super::number_text::exact_integer;
use super::value::{Kind, Value, depth_of};

/// A value as a key: equal numbers are one key, whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    None,
    Ellipsis,
    Integer(i128),
    /// The bits of a number that is no integer.
    Double(u64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Tuple(Vec<Key>),
    /// Sorted.
    Frozen(Vec<Key>),
    Range(usize, i128, i128),
    /// A class or function.
    Named(&'static str, &'static str),
    /// The address of something that is equal to itself only.
    Address(usize),
}

/// The key of a value.
///
/// # Errors
/// Values that can change, as lists.
pub(super) fn key(value: &Value) -> Outcome<Key> {
    Ok(match &value.0 {
        Kind::None => Key::None,
        Kind::Ellipsis => Key::Ellipsis,
        Kind::Bool(value) => Key::Integer((*value).into()),
        Kind::Integer(value) => Key::Integer(*value),
        Kind::Double(value) => match exact_integer(*value) {
            Some(integer) => Key::Integer(integer),
            None => Key::Double(value.to_bits()),
        },
        Kind::Text(text) => Key::Text(text.clone()),
        Kind::Bytes(bytes) => Key::Bytes(bytes.clone()),
        Kind::Tuple(sequence) => {
            let keys = sequence.items.iter().map(key);
            Key::Tuple(keys.collect::<Outcome<_>>()?)
        }
        Kind::Set(set) if set.is_frozen => Key::Frozen(set.entries.keys().cloned().collect()),
        Kind::Range(range) => Key::Range(range.length(), range.start, range.step),
        Kind::Type(name) => Key::Named("type", name),
        Kind::Function(name) | Kind::Module(name) => Key::Named("", name),
        Kind::TypeMethod(of, name) => Key::Named(of, name),
        Kind::Lambda(lambda) => Key::Address(Rc::as_ptr(lambda).addr()),
        Kind::Iterator(iterator) => Key::Address(Rc::as_ptr(iterator).addr()),
        Kind::Object(object) => Key::Address(Rc::as_ptr(object).addr()),
        Kind::List(_)
        | Kind::Set(_)
        | Kind::Dictionary(_)
        | Kind::View(..)
        | Kind::Slice(_)
        | Kind::Method(_) => {
            return Err(format!(
                "a {} is no key and no element of a set, since it can change; a tuple cannot",
                value.type_name()
            )
            .into());
        }
    })
}

/// Keys with values.
pub(super) struct Dictionary {
    /// Keys and values in the order of insertion.
    pub entries: Vec<(Value, Value)>,
    places: BTreeMap<Key, usize>,
    pub depth: u32,
}

impl Dictionary {
    /// A dictionary. A later entry with the same key replaces the value.
    pub fn of(entries: Vec<(Value, Value)>) -> Outcome<Self> {
        let mut made: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
        let mut places = BTreeMap::new();
        for (name, value) in entries {
            let place = *places.entry(key(&name)?).or_insert(made.len());
            match made.get_mut(place) {
                Some(known) => known.1 = value,
                None => made.push((name, value)),
            }
        }
        let depth = depth_of(made.iter().flat_map(|(name, value)| [name, value]));
        Ok(Self {
            entries: made,
            places,
            depth,
        })
    }

    pub fn length(&self) -> usize {
        self.entries.len()
    }

    pub fn value(&self, name: &Value) -> Outcome<Option<&Value>> {
        let place = self.places.get(&key(name)?);
        Ok(place
            .and_then(|place| self.entries.get(*place))
            .map(|(_, value)| value))
    }
}

/// Distinct values.
pub(super) struct Set {
    /// In the order of insertion.
    pub items: Vec<Value>,
    entries: BTreeMap<Key, usize>,
    pub is_frozen: bool,
    pub depth: u32,
}

impl Set {
    /// A set of these values; duplicates count once.
    pub fn of(values: Vec<Value>, is_frozen: bool) -> Outcome<Self> {
        let mut items: Vec<Value> = Vec::with_capacity(values.len());
        let mut entries = BTreeMap::new();
        for value in values {
            if let std::collections::btree_map::Entry::Vacant(free) = entries.entry(key(&value)?) {
                free.insert(items.len());
                items.push(value);
            }
        }
        Ok(Self {
            depth: depth_of(&items),
            items,
            entries,
            is_frozen,
        })
    }

    pub fn type_name(&self) -> &'static str {
        if self.is_frozen { "frozenset" } else { "set" }
    }

    pub fn length(&self) -> usize {
        self.items.len()
    }

    pub fn contains(&self, value: &Value) -> Outcome<bool> {
        // A set in a set is looked up as a frozen one, as in Python.
        if let Kind::Set(inner) = &value.0 {
            let keys = inner.entries.keys().cloned().collect();
            return Ok(self.entries.contains_key(&Key::Frozen(keys)));
        }
        Ok(self.entries.contains_key(&key(value)?))
    }

    /// Whether all of its values are in the other one.
    pub fn is_within(&self, other: &Self) -> bool {
        self.entries
            .keys()
            .all(|key| other.entries.contains_key(key))
    }
}
