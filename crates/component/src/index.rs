//! Which components there are: libraries in folders of ours, and the ament
//! resource index of ROS 2's installations. Nothing is loaded; a library is
//! read only for what its record says.
#![allow(
    clippy::disallowed_methods,
    reason = "the index is where the environment says"
)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LoadError;
use crate::inspect::inspect;

/// The folders of component libraries, apart by colons.
pub const PATH_VARIABLE: &str = "PTEROS_COMPONENT_PATH";

/// Prefixes of installations of ours, apart by colons.
pub const PREFIX_VARIABLE: &str = "PTEROS_PREFIX";

const AMENT_VARIABLE: &str = "AMENT_PREFIX_PATH";
const RESOURCES: &str = "share/ament_index/resource_index";
/// Resource types of the ament index: ours, and rclcpp's.
const RESOURCE: &str = "pteros_components";
const CPP_RESOURCE: &str = "rclcpp_components";

/// Whose component it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Ours.
    Pteros,
    /// rclcpp's, which we can only name.
    Cpp,
}

/// A component that some index names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its package.
    pub package: String,
    /// Its class, `package::Class`.
    pub class: String,
    /// The file it is in.
    pub library: PathBuf,
    /// Whose it is.
    pub origin: Origin,
}

/// Where components are looked for. Looks anew at each question, so that what
/// is built meanwhile is found.
#[derive(Clone, Debug, Default)]
pub struct Index {
    folders: Vec<PathBuf>,
    prefixes: Vec<PathBuf>,
}

impl Index {
    /// Folders of libraries, and prefixes of ament installations; what comes
    /// first wins.
    pub fn new(
        folders: impl IntoIterator<Item = PathBuf>,
        prefixes: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            folders: folders.into_iter().collect(),
            prefixes: prefixes.into_iter().collect(),
        }
    }

    /// The folders of `PTEROS_COMPONENT_PATH`, then the program's own folder,
    /// then the prefixes of `PTEROS_PREFIX` and `AMENT_PREFIX_PATH`, and the one
    /// that the program is installed in (`PREFIX/bin`), if it is.
    pub fn from_environment() -> Self {
        let paths = |name| {
            let value = env::var_os(name).unwrap_or_default();
            let paths = env::split_paths(&value).filter(|path| path.is_absolute() || path.is_dir());
            paths.collect::<Vec<_>>()
        };
        let mut folders = paths(PATH_VARIABLE);
        let own = env::current_exe().ok();
        let own = own.and_then(|program| Some(program.parent()?.to_owned()));
        let mut prefixes = paths(PREFIX_VARIABLE);
        prefixes.extend(paths(AMENT_VARIABLE));
        let installed = own.as_ref().filter(|folder| folder.ends_with("bin"));
        let installed = installed.and_then(|folder| Some(folder.parent()?.to_owned()));
        prefixes.extend(installed.filter(|prefix| prefix.join(RESOURCES).is_dir()));
        let mut seen = std::collections::BTreeSet::new();
        prefixes.retain(|prefix| seen.insert(prefix.clone()));
        folders.extend(own);
        Self::new(folders, prefixes)
    }

    /// The folders of libraries, in the order they are searched.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The prefixes, in the order they are searched.
    pub fn prefixes(&self) -> &[PathBuf] {
        &self.prefixes
    }

    /// All components, ours first. What cannot be read is left out and traced.
    pub fn list(&self) -> Vec<Listed> {
        let mut listed = Vec::new();
        for folder in &self.folders {
            of_folder(folder, &mut listed);
        }
        for (resource, origin) in [(RESOURCE, Origin::Pteros), (CPP_RESOURCE, Origin::Cpp)] {
            for prefix in &self.prefixes {
                of_prefix(prefix, resource, origin, &mut listed);
            }
        }
        listed
    }

    /// All components by package and class, each once: what comes first wins.
    pub fn packages(&self) -> BTreeMap<String, Vec<Listed>> {
        let mut packages: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
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
    pub fn find(&self, package: &str, class: &str) -> Result<Listed, LoadError> {
        let packages = self.packages();
        let Some(of_package) = packages.get(package) else {
            return Err(LoadError::UnknownPackage {
                package: package.into(),
                searched: self.searched(),
                known: words(packages.keys()),
            });
        };
        match of_package.iter().find(|c| c.class == class) {
            None => Err(LoadError::UnknownClass {
                package: package.into(),
                class: class.into(),
                known: words(of_package.iter().map(|c| &c.class)),
            }),
            Some(found) if found.origin == Origin::Cpp => Err(LoadError::Cpp {
                package: package.into(),
                class: class.into(),
                library: found.library.clone(),
            }),
            Some(found) => Ok(found.clone()),
        }
    }

    fn searched(&self) -> String {
        let paths = self.folders.iter().chain(&self.prefixes);
        let paths = words(paths.map(|path| path.display()));
        format!(
            "{paths} ({PATH_VARIABLE}, the program's folder, {PREFIX_VARIABLE} and {AMENT_VARIABLE})"
        )
    }
}

/// A list for people.
fn words<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    match items.is_empty() {
        true => "none".into(),
        false => items.join(", "),
    }
}

/// The libraries of a folder that have records.
fn of_folder(folder: &Path, listed: &mut Vec<Listed>) {
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
        // Other libraries lie there as well.
        for record in inspect(&library).unwrap_or_default() {
            listed.extend(record.classes.into_iter().map(|class| Listed {
                package: record.package.clone(),
                class,
                library: library.clone(),
                origin: Origin::Pteros,
            }));
        }
    }
}

/// The entries of a prefix: a file per package, lines of `class;library`.
fn of_prefix(prefix: &Path, resource: &str, origin: Origin, listed: &mut Vec<Listed>) {
    let Ok(packages) = fs::read_dir(prefix.join(RESOURCES).join(resource)) else {
        return;
    };
    let mut files: Vec<_> = packages
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    for file in files {
        let package = file.file_name().unwrap_or_default().to_string_lossy();
        for line in fs::read_to_string(&file).unwrap_or_default().lines() {
            let Some((class, library)) = line.split_once(';') else {
                if !line.trim().is_empty() {
                    tracing::warn!(
                        "{}: line {line:?} is left out; write class;lib/path.so",
                        file.display()
                    );
                }
                continue;
            };
            listed.push(Listed {
                package: package.clone().into_owned(),
                class: class.trim().into(),
                // An absolute path stays as it is.
                library: prefix.join(library.trim()),
                origin,
            });
        }
    }
}
