//! Arguments of C: nullable pointers, strings, arrays and durations.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::error::{Error, Outcome};

/// The value behind a nullable pointer.
pub(crate) fn required<'a, T>(pointer: Option<&'a T>, what: &str) -> Outcome<&'a T> {
    pointer.ok_or_else(|| null(what))
}

/// As [`required`], to be written.
pub(crate) fn output<'a, T>(pointer: Option<&'a mut T>, what: &str) -> Outcome<&'a mut T> {
    pointer.ok_or_else(|| null(what))
}

/// Writes an output that C need not have initialized.
pub(crate) fn put<T>(pointer: *mut T, value: T, what: &str) -> Outcome {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the contract of C (lib.rs).
    unsafe { pointer.write(value) };
    Ok(())
}

/// The error for a null pointer.
pub(crate) fn null(what: &str) -> Error {
    Error::null(what)
}

/// The text of a C string.
pub(crate) fn text<'a>(pointer: *const c_char, what: &str) -> Outcome<&'a str> {
    optional_text(pointer, what)?.ok_or_else(|| null(what))
}

/// The text of a C string that may be null.
pub(crate) fn optional_text<'a>(pointer: *const c_char, what: &str) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract of C (lib.rs).
    let text = unsafe { CStr::from_ptr(pointer) };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Error::argument(format!(
            "argument {what} {text:?} is not UTF-8"
        ))),
    }
}

/// The elements of an array; none of a null pointer with no elements.
pub(crate) fn array<'a, T>(first: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(Error::argument(format!(
            "argument {what} is null, with {count} elements"
        )));
    }
    // No array is larger. A negative number of C is, as a size.
    if count > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(Error::argument(format!(
            "argument {what} has {count} elements, more than memory can hold; pass their number"
        )));
    }
    // SAFETY: the contract of C (lib.rs).
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// The words of `argc` and `argv`, which need not be UTF-8.
pub(crate) fn words(argc: c_int, argv: *const *const c_char) -> Outcome<Vec<OsString>> {
    let argc = usize::try_from(argc)
        .map_err(|_| Error::argument(format!("argument argc is {argc}; pass that of main")))?;
    let words = array(argv, argc, "argv")?.iter();
    words
        .map(|word| {
            if word.is_null() {
                return Err(null("argv"));
            }
            // SAFETY: the contract of C (lib.rs).
            let word = unsafe { CStr::from_ptr(*word) };
            Ok(OsStr::from_bytes(word.to_bytes()).to_owned())
        })
        .collect()
}

/// A C string of a text, without NULs.
pub(crate) fn c_text(text: &str) -> CString {
    let clean: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    CString::new(clean).unwrap_or_default()
}

/// A duration in nanoseconds; a negative one is endless.
pub(crate) fn timeout(nanoseconds: i64) -> Duration {
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds) => Duration::from_nanos(nanoseconds),
        Err(_) => Duration::MAX,
    }
}
