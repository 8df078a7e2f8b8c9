//! Parameters of every node: `use_sim_time` and `start_type_description_service`.

use std::sync::{Arc, Weak};

use super::descriptor::ParameterDescriptor;
use super::error::ParameterError;
use super::store::{Declaration, Follow};
use super::value::{ParameterType, ParameterValue};
use crate::clock::NodeTime;
use crate::node::NodeCore;

struct Switch(Weak<NodeTime>);

impl Follow for Switch {
    fn follow(&self, value: &ParameterValue) {
        if let (Some(time), ParameterValue::Bool(simulated)) = (self.0.upgrade(), value) {
            time.switch(*simulated);
        }
    }
}

impl NodeCore {
    /// Declares it, and follows it.
    pub(crate) fn declare_sim_time(&self, default: bool) -> Result<(), ParameterError> {
        let declaration = Declaration {
            name: "use_sim_time".into(),
            type_of: ParameterType::Bool,
            default: ParameterValue::Bool(default),
            descriptor: ParameterDescriptor::new(),
            ignore_override: false,
        };
        // Told of the value that it begins with, too.
        let switch: Arc<dyn Follow> = Arc::new(Switch(Arc::downgrade(&self.time)));
        self.parameters.declare(declaration, |_| Some(switch))?;
        Ok(())
    }

    /// Declares `start_type_description_service`; whether it is to be started.
    pub(crate) fn declare_type_descriptions(&self, default: bool) -> Result<bool, ParameterError> {
        let words = "Start the ~/get_type_description service for this node.";
        let declaration = Declaration {
            name: "start_type_description_service".into(),
            type_of: ParameterType::Bool,
            default: ParameterValue::Bool(default),
            descriptor: ParameterDescriptor::new().description(words).read_only(),
            ignore_override: false,
        };
        let value = self.parameters.declare(declaration, |_| None)?;
        Ok(value == ParameterValue::Bool(true))
    }
}
