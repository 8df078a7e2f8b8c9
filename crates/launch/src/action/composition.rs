//! Composition: `node_container` and `load_composable_node`.

use pteros::parameter::ParameterValue;
use pteros_container::{ComponentOrigin, LoadError, PROGRAM};

use super::Builder;
use crate::document::Element;
use crate::error::LaunchFileError;
use crate::plan::{ComponentLoad, ComponentSpec, NodeKind, PlanStep};
use crate::substitution::evaluate::find_program;

/// The package of rclcpp's containers. Pteros containers can replace them.
const CPP_CONTAINERS: &str = "rclcpp_components";

impl Builder {
    /// Starts a container and loads its components.
    pub(super) fn container(
        &mut self,
        element: &Element,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
        let words = self.container_words(element)?;
        let name = self.attributes.node_name(element)?;
        let namespace = self.attributes.text(element, "namespace")?;
        let namespace = self.attributes.namespace(element, namespace.as_deref())?;
        let container = format!("{namespace}/{}", name.unwrap_or_default());
        self.start_node(element, words, NodeKind::Container, steps)?;
        self.load_into(element, container, steps)
    }

    /// The command of a container. The names of rclcpp's containers select a Pteros
    /// container if rclcpp's are not installed or a Pteros component is to be
    /// loaded.
    fn container_words(&mut self, element: &Element) -> Result<Vec<String>, LaunchFileError> {
        let executable = self.attributes.required(element, "exec")?;
        let package = self.attributes.text(element, "pkg")?;
        let executor = match executable.as_str() {
            "component_container" => "single",
            "component_container_mt" => "multi",
            "component_container_isolated" | "component_container_event" => "isolated",
            _ => return self.program(element),
        };
        let is_ours = package.as_deref() != Some(CPP_CONTAINERS)
            || self
                .attributes
                .context
                .packages
                .find(CPP_CONTAINERS)
                .is_err()
            || self.loads_ours(element);
        if !is_ours {
            return self.program(element);
        }
        let program = self.container_program().ok_or_else(|| {
            LaunchFileError::at(
                element.location_of("exec"),
                format!("exec: there is no {PROGRAM} beside the component libraries or on PATH; build it with: cargo build -p pteros-demo-components, or name one with PTEROS_CONTAINER"),
            )
        })?;
        Ok(vec![program, "--executor".into(), executor.into()])
    }

    fn container_program(&self) -> Option<String> {
        let environment = &self.attributes.scope.environment;
        if let Some(named) = environment.get("PTEROS_CONTAINER") {
            return find_program(named, "").map(|path| path.display().to_string());
        }
        let folders = self.components.folders().iter();
        let mut beside = folders.map(|folder| folder.join(PROGRAM));
        let path = environment.get("PATH").map_or("", String::as_str);
        let found = beside.find(|path| path.is_file());
        let found = found.or_else(|| find_program(PROGRAM, path));
        found.map(|path| path.display().to_string())
    }

    /// Whether the element loads a Pteros component.
    fn loads_ours(&mut self, element: &Element) -> bool {
        let parts = element.children.iter();
        parts
            .filter(|child| child.name == "composable_node")
            .any(|part| {
                let package = self.attributes.required(part, "pkg").unwrap_or_default();
                let class = self.attributes.required(part, "plugin").unwrap_or_default();
                self.components.find(&package, &class).is_ok()
            })
    }

    /// `load_composable_node`: loads into a container of this launch or a running
    /// one.
    pub(super) fn load(
        &mut self,
        element: &Element,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
        let target = self.attributes.required(element, "target")?;
        let in_namespace = self.attributes.scope.namespaced(Some(&target));
        let container = match target.starts_with('/') {
            true => target,
            // ROS 2 ignores the namespace here. A container in the namespace is
            // preferred.
            false if self.containers.contains_key(&in_namespace) => in_namespace,
            false => format!("/{target}"),
        };
        self.load_into(element, container, steps)
    }

    fn load_into(
        &mut self,
        element: &Element,
        container: String,
        steps: &mut Vec<PlanStep>,
    ) -> Result<(), LaunchFileError> {
        let mut components = Vec::new();
        for part in &element.children {
            if part.name == "composable_node" && self.applies(part)? {
                components.push(self.component(part)?);
            }
        }
        if components.is_empty() {
            return Ok(());
        }
        let process = self.containers.get(&container).cloned();
        if process.is_none() {
            self.attributes.context.notes.push(format!(
                "{}: no container {container} is started above; it must be running already",
                element.location
            ));
        }
        steps.push(PlanStep::Load(ComponentLoad {
            container,
            process,
            components,
            location: element.location.clone(),
        }));
        Ok(())
    }

    fn component(&mut self, part: &Element) -> Result<ComponentSpec, LaunchFileError> {
        let package = self.attributes.required(part, "pkg")?;
        let class = self.attributes.required(part, "plugin")?;
        self.check_class(part, &package, &class)?;
        let name = self.attributes.node_name(part)?.unwrap_or_default();
        let namespace = self.attributes.text(part, "namespace")?;
        let namespace = self.attributes.namespace(part, namespace.as_deref())?;
        let full_name = format!("{}/{name}", namespace.trim_end_matches('/'));
        let parameters = self.parameter_values(part, &full_name)?;
        let remaps = self.attributes.remaps(part)?;
        let mut extra_arguments = Vec::new();
        let parts = part.children.iter();
        for extra in parts.filter(|child| child.name == "extra_arg") {
            let name = self.attributes.required(extra, "name")?;
            extra_arguments.push((name, self.attributes.value(extra)?.value));
        }
        Ok(ComponentSpec {
            package,
            class,
            name,
            namespace,
            parameters,
            remaps: remaps
                .into_iter()
                .map(|(from, to)| format!("{from}:={to}"))
                .collect(),
            extra_arguments: extra_arguments
                .into_iter()
                .filter(|(_, value)| *value != ParameterValue::NotSet)
                .collect(),
            location: part.location.clone(),
        })
    }

    /// Checks that an index lists the class. A C++ component needs an rclcpp
    /// container.
    fn check_class(
        &self,
        part: &Element,
        package: &str,
        class: &str,
    ) -> Result<(), LaunchFileError> {
        let (attribute, error) = match self.components.find(package, class) {
            Ok(found) => {
                debug_assert_eq!(
                    found.origin,
                    ComponentOrigin::Pteros,
                    "other origins are errors"
                );
                return Ok(());
            }
            Err(LoadError::Cpp { .. })
                if self
                    .attributes
                    .context
                    .packages
                    .find(CPP_CONTAINERS)
                    .is_ok() =>
            {
                return Ok(());
            }
            Err(error @ LoadError::UnknownClass { .. }) => ("plugin", error),
            Err(error) => ("pkg", error),
        };
        let location = part.location_of(attribute);
        Err(LaunchFileError::at(
            location,
            format!("{attribute}: {error}"),
        ))
    }
}
