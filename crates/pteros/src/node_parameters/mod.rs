//! Node methods for parameters, as in rclcpp's `NodeParameters`.

mod client;
mod services;
mod standard_parameters;

use std::sync::Arc;

use pteros_interfaces::rcl_interfaces::msg;

use crate::node::Node;
use crate::parameter::ParameterCallbackHandle;
use crate::parameter::ParameterDescriptor;
use crate::parameter::ParameterHandle;
use crate::parameter::{IntoParameter, ParameterKind, ParameterType, ParameterValue};
use crate::parameter::{Parameter, ParameterDeclaration, ParameterStore};
use crate::parameter::{ParameterError, SetParameterError};

pub use client::{ParameterClient, SetParameterResult};
pub(crate) use services::ParameterServices;

impl Node {
    fn parameters(&self) -> &Arc<ParameterStore> {
        &self.core().parameters
    }

    /// Declares a parameter. Its initial value is the override from `-p`, a
    /// `--params-file` or the node's options, otherwise `default`. It keeps the
    /// type of `default`: `1.5` is a double, `1` an integer. An integer given for a
    /// double is converted if nothing is lost. A [`ParameterValue`] as default
    /// declares a parameter of dynamic type.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn declare_parameter<D: IntoParameter>(
        &self,
        name: &str,
        default: D,
    ) -> Result<ParameterHandle<D::Kind>, ParameterError> {
        self.declare_parameter_with(name, default, ParameterDescriptor::default())
    }

    /// Declares a parameter with a descriptor.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn declare_parameter_with<D: IntoParameter>(
        &self,
        name: &str,
        default: D,
        descriptor: ParameterDescriptor,
    ) -> Result<ParameterHandle<D::Kind>, ParameterError> {
        let default = default.into_kind().into_parameter();
        self.declare::<D::Kind>(name, default, descriptor)
    }

    /// Declares the parameters `namespace.name`, with defaults of one type, as rclcpp's
    /// `declare_parameters`. An empty namespace adds no prefix.
    ///
    /// The handles have the order of `defaults`. Defaults that are [`ParameterValue`]s
    /// may differ in type; the parameters are of dynamic type then.
    ///
    /// ```no_run
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("wheels")?;
    /// let gains = node.declare_parameters("gains", [("p", 1.5), ("i", 0.1)])?;
    /// assert_eq!(gains[1].name(), "gains.i");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first [`ParameterError`]; the parameters before it stay declared.
    pub fn declare_parameters<N: AsRef<str>, D: IntoParameter>(
        &self,
        namespace: &str,
        defaults: impl IntoIterator<Item = (N, D)>,
    ) -> Result<Vec<ParameterHandle<D::Kind>>, ParameterError> {
        let declare = |(name, default): (N, D)| match namespace {
            "" => self.declare_parameter(name.as_ref(), default),
            _ => self.declare_parameter(&format!("{namespace}.{}", name.as_ref()), default),
        };
        defaults.into_iter().map(declare).collect()
    }

    /// Declares a parameter without a default: an override must give it a value.
    ///
    /// # Errors
    /// [`ParameterError::NoValue`] without an override; nothing is declared then.
    pub fn declare_required_parameter<T: ParameterKind>(
        &self,
        name: &str,
        descriptor: ParameterDescriptor,
    ) -> Result<ParameterHandle<T>, ParameterError> {
        let store = self.parameters();
        if !store.overrides().contains_key(name) {
            return Err(ParameterError::NoValue {
                node: self.fully_qualified_name(),
                name: name.into(),
                type_of: T::TYPE,
            });
        }
        self.declare::<T>(name, ParameterValue::NotSet, descriptor)
    }

    fn declare<T: ParameterKind>(
        &self,
        name: &str,
        default: ParameterValue,
        mut descriptor: ParameterDescriptor,
    ) -> Result<ParameterHandle<T>, ParameterError> {
        // A typed handle cannot follow values of another type.
        descriptor.dynamic_typing = T::TYPE == ParameterType::NotSet;
        let declaration = ParameterDeclaration {
            name: name.into(),
            type_of: T::TYPE,
            default,
            descriptor,
            ignore_override: false,
        };
        let mut handle = None;
        self.parameters().declare(declaration, |value| {
            handle = T::from_parameter(value).map(|value| ParameterHandle::<T>::new(name, value));
            handle.as_ref().map(ParameterHandle::observer)
        })?;
        // The store has checked the type.
        handle.ok_or_else(|| ParameterError::NoValue {
            node: self.fully_qualified_name(),
            name: name.into(),
            type_of: T::TYPE,
        })
    }

    /// Undeclares a parameter of dynamic type; its handles keep the last value.
    ///
    /// # Errors
    /// If it is not declared, read-only or of static type.
    pub fn undeclare_parameter(&self, name: &str) -> Result<(), ParameterError> {
        self.parameters().undeclare(name)
    }

    /// Whether a parameter is declared.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters().has(name)
    }

    /// Returns the value of a parameter of any type; a
    /// [handle](Node::declare_parameter) is cheaper.
    ///
    /// # Errors
    /// [`ParameterError::NotDeclared`], unless undeclared parameters are allowed.
    pub fn parameter(&self, name: &str) -> Result<ParameterValue, ParameterError> {
        self.parameters().get(name)
    }

    /// Returns the sorted names of parameters that equal `prefix` or begin with it
    /// and a dot; all for an empty prefix.
    pub fn parameter_names(&self, prefix: &str) -> Vec<String> {
        let prefixes: &[String] = match prefix {
            "" => &[],
            prefix => &[prefix.to_owned()],
        };
        self.parameters().list(prefixes, 0).names
    }

    /// Returns the descriptor of a parameter.
    ///
    /// # Errors
    /// [`ParameterError::NotDeclared`], unless undeclared parameters are allowed.
    pub fn describe_parameter(
        &self,
        name: &str,
    ) -> Result<msg::ParameterDescriptor, ParameterError> {
        self.parameters().describe(name)
    }

    /// Sets one parameter, with checks, callbacks and a parameter event.
    ///
    /// # Errors
    /// [`ParameterError::Set`].
    pub fn set_parameter(
        &self,
        name: &str,
        value: impl Into<ParameterValue>,
    ) -> Result<(), ParameterError> {
        self.set_parameters_atomically(vec![Parameter::new(name, value)])
    }

    /// Sets all of these parameters, or none.
    ///
    /// # Errors
    /// [`ParameterError::Set`] reports the rejected parameter.
    pub fn set_parameters_atomically(
        &self,
        parameters: Vec<Parameter>,
    ) -> Result<(), ParameterError> {
        let set = self.parameters().set_atomically(parameters);
        set.map_err(|source: SetParameterError| ParameterError::Set {
            node: self.fully_qualified_name(),
            source,
        })
    }

    // --- callbacks ---

    /// Registers a callback that runs before parameters are set by anyone. It may
    /// add to, change or remove from the list. Declaring does not call it. It runs
    /// on the thread that sets, while other parameter changes of the node wait. It
    /// must not set or declare parameters itself.
    pub fn add_pre_set_parameters_callback(
        &self,
        callback: impl Fn(&mut Vec<Parameter>) + Send + Sync + 'static,
    ) -> ParameterCallbackHandle {
        self.parameters().callbacks.add_pre_set(Box::new(callback))
    }

    /// Registers a callback that accepts or rejects values before they are set or
    /// declared. Its error is the reason that the caller receives. Values are set
    /// only if every callback accepts, so it should only validate. Otherwise as
    /// [`Node::add_pre_set_parameters_callback`].
    pub fn add_on_set_parameters_callback(
        &self,
        callback: impl Fn(&[Parameter]) -> Result<(), String> + Send + Sync + 'static,
    ) -> ParameterCallbackHandle {
        self.parameters().callbacks.add_on_set(Box::new(callback))
    }

    /// Registers a callback that runs after parameters were set or declared.
    /// Otherwise as [`Node::add_pre_set_parameters_callback`].
    pub fn add_post_set_parameters_callback(
        &self,
        callback: impl Fn(&[Parameter]) + Send + Sync + 'static,
    ) -> ParameterCallbackHandle {
        self.parameters().callbacks.add_post_set(Box::new(callback))
    }
}
