//! Samples travel in the version of CDR that the profile names.

use bytes::Bytes;
use pteros::interfaces::dds_shapes::msg::ShapeType;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::qos::Representation;
use pteros::{EndpointEvent as Event, PolicyId, SubscriptionOptions};

use crate::stage::{PATIENCE, Seen, Stage, text};

fn versions() -> [(QosProfile, u8); 3] {
    let plain = QosProfile::default();
    [
        (plain.clone(), 1),
        (plain.clone().representation(Representation::Xcdr1), 1),
        (plain.representation(Representation::Xcdr2), 7),
    ]
}

/// A name of its own, so that nobody matches those of the round before, whose end
/// the other side may not have heard of yet.
fn topic_of(round: usize) -> String {
    format!("round{round}")
}

pub fn samples_are_written_as_the_profile_says(stage: &Stage) {
    for (round, (qos, header)) in versions().into_iter().enumerate() {
        let topic = topic_of(round);
        let publisher = stage.publishing.create_publisher(&topic, &qos).unwrap();
        let subscription = stage
            .subscribing
            .create_polled_subscription::<Text>(&topic, 10)
            .unwrap();
        let raw = raw(stage, &topic, Text::TYPE_NAME);
        assert!(publisher.wait_for_matched(2, PATIENCE));
        assert!(subscription.wait_for_matched(1, PATIENCE) && raw.wait_for_matched(1, PATIENCE));
        publisher.publish(&text(1)).unwrap();
        let sample = taken(stage, &subscription);
        assert_eq!(*sample, text(1));
        assert_eq!(taken(stage, &raw)[..2], [0, header]);
    }
}

/// An appendable type is delimited in XCDR2, whoever writes it.
pub fn appendable_types_are_delimited(stage: &Stage) {
    let ty = DynamicType::new(ShapeType::type_description()).unwrap();
    let shape = ShapeType {
        color: "RED".into(),
        x: 3,
        ..ShapeType::default()
    };
    for (round, (qos, header)) in versions().into_iter().enumerate() {
        let header = if header == 7 { 9 } else { header };
        let topic = topic_of(round);
        let typed = stage.publishing.create_publisher(&topic, &qos).unwrap();
        let untyped = stage.publishing.create_dynamic_publisher(&topic, &ty, &qos);
        let untyped = untyped.unwrap();
        let subscription = stage
            .subscribing
            .create_polled_subscription::<ShapeType>(&topic, 10)
            .unwrap();
        let raw = raw(stage, &topic, &ty.dds_type_name());
        assert!(typed.wait_for_matched(2, PATIENCE) && untyped.wait_for_matched(2, PATIENCE));
        assert!(subscription.wait_for_matched(2, PATIENCE) && raw.wait_for_matched(2, PATIENCE));
        typed.publish(&shape).unwrap();
        let first = taken(stage, &raw);
        untyped
            .publish(&DynamicMessage::from_message(&ty, &shape).unwrap())
            .unwrap();
        assert_eq!(**first, **taken(stage, &raw));
        assert_eq!(first[..2], [0, header]);
        for _ in 0..2 {
            assert_eq!(*taken(stage, &subscription), shape);
        }
    }
}

pub fn a_subscription_may_take_one_version_only(stage: &Stage) {
    let publisher = stage.publisher(&QosProfile::default());
    let only = QosProfile::default().representation(Representation::Xcdr2);
    let subscription = stage.subscription(&only);
    let mut seen = Seen::by(|| subscription.take_event());
    stage.until("refused", || {
        seen.any(|event| {
            matches!(event, Event::IncompatibleQos { policies, .. }
                if *policies == [PolicyId::DataRepresentation])
        })
    });
    assert_eq!(publisher.matched_count(), 0);
}

fn raw(stage: &Stage, topic: &str, type_name: &str) -> Subscription<Bytes> {
    let options = SubscriptionOptions::new(10);
    let node = &stage.subscribing;
    node.create_raw_subscription(topic, type_name, None, options)
        .unwrap()
}

fn taken<T: Send + 'static>(stage: &Stage, subscription: &Subscription<T>) -> Sample<T> {
    let mut sample = None;
    stage.until("received", || {
        sample = subscription.take();
        sample.is_some()
    });
    sample.unwrap()
}
