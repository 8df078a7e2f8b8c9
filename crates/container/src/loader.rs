//! Component loader: loads shared libraries into the process. It holds the only
//! `unsafe` code of components.
//!
//! A library is inspected first ([`crate::inspect()`]). It is never unloaded, since
//! its code may be on the stack of a thread, and destructors of its thread-locals
//! would pin it anyway.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use parking_lot::Mutex;
use pteros::component::{ComponentClass, Registration};

use crate::elf::Elf;
use crate::error::LibraryError;
use crate::inspect::LibraryInspection;

/// The libraries that this process has loaded. Thread-safe.
#[derive(Debug, Default)]
pub struct Loader {
    loaded: Mutex<HashMap<PathBuf, Vec<ComponentClass>>>,
}

impl Loader {
    /// The components of a library. Loads the library at the first call and keeps
    /// it until the process ends. Blocks while the dynamic linker works.
    ///
    /// # Errors
    /// See [`LibraryError`].
    pub fn load(&self, library: &Path) -> Result<Vec<ComponentClass>, LibraryError> {
        let path = fs::canonicalize(library).map_err(|source| LibraryError::Read {
            library: library.into(),
            source,
        })?;
        let mut loaded = self.loaded.lock();
        if let Some(components) = loaded.get(&path) {
            return Ok(components.clone());
        }
        let inspected = LibraryInspection::read(&path)?;
        inspected.check(&path)?;
        check_program()?;
        let components = open(&path, &inspected)?;
        loaded.insert(path, components.clone());
        Ok(components)
    }
}

/// Checks that this program uses the same shared library of Pteros as the
/// components do. Otherwise types must not be passed between them.
fn check_program() -> Result<(), LibraryError> {
    // A program that cannot be read is accepted, since its fingerprint was checked.
    let Ok(file) = File::open("/proc/self/exe") else {
        return Ok(());
    };
    match Elf::read(&file) {
        Some(elf) if !elf.needs(crate::inspect::SHARED_LIBRARY) => {
            Err(LibraryError::ProgramStaticPteros)
        }
        _ => Ok(()),
    }
}

fn open(path: &Path, inspected: &LibraryInspection) -> Result<Vec<ComponentClass>, LibraryError> {
    let failed = |error: libloading::Error| LibraryError::Open {
        library: path.into(),
        reason: error.to_string(),
    };
    // SAFETY: the library's initializers run here. It was compiled by the same
    // compiler from safe Rust and from the record of `register_components!`, which
    // has no initializers. Other load-time code is its author's responsibility, as
    // in every linked library.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
    // Never closed, so the registered items stay valid.
    let library: &'static Library = Box::leak(Box::new(library));
    let mut components = Vec::new();
    for record in &inspected.records {
        // SAFETY: the record names the symbol, and only `register_components!`
        // writes records, beside the static of that type and name. The fingerprint
        // in the record proves that compiler, target and sources of Pteros are
        // those of this program. Both use one shared library of Pteros, so the type
        // has the same layout on both sides.
        let registration = unsafe { library.get::<*const Registration>(record.symbol.as_bytes()) };
        let registration = registration.map_err(failed)?;
        // SAFETY: a resolved symbol is the address of that static. Nothing writes
        // to it, and it stays valid, since the library is never closed.
        let registration: &'static Registration = unsafe { &**registration };
        components.extend_from_slice(registration.classes);
    }
    Ok(components)
}
