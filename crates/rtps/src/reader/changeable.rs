//! Changeable QoS policies of a reader and of its matched writers (DDS 1.4 §2.2.3,
//! column "changeable").

use super::{Reader, TIMER_DEADLINE};
use crate::id::Guid;
use crate::qos::EndpointQos;
use crate::time::Instant;

impl Reader {
    /// Applies the changeable policies; the others stay as they are.
    ///
    /// A new deadline counts from now if `runs`, that is if a sample has started
    /// the old one. Otherwise it counts from the first sample.
    pub fn set_qos(&mut self, now: Instant, qos: &EndpointQos, runs: bool) {
        self.clock = now;
        let own = &mut self.config.qos;
        let deadline = own.deadline;
        own.deadline = qos.deadline;
        own.latency_budget = qos.latency_budget;
        own.partition.clone_from(&qos.partition);
        own.time_based_filter = qos.time_based_filter;
        own.user_data.clone_from(&qos.user_data);
        own.topic_data.clone_from(&qos.topic_data);
        own.group_data.clone_from(&qos.group_data);
        if deadline != qos.deadline {
            self.timers.stop(TIMER_DEADLINE);
            if runs {
                self.renew_deadline(now);
            }
        }
    }

    /// Applies the changed policies of a matched writer: later samples get its new
    /// lifespan. Other policies do not concern the protocol.
    pub fn update_writer(&mut self, guid: Guid, qos: &EndpointQos) {
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.lifespan = qos.lifespan;
        }
    }
}
