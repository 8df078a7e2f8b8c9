//! Functions of a library that every ROS 2 process has loaded: rcutils for error texts.
//!
//! The symbols are resolved at run time, so that the plug-in builds without a ROS 2
//! installation. `RTLD_NOLOAD` finds a library that the process has loaded in another
//! scope, as Python does.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};

/// Makes `dlopen` return only loaded libraries (`bits/dlfcn.h`).
const RTLD_NOLOAD: i32 = 4;

type SetErrorState = unsafe extern "C" fn(*const c_char, *const c_char, usize);
type ResetError = unsafe extern "C" fn();

/// Resolved functions.
struct HostFunctions {
    set_error_state: Option<SetErrorState>,
    reset_error: Option<ResetError>,
    /// Keeps the library open.
    _library: Option<Library>,
}

fn functions() -> &'static HostFunctions {
    static FOUND: OnceLock<HostFunctions> = OnceLock::new();
    FOUND.get_or_init(|| {
        let rcutils = open("librcutils.so");
        // SAFETY: the types are those of rcutils' `error_handling.h`.
        unsafe {
            HostFunctions {
                set_error_state: symbol(rcutils.as_ref(), b"rcutils_set_error_state\0"),
                reset_error: symbol(rcutils.as_ref(), b"rcutils_reset_error\0"),
                _library: rcutils,
            }
        }
    })
}

/// A library of the process.
fn open(name: &str) -> Option<Library> {
    // SAFETY: the library runs no code of ours, and is loaded already in a process of
    // ROS 2; elsewhere nothing is opened.
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
