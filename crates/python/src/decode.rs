//! CDR to Python objects: objects without a call of `__init__`, whose slots are set one
//! by one.
//!
//! A sequence of numbers becomes an `array.array` with one copy of its bytes. A fixed
//! array becomes a numpy array if the program has numpy, else an `array.array`.

use pteros_msg::cdr::{Decoder, Encapsulation, Endian};
use pteros_msg::dynamic::{Number, Shape};
use pteros_msg::plain::Primitive;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyList, PyString};

use crate::error::rcl;
use crate::ffi;
use crate::program::{Field, Kind, Program};

/// Elements of a list for which memory is reserved at once.
const RESERVED_MAX: usize = 1 << 12;

/// A decoder and the bytes that it reads, for copies without a loop.
struct Input<'a> {
    decoder: Decoder<'a>,
    body: &'a [u8],
    is_native: bool,
}

/// A payload that is not of its type, and why.
pub(crate) type Undecodable = String;

/// A received message for code that does not hold the GIL.
pub(crate) fn unbound(
    received: Result<PyResult<Bound<'_, PyAny>>, Undecodable>,
) -> Result<PyResult<Py<PyAny>>, Undecodable> {
    received.map(|message| message.map(Bound::unbind))
}

impl Program {
    /// Decodes a payload with its header, which the program itself brought.
    ///
    /// # Errors
    /// RCLError: the payload is not of this type.
    pub(crate) fn decode<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.decode_received(py, payload).unwrap_or_else(|reason| {
            let name = &self.name;
            Err(rcl(format!("a message is not of type {name}: {reason}")))
        })
    }

    /// Decodes a received payload with its header. The inner error is one of Python
    /// itself.
    ///
    /// # Errors
    /// The payload is not of this type: its sender is wrong, not this program.
    pub(crate) fn decode_received<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
    ) -> Result<PyResult<Bound<'py, PyAny>>, Undecodable> {
        match self.read_payload(py, payload) {
            Ok(message) => Ok(Ok(message)),
            Err(ReadError::Python(error)) => Ok(Err(error)),
            Err(ReadError::Undecodable(reason)) => Err(reason),
        }
    }

    fn read_payload<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
    ) -> Result<Bound<'py, PyAny>, ReadError> {
        let header = Encapsulation::read(payload)?;
        let mut input = Input {
            decoder: Decoder::from_payload(payload)?,
            body: payload.get(4..).unwrap_or_default(),
            is_native: header.endian == Endian::NATIVE,
        };
        self.read(py, &mut input)
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        input: &mut Input<'_>,
    ) -> Result<Bound<'py, PyAny>, ReadError> {
        let message = ffi::allocate(self.class.bind(py))?;
        let decoder = &mut input.decoder;
        let scope = if self.is_appendable {
            decoder.begin_appendable()
        } else {
            decoder.begin_struct()
        };
        let scope = scope?;
        for field in &self.fields {
            if self.is_appendable && !input.decoder.has_more(1)? {
                // A sender with fewer fields: the rest has its defaults.
                let default = self.class.bind(py).call0()?;
                let slot = field.slot.bind(py);
                message.setattr(slot, default.getattr(slot)?)?;
                continue;
            }
            let value = field.read(py, input);
            let value = value.map_err(|error| error.in_field(&field.name))?;
            if let Some(value) = value {
                message.setattr(field.slot.bind(py), value)?;
            }
        }
        input.decoder.end_struct(scope);
        message.setattr(pyo3::intern!(py, "_check_fields"), checks_fields(py)?)?;
        Ok(message)
    }
}

/// `ROS_PYTHON_CHECK_FIELDS`, as the classes read it.
fn checks_fields(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CHECKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let checks = CHECKS.get_or_try_init(py, || {
        let module = py.import("pteros._message")?;
        module.getattr("CHECK_FIELDS").map(Bound::unbind)
    })?;
    Ok(checks.bind(py))
}

/// Why a value was not read.
enum ReadError {
    Python(PyErr),
    Undecodable(Undecodable),
}

impl ReadError {
    fn in_field(self, name: &str) -> Self {
        match self {
            Self::Undecodable(reason) => Self::Undecodable(format!("{name}: {reason}")),
            Self::Python(_) => self,
        }
    }
}

impl From<PyErr> for ReadError {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<pteros_msg::cdr::DecodeError> for ReadError {
    fn from(error: pteros_msg::cdr::DecodeError) -> Self {
        Self::Undecodable(error.to_string())
    }
}

impl Field {
    /// `None` for the placeholder of an empty message.
    fn read<'py>(
        &self,
        py: Python<'py>,
        input: &mut Input<'_>,
    ) -> Result<Option<Bound<'py, PyAny>>, ReadError> {
        let (count, bound) = match self.shape {
            Shape::Single => {
                if matches!(self.kind, Kind::Placeholder) {
                    input.decoder.u8()?;
                    return Ok(None);
                }
                return self.kind.read(py, input).map(Some);
            }
            Shape::Array(count) => (Some(count), 0),
            Shape::Sequence { bound } => (None, bound),
        };
        if let Kind::Number(number) = self.kind {
            let len = match count {
                Some(count) => count,
                None => input.decoder.sequence_len(number.size(), bound)?,
            };
            let numbers = input.numbers(number, len)?;
            let made = if count.is_some() {
                fixed_array(py, number, len, &numbers)?
            } else {
                array(py, number, &numbers)?
            };
            return Ok(Some(made));
        }
        let is_primitive = matches!(self.kind, Kind::Bool | Kind::Byte);
        let scope = if is_primitive {
            None
        } else {
            Some(input.decoder.begin_collection()?)
        };
        let len = match count {
            Some(count) => count,
            None => input.decoder.sequence_len(self.kind.bytes_min(), bound)?,
        };
        let mut elements = Vec::with_capacity(len.min(RESERVED_MAX));
        for _ in 0..len {
            elements.push(self.kind.read(py, input)?);
        }
        if let Some(scope) = scope {
            input.decoder.end_collection(scope);
        }
        Ok(Some(PyList::new(py, elements)?.into_any()))
    }
}

impl Kind {
    /// The least that an element takes on the wire.
    fn bytes_min(&self) -> usize {
        match self {
            Self::Placeholder | Self::Bool | Self::Byte | Self::Message(_) => 1,
            Self::Number(number) => number.size(),
            Self::String { .. } | Self::WString { .. } => 4,
        }
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        input: &mut Input<'_>,
    ) -> Result<Bound<'py, PyAny>, ReadError> {
        let decoder = &mut input.decoder;
        Ok(match self {
            Self::Placeholder => {
                decoder.u8()?;
                py.None().into_bound(py)
            }
            Self::Bool => PyBool::new(py, decoder.bool()?).to_owned().into_any(),
            Self::Byte => PyBytes::new(py, &[decoder.u8()?]).into_any(),
            Self::Number(number) => read_number(py, *number, decoder)?,
            Self::String { bound } => {
                // Checked after the copy: the bytes may lie in memory of another process.
                PyString::new(py, &decoder.string(*bound)?).into_any()
            }
            Self::WString { bound } => {
                let units = decoder.wstring(*bound)?;
                PyString::new(py, &String::from_utf16_lossy(&units.0)).into_any()
            }
            Self::Message(program) => program.read(py, input)?,
        })
    }
}

fn read_number<'py>(
    py: Python<'py>,
    number: Number,
    decoder: &mut Decoder<'_>,
) -> Result<Bound<'py, PyAny>, ReadError> {
    fn object<'py, T>(py: Python<'py>, value: T) -> Result<Bound<'py, PyAny>, ReadError>
    where
        T: pyo3::IntoPyObject<'py>,
        PyErr: From<T::Error>,
        T::Output: Into<Bound<'py, T::Target>>,
    {
        let made = value.into_pyobject(py).map_err(PyErr::from)?;
        Ok(made.into().into_any())
    }
    match number {
        Number::I8 => object(py, decoder.i8()?),
        Number::U8 => object(py, decoder.u8()?),
        Number::I16 => object(py, decoder.i16()?),
        Number::U16 => object(py, decoder.u16()?),
        Number::I32 => object(py, decoder.i32()?),
        Number::U32 => object(py, decoder.u32()?),
        Number::I64 => object(py, decoder.i64()?),
        Number::U64 => object(py, decoder.u64()?),
        Number::F32 => object(py, f64::from(decoder.f32()?)),
        Number::F64 => object(py, decoder.f64()?),
    }
}

/// Bytes of numbers in this machine's order.
enum Numbers<'a> {
    InPlace(&'a [u8]),
    Swapped(Vec<u8>),
}

impl std::ops::Deref for Numbers<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPlace(bytes) => bytes,
            Self::Swapped(bytes) => bytes,
        }
    }
}

impl<'a> Input<'a> {
    fn numbers(&mut self, number: Number, count: usize) -> Result<Numbers<'a>, ReadError> {
        if self.is_native {
            let size = number.size();
            self.decoder.skip_primitives(size, count)?;
            let end = self.decoder.position();
            let begin = end.saturating_sub(size.saturating_mul(count));
            return Ok(Numbers::InPlace(
                self.body.get(begin..end).unwrap_or_default(),
            ));
        }
        fn swapped<T: Primitive>(
            decoder: &mut Decoder<'_>,
            count: usize,
            bytes: impl Fn(T) -> Vec<u8>,
        ) -> Result<Vec<u8>, ReadError> {
            let numbers = decoder.primitive_vec::<T>(count)?;
            Ok(numbers.into_iter().flat_map(bytes).collect())
        }
        let decoder = &mut self.decoder;
        Ok(Numbers::Swapped(match number.size() {
            1 => decoder.primitive_vec::<u8>(count)?,
            2 => swapped(decoder, count, |value: u16| value.to_ne_bytes().into())?,
            4 => swapped(decoder, count, |value: u32| value.to_ne_bytes().into())?,
            _ => swapped(decoder, count, |value: u64| value.to_ne_bytes().into())?,
        }))
    }
}

/// An `array.array`.
fn array<'py>(py: Python<'py>, number: Number, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = ARRAY.get_or_try_init(py, || {
        py.import("array")?.getattr("array").map(Bound::unbind)
    })?;
    let made = class.bind(py).call1((number.array_code(),))?;
    if !bytes.is_empty() {
        ffi::with_view(py, bytes, |view| {
            let read = made.call_method1(pyo3::intern!(py, "frombytes"), (view,));
            read.map(drop)
        })?;
    }
    Ok(made)
}

/// A numpy array, or an `array.array` without numpy.
fn fixed_array<'py>(
    py: Python<'py>,
    number: Number,
    count: usize,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
    let empty = EMPTY.get_or_init(py, || {
        let numpy = py.import("numpy").ok()?;
        numpy.getattr("empty").ok().map(Bound::unbind)
    });
    let Some(empty) = empty else {
        return array(py, number, bytes);
    };
    let made = empty.bind(py).call1((count, number.name()))?;
    ffi::fill(&made, bytes)?;
    Ok(made)
}
