//! Compiled message types: one program per type, which the encoder and the decoder run.

use std::sync::Arc;

use pteros_msg::describe::Extensibility;
use pteros_msg::dynamic::{DynamicType, Element, Shape};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::types;

/// The program of a message type.
pub(crate) struct Program {
    /// `std_msgs/msg/String`.
    pub(crate) name: String,
    pub(crate) class: Py<PyType>,
    pub(crate) fields: Vec<Field>,
    pub(crate) ty: DynamicType,
    pub(crate) is_appendable: bool,
    /// Whether a message can be large, so that its size is computed first.
    pub(crate) is_bulky: bool,
}

/// One field.
pub(crate) struct Field {
    pub(crate) name: String,
    /// The attribute that holds the value, `_name`.
    pub(crate) slot: Py<PyString>,
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
}

/// The type of a field or of its elements.
pub(crate) enum Kind {
    /// The member that ROS gives an empty message.
    Placeholder,
    Bool,
    /// A byte, which is `bytes` of length 1 in Python.
    Byte,
    Number(Number),
    String {
        bound: usize,
    },
    WString {
        bound: usize,
    },
    Message(Arc<Program>),
}

/// A number type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Number {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Its type code of the module `array`.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::I8 => "b",
            Self::U8 => "B",
            Self::I16 => "h",
            Self::U16 => "H",
            Self::I32 => "i",
            Self::U32 => "I",
            Self::I64 => "q",
            Self::U64 => "Q",
            Self::F32 => "f",
            Self::F64 => "d",
        }
    }

    /// Its type in numpy.
    pub(crate) fn dtype(self) -> &'static str {
        match self {
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// Whether a buffer of that element format and size has such numbers.
    pub(crate) fn is_in_buffer(self, format: u8, item_size: usize) -> bool {
        let is_kind = match self {
            Self::F32 | Self::F64 => matches!(format, b'f' | b'd'),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => {
                matches!(format, b'b' | b'h' | b'i' | b'l' | b'q')
            }
            Self::U8 => matches!(format, b'B' | b'c'),
            Self::U16 | Self::U32 | Self::U64 => matches!(format, b'H' | b'I' | b'L' | b'Q'),
        };
        is_kind && item_size == self.size()
    }

    /// The number type of an element, if it is one.
    fn of(element: &Element) -> Option<Self> {
        Some(match element {
            Element::I8 => Self::I8,
            Element::U8 => Self::U8,
            Element::I16 => Self::I16,
            Element::U16 => Self::U16,
            Element::I32 => Self::I32,
            Element::U32 => Self::U32,
            Element::I64 => Self::I64,
            Element::U64 => Self::U64,
            Element::F32 => Self::F32,
            Element::F64 => Self::F64,
            _ => return None,
        })
    }
}

impl Program {
    /// Compiles a type for its class.
    ///
    /// # Errors
    /// A nested type has no class.
    pub(crate) fn compile(
        py: Python<'_>,
        name: &str,
        ty: DynamicType,
        class: Bound<'_, PyType>,
    ) -> PyResult<Self> {
        let is_empty = ty.user_fields().is_empty();
        let mut fields = Vec::new();
        let mut is_bulky = false;
        for field in ty.fields() {
            let kind = match &field.element {
                _ if is_empty => Kind::Placeholder,
                Element::Bool => Kind::Bool,
                Element::Byte => Kind::Byte,
                Element::String { bound } => Kind::String { bound: *bound },
                Element::WString { bound } => Kind::WString { bound: *bound },
                Element::Message(nested) => {
                    let program = types::program(py, nested.name())?;
                    is_bulky |= program.is_bulky;
                    Kind::Message(program)
                }
                number => Kind::Number(Number::of(number).ok_or_else(|| {
                    PyTypeError::new_err(format!("{name}.{}: unknown type", field.name))
                })?),
            };
            is_bulky |= !matches!(field.shape, Shape::Single);
            fields.push(Field {
                name: field.name.clone(),
                slot: PyString::intern(py, &format!("_{}", field.name)).unbind(),
                kind,
                shape: field.shape,
            });
        }
        Ok(Self {
            name: name.into(),
            class: class.unbind(),
            fields,
            is_appendable: ty.extensibility() == Extensibility::Appendable,
            is_bulky,
            ty,
        })
    }
}
