//! What happens besides shapes, in the words of the OMG's program.

use pteros::EndpointEvent;

/// Which end of a topic speaks.
#[derive(Clone, Copy)]
pub enum End {
    Writer,
    Reader,
}

/// One line for an event; the words for rejected, lost and not stored samples
/// are ours.
pub fn line(end: End, topic: &str, event: &EndpointEvent) -> String {
    let (name, said) = match (end, event) {
        (
            End::Writer,
            EndpointEvent::Matched {
                current, change, ..
            },
        ) => (
            "on_publication_matched",
            format!("matched readers {current} (change = {change})"),
        ),
        (
            End::Reader,
            EndpointEvent::Matched {
                current, change, ..
            },
        ) => (
            "on_subscription_matched",
            format!("matched writers {current} (change = {change})"),
        ),
        (_, EndpointEvent::IncompatibleQos { policies, .. }) => (
            match end {
                End::Writer => "on_offered_incompatible_qos",
                End::Reader => "on_requested_incompatible_qos",
            },
            policies.first().map_or(String::new(), |policy| {
                format!("{} ({})", *policy as u8, policy.name())
            }),
        ),
        (_, EndpointEvent::IncompatibleType { .. }) => ("on_inconsistent_topic", String::new()),
        (_, EndpointEvent::DeadlineMissed { total }) => (
            match end {
                End::Writer => "on_offered_deadline_missed",
                End::Reader => "on_requested_deadline_missed",
            },
            format!("(total = {total}, change = 1)"),
        ),
        (_, EndpointEvent::LivelinessLost { total }) => (
            "on_liveliness_lost",
            format!("(total = {total}, change = 1)"),
        ),
        (
            _,
            EndpointEvent::LivelinessChanged {
                alive, not_alive, ..
            },
        ) => (
            "on_liveliness_changed",
            format!("(alive = {alive}, not_alive = {not_alive})"),
        ),
        (_, EndpointEvent::SampleRejected { total }) => {
            ("on_sample_rejected", format!("(total = {total})"))
        }
        (_, EndpointEvent::NotStored { reason, .. }) => ("on_sample_not_stored", reason.clone()),
        (_, EndpointEvent::SampleLost { total, count }) => (
            "on_sample_lost",
            format!("(total = {total}, change = {count})"),
        ),
    };
    let separator = if said.is_empty() { "" } else { " : " };
    format!("{name}() topic: '{topic}'  type: 'ShapeType'{separator}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::PolicyId;

    #[test]
    fn lines_are_those_that_scripts_look_for() {
        let event = EndpointEvent::IncompatibleQos {
            total: 1,
            peer: Default::default(),
            policies: vec![PolicyId::Reliability],
        };
        assert_eq!(
            line(End::Reader, "Square", &event),
            "on_requested_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 11 (RELIABILITY)"
        );
        let event = EndpointEvent::DeadlineMissed { total: 3 };
        assert_eq!(
            line(End::Writer, "Circle", &event),
            "on_offered_deadline_missed() topic: 'Circle'  type: 'ShapeType' : (total = 3, change = 1)"
        );
    }
}
