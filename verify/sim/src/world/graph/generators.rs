//! Random extensions of endpoints: keys, content filters, flow control.
//!
//! They are drawn from random numbers of their own, so that the graphs of older
//! seeds do not change.

use std::time::Duration as Span;

use pteros_rtps::time::Duration;
use pteros_runtime::EndpointSpec;
use pteros_runtime::content_filter::{FilterSpec, MessageType};
use pteros_runtime::flow_controller::FlowController;
use pteros_runtime::instance::{InstanceEnd, TopicKey};

use super::message::{self, INSTANCES, instance_of};
use super::world::GraphWorld;

/// Name of the flow controller of asynchronous writers.
pub const FLOW_CONTROLLER: &str = "flow";

/// Bytes per 10 ms period: as many as one large message has.
const FLOW_BYTES: u32 = 100_000;

/// Maximum latency budget that a writer offers.
const LATENCY_BUDGET_MILLIS_MAX: i64 = 50;

/// The flow controller [`FLOW_CONTROLLER`].
pub fn flow() -> FlowController {
    FlowController::new(FLOW_CONTROLLER)
        .bytes_per_period(FLOW_BYTES)
        .period(Span::from_millis(10))
}

/// The bound of an endpoint's content filter: it passes the instances below.
pub fn filter_bound(spec: &EndpointSpec) -> Option<u32> {
    let filter = spec.content_filter.as_ref()?;
    filter.parameters.first()?.parse().ok()
}

impl GraphWorld {
    /// Adds the random extensions of the plan to an endpoint.
    pub fn with_random_extensions(&self, mut spec: EndpointSpec, is_writer: bool) -> EndpointSpec {
        let mut schedule = self.schedule.lock();
        if self.plan.keyed {
            if let Some(reader) = message::ty(true).key_reader() {
                spec.topic_key = TopicKey::WithKey(reader);
            }
            // On a keyed topic the deadline counts per instance.
            spec.qos.deadline = Duration::INFINITE;
        }
        if self.plan.filtered {
            spec.message_type = MessageType::Dynamic(message::ty(self.plan.keyed).clone());
            if !is_writer && schedule.random.bool() {
                let below = schedule.random.u32(1..INSTANCES);
                spec.content_filter = Some(FilterSpec {
                    expression: "instance < %0".into(),
                    parameters: vec![below.to_string()],
                });
            }
        }
        if self.plan.flow_controlled && (schedule.random.bool() || !is_writer) {
            // Readers request more than most writers offer, so that most pairs
            // match.
            let budget = if is_writer {
                schedule.random.i64(1..=LATENCY_BUDGET_MILLIS_MAX)
            } else {
                schedule
                    .random
                    .i64(LATENCY_BUDGET_MILLIS_MAX - 10..2 * LATENCY_BUDGET_MILLIS_MAX)
            };
            spec.qos.latency_budget = Duration::from_millis(budget);
        }
        spec
    }

    /// Now and then a writer of a keyed topic ends the instance of its last message
    /// instead of writing.
    pub fn random_instance_end(&self, writer: usize) -> Option<(InstanceEnd, u32)> {
        if !self.plan.keyed {
            return None;
        }
        let (last, is_end) = {
            let model = self.model.lock();
            let record = &model.writers[writer];
            (record.written, record.ends.contains_key(&record.written))
        };
        let draw = self.schedule.lock().random.u32(0..24);
        let ending = match draw {
            0 => InstanceEnd::Dispose,
            1 => InstanceEnd::Unregister,
            _ => return None,
        };
        let instance = instance_of(u32::try_from(writer).unwrap_or(0), last);
        (last > 0 && !is_end).then_some((ending, instance))
    }
}
