//! Log files: `PROGRAM_PID_MILLISECONDS.log`, as rcl's backend (spdlog) names them.
//!
//! A file is opened with the first message, so whoever says nothing has none. A line
//! is one `write`, at once: whatever was said before a crash is there, and no thread
//! is needed. A disk that is full, or gone, stops nobody: what cannot be written is
//! counted, said once on the console, and tried again a second later.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use parking_lot::Mutex;
use pteros_rmw::env::Env;

use super::file_options::Settled;

/// The pause after a failure, in nanoseconds.
const RETRY: u64 = 1_000_000_000;
/// Names that are tried: two contexts of a process may begin in one millisecond.
const NAMES_MAX: i64 = 1_000;

/// The file of a context, and those before it.
pub(super) struct LogFile {
    folder: PathBuf,
    /// The program, or what `--log-file-name` calls it.
    prefix: String,
    settled: Settled,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The name without its end, once there was a file.
    stem: Option<String>,
    /// No earlier than this: something failed.
    retry_at: u64,
    lost: u64,
    /// The first failure was told of.
    is_told: bool,
}

struct Open {
    file: File,
    bytes: u64,
}

impl LogFile {
    /// None, where there is no folder.
    pub(super) fn new(settled: Settled, prefix: Option<&str>) -> Option<Self> {
        let folder = settled.folder.clone()?;
        Some(Self {
            folder,
            prefix: prefix.map_or_else(program, Into::into),
            settled,
            state: Mutex::default(),
        })
    }

    pub(super) fn format(&self) -> super::LogFileFormat {
        self.settled.format
    }

    /// Writes a line, which ends with a line feed. Of lines lost since the last one that
    /// was written `tell` makes a line that goes before it. The first failure is
    /// answered in words.
    pub(super) fn write(
        &self,
        line: &str,
        env: &dyn Env,
        tell: impl FnOnce(u64) -> String,
    ) -> Option<String> {
        let now = env.now().as_nanos();
        let mut state = self.state.lock();
        if now < state.retry_at {
            state.lost = state.lost.saturating_add(1);
            return None;
        }
        let told = match state.lost {
            0 => None,
            lost => Some(tell(lost) + line),
        };
        let wall = env.wall().as_nanos() / 1_000_000;
        match self.put(&mut state, told.as_deref().unwrap_or(line), wall) {
            Ok(()) => {
                state.lost = 0;
                None
            }
            Err(error) => {
                state.lost = state.lost.saturating_add(1);
                state.retry_at = now.saturating_add(RETRY);
                if std::mem::replace(&mut state.is_told, true) {
                    return None;
                }
                Some(format!(
                    "log files in {}: {error}; what is said is counted until it can be written. Make room there, set ROS_LOG_DIR to a folder that can be written, or leave them out with --ros-args --disable-external-lib-logs",
                    self.folder.display(),
                ))
            }
        }
    }

    fn put(&self, state: &mut State, text: &str, wall_ms: i64) -> io::Result<()> {
        let bytes = text.len() as u64;
        let is_full = |open: &mut Open| {
            open.bytes > 0 && open.bytes.saturating_add(bytes) > self.settled.file_bytes_max
        };
        if let (Some(_), Some(stem)) = (state.open.take_if(is_full), &state.stem) {
            self.rotate(stem)?;
        }
        let open = match &mut state.open {
            Some(open) => open,
            none => none.insert(self.open(&mut state.stem, wall_ms)?),
        };
        let written = open.file.write_all(text.as_bytes());
        match written {
            Ok(()) => open.bytes = open.bytes.saturating_add(bytes),
            // Half a line is none.
            Err(_) => open.file.set_len(open.bytes)?,
        }
        written
    }

    /// Opens the file: a new one, or after a rotation the first again.
    fn open(&self, stem: &mut Option<String>, wall_ms: i64) -> io::Result<Open> {
        fs::create_dir_all(&self.folder)?;
        if let Some(stem) = stem {
            let path = self.folder.join(format!("{stem}.log"));
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let bytes = file.metadata()?.len();
            return Ok(Open { file, bytes });
        }
        for later in 0..NAMES_MAX {
            let ms = wall_ms.saturating_add(later);
            let name = format!("{}_{}_{ms}", self.prefix, std::process::id());
            let path = self.folder.join(format!("{name}.log"));
            match OpenOptions::new().create_new(true).append(true).open(path) {
                Ok(file) => {
                    *stem = Some(name);
                    return Ok(Open { file, bytes: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// `a.log` becomes `a.1.log`, that `a.2.log`; the oldest goes.
    fn rotate(&self, stem: &str) -> io::Result<()> {
        let path = |age: u32| match age {
            0 => self.folder.join(format!("{stem}.log")),
            age => self.folder.join(format!("{stem}.{age}.log")),
        };
        let oldest = self.settled.files_max.saturating_sub(1);
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

/// The name of the program's file.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_ref().and_then(|path| path.file_name());
    name.map_or_else(|| "node".into(), |name| name.to_string_lossy().into())
}
