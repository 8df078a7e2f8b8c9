//! Parameter files and parameter values of the command line.

use pteros::parameter::{ParameterFile, ParameterValue, TypingRule};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::rcl;

/// The Python object of a value.
pub(crate) fn object(py: Python<'_>, value: ParameterValue) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        ParameterValue::NotSet => py.None().into_bound(py),
        ParameterValue::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        ParameterValue::Integer(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::Double(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::String(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::ByteArray(value) => PyBytes::new(py, &value).into_any(),
        ParameterValue::BoolArray(value) => value.into_pyobject(py)?,
        ParameterValue::IntegerArray(value) => value.into_pyobject(py)?,
        ParameterValue::DoubleArray(value) => value.into_pyobject(py)?,
        ParameterValue::StringArray(value) => value.into_pyobject(py)?,
    })
}

/// The parameters of a file for one node, or of all that it names.
#[pyfunction]
#[pyo3(signature = (path, node_name=None, use_wildcard=false))]
fn parse_parameter_file<'py>(
    py: Python<'py>,
    path: std::path::PathBuf,
    node_name: Option<&str>,
    use_wildcard: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let file = py.detach(|| ParameterFile::read(&path)).map_err(rcl)?;
    let nodes = match node_name {
        Some(name) => vec![(name.to_owned(), file.parameters_of(name, use_wildcard))],
        None => file.parameters_by_node(),
    };
    let found = PyDict::new(py);
    for (node, parameters) in nodes {
        let values = PyDict::new(py);
        for parameter in parameters {
            values.set_item(parameter.name, object(py, parameter.value)?)?;
        }
        found.set_item(node, values)?;
    }
    Ok(found)
}

/// The value of a scalar without quotes, by YAML 1.1 or by rcl's parser.
#[pyfunction]
#[pyo3(signature = (text, as_rcl=false))]
fn read_plain_scalar<'py>(
    py: Python<'py>,
    text: &str,
    as_rcl: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let rule = if as_rcl {
        TypingRule::Rcl
    } else {
        TypingRule::Yaml11
    };
    object(py, rule.value_of(text))
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_parameter_file, module)?)?;
    module.add_function(wrap_pyfunction!(read_plain_scalar, module)?)
}
