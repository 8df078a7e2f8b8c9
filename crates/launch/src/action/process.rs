//! Process actions: `executable`, and the attributes that it shares with `node`.

use std::path::PathBuf;
use std::time::Duration;

use pteros_pattern::{Extent, Pattern};

use super::Builder;
use super::attributes::AttributeReader;
use crate::document::Element;
use crate::error::LaunchFileError;
use crate::plan::{
    NodeSpec, OutputDestinations, PlanStep, ProcessOutput, ProcessSpec, RespawnPolicy, Shutdown,
};
use crate::substitution::Template;
use crate::substitution::evaluate::{find_program, truth};

/// Default of the SIGINT and SIGTERM timeouts, as in ROS 2.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Command, name, node and files of a process to start.
pub(super) struct ProcessStart {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The process's name without its number.
    pub name: String,
    /// The ROS node that the process runs; `None` for a plain command.
    pub node: Option<NodeSpec>,
    /// Files to write before it starts.
    pub files: Vec<(PathBuf, String)>,
}

impl Builder {
    pub(super) fn executable(
        &mut self,
        element: &Element,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
        let mut words = self.attributes.words(element, "cmd")?;
        let packages = &self.attributes.context.packages;
        let first = words.first().map(String::as_str);
        if let Some(built_in) = first.and_then(|first| packages.built_in_words(first)) {
            words.splice(..1, built_in);
        }
        let location = element.location_of("cmd");
        let Some(program) = words.first().cloned() else {
            return Err(LaunchFileError::at(
                location,
                "cmd is empty; write a program and its arguments",
            ));
        };
        let shell = self.attributes.truth(element, "shell")?.unwrap_or(false);
        let folder = self.attributes.text(element, "cwd")?;
        let stand_in = self.stand_in_for_ros2();
        if let (false, "ros2", Some(command)) = (shell, program.as_str(), &stand_in) {
            words[0] = command.display().to_string();
        } else if !shell {
            let path = self.attributes.scope.environment.get("PATH");
            let path = path.map_or("", String::as_str);
            // A relative path is relative to the working folder.
            let looked = match (&folder, program.contains('/')) {
                (Some(folder), true) => PathBuf::from(folder).join(&program).display().to_string(),
                _ => program.clone(),
            };
            if find_program(&looked, path).is_none() {
                return Err(LaunchFileError::at(
                    location,
                    format!(
                        "cmd: there is no program {program:?}, or it is not executable; PATH is {path}, and shell=\"true\" lets a shell find its own commands"
                    ),
                ));
            }
        }
        let words = if shell {
            // As in ROS 2: the shell gets the words without the quotes that joined them.
            let mut line = words.join(" ");
            if let Some(command) = stand_in.filter(|_| line.contains("ros2 ")) {
                let command = command.display().to_string().replace('\'', "'\\''");
                line = format!("ros2() {{ '{command}' \"$@\"; }}; {line}");
            }
            vec!["/bin/sh".into(), "-c".into(), line]
        } else {
            words
        };
        let name = match self.attributes.text(element, "name")? {
            Some(name) => name,
            None => base_name(&program),
        };
        let start = ProcessStart {
            words,
            name,
            node: None,
            files: Vec::new(),
        };
        let process = self.process(element, start)?;
        steps.push(PlanStep::Start(Box::new(process)));
        Ok(())
    }

    /// The command to run in place of `ros2`, if PATH has none.
    fn stand_in_for_ros2(&self) -> Option<PathBuf> {
        let path = self.attributes.scope.environment.get("PATH");
        let is_installed = find_program("ros2", path.map_or("", String::as_str)).is_some();
        self.ros2_command.clone().filter(|_| !is_installed)
    }

    /// A process with the attributes that `executable` and `node` share.
    pub(super) fn process(
        &mut self,
        element: &Element,
        start: ProcessStart,
    ) -> Result<ProcessSpec, LaunchFileError> {
        let ProcessStart {
            mut words,
            name,
            node,
            files,
        } = start;
        let mut before = self.prefix(element, &words)?;
        before.append(&mut words);
        self.processes += 1;
        let mut environment = self.attributes.scope.environment.clone();
        for variable in element.children.iter().filter(|child| child.name == "env") {
            let name = self.attributes.required(variable, "name")?;
            environment.insert(name, self.attributes.required(variable, "value")?);
        }
        // All attributes are evaluated, so that all their errors are reported at
        // once. After an error nothing starts, and the replacement values do not
        // matter.
        let folder = self.attributes.folder(element);
        let folder = self.errors.ok_or_record(folder).flatten();
        let output = self.output(element);
        let output = self.errors.ok_or_record(output).unwrap_or(LOG_OUTPUT);
        let emulate_tty = self.attributes.emulates_tty(element);
        let emulate_tty = self.errors.ok_or_record(emulate_tty).unwrap_or_default();
        let respawn = self.respawn(element);
        let respawn = self.errors.ok_or_record(respawn).flatten();
        let mut timeout = |name| {
            let timeout = self.attributes.signal_timeout(element, name);
            self.errors.ok_or_record(timeout).unwrap_or(SIGNAL_TIMEOUT)
        };
        let sigterm_timeout = timeout("sigterm_timeout");
        let sigkill_timeout = timeout("sigkill_timeout");
        Ok(ProcessSpec {
            name: format!("{}-{}", file_name(&name), self.processes),
            command: before,
            environment,
            working_folder: folder,
            output,
            emulate_tty,
            respawn,
            sigterm_timeout,
            sigkill_timeout,
            on_exit: self.on_exit(element)?,
            node,
            files,
            location: element.location.clone(),
        })
    }

    /// `launch-prefix`: the attribute or the argument of that name. The argument
    /// `launch-prefix-filter` selects the programs that it applies to. The words of a
    /// substitution are words of the prefix.
    fn prefix(
        &mut self,
        element: &Element,
        words: &[String],
    ) -> Result<Vec<String>, LaunchFileError> {
        let location = element.location_of("launch-prefix");
        let wrong =
            |message: String| LaunchFileError::at(location, format!("launch-prefix: {message}"));
        let own = self.attributes.text(element, "launch-prefix")?;
        let configurations = &self.attributes.scope.configurations;
        let Some(prefix) = own.as_ref().or(configurations.get("launch-prefix")) else {
            return Ok(Vec::new());
        };
        if own.is_none()
            && let Some(filter) = configurations.get("launch-prefix-filter")
        {
            let program = words.first().map(|word| base_name(word));
            if !matches_start(filter, &program.unwrap_or_default()).map_err(wrong)? {
                return Ok(Vec::new());
            }
        }
        let plain = Template {
            parts: vec![crate::substitution::TemplatePart::Text(prefix.clone())],
        };
        let words = plain.words().map_err(wrong)?;
        let words = words.iter().filter_map(Template::as_text);
        Ok(words.map(String::from).collect())
    }

    fn respawn(&mut self, element: &Element) -> Result<Option<RespawnPolicy>, LaunchFileError> {
        let wanted = self.attributes.truth(element, "respawn");
        let wanted = self.errors.ok_or_record(wanted).flatten().unwrap_or(false);
        let delay = self.attributes.seconds(element, "respawn_delay");
        let delay = self
            .errors
            .ok_or_record(delay)
            .flatten()
            .unwrap_or_default();
        let retries = self
            .attributes
            .parsed(element, "respawn_max_retries", |text| {
                let count: Option<i64> = text.trim().parse().ok();
                count.ok_or_else(|| {
                    format!("{text:?} is not a count; write an integer, or -1 for any number")
                })
            })?;
        let retries_max = retries.and_then(|count| u32::try_from(count).ok());
        Ok(wanted.then_some(RespawnPolicy { delay, retries_max }))
    }

    /// `on_exit="shutdown"`, or actions in an element `on_exit`.
    fn on_exit(&mut self, element: &Element) -> Result<Vec<PlanStep>, LaunchFileError> {
        let mut steps = Vec::new();
        if let Some(word) = self.attributes.text(element, "on_exit")? {
            let location = element.location_of("on_exit").clone();
            if word != "shutdown" {
                return Err(LaunchFileError::at(
                    &location,
                    format!(
                        "on_exit: {word:?} is not known; write on_exit=\"shutdown\", or actions in an element: <on_exit> … </on_exit>"
                    ),
                ));
            }
            steps.push(PlanStep::Shutdown(Shutdown {
                reason: "a process with on_exit=\"shutdown\" has ended".into(),
                location,
            }));
        }
        let parts = element.children.iter();
        for part in parts.filter(|child| child.name == "on_exit") {
            self.actions(&part.children, &mut steps);
        }
        Ok(steps)
    }

    fn output(&mut self, element: &Element) -> Result<ProcessOutput, LaunchFileError> {
        let forced = self
            .initial_environment
            .get("OVERRIDE_LAUNCH_PROCESS_OUTPUT");
        if let Some(forced) = forced.filter(|text| !text.is_empty()) {
            return output(forced).map_err(|message| {
                LaunchFileError::without_location(format!(
                    "OVERRIDE_LAUNCH_PROCESS_OUTPUT: {message}"
                ))
            });
        }
        let output = self.attributes.parsed(element, "output", output)?;
        Ok(output.unwrap_or(LOG_OUTPUT))
    }
}

impl AttributeReader {
    /// `cwd`, an existing folder.
    fn folder(&mut self, element: &Element) -> Result<Option<PathBuf>, LaunchFileError> {
        let folder = self.text(element, "cwd")?.map(PathBuf::from);
        match folder {
            Some(folder) if !folder.is_dir() => Err(LaunchFileError::at(
                element.location_of("cwd"),
                format!("cwd: there is no folder {}", folder.display()),
            )),
            folder => Ok(folder),
        }
    }

    /// The argument of that name, else the attribute, else false.
    fn emulates_tty(&mut self, element: &Element) -> Result<bool, LaunchFileError> {
        let wanted = self.truth(element, "emulate_tty")?;
        let argument = self.scope.configurations.get("emulate_tty");
        argument.map_or(Ok(wanted.unwrap_or(false)), |text| {
            truth(text).map_err(|message| {
                LaunchFileError::at(&element.location, format!("emulate_tty: {message}"))
            })
        })
    }

    /// The attribute, else the argument of that name, else five seconds.
    fn signal_timeout(
        &mut self,
        element: &Element,
        name: &str,
    ) -> Result<Duration, LaunchFileError> {
        if let Some(time) = self.seconds(element, name)? {
            return Ok(time);
        }
        match self.scope.configurations.get(name) {
            None => Ok(SIGNAL_TIMEOUT),
            Some(text) => super::attributes::seconds(text).map_err(|message| {
                LaunchFileError::at(&element.location, format!("{name}: {message}"))
            }),
        }
    }
}

/// Output destinations of "log", as in launch's `get_output_loggers`.
const LOG_OUTPUT: ProcessOutput = ProcessOutput {
    stdout: OutputDestinations {
        screen: false,
        log: true,
        own_files: false,
    },
    stderr: OutputDestinations {
        screen: true,
        log: true,
        own_files: false,
    },
};

fn output(text: &str) -> Result<ProcessOutput, String> {
    let both = |screen, log, own_log| {
        let to = OutputDestinations {
            screen,
            log,
            own_files: own_log,
        };
        ProcessOutput {
            stdout: to,
            stderr: to,
        }
    };
    Ok(match text {
        "screen" => both(true, false, false),
        "log" => LOG_OUTPUT,
        "both" => both(true, true, false),
        "own_log" => both(false, false, true),
        "full" => both(true, true, true),
        _ => {
            return Err(format!(
                "{text:?} is not an output destination; write screen, log, both, own_log or full"
            ));
        }
    })
}

/// Whether a regular expression matches the start of a name, as Python's `re.match`.
fn matches_start(filter: &str, name: &str) -> Result<bool, String> {
    let pattern = Pattern::new(filter, Extent::Start).map_err(|reason| {
        format!(
            "launch-prefix-filter {filter:?} cannot be used: {reason}; write a regular expression without look-around and back-references"
        )
    })?;
    Ok(pattern.is_match(name))
}

/// The last component of a path.
pub(super) fn base_name(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.unwrap_or(path).to_owned()
}

/// The name as a valid file name.
fn file_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|letter| {
            if letter == '/' || letter.is_control() {
                '_'
            } else {
                letter
            }
        })
        .collect();
    if name.is_empty() {
        "process".into()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first five as Python's `re.match` has it.
    #[test]
    fn a_filter_is_a_regular_expression_for_the_start_of_a_name() {
        for (filter, name, matches) in [
            ("rviz", "rviz2", true),
            ("viz", "rviz2", false),
            ("talk|r.iz", "rviz2", true),
            ("(?i)RVIZ", "rviz2", true),
            ("(?i)ä", "Ä", true),
        ] {
            assert_eq!(matches_start(filter, name), Ok(matches), "{filter}");
        }
        for (filter, reason) in [
            ("(?!rviz)", "look-ahead and look-behind, is not supported"),
            (r"(a)\1", "backreferences are not supported"),
            ("(", "unclosed group"),
            ("(a{1000}){1000}", "more than 1048576 bytes"),
        ] {
            let error = matches_start(filter, "rviz2").unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains("without look-around"), "{error}");
        }
    }
}
