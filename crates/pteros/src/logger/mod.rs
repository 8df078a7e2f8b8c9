//! Loggers of nodes: console lines, log files and messages on `/rosout`.
//!
//! Use [`Node::logger`] and the macros [`info!`](crate::info), `debug!`, `warn!`,
//! `error!` and `fatal!`, each also as `…_once!`, `…_skip_first!` and
//! `…_throttle!`. A disabled message costs two atomic loads. Pteros itself reports
//! to `tracing` ([`crate::log`]), not here.

mod macros;
mod services;

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub(crate) use services::LoggerServices;

use crate::log::Severity;
use crate::log_outputs::{LogOutputs, LogRecord, RosoutNode};
use crate::node::{Node, NodeCore};

/// A logger of a node or of a part of it. Cheap to clone, thread-safe.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("arm")?;
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
    outputs: Arc<LogOutputs>,
    node: Weak<NodeCore>,
    /// The effective level, as of the change number `seen_changes`.
    threshold: AtomicU8,
    seen_changes: AtomicU64,
}

impl Logger {
    fn new(name: String, outputs: &Arc<LogOutputs>, node: Weak<NodeCore>) -> Self {
        Self {
            core: Arc::new(LoggerCore {
                name,
                outputs: outputs.clone(),
                node,
                threshold: AtomicU8::new(0),
                seen_changes: AtomicU64::new(0),
            }),
        }
    }

    /// Its name, `namespace.node.part`.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// A child logger: its name is this one's, a dot and `name`.
    pub fn child(&self, name: &str) -> Self {
        let name = format!("{}.{name}", self.core.name);
        Self::new(name, &self.core.outputs, self.core.node.clone())
    }

    /// Whether messages of that severity are logged: two atomic loads.
    pub fn is_enabled(&self, severity: Severity) -> bool {
        let core = &*self.core;
        let changes = core.outputs.levels.change_count();
        if core.seen_changes.load(Ordering::Acquire) != changes {
            let least = core.outputs.levels.effective_level(&core.name);
            core.threshold.store(least as u8, Ordering::Relaxed);
            core.seen_changes.store(changes, Ordering::Release);
        }
        severity as u8 >= core.threshold.load(Ordering::Relaxed)
    }

    /// The effective level: its own or that of the nearest parent.
    pub fn level(&self) -> Severity {
        self.core.outputs.levels.effective_level(&self.core.name)
    }

    /// Sets the level of this logger and of its children without one; `None`
    /// removes it.
    ///
    /// A context keeps levels of a thousand loggers; returns false beyond that.
    pub fn set_level(&self, level: Option<Severity>) -> bool {
        self.core.outputs.levels.set(&self.core.name, level)
    }

    /// Logs a message, if enabled; the macros call this.
    #[doc(hidden)]
    pub fn log(&self, severity: Severity, at: SourceLocation, message: fmt::Arguments<'_>) {
        if !self.is_enabled(severity) {
            return;
        }
        let text = match message.as_str() {
            Some(text) => std::borrow::Cow::Borrowed(text),
            None => message.to_string().into(),
        };
        let node = self.core.node.upgrade();
        let outputs = &self.core.outputs;
        let record = LogRecord {
            severity,
            time: node
                .as_ref()
                .map_or_else(|| outputs.now(), |node| node.time.now()),
            name: &self.core.name,
            message: &text,
            keeps_lines: false,
            file: at.file,
            function: at.function,
            line: at.line,
        };
        let node = node.as_ref().map(|node| RosoutNode {
            core: node.core(),
            key: node.key,
            is_listed: &node.has_rosout_publisher,
        });
        outputs.write(&record, node.as_ref());
    }

    /// Whether a throttled call site may log now; records that it does.
    #[doc(hidden)]
    pub fn pass_throttle(&self, last: &AtomicU64, pause: Duration) -> bool {
        let now = self.core.outputs.platform.now().as_nanos();
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

/// Where a log message stands in the source.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SourceLocation {
    /// As `file!()` gives it.
    pub file: &'static str,
    /// The module, in place of the function's name.
    pub function: &'static str,
    /// From 1.
    pub line: u32,
}

impl Node {
    /// The node's logger.
    pub fn logger(&self) -> Logger {
        let core = self.core();
        let outputs = &core.context().inner.log_outputs;
        Logger::new(self.logger_name(), outputs, Arc::downgrade(core))
    }
}
