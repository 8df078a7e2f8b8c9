//! Enclave watch: detects changes of an enclave's files during a participant's
//! life.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The state of the files at the last check. A check costs one system call for each
/// file, and reads none of them.
#[derive(Debug, Clone)]
pub struct EnclaveWatch {
    folder: PathBuf,
    seen: [Option<FileStamp>; FILES.len()],
}

/// The state of a file: a change of its content changes one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    /// When it was last written: seconds and nanoseconds since 1970.
    modified_seconds: i64,
    modified_nanoseconds: i64,
}

const FILES: [&str; 7] = [
    "identity_ca.cert.pem",
    "permissions_ca.cert.pem",
    "governance.p7s",
    "permissions.p7s",
    "cert.pem",
    "key.pem",
    "crl.pem",
];

impl EnclaveWatch {
    /// Takes the first state of an enclave's files. Create it before the files are
    /// loaded, so that no change is missed.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            seen: stamps(folder),
        }
    }

    /// Whether a file was added, removed or changed since the last check.
    pub fn has_changed(&mut self) -> bool {
        let now = stamps(&self.folder);
        let before = std::mem::replace(&mut self.seen, now);
        before != self.seen
    }
}

fn stamps(folder: &Path) -> [Option<FileStamp>; FILES.len()] {
    FILES.map(|name| {
        // Follows links: SROS 2 keeps the governance of all enclaves in one file.
        let about = std::fs::metadata(folder.join(name)).ok()?;
        Some(FileStamp {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.size(),
            modified_seconds: about.mtime(),
            modified_nanoseconds: about.mtime_nsec(),
        })
    })
}
