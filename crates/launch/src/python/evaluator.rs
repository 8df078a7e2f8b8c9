//! Evaluation of any Python expression: the basics here, all else by `python3` in a
//! process of its own.
//!
//! The process is isolated (`-I`): it reads no `PYTHON…` variable and no module of the
//! current folder. It has limits of time, memory and output ([`limits`](super::limits)).
//! It lives as long as its evaluator, so a filter starts it once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::error::ExpressionError;
use super::evaluate::Expression;
use super::fault::Fault;
use super::limits::{PYTHON_ANSWER_BYTES_MAX, PYTHON_REQUEST_BYTES_MAX, PYTHON_TIME_MAX};
use super::names::Names;
use super::value::{Kind, Value};
use crate::command_output::{AnsweringCommand, CommandFailure, CommandLimits};

/// Answers requests; see the file.
const SCRIPT: &str = include_str!("evaluate.py");
/// The variable that names the Python to use.
const VARIABLE: &str = "PTEROS_PYTHON";

/// The Python for what the basics lack.
#[derive(Clone, Debug)]
pub struct Python {
    /// The interpreter's path, or its name for a search in `PATH`.
    pub program: PathBuf,
    /// All its environment variables; those of this process without it.
    pub environment: Option<BTreeMap<String, String>>,
    /// Time that an evaluation may take.
    pub timeout: Duration,
}

impl Python {
    /// The Python that `PTEROS_PYTHON` names, else `python3` on PATH, with the default
    /// time limit. `variable` reads the environment.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let named = variable(VARIABLE).filter(|value| !value.is_empty());
        Self {
            program: named.unwrap_or_else(|| "python3".into()).into(),
            environment: None,
            timeout: PYTHON_TIME_MAX,
        }
    }

    fn start(&self) -> std::io::Result<AnsweringCommand> {
        let mut command = Command::new(&self.program);
        command.args(["-I", "-X", "utf8", "-c", SCRIPT]);
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment);
        }
        AnsweringCommand::start(command)
    }
}

/// Evaluates an expression any number of times.
#[derive(Debug)]
pub struct Evaluator {
    pub(super) source: Arc<str>,
    /// None if the expression has more than the basics.
    basics: Result<Expression, ExpressionError>,
    python: Python,
    process: Option<AnsweringCommand>,
}

impl Evaluator {
    /// Parses an expression. Starts Python for one that has more than the basics, and
    /// then blocks for the time limit at most.
    ///
    /// # Errors
    /// Invalid grammar, with the position; an expression beyond a limit; an expression
    /// that needs Python where there is none.
    pub fn new(source: &str, python: Python) -> Result<Self, ExpressionError> {
        let mut evaluator = Self {
            source: source.into(),
            basics: Expression::parse(source),
            python,
            process: None,
        };
        match evaluator.basics.as_ref().err().cloned() {
            Some(error) if !error.needs_python => return Err(error),
            Some(error) => drop(evaluator.value_of_python(&error, &Names::new(), "check")?),
            None => {}
        }
        Ok(evaluator)
    }

    /// The value's text, as `str(…)` returns it. Blocks for the time limit at most.
    ///
    /// # Errors
    /// An operation that is not possible; a limit that is exceeded; an expression that
    /// needs Python where there is none.
    pub fn text(&mut self, names: &Names) -> Result<String, ExpressionError> {
        self.value(names, |value| value.to_string(), "text")
    }

    /// Whether the value is true, as `bool(…)` returns it. Blocks for the time limit at
    /// most.
    ///
    /// # Errors
    /// Those of [`text`](Self::text).
    pub fn truth(&mut self, names: &Names) -> Result<bool, ExpressionError> {
        let text = self.value(names, |value| value.truth().to_string(), "truth")?;
        Ok(text.eq_ignore_ascii_case("true"))
    }

    fn value(
        &mut self,
        names: &Names,
        shown: fn(Value) -> String,
        wanted: &str,
    ) -> Result<String, ExpressionError> {
        let own = match &self.basics {
            _ if names.modules.iter().any(|module| module != "math") => Err(ExpressionError::new(
                &self.source,
                Fault::needs_python("a module besides math"),
            )),
            Ok(expression) => expression.evaluate(names).map(shown),
            Err(error) => Err(error.clone()),
        };
        match own {
            Err(error) if error.needs_python => self.value_of_python(&error, names, wanted),
            own => own,
        }
    }

    /// Asks Python, because of this error.
    fn value_of_python(
        &mut self,
        cause: &ExpressionError,
        names: &Names,
        wanted: &str,
    ) -> Result<String, ExpressionError> {
        let wrong = |message: String| ExpressionError {
            message,
            needs_python: false,
            ..cause.clone()
        };
        let program = self.python.program.display().to_string();
        let process = match &mut self.process {
            Some(process) => process,
            empty => empty.insert(self.python.start().map_err(|error| {
                wrong(format!(
                    "{} needs Python, and {program} cannot be started ({error}); install Python 3, name one in {VARIABLE}, or write the expression with operators, indices and the functions that need none",
                    cause.message
                ))
            })?),
        };
        let request = request(&self.source, names, wanted)
            .map_err(|message| wrong(format!("{} needs Python, and {message}", cause.message)))?;
        let limits = CommandLimits {
            bytes_max: PYTHON_ANSWER_BYTES_MAX,
            timeout: self.python.timeout,
        };
        let answer = process.answer(&request, limits).map_err(|failure| {
            // It may still compute; the next evaluation starts another one.
            self.process = None;
            let reason = match failure {
                CommandFailure::System(error) => error.to_string(),
                CommandFailure::TooLong => {
                    format!("took longer than {:?}; shorten its loops", limits.timeout)
                }
                CommandFailure::TooMuch => {
                    let mebibytes = limits.bytes_max >> 20;
                    format!("gave more than {mebibytes} MiB; make the value shorter")
                }
            };
            wrong(format!(
                "{} needs Python, and {program} {reason}",
                cause.message
            ))
        })?;
        let answer: Json = serde_json::from_slice(&answer)
            .map_err(|error| wrong(format!("{program} gave no answer in JSON: {error}")))?;
        if let Some(value) = answer["value"].as_str() {
            return Ok(value.into());
        }
        let message = answer["error"].as_str().unwrap_or("it gave no reason");
        let character = answer["character"].as_u64().unwrap_or(1).max(1) as usize;
        Err(ExpressionError {
            character: character.min(self.source.chars().count() + 1),
            unknown_name: answer["name"].as_str().map(Arc::from),
            ..wrong(format!("Python: {message}"))
        })
    }
}

/// A request: a line of JSON.
fn request(source: &str, names: &Names, wanted: &str) -> Result<Vec<u8>, String> {
    let head = json!({ "expression": source, "modules": names.modules, "wanted": wanted });
    let mut line = head.to_string();
    // The last key follows, instead of the closing brace.
    line.pop();
    line += ",\"names\":";
    let values = names.values.iter();
    let values = values.map(|(name, value)| (&**name, value.clone()));
    write_structure(&mut line, "Names", values)?;
    line += "}\n";
    Ok(line.into_bytes())
}

/// Writes a structure, or another value that JSON lacks, as an object whose keys no
/// message chooses.
fn write_structure<'n>(
    out: &mut String,
    type_name: &str,
    fields: impl Iterator<Item = (&'n str, Value)> + Clone,
) -> Result<(), String> {
    let names: Vec<&str> = fields.clone().map(|(name, _)| name).collect();
    *out += &format!(
        "{{\"type\":{},\"fields\":{},\"values\":",
        json!(type_name),
        json!(names)
    );
    write_list(out, fields.map(|(_, value)| value))?;
    out.push('}');
    Ok(())
}

fn write_list(out: &mut String, values: impl Iterator<Item = Value>) -> Result<(), String> {
    out.push('[');
    for (index, value) in values.enumerate() {
        *out += if index == 0 { "" } else { "," };
        write_json(out, &value)?;
    }
    out.push(']');
    Ok(())
}

fn write_json(out: &mut String, value: &Value) -> Result<(), String> {
    if out.len() > PYTHON_REQUEST_BYTES_MAX {
        let mebibytes = PYTHON_REQUEST_BYTES_MAX >> 20;
        return Err(format!("its values have more than {mebibytes} MiB as JSON"));
    }
    let json = match &value.0 {
        Kind::None => Json::Null,
        Kind::Bool(value) => (*value).into(),
        Kind::Integer(value) => {
            *out += &value.to_string();
            return Ok(());
        }
        Kind::Double(value) if value.is_finite() => (*value).into(),
        Kind::Double(value) => json!({ "number": value.to_string() }),
        Kind::Text(text) => (**text).into(),
        Kind::Bytes(bytes) => json!({ "bytes": **bytes }),
        Kind::List(items) | Kind::Tuple(items) => return write_list(out, items.iter().cloned()),
        Kind::Object(object) => {
            if let Some(length) = object.length() {
                return write_list(out, (0..length).map_while(|index| object.item(index)));
            }
            let names = object.attribute_names();
            let fields = names.iter().map(|name| {
                let value = object.attribute(name);
                (name.as_str(), value.unwrap_or(Value::NONE))
            });
            return write_structure(out, &object.type_name(), fields);
        }
    };
    *out += &json.to_string();
    Ok(())
}
