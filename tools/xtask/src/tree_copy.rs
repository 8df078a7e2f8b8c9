//! A folder that is brought to the content of another one. A file that stays the same is
//! not written, so that cargo does not build it again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A folder, and the files that it is to have.
pub struct TreeCopy {
    folder: PathBuf,
    kept: BTreeSet<PathBuf>,
}

impl TreeCopy {
    /// Of this folder, which need not exist.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            kept: BTreeSet::new(),
        }
    }

    /// Writes a file with the permissions of `like`, unless it is there already. `file` is
    /// its path below the folder.
    pub fn put(&mut self, file: &Path, bytes: &[u8], like: &Path) -> Result<()> {
        let target = self.folder.join(file);
        if std::fs::read(&target).ok().as_deref() != Some(bytes) {
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder)?;
            }
            // It may be read-only, as its source was.
            let _ = std::fs::remove_file(&target);
            std::fs::write(&target, bytes)
                .with_context(|| format!("write {}", target.display()))?;
            let permissions = std::fs::metadata(like)?.permissions();
            std::fs::set_permissions(&target, permissions)?;
        }
        self.kept.insert(file.to_owned());
        Ok(())
    }

    /// Removes the files that were not put.
    pub fn end(self) -> Result<()> {
        for path in files_below(&self.folder)? {
            if !self.kept.contains(path.strip_prefix(&self.folder)?) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// All files below a folder.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    Ok(files)
}
