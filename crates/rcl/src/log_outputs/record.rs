//! A log message on its way to the outputs.

use crate::log::Severity;
use crate::time::Time;

/// A log message.
pub struct LogRecord<'r> {
    /// It is written whether or not the logger has it enabled.
    pub severity: Severity,
    /// ROS time of the node: simulated where `use_sim_time` is set.
    pub time: Time,
    /// The logger.
    pub name: &'r str,
    /// The text.
    pub message: &'r str,
    /// Line feeds and tabs of the message stay as they are on the console and in files.
    pub keeps_lines: bool,
    /// The source file.
    pub file: &'r str,
    /// The function of the call.
    pub function: &'r str,
    /// The line of the file.
    pub line: u32,
}
