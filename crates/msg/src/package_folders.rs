//! Search for interface packages in a folder: the rule of `PTEROS_INTERFACE_PATH` and
//! `--interfaces`. Feature `std`; reads folders, never writes.
//!
//! A package is a folder with definitions in `msg`, `srv` or `action`. Its name is that of
//! `package.xml` or `Cargo.toml` in it, else that of the folder. A folder `interfaces` has
//! the name of the package around it, as `pteros new` makes it. A package is the folder of
//! its name in the root or in the root's `share`, the root itself, or any folder below, in
//! this order; of those below the nearest wins. As colcon does, the search leaves out hidden
//! folders, those with a mark to be ignored, and what else lies within a package.

use crate::package_manifest::{declared_name, folder_name, package_name_of};
use crate::schema::{InterfaceKind, is_package_name};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::fs;
use std::path::{Path, PathBuf};

/// Levels of folders that are searched below a root.
const DEPTH_MAX: usize = 8;
/// Folders that are searched below a root.
const FOLDERS_MAX: usize = 20_000;
/// Files that leave out the folder that has them. The last is that of Cargo's `target`.
const IGNORE_MARKS: [&str; 3] = ["COLCON_IGNORE", "AMENT_IGNORE", "CACHEDIR.TAG"];
/// The folder of definitions in a Cargo package of `pteros new`.
const INNER_FOLDER: &str = "interfaces";

/// The interface packages in a folder. Remembers what lies below it: that is searched for
/// once.
#[derive(Debug)]
pub struct PackageFolders {
    root: PathBuf,
    below: Option<BTreeMap<String, PathBuf>>,
}

impl PackageFolders {
    /// The packages in that folder. Reads nothing yet.
    pub fn of(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            below: None,
        }
    }

    /// The folder of a package. Blocks for the disk; folders that cannot be read are
    /// passed over.
    pub fn find(&mut self, package: &str) -> Option<PathBuf> {
        if !is_package_name(package) {
            return None;
        }
        let direct = [
            self.root.join(package),
            self.root.join("share").join(package),
        ];
        let is_it = |folder: &PathBuf| is_package(folder) && name_below(folder) == package;
        if let Some(folder) = direct.into_iter().find(is_it) {
            return Some(folder);
        }
        if is_package(&self.root) && package_name_of(&self.root) == package {
            return Some(self.root.clone());
        }
        self.below().get(package).cloned()
    }

    /// The folders of all packages by name. Blocks as [`find`](Self::find) does.
    pub fn all(&mut self) -> BTreeMap<String, PathBuf> {
        let mut names = Vec::new();
        for folder in [self.root.clone(), self.root.join("share")] {
            let own = entries(&folder)
                .into_iter()
                .map(|entry| folder.join(entry.name));
            names.extend(own.map(|folder| name_below(&folder)));
        }
        names.push(package_name_of(&self.root));
        names.extend(self.below().keys().cloned());
        let folders = names.into_iter().filter_map(|name| {
            let folder = self.find(&name)?;
            Some((name, folder))
        });
        folders.collect()
    }

    fn below(&mut self) -> &BTreeMap<String, PathBuf> {
        let root = &self.root;
        self.below.get_or_insert_with(|| search(root))
    }
}

/// The packages below a folder, level by level.
fn search(root: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut level = Vec::from([root.to_path_buf()]);
    let mut searched = 0_usize;
    for _ in 0..DEPTH_MAX {
        let mut deeper = Vec::new();
        for folder in level {
            searched = searched.saturating_add(1);
            if searched > FOLDERS_MAX {
                return found;
            }
            let entries = entries(&folder);
            let has = |name: &str| entries.iter().any(|entry| entry.name == name);
            if IGNORE_MARKS.iter().any(|mark| has(mark)) {
                continue;
            }
            if is_package(&folder) {
                // The root's name is that of what lies around it.
                if folder != root {
                    found.entry(name_below(&folder)).or_insert(folder);
                }
                continue;
            }
            let is_closed = has("package.xml");
            let folders = entries.iter().filter(|entry| entry.is_folder);
            let searched = folders.filter(|entry| {
                if is_closed {
                    entry.name == INNER_FOLDER
                } else {
                    !entry.name.starts_with('.')
                }
            });
            deeper.extend(searched.map(|entry| folder.join(&entry.name)));
        }
        level = deeper;
    }
    found
}

/// The name of a package below the root. What lies above has another name, unless it is the
/// package of that folder `interfaces`.
fn name_below(folder: &Path) -> String {
    if folder.ends_with(INNER_FOLDER) {
        return package_name_of(folder);
    }
    declared_name(folder).unwrap_or_else(|| folder_name(folder))
}

/// Whether a folder has definitions: files with names of types.
fn is_package(folder: &Path) -> bool {
    InterfaceKind::ALL.into_iter().any(|kind| {
        let files = entries(&folder.join(kind.word()));
        files.iter().any(|file| file.is_definition())
    })
}

struct Entry {
    name: String,
    is_folder: bool,
}

impl Entry {
    fn is_definition(&self) -> bool {
        let end = self.name.rsplit_once('.').map(|(_, end)| end);
        self.name.starts_with(|c: char| c.is_uppercase())
            && end.is_some_and(|end| end == "idl" || InterfaceKind::from_word(end).is_some())
    }
}

/// The entries of a folder in order; none where it cannot be read.
fn entries(folder: &Path) -> Vec<Entry> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = read.filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        Some(Entry {
            name: entry.file_name().to_str()?.to_string(),
            is_folder: kind.is_dir() || kind.is_symlink() && entry.path().is_dir(),
        })
    });
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}
