//! Parts of this client library for client libraries of other languages: the runtime
//! of a context, parameter overrides, log outputs, type descriptions and the schedule of
//! timers.
//!
//! Entities of such a library are built on the runtime. Not for programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pteros_interfaces::type_description_interfaces::srv::GetTypeDescriptionResponse;
use pteros_msg::describe::TypeDescription;
use pteros_runtime::Core;
use pteros_runtime::config::Config;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::udp::SystemPlatform;

use crate::args::Arguments;
use crate::context::Context;
use crate::error::ContextError;
use crate::log::{LogFileOptions, LogSettings, Severity};
use crate::log_outputs::{ConsoleSettings, LogOutputs, LogRecord, RosoutNode};
use crate::parameter::{Parameter, ParameterFile, ParameterType, ParameterValue};
use crate::time::Time;

pub use crate::timer_schedule::TimerSchedule;

impl Context {
    /// The runtime of the context.
    pub fn runtime(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// The command line's ROS arguments.
    pub fn arguments(&self) -> &Arguments {
        &self.inner.arguments
    }

    /// The outputs of its loggers.
    pub fn process_log(&self) -> ProcessLog {
        ProcessLog(self.inner.log_outputs.clone())
    }
}

/// The parameter overrides for a node, those of later arguments last.
///
/// # Errors
/// See [`ContextError`]; it names the file and the line.
pub fn parameter_overrides(
    arguments: &[&Arguments],
    node: &str,
) -> Result<Vec<Parameter>, ContextError> {
    let mut found: Vec<Parameter> = Vec::new();
    for arguments in arguments {
        for parameter in ParameterFile::from_arguments(arguments)?.parameters_of(node, true) {
            match found.iter_mut().find(|known| known.name == parameter.name) {
                Some(known) => known.value = parameter.value,
                None => found.push(parameter),
            }
        }
    }
    Ok(found)
}

/// The parameter override for one parameter of a node, as its declared type takes the
/// text.
///
/// # Errors
/// See [`parameter_overrides`].
pub fn parameter_override_as(
    arguments: &[&Arguments],
    node: &str,
    name: &str,
    declared: ParameterType,
) -> Result<Option<ParameterValue>, ContextError> {
    let mut found = None;
    for arguments in arguments {
        let texts = ParameterFile::from_arguments(arguments)?.texts_of(node, true);
        let text = texts.into_iter().find(|(known, _)| known == name);
        found = text.map(|(_, text)| text.value_as(declared)).or(found);
    }
    Ok(found)
}

/// A log line.
#[derive(Clone, Copy, Debug)]
pub struct LogLine<'l> {
    /// Its severity. It is written whether or not the logger has it enabled.
    pub severity: Severity,
    /// The logger.
    pub name: &'l str,
    /// The text.
    pub message: &'l str,
    /// The source file.
    pub file: &'l str,
    /// The function.
    pub function: &'l str,
    /// The line of the file.
    pub line: u32,
}

/// The node that publishes a log line on `/rosout`.
pub struct LogNode<'n> {
    /// The runtime of its context.
    pub core: &'n Arc<Core>,
    /// The node.
    pub key: NodeKey,
    /// Whether the graph lists the node as an owner of the publisher; kept here.
    pub is_listed: &'n AtomicBool,
}

impl<'n> LogNode<'n> {
    fn rosout_node(&self) -> RosoutNode<'n> {
        RosoutNode {
            core: self.core,
            key: self.key,
            is_listed: self.is_listed,
        }
    }
}

/// Console, log files and `/rosout`, and the levels of loggers. Cheap to clone,
/// thread-safe.
#[derive(Clone)]
pub struct ProcessLog(Arc<LogOutputs>);

impl ProcessLog {
    /// Outputs from the environment alone, for lines before a context is opened.
    ///
    /// # Errors
    /// A variable is invalid.
    pub fn from_environment() -> Result<Self, ContextError> {
        let config = Config::from_environment()?;
        let console = ConsoleSettings {
            format: config.console_format.clone(),
            colours: config.console_colours,
            to_stdout: config.console_to_stdout,
        };
        let outputs = LogOutputs::new(
            Arc::new(SystemPlatform::new()),
            &LogSettings::default(),
            &console,
            &LogFileOptions::default(),
            config.log_folder.clone(),
        )?;
        Ok(Self(outputs))
    }

    /// The folder of log files, if the environment names one.
    ///
    /// # Errors
    /// A variable is invalid.
    pub fn folder() -> Result<Option<PathBuf>, ContextError> {
        Ok(Config::from_environment()?.log_folder)
    }

    /// Writes a line to all outputs. May block on disk I/O.
    pub fn write(&self, line: &LogLine<'_>, node: Option<&LogNode<'_>>) {
        let record = LogRecord {
            severity: line.severity,
            time: Time::from_nanos(self.0.env.wall_clock().as_nanos()),
            name: line.name,
            message: line.message,
            // As rcutils prints them: programs write tables and tracebacks into logs.
            keeps_lines: true,
            file: line.file,
            function: line.function,
            line: line.line,
        };
        let node = node.map(LogNode::rosout_node);
        self.0.write(&record, node.as_ref());
    }

    /// Lists the publisher on `/rosout` as one of the node before its first line, unless
    /// arguments switch it off.
    pub fn announce_rosout(&self, node: &LogNode<'_>) {
        self.0.announce_rosout(&node.rosout_node());
    }

    /// The level of a logger: its own or that of the nearest parent.
    pub fn effective_level(&self, name: &str) -> Severity {
        self.0.levels.effective_level(name)
    }

    /// Its own level.
    pub fn level(&self, name: &str) -> Option<Severity> {
        self.0.levels.explicit_level(name)
    }

    /// Sets or removes its level; the empty name is the parent of all. Returns false
    /// when a thousand loggers have one.
    pub fn set_level(&self, name: &str, level: Option<Severity>) -> bool {
        self.0.levels.set(name, level)
    }
}

/// The answer of `~/get_type_description` for a type whose definition is a standard one.
pub fn describe_type(
    description: TypeDescription,
    with_sources: bool,
) -> GetTypeDescriptionResponse {
    crate::type_description::response(description, with_sources, None)
}
