//! `ParameterStore`: the parameters of a node of rclpy, in the store of the client core.

use std::sync::Arc;

use pteros::parameter::{Parameter, ParameterValue, SetParameterError};
use pteros::parameter::{ParameterDescriptor, ParameterError, ParameterFile, ParameterType};
use pteros_rcl::parameter::{
    NodeParameterOptions, ParameterDeclaration, ParameterStore as Store, QosOverridingOptions,
    QosPolicyKind, RuleSet, StoreRules, services,
};
use pteros_rcl::qos_overrides::QosOverrideError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::error::rcl;
use crate::node::Node;
use crate::parameter_hooks::{
    PythonHooks, message_object, message_of, parameter_object, parameter_of, parameters_of,
};
use crate::qos::Profile;
use crate::types;

const RESULT: &str = "rcl_interfaces/msg/SetParametersResult";
const DESCRIPTOR: &str = "rcl_interfaces/msg/ParameterDescriptor";

/// The declared parameters of a node, by the rules of rclpy. `node` is the node of rclpy,
/// whose callbacks and event publisher a change calls.
#[pyclass(frozen, module = "pteros._native")]
pub(crate) struct ParameterStore {
    store: Arc<Store>,
}

/// An exception of `rclpy.exceptions`.
fn exception<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let raised = py.import("rclpy.exceptions");
    let raised = raised.and_then(|module| module.getattr(class)?.call1(arguments));
    raised.map_or_else(|error| error, PyErr::from_value)
}

/// The exception of rclpy for an error. `hooks` are those of a change that calls callbacks.
fn raised(py: Python<'_>, error: ParameterError, hooks: Option<&PythonHooks<'_, '_>>) -> PyErr {
    match error {
        ParameterError::AlreadyDeclared { name, .. } => {
            exception(py, "ParameterAlreadyDeclaredException", (vec![name],))
        }
        ParameterError::NotDeclared { name, .. } => {
            exception(py, "ParameterNotDeclaredException", (name,))
        }
        ParameterError::NoValue { name, .. } => {
            exception(py, "ParameterUninitializedException", (name,))
        }
        ParameterError::InvalidInitialValue {
            name,
            value,
            source,
            ..
        } => {
            let parameter = match parameter_object(py, &name, value) {
                Ok(parameter) => parameter,
                Err(error) => return error,
            };
            if let (SetParameterError::WrongType { expected, .. }, Some(_)) = (&*source, hooks) {
                let expected = RuleSet::Rclpy.type_name(*expected);
                let arguments = (parameter, expected);
                return exception(py, "InvalidParameterTypeException", arguments);
            }
            let reason = RuleSet::Rclpy.reason(&source);
            match parameter.getattr("value") {
                Ok(value) => exception(py, "InvalidParameterValueException", (name, value, reason)),
                Err(error) => error,
            }
        }
        ParameterError::Set { source, .. } => match (source, hooks) {
            (SetParameterError::ReadOnly { name }, _) => {
                exception(py, "ParameterImmutableException", (name,))
            }
            (SetParameterError::Stopped, Some(hooks)) => hooks.error(),
            (source, _) => rcl(RuleSet::Rclpy.reason(&source)),
        },
        error => rcl(error),
    }
}

#[pymethods]
impl ParameterStore {
    /// `overrides` precede those of the arguments of the node and its context.
    #[new]
    #[pyo3(signature = (node, overrides, allow_undeclared, declare_from_overrides))]
    fn new(
        node: &Node,
        overrides: &Bound<'_, PyAny>,
        allow_undeclared: bool,
        declare_from_overrides: bool,
    ) -> PyResult<Self> {
        node.life.check()?;
        let mut files = Vec::new();
        for arguments in node.state.sources() {
            files.push(ParameterFile::from_arguments(arguments).map_err(rcl)?);
        }
        // Those of the node itself come last, so they win.
        let files: Vec<_> = files.iter().rev().collect();
        let options = NodeParameterOptions {
            overrides: parameters_of(overrides)?,
            rules: StoreRules {
                allow_undeclared,
                declare_from_overrides,
                rule_set: RuleSet::Rclpy,
            },
            ..NodeParameterOptions::default()
        };
        Ok(Self {
            store: options.store(node.state.path(), &files),
        })
    }

    /// The overrides as parameters, whose types no declaration has decided yet.
    fn overrides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (name, override_value) in self.store.ordered_overrides() {
            let value = override_value.text.value().clone();
            found.set_item(name, parameter_object(py, name, value)?)?;
        }
        Ok(found)
    }

    /// Declares the overrides, if the node does so.
    fn declare_overrides(&self, node: &Bound<'_, PyAny>) -> PyResult<()> {
        let hooks = PythonHooks::new(node, None);
        let declared = self.store.declare_overrides_with(&hooks);
        declared.map_err(|error| raised(node.py(), error, Some(&hooks)))
    }

    /// Declares a parameter with its default, and returns it with its value.
    fn declare<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        parameter: &Bound<'py, PyAny>,
        descriptor: &Bound<'py, PyAny>,
        ignore_override: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = node.py();
        let hooks = PythonHooks::new(node, None);
        let Parameter { name, value } = parameter_of(parameter)?;
        let (type_of, descriptor) = descriptor_of(descriptor)?;
        let declaration = ParameterDeclaration {
            name: name.clone(),
            type_of,
            default: value,
            descriptor,
            ignore_override,
        };
        let value = self.store.declare_with(&hooks, declaration, |_| None);
        let value = value.map_err(|error| raised(py, error, Some(&hooks)))?;
        parameter_object(py, &name, value)
    }

    /// Declares the QoS override parameters of an endpoint, and returns its policies by name
    /// with their values in place.
    fn override_qos<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        topic: &str,
        endpoint: (bool, &str),
        policies: Vec<String>,
        profile: &Profile,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = node.py();
        let hooks = PythonHooks::new(node, None);
        let (is_publisher, id) = endpoint;
        let entity = if is_publisher {
            "publisher"
        } else {
            "subscription"
        };
        let policies = policies
            .iter()
            .filter_map(|one| QosPolicyKind::from_word(one));
        let options = QosOverridingOptions::new(policies).id(id);
        let mut qos = profile.to_profile()?;
        let applied = options.apply_with(&self.store, &hooks, topic, entity, &mut qos);
        applied.map_err(|error| match error {
            QosOverrideError::Parameter(error) => raised(py, error, Some(&hooks)),
            error @ QosOverrideError::Refused(_) => rcl(error),
        })?;
        Profile(profile.0.updated(&qos)).to_dict(py)
    }

    /// Removes a parameter that is not read-only.
    fn undeclare(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let removed = self.store.undeclare(name);
        removed.map_err(|error| raised(py, error, None))
    }

    /// Sets all parameters of a list or none, and returns a `SetParametersResult`.
    fn set_atomically<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        parameters: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = node.py();
        let hooks = PythonHooks::new(node, Some(parameters));
        let outcome = self
            .store
            .set_atomically_with(&hooks, parameters_of(parameters)?);
        if let Err(SetParameterError::NotDeclared { names }) = outcome {
            return Err(exception(py, "ParameterNotDeclaredException", (names,)));
        }
        let result = services::result(RuleSet::Rclpy, outcome);
        message_object(py, RESULT, &result.map_err(|_| hooks.error())?)
    }

    /// Whether a parameter is declared.
    fn has(&self, name: &str) -> bool {
        self.store.has(name)
    }

    /// A parameter with its value.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.store.get(name);
        let value = value.map_err(|error| raised(py, error, None))?;
        parameter_object(py, name, value)
    }

    /// A parameter that is declared and has a value, or None.
    fn get_if_set<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.store.get_if_set(name);
        value
            .map(|value| parameter_object(py, name, value))
            .transpose()
    }

    /// The parameters whose names begin with `prefix`.
    fn with_prefix<'py>(&self, py: Python<'py>, prefix: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = self.store.with_prefix(prefix).into_iter();
        found
            .map(|Parameter { name, value }| parameter_object(py, &name, value))
            .collect()
    }

    /// The number of the type of a parameter's value.
    fn type_of(&self, py: Python<'_>, name: &str) -> PyResult<u8> {
        let found = self.store.type_of(name);
        found
            .map(ParameterType::number)
            .map_err(|error| raised(py, error, None))
    }

    /// A `ParameterDescriptor`.
    fn describe<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.store.describe(name);
        let found = found.map_err(|error| raised(py, error, None))?;
        message_object(py, DESCRIPTOR, &found)
    }

    /// Replaces a descriptor, and returns the parameter. `alternative` has the value that it
    /// takes if the descriptor rejects the present one.
    fn set_descriptor<'py>(
        &self,
        name: &str,
        descriptor: &Bound<'py, PyAny>,
        alternative: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = descriptor.py();
        let (type_of, descriptor) = descriptor_of(descriptor)?;
        let alternative = alternative.map(parameter_of).transpose()?;
        let alternative: Option<ParameterValue> = alternative.map(|parameter| parameter.value);
        let value = self
            .store
            .set_descriptor(name, type_of, descriptor, alternative);
        parameter_object(py, name, value.map_err(|error| raised(py, error, None))?)
    }

    /// Names and prefixes, a `ListParametersResult`.
    #[expect(clippy::needless_pass_by_value, reason = "extracted from a list")]
    fn list<'py>(
        &self,
        py: Python<'py>,
        prefixes: Vec<String>,
        depth: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = self.store.list(&prefixes, depth);
        message_object(py, "rcl_interfaces/msg/ListParametersResult", &result)
    }

    /// The response of class `response` to a request of a parameter service.
    fn answer<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        service: &str,
        request: &Bound<'py, PyAny>,
        response: &Bound<'py, PyType>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hooks = PythonHooks::new(node, None);
        let request = types::program_of(request.get_type().as_any())?.encode(request)?;
        let answer = services::answer(&self.store, &hooks, service, &request);
        let answer = answer.map_err(|_| hooks.error())?;
        let answer =
            answer.ok_or_else(|| PyValueError::new_err(format!("no request of {service}")))?;
        types::program_of(response.as_any())?.decode(node.py(), &answer)
    }
}

/// The static type and the descriptor of a message.
fn descriptor_of(object: &Bound<'_, PyAny>) -> PyResult<(ParameterType, ParameterDescriptor)> {
    let message: pteros_interfaces::rcl_interfaces::msg::ParameterDescriptor = message_of(object)?;
    let descriptor = ParameterDescriptor::from_message(&message);
    let type_of = match descriptor.dynamic_typing {
        true => ParameterType::NotSet,
        false => ParameterType::from_number(message.r#type).unwrap_or_default(),
    };
    Ok((type_of, descriptor))
}
