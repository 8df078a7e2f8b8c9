//! What `NodeOptions` say about a node's parameters.

use std::sync::Arc;

use super::file::ParameterFile;
use super::store::{Override, Overrides, Parameter, ParameterStore, StoreRules};
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
    /// The store of a node: what the process says, then the node's own arguments,
    /// then its options, of which the last one counts.
    pub(crate) fn store(&self, node: String, said: &[&ParameterFile]) -> Arc<ParameterStore> {
        let mut overrides = Overrides::new();
        for said in said {
            said.add_for(&node, &mut overrides);
        }
        for Parameter { name, value } in &self.overrides {
            let given = Override {
                value: value.clone(),
                from: "the node's options".into(),
            };
            overrides.insert(name.clone(), given);
        }
        ParameterStore::new(node, self.rules, overrides)
    }
}

impl NodeOptions {
    /// Values that parameters begin with, whatever the command line and its files
    /// say. May be called several times; of values for one parameter the last
    /// counts.
    #[must_use]
    pub fn parameter_overrides(mut self, values: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.overrides.extend(values);
        self
    }

    /// Whether parameters that nobody declared can be set, which declares them with
    /// dynamic type, and read, as not set. Off by default.
    #[must_use]
    pub fn allow_undeclared_parameters(mut self, yes: bool) -> Self {
        self.parameters.rules.allow_undeclared = yes;
        self
    }

    /// Whether every parameter that has a value from the command line, a file or
    /// the options is declared at once, with dynamic type. Off by default.
    #[must_use]
    pub fn automatically_declare_parameters_from_overrides(mut self, yes: bool) -> Self {
        self.parameters.rules.declare_from_overrides = yes;
        self
    }

    /// Whether the node serves its parameters to others: `~/get_parameters`,
    /// `~/get_parameter_types`, `~/set_parameters`, `~/set_parameters_atomically`,
    /// `~/describe_parameters` and `~/list_parameters`. On by default, as in ROS 2;
    /// off, the node costs twelve endpoints less.
    #[must_use]
    pub fn start_parameter_services(mut self, yes: bool) -> Self {
        self.parameters.services = yes;
        self
    }

    /// Whether the node tells changes on `/parameter_events`. On by default.
    #[must_use]
    pub fn start_parameter_event_publisher(mut self, yes: bool) -> Self {
        self.parameters.events = yes;
        self
    }
}
