//! Errors of bags. Each names the thing, the value and the way out.

use std::io;
use std::path::{Path, PathBuf};

use pteros::error::{CreateError, PublishError};
use thiserror::Error;

/// Why a bag could not be read, written, recorded or played.
#[derive(Error)]
pub enum BagError {
    /// A call of the operating system failed.
    #[error("{verb} {}: {source}", path.display())]
    Io {
        /// The operation, for example `reading`.
        verb: &'static str,
        /// File or folder of the operation.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The output exists. Nothing is ever overwritten.
    #[error("{} exists already, and bags are never overwritten; name another folder with -o, or remove this one", .0.display())]
    Exists(PathBuf),
    /// There is no bag at the path.
    #[error("{}: {problem}", path.display())]
    NotABag {
        /// The opened path.
        path: PathBuf,
        /// The contents found there, and the way out.
        problem: String,
    },
    /// `metadata.yaml` cannot be read.
    #[error("{}: {problem}; write it anew from the bag's files with: pteros bag reindex {}", path.display(), path.parent().unwrap_or(path).display())]
    Metadata {
        /// Path of the metadata file.
        path: PathBuf,
        /// Line and problem.
        problem: String,
    },
    /// A part of the file contradicts the format.
    #[error("{}, byte {offset}: {problem}", path.display())]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// Offset of the record, bytes.
        offset: u64,
        /// The contradiction.
        problem: String,
    },
    /// A given value is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A node, publisher or subscription could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A message could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

pteros::msg::debug_as_display!(BagError);

impl BagError {
    /// Converts a system error.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}
