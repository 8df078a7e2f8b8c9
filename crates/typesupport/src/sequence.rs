//! Access to sequences: `rosidl_runtime_c` sequences and `std::vector`.

use std::ffi::c_void;
use std::sync::Arc;

use crate::cpp_memory;
use crate::failure::{Failure, Outcome};
use crate::introspection::MessageMember;
use crate::members::{Language, type_id};
use crate::strings::{self, calloc, free, malloc};

type ResizeC = unsafe extern "C" fn(*mut c_void, usize) -> bool;
type ResizeCpp = unsafe extern "C" fn(*mut c_void, usize);

/// The access functions of one member.
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
pub(crate) struct CSequence {
    pub(crate) data: *mut c_void,
    pub(crate) size: usize,
    capacity: usize,
}

impl CSequence {
    /// A sequence of so many elements of zeros.
    pub(crate) fn zeroed(len: usize, element_bytes: usize) -> Outcome<Self> {
        let bytes = len.checked_mul(element_bytes);
        let data = match bytes.ok_or_else(Failure::bad_alloc)? {
            0 => std::ptr::null_mut(),
            bytes => calloc(1, bytes),
        };
        if data.is_null() && len > 0 {
            return Err(Failure::bad_alloc());
        }
        Ok(Self {
            data,
            size: len,
            capacity: len,
        })
    }

    /// Frees the elements, which own nothing any more, and empties the sequence.
    ///
    /// # Safety
    /// The memory is malloc's, or null.
    pub(crate) unsafe fn free(&mut self) {
        // SAFETY: as for this function.
        unsafe { free(self.data) };
        *self = Self {
            data: std::ptr::null_mut(),
            size: 0,
            capacity: 0,
        };
    }

    /// The number of elements, if the sequence can have so many.
    fn checked_len(&self) -> Outcome<usize> {
        let Self {
            data,
            size,
            capacity,
        } = self;
        if *size > *capacity || (data.is_null() && *size > 0) {
            return Err(Failure::error(format!(
                "a sequence has {size} elements in {}; set data, size and capacity",
                if data.is_null() {
                    "no memory".into()
                } else {
                    format!("memory for {capacity}")
                }
            )));
        }
        Ok(*size)
    }

    /// Elements that can be finalized: none of a sequence without memory.
    pub(crate) fn owned_len(&self) -> usize {
        self.checked_len().unwrap_or(0)
    }

    /// Changes the length. All elements are zeros afterwards: empty.
    ///
    /// # Safety
    /// The elements are initialized, and nothing else uses them.
    unsafe fn resize_elements(&mut self, elements: &Elements, len: usize) -> Outcome {
        let stride = elements.stride();
        // SAFETY: as for this function.
        unsafe {
            elements.finalize(self.data.cast(), self.checked_len()?);
            self.size = 0;
            if len > self.capacity {
                self.free();
                let bytes = len.checked_mul(stride).ok_or_else(Failure::bad_alloc)?;
                self.data = malloc(bytes);
                if self.data.is_null() {
                    return Err(Failure::bad_alloc());
                }
                self.capacity = len;
            }
            if len > 0 {
                self.data.cast::<u8>().write_bytes(0, len * stride);
            }
        }
        self.size = len;
        Ok(())
    }
}

/// `std::vector` of libstdc++. The memory is that of `operator new`.
#[repr(C)]
struct CppVector {
    begin: *mut u8,
    end: *mut u8,
    capacity_end: *mut u8,
}

enum Resize {
    Missing,
    /// No access functions are needed: the sequence is a [`CSequence`].
    Known(Elements),
    C(ResizeC),
    Cpp(ResizeCpp),
}

impl SequenceAccess {
    /// A [`CSequence`] of these elements, without access functions.
    pub(super) fn of_known(elements: Elements, bound: usize) -> Self {
        Self {
            known: Some(Language::C),
            bound,
            size: None,
            get_const: None,
            get: None,
            fetch: None,
            assign: None,
            resize: Resize::Known(elements),
        }
    }

    /// Address of an element of a sequence without access functions.
    ///
    /// # Safety
    /// `sequence` is the member and has more than `at` elements.
    unsafe fn known_element(&self, sequence: *const c_void, at: usize) -> Option<*mut u8> {
        let Resize::Known(elements) = &self.resize else {
            return None;
        };
        // SAFETY: as for this function.
        unsafe {
            let data: *mut u8 = (*sequence.cast::<CSequence>()).data.cast();
            Some(data.add(at * elements.stride()))
        }
    }

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
        if let Resize::Known(_) = self.resize {
            // SAFETY: as for this function.
            return unsafe { &*sequence.cast::<CSequence>() }.checked_len();
        }
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
        // SAFETY: as for this function.
        if let Some(element) = unsafe { self.known_element(sequence, at) } {
            return Ok(element.cast_const().cast());
        }
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
        // SAFETY: as for this function.
        if let Some(element) = unsafe { self.known_element(sequence, at) } {
            return Ok(element.cast());
        }
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
        // SAFETY: as for this function; a boolean has one byte, of any value.
        if let Some(element) = unsafe { self.known_element(sequence, at) } {
            // SAFETY: as above.
            return Ok(unsafe { *element } != 0);
        }
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
        // SAFETY: as for this function; a boolean has one byte.
        if let Some(element) = unsafe { self.known_element(sequence, at) } {
            // SAFETY: as above.
            unsafe { element.write(u8::from(value)) };
            return Ok(());
        }
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
        match &self.resize {
            Resize::Missing => Err(missing()),
            Resize::Known(elements) => {
                // SAFETY: as for this function.
                let sequence = unsafe { &mut *sequence.cast::<CSequence>() };
                // SAFETY: as for this function.
                unsafe { sequence.resize_elements(elements, len) }
            }
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
    if member.type_id & type_id::BUFFER != 0 {
        return false;
    }
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
        let memory = malloc(len.saturating_mul(width));
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
        let memory = cpp_memory::operator_new(bytes);
        if memory.is_null() {
            return Err(Failure::bad_alloc());
        }
        if !vector.begin.is_null() {
            // SAFETY: memory of the vector's allocator, which is `operator new`.
            unsafe { cpp_memory::operator_delete(vector.begin.cast()) };
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

/// A struct of C that owns memory.
pub(crate) trait OwnedStruct: Send + Sync {
    /// Bytes of the struct.
    fn size_of(&self) -> usize;

    /// Frees what a struct owns, and empties it.
    ///
    /// # Safety
    /// `message` points to an initialized struct, which nothing else uses.
    unsafe fn free_owned(&self, message: *mut c_void);
}

/// Elements of a sequence whose typesupport has no access functions.
#[derive(Clone)]
pub(crate) enum Elements {
    /// They own no memory.
    Numbers { width: usize },
    /// `rosidl_runtime_c__String` or `__U16String`.
    Strings,
    /// Structs.
    Messages(Arc<dyn OwnedStruct>),
}

impl Elements {
    /// Bytes of an element.
    pub(crate) fn stride(&self) -> usize {
        match self {
            Self::Numbers { width } => *width,
            Self::Strings => strings::stride(Language::C),
            Self::Messages(message) => message.size_of(),
        }
    }

    /// Frees what `count` elements own, and empties them.
    ///
    /// # Safety
    /// `first` points to that many initialized elements.
    pub(crate) unsafe fn finalize(&self, first: *mut u8, count: usize) {
        // SAFETY: as for this function.
        unsafe {
            match self {
                Self::Numbers { .. } => {}
                Self::Strings => finalize_strings(first, count),
                Self::Messages(message) => {
                    for at in 0..count {
                        message.free_owned(first.add(at * message.size_of()).cast());
                    }
                }
            }
        }
    }
}

/// # Safety
/// `first` points to `count` strings of C.
pub(crate) unsafe fn finalize_strings(first: *mut u8, count: usize) {
    // A string has the layout of a sequence.
    let strings: *mut CSequence = first.cast();
    for at in 0..count {
        // SAFETY: as for this function.
        unsafe { (*strings.add(at)).free() };
    }
}
