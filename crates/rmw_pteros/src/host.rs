//! Functions of libraries that every ROS 2 process has loaded: rcutils for error texts,
//! libstdc++ for the memory of C++ strings.
//!
//! The symbols are resolved at run time, so that the plug-in builds without a ROS 2
//! installation. `RTLD_NOLOAD` finds a library that the process has loaded in another
//! scope, as Python does.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};

/// Makes `dlopen` return only loaded libraries (`bits/dlfcn.h`).
const RTLD_NOLOAD: i32 = 4;

type SetErrorState = unsafe extern "C" fn(*const c_char, *const c_char, usize);
type ResetError = unsafe extern "C" fn();
type OperatorNew = unsafe extern "C" fn(usize) -> *mut c_void;
type OperatorDelete = unsafe extern "C" fn(*mut c_void);

/// Resolved functions.
struct HostFunctions {
    set_error_state: Option<SetErrorState>,
    reset_error: Option<ResetError>,
    operator_new: Option<OperatorNew>,
    operator_delete: Option<OperatorDelete>,
    /// Keeps the libraries open.
    _libraries: [Option<Library>; 3],
}

fn functions() -> &'static HostFunctions {
    static FOUND: OnceLock<HostFunctions> = OnceLock::new();
    FOUND.get_or_init(|| {
        let rcutils = open("librcutils.so");
        let stdcxx = open("libstdc++.so.6");
        // A program may replace the operators, and its containers then free memory with
        // them.
        let program = Some(Library::this());
        // SAFETY: the types are those of rcutils' `error_handling.h` and of the
        // Itanium C++ ABI.
        unsafe {
            HostFunctions {
                set_error_state: symbol(rcutils.as_ref(), b"rcutils_set_error_state\0"),
                reset_error: symbol(rcutils.as_ref(), b"rcutils_reset_error\0"),
                operator_new: symbol(program.as_ref(), b"_Znwm\0")
                    .or_else(|| symbol(stdcxx.as_ref(), b"_Znwm\0")),
                operator_delete: symbol(program.as_ref(), b"_ZdlPv\0")
                    .or_else(|| symbol(stdcxx.as_ref(), b"_ZdlPv\0")),
                _libraries: [rcutils, stdcxx, program],
            }
        }
    })
}

/// A library of the process.
fn open(name: &str) -> Option<Library> {
    // SAFETY: neither library runs code of ours, and both are loaded already in a
    // process of ROS 2; elsewhere nothing is opened.
    unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_NOLOAD) }.ok()
}

/// # Safety
/// `T` is the type of the symbol.
unsafe fn symbol<T: Copy>(library: Option<&Library>, name: &[u8]) -> Option<T> {
    // SAFETY: as for this function.
    let found = unsafe { library?.get::<T>(name) };
    found.ok().map(|symbol| *symbol)
}

/// Sets the error state of this thread, which rcl prints. Allocates only the text.
pub(crate) fn set_error(text: &str) {
    let Some(set) = functions().set_error_state else {
        tracing::error!("{text}");
        return;
    };
    let clean: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    let text = CString::new(clean).unwrap_or_default();
    // SAFETY: both are strings with a NUL, which the callee copies.
    unsafe { set(text.as_ptr(), c"rmw_pteros_cpp".as_ptr(), 0) };
}

/// Clears the error state of this thread.
pub(crate) fn reset_error() {
    if let Some(reset) = functions().reset_error {
        // SAFETY: the function has no arguments.
        unsafe { reset() };
    }
}

/// Memory of C++'s `operator new`; null if the process has no C++.
pub(crate) fn operator_new(bytes: usize) -> *mut c_void {
    match functions().operator_new {
        // SAFETY: it throws only when memory is exhausted, which ends the process.
        Some(new) => unsafe { new(bytes) },
        None => std::ptr::null_mut(),
    }
}

/// Frees memory of [`operator_new`].
///
/// # Safety
/// `memory` is from `operator new` and not used any more.
pub(crate) unsafe fn operator_delete(memory: *mut c_void) {
    if let Some(delete) = functions().operator_delete {
        // SAFETY: as for this function.
        unsafe { delete(memory) };
    }
}
