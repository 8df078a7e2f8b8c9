//! The calls of a parameter change into Python: the callbacks of a node and the publisher
//! of its parameter events. Also the Python objects of parameters.

use std::cell::RefCell;

use pteros::parameter::{Parameter, ParameterType, ParameterValue, SetParameterError};
use pteros_interfaces::rcl_interfaces::msg;
use pteros_msg::{Decode, Encode, Representation};
use pteros_rcl::parameter::{CheckCall, ParameterHooks, PreSetCall};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyType};

use crate::ffi::call_back;
use crate::{parameters, types};

/// The Python message of one in Rust.
pub(crate) fn message_object<'py>(
    py: Python<'py>,
    type_name: &str,
    message: &impl Encode,
) -> PyResult<Bound<'py, PyAny>> {
    let payload = pteros_msg::to_payload(message, Representation::Xcdr1);
    types::program(py, type_name)?.decode(py, &payload)
}

/// The message in Rust of one in Python.
pub(crate) fn message_of<M: Decode>(object: &Bound<'_, PyAny>) -> PyResult<M> {
    let payload = types::program_of(object.get_type().as_any())?.encode(object)?;
    pteros_msg::from_payload(&payload).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn parameter_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "rclpy.parameter", "Parameter")
}

/// The object of a parameter.
pub(crate) fn parameter_object<'py>(
    py: Python<'py>,
    name: &str,
    value: ParameterValue,
) -> PyResult<Bound<'py, PyAny>> {
    let number = value.parameter_type().number();
    let value = match value {
        ParameterValue::ByteArray(bytes) => {
            let items = bytes.iter().map(|byte| PyBytes::new(py, &[*byte]));
            PyList::new(py, items)?.into_any()
        }
        value => parameters::object(py, value)?,
    };
    parameter_class(py)?.call_method1("_of", (name, number, value))
}

/// The parameter of an object.
///
/// # Errors
/// TypeError: it is no `Parameter`. ValueError: an integer has more than 64 bits, or a text
/// has no form in UTF-8.
pub(crate) fn parameter_of(object: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    let class = parameter_class(object.py())?;
    if !object.is_instance(class)? {
        return Err(PyTypeError::new_err(format!(
            "parameter must be instance of type '{}', got {}",
            class.repr()?,
            object.repr()?
        )));
    }
    let name: String = object.getattr("name")?.extract()?;
    let number = object.getattr("type_")?.getattr("value")?.extract()?;
    let of = ParameterType::from_number(number).unwrap_or_default();
    let value = object.getattr("value")?;
    let value = parameters::value_of(&value, of).map_err(|cause| {
        let py = object.py();
        let text = format!("parameter '{name}': {}", cause.value(py));
        let error = if cause.is_instance_of::<PyOverflowError>(py) {
            PyValueError::new_err(format!("{text}; use at most 64 bits"))
        } else if cause.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text)
        } else {
            PyValueError::new_err(text)
        };
        error.set_cause(py, Some(cause));
        error
    })?;
    Ok(Parameter { name, value })
}

/// The parameters of a list of objects.
///
/// # Errors
/// See [`parameter_of`].
pub(crate) fn parameters_of(list: &Bound<'_, PyAny>) -> PyResult<Vec<Parameter>> {
    parameters::items(list, |item| parameter_of(&item))
}

/// The callbacks of a node of rclpy during one change. They are the lists of its attributes,
/// the latest callback first.
pub(crate) struct PythonHooks<'a, 'py> {
    node: &'a Bound<'py, PyAny>,
    /// The list that the caller gave.
    given: Option<Bound<'py, PyAny>>,
    /// The objects of the parameters now.
    objects: RefCell<Option<Bound<'py, PyAny>>>,
    error: RefCell<Option<PyErr>>,
}

impl<'a, 'py> PythonHooks<'a, 'py> {
    /// For a change of a node, with the list of parameters of the caller.
    pub(crate) fn new(node: &'a Bound<'py, PyAny>, given: Option<&Bound<'py, PyAny>>) -> Self {
        Self {
            node,
            given: given.cloned(),
            objects: RefCell::default(),
            error: RefCell::default(),
        }
    }

    /// The exception that stopped the change.
    pub(crate) fn error(&self) -> PyErr {
        let error = self.error.take();
        error.unwrap_or_else(|| crate::error::rcl(SetParameterError::Stopped))
    }

    /// An exception of Python stops the change.
    fn run<T>(&self, call: impl FnOnce() -> PyResult<T>) -> Result<T, SetParameterError> {
        call().map_err(|error| {
            *self.error.borrow_mut() = Some(error);
            SetParameterError::Stopped
        })
    }

    /// The callbacks of an attribute, one by one.
    fn callbacks<C>(
        &self,
        attribute: &str,
        of: impl Fn(PyResult<Bound<'py, PyAny>>) -> C,
    ) -> Vec<C> {
        let list = self
            .node
            .getattr(attribute)
            .and_then(|list| list.try_iter());
        match list {
            Ok(list) => list.map(of).collect(),
            Err(error) => vec![of(Err(error))],
        }
    }

    fn call(
        &self,
        callback: &PyResult<Bound<'py, PyAny>>,
        list: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.node.py();
        let callback = callback.as_ref().map_err(|error| error.clone_ref(py))?;
        call_back(callback, Some(&(list,).into_pyobject(py)?))
    }

    fn list(&self, parameters: &[Parameter]) -> PyResult<Bound<'py, PyAny>> {
        if let Some(list) = &*self.objects.borrow() {
            return Ok(list.clone());
        }
        let py = self.node.py();
        let list = PyList::empty(py);
        for Parameter { name, value } in parameters {
            list.append(parameter_object(py, name, value.clone())?)?;
        }
        *self.objects.borrow_mut() = Some(list.clone().into_any());
        Ok(list.into_any())
    }

    /// Whether a result accepts, else the reason. Any object that has the attribute
    /// `successful` is one.
    fn judge(&self, result: &Bound<'py, PyAny>) -> PyResult<Result<(), String>> {
        let py = self.node.py();
        let Some(is_successful) = result.getattr_opt("successful")? else {
            let text = c"Callback returned an invalid type, it should return SetParametersResult.";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
            return Ok(Err("Callback returned an invalid type".into()));
        };
        if is_successful.is_truthy()? {
            return Ok(Ok(()));
        }
        let reason = result.getattr_opt("reason")?;
        Ok(Err(
            reason.map_or_else(String::new, |reason| reason.to_string())
        ))
    }
}

impl ParameterHooks for PythonHooks<'_, '_> {
    fn pre_set(&self) -> Vec<PreSetCall<'_>> {
        // A new change begins.
        *self.objects.borrow_mut() = self.given.clone();
        self.callbacks(
            "_pre_set_parameters_callbacks",
            |callback| -> PreSetCall<'_> {
                Box::new(move |parameters| {
                    self.run(|| {
                        let given = match &self.given {
                            Some(list) => list.clone(),
                            None => self.list(parameters)?,
                        };
                        let changed = self.call(&callback, given)?;
                        *parameters = parameters_of(&changed)?;
                        *self.objects.borrow_mut() = None;
                        Ok(())
                    })
                })
            },
        )
    }

    fn on_set(&self) -> Vec<CheckCall<'_>> {
        self.callbacks(
            "_on_set_parameters_callbacks",
            |callback| -> CheckCall<'_> {
                Box::new(move |parameters| {
                    let judged = self.run(|| {
                        let result = self.call(&callback, self.list(parameters)?)?;
                        self.judge(&result)
                    });
                    judged?.map_err(|reason| SetParameterError::Rejected { reason })
                })
            },
        )
    }

    fn post_set(&self) -> Vec<CheckCall<'_>> {
        self.callbacks(
            "_post_set_parameters_callbacks",
            |callback| -> CheckCall<'_> {
                Box::new(move |parameters| {
                    self.run(|| self.call(&callback, self.list(parameters)?).map(drop))
                })
            },
        )
    }

    fn publish_event(&self, mut event: msg::ParameterEvent) -> Result<(), SetParameterError> {
        self.run(|| {
            let clock = self.node.getattr("_clock")?;
            let nanos: i64 = clock
                .call_method0("now")?
                .getattr("nanoseconds")?
                .extract()?;
            event.stamp = pteros_rcl::time::Time::from_nanos(nanos).into();
            let payload = pteros_msg::to_payload(&event, Representation::Xcdr1);
            let publisher = self.node.getattr("_parameter_event_publisher")?;
            let payload = PyBytes::new(self.node.py(), &payload);
            publisher.call_method1("publish", (payload,)).map(drop)
        })
    }
}
