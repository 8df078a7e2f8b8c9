//! Arguments: declared by `arg`, given on the command line or by an include.

use super::Builder;
use super::attributes::literal;
use crate::close_names::{did_you_mean, listed};
use crate::document::Element;
use crate::fault::{Fault, Faults};
use crate::plan::{Argument, Request};

impl Builder {
    /// `arg`: the value given, else the default, else a fault.
    pub(super) fn declare(&mut self, element: &Element) -> Result<(), Fault> {
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
        let mut argument = Argument {
            name: name.clone(),
            default: default.map(|one| match &one.value {
                crate::document::Value::Scalar(scalar) => scalar.text.clone(),
                crate::document::Value::List(_) => literal(one),
            }),
            description: element.attribute("description").map(literal),
            choices,
            value: None,
            place: element.place.clone(),
        };
        let value = self.value_of(element, &argument);
        argument.value = value.as_ref().ok().cloned();
        let is_known = self.arguments.iter().any(|known| known.name == name);
        if !is_known {
            self.arguments.push(argument);
        }
        // A fault here is enough: what asks for the argument finds an empty text.
        let text = value.as_ref().map_or("", String::as_str).to_owned();
        self.scope.configurations.insert(name, text);
        value.map(|_| ())
    }

    fn value_of(&mut self, element: &Element, argument: &Argument) -> Result<String, Fault> {
        let Argument { name, choices, .. } = argument;
        let given = self.scope.configurations.get(name).cloned();
        let value = match given {
            Some(value) => value,
            None => match self.text(element, "default")? {
                Some(value) => value,
                None => {
                    let what = argument
                        .description
                        .as_deref()
                        .map(|what| format!(" ({what})"));
                    let what = what.unwrap_or_default();
                    return Err(Fault::at(
                        &element.place,
                        format!(
                            "the argument {name:?}{what} has no value; give one: {name}:=VALUE"
                        ),
                    ));
                }
            },
        };
        if !choices.is_empty() && !choices.contains(&value) {
            let known: Vec<&str> = choices.iter().map(String::as_str).collect();
            let way_out = format!("choose one of: {}", known.join(", "));
            let similar = did_you_mean(&value, known, &way_out);
            return Err(Fault::at(
                &element.place,
                format!("the argument {name:?} is {value:?}{similar}"),
            ));
        }
        Ok(value)
    }

    /// What the command line gives and nothing asks for is a slip.
    pub(super) fn refuse_unknown_arguments(&mut self, request: &Request) {
        /// Configurations that ROS 2's launch looks at without a declaration.
        const WELL_KNOWN: [&str; 5] = [
            "launch-prefix",
            "launch-prefix-filter",
            "sigterm_timeout",
            "sigkill_timeout",
            "emulate_tty",
        ];
        for (name, value) in &request.arguments {
            let declared = self.arguments.iter().map(|one| one.name.as_str());
            let is_known = declared.clone().any(|one| one == name)
                || self.asked.contains(name)
                || WELL_KNOWN.contains(&name.as_str());
            if !is_known {
                let way_out = format!("it has: {}", listed(declared.clone()));
                let similar = did_you_mean(name, declared, &way_out);
                let file = request.file.display();
                self.faults.push(Fault::nowhere(format!(
                    "{file}: there is no argument {name:?}, given as {name}:={value}{similar}"
                )));
            }
        }
    }

    /// The arguments alone, for `--show-args`.
    ///
    /// # Errors
    /// The form of the files.
    pub fn arguments(mut self, request: &Request) -> Result<Vec<Argument>, Faults> {
        self.declares_only = true;
        let document = self.document(&request.file)?;
        // What has a wrong form, before what has no value yet.
        let form = std::mem::take(&mut self.faults);
        if !form.is_empty() {
            return Err(form);
        }
        self.file(&document, &mut Vec::new());
        Ok(self.arguments)
    }

    /// Actions within actions, where only declarations are wanted.
    pub(super) fn parts_that_declare(
        &mut self,
        element: &Element,
        steps: &mut Vec<crate::plan::Step>,
    ) -> Result<(), Fault> {
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
