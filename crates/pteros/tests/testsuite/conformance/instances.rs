//! Instances of a keyed topic: states, generations and ends (DDS 1.4 §2.2.2.5.1),
//! as the subscription sees them.

use pteros::instance::ViewState;
use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::prelude::*;
use pteros::{
    PublisherOptions,
    error::PublishError,
    instance::{InstanceInfo, InstanceState as State, ReceivedChange},
};

use crate::conformance::harness::{Harness, SLOW_CONTROLLER, TIMEOUT};

pub fn shape(color: &str, x: i32) -> Shape {
    Shape {
        color: color.into(),
        x,
        ..Shape::default()
    }
}

pub struct Pair {
    pub publisher: Publisher<Shape>,
    pub subscription: Subscription<Shape>,
}

pub fn publisher(harness: &Harness, qos: &QosProfile) -> Publisher<Shape> {
    harness
        .publishing
        .create_publisher("shapes".qos(qos))
        .unwrap()
}

pub fn subscription(harness: &Harness, qos: &QosProfile) -> Subscription<Shape> {
    let node = &harness.subscribing;
    node.create_polled_subscription("shapes".qos(qos)).unwrap()
}

pub fn pair_of(harness: &Harness, offered: &QosProfile, requested: &QosProfile) -> Pair {
    let publisher = publisher(harness, offered);
    let subscription = subscription(harness, requested);
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    Pair {
        publisher,
        subscription,
    }
}

fn pair(harness: &Harness) -> Pair {
    let qos = QosProfile::default();
    pair_of(harness, &qos, &qos)
}

/// One change in a test: the colour, and its position or how it ended.
pub type ObservedChange = (String, Result<i32, State>);

pub fn at(color: &str, x: i32) -> ObservedChange {
    (color.into(), Ok(x))
}

pub fn ended(color: &str, state: State) -> ObservedChange {
    (color.into(), Err(state))
}

/// The next change; waits for it.
pub fn next(
    harness: &Harness,
    subscription: &Subscription<Shape>,
) -> (ObservedChange, InstanceInfo) {
    let mut change = None;
    harness.wait_until("a change", || {
        change = subscription.take_change();
        change.is_some()
    });
    match change.unwrap() {
        ReceivedChange::Sample(sample) => {
            (at(&sample.color, sample.x), sample.info().instance.unwrap())
        }
        ReceivedChange::End(end) => (ended(&end.key().color, end.state()), *end.instance()),
    }
}

pub fn observed_changes(
    harness: &Harness,
    subscription: &Subscription<Shape>,
    count: usize,
) -> Vec<ObservedChange> {
    (0..count).map(|_| next(harness, subscription).0).collect()
}

pub fn an_instance_is_disposed_of_and_comes_back(harness: &Harness) {
    let Pair {
        publisher,
        subscription,
    } = pair(harness);
    publisher.publish(&shape("red", 1)).unwrap();
    let (what, red) = next(harness, &subscription);
    assert_eq!(what, at("red", 1));
    assert_eq!((red.state, red.view), (State::Alive, ViewState::New));
    publisher.publish(&shape("blue", 2)).unwrap();
    let (what, blue) = next(harness, &subscription);
    assert_eq!((what, blue.view), (at("blue", 2), ViewState::New));
    assert_ne!(red.key, blue.key);
    publisher.publish(&shape("red", 3)).unwrap();
    let (what, again) = next(harness, &subscription);
    assert_eq!((what, again.view), (at("red", 3), ViewState::NotNew));
    assert_eq!(again.key, red.key);
    // Only the key fields are read.
    publisher.dispose(&shape("red", 77)).unwrap();
    let (what, end) = next(harness, &subscription);
    assert_eq!(what, ended("red", State::Disposed));
    assert_eq!((end.key, end.disposed_generations), (red.key, 0));
    publisher.publish(&shape("red", 4)).unwrap();
    let (what, back) = next(harness, &subscription);
    assert_eq!((what, back.view), (at("red", 4), ViewState::New));
    assert_eq!(back.state, State::Alive);
    assert_eq!(
        (back.disposed_generations, back.no_writers_generations),
        (1, 0)
    );
    assert!(subscription.take_change().is_none());
}

pub fn invalid_instance_operations_are_refused(harness: &Harness) {
    let text = harness.publisher(&QosProfile::default());
    let no_key = text.dispose(&Default::default()).unwrap_err();
    assert_eq!(
        no_key,
        PublishError::NoKey {
            topic: "/topic".into()
        }
    );
    let publisher = publisher(harness, &QosProfile::default());
    let unknown = publisher.unregister(&shape("red", 0)).unwrap_err();
    let topic = "/shapes".to_string();
    assert_eq!(unknown, PublishError::UnknownInstance { topic });
    publisher.register(&shape("red", 0)).unwrap();
    publisher.unregister(&shape("red", 0)).unwrap();
}

pub fn instance_ends_are_queued_in_order_with_samples(harness: &Harness) {
    let Pair {
        publisher,
        subscription,
    } = pair(harness);
    for n in 1..=2 {
        publisher.publish(&shape("red", n)).unwrap();
        publisher.publish(&shape("blue", n)).unwrap();
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.publish(&shape("blue", 3)).unwrap();
    harness.wait_until("received", || subscription.counts().received == 5);
    let expected = [
        at("red", 1),
        at("blue", 1),
        at("red", 2),
        at("blue", 2),
        ended("red", State::Disposed),
        at("blue", 3),
    ];
    assert_eq!(observed_changes(harness, &subscription, 6), expected);
}

pub fn an_instance_that_is_unregistered_is_disposed_of_too(harness: &Harness) {
    let Pair {
        publisher,
        subscription,
    } = pair(harness);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.unregister(&shape("red", 0)).unwrap();
    let expected = [at("red", 1), ended("red", State::Disposed)];
    assert_eq!(observed_changes(harness, &subscription, 2), expected);
}

pub fn an_instance_ends_when_the_last_of_its_writers_leaves_it(harness: &Harness) {
    let kept = QosProfile::default().no_autodispose();
    let Pair {
        publisher: first,
        subscription,
    } = pair_of(harness, &kept, &kept);
    let second = publisher(harness, &kept);
    assert!(second.wait_for_matched(1, TIMEOUT));
    harness.wait_until("both", || subscription.matched_count() == 2);
    for n in [1, 2] {
        let writer = if n == 1 { &first } else { &second };
        writer.publish(&shape("red", n)).unwrap();
        assert_eq!(observed_changes(harness, &subscription, 1), [at("red", n)]);
    }
    first.unregister(&shape("red", 0)).unwrap();
    second.publish(&shape("red", 3)).unwrap();
    let (what, info) = next(harness, &subscription);
    assert_eq!((what, info.no_writers_generations), (at("red", 3), 0));
    second.unregister(&shape("red", 0)).unwrap();
    let expected = [ended("red", State::NoWriters)];
    assert_eq!(observed_changes(harness, &subscription, 1), expected);
}

pub fn a_dropped_publisher_disposes_of_its_instances(harness: &Harness) {
    let Pair {
        publisher,
        subscription,
    } = pair(harness);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.unregister(&shape("blue", 0)).unwrap();
    drop(publisher);
    let mut all = observed_changes(harness, &subscription, 4);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let gone = |color| ended(color, State::Disposed);
    let expected = [at("blue", 1), gone("blue"), at("red", 1), gone("red")];
    assert_eq!(all, expected);
}

pub fn a_publisher_dropped_without_disposing_leaves_no_writers(harness: &Harness) {
    let kept = QosProfile::default().no_autodispose();
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &kept, &kept);
    publisher.publish(&shape("red", 1)).unwrap();
    assert_eq!(observed_changes(harness, &subscription, 1), [at("red", 1)]);
    drop(publisher);
    let expected = [ended("red", State::NoWriters)];
    assert_eq!(observed_changes(harness, &subscription, 1), expected);
}

pub fn an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone(harness: &Harness) {
    let qos = QosProfile::default();
    // A best-effort reader on a busy machine is not retransmitted to, so what it is
    // sent must fit its queue.
    for (topic, qos, count) in [
        ("reliable", qos.clone(), 1_000),
        ("fleeting", qos.best_effort(), 200),
    ] {
        let options = PublisherOptions::new(topic.qos(&qos)).asynchronous(SLOW_CONTROLLER);
        let node = &harness.publishing;
        let publisher = node.create_publisher(options).unwrap();
        let node = &harness.subscribing;
        let subscription = node.create_polled_subscription(topic.qos(&qos)).unwrap();
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        harness.wait_until("matched", || subscription.matched_count() == 1);
        // Half a kilobyte takes a tenth of a millisecond to serialize, so all of
        // them take far longer than the lifespan.
        let colors: Vec<String> = (0..count).map(|n| format!("{n:0100}")).collect();
        for color in &colors {
            publisher.publish(&shape(color, 1)).unwrap();
        }
        drop(publisher);
        let expected: Vec<ObservedChange> = colors.iter().map(|c| at(c, 1)).collect();
        assert!(observed_changes(harness, &subscription, count) == expected);
        let mut ends = observed_changes(harness, &subscription, count);
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        let expected: Vec<ObservedChange> =
            colors.iter().map(|c| ended(c, State::Disposed)).collect();
        assert!(ends == expected);
    }
}

pub fn take_skips_instance_ends(harness: &Harness) {
    let Pair {
        publisher,
        subscription,
    } = pair(harness);
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.publish(&shape("blue", 5)).unwrap();
    assert_eq!(
        *subscription.take_timeout(TIMEOUT).unwrap(),
        shape("blue", 5)
    );
    assert!(subscription.take_change().is_none());
}

pub fn a_keep_all_queue_is_bounded(harness: &Harness) {
    let qos = QosProfile::default().keep_all();
    let Pair {
        publisher,
        subscription,
    } = pair_of(harness, &qos, &qos);
    publisher.publish(&shape("RED", 1)).unwrap();
    assert_eq!(next(harness, &subscription).0, at("RED", 1));
    // An empty queue must end the loop.
    assert!(subscription.take_change().is_none());
    assert!(subscription.take().is_none());
}
