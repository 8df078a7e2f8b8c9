//! What a node does with its parameters.

use std::sync::Arc;

use pteros_interfaces::rcl_interfaces::msg;

use super::callbacks::ParameterCallback;
use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::handle::ParameterHandle;
use super::store::{Declaration, Parameter, ParameterStore};
use super::value::{IntoParameter, ParameterKind, ParameterType, ParameterValue};
use crate::node::Node;

impl Node {
    fn parameters(&self) -> &Arc<ParameterStore> {
        &self.core().parameters
    }

    /// Declares a parameter. It begins with the value that `-p`, a `--params-file`
    /// or the node's options have for it, else with `default`, whose type it keeps:
    /// `1.5` is a double, `1` an integer. Integers given for a double become one if
    /// nothing is lost. A [`ParameterValue`] as default makes a parameter of
    /// dynamic type.
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

    /// Declares a parameter with words and rules.
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

    /// Declares a parameter that has no sensible default: somebody must give it a
    /// value beforehand.
    ///
    /// # Errors
    /// [`ParameterError::NoValue`] if nobody did, and nothing is declared then.
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
        // A handle of one type cannot follow values of another.
        descriptor.dynamic_typing = T::TYPE == ParameterType::NotSet;
        let declaration = Declaration {
            name: name.into(),
            type_of: T::TYPE,
            default,
            descriptor,
            ignore_override: false,
        };
        let mut handle = None;
        self.parameters().declare(declaration, |value| {
            handle = T::from_parameter(value).map(|value| ParameterHandle::<T>::new(name, value));
            handle.as_ref().map(ParameterHandle::follower)
        })?;
        // The store has checked the type.
        handle.ok_or_else(|| ParameterError::NoValue {
            node: self.fully_qualified_name(),
            name: name.into(),
            type_of: T::TYPE,
        })
    }

    /// Forgets a parameter of dynamic type; its handles keep the last value.
    ///
    /// # Errors
    /// When there is none of that name, or it is read-only or of static type.
    pub fn undeclare_parameter(&self, name: &str) -> Result<(), ParameterError> {
        self.parameters().undeclare(name)
    }

    /// Whether a parameter is declared.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters().has(name)
    }

    /// The value of a parameter, whatever its type; a
    /// [handle](Node::declare_parameter) is cheaper.
    ///
    /// # Errors
    /// [`ParameterError::NotDeclared`], unless undeclared parameters are allowed.
    pub fn parameter(&self, name: &str) -> Result<ParameterValue, ParameterError> {
        self.parameters().get(name)
    }

    /// Names of the parameters that are `prefix`, or begin with it and a dot; all
    /// for an empty one. In order.
    pub fn parameter_names(&self, prefix: &str) -> Vec<String> {
        let prefixes: &[String] = match prefix {
            "" => &[],
            prefix => &[prefix.to_owned()],
        };
        self.parameters().list(prefixes, 0).names
    }

    /// What was said about a parameter when it was declared.
    ///
    /// # Errors
    /// [`ParameterError::NotDeclared`], unless undeclared parameters are allowed.
    pub fn describe_parameter(
        &self,
        name: &str,
    ) -> Result<msg::ParameterDescriptor, ParameterError> {
        self.parameters().describe(name)
    }

    /// Sets one parameter: checks, callbacks and `/parameter_events` included.
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
    /// [`ParameterError::Set`] says which one is refused.
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

    /// Calls `callback` before parameters are set, by whomever: it may add to the
    /// list, change and remove. Declaring does not call it. It runs on the thread
    /// that sets, while other changes of the node's parameters wait; it must not
    /// set or declare any itself.
    pub fn on_pre_set_parameters(
        &self,
        callback: impl Fn(&mut Vec<Parameter>) + Send + Sync + 'static,
    ) -> ParameterCallback {
        self.parameters().callbacks.add_pre_set(Box::new(callback))
    }

    /// Asks `callback` whether parameters may be set or declared with these values;
    /// its error is the reason that whoever sets them is given. All are set only if
    /// every callback agrees, so it should do nothing but judge. Otherwise as
    /// [`Node::on_pre_set_parameters`].
    pub fn on_set_parameters(
        &self,
        callback: impl Fn(&[Parameter]) -> Result<(), String> + Send + Sync + 'static,
    ) -> ParameterCallback {
        self.parameters().callbacks.add_on_set(Box::new(callback))
    }

    /// Tells `callback` which parameters were set or declared, once they are.
    /// Otherwise as [`Node::on_pre_set_parameters`].
    pub fn on_post_set_parameters(
        &self,
        callback: impl Fn(&[Parameter]) + Send + Sync + 'static,
    ) -> ParameterCallback {
        self.parameters().callbacks.add_post_set(Box::new(callback))
    }
}
