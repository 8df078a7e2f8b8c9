//! `operator new` and `operator delete` of the C++ program, for the memory of its strings
//! and vectors.
//!
//! The symbols are resolved at run time, so that nothing links to a C++ library.
//! `RTLD_NOLOAD` finds a library that the process has loaded in another scope, as Python
//! does.

use std::ffi::c_void;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};

/// Makes `dlopen` return only loaded libraries (`bits/dlfcn.h`).
const RTLD_NOLOAD: i32 = 4;

type OperatorNew = unsafe extern "C" fn(usize) -> *mut c_void;
type OperatorDelete = unsafe extern "C" fn(*mut c_void);

/// Resolved functions.
struct Operators {
    new: Option<OperatorNew>,
    delete: Option<OperatorDelete>,
    /// Keeps the libraries open.
    _libraries: [Option<Library>; 2],
}

fn operators() -> &'static Operators {
    static FOUND: OnceLock<Operators> = OnceLock::new();
    FOUND.get_or_init(|| {
        // SAFETY: the library is loaded already in a process of C++; elsewhere nothing is
        // opened.
        let stdcxx = unsafe { Library::open(Some("libstdc++.so.6"), RTLD_LAZY | RTLD_NOLOAD) }.ok();
        // A program may replace the operators, and its containers then free memory with
        // them.
        let program = Some(Library::this());
        // SAFETY: the types are those of the Itanium C++ ABI.
        unsafe {
            Operators {
                new: symbol(program.as_ref(), b"_Znwm\0")
                    .or_else(|| symbol(stdcxx.as_ref(), b"_Znwm\0")),
                delete: symbol(program.as_ref(), b"_ZdlPv\0")
                    .or_else(|| symbol(stdcxx.as_ref(), b"_ZdlPv\0")),
                _libraries: [stdcxx, program],
            }
        }
    })
}

/// # Safety
/// `T` is the type of the symbol.
unsafe fn symbol<T: Copy>(library: Option<&Library>, name: &[u8]) -> Option<T> {
    // SAFETY: as for this function.
    let found = unsafe { library?.get::<T>(name) };
    found.ok().map(|symbol| *symbol)
}

/// Memory of C++'s `operator new`; null if the process has no C++.
pub(crate) fn operator_new(bytes: usize) -> *mut c_void {
    match operators().new {
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
    if let Some(delete) = operators().delete {
        // SAFETY: as for this function.
        unsafe { delete(memory) };
    }
}
