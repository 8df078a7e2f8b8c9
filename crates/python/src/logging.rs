//! Loggers: console, log files and `/rosout`, and the levels of loggers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pteros_rcl::log::Severity;
use pteros_rcl::log_outputs::{LogOutputs, LogRecord, RosoutNode};
use pteros_runtime::config::Config;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::context::Context;
use crate::error::rcl;
use crate::node::NodeState;

/// The log of the process: that of the context that was opened last.
static LOG: Mutex<Option<Arc<LogOutputs>>> = Mutex::new(None);

fn nodes() -> &'static Mutex<HashMap<String, Weak<NodeState>>> {
    static NODES: OnceLock<Mutex<HashMap<String, Weak<NodeState>>>> = OnceLock::new();
    NODES.get_or_init(Mutex::default)
}

/// Lets the lines of a node's logger go to `/rosout`, where it has a publisher from now on.
pub(crate) fn add_node(py: Python<'_>, node: &Arc<NodeState>) {
    let mut nodes = nodes().lock();
    nodes.retain(|_, known| known.strong_count() > 0);
    nodes.insert(node.logger_name(), Arc::downgrade(node));
    drop(nodes);
    let log = node.context.context.log_outputs();
    py.detach(|| log.announce_rosout(&log_node(node)));
}

fn log_node(node: &NodeState) -> RosoutNode<'_> {
    RosoutNode {
        core: &node.context.core,
        key: node.key,
        is_listed: &node.is_rosout_listed,
    }
}

/// The node of a logger or of its nearest parent.
fn node_of(logger: &str) -> Option<Arc<NodeState>> {
    let nodes = nodes().lock();
    let mut name = logger;
    loop {
        if let Some(node) = nodes.get(name).and_then(Weak::upgrade) {
            return Some(node);
        }
        name = name.rsplit_once('.')?.0;
    }
}

/// The log of the process, if a context was opened. Never waits: a line of the runtime can
/// come while another one is written.
pub(crate) fn opened_log() -> Option<Arc<LogOutputs>> {
    LOG.try_lock()?.clone()
}

fn opened_or_new_log() -> PyResult<Arc<LogOutputs>> {
    let mut log = LOG.lock();
    if let Some(known) = &*log {
        return Ok(known.clone());
    }
    let opened = LogOutputs::from_environment().map_err(rcl)?;
    Ok(log.insert(opened).clone())
}

fn to_severity(number: u32) -> PyResult<Severity> {
    let known = u8::try_from(number).map_err(drop);
    known
        .and_then(|number| Severity::try_from(number).map_err(drop))
        .map_err(|()| {
            PyValueError::new_err(format!(
                "log level {number}: use 10 (debug), 20 (info), 30 (warn), 40 (error) or 50 (fatal)"
            ))
        })
}

/// Writes a line.
#[pyfunction]
#[pyo3(signature = (name, severity, message, function="", file="", line=0))]
fn log(
    py: Python<'_>,
    name: &str,
    severity: u32,
    message: &str,
    function: &str,
    file: &str,
    line: u32,
) -> PyResult<()> {
    let log = opened_or_new_log()?;
    let severity = to_severity(severity)?;
    py.detach(|| {
        let node = node_of(name);
        let node = node.as_ref().filter(|node| !node.context.is_shut_down());
        let record = LogRecord {
            severity,
            time: log.now(),
            name,
            message,
            // As rcutils prints them: programs write tables and tracebacks into logs.
            keeps_lines: true,
            file,
            function,
            line,
        };
        match node {
            Some(node) => {
                let log = node.context.context.log_outputs();
                log.write(&record, Some(&log_node(node)));
            }
            None => log.write(&record, None),
        }
    });
    Ok(())
}

/// Sets the level of a logger; 0 unsets it.
#[pyfunction]
fn set_logger_level(name: &str, level: u32) -> PyResult<()> {
    let level = match level {
        0 => None,
        level => Some(to_severity(level)?),
    };
    if opened_or_new_log()?.levels.set(name, level) {
        return Ok(());
    }
    Err(rcl(format!(
        "logger {name:?}: a thousand loggers have a level; unset some, or set that of a parent"
    )))
}

/// Its own level; 0 if unset.
#[pyfunction]
fn get_logger_level(name: &str) -> PyResult<u32> {
    Ok(opened_or_new_log()?
        .levels
        .explicit_level(name)
        .map_or(0, |level| u32::from(level as u8)))
}

/// The level that applies.
#[pyfunction]
fn get_logger_effective_level(name: &str) -> PyResult<u32> {
    Ok(u32::from(
        opened_or_new_log()?.levels.effective_level(name) as u8
    ))
}

#[pyfunction]
fn is_logger_enabled_for(name: &str, severity: u32) -> PyResult<bool> {
    Ok(severity >= u32::from(opened_or_new_log()?.levels.effective_level(name) as u8))
}

/// The folder of log files.
#[pyfunction]
fn get_logging_directory() -> String {
    let folder = Config::log_folder_of_environment();
    folder.map_or(".ros/log".into(), |folder| {
        folder.to_string_lossy().into_owned()
    })
}

/// Applies the log arguments of a context.
#[pyfunction]
fn configure_logging(context: &Context) {
    *LOG.lock() = Some(context.state.context.log_outputs().clone());
}

#[pyfunction]
fn get_rmw_implementation_identifier() -> &'static str {
    "rmw_pteros_cpp"
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(log, module)?)?;
    module.add_function(wrap_pyfunction!(set_logger_level, module)?)?;
    module.add_function(wrap_pyfunction!(get_logger_level, module)?)?;
    module.add_function(wrap_pyfunction!(get_logger_effective_level, module)?)?;
    module.add_function(wrap_pyfunction!(is_logger_enabled_for, module)?)?;
    module.add_function(wrap_pyfunction!(get_logging_directory, module)?)?;
    module.add_function(wrap_pyfunction!(configure_logging, module)?)?;
    module.add_function(wrap_pyfunction!(get_rmw_implementation_identifier, module)?)
}
