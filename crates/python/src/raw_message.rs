//! `RawMessage`: a serialized message where it was received, as a read-only buffer.
//!
//! The class is made by hand, since PyO3 has no buffers under the stable ABI of 3.10.

use std::ffi::{c_int, c_void};

use bytes::Bytes;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::ffi::{PyBuffer_FillInfo, RawBuffer};

/// The memory of an object.
#[repr(C)]
struct RawObject {
    head: ffi::PyObject,
    payload: *mut Bytes,
}

/// Slot numbers of `typeslots.h`, which PyO3 hides under this ABI.
const BF_GETBUFFER: c_int = 1;

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: an object of this class; its payload is from `Box::into_raw`.
    unsafe {
        let class = ffi::Py_TYPE(object);
        let payload = (*object.cast::<RawObject>()).payload;
        if !payload.is_null() {
            drop(Box::from_raw(payload));
        }
        let free = ffi::PyType_GetSlot(class, ffi::Py_tp_free);
        if !free.is_null() {
            let free: ffi::freefunc = std::mem::transmute::<*mut c_void, ffi::freefunc>(free);
            free(object.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

unsafe extern "C" fn get_buffer(
    object: *mut ffi::PyObject,
    view: *mut RawBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: an object of this class; the view keeps it alive.
    unsafe {
        let payload = &*(*object.cast::<RawObject>()).payload;
        let len = isize::try_from(payload.len()).unwrap_or(isize::MAX);
        PyBuffer_FillInfo(
            view,
            object,
            payload.as_ptr().cast_mut().cast(),
            len,
            1,
            flags,
        )
    }
}

unsafe extern "C" fn length(object: *mut ffi::PyObject) -> isize {
    // SAFETY: an object of this class.
    let payload = unsafe { &*(*object.cast::<RawObject>()).payload };
    isize::try_from(payload.len()).unwrap_or(isize::MAX)
}

/// The text of a `bytes` with the same content, as programs print raw messages of rclpy.
unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: an object of this class; Python copies the content.
    unsafe {
        let payload = &*(*object.cast::<RawObject>()).payload;
        let len = isize::try_from(payload.len()).unwrap_or(isize::MAX);
        let bytes = ffi::PyBytes_FromStringAndSize(payload.as_ptr().cast(), len);
        if bytes.is_null() {
            return bytes;
        }
        let text = ffi::PyObject_Repr(bytes);
        ffi::Py_DECREF(bytes);
        text
    }
}

/// The class.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || make_class(py))?;
    Ok(class.bind(py))
}

fn make_class(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let slot = |slot, function: *mut c_void| ffi::PyType_Slot {
        slot,
        pfunc: function,
    };
    let doc =
        c"A serialized message (CDR with its header) where it was received: a read-only buffer.";
    let mut slots = [
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(BF_GETBUFFER, get_buffer as *mut c_void),
        slot(ffi::Py_sq_length, length as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"pteros._native.RawMessage".as_ptr(),
        basicsize: c_int::try_from(size_of::<RawObject>()).unwrap_or(0),
        itemsize: 0,
        // DISALLOW_INSTANTIATION (1 << 7): only `take_raw` makes them.
        flags: u32::try_from(ffi::Py_TPFLAGS_DEFAULT).unwrap_or(0) | (1 << 7),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the functions fit the slots; Python copies the specification.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec)) }.map(Bound::unbind)
}

/// A new object that holds `payload`.
pub(crate) fn new(py: Python<'_>, payload: Bytes) -> PyResult<Bound<'_, PyAny>> {
    let class = class(py)?;
    // SAFETY: an object of this class, whose payload is set before anybody sees it.
    unsafe {
        let object =
            Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0))?;
        (*object.as_ptr().cast::<RawObject>()).payload = Box::into_raw(Box::new(payload));
        Ok(object)
    }
}
