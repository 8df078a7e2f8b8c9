//! Exceptions of the native module.

use pteros_runtime::error::EndpointError;
use pteros_runtime::names::{NameError, NameRule};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(pteros._native, RCLError, PyRuntimeError);
create_exception!(pteros._native, NodeNameNonExistentError, RCLError);
create_exception!(pteros._native, UnsupportedEventTypeError, RCLError);
create_exception!(pteros._native, RCLInvalidROSArgsError, RCLError);
create_exception!(pteros._native, UnknownROSArgsError, RCLError);
create_exception!(pteros._native, InvalidHandle, PyRuntimeError);
create_exception!(pteros._native, InvalidNameError, PyValueError);
create_exception!(pteros._native, NotInitializedError, PyRuntimeError);

/// A failure of the middleware.
pub(crate) fn rcl(error: impl std::fmt::Display) -> PyErr {
    RCLError::new_err(error.to_string())
}

/// A failure to create an endpoint.
pub(crate) fn endpoint(error: EndpointError) -> PyErr {
    rcl(error)
}

/// The text of a fault: first the rule in rclpy's words, which programs look for, then
/// the name, the place and the way out.
pub(crate) fn describe(fault: &NameError) -> String {
    let rule = match fault.rule {
        NameRule::Empty => "must not be empty",
        NameRule::Character(_) => "must not contain characters other than the allowed ones",
        NameRule::LeadingDigit(_) => "must not start with a number, nor any part of it",
        NameRule::NotAbsolute => "must be absolute",
        NameRule::UnknownSubstitution { .. } => "must not have an unknown substitution",
        _ => return format!("{} is invalid: {fault}", fault.kind),
    };
    format!("{} {rule}, it is invalid: {fault}", fault.kind)
}

/// An invalid name, with the attributes that the exception documents.
pub(crate) fn name(py: Python<'_>, error: &NameError) -> PyErr {
    let text = describe(error);
    let raised = InvalidNameError::new_err(text.clone());
    let value = raised.value(py);
    // Setting attributes of a new exception does not fail.
    let _ = value.setattr("kind", error.kind.to_string());
    let _ = value.setattr("name", &error.name);
    let _ = value.setattr("message", text);
    let _ = value.setattr("index", error.position);
    raised
}

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("RCLError", py.get_type::<RCLError>())?;
    module.add(
        "NodeNameNonExistentError",
        py.get_type::<NodeNameNonExistentError>(),
    )?;
    module.add(
        "UnsupportedEventTypeError",
        py.get_type::<UnsupportedEventTypeError>(),
    )?;
    module.add(
        "RCLInvalidROSArgsError",
        py.get_type::<RCLInvalidROSArgsError>(),
    )?;
    module.add("UnknownROSArgsError", py.get_type::<UnknownROSArgsError>())?;
    module.add("InvalidHandle", py.get_type::<InvalidHandle>())?;
    module.add("InvalidNameError", py.get_type::<InvalidNameError>())?;
    module.add("NotInitializedError", py.get_type::<NotInitializedError>())
}
