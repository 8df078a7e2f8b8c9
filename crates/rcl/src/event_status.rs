//! Event statuses of a publisher or subscription (DDS 1.4 §2.2.4.1, rmw `event.h`).
//!
//! The runtime queues what happens. Here it becomes one status per kind, with the changes
//! since it was last taken.

use pteros_runtime::event::EndpointEvent;

use crate::rmw_qos::policy_kind;

/// Kind of a status. Those of offered and requested policies share one: an endpoint has
/// only one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum StatusKind {
    /// OFFERED_DEADLINE_MISSED, REQUESTED_DEADLINE_MISSED.
    DeadlineMissed,
    /// LIVELINESS_CHANGED, of subscriptions.
    LivelinessChanged,
    /// LIVELINESS_LOST, of publishers.
    LivelinessLost,
    /// OFFERED_INCOMPATIBLE_QOS, REQUESTED_INCOMPATIBLE_QOS.
    IncompatibleQos,
    /// SAMPLE_LOST, of subscriptions.
    MessageLost,
    /// INCONSISTENT_TOPIC.
    IncompatibleType,
    /// PUBLICATION_MATCHED, SUBSCRIPTION_MATCHED.
    Matched,
}

/// Number of kinds.
const KINDS: usize = 7;

/// One status; which counts it has depends on the kind, the others stay 0. Counts
/// saturate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct EventStatus {
    /// Total so far.
    pub total: i64,
    /// New ones since the status was taken.
    pub total_change: i64,
    /// Current matches, or publishers that are alive.
    pub current: i64,
    /// Difference since the status was taken.
    pub current_change: i64,
    /// Publishers that are matched and not alive.
    pub not_alive: i64,
    /// Difference since the status was taken.
    pub not_alive_change: i64,
    /// The last incompatible policy (`rmw_qos_policy_kind_t`); 0 before there was one.
    pub last_policy_kind: u32,
}

fn note(value: u64, count: &mut i64, change: &mut i64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    *change = change.saturating_add(value.saturating_sub(*count));
    *count = value;
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl EventStatus {
    fn note_total(&mut self, total: u64) {
        note(total, &mut self.total, &mut self.total_change);
    }

    fn note_current(&mut self, current: usize) {
        note(to_u64(current), &mut self.current, &mut self.current_change);
    }
}

/// The statuses of one endpoint.
#[derive(Default)]
pub struct EventStatuses([EventStatus; KINDS]);

impl EventStatuses {
    fn status(&mut self, kind: StatusKind) -> &mut EventStatus {
        &mut self.0[kind as usize]
    }

    /// Applies an event. Returns its kind, or `None` for an event that ROS does not have.
    pub fn apply(&mut self, event: &EndpointEvent) -> Option<StatusKind> {
        let (kind, total) = match event {
            EndpointEvent::Matched { total, current, .. } => {
                self.status(StatusKind::Matched).note_current(*current);
                (StatusKind::Matched, Some(*total))
            }
            EndpointEvent::IncompatibleQos {
                total, policies, ..
            } => {
                let status = self.status(StatusKind::IncompatibleQos);
                status.last_policy_kind = policy_kind(policies.first().copied());
                (StatusKind::IncompatibleQos, Some(*total))
            }
            EndpointEvent::LivelinessChanged {
                alive, not_alive, ..
            } => {
                let status = self.status(StatusKind::LivelinessChanged);
                status.note_current(*alive);
                let not_alive = to_u64(*not_alive);
                note(
                    not_alive,
                    &mut status.not_alive,
                    &mut status.not_alive_change,
                );
                (StatusKind::LivelinessChanged, None)
            }
            EndpointEvent::IncompatibleType { total, .. } => {
                (StatusKind::IncompatibleType, Some(*total))
            }
            EndpointEvent::DeadlineMissed { total } => (StatusKind::DeadlineMissed, Some(*total)),
            EndpointEvent::LivelinessLost { total } => (StatusKind::LivelinessLost, Some(*total)),
            EndpointEvent::SampleLost { total, .. } => (StatusKind::MessageLost, Some(*total)),
            // The runtime logs them.
            EndpointEvent::SampleRejected { .. }
            | EndpointEvent::NotStored { .. }
            | EndpointEvent::ReaderStalled { .. } => return None,
        };
        let status = self.status(kind);
        if let Some(total) = total {
            status.note_total(total);
        }
        Some(kind)
    }

    /// The status of a kind, whose changes begin again at 0.
    pub fn take(&mut self, kind: StatusKind) -> EventStatus {
        let status = self.status(kind);
        let taken = *status;
        status.total_change = 0;
        status.current_change = 0;
        status.not_alive_change = 0;
        taken
    }
}

#[cfg(test)]
mod tests {
    use pteros_runtime::rtps::id::Guid;
    use pteros_runtime::rtps::qos::PolicyId;

    use super::*;

    #[test]
    fn changes_count_since_the_status_was_taken() {
        let mut statuses = EventStatuses::default();
        let matched = |total, current, change| EndpointEvent::Matched {
            total,
            current,
            change,
            peer: Guid::default(),
        };
        for event in [matched(1, 1, 1), matched(2, 2, 1), matched(2, 1, -1)] {
            assert_eq!(statuses.apply(&event), Some(StatusKind::Matched));
        }
        let status = statuses.take(StatusKind::Matched);
        assert_eq!((status.total, status.total_change), (2, 2));
        assert_eq!((status.current, status.current_change), (1, 1));
        statuses.apply(&matched(2, 0, -1));
        let status = statuses.take(StatusKind::Matched);
        assert_eq!((status.total_change, status.current_change), (0, -1));
    }

    #[test]
    fn the_last_policy_stays_and_counts_saturate() {
        let mut statuses = EventStatuses::default();
        statuses.apply(&EndpointEvent::IncompatibleQos {
            total: u64::MAX,
            peer: Guid::default(),
            policies: vec![PolicyId::Reliability, PolicyId::Durability],
        });
        let first = statuses.take(StatusKind::IncompatibleQos);
        assert_eq!((first.total, first.last_policy_kind), (i64::MAX, 16));
        let again = statuses.take(StatusKind::IncompatibleQos);
        assert_eq!((again.total_change, again.last_policy_kind), (0, 16));
        let lost = EndpointEvent::NotStored {
            total: 1,
            queued: 0,
            reason: String::new(),
        };
        assert_eq!(statuses.apply(&lost), None);
    }
}
