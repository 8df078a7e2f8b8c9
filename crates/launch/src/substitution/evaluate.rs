//! Evaluation of substitutions, with the semantics of `launch/launch/substitutions`
//! and `launch_ros/launch_ros/substitutions`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pteros::msg::regular_file;
use pteros::parameter::ParameterValue;

use super::template::{SubstitutionCall, Template, TemplatePart};
use crate::close_names::{did_you_mean, listed};
use crate::command_output::{CommandFailure, CommandLimits, StandardError, command_output};
use crate::error::KnownCause;
use crate::packages::{Packages, is_program};
use crate::python::{Evaluator, ExpressionError, Names, Python};
use crate::scope::{GlobalParameter, Scope};

/// Every substitution: name, smallest and largest number of arguments, argument
/// names.
pub const SUBSTITUTIONS: &[(&str, usize, usize, &str)] = &[
    ("all", 1, MANY, "BOOL …"),
    ("and", 2, 2, "BOOL BOOL"),
    ("anon", 1, 1, "NAME"),
    ("any", 1, MANY, "BOOL …"),
    ("command", 1, 2, "COMMAND [fail|warn|ignore|capture]"),
    ("dirname", 0, 0, ""),
    ("env", 1, 2, "NAME [DEFAULT]"),
    ("equals", 2, 2, "TEXT TEXT"),
    ("eval", 1, 2, "EXPRESSION [MODULES]"),
    ("exec-in-pkg", 2, 2, "EXECUTABLE PACKAGE"),
    ("file-content", 1, 1, "FILE"),
    ("filename", 0, 0, ""),
    ("find-exec", 1, 1, "NAME"),
    ("find-pkg-prefix", 1, 1, "PACKAGE"),
    ("find-pkg-share", 1, 1, "PACKAGE"),
    ("for-var", 1, 2, "NAME [DEFAULT]"),
    ("if", 2, 3, "BOOL THEN [ELSE]"),
    ("index", 1, 1, "NAME"),
    ("launch_log_dir", 0, 0, ""),
    ("log_dir", 0, 0, ""),
    ("not", 1, 1, "BOOL"),
    ("not-equals", 2, 2, "TEXT TEXT"),
    ("or", 2, 2, "BOOL BOOL"),
    ("param", 1, 2, "NAME [DEFAULT]"),
    ("path-join", 1, MANY, "PART …"),
    ("string-join", 2, MANY, "DELIMITER PART …"),
    ("var", 1, 2, "NAME [DEFAULT]"),
];

const MANY: usize = usize::MAX;
/// Longest text that a substitution may return.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Most bytes that a command may write, as in Python launch files.
const COMMAND_BYTES_MAX: usize = 64 << 20;
/// The argument with the seconds that a command gets.
const COMMAND_TIMEOUT: &str = "command_timeout";
/// The time that a command gets: more than those that robots use need.
const COMMAND_TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);
/// The longest time that can be given, in seconds; eleven days.
const COMMAND_SECONDS_MAX: f64 = 1e6;

/// Everything that substitutions read besides the scope.
pub(crate) struct EvaluationContext {
    /// Package lookup.
    pub packages: Packages,
    /// The folder of this launch's log files.
    pub log_folder: PathBuf,
    /// Host name; `anon` makes names of it and the process id.
    pub host: String,
    /// Id of this process.
    pub process: u32,
    /// Notes for the user that are not errors.
    pub notes: Vec<String>,
    /// Number of names that `anon` has generated.
    pub anonymous_count: u32,
    /// Why the last evaluation failed, if the cause is known already.
    pub known_cause: Option<KnownCause>,
}

/// Evaluates a template to a text.
///
/// # Errors
/// The problem, the value and the accepted values, in one sentence.
pub(crate) fn text(
    template: &Template,
    scope: &mut Scope,
    context: &mut EvaluationContext,
) -> Result<String, String> {
    let mut whole = String::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => whole += text,
            TemplatePart::Call(call) => whole += &value(call, scope, context)?,
        }
        if whole.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "a text is longer than {} MiB; put it into a file",
                TEXT_BYTES_MAX >> 20
            ));
        }
    }
    Ok(whole)
}

/// Parses a boolean as conditions and `$(and …)` do.
///
/// # Errors
/// Any other text, with the accepted ones.
pub(crate) fn truth(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!(
            "{text:?} is not a boolean; write true, 1, yes or on; false, 0, no or off"
        )),
    }
}

fn value(
    call: &SubstitutionCall,
    scope: &mut Scope,
    around: &mut EvaluationContext,
) -> Result<String, String> {
    let SubstitutionCall { name, arguments } = call;
    let known = SUBSTITUTIONS.iter().find(|known| known.0 == name);
    let Some((_, least, most, form)) = known else {
        let names = SUBSTITUTIONS.iter().map(|known| known.0);
        let hint = format!(
            "there are: {}",
            names.clone().collect::<Vec<_>>().join(", ")
        );
        let similar = did_you_mean(name, names, &hint);
        return Err(format!("there is no substitution $({name}){similar}"));
    };
    let count = arguments.len();
    if count < *least || count > *most {
        let form = format!("{name} {form}");
        return Err(format!(
            "$({name}) has {count} arguments; write $({})",
            form.trim_end()
        ));
    }
    // `if` and defaults evaluate only the needed arguments. A missing variable in
    // the other branch is no error.
    let mut lazy = LazyArguments {
        arguments,
        scope,
        around,
    };
    lazy.value(name).map_err(|message| {
        if message.starts_with("$(") {
            message
        } else {
            format!("$({name}): {message}")
        }
    })
}

struct LazyArguments<'l> {
    arguments: &'l [Template],
    scope: &'l mut Scope,
    around: &'l mut EvaluationContext,
}

impl LazyArguments<'_> {
    fn text(&mut self, index: usize) -> Result<String, String> {
        match self.arguments.get(index) {
            Some(template) => text(template, self.scope, self.around),
            None => Ok(String::new()),
        }
    }

    fn texts(&mut self) -> Result<Vec<String>, String> {
        (0..self.arguments.len()).map(|at| self.text(at)).collect()
    }

    fn truth(&mut self, index: usize) -> Result<bool, String> {
        truth(&self.text(index)?)
    }

    fn truths(&mut self) -> Result<Vec<bool>, String> {
        (0..self.arguments.len()).map(|at| self.truth(at)).collect()
    }

    /// The error for a name without a value because of an error that is recorded.
    fn consequence(&mut self, name: &str) -> String {
        self.around.known_cause = Some(KnownCause::RecordedError);
        format!("{name:?} has no value, since its own action failed")
    }

    /// A name that is missing may be set by something that was not read.
    fn blame_missing_files(&mut self) {
        let failed = &self.scope.failed;
        if failed.any_other {
            self.around.known_cause = Some(KnownCause::RecordedError);
        } else if let Some(file) = &failed.left_out {
            self.around.known_cause = Some(KnownCause::LeftOutFile(file.clone()));
        }
    }

    /// The second argument if there is one, else the error.
    fn default_or(&mut self, error: impl FnOnce(&mut Self) -> String) -> Result<String, String> {
        match self.arguments.len() {
            2.. => self.text(1),
            _ => Err(error(self)),
        }
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        match name {
            "var" => self.variable(),
            "env" => self.environment(),
            "param" => self.parameter(),
            "for-var" | "index" => self.loop_variable(),
            "eval" => self.expression(),
            "find-pkg-share" => self.package(|package| &package.share),
            "find-pkg-prefix" => self.package(|package| &package.prefix),
            "exec-in-pkg" => {
                let (executable, package) = (self.text(0)?, self.text(1)?);
                let found = self.around.packages.program(&package, &executable)?;
                // A built-in node has several words.
                Ok(found.words().collect::<Vec<_>>().join(" "))
            }
            "find-exec" => self.program(),
            "dirname" => Ok(self.scope.folder().display().to_string()),
            "filename" => {
                let file = crate::scope::absolute(&self.scope.file);
                Ok(file.display().to_string())
            }
            "file-content" => {
                let path = self.text(0)?;
                file_content(Path::new(&path))
            }
            "command" => self.command(),
            "anon" => self.anonymous(),
            "launch_log_dir" | "log_dir" => Ok(self.around.log_folder.display().to_string()),
            "if" => {
                if self.truth(0)? {
                    self.text(1)
                } else {
                    self.text(2)
                }
            }
            "not" => Ok((!self.truth(0)?).to_string()),
            "and" | "all" => Ok(self.truths()?.into_iter().all(|one| one).to_string()),
            "or" | "any" => Ok(self.truths()?.into_iter().any(|one| one).to_string()),
            "equals" => Ok(are_equal(&self.text(0)?, &self.text(1)?).to_string()),
            "not-equals" => Ok((!are_equal(&self.text(0)?, &self.text(1)?)).to_string()),
            "string-join" => {
                let texts = self.texts()?;
                let (delimiter, parts) = texts.split_first().ok_or("the delimiter is missing")?;
                Ok(parts.join(delimiter))
            }
            "path-join" => {
                let path: PathBuf = self.texts()?.into_iter().collect();
                Ok(path.display().to_string())
            }
            // The table above lists all of them.
            _ => Err(format!("there is no substitution $({name})")),
        }
    }

    fn variable(&mut self) -> Result<String, String> {
        let name = self.text(0)?;
        if let Some(value) = self.scope.configurations.get(&name) {
            return Ok(value.clone());
        }
        if self.scope.failed.configurations.contains(&name) {
            return Err(self.consequence(&name));
        }
        self.default_or(|this| {
            this.blame_missing_files();
            let known = this.scope.configurations.keys().map(String::as_str);
            let hint = format!(
                "declare it with arg or let; known: {}",
                listed(known.clone())
            );
            let similar = did_you_mean(&name, known, &hint);
            format!("$(var {name}): there is no argument {name:?}{similar}")
        })
    }

    /// A Python expression. The second argument names modules, separated by commas.
    fn expression(&mut self) -> Result<String, String> {
        let expression = self.text(0)?;
        let modules = match self.arguments.len() {
            2.. => self.text(1)?,
            _ => "math".into(),
        };
        // Texts of launch files write booleans in lower case, too.
        let mut names = Names::new()
            .with("true", true.into())
            .with("false", false.into());
        let modules = modules.split(',').map(str::trim);
        for module in modules.filter(|module| !module.is_empty()) {
            names = names.with_module(module);
        }
        let environment = &self.scope.environment;
        let python = Python {
            environment: Some(environment.clone()),
            ..Python::of(|name| environment.get(name).cloned())
        };
        let evaluator = Evaluator::new(&expression, python);
        let value = evaluator.and_then(|mut evaluator| evaluator.text(&names));
        value.map_err(|error: ExpressionError| match &error.unknown_name {
            Some(name) => format!("{error}; an argument is $(var {name})"),
            None => error.to_string(),
        })
    }

    fn loop_variable(&mut self) -> Result<String, String> {
        let name = self.text(0)?;
        if let Some(value) = self.scope.loop_variables.get(&name) {
            return Ok(value.clone());
        }
        self.default_or(|this| {
            let known = listed(this.scope.loop_variables.keys().map(String::as_str));
            format!("there is no loop variable {name:?} here; known: {known}")
        })
    }

    fn environment(&mut self) -> Result<String, String> {
        let name = self.text(0)?;
        if let Some(value) = self.scope.environment.get(&name) {
            return Ok(value.clone());
        }
        if self.scope.failed.environment.contains(&name) {
            return Err(self.consequence(&name));
        }
        self.default_or(|this| {
            this.blame_missing_files();
            format!(
                "$(env {name}): the environment variable {name:?} is not set; set it, or give a default: $(env {name} VALUE)"
            )
        })
    }

    /// A value that `set_parameter` has set in this scope.
    fn parameter(&mut self) -> Result<String, String> {
        let name = self.text(0)?;
        let set = self.scope.parameters.iter().rev();
        let found = set.clone().find_map(|one| match one {
            GlobalParameter::Value(known, value) if *known == name => {
                // A string without its quotes.
                Some(match ParameterValue::from_yaml(value) {
                    Ok(ParameterValue::String(text)) => text,
                    _ => value.clone(),
                })
            }
            _ => None,
        });
        if let Some(value) = found {
            return Ok(value);
        }
        self.default_or(|this| {
            this.blame_missing_files();
            format!("$(param {name}): no set_parameter above has set {name:?}; set it, or give a default: $(param {name} VALUE)")
        })
    }

    fn package(
        &mut self,
        of: impl Fn(&crate::packages::Package) -> &PathBuf,
    ) -> Result<String, String> {
        let name = self.text(0)?;
        let package = self.around.packages.find(&name)?;
        Ok(of(&package).display().to_string())
    }

    /// A program on the PATH of the scope's environment.
    fn program(&mut self) -> Result<String, String> {
        let name = self.text(0)?;
        let path = self.scope.environment.get("PATH");
        let path = path.map_or("", String::as_str);
        find_program(&name, path)
            .map(|found| found.display().to_string())
            .ok_or_else(|| format!("there is no program {name:?} on PATH ({path})"))
    }

    fn anonymous(&mut self) -> Result<String, String> {
        let name = self.text(0)?;
        // ROS 2 stores the name under this key.
        let key = format!("anon{name}");
        if let Some(made) = self.scope.configurations.get(&key) {
            return Ok(made.clone());
        }
        self.around.anonymous_count += 1;
        let made = format!(
            "{name}_{}_{}_{}",
            self.around.host, self.around.process, self.around.anonymous_count
        );
        let made: String = made
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '_'
                }
            })
            .collect();
        self.scope.configurations.insert(key, made.clone());
        Ok(made)
    }

    /// Runs a command while the file is read, and waits for its end.
    fn command(&mut self) -> Result<String, String> {
        let line = self.text(0)?;
        let on_stderr = match self.arguments.len() {
            2.. => self.text(1)?,
            _ => "fail".into(),
        };
        if !["fail", "ignore", "warn", "capture"].contains(&on_stderr.as_str()) {
            return Err(format!(
                "{on_stderr:?} is none of fail, ignore, warn and capture, which say what output on standard error does"
            ));
        }
        let words = Template {
            parts: vec![TemplatePart::Text(line.clone())],
        };
        let words = words.words()?;
        let words: Vec<&str> = words.iter().filter_map(Template::as_text).collect();
        let Some((program, arguments)) = words.split_first() else {
            return Err("the command is empty; write $(command 'PROGRAM ARGUMENT …')".into());
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.scope.environment);
        let limits = CommandLimits {
            bytes_max: COMMAND_BYTES_MAX,
            timeout: self.command_timeout()?,
        };
        let stderr = match on_stderr.as_str() {
            "capture" => StandardError::Merged,
            _ => StandardError::Separate,
        };
        let output = command_output(command, limits, stderr).map_err(|failure| match failure {
            CommandFailure::System(error) => format!("cannot run {line:?}: {error}"),
            CommandFailure::TooMuch => format!(
                "{line:?} has written more than {} MiB; let it write to a file, and use the name of the file",
                COMMAND_BYTES_MAX >> 20
            ),
            CommandFailure::TooLong => format!(
                "{line:?} has not ended within {} s; the argument {COMMAND_TIMEOUT:?} gives it more",
                limits.timeout.as_secs_f64()
            ),
        })?;
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.trim();
        if !output.status.success() {
            let colon = if message.is_empty() { "" } else { ": " };
            return Err(format!(
                "{line:?} failed ({}){colon}{message}",
                output.status
            ));
        }
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        match on_stderr.as_str() {
            "fail" if !message.is_empty() => {
                return Err(format!(
                    "{line:?} wrote on standard error: {message}; if that is not a failure, write $(command '…' warn), ignore or capture"
                ));
            }
            "warn" if !message.is_empty() => {
                let remark = format!("$(command {line:?}) wrote on standard error: {message}");
                self.around.notes.push(remark);
            }
            _ => {}
        }
        Ok(out)
    }

    /// The time that a command gets.
    fn command_timeout(&self) -> Result<Duration, String> {
        let Some(text) = self.scope.configurations.get(COMMAND_TIMEOUT) else {
            return Ok(COMMAND_TIMEOUT_DEFAULT);
        };
        let seconds: Option<f64> = text.trim().parse().ok();
        let seconds = seconds.filter(|time| *time > 0.0 && *time <= COMMAND_SECONDS_MAX);
        seconds.map(Duration::from_secs_f64).ok_or_else(|| {
            format!(
                "the argument {COMMAND_TIMEOUT:?} is {text:?}; write seconds above 0, at most {COMMAND_SECONDS_MAX}"
            )
        })
    }
}

/// Finds a program on a search path. A name with a slash is a path.
pub(crate) fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    folders
        .map(|folder| Path::new(folder).join(name))
        .find(|path| !name.is_empty() && is_program(path))
}

fn file_content(path: &Path) -> Result<String, String> {
    let name = path.display();
    let cannot = |error: std::io::Error| format!("cannot read {name}: {error}");
    regular_file::read_text(path, TEXT_BYTES_MAX as u64).map_err(cannot)
}

/// Compares booleans by value, numbers with a tolerance, and other texts exactly,
/// as `equals_substitution.py` does.
fn are_equal(left: &str, right: &str) -> bool {
    let is_true = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    };
    if let (Some(left), Some(right)) = (is_true(left), is_true(right)) {
        return left == right;
    }
    if let (Ok(left), Ok(right)) = (left.trim().parse::<f64>(), right.trim().parse::<f64>()) {
        // Python's math.isclose.
        return left == right || (left - right).abs() <= 1e-9 * left.abs().max(right.abs());
    }
    left == right
}
