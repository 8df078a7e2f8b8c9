//! Log files: `PROGRAM_PID_MILLISECONDS.log`, named as by rcl's backend (spdlog).
//!
//! A file is opened with the first message, so a process that logs nothing has
//! none. A line is one `write`, done at once: lines before a crash are in the file,
//! and no thread is needed. A full or missing disk blocks nothing. Lines that
//! cannot be written are counted, reported once on the console, and retried a
//! second later.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use parking_lot::Mutex;
use pteros_runtime::platform::{Platform, check_file_size};

use crate::log::{LogFileFormat, LogFileSettings};

/// Pause after a failure, in nanoseconds.
const RETRY_PAUSE_NANOS: u64 = 1_000_000_000;
/// File names that are tried: two contexts of a process may start in the same
/// millisecond.
const NAMES_MAX: i64 = 1_000;

/// The log file of a context, and its rotated predecessors.
pub(super) struct LogFile {
    folder: PathBuf,
    /// The program's name, or the value of `--log-file-name`.
    prefix: String,
    settings: LogFileSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<OpenFile>,
    /// The file name without extension, once a file exists.
    stem: Option<String>,
    /// Not before this time: a write failed.
    retry_at: u64,
    lost_lines: u64,
    /// The first failure has been reported.
    failure_reported: bool,
}

struct OpenFile {
    file: File,
    bytes: u64,
}

impl LogFile {
    /// `None` if there is no folder.
    pub(super) fn new(settings: LogFileSettings, prefix: Option<&str>) -> Option<Self> {
        let folder = settings.folder.clone()?;
        Some(Self {
            folder,
            prefix: prefix.map_or_else(program, Into::into),
            settings,
            state: Mutex::default(),
        })
    }

    pub(super) fn format(&self) -> LogFileFormat {
        self.settings.format
    }

    /// Writes a line, which ends with a line feed.
    ///
    /// If lines were lost before it, the line that `tell` returns for their number
    /// is written first. Returns a message for the first failure.
    pub(super) fn write(
        &self,
        line: &str,
        env: &dyn Platform,
        tell: impl FnOnce(u64) -> String,
    ) -> Option<String> {
        let now = env.now().as_nanos();
        let mut state = self.state.lock();
        if now < state.retry_at {
            state.lost_lines = state.lost_lines.saturating_add(1);
            return None;
        }
        let with_loss_note = match state.lost_lines {
            0 => None,
            lost => Some(tell(lost) + line),
        };
        let wall = env.wall_clock().as_nanos() / 1_000_000;
        match self.append_text(&mut state, with_loss_note.as_deref().unwrap_or(line), wall) {
            Ok(()) => {
                state.lost_lines = 0;
                None
            }
            Err(error) => {
                state.lost_lines = state.lost_lines.saturating_add(1);
                state.retry_at = now.saturating_add(RETRY_PAUSE_NANOS);
                if std::mem::replace(&mut state.failure_reported, true) {
                    return None;
                }
                Some(format!(
                    "log files in {}: {error}; messages are counted until they can be written. Free space there, set ROS_LOG_DIR to a writable folder, or disable log files with --ros-args --disable-external-lib-logs",
                    self.folder.display(),
                ))
            }
        }
    }

    fn append_text(&self, state: &mut State, text: &str, wall_ms: i64) -> io::Result<()> {
        let bytes = text.len() as u64;
        let is_full = |open: &mut OpenFile| {
            open.bytes > 0 && open.bytes.saturating_add(bytes) > self.settings.file_bytes_max
        };
        if let (Some(_), Some(stem)) = (state.open.take_if(is_full), &state.stem) {
            self.rotate(stem)?;
        }
        let open = match &mut state.open {
            Some(open) => open,
            none => none.insert(self.open(&mut state.stem, wall_ms)?),
        };
        // Beyond that limit the write would end the process.
        check_file_size(open.bytes.saturating_add(bytes))?;
        let written = open.file.write_all(text.as_bytes());
        match written {
            Ok(()) => open.bytes = open.bytes.saturating_add(bytes),
            // Removes a partly written line.
            Err(_) => open.file.set_len(open.bytes)?,
        }
        written
    }

    /// Opens a new file, or after a rotation the first name again.
    fn open(&self, stem: &mut Option<String>, wall_ms: i64) -> io::Result<OpenFile> {
        fs::create_dir_all(&self.folder)?;
        if let Some(stem) = stem {
            let path = self.folder.join(format!("{stem}.log"));
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let bytes = file.metadata()?.len();
            return Ok(OpenFile { file, bytes });
        }
        for later in 0..NAMES_MAX {
            let ms = wall_ms.saturating_add(later);
            let name = format!("{}_{}_{ms}", self.prefix, std::process::id());
            let path = self.folder.join(format!("{name}.log"));
            match OpenOptions::new().create_new(true).append(true).open(path) {
                Ok(file) => {
                    *stem = Some(name);
                    return Ok(OpenFile { file, bytes: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Renames `a.log` to `a.1.log`, that to `a.2.log`; deletes the oldest.
    fn rotate(&self, stem: &str) -> io::Result<()> {
        let path = |age: u32| match age {
            0 => self.folder.join(format!("{stem}.log")),
            age => self.folder.join(format!("{stem}.{age}.log")),
        };
        let oldest = self.settings.files_max.saturating_sub(1);
        let missing_is_fine = |done: io::Result<()>| match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        missing_is_fine(fs::remove_file(path(oldest)))?;
        for age in (0..oldest).rev() {
            missing_is_fine(fs::rename(path(age), path(age.saturating_add(1))))?;
        }
        Ok(())
    }
}

/// The program's file name.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_ref().and_then(|path| path.file_name());
    name.map_or_else(|| "node".into(), |name| name.to_string_lossy().into())
}
