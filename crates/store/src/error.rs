//! Errors of opening and writing a store: the file, the problem and its remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A problem with a store. The store is never deleted because of it.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// No folder for stores is configured.
    #[error(
        "durability transient and persistent need a folder for the store, and none of PTEROS_STORE_DIR, ROS_HOME, XDG_STATE_HOME and HOME is set or read; set PTEROS_STORE_DIR or the context's `store_folder`"
    )]
    NoFolder,
    /// The name cannot be a file name.
    #[error("store name {name:?}: {reason}; use 1 to 200 bytes of text")]
    Name {
        /// The given name.
        name: String,
        /// The problem.
        reason: &'static str,
    },
    /// The folder or file cannot be created, read or written.
    #[error("store {path}: {action}: {reason}; {hint}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The system's error.
        reason: String,
        /// As [`std::io::Error::kind`] gave it.
        kind: io::ErrorKind,
        /// The remedy.
        hint: &'static str,
    },
    /// Another publisher, in this process or another, has it open.
    #[error(
        "store {path} is in use by another publisher; give this one a name of its own (option `store`), or end the other", path = path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Its content is damaged, or the file is not a store.
    #[error(
        "store {path} is damaged or no store: {reason}; it was left as it is: move it away to keep it, or remove it with `pteros store clear`", path = path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// It was written by a later version.
    #[error(
        "store {path} has format {found}, this version reads up to {known}; run the newer version, or name another store", path = path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format of this version.
        known: u32,
    },
    /// It holds samples of another topic or type.
    #[error(
        "store {path} holds topic {topic:?} of type {type_name:?}, not {wanted}; name another store, or remove it with `pteros store clear`", path = path.display()
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The topic whose samples the file holds.
        topic: String,
        /// The type of those samples, `package/msg/Name`.
        type_name: String,
        /// The requested one.
        wanted: String,
    },
    /// A KEEP_ALL store holds more than the limits allow.
    #[error(
        "store {path} is full: it holds {samples} samples of {bytes} bytes, the limits are {samples_max} samples and {bytes_max} bytes; raise the durability service's resource limits or PTEROS_STORE_BYTES, or remove it with `pteros store clear`", path = path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// Samples that the file holds now.
        samples: usize,
        /// Bytes of those samples.
        bytes: u64,
        /// The limit on samples.
        samples_max: usize,
        /// The limit on bytes.
        bytes_max: u64,
    },
    /// The storing thread cannot be started.
    #[error("start the storing thread: {0}")]
    Thread(String),
    /// A simulated environment has no disk.
    #[error("durability transient and persistent need a disk, and this environment has none")]
    NoDisk,
    /// The program was built without a database.
    #[error(
        "durability transient and persistent need feature `durable` of crate pteros (feature `full` of pteros-cli), and this program was built without it; build it with that feature, or use durability volatile or transient_local"
    )]
    NotBuilt,
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

pub(crate) fn io_error(
    path: &Path,
    action: &'static str,
    source: io::Error,
    hint: &'static str,
) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        action,
        reason: source.to_string(),
        kind: source.kind(),
        hint,
    }
}
