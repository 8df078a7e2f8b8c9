//! Python objects to CDR.
//!
//! Sequences of numbers are copied as a whole where they have a buffer of the right
//! element type (`array.array`, `bytes`, numpy).

use bytes::Bytes;
use pteros_msg::WString;
use pteros_msg::cdr::{Encoder, Endian, Representation, UNBOUNDED};
use pteros_msg::dynamic::{Number, Shape};
use pteros_msg::plain::Primitive;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::ffi::Buffer;
use crate::program::{Field, Kind, Program, is_in_buffer};

/// The encapsulation header of XCDR1 in this machine's byte order.
pub(crate) const HEADER: [u8; 4] = [0, cfg!(target_endian = "little") as u8, 0, 0];

impl Program {
    /// Checks that a value is a message of this type.
    ///
    /// # Errors
    /// TypeError.
    pub(crate) fn check(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = message.py();
        let class = self.class.bind(py);
        if message.get_type().is(class) || message.is_instance(class)? {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "expected a message of type {}, got {}",
            self.name,
            message.get_type().fully_qualified_name()?
        )))
    }

    /// The payload's size, with its header.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub(crate) fn size(&self, message: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut counter = Encoder::counting(Representation::Xcdr1);
        self.write(message, &mut counter)?;
        Ok(counter.len() + HEADER.len())
    }

    /// Encodes into memory of [`Self::size`] bytes.
    ///
    /// # Errors
    /// As [`Self::encode`]; RuntimeError if the message has changed since.
    pub(crate) fn encode_into(
        &self,
        message: &Bound<'_, PyAny>,
        memory: &mut [u8],
    ) -> PyResult<()> {
        let len = memory.len();
        let Some((header, body)) = memory.split_first_chunk_mut::<4>() else {
            return Err(changed(&self.name));
        };
        *header = HEADER;
        let mut out = Encoder::to_slice(body, Representation::Xcdr1, Endian::NATIVE);
        self.write(message, &mut out)?;
        match out.finish() {
            Ok(written) if written + HEADER.len() == len => Ok(()),
            _ => Err(changed(&self.name)),
        }
    }

    /// The payload of a message.
    ///
    /// # Errors
    /// TypeError or ValueError, which names the field.
    pub(crate) fn encode(&self, message: &Bound<'_, PyAny>) -> PyResult<Bytes> {
        if self.is_bulky {
            let mut payload = vec![0; self.size(message)?];
            self.encode_into(message, &mut payload)?;
            return Ok(payload.into());
        }
        let mut payload = Vec::with_capacity(128);
        payload.extend_from_slice(&HEADER);
        let mut out = Encoder::to_vec(&mut payload, Representation::Xcdr1, Endian::NATIVE);
        self.write(message, &mut out)?;
        Ok(payload.into())
    }

    fn write(&self, message: &Bound<'_, PyAny>, out: &mut Encoder<'_>) -> PyResult<()> {
        let py = message.py();
        for field in &self.fields {
            if matches!(field.kind, Kind::Placeholder) {
                out.u8(0);
                continue;
            }
            let written = message
                .getattr(field.slot.bind(py))
                .and_then(|value| field.write(&value, out));
            if let Err(error) = written {
                return Err(self.name_field(py, field, error));
            }
        }
        Ok(())
    }

    /// Says which field an error is about.
    fn name_field(&self, py: Python<'_>, field: &Field, error: PyErr) -> PyErr {
        let text = format!("{}.{}: {}", self.name, field.name, error.value(py));
        if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        }
    }
}

fn changed(name: &str) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err(format!(
        "the message of type {name} was changed by another thread while it was sent"
    ))
}

fn wrong(expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value
        .get_type()
        .fully_qualified_name()
        .map_or_else(|_| "another type".into(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, got {found}"))
}

/// Checks a length against a bound.
fn check_bound(what: &str, len: usize, bound: usize) -> PyResult<()> {
    if bound == UNBOUNDED || len <= bound {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{len} {what}, but its type allows {bound}"
    )))
}

impl Field {
    fn write(&self, value: &Bound<'_, PyAny>, out: &mut Encoder<'_>) -> PyResult<()> {
        let (count, bound) = match self.shape {
            Shape::Single => return self.kind.write(value, out),
            Shape::Array(count) => (Some(count), UNBOUNDED),
            Shape::Sequence { bound } => (None, bound),
        };
        let check = |len: usize| match count {
            Some(count) if count != len => Err(PyValueError::new_err(format!(
                "{len} elements, but its type has exactly {count}"
            ))),
            _ => check_bound("elements", len, bound),
        };
        if let Kind::Number(number) = &self.kind
            && let Ok(buffer) = Buffer::read(value)
            && is_in_buffer(*number, buffer.format(), buffer.item_size())
        {
            let bytes = buffer.bytes();
            let len = bytes.len() / number.size();
            check(len)?;
            if count.is_none() {
                out.sequence_len(len);
            }
            write_numbers(*number, bytes, out);
            return Ok(());
        }
        if value.is_instance_of::<PyString>() {
            return Err(wrong("a sequence", value));
        }
        let len = value.len().map_err(|_| wrong("a sequence", value))?;
        check(len)?;
        if count.is_none() {
            out.sequence_len(len);
        }
        let mut written = 0;
        for element in value.try_iter()? {
            self.kind.write(&element?, out)?;
            written += 1;
        }
        // A generator-like sequence may lie about its length.
        check_same(len, written)
    }
}

fn check_same(len: usize, written: usize) -> PyResult<()> {
    if len == written {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "its len() is {len}, but it has {written} elements"
    )))
}

impl Kind {
    fn write(&self, value: &Bound<'_, PyAny>, out: &mut Encoder<'_>) -> PyResult<()> {
        match self {
            Self::Placeholder => out.u8(0),
            Self::Bool => match value.cast::<PyBool>() {
                Ok(value) => out.bool(value.is_true()),
                Err(_) => out.bool(value.extract().map_err(|_| wrong("bool", value))?),
            },
            Self::Byte => {
                let bytes = value.cast::<PyBytes>().map_err(|_| wrong("bytes", value))?;
                match bytes.as_bytes() {
                    [byte] => out.u8(*byte),
                    other => {
                        return Err(PyValueError::new_err(format!(
                            "{} bytes, but its type has exactly 1",
                            other.len()
                        )));
                    }
                }
            }
            Self::Number(number) => write_number(*number, value, out)?,
            Self::String { bound } => {
                let text = value.cast::<PyString>().map_err(|_| wrong("str", value))?;
                let text = text.to_cow()?;
                check_bound("bytes in UTF-8", text.len(), *bound)?;
                out.string(&text);
            }
            Self::WString { bound } => {
                let text = value.cast::<PyString>().map_err(|_| wrong("str", value))?;
                let units = WString(text.to_cow()?.encode_utf16().collect());
                check_bound("UTF-16 units", units.0.len(), *bound)?;
                out.wstring(&units);
            }
            Self::Message(program) => {
                program.check(value)?;
                program.write(value, out)?;
            }
        }
        Ok(())
    }
}

fn write_number(number: Number, value: &Bound<'_, PyAny>, out: &mut Encoder<'_>) -> PyResult<()> {
    fn integer<'py, T>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        value.extract::<T>().map_err(|error: PyErr| {
            if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(value.py()) {
                PyValueError::new_err(format!("{value} is out of the range of {name}"))
            } else {
                wrong("int", value)
            }
        })
    }
    let float = || value.extract::<f64>().map_err(|_| wrong("float", value));
    let name = number.name();
    match number {
        Number::I8 => out.i8(integer(name, value)?),
        Number::U8 => out.u8(integer(name, value)?),
        Number::I16 => out.i16(integer(name, value)?),
        Number::U16 => out.u16(integer(name, value)?),
        Number::I32 => out.i32(integer(name, value)?),
        Number::U32 => out.u32(integer(name, value)?),
        Number::I64 => out.i64(integer(name, value)?),
        Number::U64 => out.u64(integer(name, value)?),
        Number::F32 => out.f32(float()? as f32),
        Number::F64 => out.f64(float()?),
    }
    Ok(())
}

fn write_numbers(number: Number, bytes: &[u8], out: &mut Encoder<'_>) {
    fn typed<T: Primitive + Copy>(bytes: &[u8], out: &mut Encoder<'_>) {
        match crate::ffi::as_numbers::<T>(bytes) {
            Some(numbers) => out.primitive_array(numbers),
            // Not aligned, as a slice of a memoryview may be.
            None => out.primitive_array(&crate::ffi::copied_numbers::<T>(bytes)),
        }
    }
    match number {
        Number::I8 | Number::U8 => out.primitive_array(bytes),
        Number::I16 | Number::U16 => typed::<u16>(bytes, out),
        Number::I32 | Number::U32 => typed::<u32>(bytes, out),
        Number::F32 => typed::<f32>(bytes, out),
        Number::I64 | Number::U64 => typed::<u64>(bytes, out),
        Number::F64 => typed::<f64>(bytes, out),
    }
}
