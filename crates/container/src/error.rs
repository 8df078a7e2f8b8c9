//! Errors of component libraries and of component loading.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pteros::args::ArgumentsError;
use pteros::{error::CreateError, executors::ExecutorError};
use thiserror::Error;

/// Error of a component library.
#[derive(Error)]
pub enum LibraryError {
    /// The file cannot be read.
    #[error("read component library {}: {source}; build it, or correct the index that names it", library.display())]
    Read {
        /// The file.
        library: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// It is not a shared library.
    #[error("{} is not a shared library (ELF); give a crate of crate-type \"cdylib\"", .0.display())]
    NotALibrary(PathBuf),
    /// It is a shared library for another kind of machine.
    #[error("{} is for {built_for}, this program for {program}; build both for the same machine", library.display())]
    OtherMachine {
        /// The file.
        library: PathBuf,
        /// The machine that the library is for.
        built_for: String,
        /// The machine that this program is for.
        program: String,
    },
    /// It registers no components.
    #[error("{} registers no components; write pteros::register_components!(YourType) in its crate and rebuild it", .0.display())]
    NoComponents(PathBuf),
    /// It was compiled with another compiler or another version of Pteros.
    #[error(
        "{} was built with \"{built_with}\", this program with \"{program}\"; build both with one cargo command in one workspace", library.display()
    )]
    BuildMismatch {
        /// The file.
        library: PathBuf,
        /// The fingerprint of the library.
        built_with: String,
        /// The fingerprint of this program.
        program: String,
    },
    /// It links Pteros statically instead of sharing it.
    #[error("{} has its own copy of Pteros; write `use pteros_dylib as _;` in its crate, with pteros-dylib among its dependencies, and rebuild it", .0.display())]
    StaticPteros(PathBuf),
    /// This program links Pteros statically instead of sharing it.
    #[error(
        "this program has its own copy of Pteros and cannot load components; write `use pteros_dylib as _;` in it, with pteros-dylib among its dependencies"
    )]
    ProgramStaticPteros,
    /// The dynamic linker cannot load it.
    #[error("load {}: {reason}; build it and this program with one cargo command in one workspace", library.display())]
    Open {
        /// The file.
        library: PathBuf,
        /// The error of the dynamic linker.
        reason: String,
    },
}

pteros::msg::debug_as_display!(LibraryError);

/// Error of a component that is not loaded.
#[derive(Error)]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum LoadError {
    /// No index lists the package.
    #[error("package \"{package}\" has no components in {searched}; known are: {known}")]
    UnknownPackage {
        package: String,
        /// The searched places.
        searched: String,
        /// The known packages.
        known: String,
    },
    /// The package has no such component class.
    #[error("package \"{package}\" has no component \"{class}\"; it has: {known}")]
    UnknownClass {
        package: String,
        class: String,
        /// The known classes.
        known: String,
    },
    /// It is a C++ component of rclcpp.
    #[error(
        "component \"{class}\" of package \"{package}\" is C++ (rclcpp_components, {}), which only rclcpp's containers load; start one beside this: ros2 run rclcpp_components component_container", library.display()
    )]
    Cpp {
        package: String,
        class: String,
        library: PathBuf,
    },
    /// Its library cannot be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A remap rule is invalid.
    #[error("load component \"{class}\": {source}")]
    Remap {
        class: String,
        /// The error of the rule.
        source: Box<ArgumentsError>,
    },
    /// A parameter or an extra argument is invalid.
    #[error("load component \"{class}\": {argument}: {reason}")]
    Argument {
        class: String,
        argument: String,
        /// The error, and the correct form.
        reason: String,
    },
    /// Its constructor returned an error.
    #[error("component \"{class}\": its constructor failed: {reason}")]
    Constructor {
        class: String,
        /// The error that the component returned.
        reason: String,
    },
    /// Its constructor panicked.
    #[error("component \"{class}\": its constructor panicked: {message}; it is not loaded")]
    Panicked {
        class: String,
        /// The message of the panic.
        message: String,
    },
    /// Its constructor did not return in time.
    #[error(
        "component \"{class}\": its constructor did not return within {timeout:?}; a late result is dropped. Correct the constructor, or start the container with a longer --load-timeout"
    )]
    TimedOut {
        class: String,
        /// The load timeout.
        timeout: Duration,
    },
    /// Too many constructors are running.
    #[error(
        "component \"{class}\": {running} constructors are running already, the largest number; load it when they are done, or restart the container if they hang"
    )]
    Busy {
        class: String,
        /// Number of running constructors.
        running: usize,
    },
    /// The node could not be added to an executor.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The container's own node could not be created.
    #[error(transparent)]
    Node(#[from] CreateError),
}

pteros::msg::debug_as_display!(LoadError);
