//! Nodes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pteros::args::{Arguments, node_identity, resolve_name};
use pteros_rcl::graph::{NamesAndTypes, NamesOf, action_names_and_types, names_and_types};
use pteros_runtime::graph::NodeKey;
use pteros_runtime::names::{self, NameKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::context::{Context, ContextState, Owner, parse};
use crate::error::{self, NotInitializedError};
use crate::graph;
use crate::handle::{Handle, Lifetime};
use crate::logging;

/// A node.
pub(crate) struct NodeState {
    pub(crate) context: Arc<ContextState>,
    pub(crate) key: NodeKey,
    pub(crate) name: String,
    pub(crate) namespace: String,
    arguments: Arguments,
    use_global_arguments: bool,
    /// Whether the graph lists it as an owner of the publisher on /rosout.
    pub(crate) is_rosout_listed: AtomicBool,
}

impl NodeState {
    /// Its own arguments, then those of the context.
    pub(crate) fn sources(&self) -> Vec<&Arguments> {
        let mut sources = vec![&self.arguments];
        if self.use_global_arguments {
            sources.push(self.context.context.arguments());
        }
        sources
    }

    /// The full name of a topic or service of this node.
    ///
    /// # Errors
    /// InvalidNameError.
    pub(crate) fn resolve(
        &self,
        py: Python<'_>,
        kind: NameKind,
        name: &str,
        only_expand: bool,
    ) -> PyResult<String> {
        names::validate_input(kind, name).map_err(|fault| error::name(py, &fault))?;
        let found = if only_expand {
            names::expand(kind, name, &self.name, &self.namespace)
        } else {
            resolve_name(&self.sources(), kind, name, &self.name, &self.namespace)
        };
        let full = found.map_err(|fault| error::name(py, &fault))?;
        names::validate_full(kind, &full).map_err(|fault| error::name(py, &fault))?;
        Ok(full)
    }

    /// # Errors
    /// RCLError once the context is shut down; see [`ContextState::check_valid`].
    pub(crate) fn check_valid(&self, py: Python<'_>, action: &str) -> PyResult<()> {
        self.context.check_valid(py, action, Owner::Node)
    }

    /// `/ns/node`.
    pub(crate) fn path(&self) -> String {
        names::node_path(&self.namespace, &self.name)
    }

    /// `ns.node`.
    pub(crate) fn logger_name(&self) -> String {
        self.path().trim_start_matches('/').replace('/', ".")
    }
}

/// A node.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Node {
    pub(crate) state: Arc<NodeState>,
    pub(crate) life: Arc<Lifetime>,
}

impl Node {
    /// # Errors
    /// InvalidHandle once it is destroyed, RCLError once its context is shut down.
    pub(crate) fn check(&self, py: Python<'_>, action: &str) -> PyResult<()> {
        self.life.check()?;
        self.state.check_valid(py, action)
    }
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (context, name, namespace="", args=None, use_global_arguments=true, enable_rosout=true))]
    fn new(
        py: Python<'_>,
        context: &Context,
        name: &str,
        namespace: &str,
        args: Option<Vec<String>>,
        use_global_arguments: bool,
        enable_rosout: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        if !context.life.is_open() || context.state.is_shut_down() {
            return Err(NotInitializedError::new_err(format!(
                "node {name:?}: the context is not initialized or was shut down; call rclpy.init()"
            )));
        }
        let (arguments, _) = parse(py, args.unwrap_or_default())?;
        let mut sources = vec![&arguments];
        if use_global_arguments {
            sources.push(context.state.context.arguments());
        }
        names::validate_node(name).map_err(|fault| error::name(py, &fault))?;
        let (name, namespace) =
            node_identity(&sources, name, namespace).map_err(|fault| error::name(py, &fault))?;
        let core = context.state.core.clone();
        let key = py.detach(|| core.discovery().add_node(&name, &namespace));
        let state = Arc::new(NodeState {
            context: context.state.clone(),
            key,
            name,
            namespace,
            arguments,
            use_global_arguments,
            is_rosout_listed: AtomicBool::new(false),
        });
        if enable_rosout {
            logging::add_node(py, &state);
        }
        let life = Lifetime::new(move || core.discovery().remove_node(key));
        Ok(PyClassInitializer::from(Handle { life: life.clone() })
            .add_subclass(Self { state, life }))
    }

    /// After remapping, without namespace.
    fn get_node_name(&self) -> PyResult<&str> {
        self.life.check()?;
        Ok(&self.state.name)
    }

    /// After remapping, absolute.
    fn get_namespace(&self) -> PyResult<&str> {
        self.life.check()?;
        Ok(&self.state.namespace)
    }

    fn get_fully_qualified_name(&self) -> PyResult<String> {
        self.life.check()?;
        Ok(self.state.path())
    }

    /// Namespace and name with dots.
    fn logger_name(&self) -> PyResult<String> {
        self.life.check()?;
        Ok(self.state.logger_name())
    }

    /// The full name, remapped unless `only_expand`.
    #[pyo3(signature = (name, only_expand=false, is_service=false))]
    fn resolve_name(
        &self,
        py: Python<'_>,
        name: &str,
        only_expand: bool,
        is_service: bool,
    ) -> PyResult<String> {
        self.life.check()?;
        let kind = if is_service {
            NameKind::Service
        } else {
            NameKind::Topic
        };
        self.state.resolve(py, kind, name, only_expand)
    }

    /// Counts the "publisher", "subscription", "service" or "client" endpoints of a name.
    fn count_endpoints(&self, py: Python<'_>, role: &str, name: &str) -> PyResult<usize> {
        graph::count(py, self, graph::role(role)?.0, name)
    }

    fn get_node_names_and_namespaces(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.check(py, "get node names")?;
        let nodes = self.state.context.core.graph().nodes();
        Ok(nodes
            .into_iter()
            .map(|node| (node.name, node.namespace))
            .collect())
    }

    fn get_node_names_and_namespaces_with_enclaves(
        &self,
        py: Python<'_>,
    ) -> PyResult<Vec<(String, String, String)>> {
        self.check(py, "get node names")?;
        let nodes = self.state.context.core.graph().nodes();
        Ok(nodes
            .into_iter()
            .map(|node| (node.name, node.namespace, node.enclave.unwrap_or_default()))
            .collect())
    }

    #[pyo3(signature = (no_demangle=false))]
    fn get_topic_names_and_types(
        &self,
        py: Python<'_>,
        no_demangle: bool,
    ) -> PyResult<NamesAndTypes> {
        self.check(py, "get topic names and types")?;
        Ok(names_and_types(
            &self.state.context.core.graph().endpoints(),
            NamesOf::topics(no_demangle),
        ))
    }

    fn get_service_names_and_types(&self, py: Python<'_>) -> PyResult<NamesAndTypes> {
        self.check(py, "get service names and types")?;
        Ok(names_and_types(
            &self.state.context.core.graph().endpoints(),
            NamesOf::Services,
        ))
    }

    /// Names and types of a node's "publisher", "subscription", "service", "client",
    /// "action_client" or "action_server" endpoints.
    #[pyo3(signature = (role, name, namespace, no_demangle=false))]
    fn names_and_types_by_node(
        &self,
        py: Python<'_>,
        role: &str,
        name: &str,
        namespace: &str,
        no_demangle: bool,
    ) -> PyResult<NamesAndTypes> {
        let (role, is_action) = graph::role(role)?;
        let listed = match role.counted().0 {
            NameKind::Service => NamesOf::Services,
            _ => NamesOf::topics(no_demangle),
        };
        let found = graph::by_node(py, self, (name, namespace), role, listed)?;
        Ok(match is_action {
            true => action_names_and_types(found),
            false => found,
        })
    }

    fn get_action_names_and_types(&self, py: Python<'_>) -> PyResult<NamesAndTypes> {
        let topics = self.get_topic_names_and_types(py, false)?;
        Ok(action_names_and_types(topics))
    }

    /// The publishers or the subscriptions of a topic.
    fn info_by_topic<'py>(
        &self,
        py: Python<'py>,
        publishers: bool,
        topic: &str,
        no_mangle: bool,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        graph::info_by_topic(py, self, topic, no_mangle, publishers)
    }
}
