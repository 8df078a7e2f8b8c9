//! Component index: component libraries in folders, and the ament resource index of
//! installations. It loads no library, and reads only the component records of
//! library files.
#![allow(clippy::disallowed_methods, reason = "reads where the index is")]

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use pteros::msg::regular_file;

use crate::error::LoadError;
use crate::inspect::inspect;

/// Environment variable with folders of component libraries, separated by colons.
pub const PATH_VARIABLE: &str = "PTEROS_COMPONENT_PATH";

/// Environment variable with installation prefixes of Pteros packages, separated by
/// colons.
pub const PREFIX_VARIABLE: &str = "PTEROS_PREFIX";

/// Environment variable: `off` leaves the built-in nodes and components out.
pub const BUILT_IN_SWITCH: &str = "PTEROS_BUILT_IN_NODES";

/// Environment variable with the active virtual environment of Python.
const PYTHON_VARIABLE: &str = "VIRTUAL_ENV";
const AMENT_VARIABLE: &str = "AMENT_PREFIX_PATH";
/// The largest list of a package's components.
const INDEX_BYTES_MAX: u64 = 1 << 20;
const RESOURCES: &str = "share/ament_index/resource_index";
/// Resource types of the ament index: Pteros' and rclcpp's.
const RESOURCE: &str = "pteros_components";
const CPP_RESOURCE: &str = "rclcpp_components";

/// Whether the value of [`BUILT_IN_SWITCH`] leaves the built-in nodes in.
pub fn are_built_in_nodes_on(switch: Option<&OsStr>) -> bool {
    switch.is_none_or(|value| value != "off")
}

/// Language and library that a component is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComponentOrigin {
    /// A Rust component of Pteros.
    Pteros,
    /// A C++ component of rclcpp. Pteros can list it, but not load it.
    Cpp,
}

/// A component that an index lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentEntry {
    /// The package that the entry is of, without a path.
    pub package: String,
    /// Its class, `package::Class`.
    pub class: String,
    /// The file of its library.
    pub library: PathBuf,
    /// Whether it is a Pteros or an rclcpp component.
    pub origin: ComponentOrigin,
}

/// Finds components. Each call reads the file system again, so new builds are
/// found.
#[derive(Clone, Debug, Default)]
pub struct ComponentIndex {
    folders: Vec<PathBuf>,
    prefixes: Vec<PathBuf>,
}

impl ComponentIndex {
    /// An index over folders of libraries and ament prefixes; earlier entries take
    /// precedence.
    pub fn new(
        folders: impl IntoIterator<Item = PathBuf>,
        prefixes: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            folders: folders.into_iter().collect(),
            prefixes: prefixes.into_iter().collect(),
        }
    }

    /// The folders of `PTEROS_COMPONENT_PATH`, then the program's own folder.
    /// Prefixes are those of `PTEROS_PREFIX` and `AMENT_PREFIX_PATH`, then the active
    /// virtual environment of Python, and the one that the program is installed in
    /// (`PREFIX/bin`), if they have an ament index.
    pub fn from_environment() -> Self {
        Self::of_program(env::current_exe().ok())
    }

    /// As [`ComponentIndex::from_environment`], for this path of the program.
    pub fn of_program(program: Option<PathBuf>) -> Self {
        let paths = |name| {
            let value = env::var_os(name).unwrap_or_default();
            let paths = env::split_paths(&value).filter(|path| path.is_absolute() || path.is_dir());
            paths.collect::<Vec<_>>()
        };
        let mut folders = paths(PATH_VARIABLE);
        let own = program.and_then(|program| Some(program.parent()?.to_owned()));
        let mut prefixes = paths(PREFIX_VARIABLE);
        prefixes.extend(paths(AMENT_VARIABLE));
        let installed = own.as_ref().filter(|folder| folder.ends_with("bin"));
        let installed = installed.and_then(|folder| Some(folder.parent()?.to_owned()));
        let python = env::var_os(PYTHON_VARIABLE).filter(|value| !value.is_empty());
        let python = python.map(PathBuf::from);
        let own_prefixes = python.into_iter().chain(installed);
        prefixes.extend(own_prefixes.filter(|prefix| prefix.join(RESOURCES).is_dir()));
        let mut seen = std::collections::BTreeSet::new();
        prefixes.retain(|prefix| seen.insert(prefix.clone()));
        folders.extend(own);
        Self::new(folders, prefixes)
    }

    /// The library folders, in search order.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The prefixes, in search order.
    pub fn prefixes(&self) -> &[PathBuf] {
        &self.prefixes
    }

    /// All components, those of Pteros first. Unreadable entries are skipped and
    /// traced.
    pub fn list(&self) -> Vec<ComponentEntry> {
        let mut listed = Vec::new();
        for folder in &self.folders {
            add_folder(folder, &mut listed);
        }
        for (resource, origin) in [
            (RESOURCE, ComponentOrigin::Pteros),
            (CPP_RESOURCE, ComponentOrigin::Cpp),
        ] {
            for prefix in &self.prefixes {
                add_prefix(prefix, resource, origin, &mut listed);
            }
        }
        listed
    }

    /// All components by package and class, each once. The first entry takes
    /// precedence.
    pub fn packages(&self) -> BTreeMap<String, Vec<ComponentEntry>> {
        let mut packages: BTreeMap<String, Vec<ComponentEntry>> = BTreeMap::new();
        for component in self.list() {
            let of_package = packages.entry(component.package.clone()).or_default();
            if !of_package.iter().any(|c| c.class == component.class) {
                of_package.push(component);
            }
        }
        packages
    }

    /// The component of that package and class.
    ///
    /// # Errors
    /// [`LoadError::UnknownPackage`], [`LoadError::UnknownClass`],
    /// [`LoadError::Cpp`].
    pub fn find(&self, package: &str, class: &str) -> Result<ComponentEntry, LoadError> {
        let packages = self.packages();
        let Some(of_package) = packages.get(package) else {
            return Err(LoadError::UnknownPackage {
                package: package.into(),
                searched: self.searched(),
                known: list_text(packages.keys()),
            });
        };
        match of_package.iter().find(|c| c.class == class) {
            None => Err(LoadError::UnknownClass {
                package: package.into(),
                class: class.into(),
                known: list_text(of_package.iter().map(|c| &c.class)),
            }),
            Some(found) if found.origin == ComponentOrigin::Cpp => Err(LoadError::Cpp {
                package: package.into(),
                class: class.into(),
                library: found.library.clone(),
            }),
            Some(found) => Ok(found.clone()),
        }
    }

    fn searched(&self) -> String {
        let paths = self.folders.iter().chain(&self.prefixes);
        let paths = list_text(paths.map(|path| path.display()));
        format!(
            "{paths} ({PATH_VARIABLE}, the program's folder, {PREFIX_VARIABLE} and {AMENT_VARIABLE})"
        )
    }
}

/// A comma-separated list.
fn list_text<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() {
        "none".into()
    } else {
        items.join(", ")
    }
}

/// Adds the component libraries of a folder.
fn add_folder(folder: &Path, listed: &mut Vec<ComponentEntry>) {
    let Ok(entries) = fs::read_dir(folder) else {
        tracing::debug!("component folder {} cannot be listed", folder.display());
        return;
    };
    let mut libraries: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "so"))
        .collect();
    libraries.sort();
    for library in libraries {
        // The folder may hold other libraries.
        for record in inspect(&library).unwrap_or_default() {
            listed.extend(record.classes.into_iter().map(|class| ComponentEntry {
                package: record.package.clone(),
                class,
                library: library.clone(),
                origin: ComponentOrigin::Pteros,
            }));
        }
    }
}

/// Adds the entries of a prefix: one file per package, with lines of
/// `class;library`.
fn add_prefix(
    prefix: &Path,
    resource: &str,
    origin: ComponentOrigin,
    listed: &mut Vec<ComponentEntry>,
) {
    let Ok(packages) = fs::read_dir(prefix.join(RESOURCES).join(resource)) else {
        return;
    };
    let mut files: Vec<_> = packages
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    for file in files {
        let package = file.file_name().unwrap_or_default().to_string_lossy();
        for line in regular_file::read_text(&file, INDEX_BYTES_MAX)
            .unwrap_or_default()
            .lines()
        {
            let Some((class, library)) = line.split_once(';') else {
                if !line.trim().is_empty() {
                    tracing::warn!(
                        "{}: line {line:?} is left out; write class;lib/path.so",
                        file.display()
                    );
                }
                continue;
            };
            listed.push(ComponentEntry {
                package: package.clone().into_owned(),
                class: class.trim().into(),
                // An absolute path replaces the prefix.
                library: prefix.join(library.trim()),
                origin,
            });
        }
    }
}
