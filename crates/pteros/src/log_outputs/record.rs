//! A log message on its way to the outputs.

use crate::log::Severity;
use crate::time::Time;

/// A log message.
pub(crate) struct LogRecord<'r> {
    pub(crate) severity: Severity,
    pub(crate) time: Time,
    pub(crate) name: &'r str,
    pub(crate) message: &'r str,
    pub(crate) file: &'r str,
    pub(crate) function: &'r str,
    pub(crate) line: u32,
}
