//! Build-script support: Rust types for a user's own interfaces. Feature `std`.
//!
//! Most packages use `pteros_interfaces::build::generate_package`, which includes
//! the standard packages. [`PackageBuild`] is for other cases: packages that depend
//! on each other, definitions from an installed ROS 2. The generated text is
//! written to `OUT_DIR`, ready for `include!`.
#![allow(clippy::disallowed_methods, reason = "reads cargo's variables")]

use crate::folder::FolderError;
use crate::generate::{GenerateOptions, Generator};
use crate::library::{InterfaceLibrary, LibraryError};
use crate::package_manifest::{declared_name_around, package_name_of};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use std::path::{Path, PathBuf};
use std::{env, fs, io, println};

/// Name of the generated file in `OUT_DIR`.
pub const GENERATED_FILE: &str = "interfaces.rs";

/// Input of a build script, and the other crates it builds on.
#[derive(Clone, Debug, Default)]
pub struct PackageBuild {
    own: InterfaceLibrary,
    known: InterfaceLibrary,
    options: GenerateOptions,
    watched: Vec<PathBuf>,
}

impl PackageBuild {
    /// An empty build; generated code uses `::pteros_msg`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where generated code finds `pteros_msg`, for example `::pteros::msg`.
    pub fn msg_path(mut self, path: &str) -> Self {
        self.options.msg_path = path.to_string();
        self
    }

    /// Builds on the packages of another crate: `library` as it is here in the
    /// build script, `path` as the Rust path of its modules in the generated code
    /// (`::pteros_interfaces`), where `path::library()` is the library again.
    pub fn using(mut self, library: &InterfaceLibrary, path: &str) -> Self {
        for package in library.packages() {
            self.options
                .external
                .insert(package.to_string(), format!("{path}::{package}"));
        }
        self.known.merge(library);
        self.options
            .base_libraries
            .push(format!("{path}::library()"));
        self
    }

    /// Generates the interfaces of a folder, see
    /// [`InterfaceLibrary::load_folder`] for its layouts. A folder with `msg`,
    /// `srv` or `action` directly in it is the package that `package.xml` names,
    /// or, failing that, the Cargo package.
    ///
    /// # Errors
    /// Something cannot be read, or there is no interface in it.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Result<Self, BuildError> {
        let folder = folder.as_ref();
        let mut count = 0;
        if ["msg", "srv", "action"]
            .iter()
            .any(|kind| folder.join(kind).is_dir())
        {
            count += self.own.load_package(folder, &own_package_name(folder))?;
        } else if folder.is_dir() {
            count += self.own.load_folder(folder)?;
        }
        if count == 0 {
            return Err(BuildError::Empty(folder.to_path_buf()));
        }
        self.watched.push(folder.to_path_buf());
        Ok(self)
    }

    /// Generates packages of an installed ROS 2, and those that they need and no
    /// other crate has, from `AMENT_PREFIX_PATH`.
    ///
    /// # Errors
    /// Something cannot be read, or a package is not there.
    pub fn installed(self, packages: &[&str]) -> Result<Self, BuildError> {
        let mut installed = InterfaceLibrary::new();
        installed.load_ament_prefix_path()?;
        self.packages(&installed, packages)
    }

    /// Generates packages of `source`, and their dependencies that no other crate
    /// has.
    ///
    /// # Errors
    /// A package is not in `source`, or a definition has an error.
    pub fn packages(
        mut self,
        source: &InterfaceLibrary,
        packages: &[&str],
    ) -> Result<Self, BuildError> {
        let mut wanted: Vec<String> = packages.iter().map(ToString::to_string).collect();
        let mut done = BTreeSet::new();
        while let Some(package) = wanted.pop() {
            if self.options.external.contains_key(&package) || !done.insert(package.clone()) {
                continue;
            }
            let prefix = format!("{package}/");
            let names: Vec<&str> = source
                .names()
                .filter(|name| name.starts_with(&prefix))
                .collect();
            if names.is_empty() {
                return Err(BuildError::NotInstalled(package));
            }
            for name in names {
                self.own.copy_definition(source, name);
                wanted.extend(source.packages_used_by(name)?);
            }
        }
        Ok(self)
    }

    /// The generated text.
    ///
    /// # Errors
    /// A definition has an error or refers to an unknown type.
    pub fn text(&self) -> Result<String, BuildError> {
        let mut library = self.known.clone();
        library.merge(&self.own);
        let mut options = self.options.clone();
        let packages = self.own.packages();
        for package in &packages {
            options.external.remove(*package);
        }
        Ok(Generator::new(&library, &options).single_file(&packages)?)
    }

    /// Writes the text to `OUT_DIR` and tells Cargo when to run again. An unchanged
    /// file is not written.
    ///
    /// # Errors
    /// As [`text`](Self::text), or the file cannot be written.
    pub fn write(&self) -> Result<PathBuf, BuildError> {
        println!(
            "cargo::rerun-if-env-changed={}",
            crate::folder::AMENT_PREFIX_PATH
        );
        for folder in &self.watched {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
        let folder = env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?;
        let path = PathBuf::from(folder).join(GENERATED_FILE);
        let text = self.text()?;
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(path);
        }
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(error) => Err(BuildError::Write { path, error }),
        }
    }
}

/// Ends a build script: on an error, prints it and stops the build.
pub fn finish(result: Result<PathBuf, BuildError>) {
    if let Err(error) = result {
        println!("cargo::error={error}");
        std::process::exit(1);
    }
}

fn own_package_name(folder: &Path) -> String {
    match env::var("CARGO_PKG_NAME") {
        Ok(name) => declared_name_around(folder).unwrap_or_else(|| name.replace('-', "_")),
        Err(_) => package_name_of(folder),
    }
}

/// Why nothing was generated.
pub enum BuildError {
    /// A definition has an error or refers to an unknown type.
    Library(LibraryError),
    /// A file or folder cannot be read.
    Folder(FolderError),
    /// No interface in this folder.
    Empty(PathBuf),
    /// No interface of this package in `AMENT_PREFIX_PATH`.
    NotInstalled(String),
    /// Not run by Cargo as a build script.
    NoOutDir,
    /// The generated file cannot be written.
    Write {
        /// Where it should be.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
}

crate::debug_as_display!(BuildError);

impl From<LibraryError> for BuildError {
    fn from(error: LibraryError) -> Self {
        Self::Library(error)
    }
}

impl From<FolderError> for BuildError {
    fn from(error: FolderError) -> Self {
        Self::Folder(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Folder(error) => error.fmt(f),
            Self::Empty(folder) => write!(
                f,
                "no interfaces in {}; put them into {0}/msg/Name.msg, srv/Name.srv or action/Name.action",
                folder.display()
            ),
            Self::NotInstalled(package) => write!(
                f,
                "AMENT_PREFIX_PATH has no interfaces of {package}; install the package and source its setup file"
            ),
            Self::NoOutDir => f.write_str("OUT_DIR is not set; call this from a build script"),
            Self::Write { path, error } => write!(f, "cannot write {}: {error}", path.display()),
        }
    }
}

impl core::error::Error for BuildError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard() -> InterfaceLibrary {
        let mut library = InterfaceLibrary::new();
        library.insert_definitions(&[("std_msgs/msg/Header", "string frame_id")]);
        library
    }

    #[test]
    fn packages_bring_what_they_need_and_no_other_crate_has() {
        let mut source = standard();
        source.insert_definitions(&[
            ("a_msgs/msg/A", "std_msgs/Header header\nb_msgs/B b"),
            ("b_msgs/msg/B", "int8 b"),
            ("c_msgs/msg/C", "int8 c"),
        ]);
        let build = PackageBuild::new()
            .msg_path("::pteros::msg")
            .using(&standard(), "::pteros::interfaces")
            .packages(&source, &["a_msgs"])
            .unwrap();
        let text = build.text().unwrap();
        assert!(text.contains("pub header: ::pteros::interfaces::std_msgs::msg::Header,"));
        assert!(text.contains("pub b: super::super::b_msgs::msg::B,"));
        assert!(text.contains("library.merge(::pteros::interfaces::library());"));
        assert!(!text.contains("c_msgs") && !text.contains("pub struct Header"));
        assert!(!text.contains("::pteros_msg"));
        let missing = PackageBuild::new()
            .packages(&source, &["d_msgs"])
            .unwrap_err();
        assert!(missing.to_string().contains("d_msgs"), "{missing}");
    }

    #[test]
    fn an_error_in_a_definition_is_reported_with_its_position() {
        let mut source = InterfaceLibrary::new();
        source.insert_definitions(&[("a_msgs/msg/A", "int32 fine\ntime stamp")]);
        let error = match PackageBuild::new().packages(&source, &["a_msgs"]) {
            Ok(build) => build.text().unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(
            error.to_string(),
            "a_msgs/msg/A:2: there is no type \"time\" in ROS 2; use builtin_interfaces/Time"
        );
    }

    #[test]
    fn a_folder_without_interfaces_is_refused() {
        let error = PackageBuild::new().folder("no/such/folder").unwrap_err();
        assert!(error.to_string().contains("no/such/folder"), "{error}");
    }
}
