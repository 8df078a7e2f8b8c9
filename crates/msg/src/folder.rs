//! Loads interface definitions from folders. Feature `std`; reads files, never
//! writes.
//!
//! A package has its definitions in `msg`, `srv` and `action`. An `.idl` file is read
//! where there is no `.msg`, `.srv` or `.action` file of its name.
//! [`package_folders`](crate::package_folders) has the rule by which packages are found.
#![allow(clippy::disallowed_methods, reason = "reads AMENT_PREFIX_PATH")]

use crate::library::InterfaceLibrary;
use crate::package_folders::PackageFolders;
use crate::regular_file;
use crate::schema::{InterfaceKind, is_package_name};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Largest definition in bytes; the largest of ROS 2 has 40 KB.
const DEFINITION_BYTES_MAX: u64 = 4 << 20;

/// The variable in which a sourced ROS 2 installation lists its prefixes.
pub const AMENT_PREFIX_PATH: &str = "AMENT_PREFIX_PATH";

/// A folder that could not be read.
pub struct FolderError {
    /// Which one.
    pub path: PathBuf,
    /// The operating system's error.
    pub error: io::Error,
}

crate::debug_as_display!(FolderError);

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.error)
    }
}

impl core::error::Error for FolderError {}

impl InterfaceLibrary {
    /// Adds the interfaces of all packages in `root`, as
    /// [`PackageFolders`] finds them. Returns the
    /// number of definitions found. Blocks for the disk.
    ///
    /// # Errors
    /// A folder of definitions cannot be read. Errors of a file, including an unreadable
    /// one, are reported when its type is used.
    pub fn load_folder(&mut self, root: &Path) -> Result<usize, FolderError> {
        let mut count = 0;
        for (package, folder) in PackageFolders::of(root).all() {
            count += self.load_package(&folder, &package)?;
        }
        Ok(count)
    }

    /// Adds the interfaces of one package whose `msg`, `srv` and `action`
    /// folders lie in `folder`. Returns how many. Blocks for the disk.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn load_package(&mut self, folder: &Path, package: &str) -> Result<usize, FolderError> {
        let mut count = 0;
        for kind in InterfaceKind::ALL {
            let kind_folder = folder.join(kind.word());
            if !kind_folder.is_dir() {
                continue;
            }
            for path in sorted_entries(&kind_folder)? {
                let own = path.with_extension(kind.word());
                // Installed packages have both formats of each definition.
                let is_idl = path.extension().is_some_and(|end| end == "idl") && !own.is_file();
                let matches = path == own || is_idl;
                let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
                    continue;
                };
                if matches {
                    let origin = path.display().to_string();
                    match regular_file::read_text(&path, DEFINITION_BYTES_MAX) {
                        Ok(text) => self.insert_text(package, kind, name, text, origin),
                        Err(error) => {
                            self.insert_unreadable(package, kind, name, origin, error.to_string());
                        }
                    }
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    /// Adds the interfaces of all packages of the installations that
    /// `AMENT_PREFIX_PATH` names; earlier prefixes win, as overlays do. Prefixes
    /// that do not exist are passed over, as ROS 2 does. Returns how many
    /// definitions were found; 0 where the variable is not set.
    ///
    /// # Errors
    /// A folder that exists cannot be read.
    pub fn load_ament_prefix_path(&mut self) -> Result<usize, FolderError> {
        let Some(prefixes) = std::env::var_os(AMENT_PREFIX_PATH) else {
            return Ok(0);
        };
        self.load_prefixes(std::env::split_paths(&prefixes))
    }

    /// As [`load_ament_prefix_path`](Self::load_ament_prefix_path), for given prefixes.
    ///
    /// # Errors
    /// A folder that exists cannot be read.
    pub fn load_prefixes(
        &mut self,
        prefixes: impl IntoIterator<Item = PathBuf>,
    ) -> Result<usize, FolderError> {
        let prefixes: Vec<PathBuf> = prefixes.into_iter().collect();
        let mut count = 0;
        for prefix in prefixes.iter().rev() {
            let share = prefix.join("share");
            if share.is_dir() {
                count += self.load_packages(&share)?;
            }
        }
        Ok(count)
    }

    fn load_packages(&mut self, folder: &Path) -> Result<usize, FolderError> {
        let mut count = 0;
        for path in sorted_entries(folder)? {
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(name) = name.filter(|name| is_package_name(name))
                && path.is_dir()
            {
                count += self.load_package(&path, name)?;
            }
        }
        Ok(count)
    }
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.sort();
        Ok(paths)
    };
    read().map_err(|error| FolderError {
        path: folder.to_path_buf(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use pteros_test_support::folder::Folder;

    #[test]
    fn both_layouts_are_found() {
        let scratch = Folder::absent("layouts");
        scratch.write("share/a_msgs/msg/A.msg", "int8 a");
        scratch.write("share/a_msgs/msg/A.idl", "not ours");
        scratch.write("b_msgs/srv/B.srv", "---");
        scratch.write("b_msgs/README.md", "");
        let mut library = InterfaceLibrary::new();
        assert_eq!(library.load_folder(&scratch).unwrap(), 2);
        assert_eq!(
            library.names().collect::<Vec<_>>(),
            ["a_msgs/msg/A", "b_msgs/srv/B"]
        );

        scratch.write(
            "package.xml",
            "<!-- <name>x</name> --><package><name> my_pkg </name>",
        );
        scratch.write("interfaces/action/Go.action", "---\n---");
        let mut library = InterfaceLibrary::new();
        library.load_folder(&scratch.join("interfaces")).unwrap();
        assert_eq!(library.names().collect::<Vec<_>>(), ["my_pkg/action/Go"]);
    }

    #[test]
    fn packages_at_any_depth_are_found_as_colcon_finds_them() {
        let scratch = Folder::absent("depth");
        for (file, text) in [
            (
                "arm/core/package.xml",
                "<package><name>arm_core</name></package>",
            ),
            ("arm/core/vendor/inner_msgs/msg/Hidden.msg", "int8 x"),
            (
                "arm/interfaces/deep-msgs/package.xml",
                "<name>deep_msgs</name>",
            ),
            ("arm/interfaces/deep-msgs/msg/Deep.msg", "int8 x"),
            ("near_msgs/msg/Near.msg", "int8 near"),
            ("old/near_msgs/msg/Near.msg", "int8 far"),
            ("old/near_msgs/msg/Old.msg", "int8 far"),
            ("share/near_msgs/msg/Near.msg", "int8 share"),
            ("share/far_msgs/srv/Far.srv", "---"),
            ("off/COLCON_IGNORE", ""),
            ("off/off_msgs/msg/Off.msg", "int8 x"),
            (".git/git_msgs/msg/Git.msg", "int8 x"),
            ("mails/msg/first.msg", "no definition"),
            ("1/2/3/4/5/6/7/deepest_msgs/msg/Deepest.msg", "int8 x"),
            ("1/2/3/4/5/6/a_msgs/msg/A.msg", "int8 x"),
        ] {
            scratch.write(file, text);
        }
        std::os::unix::fs::symlink(&scratch, scratch.join("loop")).unwrap();
        let mut library = InterfaceLibrary::new();
        library.load_folder(&scratch).unwrap();
        let expected = [
            "a_msgs/msg/A",
            "deep_msgs/msg/Deep",
            "far_msgs/srv/Far",
            "near_msgs/msg/Near",
        ];
        assert_eq!(library.names().collect::<Vec<_>>(), expected);
        assert_eq!(library.text("near_msgs/Near"), Some("int8 near"));
        let mut folders = PackageFolders::of(&scratch);
        let deep = scratch.join("arm/interfaces/deep-msgs");
        assert_eq!(folders.find("deep_msgs"), Some(deep));
        for package in ["inner_msgs", "off_msgs", "git_msgs", "mails", "..", "none"] {
            assert_eq!(folders.find(package), None, "{package}");
        }
        // A package added later is found in the folder itself, which is not listed.
        scratch.write("late_msgs/msg/Late.msg", "int8 x");
        assert!(folders.find("late_msgs").is_some());
        assert_eq!(PackageFolders::of("/nonexistent").all().len(), 0);
    }

    #[test]
    fn a_package_has_the_name_that_its_manifest_states() {
        let scratch = Folder::absent("declared");
        for (file, text) in [
            // Another name than the folder's, directly below and deeper.
            ("old_msgs/package.xml", "<name>new_msgs</name>"),
            ("old_msgs/msg/New.msg", "int8 x"),
            ("share/x/package.xml", "<name>shared_msgs</name>"),
            ("share/x/msg/Shared.msg", "int8 x"),
            // Two Cargo packages: definitions in it, and in its folder `interfaces`.
            ("a/arm/Cargo.toml", "[package]\nname = \"arm-msgs\""),
            ("a/arm/msg/Arm.msg", "int8 x"),
            ("a/hand/Cargo.toml", "[package]\nname = \"hand-node\""),
            ("a/hand/interfaces/msg/Hand.msg", "int8 x"),
            ("a/hand/other/msg/Other.msg", "int8 x"),
            ("a/hand/target/CACHEDIR.TAG", ""),
            ("a/hand/target/package/copy_msgs/msg/Copy.msg", "int8 x"),
            // With both, ROS 2's counts.
            ("a/leg/Cargo.toml", "[package]\nname = \"leg\""),
            ("a/leg/package.xml", "<name>leg_msgs</name>"),
            ("a/leg/interfaces/srv/Kick.srv", "---"),
            ("a/leg/vendor/inner_msgs/msg/Inner.msg", "int8 x"),
            ("a/tail/package.xml", "<name>tail_msgs</name>"),
            ("a/tail/idl/msg/Idl.msg", "int8 x"),
            // The manifest of a workspace names no package.
            ("a/Cargo.toml", "[workspace]\nmembers = [\"arm\"]"),
            ("bare/msg/Bare.msg", "int8 x"),
        ] {
            scratch.write(file, text);
        }
        let names_in = |folder: &Path| {
            let mut library = InterfaceLibrary::new();
            library.load_folder(folder).unwrap();
            library.names().map(ToString::to_string).collect::<Vec<_>>()
        };
        let expected = [
            "arm_msgs/msg/Arm",
            "bare/msg/Bare",
            "hand_node/msg/Hand",
            "leg_msgs/srv/Kick",
            "new_msgs/msg/New",
            "other/msg/Other",
            "shared_msgs/msg/Shared",
        ];
        assert_eq!(names_in(&scratch), expected);
        let mut folders = PackageFolders::of(&scratch);
        assert_eq!(folders.find("old_msgs"), None);
        assert_eq!(folders.find("interfaces"), None);
        for (folder, name) in [
            ("old_msgs", "new_msgs/msg/New"),
            ("a/arm", "arm_msgs/msg/Arm"),
            ("a/leg", "leg_msgs/srv/Kick"),
            ("a/leg/interfaces", "leg_msgs/srv/Kick"),
            ("a/tail/idl", "tail_msgs/msg/Idl"),
            ("a/leg/vendor/inner_msgs", "inner_msgs/msg/Inner"),
            ("a/hand/interfaces", "hand_node/msg/Hand"),
            ("bare", "bare/msg/Bare"),
            ("a/arm/../../bare", "bare/msg/Bare"),
            ("bare/msg/..", "bare/msg/Bare"),
            ("a/hand/interfaces/msg/..", "hand_node/msg/Hand"),
        ] {
            assert_eq!(names_in(&scratch.join(folder)), [name], "{folder}");
        }
    }

    #[test]
    fn overlays_win_and_missing_prefixes_do_not_matter() {
        let scratch = Folder::absent("overlay");
        scratch.write("base/share/a_msgs/msg/A.msg", "int8 old");
        scratch.write("base/share/a_msgs/msg/B.msg", "int8 b");
        scratch.write("over/share/a_msgs/msg/A.msg", "int8 new");
        let mut library = InterfaceLibrary::new();
        let prefixes = ["over", "nowhere", "base"].map(|name| scratch.join(name));
        library.load_prefixes(prefixes).unwrap();
        assert_eq!(library.text("a_msgs/A"), Some("int8 new"));
        assert_eq!(library.len(), 2);
    }

    #[test]
    fn an_unreadable_file_is_reported_when_it_is_used() {
        let scratch = Folder::absent("unreadable");
        scratch.write("a_msgs/msg/A.msg", "");
        scratch.write("a_msgs/msg/B.msg", "int8 b");
        scratch.write("a_msgs/msg/C.msg", "A a");
        scratch.write("a_msgs/msg/D.msg/a folder", "");
        fs::write(scratch.join("a_msgs/msg/A.msg"), [0xff, 0xfe]).unwrap();
        let mut library = InterfaceLibrary::new();
        assert_eq!(library.load_folder(&scratch).unwrap(), 4);
        assert!(library.describe("a_msgs/msg/B").is_ok());
        assert_eq!(library.text("a_msgs/msg/A"), None);
        for (name, file) in [("A", "A.msg"), ("C", "A.msg"), ("D", "D.msg")] {
            let error = library.describe(&format!("a_msgs/msg/{name}")).unwrap_err();
            assert!(error.to_string().contains(file), "{error}");
        }
    }
}
