//! Values of expressions.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::dictionary::{Dictionary, Set};
use super::fault::Outcome;
use super::limits::VALUE_DEPTH_MAX;
use super::machine::Machine;
use super::tree::LambdaNode;

/// A structure of the program, as a message: names and their values.
///
/// An array may be an object with a [`length`](Object::length): then only the
/// elements that an expression asks for are converted.
pub trait Object {
    /// Name of its type, for errors and `type(x).__name__`.
    fn type_name(&self) -> String;
    /// The value of an attribute; none if there is no attribute of that name.
    fn attribute(&self, name: &str) -> Option<Value>;
    /// The names of all attributes, for `dir` and for suggestions in errors.
    fn attribute_names(&self) -> Vec<String>;
    /// Number of elements, if it is an array. `0` is false, as in Python.
    fn length(&self) -> Option<usize> {
        None
    }
    /// The element at an index below [`length`](Object::length).
    fn item(&self, _index: usize) -> Option<Value> {
        None
    }
    /// Its text, as `str(x)` returns it; none for a text with the attributes.
    fn text(&self) -> Option<String> {
        None
    }
}

/// A value.
#[derive(Clone)]
pub struct Value(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    None,
    Ellipsis,
    Bool(bool),
    Integer(i128),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Rc<Sequence>),
    Tuple(Rc<Sequence>),
    Set(Rc<Set>),
    Dictionary(Rc<Dictionary>),
    /// `keys()`, `values()` or `items()` of a dictionary.
    View(ViewKind, Rc<Dictionary>),
    Range(Range),
    Slice(Rc<[Value; 3]>),
    Iterator(Rc<SharedIterator>),
    /// A class, as `int`.
    Type(&'static str),
    /// A function, as `len` or `math.sin`.
    Function(&'static str),
    Module(&'static str),
    /// A method of a value.
    Method(Rc<Method>),
    /// A method of a class, as `str.upper`.
    TypeMethod(&'static str, &'static str),
    Lambda(Rc<Lambda>),
    Object(Rc<dyn Object>),
}

/// Elements of a list or tuple.
pub(super) struct Sequence {
    pub items: Vec<Value>,
    pub depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewKind {
    Keys,
    Values,
    Items,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: i128,
    pub stop: i128,
    /// Never zero.
    pub step: i128,
}

pub(super) struct SharedIterator {
    pub name: &'static str,
    pub depth: u32,
    pub inner: RefCell<Box<dyn ValueIterator>>,
}

/// Gives values one after the other.
pub(super) trait ValueIterator {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>>;
}

pub(super) struct Method {
    pub receiver: Value,
    pub name: &'static str,
    pub depth: u32,
}

pub(super) struct Lambda {
    pub node: Arc<LambdaNode>,
    pub scope: Scope,
    pub defaults: Vec<Option<Value>>,
    pub depth: u32,
}

impl Range {
    /// Number of elements.
    pub fn length(&self) -> usize {
        let Self { start, stop, step } = *self;
        let distance = if step > 0 {
            stop.saturating_sub(start)
        } else {
            start.saturating_sub(stop)
        };
        if distance <= 0 {
            return 0;
        }
        let step = step.unsigned_abs();
        let count = (distance as u128).div_ceil(step);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// The element at an index below the length.
    pub fn item(&self, index: usize) -> i128 {
        let distance = self.step.saturating_mul(index as i128);
        self.start.saturating_add(distance)
    }
}

impl Value {
    /// `None`.
    pub const NONE: Self = Self(Kind::None);

    /// A list.
    pub fn list(items: Vec<Value>) -> Self {
        let depth = depth_of(&items);
        Self(Kind::List(Rc::new(Sequence { items, depth })))
    }

    /// Bytes.
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
            Kind::Text(text) => !text.is_empty(),
            Kind::Bytes(bytes) => !bytes.is_empty(),
            Kind::List(sequence) | Kind::Tuple(sequence) => !sequence.items.is_empty(),
            Kind::Set(set) => set.length() > 0,
            Kind::Dictionary(dictionary) | Kind::View(_, dictionary) => dictionary.length() > 0,
            Kind::Range(range) => range.length() > 0,
            Kind::Object(object) => object.length() != Some(0),
            _ => true,
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

    /// Name of its type.
    pub fn type_name(&self) -> String {
        let name = match &self.0 {
            Kind::None => "NoneType",
            Kind::Ellipsis => "ellipsis",
            Kind::Bool(_) => "bool",
            Kind::Integer(_) => "int",
            Kind::Double(_) => "float",
            Kind::Text(_) => "str",
            Kind::Bytes(_) => "bytes",
            Kind::List(_) => "list",
            Kind::Tuple(_) => "tuple",
            Kind::Set(set) => set.type_name(),
            Kind::Dictionary(_) => "dict",
            Kind::View(kind, _) => kind.type_name(),
            Kind::Range(_) => "range",
            Kind::Slice(_) => "slice",
            Kind::Iterator(iterator) => iterator.name,
            Kind::Type(_) => "type",
            Kind::Module(_) => "module",
            Kind::Function(_) | Kind::Method(_) => "builtin_function_or_method",
            Kind::TypeMethod(..) => "method_descriptor",
            Kind::Lambda(_) => "function",
            Kind::Object(object) => return object.type_name(),
        };
        name.into()
    }

    /// Number of values in each other, from 0.
    pub(super) fn depth(&self) -> u32 {
        match &self.0 {
            Kind::List(sequence) | Kind::Tuple(sequence) => sequence.depth,
            Kind::Set(set) => set.depth,
            Kind::Dictionary(dictionary) | Kind::View(_, dictionary) => dictionary.depth,
            Kind::Iterator(iterator) => iterator.depth,
            Kind::Method(method) => method.depth,
            Kind::Lambda(lambda) => lambda.depth,
            _ => 0,
        }
    }
}

impl ViewKind {
    /// An entry of a dictionary as this view shows it.
    pub fn item(self, entry: &(Value, Value)) -> Value {
        match self {
            Self::Keys => entry.0.clone(),
            Self::Values => entry.1.clone(),
            Self::Items => {
                let items = vec![entry.0.clone(), entry.1.clone()];
                let depth = depth_of(&items);
                Value(Kind::Tuple(Rc::new(Sequence { items, depth })))
            }
        }
    }

    pub fn type_name(self) -> &'static str {
        match self {
            Self::Keys => "dict_keys",
            Self::Values => "dict_values",
            Self::Items => "dict_items",
        }
    }
}

/// Variables around a position, and the names that the program gives. A scope never
/// changes. So a function that captures it cannot become part of itself.
#[derive(Clone)]
pub(super) struct Scope {
    variables: Option<Rc<Variable>>,
    given: Rc<Vec<(Arc<str>, Value)>>,
}

struct Variable {
    name: Arc<str>,
    value: Value,
    depth: u32,
    outer: Option<Rc<Variable>>,
}

impl Scope {
    /// The outermost scope.
    pub fn of(given: Rc<Vec<(Arc<str>, Value)>>) -> Self {
        Self {
            variables: None,
            given,
        }
    }

    /// The scope with one more variable.
    pub fn with(&self, name: &Arc<str>, value: Value) -> Outcome<Self> {
        let depth = checked(value.depth().max(self.depth()) + 1)?;
        Ok(Self {
            variables: Some(Rc::new(Variable {
                name: name.clone(),
                value,
                depth,
                outer: self.variables.clone(),
            })),
            given: self.given.clone(),
        })
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        let mut next = &self.variables;
        while let Some(variable) = next {
            if *variable.name == *name {
                return Some(&variable.value);
            }
            next = &variable.outer;
        }
        let given = self.given.iter().rfind(|(known, _)| **known == *name);
        given.map(|(_, value)| value)
    }

    /// The names that the program gives.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.given.iter().map(|(name, _)| &**name)
    }

    /// Number of scopes in each other, and of values in their variables.
    pub fn depth(&self) -> u32 {
        self.variables.as_ref().map_or(0, |variable| variable.depth)
    }
}

/// Refuses a value that is nested too deep.
pub(super) fn checked(depth: u32) -> Outcome<u32> {
    if depth > VALUE_DEPTH_MAX {
        return Err(format!("a value is nested more than {VALUE_DEPTH_MAX} deep").into());
    }
    Ok(depth)
}

/// The depth of a value that holds these.
pub(super) fn depth_of<'v>(values: impl IntoIterator<Item = &'v Value>) -> u32 {
    let deepest = values.into_iter().map(Value::depth).max();
    1 + deepest.unwrap_or(0)
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self(Kind::Bool(value))
    }
}

impl From<i128> for Value {
    fn from(value: i128) -> Self {
        Self(Kind::Integer(value))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self(Kind::Integer(value.into()))
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self(Kind::Integer(value.into()))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self(Kind::Double(value))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(Kind::Text(text.into()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(Kind::Text(text.into()))
    }
}
