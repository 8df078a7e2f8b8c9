//! Topics and types outside ROS conventions, as other DDS systems name them.

use pteros::interfaces::dds_shapes::msg::ShapeType;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::subscription::SerializedMessage;
use pteros::subscription::SerializedType;
use pteros::{PublisherOptions, SubscriptionOptions};

use crate::conformance::harness::{Harness, TIMEOUT};

pub fn a_topic_may_have_a_plain_dds_name(harness: &Harness) {
    let qos = QosProfile::default().avoid_ros_namespace_conventions();
    let ty = DynamicType::new(ShapeType::type_description()).unwrap();
    let (here, there) = (&harness.publishing, &harness.subscribing);
    let publisher = here
        .create_publisher::<ShapeType>("Square".qos(&qos))
        .unwrap();
    let options = PublisherOptions::of_type(&ty, "Square".qos(&qos));
    let untyped = here.create_publisher::<DynamicMessage>(options);
    let untyped = untyped.unwrap();
    let subscription = there
        .create_polled_subscription::<ShapeType>("Square".qos(&qos))
        .unwrap();
    let raw =
        SubscriptionOptions::of_type(&SerializedType::new("ShapeType", None), "Square".qos(&qos));
    let raw = there.create_polled_subscription::<SerializedMessage>(raw);
    let raw = raw.unwrap();
    // The ROS topic of that name is a different one.
    let ros = there
        .create_polled_subscription::<ShapeType>("Square".keep_last(10))
        .unwrap();
    for count in [
        subscription.wait_for_matched(2, TIMEOUT),
        raw.wait_for_matched(2, TIMEOUT),
    ] {
        assert!(count);
    }
    assert!(publisher.wait_for_matched(2, TIMEOUT) && untyped.wait_for_matched(2, TIMEOUT));
    assert_eq!(ros.matched_count(), 0);
    assert_eq!((publisher.topic(), ros.topic()), ("Square", "/Square"));

    let shape = ShapeType {
        color: "RED".into(),
        ..ShapeType::default()
    };
    publisher.publish(&shape).unwrap();
    let message = DynamicMessage::from_message(&ty, &shape).unwrap();
    untyped.publish(&message).unwrap();
    let mut got = 0;
    harness.wait_until("both", || {
        while let Some(sample) = subscription.take() {
            assert_eq!(*sample, shape);
            got += 1;
        }
        got == 2
    });

    let graph = there.context().graph();
    let dds: Vec<_> = graph.dds_topics().into_iter().map(|t| t.name).collect();
    for name in ["Square", "rt/Square"] {
        assert!(dds.iter().any(|known| known == name), "{name} in {dds:?}");
    }
    let ros: Vec<_> = graph.topics().into_iter().map(|t| t.name).collect();
    assert!(!ros.iter().any(|name| name == "Square"), "{ros:?}");
    let found = graph.publishers("Square");
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].topic_type, "ShapeType");
    assert_eq!(graph.subscriptions("rt/Square").len(), 1);

    let error = here.create_publisher::<ShapeType>("my square".qos(&qos));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("DDS topic name \"my square\""), "{error}");
}
