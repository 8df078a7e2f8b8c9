//! The folder with ROS 2's sources, and the packages in it.

use std::fs;
use std::path::{Path, PathBuf};

/// The variable with the folder of sources.
pub const SOURCES: &str = "PTEROS_ROS2_SOURCES";
/// Folders below that of the sources: organization, repository, package, and one more.
pub const DEPTH_MAX: usize = 5;

/// The folder that the variable names.
pub fn sources() -> Option<PathBuf> {
    let value = std::env::var_os(SOURCES).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// The folder of a package, which its `package.xml` names.
pub fn find_package(folder: &Path, name: &str, depth: usize) -> Option<PathBuf> {
    if let Ok(manifest) = fs::read_to_string(folder.join("package.xml")) {
        return manifest
            .contains(&format!("<name>{name}</name>"))
            .then(|| folder.to_owned());
    }
    if depth == 0 {
        return None;
    }
    let mut below: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    below
        .iter()
        .find_map(|path| find_package(path, name, depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_package_is_found_by_the_name_in_its_manifest() {
        let folder = Folder::absent("sources");
        for (path, name) in [("a/other", "wanted_other"), ("b/c/folder", "wanted")] {
            fs::create_dir_all(folder.join(path)).unwrap();
            let manifest = format!("<package><name>{name}</name></package>");
            fs::write(folder.join(path).join("package.xml"), manifest).unwrap();
        }
        let found = find_package(&folder, "wanted", DEPTH_MAX);
        assert_eq!(found, Some(folder.join("b/c/folder")));
        assert_eq!(find_package(&folder, "wanted", 2), None);
        assert_eq!(find_package(&folder, "absent", DEPTH_MAX), None);
    }
}
