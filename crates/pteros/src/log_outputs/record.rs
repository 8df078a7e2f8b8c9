//! A log message on its way to the outputs.

use crate::log::Severity;
use crate::time::Time;

/// A log message.
pub(crate) struct LogRecord<'r> {
    pub(crate) severity: Severity,
    pub(crate) time: Time,
    pub(crate) name: &'r str,
    pub(crate) message: &'r str,
    /// Line feeds and tabs of the message stay as they are on the console and in files.
    pub(crate) keeps_lines: bool,
    pub(crate) file: &'r str,
    pub(crate) function: &'r str,
    pub(crate) line: u32,
}
