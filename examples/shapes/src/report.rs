//! Endpoint events as lines of the OMG's program.

use pteros::event_handler::EndpointEvent;

/// The reporting endpoint.
#[derive(Clone, Copy)]
pub enum EndpointSide {
    Writer,
    Reader,
}

/// One line for an event. The OMG's program has no lines for rejected, lost and
/// unstored samples.
pub fn line(end: EndpointSide, topic: &str, event: &EndpointEvent) -> String {
    let (name, output) = match (end, event) {
        (
            EndpointSide::Writer,
            EndpointEvent::Matched {
                current, change, ..
            },
        ) => (
            "on_publication_matched",
            format!("matched readers {current} (change = {change})"),
        ),
        (
            EndpointSide::Reader,
            EndpointEvent::Matched {
                current, change, ..
            },
        ) => (
            "on_subscription_matched",
            format!("matched writers {current} (change = {change})"),
        ),
        (_, EndpointEvent::IncompatibleQos { policies, .. }) => (
            match end {
                EndpointSide::Writer => "on_offered_incompatible_qos",
                EndpointSide::Reader => "on_requested_incompatible_qos",
            },
            policies.first().map_or(String::new(), |policy| {
                format!("{} ({})", *policy as u8, policy.name())
            }),
        ),
        (_, EndpointEvent::IncompatibleType { .. }) => ("on_inconsistent_topic", String::new()),
        (_, EndpointEvent::DeadlineMissed { total }) => (
            match end {
                EndpointSide::Writer => "on_offered_deadline_missed",
                EndpointSide::Reader => "on_requested_deadline_missed",
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
        (_, EndpointEvent::ReaderStalled { current, .. }) => {
            ("on_reader_stalled", format!("(current = {current})"))
        }
        (_, EndpointEvent::SampleLost { total, count }) => (
            "on_sample_lost",
            format!("(total = {total}, change = {count})"),
        ),
    };
    let separator = if output.is_empty() { "" } else { " : " };
    format!("{name}() topic: '{topic}'  type: 'ShapeType'{separator}{output}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::event_handler::PolicyId;

    #[test]
    fn lines_are_those_that_the_scripts_search_for() {
        let event = EndpointEvent::IncompatibleQos {
            total: 1,
            peer: Default::default(),
            policies: vec![PolicyId::Reliability],
        };
        assert_eq!(
            line(EndpointSide::Reader, "Square", &event),
            "on_requested_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 11 (RELIABILITY)"
        );
        let event = EndpointEvent::DeadlineMissed { total: 3 };
        assert_eq!(
            line(EndpointSide::Writer, "Circle", &event),
            "on_offered_deadline_missed() topic: 'Circle'  type: 'ShapeType' : (total = 3, change = 1)"
        );
    }
}
