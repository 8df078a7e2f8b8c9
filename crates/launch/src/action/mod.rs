//! From elements to steps: what each action of a launch file does to the scope and
//! to the plan.
//!
//! [`schema`] knows which attributes and parts there are; a file is held against it
//! once, also where conditions leave things out. Then actions are taken in order,
//! as ROS 2's launch visits them, but before anything runs: what timers and
//! `on_exit` hold is evaluated in the scope where it stands.

mod arguments;
mod attributes;
mod composition;
mod flow;
mod node;
mod parameters;
mod process;
pub(crate) mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use pteros_component::Index;

use crate::close_names::{did_you_mean, listed};
use crate::document::{Document, Element};
use crate::fault::{Fault, Faults};
use crate::plan::{Argument, NodeKind, Plan, Process, Request, Step};
use crate::scope::Scope;
use crate::substitution::evaluate::Surroundings;

/// How many actions are taken in all; loops and includes count each time.
const ACTIONS_MAX: usize = 100_000;
/// How deep files may include each other.
const INCLUDES_MAX: usize = 32;

/// Reads files and gathers the plan.
pub(crate) struct Builder {
    scope: Scope,
    /// What `reset_env` goes back to.
    initial_environment: BTreeMap<String, String>,
    around: Surroundings,
    components: Index,
    faults: Faults,
    arguments: Vec<Argument>,
    /// Names of configurations that something asked for.
    asked: BTreeSet<String>,
    documents: BTreeMap<PathBuf, Rc<Document>>,
    /// The files that include each other, down to the one being read.
    open: Vec<PathBuf>,
    actions_left: usize,
    processes: usize,
    /// Parameter files whose substitutions were done.
    filled_files: usize,
    /// Containers by full name, and their processes.
    containers: BTreeMap<String, String>,
    /// Whether only the declared arguments are wanted.
    declares_only: bool,
}

impl Builder {
    /// With the request's scope.
    pub fn new(request: &Request) -> Self {
        let file = request.file.as_path().into();
        let configurations = request.arguments.iter().cloned().collect();
        let environment = request.environment.clone();
        Self {
            scope: Scope::new(configurations, environment.clone(), file),
            initial_environment: environment,
            around: Surroundings {
                packages: request.packages.clone(),
                log_folder: request.log_folder.clone(),
                host: request.host.clone(),
                process: request.process,
                remarks: Vec::new(),
                anonymous: 0,
            },
            components: request.components.clone(),
            faults: Faults::default(),
            arguments: Vec::new(),
            asked: BTreeSet::new(),
            documents: BTreeMap::new(),
            open: Vec::new(),
            actions_left: ACTIONS_MAX,
            processes: 0,
            filled_files: 0,
            containers: BTreeMap::new(),
            declares_only: false,
        }
    }

    /// The plan.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn build(mut self, request: &Request) -> Result<Plan, Faults> {
        let mut steps = Vec::new();
        let document = self.document(&request.file)?;
        self.file(&document, &mut steps);
        self.refuse_unknown_arguments(request);
        self.refuse_unknown_needs(&steps);
        if !self.faults.is_empty() {
            self.faults.sort();
            return Err(self.faults);
        }
        Ok(Plan {
            file: document.file.clone(),
            arguments: self.arguments,
            steps,
            remarks: self.around.remarks,
            files: self.documents.into_keys().collect(),
        })
    }

    /// `depends_on` names nodes that are brought up here, since for others nobody would
    /// know when they are.
    fn refuse_unknown_needs(&mut self, steps: &[Step]) {
        let managed = |process: &&Process| {
            let node = process.node.as_ref();
            node.is_some_and(|node| node.kind == NodeKind::Lifecycle { autostart: true })
        };
        let processes = crate::plan::processes(steps);
        let nodes = processes.iter().copied().filter(managed);
        let names = nodes.filter_map(|process| process.node.as_ref()?.full_name());
        let names: Vec<String> = names.collect();
        for process in &processes {
            let needs = process.node.iter().flat_map(|node| &node.needs);
            for needed in needs.filter(|needed| !names.contains(needed)) {
                let known = names.iter().map(String::as_str);
                let way_out = format!("there are: {}", listed(known.clone()));
                let similar = did_you_mean(needed, known, &way_out);
                self.faults.push(Fault::at(
                    &process.place,
                    format!("depends_on: no lifecycle_node with autostart is {needed:?}{similar}"),
                ));
            }
        }
    }

    /// What a file holds, in the present scope.
    fn file(&mut self, document: &Document, steps: &mut Vec<Step>) {
        let before = std::mem::replace(&mut self.scope.file, document.file.clone());
        self.open.push(canonical(&document.file));
        let folder = self.scope.folder();
        self.around.packages.add_workspace_of(&folder);
        if let Some(reason) = document.root.attribute("deprecated") {
            let name = document.file.display();
            let reason = attributes::literal(reason);
            self.around
                .remarks
                .push(format!("{name} is deprecated: {reason}"));
        }
        self.actions(&document.root.children, steps);
        self.open.pop();
        self.scope.file = before;
    }

    /// A file's tree, read once and held against the schema.
    fn document(&mut self, path: &std::path::Path) -> Result<Rc<Document>, Faults> {
        let key = canonical(path);
        if let Some(known) = self.documents.get(&key) {
            return Ok(known.clone());
        }
        let document = Rc::new(Document::read(path)?);
        let mut faults = Faults::default();
        schema::check(&document.root, &mut faults);
        for fault in faults.iter() {
            self.faults.push(fault.clone());
        }
        self.documents.insert(key, document.clone());
        Ok(document)
    }

    fn actions(&mut self, elements: &[Element], steps: &mut Vec<Step>) {
        for element in elements {
            if self.actions_left == 0 {
                self.faults.push(Fault::at(
                    &element.place,
                    format!("more than {ACTIONS_MAX} actions; are there loops or includes that multiply?"),
                ));
                return;
            }
            self.actions_left -= 1;
            let outcome = self.action(element, steps);
            self.faults.keep(outcome);
        }
    }

    fn action(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        if !self.applies(element)? {
            return Ok(());
        }
        match element.name.as_str() {
            "arg" => self.declare(element),
            "let" => self.set(element),
            "group" => self.group(element, steps),
            "include" => self.include(element, steps),
            "for" => self.count(element, steps),
            "for_each" => self.for_each(element, steps),
            "reset" => self.reset(element),
            "set_env" | "append_env" | "unset_env" | "reset_env" => self.environment(element),
            "set_ros_log_dir" => self.log_folder(element),
            "push_ros_namespace" | "push-ros-namespace" => self.push_namespace(element),
            "set_parameter" | "set_use_sim_time" | "set_parameters_from_file" => {
                self.set_parameter(element)
            }
            "set_remap" => self.set_remap(element),
            _ if self.declares_only => self.parts_that_declare(element, steps),
            "executable" => self.executable(element, steps),
            "node" | "lifecycle_node" => self.node(element, steps),
            "node_container" => self.container(element, steps),
            "load_composable_node" => self.load(element, steps),
            "timer" | "ros_timer" => self.timer(element, steps),
            "shutdown" => self.shutdown(element, steps),
            name if name.starts_with("log") => self.log(element, steps),
            // The schema has said so already.
            _ => Ok(()),
        }
    }

    /// Whether `if` and `unless` let an element count.
    fn applies(&mut self, element: &Element) -> Result<bool, Fault> {
        if self.declares_only {
            return Ok(true);
        }
        let wanted = self.truth(element, "if")?;
        let unwanted = self.truth(element, "unless")?;
        Ok(wanted.unwrap_or(true) && !unwanted.unwrap_or(false))
    }
}

/// One name for each file, however it is written.
fn canonical(path: &std::path::Path) -> PathBuf {
    let known = path.canonicalize();
    known.unwrap_or_else(|_| crate::scope::absolute(path))
}
