//! Launch actions: evaluates each element of a launch file into scope changes and
//! plan steps.
//!
//! [`schema`] lists the accepted attributes and children. Each file is checked
//! against it once, including parts that conditions exclude. Actions are then
//! evaluated in the order of ROS 2's launch, before anything runs. Actions within
//! timers and `on_exit` are evaluated in the scope of their position.
//!
//! `Builder` has a method per action or shared attribute, in a file per action.
//! They share scope, plan and faults.

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

use pteros_container::ComponentIndex;

use self::attributes::AttributeReader;
use crate::close_names::{did_you_mean, listed};
use crate::document::{Document, Element};
use crate::error::{KnownCause, LaunchFileError, LaunchFileErrors};
use crate::plan::{LaunchArgument, LaunchPlan, LaunchRequest, NodeKind, PlanStep, ProcessSpec};
use crate::scope::Scope;
use crate::substitution::evaluate::EvaluationContext;

/// Largest number of evaluated actions. Loops and includes count each time.
const ACTIONS_MAX: usize = 100_000;
/// Largest nesting depth of includes.
const INCLUDES_MAX: usize = 32;

/// Reads files and builds the plan.
pub(crate) struct Builder {
    /// The environment that `reset_env` restores.
    initial_environment: BTreeMap<String, String>,
    attributes: AttributeReader,
    components: ComponentIndex,
    errors: LaunchFileErrors,
    arguments: Vec<LaunchArgument>,
    /// Their names.
    argument_names: BTreeSet<String>,
    documents: BTreeMap<PathBuf, Rc<Document>>,
    /// The chain of includes down to the current file.
    including: Vec<PathBuf>,
    actions_left: usize,
    processes: usize,
    /// Number of parameter files with evaluated substitutions.
    written_parameter_files: usize,
    /// Processes of the containers, by full name of the container.
    containers: BTreeMap<String, String>,
    /// Whether only argument declarations are collected.
    declares_only: bool,
    /// The command that stands in for `ros2`.
    ros2_command: Option<PathBuf>,
}

impl LaunchPlan {
    /// Reads a launch file and its includes, evaluates them and resolves all
    /// references.
    ///
    /// Runs the commands of `$(command …)` and waits for them; starts nothing else.
    ///
    /// # Errors
    /// All errors of the files: unreadable files, unknown elements, attributes and
    /// substitutions, arguments without value, and references to things that do not
    /// exist.
    pub fn read(request: &LaunchRequest) -> Result<Self, LaunchFileErrors> {
        Builder::new(request).build(request)
    }

    /// The arguments that a launch file declares. Other errors than syntax errors
    /// do not matter. Includes count as far as their paths are known without
    /// argument values.
    ///
    /// # Errors
    /// Syntax errors of the files.
    pub fn arguments(request: &LaunchRequest) -> Result<Vec<LaunchArgument>, LaunchFileErrors> {
        Builder::new(request).arguments(request)
    }
}

impl Builder {
    /// A builder with the initial scope of the request.
    pub fn new(request: &LaunchRequest) -> Self {
        let file = request.file.as_path().into();
        let configurations = request.arguments.iter().cloned().collect();
        let environment = request.environment.clone();
        Self {
            initial_environment: environment.clone(),
            attributes: AttributeReader {
                scope: Scope::new(configurations, environment, file),
                context: EvaluationContext {
                    packages: request.packages.clone(),
                    log_folder: request.log_folder.clone(),
                    host: request.host.clone(),
                    process: request.process,
                    notes: Vec::new(),
                    anonymous_count: 0,
                    known_cause: None,
                },
                requested_arguments: BTreeSet::new(),
            },
            components: request.components.clone(),
            errors: LaunchFileErrors::default(),
            arguments: Vec::new(),
            argument_names: BTreeSet::new(),
            documents: BTreeMap::new(),
            including: Vec::new(),
            actions_left: ACTIONS_MAX,
            processes: 0,
            written_parameter_files: 0,
            containers: BTreeMap::new(),
            declares_only: false,
            ros2_command: request.ros2_command.clone(),
        }
    }

    /// Builds the plan.
    ///
    /// # Errors
    /// All errors of the launch files.
    pub fn build(mut self, request: &LaunchRequest) -> Result<LaunchPlan, LaunchFileErrors> {
        let mut steps = Vec::new();
        let document = self.document(&request.file)?;
        self.file(&document, &mut steps);
        // A file that was not read may declare them.
        let is_complete =
            self.errors.left_out.is_empty() && !self.attributes.scope.failed.any_other;
        if is_complete {
            self.refuse_unknown_arguments(request);
        }
        if self.errors.is_empty() && self.errors.left_out.is_empty() {
            self.refuse_unknown_dependencies(&steps);
        }
        if !self.errors.is_empty() {
            self.errors.sort();
            return Err(self.errors);
        }
        Ok(LaunchPlan {
            file: document.file.clone(),
            arguments: self.arguments,
            steps,
            notes: self.attributes.context.notes,
            left_out: self.errors.left_out,
            files: self.documents.into_keys().collect(),
        })
    }

    /// Rejects a `depends_on` that names a node which this launch does not bring
    /// up. The state of such a node would be unknown.
    fn refuse_unknown_dependencies(&mut self, steps: &[PlanStep]) {
        let managed = |process: &&ProcessSpec| {
            let node = process.node.as_ref();
            node.is_some_and(|node| node.kind == NodeKind::Lifecycle { autostart: true })
        };
        let processes = crate::plan::processes(steps);
        let nodes = processes.iter().copied().filter(managed);
        let names = nodes.filter_map(|process| process.node.as_ref()?.full_name());
        let names: Vec<String> = names.collect();
        for process in &processes {
            let needs = process.node.iter().flat_map(|node| &node.depends_on);
            for needed in needs.filter(|needed| !names.contains(needed)) {
                let known = names.iter().map(String::as_str);
                let hint = format!("there are: {}", listed(known.clone()));
                let similar = did_you_mean(needed, known, &hint);
                self.errors.push(LaunchFileError::at(
                    &process.location,
                    format!("depends_on: no lifecycle_node with autostart is {needed:?}{similar}"),
                ));
            }
        }
    }

    /// Evaluates a file in the current scope.
    fn file(&mut self, document: &Document, steps: &mut Vec<PlanStep>) {
        let before = std::mem::replace(&mut self.attributes.scope.file, document.file.clone());
        self.including.push(canonical(&document.file));
        let folder = self.attributes.scope.folder();
        self.attributes.context.packages.add_workspace_of(&folder);
        if let Some(reason) = document.root.attribute("deprecated") {
            let name = document.file.display();
            let reason = attributes::literal(reason);
            self.attributes
                .context
                .notes
                .push(format!("{name} is deprecated: {reason}"));
        }
        self.actions(&document.root.children, steps);
        self.including.pop();
        self.attributes.scope.file = before;
    }

    /// A file's tree, read and checked against the schema once.
    fn document(&mut self, path: &std::path::Path) -> Result<Rc<Document>, LaunchFileErrors> {
        let key = canonical(path);
        if let Some(known) = self.documents.get(&key) {
            return Ok(known.clone());
        }
        let document = Rc::new(Document::read(path)?);
        let mut errors = LaunchFileErrors::default();
        schema::check(&document.root, &mut errors);
        for error in errors.iter() {
            self.errors.push(error.clone());
        }
        self.documents.insert(key, document.clone());
        Ok(document)
    }

    fn actions(&mut self, elements: &[Element], steps: &mut Vec<PlanStep>) {
        for element in elements {
            if self.actions_left == 0 {
                self.errors.push(LaunchFileError::at(
                    &element.location,
                    format!("more than {ACTIONS_MAX} actions; check for nested loops or includes"),
                ));
                return;
            }
            self.actions_left -= 1;
            if let Err(error) = self.action(element, steps) {
                self.fail(element, error);
            }
        }
    }

    /// Records the error of an action. The names that it would set are unknown from
    /// here on.
    fn fail(&mut self, element: &Element, error: LaunchFileError) {
        let name = element.attribute("name").map(attributes::literal);
        match (element.name.as_str(), name) {
            ("arg" | "let", Some(name)) => self.attributes.scope.fail(name),
            ("set_env" | "append_env" | "unset_env", Some(name)) => {
                self.attributes.scope.environment.remove(&name);
                self.attributes.scope.failed.environment.insert(name);
            }
            (
                "group"
                | "include"
                | "for"
                | "for_each"
                | "reset"
                | "set_parameter"
                | "set_parameters_from_file",
                _,
            ) => match &error.cause {
                Some(KnownCause::LeftOutFile(file)) => {
                    let left_out = &mut self.attributes.scope.failed.left_out;
                    left_out.get_or_insert_with(|| file.clone());
                }
                _ => self.attributes.scope.failed.any_other = true,
            },
            _ => {}
        }
        self.errors.push(error);
    }

    fn action(
        &mut self,
        element: &Element,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
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
            _ if self.declares_only => self.declarations_within(element, steps),
            "executable" => self.executable(element, steps),
            "node" | "lifecycle_node" => self.node(element, steps),
            "node_container" => self.container(element, steps),
            "load_composable_node" => self.load(element, steps),
            "timer" | "ros_timer" => self.timer(element, steps),
            "shutdown" => self.shutdown(element, steps),
            name if name.starts_with("log") => self.log(element, steps),
            // The schema check has reported it already.
            _ => Ok(()),
        }
    }

    /// Whether `if` and `unless` include an element.
    fn applies(&mut self, element: &Element) -> Result<bool, LaunchFileError> {
        if self.declares_only {
            return Ok(true);
        }
        let wanted = self.attributes.truth(element, "if")?;
        let unwanted = self.attributes.truth(element, "unless")?;
        Ok(wanted.unwrap_or(true) && !unwanted.unwrap_or(false))
    }
}

/// The canonical path of a file.
fn canonical(path: &std::path::Path) -> PathBuf {
    let known = path.canonicalize();
    known.unwrap_or_else(|_| crate::scope::absolute(path))
}
