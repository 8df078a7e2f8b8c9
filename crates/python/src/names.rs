//! Names of topics, services, nodes and namespaces.

use pteros_runtime::names::{self, NameError, NameKind};
use pyo3::prelude::*;

use crate::error;
use crate::node::Node;

/// The fault of a name as rclpy reports it: text and index.
fn report(result: Result<(), NameError>) -> Option<(String, usize)> {
    result
        .err()
        .map(|fault| (error::describe(&fault), fault.position))
}

fn kind(is_service: bool) -> NameKind {
    if is_service {
        NameKind::Service
    } else {
        NameKind::Topic
    }
}

/// A full name from one as users write it.
#[pyfunction]
fn expand_topic_name(
    py: Python<'_>,
    topic: &str,
    node_name: &str,
    namespace: &str,
) -> PyResult<String> {
    let expand = || {
        names::validate_node(node_name)?;
        names::validate_namespace(namespace)?;
        names::validate_input(NameKind::Topic, topic)?;
        names::expand(NameKind::Topic, topic, node_name, namespace)
    };
    expand().map_err(|fault| error::name(py, &fault))
}

#[pyfunction]
#[pyo3(signature = (name, is_service=false))]
fn validate_full_topic_name(name: &str, is_service: bool) -> Option<(String, usize)> {
    report(names::validate_full(kind(is_service), name))
}

#[pyfunction]
#[pyo3(signature = (name, is_service=false))]
fn validate_topic_name(name: &str, is_service: bool) -> Option<(String, usize)> {
    report(names::validate_input(kind(is_service), name))
}

#[pyfunction]
fn validate_node_name(name: &str) -> Option<(String, usize)> {
    report(names::validate_node(name))
}

#[pyfunction]
fn validate_namespace(name: &str) -> Option<(String, usize)> {
    report(names::validate_namespace(name))
}

/// A full name after the remapping rules of a node.
#[pyfunction]
fn remap_topic_name(py: Python<'_>, node: &Node, topic: &str) -> PyResult<String> {
    node.life.check()?;
    names::validate_full(NameKind::Topic, topic).map_err(|fault| error::name(py, &fault))?;
    node.state.resolve(py, NameKind::Topic, topic, false)
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(expand_topic_name, module)?)?;
    module.add_function(wrap_pyfunction!(validate_full_topic_name, module)?)?;
    module.add_function(wrap_pyfunction!(validate_topic_name, module)?)?;
    module.add_function(wrap_pyfunction!(validate_node_name, module)?)?;
    module.add_function(wrap_pyfunction!(validate_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(remap_topic_name, module)?)
}
