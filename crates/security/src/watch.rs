//! Whether the files of an enclave have changed while a participant lives with
//! them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files as they were when they were looked at last. A look costs one system
/// call for each, and reads none of them.
#[derive(Debug, Clone)]
pub struct Watch {
    folder: PathBuf,
    seen: [Option<Stamp>; FILES.len()],
}

/// Device, file, length, and when it was last written: seconds and nanoseconds.
type Stamp = (u64, u64, u64, i64, i64);

const FILES: [&str; 7] = [
    "identity_ca.cert.pem",
    "permissions_ca.cert.pem",
    "governance.p7s",
    "permissions.p7s",
    "cert.pem",
    "key.pem",
    "crl.pem",
];

impl Watch {
    /// Looks at the files of an enclave for the first time; best before they are
    /// read, so that no change falls between.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            seen: look(folder),
        }
    }

    /// Whether one has come, gone or changed since the last look.
    pub fn has_changed(&mut self) -> bool {
        let now = look(&self.folder);
        let before = std::mem::replace(&mut self.seen, now);
        before != self.seen
    }
}

fn look(folder: &Path) -> [Option<Stamp>; FILES.len()] {
    FILES.map(|name| {
        // Through links: SROS 2 has the governance of all enclaves in one file.
        let about = std::fs::metadata(folder.join(name)).ok()?;
        let (seconds, nanoseconds) = (about.mtime(), about.mtime_nsec());
        Some((about.dev(), about.ino(), about.size(), seconds, nanoseconds))
    })
}
