//! Handles: the C structure that rcl sees, and the state behind it, in one
//! allocation.

use std::ffi::CString;
use std::sync::Arc;

use crate::error::{Failure, Outcome};

/// A handle. The C structure lies first, so that its address is that of the handle.
#[repr(C)]
pub(crate) struct Handle<A, S> {
    pub(crate) abi: A,
    pub(crate) state: Arc<S>,
    /// Names that the C structure points to.
    pub(crate) names: [CString; 2],
}

impl<A, S> Handle<A, S> {
    /// Moves a handle to the heap. It is freed by [`Self::destroy`].
    pub(crate) fn into_raw(self) -> *mut A {
        Box::into_raw(Box::new(self)).cast()
    }

    /// Frees a handle.
    ///
    /// # Safety
    /// `handle` is from [`Self::into_raw`] of this type and is not used any more.
    pub(crate) unsafe fn destroy(handle: *mut A) -> Arc<S> {
        // SAFETY: as for this function.
        let handle = unsafe { Box::from_raw(handle.cast::<Self>()) };
        handle.state
    }
}

/// A C string of a name.
pub(crate) fn c_name(name: &str) -> Outcome<CString> {
    CString::new(name).map_err(|_| Failure::argument(format!("name {name:?} has a NUL")))
}
