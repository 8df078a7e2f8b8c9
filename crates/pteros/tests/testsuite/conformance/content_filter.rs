//! Content filters: subscriptions that select messages by their fields.

use pteros::subscription::SerializedMessage;
use std::time::Duration;

use pteros::PublisherOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::dynamic::DynamicType;
use pteros::prelude::*;
use pteros::qos::ResourceLimits;
use pteros::subscription::SerializedType;
use pteros::{
    SubscriptionOptions,
    error::{CreateError, EndpointError},
    event_handler::EndpointEvent,
    subscription::ContentFilter,
};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, TestTransport, text};

const NONE: [&str; 0] = [];

fn filtered(
    harness: &Harness,
    qos: &QosProfile,
    expression: &str,
    parameters: &[&str],
) -> Result<Subscription<Text>, CreateError> {
    let options =
        SubscriptionOptions::new("topic".qos(qos)).content_filter(expression, parameters.to_vec());
    harness.subscribing.create_polled_subscription(options)
}

/// The samples received until `last` arrives.
fn taken_until(subscription: &Subscription<Text>, last: usize) -> Vec<String> {
    let mut taken = Vec::new();
    loop {
        let sample = subscription.take_timeout(TIMEOUT).expect("a message");
        taken.push(sample.data.clone());
        if *sample == text(last) {
            return taken;
        }
    }
}

/// Waits until the publisher's context has discovered the current filter.
fn wait_until_known(harness: &Harness, subscription: &Subscription<Text>) {
    let wanted = subscription.content_filter();
    let graph = harness.publishing.context().graph();
    harness.wait_until("announced", || {
        let known = graph.subscriptions("/topic");
        let known = known.iter().find(|e| e.gid == subscription.gid());
        let filter = known.and_then(|e| e.content_filter.clone());
        filter.map(|f| (f.expression, f.parameters))
            == wanted.clone().map(
                |ContentFilter {
                     expression,
                     parameters,
                 }| (expression, parameters),
            )
    });
}

pub fn only_samples_that_pass_the_filter_are_received(harness: &Harness) {
    for qos in [
        QosProfile::default().keep_last(100),
        QosProfile::default().keep_last(100).best_effort(),
    ] {
        let publisher = harness.publisher(&qos);
        let subscription =
            filtered(harness, &qos, "data LIKE %0 OR data = '20'", &["'1_'"]).unwrap();
        let other = harness.subscription(&qos);
        assert!(publisher.wait_for_matched(2, TIMEOUT));
        assert!(subscription.wait_for_matched(1, TIMEOUT) && other.wait_for_matched(1, TIMEOUT));
        assert!(subscription.is_cft_enabled() && !other.is_cft_enabled());
        for n in 0..=20 {
            publisher.publish(&text(n)).unwrap();
        }
        let expected: Vec<_> = (10..=20).map(|n| n.to_string()).collect();
        assert_eq!(taken_until(&subscription, 20), expected);
        assert_eq!(taken_until(&other, 20).len(), 21);
        let counts = subscription.counts();
        // Both subscriptions of the other process share their datagrams.
        assert_eq!(
            (counts.received, counts.lost, counts.content_filtered),
            (11, 0, 10)
        );
        assert!(publisher.wait_for_all_acked(TIMEOUT));
        // The next publisher must not match these.
        drop((subscription, other));
        harness.wait_until("unmatched", || publisher.matched_count() == 0);
    }
}

pub fn filtered_out_samples_are_not_sent(harness: &Harness) {
    let qos = QosProfile::default().keep_last(100);
    let publisher = harness.publisher(&qos);
    let subscription = filtered(harness, &qos, "data >= '5'", &[]).unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    for n in 0..10 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(taken_until(&subscription, 9), ["5", "6", "7", "8", "9"]);
    let kept_out = match harness.transport {
        TestTransport::IntraProcess => 5,
        _ => 0,
    };
    assert_eq!(subscription.counts().content_filtered, kept_out);
    assert_eq!(subscription.counts().lost, 0);
    assert!(publisher.wait_for_all_acked(TIMEOUT));
}

pub fn a_filter_may_change_and_end(harness: &Harness) {
    let qos = QosProfile::default().keep_last(100);
    let (publisher, subscription) = harness.pair(&qos);
    for (expression, parameters, expected) in [
        ("data < %0 OR data = '9'", vec!["'2'"], vec!["0", "1", "9"]),
        ("data < %0 OR data = '9'", vec!["'1'"], vec!["0", "9"]),
        ("data LIKE '9'", vec![], vec!["9"]),
        (
            "",
            vec![],
            vec!["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
        ),
    ] {
        subscription
            .set_content_filter(expression, parameters.clone())
            .unwrap();
        let in_force = subscription.content_filter();
        assert_eq!(in_force.is_some(), !expression.is_empty());
        assert!(in_force.is_none_or(|f| f.expression == expression && f.parameters == parameters));
        wait_until_known(harness, &subscription);
        // Discovered; one poll later the writer has it.
        harness.poll_for(Duration::from_millis(20), || false);
        for n in 0..10 {
            publisher.publish(&text(n)).unwrap();
        }
        assert_eq!(taken_until(&subscription, 9), expected, "{expression}");
    }
    assert_eq!(subscription.counts().lost, 0);
}

pub fn a_late_joiner_gets_the_last_samples_that_pass(harness: &Harness) {
    let latched = |depth| QosProfile::default().keep_last(depth).transient_local();
    let publisher = harness.publisher(&latched(100));
    for n in [1, 21, 2, 22, 3, 23, 4, 5, 6] {
        publisher.publish(&text(n)).unwrap();
    }
    let subscription = filtered(harness, &latched(2), "data LIKE '2_'", &[]).unwrap();
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    assert_eq!(taken_until(&subscription, 23), ["22", "23"]);
    publisher.publish(&text(7)).unwrap();
    publisher.publish(&text(24)).unwrap();
    assert_eq!(taken_until(&subscription, 24), ["24"]);
    assert_eq!(subscription.counts().lost, 0);
}

pub fn a_filtered_reader_does_not_block_writers(harness: &Harness) {
    let qos = QosProfile::default()
        .keep_all()
        .max_blocking_time(Duration::from_millis(100))
        .resource_limits(ResourceLimits {
            max_samples: Some(2),
            ..ResourceLimits::default()
        });
    let publisher = harness.publisher(&qos);
    let subscription = filtered(harness, &qos, "data = 'x' OR data = '99'", &[]).unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    // Nobody takes samples or spins.
    for n in 0..=99 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(taken_until(&subscription, 99), ["99"]);
}

pub fn a_filtered_out_sample_does_not_meet_the_deadline(harness: &Harness) {
    let qos = QosProfile::default()
        .keep_last(10)
        .deadline(Duration::from_millis(150));
    let publisher = harness.publisher(&qos);
    let subscription = filtered(harness, &qos, "data = '1'", &[]).unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    publisher.publish(&text(1)).unwrap();
    taken_until(&subscription, 1);
    let is_missed = |e: &EndpointEvent| matches!(e, EndpointEvent::DeadlineMissed { .. });
    let mut theirs = EventLog::by(|| subscription.take_event());
    harness.wait_until("missed", || {
        publisher.publish(&text(2)).unwrap();
        theirs.any(is_missed)
    });
}

pub fn an_invalid_filter_is_refused_with_its_position(harness: &Harness) {
    let qos = QosProfile::default().keep_last(10);
    let refused = |result: Result<_, CreateError>| match result {
        Err(CreateError::Endpoint { topic, source }) => {
            assert_eq!(topic, "/topic");
            assert!(matches!(source, EndpointError::Filter(_)));
            source.to_string()
        }
        other => panic!("{:?}", other.map(|()| "accepted")),
    };
    let error = refused(filtered(harness, &qos, "data = 5", &[]).map(drop));
    assert!(
        error.contains("line 1, column 8: field data is a string"),
        "{error}"
    );
    assert!(error.ends_with("\n  data = 5\n         ^"), "{error}");
    let subscription = filtered(harness, &qos, "data = '1'", &[]).unwrap();
    let error = refused(subscription.set_content_filter("data LIKE %0", NONE));
    assert!(error.contains("parameter %0 has no value"), "{error}");
    assert_eq!(
        subscription.content_filter().unwrap().expression,
        "data = '1'"
    );
    let options = SubscriptionOptions::of_type(
        &SerializedType::new("std_msgs/msg/String", None),
        "topic".qos(&qos),
    )
    .content_filter("data = '1'", NONE);
    let raw = harness
        .subscribing
        .create_polled_subscription::<SerializedMessage>(options);
    let error = refused(raw.map(drop));
    assert!(error.contains("only its name is known"), "{error}");
}

pub fn a_dynamic_subscription_filters_too(harness: &Harness) {
    let ty = DynamicType::new(Text::type_description()).unwrap();
    let qos = QosProfile::default().keep_last(10);
    let publisher = harness
        .publishing
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(&ty, "topic".qos(&qos)))
        .unwrap();
    let options =
        SubscriptionOptions::of_type(&ty, "topic".qos(&qos)).content_filter("data > %0", ["'1'"]);
    let dynamic = harness
        .subscribing
        .create_polled_subscription::<DynamicMessage>(options)
        .unwrap();
    let typed = filtered(harness, &qos, "data <= '1' OR data = '3'", &[]).unwrap();
    assert!(publisher.wait_for_matched(2, TIMEOUT));
    assert!(dynamic.wait_for_matched(1, TIMEOUT) && typed.wait_for_matched(1, TIMEOUT));
    for n in 0..4 {
        let mut message = pteros::msg::dynamic::DynamicMessage::new(&ty);
        message.set("data", n.to_string()).unwrap();
        publisher.publish(&message).unwrap();
    }
    for n in ["2", "3"] {
        let sample = dynamic.take_timeout(TIMEOUT).expect("a message");
        assert_eq!(sample.field("data").unwrap().as_str(), Some(n));
    }
    assert_eq!(taken_until(&typed, 3), ["0", "1", "3"]);
}
