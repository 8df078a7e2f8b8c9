//! Values of expressions.

use std::rc::Rc;
use std::sync::Arc;

/// A structure of the program, as a message: names and their values.
///
/// An array may be an object with a [`length`](Object::length): then only the
/// elements that an expression asks for are converted.
pub trait Object {
    /// Name of its type, for errors and `type(x).__name__`.
    fn type_name(&self) -> String;
    /// The value of an attribute; none if there is no attribute of that name.
    fn attribute(&self, name: &str) -> Option<Value>;
    /// The names of all attributes, for suggestions in errors and for Python.
    fn attribute_names(&self) -> Vec<String>;
    /// Number of elements, if it is an array. `0` is false, as in Python.
    fn length(&self) -> Option<usize> {
        None
    }
    /// The element at an index below [`length`](Object::length).
    fn item(&self, _index: usize) -> Option<Value> {
        None
    }
}

/// A value of an expression, as Python has it.
#[derive(Clone)]
pub struct Value(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    None,
    Bool(bool),
    Integer(i128),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Rc<[Value]>),
    Tuple(Rc<[Value]>),
    Object(Rc<dyn Object>),
}

impl Value {
    /// Python's `None`.
    pub const NONE: Self = Self(Kind::None);

    /// A `bytes` object with a copy of the bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }

    /// A structure of the program.
    pub fn object(object: impl Object + 'static) -> Self {
        Self(Kind::Object(Rc::new(object)))
    }

    /// Whether Python's `bool(…)` of it is true.
    pub fn truth(&self) -> bool {
        match &self.0 {
            Kind::None => false,
            Kind::Bool(value) => *value,
            Kind::Integer(value) => *value != 0,
            Kind::Double(value) => *value != 0.0,
            _ => self.length() != Some(0),
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number as a double, if it is one. Booleans are 0 and 1, as in Python.
    pub fn as_double(&self) -> Option<f64> {
        match self.0 {
            Kind::Double(value) => Some(value),
            _ => self.as_integer().map(|value| value as f64),
        }
    }

    /// The integer, if it is one. Booleans are 0 and 1, as in Python.
    pub fn as_integer(&self) -> Option<i128> {
        match self.0 {
            Kind::Integer(value) => Some(value),
            Kind::Bool(value) => Some(value.into()),
            _ => None,
        }
    }

    /// As `type(value).__name__` in Python.
    pub fn type_name(&self) -> String {
        let name = match &self.0 {
            Kind::None => "NoneType",
            Kind::Bool(_) => "bool",
            Kind::Integer(_) => "int",
            Kind::Double(_) => "float",
            Kind::Text(_) => "str",
            Kind::Bytes(_) => "bytes",
            Kind::List(_) => "list",
            Kind::Tuple(_) => "tuple",
            Kind::Object(object) => return object.type_name(),
        };
        name.into()
    }

    /// Number of elements: characters of a text. None if it has no elements.
    pub(super) fn length(&self) -> Option<usize> {
        match &self.0 {
            Kind::Text(text) => Some(text.chars().count()),
            Kind::Bytes(bytes) => Some(bytes.len()),
            Kind::List(items) | Kind::Tuple(items) => Some(items.len()),
            Kind::Object(object) => object.length(),
            _ => None,
        }
    }

    /// The elements at these indices, which are below the length.
    pub(super) fn elements(&self, at: impl Iterator<Item = usize>) -> Vec<Value> {
        match &self.0 {
            Kind::Text(text) => {
                let letters: Vec<char> = text.chars().collect();
                let letters = at.filter_map(|index| letters.get(index));
                letters.map(|letter| letter.to_string().into()).collect()
            }
            Kind::Bytes(bytes) => {
                let bytes = at.filter_map(|index| bytes.get(index));
                bytes.map(|byte| i128::from(*byte).into()).collect()
            }
            Kind::List(items) | Kind::Tuple(items) => {
                at.filter_map(|index| items.get(index).cloned()).collect()
            }
            Kind::Object(object) => at.filter_map(|index| object.item(index)).collect(),
            _ => Vec::new(),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $kind:ident),*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self(Kind::$kind(value.into()))
            }
        }
    )*};
}

value_from!(bool => Bool, i128 => Integer, i64 => Integer, u64 => Integer, f64 => Double,
    &str => Text, String => Text, Arc<str> => Text);
