//! `executable`, and what it has in common with `node`.

use std::path::PathBuf;
use std::time::Duration;

use super::Builder;
use crate::document::Element;
use crate::fault::Fault;
use crate::plan::{Destinations, NodeFacts, Output, Process, Respawn, Shutdown, Step};
use crate::substitution::Template;
use crate::substitution::evaluate::{find_program, truth};

/// How long SIGINT and SIGTERM are given, as in ROS 2.
const PATIENCE: Duration = Duration::from_secs(5);

/// What stands before `--ros-args` and what is known of the node.
pub(super) struct Start {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The process's name, but for its number.
    pub name: String,
    /// The node in it.
    pub node: Option<NodeFacts>,
    /// Files to be written before it starts.
    pub files: Vec<(PathBuf, String)>,
}

impl Builder {
    pub(super) fn executable(
        &mut self,
        element: &Element,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let words = self.words(element, "cmd")?;
        let place = Self::place_of(element, "cmd");
        let Some(program) = words.first().cloned() else {
            return Err(Fault::at(
                &place,
                "cmd is empty; write a program and its arguments",
            ));
        };
        let shell = self.truth(element, "shell")?.unwrap_or(false);
        let folder = self.text(element, "cwd")?;
        if !shell {
            let path = self.scope.environment.get("PATH");
            let path = path.map_or("", String::as_str);
            // A relative path counts from the working folder.
            let looked = match (&folder, program.contains('/')) {
                (Some(folder), true) => PathBuf::from(folder).join(&program).display().to_string(),
                _ => program.clone(),
            };
            if find_program(&looked, path).is_none() {
                return Err(Fault::at(
                    &place,
                    format!(
                        "cmd: there is no program {program:?}, or it must not be run; PATH is {path}, and shell=\"true\" lets a shell find its own commands"
                    ),
                ));
            }
        }
        let words = match shell {
            false => words,
            true => {
                let line = self.shell_line(element)?;
                vec!["/bin/sh".into(), "-c".into(), line]
            }
        };
        let name = match self.text(element, "name")? {
            Some(name) => name,
            None => base_name(&program),
        };
        let start = Start {
            words,
            name,
            node: None,
            files: Vec::new(),
        };
        let process = self.process(element, start)?;
        steps.push(Step::Start(Box::new(process)));
        Ok(())
    }

    /// The command line for a shell: quotes as written, substitutions done.
    fn shell_line(&mut self, element: &Element) -> Result<String, Fault> {
        self.required(element, "cmd")
    }

    /// A process with what `executable` and `node` both say.
    pub(super) fn process(&mut self, element: &Element, start: Start) -> Result<Process, Fault> {
        let Start {
            mut words,
            name,
            node,
            files,
        } = start;
        let mut before = self.prefix(element, &words)?;
        before.append(&mut words);
        self.processes += 1;
        let mut environment = self.scope.environment.clone();
        for variable in element.children.iter().filter(|child| child.name == "env") {
            let name = self.required(variable, "name")?;
            environment.insert(name, self.required(variable, "value")?);
        }
        // Each of these is looked at, so that all their faults are told at once; where
        // one is kept nothing starts, and what stands in its place does not matter.
        let folder = self.folder(element);
        let folder = self.faults.keep(folder).flatten();
        let output = self.output(element);
        let output = self.faults.keep(output).unwrap_or(LOG);
        let emulate_tty = self.emulates_tty(element);
        let emulate_tty = self.faults.keep(emulate_tty).unwrap_or_default();
        let respawn = self.respawn(element);
        let respawn = self.faults.keep(respawn).flatten();
        let mut patience = |name| {
            let patience = self.patience(element, name);
            self.faults.keep(patience).unwrap_or(PATIENCE)
        };
        let sigterm_timeout = patience("sigterm_timeout");
        let sigkill_timeout = patience("sigkill_timeout");
        Ok(Process {
            name: format!("{}-{}", file_name(&name), self.processes),
            words: before,
            environment,
            folder,
            output,
            emulate_tty,
            respawn,
            sigterm_timeout,
            sigkill_timeout,
            on_exit: self.on_exit(element)?,
            node,
            files,
            place: element.place.clone(),
        })
    }

    /// `cwd`, which has to be there.
    fn folder(&mut self, element: &Element) -> Result<Option<PathBuf>, Fault> {
        let folder = self.text(element, "cwd")?.map(PathBuf::from);
        match folder {
            Some(folder) if !folder.is_dir() => Err(Fault::at(
                &Self::place_of(element, "cwd"),
                format!("cwd: there is no folder {}", folder.display()),
            )),
            folder => Ok(folder),
        }
    }

    /// `launch-prefix`, the attribute or the argument of that name; an argument
    /// `launch-prefix-filter` names the programs that it is for.
    fn prefix(&mut self, element: &Element, words: &[String]) -> Result<Vec<String>, Fault> {
        if element.attribute("launch-prefix").is_some() {
            return self.words(element, "launch-prefix");
        }
        let configurations = &self.scope.configurations;
        let Some(prefix) = configurations.get("launch-prefix") else {
            return Ok(Vec::new());
        };
        let program = words
            .first()
            .map(|word| base_name(word))
            .unwrap_or_default();
        if let Some(filter) = configurations.get("launch-prefix-filter")
            && !program.contains(filter.as_str())
        {
            return Ok(Vec::new());
        }
        let wrong = |message| Fault::at(&element.place, format!("launch-prefix: {message}"));
        let plain = Template {
            parts: vec![crate::substitution::Part::Text(prefix.clone())],
        };
        let words = plain.words().map_err(wrong)?;
        let words = words.iter().filter_map(Template::as_text);
        Ok(words.map(String::from).collect())
    }

    fn output(&mut self, element: &Element) -> Result<Output, Fault> {
        let forced = self
            .initial_environment
            .get("OVERRIDE_LAUNCH_PROCESS_OUTPUT");
        if let Some(forced) = forced.filter(|text| !text.is_empty()) {
            return output(forced).map_err(|message| {
                Fault::nowhere(format!("OVERRIDE_LAUNCH_PROCESS_OUTPUT: {message}"))
            });
        }
        let output = self.parsed(element, "output", output)?;
        Ok(output.unwrap_or(LOG))
    }

    /// The attribute, else the argument of that name, else no.
    fn emulates_tty(&mut self, element: &Element) -> Result<bool, Fault> {
        if let Some(wanted) = self.truth(element, "emulate_tty")? {
            return Ok(wanted);
        }
        let argument = self.scope.configurations.get("emulate_tty");
        argument.map_or(Ok(false), |text| {
            truth(text)
                .map_err(|message| Fault::at(&element.place, format!("emulate_tty: {message}")))
        })
    }

    fn respawn(&mut self, element: &Element) -> Result<Option<Respawn>, Fault> {
        let wanted = self.truth(element, "respawn");
        let wanted = self.faults.keep(wanted).flatten().unwrap_or(false);
        let delay = self.seconds(element, "respawn_delay");
        let delay = self.faults.keep(delay).flatten().unwrap_or_default();
        let retries = self.parsed(element, "respawn_max_retries", |text| {
            let count: Option<i64> = text.trim().parse().ok();
            count.ok_or_else(|| {
                format!("{text:?} is no number of times; write an integer, or -1 for any number")
            })
        })?;
        let retries_max = retries.and_then(|count| u32::try_from(count).ok());
        Ok(wanted.then_some(Respawn { delay, retries_max }))
    }

    /// The attribute, else the argument of that name, else five seconds.
    fn patience(&mut self, element: &Element, name: &str) -> Result<Duration, Fault> {
        if let Some(time) = self.seconds(element, name)? {
            return Ok(time);
        }
        match self.scope.configurations.get(name) {
            None => Ok(PATIENCE),
            Some(text) => super::attributes::seconds(text)
                .map_err(|message| Fault::at(&element.place, format!("{name}: {message}"))),
        }
    }

    /// `on_exit="shutdown"`, or actions in an element `on_exit`.
    fn on_exit(&mut self, element: &Element) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        if let Some(word) = self.text(element, "on_exit")? {
            let place = Self::place_of(element, "on_exit");
            if word != "shutdown" {
                return Err(Fault::at(
                    &place,
                    format!(
                        "on_exit: {word:?} is not known; write on_exit=\"shutdown\", or actions in an element: <on_exit> … </on_exit>"
                    ),
                ));
            }
            steps.push(Step::Shutdown(Shutdown {
                reason: "a process whose end is the end of all has ended".into(),
                place,
            }));
        }
        let parts = element.children.iter();
        for part in parts.filter(|child| child.name == "on_exit") {
            self.actions(&part.children, &mut steps);
        }
        Ok(steps)
    }
}

/// As launch's `get_output_loggers` has it for "log".
const LOG: Output = Output {
    stdout: Destinations {
        screen: false,
        log: true,
        own_log: false,
    },
    stderr: Destinations {
        screen: true,
        log: true,
        own_log: false,
    },
};

fn output(text: &str) -> Result<Output, String> {
    let both = |screen, log, own_log| {
        let to = Destinations {
            screen,
            log,
            own_log,
        };
        Output {
            stdout: to,
            stderr: to,
        }
    };
    Ok(match text {
        "screen" => both(true, false, false),
        "log" => LOG,
        "both" => both(true, true, false),
        "own_log" => both(false, false, true),
        "full" => both(true, true, true),
        _ => {
            return Err(format!(
                "{text:?} is no place for output; write screen, log, both, own_log or full"
            ));
        }
    })
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.unwrap_or(path).to_owned()
}

/// A name that can be one of a file.
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
    match name.is_empty() {
        true => "process".into(),
        false => name,
    }
}
