//! Atomic file writes in a keystore: a file is written under a temporary name, with
//! its final mode from the beginning, then renamed.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::enclave::display_path;

/// Writes a file that everyone may read.
pub(crate) fn write_public(path: &Path, text: &str) -> Result<(), Diagnostic> {
    write(path, text, 0o644)
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), Diagnostic> {
    write(path, text, 0o600)
}

/// Creates a folder and its parents.
pub(super) fn make_folder(path: &Path, mode: u32) -> Result<(), Diagnostic> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|error| failed(path, "cannot be made", &error))
}

/// Creates a relative link at `link`, so that the keystore can be moved and copied.
/// A different link or file with this name is replaced.
pub(super) fn link(target: &Path, link: &Path) -> Result<(), Diagnostic> {
    let same = fs::canonicalize(link).and_then(|own| Ok(own == fs::canonicalize(target)?));
    if same.unwrap_or(false) {
        return Ok(());
    }
    let relative = relative(target, link.parent().unwrap_or(Path::new("")));
    let fresh = fresh_name(link);
    let _ = fs::remove_file(&fresh);
    std::os::unix::fs::symlink(relative, &fresh)
        .and_then(|()| fs::rename(&fresh, link))
        .map_err(|error| failed(link, "cannot be linked", &error))
}

/// The relative path from a folder to a file, both below the same keystore.
fn relative(target: &Path, folder: &Path) -> PathBuf {
    let parts = |path: &Path| -> Vec<_> {
        path.components()
            .filter(|part| *part != Component::CurDir)
            .map(|part| part.as_os_str().to_owned())
            .collect()
    };
    let (target, folder) = (parts(target), parts(folder));
    let common = target
        .iter()
        .zip(&folder)
        .take_while(|(a, b)| a == b)
        .count();
    let up = folder.iter().skip(common).map(|_| "..".into());
    up.chain(target.into_iter().skip(common)).collect()
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), Diagnostic> {
    let fresh = fresh_name(path);
    let _ = fs::remove_file(&fresh);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&fresh)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(|error| failed(path, "cannot be written", &error))
}

fn fresh_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(
        display_path(path),
        "file",
        "",
        format!("{what}: {error}"),
        "choose a folder that you may write to, on a disk with room",
    )
}
