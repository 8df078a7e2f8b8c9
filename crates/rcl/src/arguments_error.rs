//! Errors of what a user writes for a process: `--ros-args`, parameter files and log
//! file options.

use pteros_runtime::names::NameError;
use pteros_runtime::thread::ThreadSettingError;

/// Why the command line, or a file that it names, is invalid.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum ArgumentsError {
    /// An unknown ROS argument.
    #[error("--ros-args: {argument:?} is not a ROS argument; {hint}")]
    Unknown {
        argument: String,
        /// The remedy.
        hint: String,
    },
    /// A flag at the end without its value.
    #[error("--ros-args: {flag} needs a value after it: {expected}")]
    MissingValue {
        flag: String,
        /// The form of the value.
        expected: &'static str,
    },
    /// A value that its flag does not accept.
    #[error("--ros-args: {flag} {value:?}: {reason}; {hint}")]
    InvalidValue {
        flag: String,
        /// The value as given.
        value: String,
        /// The problem.
        reason: String,
        /// The remedy.
        hint: String,
    },
    /// An invalid priority or CPU list.
    #[error("--ros-args: {flag}: {source}")]
    InvalidThreadSetting {
        flag: String,
        /// The value, and what is wrong with it.
        source: ThreadSettingError,
    },
    /// An invalid name within a value.
    #[error("--ros-args: {flag} {value:?}: {source}")]
    InvalidName {
        flag: String,
        /// The value as given.
        value: String,
        /// The name and what is wrong with it.
        source: NameError,
    },
    /// A parameter file, a file of log file options, or a value in one of them or in
    /// `-p`.
    #[error("{location}: {problem}; {hint}")]
    Invalid {
        /// The file with line and column, or the argument.
        location: String,
        problem: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A name in a file is invalid.
    #[error("{location}: {source}")]
    Name {
        /// File and line.
        location: String,
        /// The name and the error.
        source: NameError,
    },
}

pteros_msg::debug_as_display!(ArgumentsError);
