//! Samples are sent in the CDR representation that the profile names.

use pteros::PublisherOptions;
use pteros::interfaces::dds_shapes::msg::ShapeType;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::qos::Representation;
use pteros::subscription::SerializedMessage;
use pteros::subscription::SerializedType;
use pteros::{
    SubscriptionOptions,
    event_handler::{EndpointEvent as Event, PolicyId},
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, text};

fn versions() -> [(QosProfile, u8); 3] {
    let plain = QosProfile::default();
    [
        (plain.clone(), 1),
        (plain.clone().representation(Representation::Xcdr1), 1),
        (plain.representation(Representation::Xcdr2), 7),
    ]
}

/// A separate topic, so that nothing matches endpoints of the previous round, which
/// the other side may still know.
fn topic_of(round: usize) -> String {
    format!("round{round}")
}

pub fn samples_are_written_as_the_profile_says(harness: &Harness) {
    for (round, (qos, header)) in versions().into_iter().enumerate() {
        let topic = topic_of(round);
        let publisher = harness
            .publishing
            .create_publisher(topic.as_str().qos(&qos))
            .unwrap();
        let subscription = harness
            .subscribing
            .create_polled_subscription::<Text>(topic.as_str().keep_last(10))
            .unwrap();
        let raw = raw(harness, &topic, Text::TYPE_NAME);
        assert!(publisher.wait_for_matched(2, TIMEOUT));
        assert!(subscription.wait_for_matched(1, TIMEOUT) && raw.wait_for_matched(1, TIMEOUT));
        publisher.publish(&text(1)).unwrap();
        let sample = taken(harness, &subscription);
        assert_eq!(*sample, text(1));
        assert_eq!(taken(harness, &raw)[..2], [0, header]);
    }
}

/// An appendable type is delimited in XCDR2, by every kind of publisher.
pub fn appendable_types_are_delimited(harness: &Harness) {
    let ty = DynamicType::new(ShapeType::type_description()).unwrap();
    let shape = ShapeType {
        color: "RED".into(),
        x: 3,
        ..ShapeType::default()
    };
    for (round, (qos, header)) in versions().into_iter().enumerate() {
        let header = if header == 7 { 9 } else { header };
        let topic = topic_of(round);
        let typed = harness
            .publishing
            .create_publisher(topic.as_str().qos(&qos))
            .unwrap();
        let untyped =
            harness
                .publishing
                .create_publisher::<DynamicMessage>(PublisherOptions::of_type(
                    &ty,
                    topic.as_str().qos(&qos),
                ));
        let untyped = untyped.unwrap();
        let subscription = harness
            .subscribing
            .create_polled_subscription::<ShapeType>(topic.as_str().keep_last(10))
            .unwrap();
        let raw = raw(harness, &topic, &ty.dds_type_name());
        assert!(typed.wait_for_matched(2, TIMEOUT) && untyped.wait_for_matched(2, TIMEOUT));
        assert!(subscription.wait_for_matched(2, TIMEOUT) && raw.wait_for_matched(2, TIMEOUT));
        typed.publish(&shape).unwrap();
        let first = taken(harness, &raw);
        untyped
            .publish(&DynamicMessage::from_message(&ty, &shape).unwrap())
            .unwrap();
        assert_eq!(**first, **taken(harness, &raw));
        assert_eq!(first[..2], [0, header]);
        for _ in 0..2 {
            assert_eq!(*taken(harness, &subscription), shape);
        }
    }
}

pub fn a_subscription_may_take_one_version_only(harness: &Harness) {
    let publisher = harness.publisher(&QosProfile::default());
    let only = QosProfile::default().representation(Representation::Xcdr2);
    let subscription = harness.subscription(&only);
    let mut seen = EventLog::by(|| subscription.take_event());
    harness.wait_until("refused", || {
        seen.any(|event| {
            matches!(event, Event::IncompatibleQos { policies, .. }
                if *policies == [PolicyId::DataRepresentation])
        })
    });
    assert_eq!(publisher.matched_count(), 0);
}

fn raw(harness: &Harness, topic: &str, type_name: &str) -> Subscription<SerializedMessage> {
    let options =
        SubscriptionOptions::of_type(&SerializedType::new(type_name, None), topic.keep_last(10));
    let node = &harness.subscribing;
    node.create_polled_subscription::<SerializedMessage>(options)
        .unwrap()
}

fn taken<T: Send + 'static>(harness: &Harness, subscription: &Subscription<T>) -> Sample<T> {
    let mut sample = None;
    harness.wait_until("received", || {
        sample = subscription.take();
        sample.is_some()
    });
    sample.unwrap()
}
