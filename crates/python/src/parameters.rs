//! Parameter files and parameter values of the command line.

use pteros::parameter::{ParameterFile, ParameterType, ParameterValue, TypingRule, tagged_scalar};
use pteros_msg::yaml::{YamlContent, YamlNode, YamlPosition};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

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

/// The value of an object as a parameter of type `of`.
///
/// # Errors
/// Of Python, for an element of another type, size or encoding.
pub(crate) fn value_of(value: &Bound<'_, PyAny>, of: ParameterType) -> PyResult<ParameterValue> {
    Ok(match of {
        ParameterType::NotSet => ParameterValue::NotSet,
        ParameterType::Bool => ParameterValue::Bool(value.extract()?),
        ParameterType::Integer => ParameterValue::Integer(value.extract()?),
        ParameterType::Double => ParameterValue::Double(value.extract()?),
        ParameterType::String => ParameterValue::String(value.extract()?),
        ParameterType::ByteArray => ParameterValue::ByteArray(items(value, |item| {
            match item.cast::<PyBytes>()?.as_bytes() {
                [byte] => Ok(*byte),
                other => Err(PyValueError::new_err(format!(
                    "an element of a byte array has {} bytes; give one byte each",
                    other.len()
                ))),
            }
        })?),
        ParameterType::BoolArray => ParameterValue::BoolArray(items(value, |it| it.extract())?),
        ParameterType::IntegerArray => {
            ParameterValue::IntegerArray(items(value, |it| it.extract())?)
        }
        ParameterType::DoubleArray => ParameterValue::DoubleArray(items(value, |it| it.extract())?),
        ParameterType::StringArray => ParameterValue::StringArray(items(value, |it| it.extract())?),
    })
}

/// The values of what a Python object iterates over.
pub(crate) fn items<T>(
    list: &Bound<'_, PyAny>,
    read: impl Fn(Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    list.try_iter()?.map(|item| read(item?)).collect()
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

/// The value of a YAML document by YAML 1.1; `None` if it is empty.
#[pyfunction]
fn load_yaml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let node = py.detach(|| YamlNode::read_with_aliases(text));
    yaml_object(
        py,
        &node.map_err(|error| PyValueError::new_err(error.to_string()))?,
    )
}

fn yaml_object<'py>(py: Python<'py>, node: &YamlNode) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |message: String| {
        let YamlPosition { line, column } = node.place;
        PyValueError::new_err(format!("line {line}, column {column}: {message}"))
    };
    let tag = match node.tag.as_deref() {
        None => None,
        Some("!") => Some("str"),
        Some(tag) => Some(
            tag.strip_prefix("tag:yaml.org,2002:")
                .ok_or_else(|| wrong(format!("the tag '{tag}' is not supported")))?,
        ),
    };
    match (&node.content, tag) {
        (YamlContent::List(items), None | Some("seq")) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(yaml_object(py, item)?)?;
            }
            Ok(list.into_any())
        }
        (YamlContent::Mapping(entries), None | Some("map")) => {
            let mapping = PyDict::new(py);
            for entry in entries {
                let key = if entry.is_key_quoted {
                    ParameterValue::String(entry.key.as_str().into())
                } else {
                    plain(&entry.key)
                };
                mapping.set_item(object(py, key)?, yaml_object(py, &entry.value)?)?;
            }
            Ok(mapping.into_any())
        }
        (YamlContent::Scalar { text, quoted }, tag) => {
            let value = match tag {
                None if *quoted => Some(ParameterValue::String(text.as_str().into())),
                None => Some(plain(text)),
                Some(tag) => tagged_scalar(text, tag),
            };
            let refused = || wrong(format!("'{text}' is no !!{}", tag.unwrap_or_default()));
            object(py, value.ok_or_else(refused)?)
        }
        (_, tag) => Err(wrong(format!(
            "{} is no !!{}",
            node.found_text(),
            tag.unwrap_or_default()
        ))),
    }
}

/// The value of a scalar without quotes and tag.
fn plain(text: &str) -> ParameterValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ParameterValue::NotSet,
        text => TypingRule::Yaml11.value_of(text),
    }
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_parameter_file, module)?)?;
    module.add_function(wrap_pyfunction!(load_yaml, module)?)?;
    module.add_function(wrap_pyfunction!(read_plain_scalar, module)?)
}
