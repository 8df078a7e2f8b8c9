//! What topics and endpoints have beyond the common policies: keys with
//! instances that end, content filters, paces of sending. Drawn where the plan
//! has them, so that the other seeds stay what they were.

use std::time::Duration as Span;

use pteros_rmw::EndpointSpec;
use pteros_rmw::content_filter::{FilterSpec, MessageType};
use pteros_rmw::flow::FlowController;
use pteros_rmw::instance::{Ending, Keying};
use pteros_rtps::time::Duration;

use crate::message::{self, INSTANCES, instance_of};
use crate::world::World;

/// The flow controller of paced writers.
pub const FLOW: &str = "flow";

/// As many bytes as one large message has, every 10 ms.
const FLOW_BYTES: u32 = 100_000;

/// How long a subscription may bear to wait for small messages.
const BUDGET_MILLIS_MAX: i64 = 50;

/// See [`FLOW`].
pub fn flow() -> FlowController {
    FlowController::new(FLOW)
        .bytes_per_period(FLOW_BYTES)
        .period(Span::from_millis(10))
}

/// What an endpoint's filter asks for: the instances below a number.
pub fn wanted(spec: &EndpointSpec) -> Option<u32> {
    let filter = spec.content_filter.as_ref()?;
    filter.parameters.first()?.parse().ok()
}

impl World {
    /// An endpoint as the plan's topics have them.
    pub(crate) fn varied(&self, mut spec: EndpointSpec, is_writer: bool) -> EndpointSpec {
        let mut script = self.script.lock();
        if self.plan.keyed {
            if let Some(reader) = message::ty(true).key_reader() {
                spec.keying = Keying::Keyed(reader);
            }
            // Counted for each instance.
            spec.qos.deadline = Duration::INFINITE;
        }
        if self.plan.filtered {
            spec.message_type = MessageType::Dynamic(message::ty(self.plan.keyed).clone());
            if !is_writer && script.random.bool() {
                let below = script.random.u32(1..INSTANCES);
                spec.content_filter = Some(FilterSpec {
                    expression: "instance < %0".into(),
                    parameters: vec![below.to_string()],
                });
            }
        }
        if self.plan.paced && (script.random.bool() || !is_writer) {
            // What few subscriptions would not bear.
            let budget = match is_writer {
                true => script.random.i64(1..=BUDGET_MILLIS_MAX),
                false => script
                    .random
                    .i64(BUDGET_MILLIS_MAX - 10..2 * BUDGET_MILLIS_MAX),
            };
            spec.qos.latency_budget = Duration::from_millis(budget);
        }
        spec
    }

    /// Now and then a writer of a keyed topic ends the instance that it wrote
    /// last, instead of writing.
    pub(crate) fn drawn_end(&self, writer: usize) -> Option<(Ending, u32)> {
        if !self.plan.keyed {
            return None;
        }
        let (last, is_end) = {
            let cast = self.cast.lock();
            let role = &cast.writers[writer];
            (role.written, role.ends.contains_key(&role.written))
        };
        let draw = self.script.lock().random.u32(0..24);
        let ending = match draw {
            0 => Ending::Dispose,
            1 => Ending::Unregister,
            _ => return None,
        };
        let instance = instance_of(u32::try_from(writer).unwrap_or(0), last);
        (last > 0 && !is_end).then_some((ending, instance))
    }
}
