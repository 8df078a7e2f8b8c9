//! `node`, `lifecycle_node`, and the program of `node_container`.

use std::path::PathBuf;

use pteros::names;

use super::Builder;
use super::process::{Start, base_name};
use crate::document::Element;
use crate::fault::Fault;
use crate::plan::{NodeFacts, NodeKind, Step};

impl Builder {
    pub(super) fn node(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let kind = match element.name == "lifecycle_node" {
            true => NodeKind::Lifecycle {
                autostart: self.truth(element, "autostart")?.unwrap_or(false),
            },
            false => NodeKind::Plain,
        };
        let program = self.program(element)?;
        self.start_node(element, vec![program], kind, steps)
    }

    /// A process with a node: `words`, then what the element says of it.
    pub(super) fn start_node(
        &mut self,
        element: &Element,
        mut words: Vec<String>,
        kind: NodeKind,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let executable = self.required(element, "exec")?;
        let package = self.text(element, "pkg")?;
        let name = self.node_name(element)?;
        let namespace = self.text(element, "namespace")?;
        let namespace = self.namespace(element, namespace.as_deref())?;
        if matches!(kind, NodeKind::Lifecycle { .. }) && name.is_none() {
            return Err(Fault::at(&element.place, "lifecycle_node needs a name"));
        }
        let facts = NodeFacts {
            package,
            executable: executable.clone(),
            name,
            namespace,
            kind,
            needs: self.needs(element)?,
        };
        words.extend(self.words(element, "args")?);
        let mut files = Vec::new();
        words.push("--ros-args".into());
        words.extend(self.words(element, "ros_args")?);
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        if let Some(name) = &facts.name {
            add("-r", format!("__node:={name}"));
        }
        if !facts.namespace.is_empty() {
            add("-r", format!("__ns:={}", facts.namespace));
        }
        let full_name = facts.full_name();
        for (flag, value) in self.parameter_words(element, full_name.as_deref(), &mut files)? {
            add(flag, value);
        }
        for (from, to) in self.remaps(element)? {
            add("-r", format!("{from}:={to}"));
        }
        let process_name = match self.text(element, "exec_name")? {
            Some(name) => name,
            None => base_name(&executable),
        };
        let start = Start {
            words,
            name: process_name,
            node: Some(facts),
            files,
        };
        let process = self.process(element, start)?;
        let full_name = process.node.as_ref().and_then(NodeFacts::full_name);
        if let (NodeKind::Container, Some(full_name)) = (kind, full_name) {
            self.containers.insert(full_name, process.name.clone());
        }
        steps.push(Step::Start(Box::new(process)));
        Ok(())
    }

    /// `depends_on`: managed nodes, apart by blanks or commas; one without a slash is in
    /// the same namespace.
    fn needs(&mut self, element: &Element) -> Result<Vec<String>, Fault> {
        let words = self.text(element, "depends_on")?.unwrap_or_default();
        let words = words.split([',', ' ']).filter(|word| !word.is_empty());
        let full = words.map(|word| match word.starts_with('/') {
            true => word.to_owned(),
            false => format!("{}/{word}", self.scope.namespace.trim_end_matches('/')),
        });
        Ok(full.collect())
    }

    /// The remaps of the scope, then the element's own.
    pub(super) fn remaps(&mut self, element: &Element) -> Result<Vec<(String, String)>, Fault> {
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

    /// A node's name, checked; the old attribute `node-name` counts as well.
    pub(super) fn node_name(&mut self, element: &Element) -> Result<Option<String>, Fault> {
        for attribute in ["name", "node-name"] {
            let Some(name) = self.text(element, attribute)? else {
                continue;
            };
            return match names::validate_node(&name) {
                Ok(()) => Ok(Some(name)),
                Err(error) => Err(Fault::at(
                    &Self::place_of(element, attribute),
                    format!("{attribute}: {error}"),
                )),
            };
        }
        Ok(None)
    }

    /// The program of `pkg` and `exec`; without `pkg` a path, or a program on PATH.
    pub(super) fn program(&mut self, element: &Element) -> Result<String, Fault> {
        let executable = self.required(element, "exec")?;
        let place = Self::place_of(element, "exec");
        let Some(package) = self.text(element, "pkg")? else {
            let path = self.scope.environment.get("PATH");
            let path = path.map_or("", String::as_str);
            let found = crate::substitution::evaluate::find_program(&executable, path);
            return found.map(text_of).ok_or_else(|| {
                Fault::at(
                    &place,
                    format!("exec: there is no program {executable:?} on PATH; name its package: pkg=\"…\", or write its path"),
                )
            });
        };
        let package_is_known = self.around.packages.find(&package).is_ok();
        let place = match package_is_known {
            true => place,
            false => Self::place_of(element, "pkg"),
        };
        let found = self.around.packages.executable(&package, &executable);
        found
            .map(text_of)
            .map_err(|message| Fault::at(&place, message))
    }
}

fn text_of(path: PathBuf) -> String {
    path.display().to_string()
}
