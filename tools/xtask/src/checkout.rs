//! The checkout that this program was built in: its root, and the folders of its
//! crates. Every other file starts its paths here.

use std::path::{Path, PathBuf};

/// Folders of crates: the product, its tools, its verification. Documents shorten paths
/// below them.
pub const CRATE_FOLDERS: [&str; 3] = ["crates", "tools", "verify"];

/// The root of the repository.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.ancestors().nth(2).unwrap_or(xtask).to_owned()
}
