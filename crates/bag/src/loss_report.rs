//! Reports of lost messages on `events/rosbag2_messages_lost`, as rosbag2's recorder
//! publishes since Lyrical.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::InterfaceKind;
use pteros::{NamedQosExt, Node, Publisher, PublisherOptions};

use crate::accounting::TopicAccount;
use crate::error::BagError;

const TOPIC: &str = "events/rosbag2_messages_lost";
/// Time between two reports.
const PERIOD: Duration = Duration::from_secs(1);
/// Package of the report's type. Jazzy lacks the type, so it is defined here.
const PACKAGE: &str = "rosbag2_interfaces";
const TYPE: &str = "rosbag2_interfaces/msg/MessagesLostEvent";
const DEFINITIONS: [(&str, &str); 2] = [
    (
        "MessagesLostEvent",
        "string node_name\nMessagesLostEventTopicStat[] messages_lost_statistics\n",
    ),
    (
        "MessagesLostEventTopicStat",
        "string topic_name\nuint64 messages_lost_in_transport\nuint64 messages_lost_in_recorder\n",
    ),
];

/// Publishes the losses since the last report.
pub(crate) struct LossReport {
    publisher: Publisher<DynamicMessage>,
    ty: DynamicType,
    node_name: String,
    /// Losses reported so far, by topic.
    reported: BTreeMap<String, Losses>,
    next: Option<Instant>,
}

/// Lost messages of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    in_transport: u64,
    in_recorder: u64,
}

impl LossReport {
    pub(crate) fn new(node: &Node) -> Result<Self, BagError> {
        let ty = report_type().map_err(BagError::Invalid)?;
        let options = PublisherOptions::of_type(&ty, TOPIC.keep_last(10));
        Ok(Self {
            publisher: node.create_publisher::<DynamicMessage>(options)?,
            ty,
            node_name: node.fully_qualified_name(),
            reported: BTreeMap::new(),
            next: None,
        })
    }

    pub(crate) fn topic(&self) -> &str {
        self.publisher.topic()
    }

    /// Whether a report is due. If so, the next one is due a second later.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.next.is_none_or(|next| now >= next);
        if is_due {
            self.next = Some(now + PERIOD);
        }
        is_due
    }

    /// Publishes the topics with losses since the last report, if any.
    pub(crate) fn publish(
        &mut self,
        accounts: &BTreeMap<String, TopicAccount>,
    ) -> Result<(), BagError> {
        let mut lines = Vec::new();
        let mut reported = BTreeMap::new();
        for (topic, account) in accounts {
            let now = Losses {
                in_transport: account.lost_wire,
                in_recorder: account.lost() - account.lost_wire,
            };
            let before = self.reported.get(topic).copied().unwrap_or_default();
            reported.insert(topic.clone(), now);
            // A late message reduces the loss in transport.
            let in_transport = now.in_transport.saturating_sub(before.in_transport);
            let in_recorder = now.in_recorder.saturating_sub(before.in_recorder);
            if in_transport + in_recorder > 0 {
                lines.push(format!(
                    "{{topic_name: {topic:?}, messages_lost_in_transport: {in_transport}, messages_lost_in_recorder: {in_recorder}}}"
                ));
            }
        }
        if lines.is_empty() {
            self.reported = reported;
            return Ok(());
        }
        let text = format!(
            "{{node_name: {:?}, messages_lost_statistics: [{}]}}",
            self.node_name,
            lines.join(", ")
        );
        let message = DynamicMessage::from_yaml(&self.ty, &text);
        let message = message.map_err(|error| BagError::Invalid(format!("{TOPIC}: {error}")))?;
        self.publisher.publish(&message)?;
        // After a failed report, the next one includes its losses.
        self.reported = reported;
        Ok(())
    }
}

fn report_type() -> Result<DynamicType, String> {
    let mut library = InterfaceLibrary::new();
    for (name, text) in DEFINITIONS {
        library.insert_text(PACKAGE, InterfaceKind::Message, name, text, "the recorder");
    }
    let described = library.describe(TYPE).map_err(|error| error.to_string())?;
    DynamicType::new(&described).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_described() {
        let ty = report_type().unwrap();
        assert_eq!(ty.name(), TYPE);
        let text =
            "{messages_lost_statistics: [{topic_name: \"/a\", messages_lost_in_recorder: 3}]}";
        DynamicMessage::from_yaml(&ty, text).unwrap();
    }
}
