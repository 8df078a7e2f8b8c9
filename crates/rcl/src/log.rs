//! Log settings of `--ros-args`, and their form as filter directives for `tracing`,
//! to which Pteros itself reports.
//!
//! Loggers of nodes are `Logger`. Nothing is printed here. The owner of
//! the process, a user's `main` or the command line tool, installs a subscriber and
//! passes it [`LogSettings::filter`].

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::arguments_error::ArgumentsError;

mod file_options;

pub use file_options::LogFileSettings;
pub use file_options::{LogFileFormat, LogFileOptions};
pub use pteros_runtime::printable::{escape_json, escape_line, escape_lines, escape_row};

/// Severity of a log message, with the numbers of `rcl_interfaces/msg/Log`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Severity {
    /// For developers.
    Debug = 10,
    /// For the operator, when all is well.
    Info = 20,
    /// Something to look at.
    Warn = 30,
    /// Something failed; the node goes on.
    Error = 40,
    /// The node cannot go on.
    Fatal = 50,
}

fn unknown(level: impl fmt::Debug) -> ArgumentsError {
    ArgumentsError::Invalid {
        location: format!("log level {level:?}"),
        problem: "unknown".into(),
        hint: "use debug, info, warn, error or fatal, as a number 10, 20, 30, 40 or 50",
    }
}

impl FromStr for Severity {
    type Err = ArgumentsError;

    /// Parses a level's name in any case; `unset` is not accepted here.
    fn from_str(word: &str) -> Result<Self, ArgumentsError> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "warn" | "warning" => Self::Warn,
            "error" => Self::Error,
            "fatal" => Self::Fatal,
            _ => return Err(unknown(word)),
        })
    }
}

impl TryFrom<u8> for Severity {
    type Error = ArgumentsError;

    /// Parses the number of a level, as in `rcl_interfaces/msg/Log`.
    fn try_from(number: u8) -> Result<Self, ArgumentsError> {
        Ok(match number {
            10 => Self::Debug,
            20 => Self::Info,
            30 => Self::Warn,
            40 => Self::Error,
            50 => Self::Fatal,
            _ => return Err(unknown(number)),
        })
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        })
    }
}

impl Severity {
    /// The `tracing` level that shows it; fatal messages are errors there.
    pub fn tracing_level(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error | Self::Fatal => "error",
        }
    }
}

/// Log settings of the command line. `None` means not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// The default level of loggers.
    pub level: Option<Severity>,
    /// Levels of single loggers. A logger is a node's dotted name or a crate.
    pub loggers: Vec<(String, Severity)>,
    /// A file with log file options, in the keys of [`LogFileOptions`].
    pub config_file: Option<PathBuf>,
    /// Prefix of log file names, instead of the program's name.
    pub file_name: Option<String>,
    /// Whether messages are published on `/rosout`.
    pub rosout: Option<bool>,
    /// Whether messages go to the console.
    pub console: Option<bool>,
    /// Whether messages go to log files.
    pub external: Option<bool>,
}

impl LogSettings {
    /// Directives for a `tracing` filter, such as `info,pteros_runtime=debug`.
    ///
    /// `default` applies where no level is given. A logger's dots become `::`, the
    /// form of targets. With the console off the result is `off`.
    pub fn filter(&self, default: Severity) -> String {
        if self.console == Some(false) {
            return "off".into();
        }
        let mut text = self.level.unwrap_or(default).tracing_level().to_owned();
        for (logger, severity) in &self.loggers {
            let target = logger.replace('.', "::");
            text.push_str(&format!(",{target}={}", severity.tracing_level()));
        }
        text
    }
}
