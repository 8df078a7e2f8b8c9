//! Interface definitions: the standard ones, and those of packages that were found beside
//! them. `pteros/_interfaces.py` and the import hook search for those and call in here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::package_folders::PackageFolders;
use pyo3::exceptions::{PyLookupError, PyOSError};
use pyo3::prelude::*;

/// Most packages that are loaded beside the standard ones.
const PACKAGES_MAX: usize = 1024;
/// Largest sum of their definitions' texts, bytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;

struct Definitions {
    library: Arc<InterfaceLibrary>,
    /// The packages of the library.
    packages: BTreeSet<String>,
    loaded: usize,
    text_bytes: u64,
}

fn definitions() -> &'static Mutex<Definitions> {
    static DEFINITIONS: OnceLock<Mutex<Definitions>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        let library = pteros_interfaces::library().clone();
        let packages = library.packages().into_iter().map(str::to_owned).collect();
        Mutex::new(Definitions {
            library: Arc::new(library),
            packages,
            loaded: 0,
            text_bytes: 0,
        })
    })
}

fn is_known(package: &str) -> bool {
    definitions().lock().packages.contains(package)
}

/// The definitions that are known now. What is loaded later is not in it.
pub(crate) fn library() -> Arc<InterfaceLibrary> {
    definitions().lock().library.clone()
}

/// The definitions, with those of `package` if a search finds them. A package that is not
/// known is searched for at each call: that reads folders and runs Python code. No lock is
/// held meanwhile.
///
/// # Errors
/// A folder cannot be read, or a limit is reached.
pub(crate) fn library_with(py: Python<'_>, package: &str) -> PyResult<Arc<InterfaceLibrary>> {
    if !is_known(package) {
        py.import("pteros._interfaces")?
            .call_method1("find_package", (package,))?;
    }
    Ok(library())
}

/// As [`library_with`], with the packages that `package` uses. They are searched for again
/// where they were missing before.
///
/// # Errors
/// As [`library_with`].
pub(crate) fn library_with_used(py: Python<'_>, package: &str) -> PyResult<Arc<InterfaceLibrary>> {
    let library = library_with(py, package)?;
    for used in missing_packages(&library, package) {
        library_with(py, &used)?;
    }
    Ok(self::library())
}

/// The packages that the definitions of a package use and that are not known. A definition
/// with a mistake is left out: it is reported when its type is used.
fn missing_packages(library: &InterfaceLibrary, package: &str) -> BTreeSet<String> {
    let names = library.names().filter(|name| package_of(name) == package);
    let used = names.filter_map(|name| library.packages_used_by(name).ok());
    used.flatten().filter(|used| !is_known(used)).collect()
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

/// The packages that the definitions in a folder use and that are not known yet.
#[pyfunction]
fn get_packages_used(package: &str, folder: PathBuf) -> PyResult<Vec<String>> {
    if text_bytes(&folder) > TEXT_BYTES_MAX {
        // Loading says it.
        return Ok(Vec::new());
    }
    let mut library = InterfaceLibrary::default();
    load(&mut library, package, &folder)?;
    Ok(missing_packages(&library, package).into_iter().collect())
}

fn load(library: &mut InterfaceLibrary, package: &str, folder: &Path) -> PyResult<usize> {
    let loaded = library.load_package(folder, package);
    loaded.map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Loads the definitions of one package, whose `msg`, `srv` and `action` folders lie in
/// `folder`. A package that is known stays as it is.
#[pyfunction]
fn load_interface_package(package: &str, folder: PathBuf) -> PyResult<()> {
    let mut definitions = definitions().lock();
    if definitions.packages.contains(package) {
        return Ok(());
    }
    let text_bytes = definitions.text_bytes + text_bytes(&folder);
    if definitions.loaded >= PACKAGES_MAX || text_bytes > TEXT_BYTES_MAX {
        return Err(PyLookupError::new_err(format!(
            "interface package {package} in {} is not loaded: a process loads at most {PACKAGES_MAX} packages with {TEXT_BYTES_MAX} bytes of definitions; name fewer folders in PTEROS_INTERFACE_PATH",
            folder.display()
        )));
    }
    if load(Arc::make_mut(&mut definitions.library), package, &folder)? > 0 {
        definitions.packages.insert(package.into());
        definitions.loaded += 1;
        definitions.text_bytes = text_bytes;
    }
    Ok(())
}

/// The folder of a package in the first of these folders that has it, at any depth. What
/// lies below each is searched for once in a process. Blocks for the disk, without Python's
/// lock.
#[pyfunction]
fn find_interface_package(py: Python<'_>, package: &str, roots: Vec<PathBuf>) -> Option<PathBuf> {
    static SEARCHED: Mutex<BTreeMap<PathBuf, PackageFolders>> = Mutex::new(BTreeMap::new());
    py.detach(|| {
        let mut searched = SEARCHED.lock();
        roots.into_iter().find_map(|root| {
            let folders = searched.entry(root.clone());
            folders
                .or_insert_with(|| PackageFolders::of(root))
                .find(package)
        })
    })
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_packages_used, module)?)?;
    module.add_function(wrap_pyfunction!(find_interface_package, module)?)?;
    module.add_function(wrap_pyfunction!(load_interface_package, module)?)
}
