//! Handles: the C structure that rcl accesses and the state of the plug-in, in one
//! allocation.

use std::ffi::CString;
use std::sync::Arc;

use crate::error::{Failure, Outcome};
use crate::fork::Origin;

/// A handle. The C structure is its first field, so both have the same address.
#[repr(C)]
pub(crate) struct Handle<A, S> {
    abi: A,
    state: Arc<S>,
    /// Names that the C structure points to.
    _names: [CString; 2],
    origin: Origin,
}

impl<A, S> Handle<A, S> {
    /// `abi` may point to the characters of `names`.
    pub(crate) fn new(abi: A, state: Arc<S>, names: [CString; 2]) -> Self {
        Self {
            abi,
            state,
            _names: names,
            origin: Origin::here(),
        }
    }

    /// The state behind a handle.
    ///
    /// # Safety
    /// `handle` is from [`Self::into_raw`] of this type.
    ///
    /// # Errors
    /// This process is a forked child of the handle's process.
    pub(crate) unsafe fn state<'h>(handle: *const A) -> Outcome<&'h Arc<S>> {
        // SAFETY: as for this function.
        let handle = unsafe { &*handle.cast::<Self>() };
        handle.origin.check()?;
        Ok(&handle.state)
    }

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
