//! `use_sim_time`, a parameter of every node.

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
}
