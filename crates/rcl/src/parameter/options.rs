//! Parameter options of a node.

use std::sync::Arc;

use super::parameter_file::ParameterFile;
use super::parameter_store::{
    Parameter, ParameterOverride, ParameterOverrides, ParameterStore, StoreRules, add_override,
};
use super::parameter_text::ParameterText;
use super::rules::RuleSet;

/// See the methods of `NodeOptions` in the client library.
#[derive(Clone, Debug)]
pub struct NodeParameterOptions {
    /// Overrides in the program. They come after those of the process and the node.
    pub overrides: Vec<Parameter>,
    /// Rules for undeclared parameters and overrides.
    pub rules: StoreRules,
    /// Whether the node has the six parameter services.
    pub services: bool,
    /// Whether the node publishes on `/parameter_events`.
    pub events: bool,
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
    pub fn store(&self, node: String, files: &[&ParameterFile]) -> Arc<ParameterStore> {
        let mut overrides = ParameterOverrides::new();
        for files in files {
            files.add_for(&node, &mut overrides);
        }
        for Parameter { name, value } in &self.overrides {
            let text = match self.rules.rule_set {
                RuleSet::Rclcpp => value.clone().into(),
                RuleSet::Rclpy => ParameterText::exact(value.clone()),
            };
            let override_value = ParameterOverride {
                text,
                origin: "the node's options".into(),
                order: 0,
            };
            add_override(&mut overrides, name, override_value);
        }
        ParameterStore::new(node, self.rules, overrides)
    }
}
