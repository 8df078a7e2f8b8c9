//! The errors of bags. Each names the thing, the value and the way out.

use std::io;
use std::path::{Path, PathBuf};

use pteros::error::{CreateError, PublishError};
use thiserror::Error;

/// Why a bag could not be read, written, recorded or played.
#[derive(Error)]
pub enum BagError {
    /// The operating system refused.
    #[error("{verb} {}: {source}", path.display())]
    Io {
        /// The operation, for example `reading`.
        verb: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The output exists already. Nothing is ever overwritten.
    #[error("{} exists already, and bags are never overwritten; name another folder with -o, or remove this one", .0.display())]
    Exists(PathBuf),
    /// There is no bag at the path.
    #[error("{}: {problem}", path.display())]
    NotABag {
        /// The path.
        path: PathBuf,
        /// The contents that were found, and the way out.
        problem: String,
    },
    /// `metadata.yaml` cannot be read.
    #[error("{}: {problem}; write it anew from the bag's files with: pteros bag reindex {}", path.display(), path.parent().unwrap_or(path).display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// Position and problem.
        problem: String,
    },
    /// A part of the file contradicts the format.
    #[error("{}, byte {offset}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// The contradiction.
        problem: String,
    },
    /// A value that was given cannot be used.
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
    /// Turns a system error into ours.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}
