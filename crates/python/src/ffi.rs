//! Calls of Python's C API that PyO3 has no safe form of under the stable ABI of 3.10:
//! buffers, objects without a call of their constructor, and callbacks of users.
//!
//! `PyObject_GetBuffer` and `Py_buffer` joined the stable ABI in 3.11, with the layout
//! and the symbols that 3.10 has, so they are declared here.

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;

use pteros_msg::plain::Primitive;
use pyo3::exceptions::{PyBufferError, PyImportError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyTuple, PyType};

/// `Py_buffer`.
#[repr(C)]
pub(crate) struct RawBuffer {
    memory: *mut c_void,
    owner: *mut ffi::PyObject,
    len: isize,
    item_size: isize,
    read_only: c_int,
    dimensions: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
    pub(crate) fn PyBuffer_FillInfo(
        view: *mut RawBuffer,
        object: *mut ffi::PyObject,
        memory: *mut c_void,
        len: isize,
        read_only: c_int,
        flags: c_int,
    ) -> c_int;
}

unsafe extern "C-unwind" {
    // PyO3 declares it as well, as one that does not unwind, but never calls it.
    fn PyObject_CallObject(
        callable: *mut ffi::PyObject,
        arguments: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

/// Handles, signals and message classes of the process belong to one interpreter.
///
/// # Errors
/// ImportError in a sub-interpreter.
pub(crate) fn check_interpreter() -> PyResult<()> {
    // SAFETY: the GIL is held, so there is a current interpreter.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if id == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "pteros does not work in a sub-interpreter; import it in the main interpreter, or start \
         a process with multiprocessing or subprocess",
    ))
}

/// Stops the thread for good when it is dropped, which unwinding alone does.
struct StopThread;

impl Drop for StopThread {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a user's function, which may be under way when the interpreter ends.
///
/// CPython before 3.14 ends a daemon thread then, with `pthread_exit`, when it asks for the
/// interpreter lock. That unwinds the stack, and would abort the process at the first
/// frame of Rust. So the thread stops for good instead, as in CPython 3.14. PyO3 does the
/// same where native code takes the lock.
///
/// # Errors
/// That of the function.
pub(crate) fn call_back<'py>(
    function: &Bound<'py, PyAny>,
    arguments: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = arguments.map_or(std::ptr::null_mut(), Bound::as_ptr);
    let guard = StopThread;
    // SAFETY: both objects live, the GIL is held, and null stands for no arguments.
    let result = unsafe { PyObject_CallObject(function.as_ptr(), arguments) };
    std::mem::forget(guard);
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

/// PyBUF_WRITABLE.
const WRITABLE: c_int = 1;
/// PyBUF_C_CONTIGUOUS and PyBUF_FORMAT.
const CONTIGUOUS: c_int = 0x38 | 4;
/// PyBUF_READ of `PyMemoryView_FromMemory`.
const READ: c_int = 0x100;

/// The contiguous memory of an object, as long as this lives.
pub(crate) struct Buffer<'py> {
    raw: Box<RawBuffer>,
    _object: PhantomData<Bound<'py, PyAny>>,
}

impl<'py> Buffer<'py> {
    /// # Errors
    /// BufferError or TypeError: the object has no contiguous buffer.
    pub(crate) fn read(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(object, CONTIGUOUS)
    }

    fn new(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Self> {
        // SAFETY: plain data, for which zeros are valid.
        let mut raw: Box<RawBuffer> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: the object lives, the GIL is held, and the view does not move.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &mut *raw, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self {
            raw,
            _object: PhantomData,
        })
    }

    /// Its bytes. Nobody else runs Python code that changes them while the GIL is held.
    pub(crate) fn bytes(&self) -> &[u8] {
        let len = usize::try_from(self.raw.len).unwrap_or(0);
        if len == 0 {
            return &[];
        }
        // SAFETY: Python guarantees so many contiguous bytes until the release.
        unsafe { std::slice::from_raw_parts(self.raw.memory.cast::<u8>(), len) }
    }

    /// The size of an element.
    pub(crate) fn item_size(&self) -> usize {
        usize::try_from(self.raw.item_size).unwrap_or(1)
    }

    /// The letter of its element type (module `struct`), without byte order.
    pub(crate) fn format(&self) -> u8 {
        if self.raw.format.is_null() {
            return b'B';
        }
        // SAFETY: a C string.
        let text = unsafe { std::ffi::CStr::from_ptr(self.raw.format) }.to_bytes();
        match text {
            [b'<' | b'=' | b'@', letter] | [letter] => *letter,
            _ => 0,
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: filled by `PyObject_GetBuffer`, released once, with the GIL.
        unsafe { PyBuffer_Release(&mut *self.raw) };
    }
}

/// Copies bytes into an object's memory.
///
/// # Errors
/// BufferError: it is not writable, or of another size.
pub(crate) fn fill(object: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let buffer = Buffer::new(object, CONTIGUOUS | WRITABLE)?;
    if usize::try_from(buffer.raw.len) != Ok(bytes.len()) {
        return Err(PyBufferError::new_err(format!(
            "{} bytes do not fit a buffer of {}",
            bytes.len(),
            buffer.raw.len
        )));
    }
    // SAFETY: writable memory of that size, and the GIL is held.
    unsafe {
        buffer
            .raw
            .memory
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
    Ok(())
}

/// Calls `with` with a read-only view of `bytes`, which is dead afterwards.
pub(crate) fn with_view<R>(
    py: Python<'_>,
    bytes: &[u8],
    with: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
) -> PyResult<R> {
    let len = isize::try_from(bytes.len()).unwrap_or(isize::MAX);
    // SAFETY: the view is released below, before `bytes` ends.
    let view = unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyMemoryView_FromMemory(bytes.as_ptr().cast_mut().cast(), len, READ),
        )
    }?;
    let view = view.cast_into::<PyMemoryView>()?.into_any();
    let result = with(&view);
    view.call_method0("release")?;
    result
}

/// A new object of a Python class, without a call of `__init__`. All its slots are unset.
pub(crate) fn allocate<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    // SAFETY: a heap type made by a `class` statement, whose allocator is the generic one.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class.as_type_ptr(), 0)) }
}

/// Bytes as numbers where they are aligned.
pub(crate) fn as_numbers<T: Primitive>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: every bit pattern is a number (`FixedLayout`), and `align_to` keeps the
    // alignment.
    let (before, numbers, after) = unsafe { bytes.align_to::<T>() };
    (before.is_empty() && after.is_empty()).then_some(numbers)
}

/// Bytes as numbers, copied.
pub(crate) fn copied_numbers<T: Primitive>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len() / size_of::<T>();
    let mut numbers = vec![T::default(); count];
    // SAFETY: memory of `count` numbers, of which every bit pattern is a number.
    unsafe {
        numbers
            .as_mut_ptr()
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), count * size_of::<T>());
    }
    numbers
}
