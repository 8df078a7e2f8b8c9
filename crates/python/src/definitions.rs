//! Interface definitions: the standard ones, and those of packages that were found beside
//! them. `pteros/_interfaces.py` searches the folders and calls in here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pteros_msg::library::InterfaceLibrary;
use pyo3::exceptions::{PyLookupError, PyOSError};
use pyo3::prelude::*;

/// Most packages that are loaded beside the standard ones.
const PACKAGES_MAX: usize = 1024;
/// Largest sum of their definitions' texts, bytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;

struct Definitions {
    library: Arc<InterfaceLibrary>,
    /// Packages that are known, or that were searched for in vain.
    searched: BTreeSet<String>,
    loaded: usize,
    text_bytes: u64,
}

fn definitions() -> &'static Mutex<Definitions> {
    static DEFINITIONS: OnceLock<Mutex<Definitions>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        let library = pteros_interfaces::library().clone();
        let searched = library.packages().into_iter().map(str::to_owned).collect();
        Mutex::new(Definitions {
            library: Arc::new(library),
            searched,
            loaded: 0,
            text_bytes: 0,
        })
    })
}

/// The definitions that are known now. What is loaded later is not in it.
pub(crate) fn library() -> Arc<InterfaceLibrary> {
    definitions().lock().library.clone()
}

/// The definitions, with those of `package` if a search finds them. The first call for a
/// package reads folders and runs Python code; no lock is held meanwhile.
///
/// # Errors
/// A folder cannot be read, or a limit is reached.
pub(crate) fn library_with(py: Python<'_>, package: &str) -> PyResult<Arc<InterfaceLibrary>> {
    if !definitions().lock().searched.contains(package) {
        py.import("pteros._interfaces")?
            .call_method1("find_package", (package,))?;
        definitions().lock().searched.insert(package.into());
    }
    Ok(library())
}

/// The package of a type's name.
pub(crate) fn package_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(package, _)| package)
}

/// Bytes of the files in the folders of definitions of a package.
fn text_bytes(folder: &Path) -> u64 {
    let kinds = ["msg", "srv", "action"].map(|kind| folder.join(kind));
    let files = kinds.iter().filter_map(|kind| kind.read_dir().ok());
    let entries = files.flatten().filter_map(Result::ok);
    entries
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum()
}

/// Loads the definitions of one package, whose `msg`, `srv` and `action` folders lie in
/// `folder`. Returns the packages that they use and that are not known yet. A package that
/// is known stays as it is.
#[pyfunction]
fn load_interface_package(package: &str, folder: PathBuf) -> PyResult<Vec<String>> {
    let mut definitions = definitions().lock();
    let known = |library: &InterfaceLibrary, package: &str| {
        library.packages().binary_search(&package).is_ok()
    };
    if known(&definitions.library, package) {
        return Ok(Vec::new());
    }
    let text_bytes = definitions.text_bytes + text_bytes(&folder);
    if definitions.loaded >= PACKAGES_MAX || text_bytes > TEXT_BYTES_MAX {
        return Err(PyLookupError::new_err(format!(
            "interface package {package} in {} is not loaded: a process loads at most {PACKAGES_MAX} packages with {TEXT_BYTES_MAX} bytes of definitions; name fewer folders in PTEROS_INTERFACE_PATH",
            folder.display()
        )));
    }
    let mut library = (*definitions.library).clone();
    let count = library
        .load_package(&folder, package)
        .map_err(|error| PyOSError::new_err(error.to_string()))?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let of_package = |name: &&str| package_of(name) == package;
    let names: Vec<&str> = library.names().filter(of_package).collect();
    // A definition with a mistake is reported when its type is used.
    let used = names
        .iter()
        .filter_map(|name| library.packages_used_by(name).ok());
    let used: BTreeSet<String> = used.flatten().collect();
    let missing = used.into_iter().filter(|used| !known(&library, used));
    let missing = missing.collect();
    definitions.library = Arc::new(library);
    definitions.loaded += 1;
    definitions.text_bytes = text_bytes;
    definitions.searched.insert(package.into());
    Ok(missing)
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(load_interface_package, module)?)
}
