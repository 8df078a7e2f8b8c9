//! Strings in the user's structs: `rosidl_runtime_c__String`, `std::string` and their
//! wide siblings.
//!
//! The layout of `std::string` is that of libstdc++'s `__cxx11::basic_string`, which its
//! ABI fixes. It has a pointer, a length, and 16 bytes for the characters of a short
//! string or the capacity of a long one.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::cpp_memory;
use crate::failure::{Failure, Outcome};
use crate::members::Language;

/// Strings in C: data, size, capacity. The memory is malloc's, as rcutils' default
/// allocator.
#[repr(C)]
struct CString<T> {
    data: *mut T,
    size: usize,
    capacity: usize,
}

/// `std::basic_string<T>` of libstdc++.
#[repr(C)]
struct CppString {
    data: *mut c_void,
    size: usize,
    /// The short string, or the capacity. Bytes behind a short string are uninitialized.
    local: [MaybeUninit<usize>; 2],
}

unsafe extern "C" {
    pub(super) safe fn malloc(bytes: usize) -> *mut c_void;
    pub(super) safe fn calloc(count: usize, bytes: usize) -> *mut c_void;
    pub(super) fn free(memory: *mut c_void);
}

/// Bytes of the string object in arrays.
pub(super) fn stride(language: Language) -> usize {
    match language {
        Language::C => size_of::<CString<u8>>(),
        Language::Cpp => size_of::<CppString>(),
    }
}

/// The units of a string, without the final zero.
///
/// # Safety
/// `string` points to a string of the language with units of `T`.
pub(super) unsafe fn read<'a, T>(language: Language, string: *const c_void) -> Outcome<&'a [T]> {
    // SAFETY: as for this function; both begin with data and size.
    let string = unsafe { &*string.cast::<CString<T>>() };
    if string.data.is_null() {
        return match (language, string.size) {
            (Language::C, 0) => Ok(&[]),
            _ => Err(Failure::error("a string member was not initialized")),
        };
    }
    // SAFETY: `size` units of the string.
    Ok(unsafe { std::slice::from_raw_parts(string.data, string.size) })
}

/// Replaces the content of a string. The units may lie in the same string of C.
///
/// # Safety
/// `string` points to an initialized string of the language with units of `T`, and `units`
/// to initialized memory.
///
/// # Errors
/// There is no memory.
pub unsafe fn write<T: Copy + Default>(
    language: Language,
    string: *mut c_void,
    units: *const [T],
) -> Outcome {
    let count = units.len();
    // SAFETY: as for this function; there is space for the units and a final zero. Earlier
    // memory, in which the units may lie, is freed after the copy.
    unsafe {
        let (data, earlier): (*mut T, Earlier) = match language {
            Language::C => reserve_c(string, count),
            Language::Cpp => reserve_cpp(string, count),
        }?;
        data.copy_from(units.cast(), count);
        data.add(count).write(T::default());
        (*string.cast::<CString<T>>()).size = count;
        match earlier {
            Earlier::Kept => {}
            Earlier::Malloc(memory) => free(memory),
            Earlier::New(memory) => cpp_memory::operator_delete(memory),
        }
    }
    Ok(())
}

/// Swaps the contents of two strings. Allocates nothing.
///
/// # Safety
/// `one` and `other` point to two initialized strings of the language, which nothing
/// else uses.
pub(super) unsafe fn swap(language: Language, one: *mut c_void, other: *mut c_void) {
    // SAFETY: as for this function.
    unsafe {
        match language {
            Language::C => std::ptr::swap::<CString<u8>>(one.cast(), other.cast()),
            Language::Cpp => swap_cpp(&mut *one.cast(), &mut *other.cast()),
        }
    }
}

/// A short string is inside its object, so its pointer remains with the object.
fn swap_cpp(one: &mut CppString, other: &mut CppString) {
    let is_short = [one.is_short(), other.is_short()];
    std::mem::swap(one, other);
    if is_short[0] {
        other.data = other.local();
    }
    if is_short[1] {
        one.data = one.local();
    }
}

impl CppString {
    fn local(&mut self) -> *mut c_void {
        (&raw mut self.local).cast()
    }

    fn is_short(&mut self) -> bool {
        self.data == self.local()
    }
}

/// Memory that a string had before it got more.
enum Earlier {
    /// The same as now, or inside the object.
    Kept,
    /// Of malloc, or null.
    Malloc(*mut c_void),
    /// Of `operator new`.
    New(*mut c_void),
}

/// Space for `count` units and a zero.
unsafe fn reserve_c<T>(string: *mut c_void, count: usize) -> Outcome<(*mut T, Earlier)> {
    // SAFETY: as for `write`.
    let string = unsafe { &mut *string.cast::<CString<T>>() };
    if string.data.is_null() || string.capacity < count + 1 {
        let memory = malloc((count + 1) * size_of::<T>());
        if memory.is_null() {
            return Err(Failure::bad_alloc());
        }
        let earlier = Earlier::Malloc(string.data.cast());
        string.data = memory.cast();
        string.capacity = count + 1;
        return Ok((string.data, earlier));
    }
    Ok((string.data, Earlier::Kept))
}

unsafe fn reserve_cpp<T>(string: *mut c_void, count: usize) -> Outcome<(*mut T, Earlier)> {
    let short_max = 16 / size_of::<T>() - 1;
    // SAFETY: as for `write`.
    let object = unsafe { &mut *string.cast::<CppString>() };
    let is_short = object.is_short();
    let capacity = if is_short {
        short_max
    } else {
        // SAFETY: the capacity of a long string.
        unsafe { object.local[0].assume_init() }
    };
    if count > capacity {
        let memory = cpp_memory::operator_new((count + 1) * size_of::<T>());
        if memory.is_null() {
            return Err(Failure::bad_alloc());
        }
        let earlier = if is_short {
            Earlier::Kept
        } else {
            Earlier::New(object.data)
        };
        object.data = memory;
        object.local[0].write(count);
        return Ok((memory.cast(), earlier));
    }
    Ok((object.data.cast(), Earlier::Kept))
}
