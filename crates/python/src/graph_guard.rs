//! Guard conditions that changes of the graph trigger.

use pyo3::prelude::*;

use crate::guard_condition::GuardCondition;
use crate::node::Node;

/// A guard condition that is triggered at every change of the graph.
#[pyfunction]
fn graph_guard_condition(py: Python<'_>, node: &Node) -> PyResult<Py<GuardCondition>> {
    node.life.check()?;
    let context = &node.state.context;
    let guard = context.waits.create_graph_guard();
    Py::new(py, GuardCondition::make(context, guard))
}

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(graph_guard_condition, module)?)
}
