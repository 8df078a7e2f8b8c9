//! Policies of a living reader, or of a writer that it is matched with, that
//! change (DDS 1.4 §2.2.3).

use super::{Reader, TIMER_DEADLINE};
use crate::id::Guid;
use crate::qos::EndpointQos;
use crate::time::Instant;

impl Reader {
    /// Takes over what may change of its policies; the others stay as they are.
    /// A new deadline counts from now if `runs`, that is if a sample has counted
    /// for it before, and else from the first one.
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
                self.note_update(now);
            }
        }
    }

    /// Takes over what a matched writer announces anew: what comes from now on
    /// lives as long as it says. What else it may change is no matter of the
    /// protocol.
    pub fn update_writer(&mut self, guid: Guid, qos: &EndpointQos) {
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.lifespan = qos.lifespan;
        }
    }
}
