//! Parameters whose names or types a node does not know beforehand, as upstream nodes
//! that declare their overrides take them.

use pteros::component::ComponentError;
use pteros::parameter::ParameterValue;
use pteros::prelude::*;

/// Options of a node that declares whatever parameters it is given.
pub(crate) fn declaring_overrides(options: NodeOptions) -> NodeOptions {
    options
        .allow_undeclared_parameters(true)
        .automatically_declare_parameters_from_overrides(true)
}

/// The value of a parameter, declared with this default unless it was given.
pub(crate) fn given_or(
    node: &Node,
    name: &str,
    default: impl Into<ParameterValue>,
) -> Result<ParameterValue, ComponentError> {
    if !node.has_parameter(name) {
        let default: ParameterValue = default.into();
        node.declare_parameter(name, default)?;
    }
    Ok(node.parameter(name)?)
}

/// An integer or a floating-point number.
pub(crate) fn number(name: &str, value: &ParameterValue) -> Result<f64, String> {
    match value {
        #[allow(clippy::cast_precision_loss, reason = "rates and limits are small")]
        ParameterValue::Integer(number) => Ok(*number as f64),
        ParameterValue::Double(number) if number.is_finite() => Ok(*number),
        other => Err(wrong(name, other, "a number")),
    }
}

pub(crate) fn truth(name: &str, value: &ParameterValue) -> Result<bool, String> {
    match value {
        ParameterValue::Bool(truth) => Ok(*truth),
        other => Err(wrong(name, other, "true or false")),
    }
}

pub(crate) fn text(name: &str, value: ParameterValue) -> Result<String, String> {
    match value {
        ParameterValue::String(text) => Ok(text),
        other => Err(wrong(name, &other, "a string")),
    }
}

/// Strings; an empty list has no type of its own.
pub(crate) fn texts(name: &str, value: ParameterValue) -> Result<Vec<String>, String> {
    let wanted = pteros::parameter::ParameterType::StringArray;
    match value.coerced(wanted) {
        ParameterValue::StringArray(texts) => Ok(texts),
        ParameterValue::NotSet => Ok(Vec::new()),
        other => Err(wrong(name, &other, "a list of strings")),
    }
}

fn wrong(name: &str, value: &ParameterValue, wanted: &str) -> String {
    format!(
        "parameter \"{name}\" is {:?}; it takes {wanted}",
        value.parameter_type()
    )
}
