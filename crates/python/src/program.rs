//! Compiled message types: one program per type, which the encoder and the decoder run.

use std::sync::Arc;

use pteros_msg::describe::Extensibility;
use pteros_msg::dynamic::{DynamicType, Element, Number, Shape};
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

/// Whether a buffer of that element format and size has such numbers.
pub(crate) fn is_in_buffer(number: Number, format: u8, item_size: usize) -> bool {
    let is_kind = match number {
        Number::F32 | Number::F64 => matches!(format, b'f' | b'd'),
        Number::I8 | Number::I16 | Number::I32 | Number::I64 => {
            matches!(format, b'b' | b'h' | b'i' | b'l' | b'q')
        }
        Number::U8 => matches!(format, b'B' | b'c'),
        Number::U16 | Number::U32 | Number::U64 => matches!(format, b'H' | b'I' | b'L' | b'Q'),
    };
    is_kind && item_size == number.size()
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
                other => Kind::Number(other.number().ok_or_else(|| {
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
