//! Why a component is not there.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pteros::args::ArgumentsError;
use pteros::{ExecutorError, NodeError};
use thiserror::Error;

/// What is wrong with a library.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// The file cannot be read.
    #[error("read component library {}: {source}; build it, or mend the index that names it", library.display())]
    Read {
        /// The file.
        library: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// It is no shared library of this kind of machine.
    #[error("{} is no shared library (ELF, 64 bits, little-endian); give a crate of crate-type \"cdylib\"", .0.display())]
    NotALibrary(PathBuf),
    /// It registers nothing.
    #[error("{} registers no components; write pteros::register_components!(YourType) in its crate and build it anew", .0.display())]
    NoComponents(PathBuf),
    /// It was compiled with another compiler or another Pteros.
    #[error(
        "{} was built with \"{built_with}\", this program with \"{program}\"; build both with one cargo command in one workspace", library.display()
    )]
    OtherBuild {
        /// The file.
        library: PathBuf,
        /// Its fingerprint.
        built_with: String,
        /// This program's.
        program: String,
    },
    /// It brings Pteros along instead of sharing it.
    #[error("{} has a copy of Pteros of its own; write `use pteros_dylib as _;` in its crate, with pteros-dylib among its dependencies, and build it anew", .0.display())]
    OwnCopy(PathBuf),
    /// This program brings Pteros along instead of sharing it.
    #[error(
        "this program has a copy of Pteros of its own and can load no components; write `use pteros_dylib as _;` in it, with pteros-dylib among its dependencies"
    )]
    ProgramsOwnCopy,
    /// The dynamic linker refuses it.
    #[error("load {}: {reason}; build it and this program with one cargo command in one workspace", library.display())]
    Open {
        /// The file.
        library: PathBuf,
        /// The dynamic linker's word.
        reason: String,
    },
}

/// Why a component is not loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No index knows the package.
    #[error("package \"{package}\" has no components in {searched}; known are: {known}")]
    UnknownPackage {
        /// The package.
        package: String,
        /// Where was looked.
        searched: String,
        /// The packages there are.
        known: String,
    },
    /// The package has no such class.
    #[error("package \"{package}\" has no component \"{class}\"; it has: {known}")]
    UnknownClass {
        /// The package.
        package: String,
        /// The class.
        class: String,
        /// The classes there are.
        known: String,
    },
    /// It is a component of rclcpp's.
    #[error(
        "component \"{class}\" of package \"{package}\" is C++ (rclcpp_components, {}), which only rclcpp's containers load; start one beside this: ros2 run rclcpp_components component_container", library.display()
    )]
    Cpp {
        /// The package.
        package: String,
        /// The class.
        class: String,
        /// Its library.
        library: PathBuf,
    },
    /// Something is wrong with its library.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A remap rule means nothing.
    #[error("load component \"{class}\": {source}")]
    Remap {
        /// The class.
        class: String,
        /// What is wrong.
        source: Box<ArgumentsError>,
    },
    /// A parameter or an extra argument means nothing.
    #[error("load component \"{class}\": {argument}: {reason}")]
    Argument {
        /// The class.
        class: String,
        /// Which.
        argument: String,
        /// What is wrong with it, and the way out.
        reason: String,
    },
    /// Its constructor returned an error.
    #[error("component \"{class}\": its constructor failed: {reason}")]
    Constructor {
        /// The class.
        class: String,
        /// The component's own word.
        reason: String,
    },
    /// Its constructor panicked.
    #[error("component \"{class}\": its constructor panicked: {said}; nothing of it is left")]
    Panicked {
        /// The class.
        class: String,
        /// What the panic says.
        said: String,
    },
    /// Its constructor has not come back.
    #[error(
        "component \"{class}\": its constructor has not come back within {waited:?}; what it makes when it does is dropped. Mend it, or start the container with a longer --load-timeout"
    )]
    Hung {
        /// The class.
        class: String,
        /// How long was waited.
        waited: Duration,
    },
    /// Too many constructors run.
    #[error(
        "component \"{class}\": {running} constructors are at work already, the most at once; load it when they are done, or restart the container if they hang"
    )]
    Busy {
        /// The class.
        class: String,
        /// How many.
        running: usize,
    },
    /// The node could not be spun.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The container's own node could not be made.
    #[error(transparent)]
    Node(#[from] NodeError),
}
