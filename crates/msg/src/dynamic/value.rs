//! A field's value at run time.
//!
//! A sequence of numbers is a vector of that number type, so an image takes its
//! bytes and no more. [`Value::zero`] decides which variant belongs to which field,
//! and [`Value::fit`] checks it; inside a `DynamicMessage` they always agree.

use super::error::{ValueError, ValueProblem};
use super::length::check_length;
use super::message::DynamicMessage;
use super::types::{Element, MessageField, Shape};
use crate::cdr::UNBOUNDED;
use crate::message::WString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// Calls a macro with every number type: variant, plural, Rust type.
macro_rules! with_numbers {
    ($callback:ident) => {
        $callback! {
            I8 I8s i8, U8 Bytes u8, I16 I16s i16, U16 U16s u16, I32 I32s i32,
            U32 U32s u32, I64 I64s i64, U64 U64s u64, F32 F32s f32, F64 F64s f64
        }
    };
}
pub(super) use with_numbers;

macro_rules! define_value {
    ($($one:ident $many:ident $ty:ident),*) => {
        /// A field's value; arrays and sequences share the plural variants.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Value {
            $(
                #[doc = concat!("One `", stringify!($ty), "`.")]
                $one($ty),
                #[doc = concat!("Many `", stringify!($ty), "`.")]
                $many(Vec<$ty>),
            )*
            /// One `bool`.
            Bool(bool),
            /// Many `bool`.
            Bools(Vec<bool>),
            /// One `string`.
            String(String),
            /// Many `string`.
            Strings(Vec<String>),
            /// One `wstring`.
            WString(WString),
            /// Many `wstring`.
            WStrings(Vec<WString>),
            /// A nested message, with fields of its own.
            Message(DynamicMessage),
            /// Many messages.
            Messages(Vec<DynamicMessage>),
        }

        $(
            impl From<$ty> for Value {
                fn from(value: $ty) -> Self {
                    Self::$one(value)
                }
            }
            impl From<Vec<$ty>> for Value {
                fn from(values: Vec<$ty>) -> Self {
                    Self::$many(values)
                }
            }
        )*

        impl Value {
            /// Elements of a plural variant; `None` for single values.
            pub fn len(&self) -> Option<usize> {
                match self {
                    $(Self::$many(values) => Some(values.len()),)*
                    Self::Bools(values) => Some(values.len()),
                    Self::Strings(values) => Some(values.len()),
                    Self::WStrings(values) => Some(values.len()),
                    Self::Messages(values) => Some(values.len()),
                    _ => None,
                }
            }

            /// A copy of one element of a plural variant.
            pub fn element(&self, index: usize) -> Option<Self> {
                match self {
                    $(Self::$many(values) => values.get(index).copied().map(Self::$one),)*
                    Self::Bools(values) => values.get(index).copied().map(Self::Bool),
                    Self::Strings(values) => values.get(index).cloned().map(Self::String),
                    Self::WStrings(values) => values.get(index).cloned().map(Self::WString),
                    Self::Messages(values) => values.get(index).cloned().map(Self::Message),
                    _ => None,
                }
            }

            /// Replaces one element; false when `value` or `index` do not fit.
            pub(super) fn put_element(&mut self, index: usize, value: Self) -> bool {
                fn put<T>(values: &mut [T], index: usize, value: T) -> bool {
                    let place = values.get_mut(index);
                    place.map(|place| *place = value).is_some()
                }
                match (self, value) {
                    $((Self::$many(values), Self::$one(value)) => put(values, index, value),)*
                    (Self::Bools(values), Self::Bool(value)) => put(values, index, value),
                    (Self::Strings(values), Self::String(value)) => put(values, index, value),
                    (Self::WStrings(values), Self::WString(value)) => put(values, index, value),
                    (Self::Messages(values), Self::Message(value)) => put(values, index, value),
                    _ => false,
                }
            }

            /// Zeros and empty strings: what a field without default holds.
            pub(super) fn zero(element: &Element, shape: Shape) -> Self {
                let count = match shape {
                    Shape::Single => return Self::zero_one(element),
                    Shape::Array(count) => count,
                    Shape::Sequence { .. } => 0,
                };
                match element {
                    $(Element::$one => Self::$many(vec![$ty::default(); count]),)*
                    Element::Byte => Self::Bytes(vec![0; count]),
                    Element::Bool => Self::Bools(vec![false; count]),
                    Element::String { .. } => Self::Strings(vec![String::new(); count]),
                    Element::WString { .. } => Self::WStrings(vec![WString::default(); count]),
                    Element::Message(ty) => Self::Messages(vec![DynamicMessage::new(ty); count]),
                }
            }

            fn zero_one(element: &Element) -> Self {
                match element {
                    $(Element::$one => Self::$one($ty::default()),)*
                    Element::Byte => Self::U8(0),
                    Element::Bool => Self::Bool(false),
                    Element::String { .. } => Self::String(String::new()),
                    Element::WString { .. } => Self::WString(WString::default()),
                    Element::Message(ty) => Self::Message(DynamicMessage::new(ty)),
                }
            }

            /// Gathers single values of one element type.
            pub(super) fn gather(element: &Element, items: Vec<Self>) -> Option<Self> {
                let items = items.into_iter();
                Some(match element {
                    $(Element::$one => Self::$many(
                        items.map(|item| match item {
                            Self::$one(value) => Some(value),
                            _ => None,
                        }).collect::<Option<_>>()?,
                    ),)*
                    Element::Byte => return Self::gather(&Element::U8, items.collect()),
                    Element::Bool => Self::Bools(
                        items.map(|item| match item {
                            Self::Bool(value) => Some(value),
                            _ => None,
                        }).collect::<Option<_>>()?,
                    ),
                    Element::String { .. } => Self::Strings(
                        items.map(|item| match item {
                            Self::String(value) => Some(value),
                            _ => None,
                        }).collect::<Option<_>>()?,
                    ),
                    Element::WString { .. } => Self::WStrings(
                        items.map(|item| match item {
                            Self::WString(value) => Some(value),
                            _ => None,
                        }).collect::<Option<_>>()?,
                    ),
                    Element::Message(_) => Self::Messages(
                        items.map(|item| match item {
                            Self::Message(value) => Some(value),
                            _ => None,
                        }).collect::<Option<_>>()?,
                    ),
                })
            }

            fn has_type(&self, element: &Element, shape: Shape) -> bool {
                match (self, element, shape == Shape::Single) {
                    $((Self::$one(_), Element::$one, true) => true,
                    (Self::$many(_), Element::$one, false) => true,)*
                    (Self::U8(_), Element::Byte, true) => true,
                    (Self::Bytes(_), Element::Byte, false) => true,
                    (Self::Bool(_), Element::Bool, true) => true,
                    (Self::Bools(_), Element::Bool, false) => true,
                    (Self::String(_), Element::String { .. }, true) => true,
                    (Self::Strings(_), Element::String { .. }, false) => true,
                    (Self::WString(_), Element::WString { .. }, true) => true,
                    (Self::WStrings(_), Element::WString { .. }, false) => true,
                    (Self::Message(value), Element::Message(ty), true) => value.ty() == ty,
                    (Self::Messages(values), Element::Message(ty), false) => {
                        values.iter().all(|value| value.ty() == ty)
                    }
                    _ => false,
                }
            }
        }
    };
}
with_numbers!(define_value);

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<DynamicMessage> for Value {
    fn from(value: DynamicMessage) -> Self {
        Self::Message(value)
    }
}

impl Value {
    /// Whether a plural variant has no elements; false for single values.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The value of any integer variant.
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Self::I8(value) => value.into(),
            Self::U8(value) => value.into(),
            Self::I16(value) => value.into(),
            Self::U16(value) => value.into(),
            Self::I32(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::I64(value) => value.into(),
            Self::U64(value) => value.into(),
            _ => return None,
        })
    }

    /// The value of any number variant, rounded where `f64` cannot hold it.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(value) => Some(value.into()),
            Self::F64(value) => Some(value),
            _ => self.as_integer().map(|value| value as f64),
        }
    }

    /// The text of a `string`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The message inside.
    pub fn as_message(&self) -> Option<&DynamicMessage> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }

    /// An integer as this element type, when in range.
    pub(super) fn integer(element: &Element, value: i128) -> Option<Self> {
        Some(match element {
            Element::I8 => Self::I8(value.try_into().ok()?),
            Element::U8 | Element::Byte => Self::U8(value.try_into().ok()?),
            Element::I16 => Self::I16(value.try_into().ok()?),
            Element::U16 => Self::U16(value.try_into().ok()?),
            Element::I32 => Self::I32(value.try_into().ok()?),
            Element::U32 => Self::U32(value.try_into().ok()?),
            Element::I64 => Self::I64(value.try_into().ok()?),
            Element::U64 => Self::U64(value.try_into().ok()?),
            Element::F32 => Self::F32(value as f32),
            Element::F64 => Self::F64(value as f64),
            _ => return None,
        })
    }

    /// This value in `field`: numbers convert when in range, bounds hold.
    pub(super) fn fit(self, field: &MessageField, path: &str) -> Result<Self, ValueError> {
        let value = self.fit_type(&field.element, field.shape, path)?;
        if let Some(len) = value.len() {
            check_length(field.shape, len, path)?;
        }
        Ok(value)
    }

    /// As [`Self::fit`] for one element of a collection.
    pub(super) fn fit_element(self, field: &MessageField, path: &str) -> Result<Self, ValueError> {
        self.fit_type(&field.element, Shape::Single, path)
    }

    fn fit_type(self, element: &Element, shape: Shape, path: &str) -> Result<Self, ValueError> {
        if self.has_type(element, shape) {
            self.check_strings(element, path)?;
            return Ok(self);
        }
        let converted = match (&self, element) {
            _ if shape != Shape::Single => None,
            (Self::F32(value), Element::F64) => Some(Self::F64((*value).into())),
            (Self::F64(value), Element::F32) => Some(*value as f32)
                .filter(|narrow| narrow.is_finite() == value.is_finite())
                .map(Self::F32),
            _ => self
                .as_integer()
                .and_then(|value| Self::integer(element, value)),
        };
        converted.ok_or_else(|| ValueError {
            path: path.into(),
            problem: ValueProblem::WrongType {
                expected: expected_text(element, shape),
                found: self.kind_text(),
            },
        })
    }

    /// A description for error messages: numbers with their value.
    fn kind_text(&self) -> String {
        match self {
            Self::F32(value) => format!("{value:?}"),
            Self::F64(value) => format!("{value:?}"),
            Self::Bool(value) => format!("{value}"),
            Self::String(text) => format!("the string {text:?}"),
            Self::WString(text) => format!("the wstring {text:?}"),
            Self::Message(message) => format!("a {}", message.ty().name()),
            _ => match (self.as_integer(), self.len()) {
                (Some(value), _) => format!("{value}"),
                (None, len) => format!("a list of {} of another type", len.unwrap_or(0)),
            },
        }
    }

    /// Strings within the bound of their type.
    pub(super) fn check_strings(&self, element: &Element, path: &str) -> Result<(), ValueError> {
        let (bound, longest, unit) = match (self, element) {
            (Self::String(text), Element::String { bound }) => (*bound, text.len(), "bytes"),
            (Self::Strings(texts), Element::String { bound }) => {
                let longest = texts.iter().map(String::len).max();
                (*bound, longest.unwrap_or(0), "bytes")
            }
            (Self::WString(text), Element::WString { bound }) => {
                (*bound, text.0.len(), "UTF-16 units")
            }
            (Self::WStrings(texts), Element::WString { bound }) => {
                let longest = texts.iter().map(|text| text.0.len()).max();
                (*bound, longest.unwrap_or(0), "UTF-16 units")
            }
            _ => return Ok(()),
        };
        if longest > bound {
            return Err(ValueError {
                path: path.into(),
                problem: ValueProblem::WrongLength {
                    expected: format!("a string of at most {bound} {unit}"),
                    found: longest,
                },
            });
        }
        Ok(())
    }
}

/// A type for error messages, with the range of integers.
pub(super) fn expected_text(element: &Element, shape: Shape) -> String {
    let range = match element {
        Element::I8 => Some((i8::MIN.to_string(), i8::MAX.to_string())),
        Element::U8 | Element::Byte => Some((0.to_string(), u8::MAX.to_string())),
        Element::I16 => Some((i16::MIN.to_string(), i16::MAX.to_string())),
        Element::U16 => Some((0.to_string(), u16::MAX.to_string())),
        Element::I32 => Some((i32::MIN.to_string(), i32::MAX.to_string())),
        Element::U32 => Some((0.to_string(), u32::MAX.to_string())),
        Element::I64 => Some((i64::MIN.to_string(), i64::MAX.to_string())),
        Element::U64 => Some((0.to_string(), u64::MAX.to_string())),
        Element::F32 => Some((format!("{:e}", f32::MIN), format!("{:e}", f32::MAX))),
        _ => None,
    };
    let name = element.type_text();
    let name = match range {
        Some((low, high)) => format!("{name} ({low} to {high})"),
        None if matches!(element, Element::Bool) => format!("{name} (true or false)"),
        None => name,
    };
    match shape {
        Shape::Single => name,
        Shape::Array(count) => format!("a list of {count} {name}"),
        Shape::Sequence { bound: UNBOUNDED } => format!("a list of {name}"),
        Shape::Sequence { bound } => format!("a list of at most {bound} {name}"),
    }
}
