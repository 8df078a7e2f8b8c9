//! Access to sequences: `rosidl_runtime_c` sequences and `std::vector`.

use std::ffi::c_void;

use super::members::Language;
use crate::abi::MessageMember;
use crate::error::{Failure, Outcome};

type ResizeC = unsafe extern "C" fn(*mut c_void, usize) -> bool;
type ResizeCpp = unsafe extern "C" fn(*mut c_void, usize);

/// The access functions of one member.
#[derive(Clone, Copy)]
pub(super) struct SequenceAccess {
    /// The most elements.
    pub(super) bound: usize,
    size: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    get_const: Option<unsafe extern "C" fn(*const c_void, usize) -> *const c_void>,
    get: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    fetch: Option<unsafe extern "C" fn(*const c_void, usize, *mut c_void)>,
    assign: Option<unsafe extern "C" fn(*mut c_void, usize, *const c_void)>,
    resize: Resize,
}

#[derive(Clone, Copy)]
enum Resize {
    Missing,
    C(ResizeC),
    Cpp(ResizeCpp),
}

impl SequenceAccess {
    pub(super) fn of(member: &MessageMember, language: Language, bound: usize) -> Self {
        let resize = if member.resize_function.is_null() {
            Resize::Missing
        } else {
            // SAFETY: the type of the function in the typesupport of that language.
            unsafe {
                match language {
                    Language::C => Resize::C(std::mem::transmute::<*const c_void, ResizeC>(
                        member.resize_function,
                    )),
                    Language::Cpp => Resize::Cpp(std::mem::transmute::<*const c_void, ResizeCpp>(
                        member.resize_function,
                    )),
                }
            }
        };
        Self {
            bound,
            size: member.size_function,
            get_const: member.get_const_function,
            get: member.get_function,
            fetch: member.fetch_function,
            assign: member.assign_function,
            resize,
        }
    }

    /// Elements in the sequence.
    ///
    /// # Safety
    /// `sequence` is the member.
    pub(super) unsafe fn len(&self, sequence: *const c_void) -> Outcome<usize> {
        let size = self.size.ok_or_else(missing)?;
        // SAFETY: as for this function.
        Ok(unsafe { size(sequence) })
    }

    /// An element. The elements of number sequences lie side by side.
    ///
    /// # Safety
    /// `sequence` is the member and has more than `at` elements.
    pub(super) unsafe fn element(
        &self,
        sequence: *const c_void,
        at: usize,
    ) -> Outcome<*const c_void> {
        let get = self.get_const.ok_or_else(missing)?;
        // SAFETY: as for this function.
        Ok(unsafe { get(sequence, at) })
    }

    /// As [`Self::element`], to write it.
    ///
    /// # Safety
    /// As for [`Self::element`].
    pub(super) unsafe fn element_mut(
        &self,
        sequence: *mut c_void,
        at: usize,
    ) -> Outcome<*mut c_void> {
        let get = self.get.ok_or_else(missing)?;
        // SAFETY: as for this function.
        Ok(unsafe { get(sequence, at) })
    }

    /// Copies a boolean out.
    ///
    /// # Safety
    /// As for [`Self::element`].
    pub(super) unsafe fn fetch_bool(&self, sequence: *const c_void, at: usize) -> Outcome<bool> {
        let fetch = self.fetch.ok_or_else(missing)?;
        let mut value = false;
        // SAFETY: as for this function.
        unsafe { fetch(sequence, at, std::ptr::from_mut(&mut value).cast()) };
        Ok(value)
    }

    /// Copies a boolean in.
    ///
    /// # Safety
    /// As for [`Self::element`].
    pub(super) unsafe fn assign_bool(
        &self,
        sequence: *mut c_void,
        at: usize,
        value: bool,
    ) -> Outcome {
        let assign = self.assign.ok_or_else(missing)?;
        // SAFETY: as for this function.
        unsafe { assign(sequence, at, std::ptr::from_ref(&value).cast()) };
        Ok(())
    }

    /// Changes the length. Elements are initialized; earlier contents may be lost.
    ///
    /// # Safety
    /// `sequence` is the member.
    pub(super) unsafe fn resize(&self, sequence: *mut c_void, len: usize) -> Outcome {
        match self.resize {
            Resize::Missing => Err(missing()),
            Resize::C(resize) => {
                // SAFETY: as for this function.
                let resized = unsafe { resize(sequence, len) };
                resized.then_some(()).ok_or_else(Failure::bad_alloc)
            }
            Resize::Cpp(resize) => {
                // SAFETY: as for this function.
                unsafe { resize(sequence, len) };
                Ok(())
            }
        }
    }
}

fn missing() -> Failure {
    Failure::error("the introspection typesupport lacks an access function of a sequence")
}
