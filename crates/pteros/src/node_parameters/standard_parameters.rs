//! Standard parameters of every node: `use_sim_time` and
//! `start_type_description_service`.

use std::sync::{Arc, Weak};

use crate::node::NodeCore;
use crate::parameter::ParameterDescriptor;
use crate::parameter::ParameterError;
use crate::parameter::{ParameterDeclaration, ParameterObserver};
use crate::parameter::{ParameterType, ParameterValue};
use crate::time_source::NodeTime;

struct SimTimeObserver(Weak<NodeTime>);

impl ParameterObserver for SimTimeObserver {
    fn handle_value(&self, value: &ParameterValue) {
        if let (Some(time), ParameterValue::Bool(simulated)) = (self.0.upgrade(), value) {
            time.set_simulated(*simulated);
        }
    }
}

impl NodeCore {
    /// Declares `use_sim_time` and observes it.
    pub(crate) fn declare_sim_time(&self, default: bool) -> Result<(), ParameterError> {
        let declaration = ParameterDeclaration {
            name: "use_sim_time".into(),
            type_of: ParameterType::Bool,
            default: ParameterValue::Bool(default),
            descriptor: ParameterDescriptor::new(),
            ignore_override: false,
        };
        // The observer also receives the initial value.
        let observer: Arc<dyn ParameterObserver> =
            Arc::new(SimTimeObserver(Arc::downgrade(&self.time)));
        self.parameters.declare(declaration, |_| Some(observer))?;
        Ok(())
    }

    /// Declares `start_type_description_service`. Returns its value if an override or
    /// the node's option sets it.
    pub(crate) fn declare_type_descriptions(
        &self,
        option: Option<bool>,
    ) -> Result<Option<bool>, ParameterError> {
        let name = "start_type_description_service";
        let is_set = option.is_some() || self.parameters.overrides().contains_key(name);
        let description = "Start the ~/get_type_description service for this node.";
        let declaration = ParameterDeclaration {
            name: name.into(),
            type_of: ParameterType::Bool,
            default: ParameterValue::Bool(option.unwrap_or(true)),
            descriptor: ParameterDescriptor::new()
                .description(description)
                .read_only(),
            ignore_override: false,
        };
        let value = self.parameters.declare(declaration, |_| None)?;
        Ok(is_set.then(|| value == ParameterValue::Bool(true)))
    }
}
