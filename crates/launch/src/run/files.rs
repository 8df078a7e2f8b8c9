//! Log files of a launch: `launch.log` and the files of each process.
//!
//! A write error (a full disk) does not stop the launch. It is reported once, and
//! the lines are lost.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Largest number of open files. Beyond it, each line opens and closes its file.
const OPEN_MAX: usize = 256;

/// The log files of one launch.
pub struct LogFiles {
    folder: PathBuf,
    open: BTreeMap<String, File>,
    /// The first write error, until it is reported.
    failure: Option<String>,
    has_failed: bool,
}

impl LogFiles {
    /// Log files in an existing folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            open: BTreeMap::new(),
            failure: None,
            has_failed: false,
        }
    }

    /// Writes a line of `launch.log`: `seconds [LEVEL] [name]: text`.
    pub fn launch_line(&mut self, level: &str, name: &str, text: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs_f64();
        self.line(
            "launch.log",
            &format!("{now:.7} [{level}] [{name}]: {text}\n"),
        );
    }

    /// Writes a process's output line to `launch.log`, unchanged.
    pub fn output_line(&mut self, name: &str, text: &[u8]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs_f64();
        let text = String::from_utf8_lossy(text);
        self.line("launch.log", &format!("{now:.7} [{name}] {text}\n"));
    }

    /// Writes a process's output line to the files of that process.
    pub fn own_line(&mut self, process: &str, stream: &str, text: &[u8]) {
        let text = format!("{}\n", String::from_utf8_lossy(text));
        self.line(&format!("{process}-{stream}.log"), &text);
        self.line(&format!("{process}.log"), &text);
    }

    fn line(&mut self, file: &str, text: &str) {
        let path = self.folder.join(file);
        let written = match self.open.get_mut(file) {
            Some(open) => open.write_all(text.as_bytes()),
            None => {
                let options = OpenOptions::new().create(true).append(true).open(&path);
                options.and_then(|mut opened| {
                    let written = opened.write_all(text.as_bytes());
                    if self.open.len() < OPEN_MAX {
                        self.open.insert(file.to_owned(), opened);
                    }
                    written
                })
            }
        };
        if let Err(error) = written
            && !self.has_failed
        {
            self.has_failed = true;
            let path = path.display();
            self.failure = Some(format!(
                "cannot write {path}: {error}; logs are incomplete, the launch goes on"
            ));
        }
    }

    /// Takes the first write error; `None` after that.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}
