//! Loggers of nodes: lines on the console and in files, and messages on `/rosout`.
//!
//! [`Node::logger`] and the macros [`info!`](crate::info), `debug!`, `warn!`, `error!`
//! and `fatal!`, each also as `…_once!`, `…_skip_first!` and `…_throttle!`. What a logger
//! does not say costs two atomic loads. What Pteros itself reports goes to `tracing`
//! ([`crate::log`]), not here.

mod file;
mod file_options;
mod format;
mod json;
mod levels;
mod macros;
mod rosout;
mod services;

use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use file_options::{LogFileError, LogFileFormat, LogFileOptions};
pub(crate) use services::LoggerServices;

use file::LogFile;
use format::Format;
use levels::Levels;
use rosout::Rosout;

use pteros_rmw::env::Env;

use crate::clock::Time;
use crate::log::{LogSettings, Severity};
use crate::node::{Node, NodeCore};

/// One thing that is said.
pub(crate) struct Record<'r> {
    pub(crate) severity: Severity,
    pub(crate) time: Time,
    pub(crate) name: &'r str,
    pub(crate) message: &'r str,
    pub(crate) file: &'r str,
    pub(crate) function: &'r str,
    pub(crate) line: u32,
}

/// How lines look; see `docs/logging.md`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConsoleSettings {
    pub(crate) format: Option<String>,
    pub(crate) colours: Option<bool>,
    pub(crate) to_stdout: bool,
}

/// What the loggers of a context share.
pub(crate) struct LogHub {
    env: Arc<dyn Env>,
    levels: Levels,
    format: Format,
    console: bool,
    colours: bool,
    to_stdout: bool,
    file: Option<LogFile>,
    rosout: Option<Rosout>,
}

impl LogHub {
    /// `folder` is where log files lie unless somebody says otherwise.
    pub(crate) fn new(
        env: Arc<dyn Env>,
        settings: &LogSettings,
        console: &ConsoleSettings,
        files: &LogFileOptions,
        folder: Option<PathBuf>,
    ) -> Result<Arc<Self>, LogFileError> {
        let files = files.settle(settings.config_file.as_deref(), folder)?;
        let file = match settings.external {
            Some(false) => None,
            _ => LogFile::new(files, settings.file_name.as_deref()),
        };
        if settings.external == Some(true) && file.is_none() {
            tracing::warn!(
                "--enable-external-lib-logs: there is no folder for log files; set ROS_LOG_DIR, or the context's `log_files`"
            );
        }
        let is_terminal = match console.to_stdout {
            true => std::io::stdout().is_terminal(),
            false => std::io::stderr().is_terminal(),
        };
        Ok(Arc::new(Self {
            env,
            levels: Levels::new(settings),
            format: Format::parse(console.format.as_deref().unwrap_or(format::DEFAULT)),
            console: settings.console != Some(false),
            colours: console.colours.unwrap_or(is_terminal),
            to_stdout: console.to_stdout,
            file,
            rosout: (settings.rosout != Some(false)).then(Rosout::default),
        }))
    }

    /// Says it everywhere; on `/rosout` as long as its node is there.
    fn say(&self, record: &Record<'_>, node: Option<&NodeCore>) {
        self.say_without_file(record, node);
        let Some(file) = &self.file else {
            return;
        };
        let line = |record: &Record<'_>| {
            let mut line = match file.format() {
                LogFileFormat::Text => self.format.line(record),
                LogFileFormat::Json => json::line(record),
            };
            line.push('\n');
            line
        };
        let lost = |count: u64| {
            let message = format!(
                "{count} messages before this are not in this file: they could not be written"
            );
            line(&Record {
                severity: Severity::Warn,
                message: &message,
                ..*record
            })
        };
        if let Some(failure) = file.write(&line(record), &*self.env, lost) {
            let told = Record {
                severity: Severity::Error,
                message: &failure,
                ..*record
            };
            self.say_without_file(&told, node);
        }
    }

    fn say_without_file(&self, record: &Record<'_>, node: Option<&NodeCore>) {
        if self.console {
            self.print(record);
        }
        if let (Some(rosout), Some(node)) = (&self.rosout, node) {
            rosout.publish(node, record);
        }
    }

    fn print(&self, record: &Record<'_>) {
        let mut line = self.format.line(record);
        if self.colours {
            // rcutils's: green, none, yellow, red twice.
            let colour = match record.severity {
                Severity::Debug => "\x1b[32m",
                Severity::Info => "\x1b[0m",
                Severity::Warn => "\x1b[33m",
                Severity::Error | Severity::Fatal => "\x1b[31m",
            };
            line = format!("{colour}{line}\x1b[0m");
        }
        line.push('\n');
        // Nobody is left to tell of a closed console.
        let _ = match self.to_stdout {
            true => std::io::stdout().lock().write_all(line.as_bytes()),
            false => std::io::stderr().lock().write_all(line.as_bytes()),
        };
    }
}

/// Says things in the name of a node, or of a part of it. Cheap to clone,
/// thread-safe.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("arm")?;
/// let log = node.logger();
/// pteros::info!(log, "{} joints", 6);
/// pteros::warn_throttle!(log, std::time::Duration::from_secs(1), "hot");
/// let gripper = log.child("gripper"); // arm.gripper
/// gripper.set_level(Some(pteros::log::Severity::Debug));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Logger {
    core: Arc<LoggerCore>,
}

struct LoggerCore {
    name: String,
    hub: Arc<LogHub>,
    node: Weak<NodeCore>,
    /// The least severity that is said, as of the levels' change `seen`.
    least: AtomicU8,
    seen: AtomicU64,
}

impl Logger {
    fn new(name: String, hub: &Arc<LogHub>, node: Weak<NodeCore>) -> Self {
        Self {
            core: Arc::new(LoggerCore {
                name,
                hub: hub.clone(),
                node,
                least: AtomicU8::new(0),
                seen: AtomicU64::new(0),
            }),
        }
    }

    /// Its name, `namespace.node.part`.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The logger of a part: its name after this one's and a dot.
    pub fn child(&self, name: &str) -> Self {
        let name = format!("{}.{name}", self.core.name);
        Self::new(name, &self.core.hub, self.core.node.clone())
    }

    /// Whether it says things of that severity: two atomic loads.
    pub fn is_enabled(&self, severity: Severity) -> bool {
        let core = &*self.core;
        let changes = core.hub.levels.changes();
        if core.seen.load(Ordering::Acquire) != changes {
            let least = core.hub.levels.effective(&core.name);
            core.least.store(least as u8, Ordering::Relaxed);
            core.seen.store(changes, Ordering::Release);
        }
        severity as u8 >= core.least.load(Ordering::Relaxed)
    }

    /// The least severity that it says, its own or that of a logger above it.
    pub fn level(&self) -> Severity {
        self.core.hub.levels.effective(&self.core.name)
    }

    /// Gives it, and those below without one, a level; `None` takes it away. A
    /// context keeps levels of a thousand loggers; false beyond that.
    pub fn set_level(&self, level: Option<Severity>) -> bool {
        self.core.hub.levels.set(&self.core.name, level)
    }

    /// Says something, if it is enabled; the macros call this.
    #[doc(hidden)]
    pub fn say(&self, severity: Severity, at: At, message: fmt::Arguments<'_>) {
        if !self.is_enabled(severity) {
            return;
        }
        let text = match message.as_str() {
            Some(text) => std::borrow::Cow::Borrowed(text),
            None => message.to_string().into(),
        };
        let node = self.core.node.upgrade();
        let hub = &self.core.hub;
        let record = Record {
            severity,
            time: node.as_ref().map_or_else(
                || Time::from_nanos(hub.env.wall().as_nanos()),
                |node| node.time.now(),
            ),
            name: &self.core.name,
            message: &text,
            file: at.file,
            function: at.function,
            line: at.line,
        };
        hub.say(&record, node.as_deref());
    }

    /// Whether a throttled place may speak again; notes that it does.
    #[doc(hidden)]
    pub fn may_speak(&self, last: &AtomicU64, pause: Duration) -> bool {
        let now = self.core.hub.env.now().as_nanos();
        let spoke = last.load(Ordering::Relaxed);
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        if spoke != 0 && now.saturating_sub(spoke) < pause {
            return false;
        }
        let now = now.max(1);
        last.compare_exchange(spoke, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger")
            .field("name", &self.name())
            .field("level", &self.level())
            .finish()
    }
}

/// A place in a program.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The file.
    pub file: &'static str,
    /// The module, which stands for the function.
    pub function: &'static str,
    /// The line.
    pub line: u32,
}

impl Node {
    /// The node's logger.
    pub fn logger(&self) -> Logger {
        let core = self.core();
        let hub = &core.context().inner.log;
        Logger::new(self.logger_name(), hub, Arc::downgrade(core))
    }
}
