//! Actions that change the scope, branch, repeat, wait or speak.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pteros::msg::yaml::{Content, Node};
use pteros::names;

use super::{Builder, INCLUDES_MAX, canonical};
use crate::document::Element;
use crate::fault::{Fault, Faults};
use crate::plan::{Level, Log, Shutdown, Step, Timer, TimerClock};
use crate::scope::GlobalParameter;

/// How often a loop may go round.
const ROUNDS_MAX: usize = 10_000;

impl Builder {
    pub(super) fn set(&mut self, element: &Element) -> Result<(), Fault> {
        let name = self.required(element, "name")?;
        let value = self.required(element, "value")?;
        self.scope.configurations.insert(name, value);
        Ok(())
    }

    /// `group`: what it sets ends with it, unless `scoped` is false; with
    /// `forwarding` false it begins with what `keep` says alone.
    pub(super) fn group(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let scoped = self.truth(element, "scoped")?.unwrap_or(true);
        let forwarding = self.truth(element, "forwarding")?.unwrap_or(true);
        let kept = self.kept(element)?;
        let outer = scoped.then(|| self.scope.clone());
        match scoped && !forwarding {
            true => self.scope.reset(kept),
            false => self.scope.configurations.extend(kept),
        }
        let actions = element.children.iter().filter(|child| child.name != "keep");
        for action in actions {
            self.actions(std::slice::from_ref(action), steps);
        }
        if let Some(outer) = outer {
            // A name that anon has made stays, in and out of the group.
            let made = std::mem::replace(&mut self.scope, outer).configurations;
            let made = made
                .into_iter()
                .filter(|(name, _)| name.starts_with("anon"));
            for (name, value) in made {
                self.scope.configurations.entry(name).or_insert(value);
            }
        }
        Ok(())
    }

    fn kept(&mut self, element: &Element) -> Result<BTreeMap<String, String>, Fault> {
        let mut kept = BTreeMap::new();
        for keep in element.children.iter().filter(|child| child.name == "keep") {
            let name = self.required(keep, "name")?;
            kept.insert(name, self.required(keep, "value")?);
        }
        Ok(kept)
    }

    pub(super) fn reset(&mut self, element: &Element) -> Result<(), Fault> {
        let kept = self.kept(element)?;
        self.scope.reset(kept);
        Ok(())
    }

    /// `include`: as in ROS 2 its arguments stay set after it.
    pub(super) fn include(
        &mut self,
        element: &Element,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let path = match self.required(element, "file") {
            Ok(path) => self.scope.folder().join(path),
            // Without values the path may not be known.
            Err(_) if self.declares_only => return Ok(()),
            Err(fault) => return Err(fault),
        };
        for child in &element.children {
            let name = self.required(child, "name")?;
            let value = self.required(child, "value")?;
            self.scope.configurations.insert(name, value);
        }
        let place = element
            .attribute("file")
            .map_or(&element.place, |file| &file.place);
        self.refuse_recursion(&path)
            .map_err(|message| Fault::at(place, message))?;
        let document = match self.document(&path) {
            Ok(document) => document,
            Err(_) if self.declares_only => return Ok(()),
            Err(faults) => return self.refuse_include(place, &faults),
        };
        self.file(&document, steps);
        Ok(())
    }

    /// What is wrong with an included file; what has no place gets the include's.
    fn refuse_include(
        &mut self,
        place: &crate::fault::Place,
        faults: &Faults,
    ) -> Result<(), Fault> {
        for fault in faults.iter() {
            let place = fault.place.as_ref().unwrap_or(place);
            self.faults.push(Fault::at(place, &fault.message));
        }
        Ok(())
    }

    fn refuse_recursion(&self, path: &Path) -> Result<(), String> {
        let path = canonical(path);
        if self.open.contains(&path) {
            let chain = self.open.iter().chain([&path]);
            let chain: Vec<String> = chain.map(|file| file.display().to_string()).collect();
            return Err(format!(
                "the file includes itself: {}",
                chain.join(" includes ")
            ));
        }
        match self.open.len() >= INCLUDES_MAX {
            true => Err(format!(
                "files include each other more than {INCLUDES_MAX} deep"
            )),
            false => Ok(()),
        }
    }

    /// `for`: once for each number from 0 to `len`, which is not among them.
    pub(super) fn count(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let count = self.parsed(element, "len", |text| {
            let count = text.trim().parse::<usize>().ok();
            count.filter(|count| *count <= ROUNDS_MAX).ok_or_else(|| {
                format!("{text:?} is no number of rounds; write an integer from 0 to {ROUNDS_MAX}")
            })
        })?;
        let name = self.required(element, "name")?;
        let outer = self.scope.loop_variables.clone();
        for index in 0..count.unwrap_or(0) {
            let variables = &mut self.scope.loop_variables;
            variables.insert(name.clone(), index.to_string());
            self.actions(&element.children, steps);
        }
        self.scope.loop_variables = outer;
        Ok(())
    }

    /// `for_each`: once for each of the mappings between semicolons.
    pub(super) fn for_each(
        &mut self,
        element: &Element,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let rounds = self.parsed(element, "values", |text| {
            let rounds = text.split(';').map(str::trim).filter(|one| !one.is_empty());
            rounds.map(mapping).collect::<Result<Vec<_>, _>>()
        })?;
        let outer = self.scope.loop_variables.clone();
        for round in rounds.unwrap_or_default() {
            self.scope.loop_variables = outer.clone();
            self.scope.loop_variables.extend(round);
            self.actions(&element.children, steps);
        }
        self.scope.loop_variables = outer;
        Ok(())
    }

    pub(super) fn environment(&mut self, element: &Element) -> Result<(), Fault> {
        if element.name == "reset_env" {
            self.scope.environment = self.initial_environment.clone();
            return Ok(());
        }
        let name = self.required(element, "name")?;
        if name.is_empty() || name.contains(['=', '\0']) {
            let place = element
                .attribute("name")
                .map_or(&element.place, |one| &one.place);
            return Err(Fault::at(
                place,
                format!(
                    "{name:?} is no name of an environment variable; it has no = and is not empty"
                ),
            ));
        }
        if element.name == "unset_env" {
            self.scope.environment.remove(&name);
            return Ok(());
        }
        let mut value = self.required(element, "value")?;
        if element.name == "append_env" {
            let prepend = self.truth(element, "prepend")?.unwrap_or(false);
            let separator = self.text(element, "separator")?;
            let separator = separator.unwrap_or_else(|| ":".into());
            if let Some(old) = self.scope.environment.get(&name) {
                value = match prepend {
                    true => format!("{value}{separator}{old}"),
                    false => format!("{old}{separator}{value}"),
                };
            }
        }
        self.scope.environment.insert(name, value);
        Ok(())
    }

    /// `set_ros_log_dir`: a relative folder lies in the one before.
    pub(super) fn log_folder(&mut self, element: &Element) -> Result<(), Fault> {
        let folder = PathBuf::from(self.required(element, "new_log_dir")?);
        let environment = &mut self.scope.environment;
        let before = crate::run::log_folder::ros_log_folder(environment);
        let folder = before.join(folder).display().to_string();
        environment.insert("ROS_LOG_DIR".into(), folder);
        Ok(())
    }

    pub(super) fn push_namespace(&mut self, element: &Element) -> Result<(), Fault> {
        let namespace = self.required(element, "namespace")?;
        self.scope.namespace = self.namespace(element, Some(&namespace))?;
        Ok(())
    }

    /// A namespace below the one pushed, checked.
    pub(super) fn namespace(
        &self,
        element: &Element,
        namespace: Option<&str>,
    ) -> Result<String, Fault> {
        let whole = self.scope.namespaced(namespace);
        if !whole.is_empty() {
            names::validate_namespace(&whole).map_err(|error| {
                let attribute = element.attribute("namespace");
                let place = attribute.map_or(&element.place, |one| &one.place);
                Fault::at(place, format!("namespace: {error}"))
            })?;
        }
        Ok(whole)
    }

    pub(super) fn set_remap(&mut self, element: &Element) -> Result<(), Fault> {
        let remap = self.remap(element)?;
        self.scope.remaps.push(remap);
        Ok(())
    }

    pub(super) fn timer(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let period = self.seconds(element, "period")?.unwrap_or_default();
        let cancel_on_shutdown = self.truth(element, "cancel_on_shutdown")?;
        let mut later = Vec::new();
        self.actions(&element.children, &mut later);
        let simulated = self
            .scope
            .parameters
            .iter()
            .rev()
            .find_map(|one| match one {
                GlobalParameter::Value(name, value) if name == "use_sim_time" => {
                    Some(value == "true")
                }
                _ => None,
            });
        let clock = match element.name == "ros_timer" {
            true => TimerClock::Ros {
                simulated: simulated.unwrap_or(false),
            },
            false => TimerClock::Steady,
        };
        steps.push(Step::Timer(Timer {
            period,
            clock,
            steps: later,
            cancel_on_shutdown: cancel_on_shutdown.unwrap_or(true),
            place: element.place.clone(),
        }));
        Ok(())
    }

    pub(super) fn shutdown(
        &mut self,
        element: &Element,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let reason = self.text(element, "reason")?;
        steps.push(Step::Shutdown(Shutdown {
            reason: reason.unwrap_or_else(|| "the launch file says so".into()),
            place: element.place.clone(),
        }));
        Ok(())
    }

    pub(super) fn log(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let level = match element.name.as_str() {
            "log_debug" => Level::Debug,
            "log_warning" => Level::Warning,
            "log_error" => Level::Error,
            _ => self.parsed(element, "level", level)?.unwrap_or(Level::Info),
        };
        steps.push(Step::Log(Log {
            level,
            text: self.required(element, "message")?,
            place: element.place.clone(),
        }));
        Ok(())
    }

    /// `from` and `to`, checked as `--ros-args -r` would.
    pub(super) fn remap(&mut self, element: &Element) -> Result<(String, String), Fault> {
        let from = self.required(element, "from")?;
        let to = self.required(element, "to")?;
        let rule = format!("{from}:={to}");
        match pteros::args::RemapRule::parse("remap", &rule) {
            Ok(_) => Ok((from, to)),
            Err(error) => {
                let attribute = element.attribute("from");
                let place = attribute.map_or(&element.place, |one| &one.place);
                let error = error.to_string();
                let error = error.trim_start_matches("--ros-args: ");
                Err(Fault::at(place, error))
            }
        }
    }

    /// The place of an attribute, else of its element.
    pub(super) fn place_of(element: &Element, name: &str) -> crate::fault::Place {
        let attribute = element.attribute(name);
        attribute.map_or(&element.place, |one| &one.place).clone()
    }
}

fn level(text: &str) -> Result<Level, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok(Level::Debug),
        "info" => Ok(Level::Info),
        "warning" | "warn" => Ok(Level::Warning),
        "error" => Ok(Level::Error),
        _ => Err(format!(
            "{text:?} is no level; write debug, info, warning or error"
        )),
    }
}

/// `{name: 'a', id: 1}`.
fn mapping(text: &str) -> Result<BTreeMap<String, String>, String> {
    let wrong =
        |found: String| format!("{found} is no round of a loop; write {{name: value, …}};{{…}}");
    let node = Node::read(text).map_err(|error| wrong(format!("{text:?} ({error})")))?;
    let Content::Mapping(entries) = node.content else {
        return Err(wrong(format!("{text:?}")));
    };
    let mut variables = BTreeMap::new();
    for entry in entries {
        let Content::Scalar { text, .. } = entry.value.content else {
            return Err(wrong(format!(
                "{}: {}",
                entry.key,
                entry.value.found_text()
            )));
        };
        variables.insert(entry.key, text);
    }
    Ok(variables)
}
