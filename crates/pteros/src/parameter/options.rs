//! Parameter options of a node.

use std::sync::Arc;

use super::parameter_file::ParameterFile;
use super::parameter_store::{
    Parameter, ParameterOverride, ParameterOverrides, ParameterStore, StoreRules,
};
use crate::node::NodeOptions;

/// See the methods of [`NodeOptions`].
#[derive(Clone, Debug)]
pub(crate) struct NodeParameterOptions {
    overrides: Vec<Parameter>,
    rules: StoreRules,
    pub(crate) services: bool,
    pub(crate) events: bool,
}

impl Default for NodeParameterOptions {
    fn default() -> Self {
        Self {
            overrides: Vec::new(),
            rules: StoreRules::default(),
            services: true,
            events: true,
        }
    }
}

impl NodeParameterOptions {
    /// Creates the parameter store of a node. Overrides come from the process
    /// arguments, the node's own arguments and its options; the last one counts.
    pub(crate) fn store(&self, node: String, files: &[&ParameterFile]) -> Arc<ParameterStore> {
        let mut overrides = ParameterOverrides::new();
        for files in files {
            files.add_for(&node, &mut overrides);
        }
        for Parameter { name, value } in &self.overrides {
            let override_value = ParameterOverride {
                value: value.clone(),
                origin: "the node's options".into(),
            };
            overrides.insert(name.clone(), override_value);
        }
        ParameterStore::new(node, self.rules, overrides)
    }
}

impl NodeOptions {
    /// Sets parameter overrides. They take precedence over the command line and its
    /// files. May be called several times; the last value for a parameter counts.
    #[must_use]
    pub fn parameter_overrides(mut self, values: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.overrides.extend(values);
        self
    }

    /// Sets whether undeclared parameters can be set, which declares them with
    /// dynamic type, and read, as not set. Off by default.
    #[must_use]
    pub fn allow_undeclared_parameters(mut self, yes: bool) -> Self {
        self.parameters.rules.allow_undeclared = yes;
        self
    }

    /// Sets whether every parameter with an override is declared at once, with
    /// dynamic type. Off by default.
    #[must_use]
    pub fn automatically_declare_parameters_from_overrides(mut self, yes: bool) -> Self {
        self.parameters.rules.declare_from_overrides = yes;
        self
    }

    /// Sets whether the node offers the parameter services `~/get_parameters`,
    /// `~/get_parameter_types`, `~/set_parameters`, `~/set_parameters_atomically`,
    /// `~/describe_parameters` and `~/list_parameters`. On by default, as in ROS 2.
    /// Without them the node has twelve endpoints less.
    #[must_use]
    pub fn start_parameter_services(mut self, yes: bool) -> Self {
        self.parameters.services = yes;
        self
    }

    /// Sets whether the node publishes parameter events on `/parameter_events`. On
    /// by default.
    #[must_use]
    pub fn start_parameter_event_publisher(mut self, yes: bool) -> Self {
        self.parameters.events = yes;
        self
    }
}
