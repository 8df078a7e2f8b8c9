//! Deterministic replay: detects when a node has handled a message.
//!
//! First, reliable messages are acknowledged. Then the player calls the node's service
//! `get_parameters`, which every node of ROS 2 has. An executor takes messages before
//! later requests, and both belong to one mutually exclusive callback group. So after the
//! response, the callback has returned and its outputs are published. The second call
//! covers timers that `/clock` made due.

use std::time::Duration;

use pteros::interfaces::rcl_interfaces::srv::{GetParameters, GetParametersRequest};
use pteros::{Client, Node};

use super::options::StepOptions;
use super::state::Shared;
use crate::error::BagError;
use crate::saturating_instant::saturating_add;

/// Service calls per step.
const CALLS: usize = 2;

/// The nodes for which the player waits.
pub(super) struct Stepper {
    nodes: Vec<SteppedNode>,
    timeout: Duration,
}

struct SteppedNode {
    name: String,
    parameters: Client<GetParameters>,
}

impl Stepper {
    pub(super) fn new(node: &Node, options: &StepOptions) -> Result<Self, BagError> {
        if options.nodes.is_empty() {
            let problem = "no node to step with; name one, for example /planner";
            return Err(BagError::Invalid(problem.into()));
        }
        let mut nodes = Vec::new();
        for name in &options.nodes {
            let name = format!("/{}", name.trim_start_matches('/'));
            let service = format!("{name}/get_parameters");
            nodes.push(SteppedNode {
                parameters: node.create_client(service.as_str())?,
                name,
            });
        }
        Ok(Self {
            nodes,
            timeout: options.timeout,
        })
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Fully qualified node names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// Waits until the nodes are discovered.
    pub(super) fn wait_for_nodes(&self) -> Result<(), String> {
        let end = saturating_add(Shared::now(), self.timeout);
        for node in &self.nodes {
            let left = end.saturating_duration_since(Shared::now());
            if !node.parameters.wait_for_service(left) {
                return Err(format!(
                    "--step-with {}: no such node after {} s, or one without parameter services; start it first, or give it more time with --step-timeout",
                    node.name,
                    self.timeout.as_secs_f64()
                ));
            }
        }
        Ok(())
    }

    /// Waits until every node has handled what it has received.
    pub(super) fn wait_until_done(&self) -> Result<(), String> {
        for _ in 0..CALLS {
            for node in &self.nodes {
                let request = GetParametersRequest::default();
                node.parameters
                    .call(&request, self.timeout)
                    .map_err(|error| format!("node {} is not done: {error}", node.name))?;
            }
        }
        Ok(())
    }
}
