//! Access to sequences: `rosidl_runtime_c` sequences and `std::vector`.

use std::ffi::c_void;

use super::members::Language;
use super::strings::{free, malloc};
use crate::abi::MessageMember;
use crate::error::{Failure, Outcome};
use crate::host;

type ResizeC = unsafe extern "C" fn(*mut c_void, usize) -> bool;
type ResizeCpp = unsafe extern "C" fn(*mut c_void, usize);

/// The access functions of one member.
#[derive(Clone, Copy)]
pub(super) struct SequenceAccess {
    /// Maximum number of elements.
    pub(super) bound: usize,
    size: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    get_const: Option<unsafe extern "C" fn(*const c_void, usize) -> *const c_void>,
    get: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    fetch: Option<unsafe extern "C" fn(*const c_void, usize, *mut c_void)>,
    assign: Option<unsafe extern "C" fn(*mut c_void, usize, *const c_void)>,
    resize: Resize,
    /// Language, if the layout of the sequence object is known. Then numbers are resized
    /// without zeroing, and contents are moved by swapping the objects.
    known: Option<Language>,
}

/// `rosidl_runtime_c__…__Sequence`. The memory is malloc's.
#[repr(C)]
struct CSequence {
    data: *mut c_void,
    size: usize,
    capacity: usize,
}

/// `std::vector` of libstdc++. The memory is that of `operator new`.
#[repr(C)]
struct CppVector {
    begin: *mut u8,
    end: *mut u8,
    capacity_end: *mut u8,
}

#[derive(Clone, Copy)]
enum Resize {
    Missing,
    C(ResizeC),
    Cpp(ResizeCpp),
}

impl SequenceAccess {
    pub(super) fn of(
        member: &MessageMember,
        language: Language,
        element_bytes: Option<usize>,
        bound: usize,
    ) -> Self {
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
            known: element_bytes
                .filter(|bytes| has_known_object(member, language, *bytes))
                .map(|_| language),
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

    /// Resizes a sequence of numbers or of flat structs. Returns their address, or `None`
    /// for an empty sequence. The caller writes all of them; until then they may be
    /// uninitialized.
    ///
    /// # Safety
    /// `sequence` is the member, of elements of `width` bytes that own no memory.
    pub(super) unsafe fn resize_numbers(
        &self,
        sequence: *mut c_void,
        width: usize,
        len: usize,
    ) -> Outcome<Option<*mut u8>> {
        // SAFETY: as for this function, and the object was recognized.
        let numbers: *mut u8 = unsafe {
            match self.known {
                Some(Language::C) => resize_c(&mut *sequence.cast(), width, len)?,
                Some(Language::Cpp) => resize_cpp(&mut *sequence.cast(), width, len)?,
                None => {
                    if self.len(sequence)? != len {
                        self.resize(sequence, len)?;
                    }
                    if len == 0 {
                        return Ok(None);
                    }
                    self.element_mut(sequence, 0)?.cast()
                }
            }
        };
        Ok((len > 0).then_some(numbers))
    }

    /// Whether the layout of the sequence object is known. Then its elements are
    /// contiguous.
    pub(super) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Swaps the contents of two sequences by swapping their objects. Returns false, and
    /// changes nothing, if the layout is unknown.
    ///
    /// # Safety
    /// `one` and `other` are the member in two structs, which nothing else uses.
    pub(super) unsafe fn swap(&self, one: *mut c_void, other: *mut c_void) -> bool {
        // SAFETY: as for this function, and the object was recognized. Neither object
        // has pointers to itself.
        unsafe {
            match self.known {
                Some(Language::C) => {
                    std::ptr::swap::<CSequence>(one.cast(), other.cast());
                }
                Some(Language::Cpp) => {
                    std::ptr::swap::<CppVector>(one.cast(), other.cast());
                }
                None => return false,
            }
        }
        true
    }

    /// Copies a boolean out.
    ///
    /// # Safety
    /// As for [`Self::element`].
    pub(super) unsafe fn fetch_bool(&self, sequence: *const c_void, at: usize) -> Outcome<bool> {
        let fetch = self.fetch.ok_or_else(missing)?;
        // Any byte: a user's program may have values other than 0 and 1.
        let mut value = 0_u8;
        // SAFETY: as for this function; a boolean has one byte.
        unsafe { fetch(sequence, at, std::ptr::from_mut(&mut value).cast()) };
        Ok(value != 0)
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

/// Whether a sequence has the usual object of its language: its own size function must
/// return the length of an object made here. `std::vector<bool>` has another layout.
fn has_known_object(member: &MessageMember, language: Language, width: usize) -> bool {
    let Some(size) = member.size_function else {
        return false;
    };
    [0, 3].into_iter().all(|len: usize| {
        // Larger than any sequence object. The function reads no element.
        let mut object = [0_usize; 16];
        let words = match language {
            Language::C => [64, len, 5],
            Language::Cpp => [64, 64 + len * width, 64 + 5 * width],
        };
        object[..3].copy_from_slice(&words);
        // SAFETY: the function computes the length from the object alone.
        unsafe { size(object.as_ptr().cast()) == len }
    })
}

unsafe fn resize_c(sequence: &mut CSequence, width: usize, len: usize) -> Outcome<*mut u8> {
    if len > sequence.capacity {
        let memory = malloc(len * width);
        if memory.is_null() {
            return Err(Failure::bad_alloc());
        }
        // SAFETY: memory of malloc, or null.
        unsafe { free(sequence.data) };
        sequence.data = memory;
        sequence.capacity = len;
    }
    sequence.size = len;
    Ok(sequence.data.cast())
}

unsafe fn resize_cpp(vector: &mut CppVector, width: usize, len: usize) -> Outcome<*mut u8> {
    let bytes = len * width;
    if bytes > vector.capacity_end.addr() - vector.begin.addr() {
        let memory = host::operator_new(bytes);
        if memory.is_null() {
            return Err(Failure::bad_alloc());
        }
        if !vector.begin.is_null() {
            // SAFETY: memory of the vector's allocator, which is `operator new`.
            unsafe { host::operator_delete(vector.begin.cast()) };
        }
        vector.begin = memory.cast();
        vector.capacity_end = vector.begin.wrapping_add(bytes);
    }
    vector.end = vector.begin.wrapping_add(bytes);
    Ok(vector.begin)
}

fn missing() -> Failure {
    Failure::error("the introspection typesupport lacks an access function of a sequence")
}
