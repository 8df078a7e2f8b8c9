//! Policies between endpoints of one context, whose samples bypass the protocol.

use pteros_runtime::event::EndpointEvent;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::rtps::qos::{
    EndpointQos, History, Liveliness, Presentation, Reliability, ResourceLimits,
};
use pteros_runtime::rtps::time::Duration;

use crate::flow_control::harness::{ContextPair, spec};
use crate::flow_control::{best_effort, last, message};

#[test]
fn a_writer_that_only_asserts_its_liveliness_misses_its_deadline() {
    let mut pair = ContextPair::new(Vec::new());
    let qos = EndpointQos {
        deadline: Duration::from_millis(100),
        liveliness: Liveliness::ManualByTopic,
        lease_duration: Duration::from_millis(300),
        ..last(10)
    };
    let writer = pair.plain_writer("t", qos.clone());
    let made = pair
        .talker()
        .create_reader(spec("t", qos), DeliveryForm::Bytes, false);
    let reader = made.unwrap();
    let missed = || {
        let events = std::iter::from_fn(|| reader.events.take());
        let missed = events.filter(|event| matches!(event, EndpointEvent::DeadlineMissed { .. }));
        missed.count()
    };
    for mark in 0..10 {
        pair.publish(&writer, message(10, mark));
        pair.run_ms(50);
    }
    assert_eq!(missed(), 0);
    for _ in 0..10 {
        pair.talker().discovery().assert_liveliness(&writer);
        pair.run_ms(50);
    }
    assert!(missed() > 0);
}

#[test]
fn endpoints_are_counted_by_topic_and_kind_with_those_of_peers() {
    let mut pair = ContextPair::new(Vec::new());
    let node = pair.talker().discovery().add_node("n", "/");
    let writers = ["t", "t", "u"].map(|topic| pair.plain_writer(topic, last(1)));
    for writer in &writers {
        pair.talker()
            .discovery()
            .attach_endpoint(node, &writer.data);
    }
    let _remote = pair.reader("t", last(1));
    pair.run_ms(200);
    let count = |topic, is_writer| pair.talker().graph().count_endpoints(topic, is_writer);
    assert_eq!((count("t", true), count("t", false)), (2, 1));
    assert_eq!((count("u", true), count("u", false)), (1, 0));
    assert_eq!(count("v", true), 0);
}

#[test]
fn a_full_coherent_subscription_drops_what_a_publisher_does_not_wait_with() {
    let pair = ContextPair::new(Vec::new());
    let presentation = Presentation {
        access_scope: 1,
        coherent: true,
        ordered: false,
    };
    let offered = EndpointQos {
        presentation,
        ..best_effort(10)
    };
    let requested = EndpointQos {
        reliability: Reliability::BestEffort,
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples: Some(2),
            ..ResourceLimits::default()
        },
        presentation,
        ..EndpointQos::default()
    };
    let talker = pair.talker();
    let writer = pair.plain_writer("t", offered);
    let made = talker.create_reader(spec("t", requested), DeliveryForm::Bytes, false);
    let reader = made.unwrap();
    let taken = || std::iter::from_fn(|| talker.taking().take(&reader)).count();
    let lost = || {
        let events = std::iter::from_fn(|| reader.events.take());
        let counts = events.filter_map(|event| match event {
            EndpointEvent::SampleLost { count, .. } => Some(count),
            _ => None,
        });
        counts.sum::<u64>()
    };
    (0..5).for_each(|mark| pair.publish(&writer, message(10, mark)));
    assert_eq!((taken(), lost()), (2, 3));
    pair.publish(&writer, message(10, 5));
    assert_eq!((taken(), lost()), (1, 0));
}
