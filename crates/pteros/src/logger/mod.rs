//! Loggers of nodes: lines on the console and messages on `/rosout`.
//!
//! [`Node::logger`] and the macros [`info!`](crate::info), `debug!`, `warn!`, `error!`
//! and `fatal!`, each also as `…_once!`, `…_skip_first!` and `…_throttle!`. What a logger
//! does not say costs two atomic loads. What Pteros itself reports goes to `tracing`
//! ([`crate::log`]), not here.

mod format;
mod levels;
mod macros;
mod rosout;
mod services;

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub(crate) use services::LoggerServices;

use format::Format;
use levels::Levels;
use rosout::Rosout;

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
    levels: Levels,
    format: Format,
    console: bool,
    colours: bool,
    to_stdout: bool,
    rosout: Option<Rosout>,
}

impl LogHub {
    pub(crate) fn new(settings: &LogSettings, console: &ConsoleSettings) -> Arc<Self> {
        let is_terminal = match console.to_stdout {
            true => std::io::stdout().is_terminal(),
            false => std::io::stderr().is_terminal(),
        };
        Arc::new(Self {
            levels: Levels::new(settings),
            format: Format::parse(console.format.as_deref().unwrap_or(format::DEFAULT)),
            console: settings.console != Some(false),
            colours: console.colours.unwrap_or(is_terminal),
            to_stdout: console.to_stdout,
            rosout: (settings.rosout != Some(false)).then(Rosout::default),
        })
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
        let record = Record {
            severity,
            time: node
                .as_ref()
                .map_or_else(Time::default, |node| node.time.now()),
            name: &self.core.name,
            message: &text,
            file: at.file,
            function: at.function,
            line: at.line,
        };
        let hub = &self.core.hub;
        if hub.console {
            hub.print(&record);
        }
        if let (Some(rosout), Some(node)) = (&hub.rosout, node) {
            rosout.publish(&node, &record);
        }
    }

    /// Whether a throttled place may speak again; notes that it does.
    #[doc(hidden)]
    pub fn may_speak(&self, last: &AtomicU64, pause: Duration) -> bool {
        let Some(node) = self.core.node.upgrade() else {
            return false;
        };
        let now = node.core().env.now().as_nanos();
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
