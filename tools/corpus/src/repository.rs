//! One checked-out repository: its packages, and its files by kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The deepest folder that is read.
const DEPTH_MAX: usize = 24;
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A repository and the files in it that concern this test.
#[derive(Debug)]
pub struct Repository {
    /// Its name: the folder's, where `owner+name` is `owner/name`.
    pub name: String,
    /// Its absolute folder.
    pub folder: PathBuf,
    /// Its packages by folder.
    pub packages: BTreeMap<PathBuf, SourcePackage>,
    /// All files with an extension that is read here, sorted.
    pub files: Vec<PathBuf>,
}

/// A package of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePackage {
    pub name: String,
    /// Whether it is a package of ROS 1 only.
    pub is_ros1: bool,
}

impl Repository {
    /// Reads the folder's names and its `package.xml` files.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let cannot = || format!("read the repository {}", folder.display());
        let folder = folder.canonicalize().with_context(cannot)?;
        fs::read_dir(&folder).with_context(cannot)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut repository = Self {
            name: name.replacen('+', "/", 1),
            packages: BTreeMap::new(),
            files: Vec::new(),
            folder: folder.clone(),
        };
        repository.add_folder(&folder, 0);
        repository.files.sort();
        Ok(repository)
    }

    fn add_folder(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Links are left out: they may lead out of the repository, or in circles.
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth < DEPTH_MAX && !name.starts_with('.') {
                self.add_folder(&path, depth + 1);
            } else if kind.is_file() && name == "package.xml" {
                self.add_package(folder, &path);
            } else if kind.is_file() && is_of_interest(&name) {
                self.files.push(path);
            }
        }
    }

    fn add_package(&mut self, folder: &Path, manifest: &Path) {
        if let Some(package) = text_of(manifest).and_then(|text| SourcePackage::read(&text)) {
            self.packages.insert(folder.to_owned(), package);
        }
    }

    /// The package that a file belongs to, and its folder.
    pub fn package_of(&self, file: &Path) -> Option<(&Path, &SourcePackage)> {
        let mut folders = file.ancestors();
        folders.find_map(|folder| {
            let (folder, package) = self.packages.get_key_value(folder)?;
            Some((folder.as_path(), package))
        })
    }

    /// Whether a file lies in a package of ROS 1 only.
    pub fn is_ros1(&self, file: &Path) -> bool {
        let package = self.package_of(file);
        package.is_some_and(|(_, package)| package.is_ros1)
    }

    /// A file's path within the repository.
    pub fn relative(&self, file: &Path) -> PathBuf {
        file.strip_prefix(&self.folder).unwrap_or(file).to_owned()
    }
}

impl SourcePackage {
    /// Reads a `package.xml`. A package without a name is none.
    fn read(text: &str) -> Option<Self> {
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            ..roxmltree::ParsingOptions::default()
        };
        let document = roxmltree::Document::parse_with_options(text, options).ok()?;
        let root = document.root_element();
        let name = root.children().find(|node| node.has_tag_name("name"))?;
        let name = name.text()?.trim().to_owned();
        let mut is_catkin = false;
        let mut is_ros2 = false;
        for node in root.descendants() {
            let value = node.text().unwrap_or("").trim();
            match node.tag_name().name() {
                "buildtool_depend" | "buildtool_export_depend" if value == "catkin" => {
                    // A condition chooses between the two; such a package is both.
                    is_ros2 |= node.has_attribute("condition");
                    is_catkin = true;
                }
                "buildtool_depend" | "build_type" => {
                    is_ros2 |= value.starts_with("ament") || value.starts_with("rosidl");
                }
                _ => {}
            }
        }
        Some(Self {
            name,
            is_ros1: is_catkin && !is_ros2,
        })
    }
}

/// Whether a file of this name is read.
fn is_of_interest(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "xml" | "yaml" | "yml" | "launch" | "msg" | "srv" | "action" | "idl" => true,
        "py" => is_launch_name(name),
        _ => false,
    }
}

/// Whether a file's name says that it is a launch file.
pub fn is_launch_name(name: &str) -> bool {
    if let Some(stem) = name.strip_suffix(".launch") {
        return !stem.is_empty();
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_extension = [".py", ".xml", ".yaml", ".yml"]
        .iter()
        .any(|extension| name.ends_with(extension));
    is_extension && (stem.ends_with(".launch") || stem.ends_with("_launch"))
}

/// The text of a file; none if it cannot be read, is too large or is not UTF-8.
pub fn text_of(file: &Path) -> Option<String> {
    let is_small = file.metadata().ok()?.len() <= FILE_BYTES_MAX;
    if is_small {
        fs::read_to_string(file).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(body: &str) -> SourcePackage {
        SourcePackage::read(&format!("<package><name> a </name>{body}</package>")).unwrap()
    }

    #[test]
    fn packages_of_ros1_are_told_from_those_of_ros2() {
        let catkin = "<buildtool_depend>catkin</buildtool_depend>";
        let either = "<buildtool_depend condition=\"$ROS_VERSION == 1\">catkin</buildtool_depend>";
        let ament = "<export><build_type>ament_cmake</build_type></export>";
        assert!(package(catkin).is_ros1);
        assert!(!package(ament).is_ros1);
        assert!(!package(either).is_ros1);
        assert!(!package(&format!("{catkin}{ament}")).is_ros1);
        assert_eq!(package("").name, "a");
        assert_eq!(SourcePackage::read("<package/>"), None);
    }

    #[test]
    fn launch_files_are_known_by_their_names() {
        for name in ["a.launch.xml", "a_launch.py", "a.launch", "a.launch.yml"] {
            assert!(is_launch_name(name), "{name}");
        }
        for name in [
            "launch.xml",
            "a.xml",
            ".launch",
            "launch_a.yaml",
            "a_launch.txt",
        ] {
            assert!(!is_launch_name(name), "{name}");
        }
    }
}
