//! `node_container` and `load_composable_node`.

use pteros::parameter::ParameterValue;
use pteros_component::{LoadError, Origin, PROGRAM};

use super::Builder;
use crate::document::Element;
use crate::fault::Fault;
use crate::plan::{Component, Load, NodeKind, Step};
use crate::substitution::evaluate::find_program;

/// The package of rclcpp's containers, which ours stand in for.
const CPP_CONTAINERS: &str = "rclcpp_components";

impl Builder {
    /// A container, and the components named in it.
    pub(super) fn container(
        &mut self,
        element: &Element,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
        let words = self.container_words(element)?;
        let name = self.node_name(element)?;
        let namespace = self.text(element, "namespace")?;
        let namespace = self.namespace(element, namespace.as_deref())?;
        let container = format!("{namespace}/{}", name.unwrap_or_default());
        self.start_node(element, words, NodeKind::Container, steps)?;
        self.load_into(element, container, steps)
    }

    /// The program of a container. rclcpp's names mean ours where rclcpp's are not
    /// installed, and where ours are to be loaded.
    fn container_words(&mut self, element: &Element) -> Result<Vec<String>, Fault> {
        let executable = self.required(element, "exec")?;
        let package = self.text(element, "pkg")?;
        let executor = match executable.as_str() {
            "component_container" => "single",
            "component_container_mt" => "multi",
            "component_container_isolated" | "component_container_event" => "isolated",
            _ => return Ok(vec![self.program(element)?]),
        };
        let is_ours = package.as_deref() != Some(CPP_CONTAINERS)
            || self.around.packages.find(CPP_CONTAINERS).is_err()
            || self.loads_ours(element);
        if !is_ours {
            return Ok(vec![self.program(element)?]);
        }
        let program = self.container_program().ok_or_else(|| {
            Fault::at(
                &Self::place_of(element, "exec"),
                format!("exec: there is no {PROGRAM} beside the component libraries or on PATH; build it with: cargo build -p pteros-components, or name one with PTEROS_CONTAINER"),
            )
        })?;
        Ok(vec![program, "--executor".into(), executor.into()])
    }

    fn container_program(&self) -> Option<String> {
        let environment = &self.scope.environment;
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

    /// Whether a component in the element is one of ours.
    fn loads_ours(&mut self, element: &Element) -> bool {
        let parts = element.children.iter();
        parts
            .filter(|child| child.name == "composable_node")
            .any(|part| {
                let package = self.required(part, "pkg").unwrap_or_default();
                let class = self.required(part, "plugin").unwrap_or_default();
                self.components.find(&package, &class).is_ok()
            })
    }

    /// `load_composable_node`: into a container of this launch or another.
    pub(super) fn load(&mut self, element: &Element, steps: &mut Vec<Step>) -> Result<(), Fault> {
        let target = self.required(element, "target")?;
        let in_namespace = self.scope.namespaced(Some(&target));
        let container = match target.starts_with('/') {
            true => target,
            // ROS 2 knows no namespace here; a container there is surely meant.
            false if self.containers.contains_key(&in_namespace) => in_namespace,
            false => format!("/{target}"),
        };
        self.load_into(element, container, steps)
    }

    fn load_into(
        &mut self,
        element: &Element,
        container: String,
        steps: &mut Vec<Step>,
    ) -> Result<(), Fault> {
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
            self.around.remarks.push(format!(
                "{}: no container {container} is started above; it has to run already",
                element.place
            ));
        }
        steps.push(Step::Load(Load {
            container,
            process,
            components,
            place: element.place.clone(),
        }));
        Ok(())
    }

    fn component(&mut self, part: &Element) -> Result<Component, Fault> {
        let package = self.required(part, "pkg")?;
        let class = self.required(part, "plugin")?;
        self.check_class(part, &package, &class)?;
        let name = self.node_name(part)?.unwrap_or_default();
        let namespace = self.text(part, "namespace")?;
        let namespace = self.namespace(part, namespace.as_deref())?;
        let full_name = format!("{}/{name}", namespace.trim_end_matches('/'));
        let parameters = self.parameter_values(part, &full_name)?;
        let remaps = self.remaps(part)?;
        let mut extra_arguments = Vec::new();
        let parts = part.children.iter();
        for extra in parts.filter(|child| child.name == "extra_arg") {
            let name = self.required(extra, "name")?;
            extra_arguments.push((name, self.value(extra)?));
        }
        Ok(Component {
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
            place: part.place.clone(),
        })
    }

    /// That some index names the class. One of C++ needs a container of rclcpp's.
    fn check_class(&self, part: &Element, package: &str, class: &str) -> Result<(), Fault> {
        let (attribute, error) = match self.components.find(package, class) {
            Ok(found) => {
                debug_assert_eq!(found.origin, Origin::Pteros, "others are an error");
                return Ok(());
            }
            Err(LoadError::Cpp { .. }) if self.around.packages.find(CPP_CONTAINERS).is_ok() => {
                return Ok(());
            }
            Err(error @ LoadError::UnknownClass { .. }) => ("plugin", error),
            Err(error) => ("pkg", error),
        };
        let place = Self::place_of(part, attribute);
        Err(Fault::at(&place, format!("{attribute}: {error}")))
    }
}
