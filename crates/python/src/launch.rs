//! The launch system for Python launch files: texts with substitutions, command lines,
//! typed values, parameter files, respawns and packages, as `pteros launch` has them for
//! XML and YAML files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;
use pteros::parameter::{ParameterType, ParameterValue};
use pteros_container::ComponentIndex;
use pteros_launch::Packages;
use pteros_launch::command_output::{CommandFailure, CommandLimits, RunningCommand, StandardError};
use pteros_launch::launch_state_machine::RespawnBackoff;
use pteros_launch::node_arguments::{ParameterArgument, ParameterSource, parameter_arguments};
use pteros_launch::parameter_value::{parameter_text, typed_value};
use pteros_launch::plan::RespawnPolicy;
use pteros_launch::substitution::{SubstitutionCall, Template, TemplatePart};
use pyo3::exceptions::{
    PyBufferError, PyLookupError, PyOSError, PyOverflowError, PyTimeoutError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::parameters::{self, object};

/// The parts of a text: strings, and tuples of a substitution's name and arguments, each
/// of which is a list of parts again.
#[pyfunction]
fn parse_template<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyList>> {
    let template = Template::parse(text).map_err(PyValueError::new_err)?;
    parts(py, &template)
}

fn parts<'py>(py: Python<'py>, template: &Template) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => list.append(text)?,
            TemplatePart::Call(SubstitutionCall { name, arguments }) => {
                let arguments = arguments.iter().map(|argument| parts(py, argument));
                let arguments = arguments.collect::<PyResult<Vec<_>>>()?;
                list.append((name, arguments))?;
            }
        }
    }
    Ok(list)
}

/// A text as letters that stand for its bytes. Texts of Python may have surrogates, which
/// stand for bytes that are not UTF-8; such a text is no `String`.
fn letters_of(text: &Bound<'_, PyString>) -> PyResult<String> {
    let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    let bytes = bytes.extract::<Cow<'_, [u8]>>()?;
    Ok(bytes.iter().copied().map(char::from).collect())
}

/// The text that [`letters_of`] made these letters from.
fn text_of<'py>(py: Python<'py>, letters: &str) -> PyResult<Bound<'py, PyAny>> {
    let bytes = letters
        .chars()
        .map(|letter| u8::try_from(letter).unwrap_or(b'?'));
    let bytes = PyBytes::new(py, &bytes.collect::<Vec<u8>>());
    bytes.call_method1("decode", ("utf-8", "surrogatepass"))
}

/// The words of a command line, as a shell splits them. A part that is `None` is never
/// split; its index stands for it in the words.
#[pyfunction]
fn split_words<'py>(
    py: Python<'py>,
    line: Vec<Option<Bound<'py, PyString>>>,
) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
    let parts = line
        .into_iter()
        .enumerate()
        .map(|(index, part)| match part {
            Some(text) => letters_of(&text).map(TemplatePart::Text),
            None => Ok(TemplatePart::Call(SubstitutionCall {
                name: index.to_string(),
                arguments: Vec::new(),
            })),
        });
    let template = Template {
        parts: parts.collect::<PyResult<_>>()?,
    };
    let words = template.words().map_err(PyValueError::new_err)?;
    let part = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => text_of(py, text),
        TemplatePart::Call(call) => {
            let index: usize = call.name.parse().unwrap_or_default();
            Ok(index.into_pyobject(py)?.into_any())
        }
    };
    let words = words
        .iter()
        .map(|word| word.parts.iter().map(part).collect());
    words.collect()
}

/// The value of a text as a type of launch files: 'int', 'float', 'bool', 'yaml' and others.
#[pyfunction]
fn typed_launch_value<'py>(py: Python<'py>, text: &str, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    object(
        py,
        typed_value(text, kind, false).map_err(PyValueError::new_err)?,
    )
}

/// A Python value as the value of a parameter.
fn value_of(value: &Bound<'_, PyAny>) -> PyResult<ParameterValue> {
    let of = type_of(value)?.ok_or_else(|| no_parameter(value))?;
    parameters::value_of(value, of).map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let text = format!("{value} does not fit into 64 bits; write a float");
            return PyValueError::new_err(text);
        }
        error
    })
}

/// The type of a Python value, if a parameter can have it.
fn type_of(value: &Bound<'_, PyAny>) -> PyResult<Option<ParameterType>> {
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Ok(scalar_type(value));
    }
    let types = parameters::items(value, |item| Ok(scalar_type(&item)))?;
    let Some((first, others)) = types.split_first() else {
        return Ok(Some(ParameterType::StringArray));
    };
    Ok(match first {
        _ if others.iter().any(|other| other != first) => None,
        Some(ParameterType::Bool) => Some(ParameterType::BoolArray),
        Some(ParameterType::Integer) => Some(ParameterType::IntegerArray),
        Some(ParameterType::Double) => Some(ParameterType::DoubleArray),
        Some(ParameterType::String) => Some(ParameterType::StringArray),
        _ => None,
    })
}

fn scalar_type(value: &Bound<'_, PyAny>) -> Option<ParameterType> {
    if value.is_none() {
        Some(ParameterType::NotSet)
    } else if value.is_instance_of::<PyBool>() {
        Some(ParameterType::Bool)
    } else if value.is_instance_of::<PyInt>() {
        Some(ParameterType::Integer)
    } else if value.is_instance_of::<PyFloat>() {
        Some(ParameterType::Double)
    } else if value.is_instance_of::<PyString>() {
        Some(ParameterType::String)
    } else {
        None
    }
}

fn no_parameter(value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{value} has no form in a parameter file; a parameter is a bool, an int, a float, a str, or a list of one of these"
    ))
}

/// The text of a value for `-p` and parameter files: as `written`, if a node reads that
/// as this value.
#[pyfunction]
#[pyo3(signature = (value, written=None))]
fn yaml_of_parameter(value: &Bound<'_, PyAny>, written: Option<&str>) -> PyResult<String> {
    Ok(parameter_text(&value_of(value)?, written))
}

/// The `--ros-args` arguments for the parameters of a node: pairs of a flag and its word.
/// The word of a file that is still to be written is its text, and the flag `None`.
///
/// A source is `('argument', name, yaml)`, `('value', name, yaml)` or `('file', path, '')`.
#[pyfunction]
fn node_parameter_arguments<'py>(
    py: Python<'py>,
    node: Option<&str>,
    sources: Vec<(String, Bound<'py, PyString>, String)>,
) -> PyResult<Vec<(Option<&'static str>, Bound<'py, PyAny>)>> {
    let sources = sources
        .into_iter()
        .map(|(kind, name, value)| match kind.as_str() {
            "argument" => Ok(ParameterSource::Argument(name.extract()?, value)),
            "value" => Ok(ParameterSource::Value(name.extract()?, value)),
            "file" => Ok(ParameterSource::File(letters_of(&name)?)),
            _ => Err(PyValueError::new_err(format!(
                "{kind:?} is no source of parameters"
            ))),
        });
    let sources = sources.collect::<PyResult<Vec<_>>>()?;
    let arguments = parameter_arguments(node, sources).into_iter();
    let plain = |text: &str| PyString::new(py, text).into_any();
    let arguments = arguments.map(|argument| match argument {
        ParameterArgument::Value(word) => Ok((Some("-p"), plain(&word))),
        ParameterArgument::File(path) => Ok((Some("--params-file"), text_of(py, &path)?)),
        ParameterArgument::NewFile(text) => Ok((None, plain(&text))),
    });
    arguments.collect()
}

/// Whether and when a process that has ended by itself is started again.
#[pyclass(frozen, module = "pteros._native", name = "RespawnBackoff")]
pub(crate) struct Respawns(Mutex<RespawnBackoff>);

#[pymethods]
impl Respawns {
    /// A delay in seconds, and the largest number of respawns; below 0 for any number.
    #[new]
    fn new(delay: f64, retries_max: i64) -> PyResult<Self> {
        let delay = Duration::try_from_secs_f64(delay.max(0.0));
        let policy = RespawnPolicy {
            delay: delay.map_err(|error| {
                PyValueError::new_err(format!("respawn_delay: {error}; write seconds"))
            })?,
            retries_max: u32::try_from(retries_max).ok(),
        };
        Ok(Self(Mutex::new(RespawnBackoff::new(Some(policy)))))
    }

    /// The delay in seconds after a run of so many; `None` if there is no other respawn.
    fn next_delay(&self, ran: f64) -> Option<f64> {
        let ran = Duration::try_from_secs_f64(ran.max(0.0)).unwrap_or(Duration::MAX);
        let delay = self.0.lock().next_delay(ran);
        delay.map(|delay| delay.as_secs_f64())
    }
}

/// The packages of this process's environment, and of the workspace of the current folder
/// unless that has the package. `command` is the program that has started this Python,
/// `cargo_target` the value of `CARGO_TARGET_DIR`.
fn packages(name: &str, command: Option<PathBuf>, cargo_target: Option<PathBuf>) -> Packages {
    let index = ComponentIndex::of_program(command);
    let packages = Packages::new(&index, cargo_target);
    if packages.is_installed(name) {
        packages
    } else {
        packages.with_workspace_of(Path::new("."))
    }
}

/// A name as text; no package or program has a name that is not UTF-8.
fn utf8<'a>(what: &str, name: &'a OsString) -> PyResult<&'a str> {
    name.to_str().ok_or_else(|| {
        PyLookupError::new_err(format!(
            "{what} name {name:?} is not UTF-8; no {what} is found by such a name, so rename it"
        ))
    })
}

/// The prefix and the share folder of a package; `LookupError` with similar names.
#[pyfunction]
#[pyo3(signature = (name, command=None, cargo_target=None))]
fn find_package(
    py: Python<'_>,
    name: OsString,
    command: Option<PathBuf>,
    cargo_target: Option<PathBuf>,
) -> PyResult<(PathBuf, PathBuf)> {
    let name = utf8("package", &name)?;
    let found = py.detach(|| packages(name, command, cargo_target).find(name));
    let found = found.map_err(PyLookupError::new_err)?;
    Ok((found.prefix, found.share))
}

/// The path of a package's program, and the arguments that precede the caller's, which
/// only a built-in node has; `LookupError` with the reason and similar names.
/// `built_in_nodes` is the value of their switch.
#[pyfunction]
#[pyo3(signature = (package, name, command=None, cargo_target=None, built_in_nodes=None))]
fn find_program(
    py: Python<'_>,
    package: OsString,
    name: OsString,
    command: Option<PathBuf>,
    cargo_target: Option<PathBuf>,
    built_in_nodes: Option<OsString>,
) -> PyResult<(PathBuf, Vec<String>)> {
    let (package, name) = (utf8("package", &package)?, utf8("program", &name)?);
    let found = py.detach(|| {
        packages(package, command.clone(), cargo_target)
            .with_built_in_nodes(command, built_in_nodes.as_deref())
            .program(package, name)
    });
    let found = found.map_err(PyLookupError::new_err)?;
    Ok((found.path, found.arguments))
}

/// Exit code or negative number of a signal, stdout and stderr.
type EndedCommand = (i32, Cow<'static, [u8]>, Cow<'static, [u8]>);

/// A command that leads a process group and runs without input.
#[pyclass(frozen, module = "pteros._native", name = "LaunchCommand")]
pub(crate) struct LaunchCommand(Mutex<RunningCommand>);

#[pymethods]
impl LaunchCommand {
    /// Starts it, with a whole environment.
    #[new]
    fn new(
        words: Vec<OsString>,
        environment: HashMap<OsString, OsString>,
        merges_stderr: bool,
        bytes_max: usize,
        timeout: f64,
    ) -> PyResult<Self> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(PyValueError::new_err("the command is empty"));
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(&environment);
        command.process_group(0);
        let timeout = Duration::try_from_secs_f64(timeout);
        let limits = CommandLimits {
            bytes_max,
            timeout: timeout.map_err(|error| PyValueError::new_err(error.to_string()))?,
        };
        let stderr = if merges_stderr {
            StandardError::Merged
        } else {
            StandardError::Separate
        };
        let running = RunningCommand::start(command, limits, stderr);
        running
            .map(|running| Self(Mutex::new(running)))
            .map_err(|failure| failed(failure, &program.to_string_lossy()))
    }

    /// The process id.
    #[getter]
    fn pid(&self) -> u32 {
        self.0.lock().id()
    }

    /// Waits for so many seconds at most. The exit code, or the negative number of a
    /// signal, stdout and stderr; `None` before the end.
    fn wait(&self, py: Python<'_>, most: f64) -> PyResult<Option<EndedCommand>> {
        let most = Duration::try_from_secs_f64(most).unwrap_or(Duration::ZERO);
        let output = py.detach(|| self.0.lock().wait(most));
        let output = output.map_err(|failure| failed(failure, "the command"))?;
        Ok(output.map(|output| {
            let signal = output.status.signal().map(|signal| -signal);
            let code = output.status.code().or(signal).unwrap_or_default();
            (code, output.stdout.into(), output.stderr.into())
        }))
    }

    /// Ends it and its group: SIGTERM, and SIGKILL after so many seconds.
    fn end(&self, py: Python<'_>, timeout: f64) {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::ZERO);
        py.detach(|| self.0.lock().end_group(timeout));
    }
}

fn failed(failure: CommandFailure, program: &str) -> PyErr {
    match failure {
        CommandFailure::System(error) => match error.raw_os_error() {
            Some(number) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                PyOSError::new_err((number, text.to_owned(), program.to_owned()))
            }
            None => PyOSError::new_err(error.to_string()),
        },
        CommandFailure::TooMuch => PyBufferError::new_err("it has written too much"),
        CommandFailure::TooLong => PyTimeoutError::new_err("it has not ended in time"),
    }
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Respawns>()?;
    module.add_class::<LaunchCommand>()?;
    module.add_function(wrap_pyfunction!(parse_template, module)?)?;
    module.add_function(wrap_pyfunction!(split_words, module)?)?;
    module.add_function(wrap_pyfunction!(typed_launch_value, module)?)?;
    module.add_function(wrap_pyfunction!(yaml_of_parameter, module)?)?;
    module.add_function(wrap_pyfunction!(node_parameter_arguments, module)?)?;
    module.add_function(wrap_pyfunction!(find_package, module)?)?;
    module.add_function(wrap_pyfunction!(find_program, module)?)
}
