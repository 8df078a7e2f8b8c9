//! What Python launch files share with XML and YAML while processes run: the launch guard,
//! the lines of output, and the escalation of signals.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use parking_lot::Mutex;
use pteros_launch::launch_state_machine::StopTimeouts;
use pteros_launch::run::{LaunchGuard, OutputLines, run_watchdog};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Ends what a launch has started.
#[pyclass(frozen, module = "pteros._native", name = "LaunchGuard")]
pub(crate) struct Guard(Mutex<LaunchGuard>);

#[pymethods]
impl Guard {
    #[new]
    fn new(launch_id: &str) -> Self {
        Self(Mutex::new(LaunchGuard::new(launch_id)))
    }

    #[getter]
    fn launch_id(&self) -> String {
        self.0.lock().launch_id().to_owned()
    }

    /// The variable that marks processes, and its value, where it has the value `outer`.
    fn mark(&self, outer: Option<&str>) -> (&'static str, String) {
        self.0.lock().mark(outer)
    }

    /// Starts the watchdog, unless it runs.
    fn start_watchdog(&self, words: Vec<OsString>) -> PyResult<()> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| PyValueError::new_err("the command is empty"))?;
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(self.0.lock().start_watchdog(command)?)
    }

    #[getter]
    fn has_watchdog(&self) -> bool {
        self.0.lock().has_watchdog()
    }

    fn set_folder(&self, folder: PathBuf) {
        self.0.lock().set_folder(folder);
    }

    fn add_leader(&self, pid: u32) {
        self.0.lock().add_leader(pid);
    }

    fn remove_leader(&self, pid: u32) {
        self.0.lock().remove_leader(pid);
    }

    /// Ends all processes, and returns how many are left.
    fn end_processes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.lock().end_processes())
    }

    /// Ends the watchdog.
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.0.lock().finish());
    }
}

/// The body of the watchdog process, whose standard input the launcher writes.
#[pyfunction]
fn run_launch_watchdog(py: Python<'_>, launch_id: &str) {
    py.detach(|| run_watchdog(launch_id, std::io::stdin()));
}

/// The lines of a stream. What is not UTF-8 is replaced.
#[pyclass(frozen, module = "pteros._native", name = "OutputLines")]
pub(crate) struct Lines(Mutex<OutputLines>);

#[pymethods]
impl Lines {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Adds bytes, and returns the whole lines.
    fn push(&self, bytes: Cow<'_, [u8]>) -> Vec<String> {
        let mut found = Vec::new();
        self.0.lock().push(&bytes, |line| {
            found.push(String::from_utf8_lossy(line).into_owned());
        });
        found
    }

    /// Takes what is not a whole line.
    fn take_rest(&self) -> Option<String> {
        let rest = self.0.lock().take_rest();
        rest.map(|rest| String::from_utf8_lossy(&rest).into_owned())
    }
}

/// The signals of a process that does not end after SIGINT, each with its name, the seconds
/// after that and its log line. The time-outs are in seconds; see
/// [`StopTimeouts::of_seconds`].
#[pyfunction]
fn stop_escalation(
    process: &str,
    sigterm_timeout: f64,
    sigkill_timeout: f64,
) -> Vec<(&'static str, f64, String)> {
    let timeouts = StopTimeouts::of_seconds(sigterm_timeout, sigkill_timeout);
    let steps = timeouts.steps().map(|(stop, after)| {
        let text = timeouts.text(process, stop);
        (stop.name(), after.as_secs_f64(), text)
    });
    steps.into()
}

/// Adds the classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Guard>()?;
    module.add_class::<Lines>()?;
    module.add_function(wrap_pyfunction!(run_launch_watchdog, module)?)?;
    module.add_function(wrap_pyfunction!(stop_escalation, module)?)
}
