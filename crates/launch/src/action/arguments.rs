//! Launch arguments: declared by `arg`, set by the command line or an include.

use super::Builder;
use super::attributes::literal;
use crate::close_names::{did_you_mean, listed};
use crate::document::Element;
use crate::error::{KnownCause, LaunchFileError, LaunchFileErrors};
use crate::plan::{LaunchArgument, LaunchRequest};

impl Builder {
    /// `arg`: takes the given value, else the default, else reports an error.
    pub(super) fn declare(&mut self, element: &Element) -> Result<(), LaunchFileError> {
        let Some(name) = element.attribute("name").map(literal) else {
            return Ok(());
        };
        let choices: Vec<String> = element
            .children
            .iter()
            .filter(|child| child.name == "choice")
            .filter_map(|child| child.attribute("value").map(literal))
            .collect();
        let default = element.attribute("default");
        let mut argument = LaunchArgument {
            name: name.clone(),
            default: default.map(|one| match &one.value {
                crate::document::Value::Scalar(scalar) => scalar.text.clone(),
                crate::document::Value::List(_) => literal(one),
            }),
            description: element.attribute("description").map(literal),
            choices,
            value: None,
            location: element.location.clone(),
        };
        let value = self.value_of(element, &argument);
        argument.value = value.as_ref().ok().cloned();
        if self.argument_names.insert(name.clone()) {
            self.arguments.push(argument);
        }
        self.attributes.scope.set(name, value?);
        Ok(())
    }

    fn value_of(
        &mut self,
        element: &Element,
        argument: &LaunchArgument,
    ) -> Result<String, LaunchFileError> {
        let LaunchArgument { name, choices, .. } = argument;
        if self.attributes.scope.failed.configurations.contains(name) {
            let error = format!("the argument {name:?} has no value, since its own action failed");
            let mut error = LaunchFileError::at(&element.location, error);
            error.cause = Some(KnownCause::RecordedError);
            return Err(error);
        }
        let given = self.attributes.scope.configurations.get(name).cloned();
        let value = match given {
            Some(value) => value,
            None => match self.attributes.text(element, "default")? {
                Some(value) => value,
                None => {
                    let what = argument
                        .description
                        .as_deref()
                        .map(|what| format!(" ({what})"));
                    let what = what.unwrap_or_default();
                    return Err(LaunchFileError::at(
                        &element.location,
                        format!(
                            "the argument {name:?}{what} has no value; give one: {name}:=VALUE"
                        ),
                    ));
                }
            },
        };
        if !choices.is_empty() && !choices.contains(&value) {
            let known: Vec<&str> = choices.iter().map(String::as_str).collect();
            let hint = format!("choose one of: {}", known.join(", "));
            let similar = did_you_mean(&value, known, &hint);
            return Err(LaunchFileError::at(
                &element.location,
                format!("the argument {name:?} is {value:?}{similar}"),
            ));
        }
        Ok(value)
    }

    /// Reports command line arguments that no file declares or uses.
    pub(super) fn refuse_unknown_arguments(&mut self, request: &LaunchRequest) {
        /// Configurations that ROS 2's launch reads without a declaration.
        const WELL_KNOWN: [&str; 5] = [
            "launch-prefix",
            "launch-prefix-filter",
            "sigterm_timeout",
            "sigkill_timeout",
            "emulate_tty",
        ];
        for (name, value) in &request.arguments {
            let declared = self.arguments.iter().map(|one| one.name.as_str());
            let is_known = self.argument_names.contains(name)
                || self.attributes.requested_arguments.contains(name)
                || WELL_KNOWN.contains(&name.as_str());
            if !is_known {
                let hint = format!("it has: {}", listed(declared.clone()));
                let similar = did_you_mean(name, declared, &hint);
                let file = request.file.display();
                self.errors.push(LaunchFileError::without_location(format!(
                    "{file}: there is no argument {name:?}, given as {name}:={value}{similar}"
                )));
            }
        }
    }

    /// The declared arguments, for `--show-args`.
    ///
    /// # Errors
    /// Syntax errors of the files.
    pub fn arguments(
        mut self,
        request: &LaunchRequest,
    ) -> Result<Vec<LaunchArgument>, LaunchFileErrors> {
        self.declares_only = true;
        let document = self.document(&request.file)?;
        // Syntax errors are reported before missing values.
        let form = std::mem::take(&mut self.errors);
        if !form.is_empty() {
            return Err(form);
        }
        self.file(&document, &mut Vec::new());
        Ok(self.arguments)
    }

    /// Visits nested actions when only declarations are collected.
    pub(super) fn declarations_within(
        &mut self,
        element: &Element,
        steps: &mut Vec<crate::plan::PlanStep>,
    ) -> Result<(), LaunchFileError> {
        for child in &element.children {
            if child.name == "on_exit" {
                self.actions(&child.children, steps);
            }
        }
        if matches!(element.name.as_str(), "timer" | "ros_timer") {
            self.actions(&element.children, steps);
        }
        Ok(())
    }
}
