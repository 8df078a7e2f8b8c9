//! The checkout that this program was built in: its root, and the folders of its
//! crates. Every other file starts its paths here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Folders of crates: the product, its tools, its verification. Documents shorten paths
/// below them.
pub const CRATE_FOLDERS: [&str; 3] = ["crates", "tools", "verify"];

/// The root of the repository.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.ancestors().nth(2).unwrap_or(xtask).to_owned()
}

/// The tracked files below `paths`, or all, relative to `root`.
pub fn tracked_files(root: &Path, paths: &[String]) -> Result<Vec<String>> {
    git_files(root, &[], paths)
}

/// As [`tracked_files`], and new files that git does not ignore.
pub fn present_files(root: &Path, paths: &[String]) -> Result<Vec<String>> {
    let options = ["--cached", "--others", "--exclude-standard"];
    git_files(root, &options, paths)
}

fn git_files(root: &Path, options: &[&str], paths: &[String]) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .args(options)
        .arg("--")
        .args(paths)
        .current_dir(root)
        .output()
        .context("run git ls-files")?;
    if !listed.status.success() {
        let words = String::from_utf8_lossy(&listed.stderr);
        bail!("git ls-files: {}", words.trim());
    }
    let listed = String::from_utf8_lossy(&listed.stdout);
    Ok(listed.split_terminator('\0').map(str::to_owned).collect())
}
