//! Node actions: `node`, `lifecycle_node`, and the process of `node_container`.

use pteros::names;

use super::Builder;
use super::attributes::AttributeReader;
use super::process::{ProcessStart, base_name};
use crate::document::Element;
use crate::error::LaunchFileError;
use crate::plan::{NodeKind, NodeSpec, PlanStep};

impl Builder {
    pub(super) fn node(
        &mut self,
        element: &Element,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
        let kind = if element.name == "lifecycle_node" {
            NodeKind::Lifecycle {
                autostart: self
                    .attributes
                    .truth(element, "autostart")?
                    .unwrap_or(false),
            }
        } else {
            NodeKind::Plain
        };
        let program = self.program(element)?;
        self.start_node(element, program, kind, steps)
    }

    /// Starts a process with a node: `words`, then the arguments from the element.
    pub(super) fn start_node(
        &mut self,
        element: &Element,
        mut words: Vec<String>,
        kind: NodeKind,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
        let executable = self.attributes.required(element, "exec")?;
        let package = self.attributes.text(element, "pkg")?;
        let name = self.attributes.node_name(element)?;
        let namespace = self.attributes.text(element, "namespace")?;
        let namespace = self.attributes.namespace(element, namespace.as_deref())?;
        if matches!(kind, NodeKind::Lifecycle { .. }) && name.is_none() {
            return Err(LaunchFileError::at(
                &element.location,
                "lifecycle_node needs a name",
            ));
        }
        let facts = NodeSpec {
            package,
            executable: executable.clone(),
            name,
            namespace,
            kind,
            depends_on: self.attributes.needs(element)?,
        };
        words.extend(self.attributes.words(element, "args")?);
        let mut files = Vec::new();
        words.push("--ros-args".into());
        let given = self.attributes.words(element, "ros_args")?;
        if !given.is_empty() {
            words.extend(given);
            // The given ones may end with "--".
            words.push("--ros-args".into());
        }
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        if let Some(name) = &facts.name {
            add("-r", format!("__node:={name}"));
        }
        if !facts.namespace.is_empty() {
            add("-r", format!("__ns:={}", facts.namespace));
        }
        // Without a namespace, the program may have one of its own.
        let full_name = facts.full_name().filter(|_| !facts.namespace.is_empty());
        for (flag, value) in self.parameter_words(element, full_name.as_deref(), &mut files)? {
            add(flag, value);
        }
        for (from, to) in self.attributes.remaps(element)? {
            add("-r", format!("{from}:={to}"));
        }
        let process_name = match self.attributes.text(element, "exec_name")? {
            Some(name) => name,
            None => base_name(&executable),
        };
        let start = ProcessStart {
            words,
            name: process_name,
            node: Some(facts),
            files,
        };
        let process = self.process(element, start)?;
        let full_name = process.node.as_ref().and_then(NodeSpec::full_name);
        if let (NodeKind::Container, Some(full_name)) = (kind, full_name) {
            self.containers.insert(full_name, process.name.clone());
        }
        steps.push(PlanStep::Start(Box::new(process)));
        Ok(())
    }

    /// The program of `pkg` and `exec`. Without `pkg`, a path or a program on PATH.
    pub(super) fn program(&mut self, element: &Element) -> Result<Vec<String>, LaunchFileError> {
        let executable = self.attributes.required(element, "exec")?;
        let location = element.location_of("exec");
        let Some(package) = self.attributes.text(element, "pkg")? else {
            let path = self.attributes.scope.environment.get("PATH");
            let path = path.map_or("", String::as_str);
            let found = crate::substitution::evaluate::find_program(&executable, path);
            return found.map(|path| vec![path.display().to_string()]).ok_or_else(|| {
                LaunchFileError::at(
                    location,
                    format!("exec: there is no program {executable:?} on PATH; name its package: pkg=\"…\", or write its path"),
                )
            });
        };
        let package_is_known = self.attributes.context.packages.find(&package).is_ok();
        let location = if package_is_known {
            location
        } else {
            element.location_of("pkg")
        };
        let found = self
            .attributes
            .context
            .packages
            .program(&package, &executable);
        found
            .map(|program| program.words().collect())
            .map_err(|message| LaunchFileError::at(location, message))
    }
}

impl AttributeReader {
    /// `depends_on`: managed nodes, separated by blanks or commas. A name without a
    /// slash is in the same namespace.
    fn needs(&mut self, element: &Element) -> Result<Vec<String>, LaunchFileError> {
        let words = self.text(element, "depends_on")?.unwrap_or_default();
        let words = words.split([',', ' ']).filter(|word| !word.is_empty());
        let full = words.map(|word| {
            if word.starts_with('/') {
                word.to_owned()
            } else {
                format!("{}/{word}", self.scope.namespace.trim_end_matches('/'))
            }
        });
        Ok(full.collect())
    }

    /// The remaps of the scope, then the element's own.
    pub(super) fn remaps(
        &mut self,
        element: &Element,
    ) -> Result<Vec<(String, String)>, LaunchFileError> {
        let mut remaps = self.scope.remaps.clone();
        for part in element
            .children
            .iter()
            .filter(|child| child.name == "remap")
        {
            remaps.push(self.remap(part)?);
        }
        Ok(remaps)
    }

    /// The validated node name. The old attribute `node-name` is accepted.
    pub(super) fn node_name(
        &mut self,
        element: &Element,
    ) -> Result<Option<String>, LaunchFileError> {
        for attribute in ["name", "node-name"] {
            let Some(name) = self.text(element, attribute)? else {
                continue;
            };
            return match names::validate_node(&name) {
                Ok(()) => Ok(Some(name)),
                Err(error) => Err(LaunchFileError::at(
                    element.location_of(attribute),
                    format!("{attribute}: {error}"),
                )),
            };
        }
        Ok(None)
    }
}
