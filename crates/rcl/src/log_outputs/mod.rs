//! Log outputs: console lines, log files and messages on `/rosout`, and the levels of
//! all loggers of a context.
//!
//! `Logger` writes here what its level admits.

mod file;
mod format;
mod json;
mod levels;
mod record;
mod rosout;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use pteros_runtime::config::Config;
use pteros_runtime::platform::Platform;
use pteros_runtime::udp::SystemPlatform;

use file::LogFile;
use format::ConsoleFormat;
use rosout::RosoutPublisher;

use crate::arguments_error::ArgumentsError;
use crate::error::ContextError;
use crate::log::{LogFileFormat, LogFileOptions, LogSettings, Severity};
use crate::time::Time;

pub use levels::Levels;
pub use record::LogRecord;
pub use rosout::RosoutNode;

/// Console format and colours; see `docs/how_to/logging.md`.
#[derive(Clone, Debug, Default)]
pub struct ConsoleSettings {
    /// RCUTILS_CONSOLE_OUTPUT_FORMAT; that of rcutils if unset.
    pub format: Option<String>,
    /// RCUTILS_COLORIZED_OUTPUT; whether the output is a terminal if unset.
    pub colours: Option<bool>,
    /// RCUTILS_LOGGING_USE_STDOUT; otherwise lines go to standard error.
    pub to_stdout: bool,
}

impl From<&Config> for ConsoleSettings {
    fn from(config: &Config) -> Self {
        Self {
            format: config.console_format.clone(),
            colours: config.console_colours,
            to_stdout: config.console_to_stdout,
        }
    }
}

/// The outputs and levels that the loggers of a context share.
pub struct LogOutputs {
    /// Clock of the time stamps.
    pub platform: Arc<dyn Platform>,
    /// Levels of its loggers.
    pub levels: Levels,
    format: ConsoleFormat,
    console: bool,
    colours: bool,
    to_stdout: bool,
    file: Option<LogFile>,
    rosout: Option<RosoutPublisher>,
}

impl LogOutputs {
    /// Outputs from the environment alone, for lines before a context is opened.
    ///
    /// # Errors
    /// A variable is invalid.
    pub fn from_environment() -> Result<Arc<Self>, ContextError> {
        let config = Config::from_environment()?;
        Ok(Self::new(
            Arc::new(SystemPlatform::new()),
            &LogSettings::default(),
            &ConsoleSettings::from(&config),
            &LogFileOptions::default(),
            config.log_folder.clone(),
        )?)
    }

    /// System time, for the time stamp of a record.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.platform.wall_clock().as_nanos())
    }

    /// Whether a line of a logger with this severity is written.
    pub fn is_enabled(&self, name: &str, severity: Severity) -> bool {
        severity >= self.levels.effective_level(name)
    }

    /// `folder` is the default folder of log files.
    pub fn new(
        platform: Arc<dyn Platform>,
        settings: &LogSettings,
        console: &ConsoleSettings,
        files: &LogFileOptions,
        folder: Option<PathBuf>,
    ) -> Result<Arc<Self>, ArgumentsError> {
        let files = files.resolve(settings.config_file.as_deref(), folder)?;
        let file = match settings.external {
            Some(false) => None,
            _ => LogFile::new(files, settings.file_name.as_deref()),
        };
        if settings.external == Some(true) && file.is_none() {
            tracing::warn!(
                "--enable-external-lib-logs: there is no folder for log files; set ROS_LOG_DIR, or the context's `log_files`"
            );
        }
        let is_terminal = if console.to_stdout {
            std::io::stdout().is_terminal()
        } else {
            std::io::stderr().is_terminal()
        };
        Ok(Arc::new(Self {
            platform,
            levels: Levels::new(settings),
            format: ConsoleFormat::parse(console.format.as_deref().unwrap_or(format::DEFAULT)),
            console: settings.console != Some(false),
            colours: console.colours.unwrap_or(is_terminal),
            to_stdout: console.to_stdout,
            file,
            rosout: (settings.rosout != Some(false)).then(RosoutPublisher::default),
        }))
    }

    /// Writes to all outputs; to `/rosout` as long as the node exists.
    pub fn write(&self, record: &LogRecord<'_>, node: Option<&RosoutNode<'_>>) {
        self.write_console_and_rosout(record, node);
        let Some(file) = &self.file else {
            return;
        };
        let line = |record: &LogRecord<'_>| {
            let mut line = match file.format() {
                LogFileFormat::Text => self.format.line(record),
                LogFileFormat::Json => json::line(record),
            };
            line.push('\n');
            line
        };
        let lost = |count: u64| {
            let message = format!(
                "{count} messages before this one are missing: they could not be written to this file"
            );
            line(&LogRecord {
                severity: Severity::Warn,
                message: &message,
                ..*record
            })
        };
        if let Some(failure) = file.write(&line(record), &*self.platform, lost) {
            let report = LogRecord {
                severity: Severity::Error,
                message: &failure,
                ..*record
            };
            self.write_console_and_rosout(&report, node);
        }
    }

    /// Lists the publisher on `/rosout` as one of the node, unless it is off.
    pub fn announce_rosout(&self, node: &RosoutNode<'_>) {
        if let Some(rosout) = &self.rosout {
            rosout.announce(node);
        }
    }

    fn write_console_and_rosout(&self, record: &LogRecord<'_>, node: Option<&RosoutNode<'_>>) {
        if self.console {
            self.print(record);
        }
        if let (Some(rosout), Some(node)) = (&self.rosout, node) {
            rosout.publish(node, record);
        }
    }

    fn print(&self, record: &LogRecord<'_>) {
        let mut line = self.format.line(record);
        if self.colours {
            // rcutils's colours: green, none, yellow, and red for both.
            let colour = match record.severity {
                Severity::Debug => "\x1b[32m",
                Severity::Info => "\x1b[0m",
                Severity::Warn => "\x1b[33m",
                Severity::Error | Severity::Fatal => "\x1b[31m",
            };
            line = format!("{colour}{line}\x1b[0m");
        }
        line.push('\n');
        // A closed console cannot be reported anywhere.
        let _ = if self.to_stdout {
            std::io::stdout().lock().write_all(line.as_bytes())
        } else {
            std::io::stderr().lock().write_all(line.as_bytes())
        };
    }
}
