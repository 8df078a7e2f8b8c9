//! Changeable QoS policies of a writer (DDS 1.4 §2.2.3, column "changeable").

use super::Writer;
use super::timers::TIMER_DEADLINE;
use crate::qos::EndpointQos;
use crate::time::Instant;

impl Writer {
    /// Applies the changeable policies; the others stay as they are.
    ///
    /// A new deadline counts from now, if anything was written. A new lifespan
    /// applies from the next sample on. Samples held for a latency budget that ends
    /// are sent.
    pub fn set_qos(&mut self, now: Instant, qos: &EndpointQos) {
        self.clock = now;
        let own = &mut self.config.qos;
        let (deadline, lifespan) = (own.deadline, own.lifespan);
        let budget = own.latency_budget;
        own.deadline = qos.deadline;
        own.lifespan = qos.lifespan;
        own.latency_budget = qos.latency_budget;
        own.ownership_strength = qos.ownership_strength;
        own.partition.clone_from(&qos.partition);
        own.transport_priority = qos.transport_priority;
        own.user_data.clone_from(&qos.user_data);
        own.topic_data.clone_from(&qos.topic_data);
        own.group_data.clone_from(&qos.group_data);
        self.cache.retention.lifespans_differ |= lifespan != qos.lifespan;
        if deadline != qos.deadline {
            self.timers.stop(TIMER_DEADLINE);
            if self.cache.last.0 > 0 {
                self.timers.set(TIMER_DEADLINE, now.after(qos.deadline));
            }
        }
        if budget != qos.latency_budget {
            let (last, timers) = (self.cache.last, &mut self.timers);
            self.transmission
                .set_budget(now, qos.latency_budget, last, timers);
        }
    }
}
