//! Outcomes of ROS 2's own parsers on the same files, if the user has them: lines of
//! `accepted` or `refused`, a tab, and the file's path.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::outcome::{CheckedFile, FileKind, Outcome};
use crate::repository::Repository;

/// Whether ROS 2 accepts a file, by its absolute path.
#[derive(Debug, Default)]
pub struct ParserOutcomes(BTreeMap<PathBuf, bool>);

/// Numbers of files of one kind that both judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Both accept them, or Pteros has no fault but what is missing in the folders.
    pub both_accept: usize,
    /// Both refuse them.
    pub both_refuse: usize,
    /// Only Pteros refuses them.
    pub pteros_refuses: usize,
    /// Only ROS 2's parser refuses them.
    pub ros2_refuses: usize,
}

impl ParserOutcomes {
    /// Reads a file of outcomes. Paths are relative to the current folder.
    ///
    /// # Errors
    /// The file cannot be read, or a line has another form.
    pub fn read(file: &Path) -> Result<Self> {
        let name = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("read {name}"))?;
        let mut outcomes = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let accepts = match line.split_once('\t') {
                Some(("accepted", _)) => true,
                Some(("refused", _)) => false,
                _ => bail!(
                    "{name}:{}: {line:?} is not an outcome; write accepted or refused, a tab, and a path",
                    index + 1
                ),
            };
            let path = line.split_once('\t').map_or("", |(_, path)| path);
            // Files that are gone are in no repository either.
            if let Ok(path) = Path::new(path).canonicalize() {
                outcomes.insert(path, accepts);
            }
        }
        Ok(Self(outcomes))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares our outcomes of one kind of file with those of ROS 2's parsers.
    pub fn compare(
        &self,
        kind: FileKind,
        repositories: &[Repository],
        files: &[CheckedFile],
    ) -> Agreement {
        let mut agreement = Agreement::default();
        for file in files.iter().filter(|file| file.kind == kind) {
            let folder = &repositories[file.repository].folder;
            let Some(ros2) = self.0.get(&folder.join(&file.path)) else {
                continue;
            };
            let pteros = match file.outcome {
                Outcome::Accepted | Outcome::NeedsMore(_) => true,
                Outcome::RefusedByRos2(_) | Outcome::Refused(_) => false,
                Outcome::Ros1 | Outcome::LeftOut(_) => continue,
            };
            let count = match (pteros, ros2) {
                (true, true) => &mut agreement.both_accept,
                (false, false) => &mut agreement.both_refuse,
                (false, true) => &mut agreement.pteros_refuses,
                (true, false) => &mut agreement.ros2_refuses,
            };
            *count += 1;
        }
        agreement
    }
}
