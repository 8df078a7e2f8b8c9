//! Where code of others comes into the process: the only `unsafe` of
//! components. A library is looked at first ([`crate::inspect()`]) and stays until
//! the process ends: its code may be on some thread's stack, and destructors
//! of its thread-locals would pin it anyway.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use parking_lot::Mutex;
use pteros::component::{Registered, Registration};

use crate::elf::Elf;
use crate::error::LibraryError;
use crate::inspect::Inspected;

/// The libraries that this process has loaded. Thread-safe.
#[derive(Debug, Default)]
pub struct Loader {
    loaded: Mutex<HashMap<PathBuf, Vec<Registered>>>,
}

impl Loader {
    /// The components of a library, which is loaded if it was not before and
    /// never leaves. Blocks while the dynamic linker works.
    ///
    /// # Errors
    /// See [`LibraryError`].
    pub fn load(&self, library: &Path) -> Result<Vec<Registered>, LibraryError> {
        let path = fs::canonicalize(library).map_err(|source| LibraryError::Read {
            library: library.into(),
            source,
        })?;
        let mut loaded = self.loaded.lock();
        if let Some(components) = loaded.get(&path) {
            return Ok(components.clone());
        }
        let inspected = Inspected::of(&path)?;
        inspected.check(&path)?;
        check_program()?;
        let components = open(&path, &inspected)?;
        loaded.insert(path, components.clone());
        Ok(components)
    }
}

/// Types may cross only if this program uses the same shared library of Pteros
/// as the components do.
fn check_program() -> Result<(), LibraryError> {
    // A program that cannot be read cannot be judged; the fingerprint was.
    let Ok(file) = File::open("/proc/self/exe") else {
        return Ok(());
    };
    match Elf::read(&file) {
        Some(elf) if !elf.needs(crate::inspect::SHARED_LIBRARY) => {
            Err(LibraryError::ProgramsOwnCopy)
        }
        _ => Ok(()),
    }
}

fn open(path: &Path, inspected: &Inspected) -> Result<Vec<Registered>, LibraryError> {
    let failed = |error: libloading::Error| LibraryError::Open {
        library: path.into(),
        reason: error.to_string(),
    };
    // SAFETY: the library's initializers run here. It was compiled by the same
    // compiler from safe Rust and the record of `register_components!`, which has
    // none; what else its author lets run at load is the author's promise, as
    // with every library that is linked.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
    // Never closed, so that what it registers is there for good.
    let library: &'static Library = Box::leak(Box::new(library));
    let mut components = Vec::new();
    for record in &inspected.records {
        // SAFETY: the symbol is named by the record, which only
        // `register_components!` writes, beside the static of that type and name.
        // Compiler, target and the sources of Pteros are those of this program:
        // the fingerprint in the record says so, and both use one shared library
        // of Pteros, so that the type is laid out alike on both sides.
        let registration = unsafe { library.get::<*const Registration>(record.symbol.as_bytes()) };
        let registration = registration.map_err(failed)?;
        // SAFETY: a symbol that was found is the address of that static, which
        // nobody writes and which stays, for the library is never closed.
        let registration: &'static Registration = unsafe { &**registration };
        components.extend_from_slice(registration.classes);
    }
    Ok(components)
}
