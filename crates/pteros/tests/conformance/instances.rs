//! Instances of a keyed topic: their states, generations and ends (DDS 1.4
//! §2.2.2.5.1), as they look from the subscription.

use pteros::ViewState;
use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::prelude::*;
use pteros::{Change, InstanceInfo, InstanceState as State, PublishError, PublisherOptions};

use crate::stage::{PATIENCE, SLOW, Stage};

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

pub fn publisher(stage: &Stage, qos: &QosProfile) -> Publisher<Shape> {
    stage.publishing.create_publisher("shapes", qos).unwrap()
}

pub fn subscription(stage: &Stage, qos: &QosProfile) -> Subscription<Shape> {
    let node = &stage.subscribing;
    node.create_polled_subscription("shapes", qos).unwrap()
}

pub fn pair_of(stage: &Stage, offered: &QosProfile, requested: &QosProfile) -> Pair {
    let publisher = publisher(stage, offered);
    let subscription = subscription(stage, requested);
    assert!(publisher.wait_for_matched(1, PATIENCE));
    assert!(subscription.wait_for_matched(1, PATIENCE));
    Pair {
        publisher,
        subscription,
    }
}

fn pair(stage: &Stage) -> Pair {
    let qos = QosProfile::default();
    pair_of(stage, &qos, &qos)
}

/// What a story says of one change: the colour, where it is or how it ended.
pub type Seen = (String, Result<i32, State>);

pub fn at(color: &str, x: i32) -> Seen {
    (color.into(), Ok(x))
}

pub fn ended(color: &str, state: State) -> Seen {
    (color.into(), Err(state))
}

/// The next change, waited for.
pub fn next(stage: &Stage, subscription: &Subscription<Shape>) -> (Seen, InstanceInfo) {
    let mut change = None;
    stage.until("a change", || {
        change = subscription.take_change();
        change.is_some()
    });
    match change.unwrap() {
        Change::Sample(sample) => (at(&sample.color, sample.x), sample.info().instance.unwrap()),
        Change::End(end) => (ended(&end.key().color, end.state()), *end.instance()),
    }
}

pub fn seen(stage: &Stage, subscription: &Subscription<Shape>, count: usize) -> Vec<Seen> {
    (0..count).map(|_| next(stage, subscription).0).collect()
}

pub fn an_instance_is_disposed_of_and_comes_back(stage: &Stage) {
    let Pair {
        publisher,
        subscription,
    } = pair(stage);
    publisher.publish(&shape("red", 1)).unwrap();
    let (what, red) = next(stage, &subscription);
    assert_eq!(what, at("red", 1));
    assert_eq!((red.state, red.view), (State::Alive, ViewState::New));
    publisher.publish(&shape("blue", 2)).unwrap();
    let (what, blue) = next(stage, &subscription);
    assert_eq!((what, blue.view), (at("blue", 2), ViewState::New));
    assert_ne!(red.key, blue.key);
    publisher.publish(&shape("red", 3)).unwrap();
    let (what, again) = next(stage, &subscription);
    assert_eq!((what, again.view), (at("red", 3), ViewState::NotNew));
    assert_eq!(again.key, red.key);
    // Only the key fields are looked at.
    publisher.dispose(&shape("red", 77)).unwrap();
    let (what, end) = next(stage, &subscription);
    assert_eq!(what, ended("red", State::Disposed));
    assert_eq!((end.key, end.disposed_generations), (red.key, 0));
    publisher.publish(&shape("red", 4)).unwrap();
    let (what, back) = next(stage, &subscription);
    assert_eq!((what, back.view), (at("red", 4), ViewState::New));
    assert_eq!(back.state, State::Alive);
    assert_eq!(
        (back.disposed_generations, back.no_writers_generations),
        (1, 0)
    );
    assert!(subscription.take_change().is_none());
}

pub fn what_an_instance_is_asked_without_reason_is_refused(stage: &Stage) {
    let text = stage.publisher(&QosProfile::default());
    let no_key = text.dispose(&Default::default()).unwrap_err();
    assert_eq!(
        no_key,
        PublishError::NoKey {
            topic: "/topic".into()
        }
    );
    let publisher = publisher(stage, &QosProfile::default());
    let unknown = publisher.unregister(&shape("red", 0)).unwrap_err();
    let topic = "/shapes".to_string();
    assert_eq!(unknown, PublishError::UnknownInstance { topic });
    publisher.register(&shape("red", 0)).unwrap();
    publisher.unregister(&shape("red", 0)).unwrap();
}

pub fn ends_wait_among_the_samples_in_order(stage: &Stage) {
    let Pair {
        publisher,
        subscription,
    } = pair(stage);
    for n in 1..=2 {
        publisher.publish(&shape("red", n)).unwrap();
        publisher.publish(&shape("blue", n)).unwrap();
    }
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.publish(&shape("blue", 3)).unwrap();
    stage.until("received", || subscription.counts().received == 5);
    let expected = [
        at("red", 1),
        at("blue", 1),
        at("red", 2),
        at("blue", 2),
        ended("red", State::Disposed),
        at("blue", 3),
    ];
    assert_eq!(seen(stage, &subscription, 6), expected);
}

pub fn an_instance_that_is_unregistered_is_disposed_of_too(stage: &Stage) {
    let Pair {
        publisher,
        subscription,
    } = pair(stage);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.unregister(&shape("red", 0)).unwrap();
    let expected = [at("red", 1), ended("red", State::Disposed)];
    assert_eq!(seen(stage, &subscription, 2), expected);
}

pub fn an_instance_ends_when_the_last_of_its_writers_leaves_it(stage: &Stage) {
    let kept = QosProfile::default().no_autodispose();
    let Pair {
        publisher: first,
        subscription,
    } = pair_of(stage, &kept, &kept);
    let second = publisher(stage, &kept);
    assert!(second.wait_for_matched(1, PATIENCE));
    stage.until("both", || subscription.matched_count() == 2);
    for n in [1, 2] {
        let writer = if n == 1 { &first } else { &second };
        writer.publish(&shape("red", n)).unwrap();
        assert_eq!(seen(stage, &subscription, 1), [at("red", n)]);
    }
    first.unregister(&shape("red", 0)).unwrap();
    second.publish(&shape("red", 3)).unwrap();
    let (what, info) = next(stage, &subscription);
    assert_eq!((what, info.no_writers_generations), (at("red", 3), 0));
    second.unregister(&shape("red", 0)).unwrap();
    let expected = [ended("red", State::NoWriters)];
    assert_eq!(seen(stage, &subscription, 1), expected);
}

pub fn a_dropped_publisher_disposes_of_its_instances(stage: &Stage) {
    let Pair {
        publisher,
        subscription,
    } = pair(stage);
    publisher.publish(&shape("red", 1)).unwrap();
    publisher.publish(&shape("blue", 1)).unwrap();
    publisher.unregister(&shape("blue", 0)).unwrap();
    drop(publisher);
    let mut all = seen(stage, &subscription, 4);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let gone = |color| ended(color, State::Disposed);
    let expected = [at("blue", 1), gone("blue"), at("red", 1), gone("red")];
    assert_eq!(all, expected);
}

pub fn a_publisher_dropped_without_disposing_leaves_no_writers(stage: &Stage) {
    let kept = QosProfile::default().no_autodispose();
    let Pair {
        publisher,
        subscription,
    } = pair_of(stage, &kept, &kept);
    publisher.publish(&shape("red", 1)).unwrap();
    assert_eq!(seen(stage, &subscription, 1), [at("red", 1)]);
    drop(publisher);
    let expected = [ended("red", State::NoWriters)];
    assert_eq!(seen(stage, &subscription, 1), expected);
}

pub fn an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone(stage: &Stage) {
    let qos = QosProfile::default();
    // Nothing is owed to a best-effort reader that a busy machine keeps from
    // reading, so what it is sent fits where it waits.
    for (topic, qos, count) in [
        ("reliable", qos.clone(), 1_000),
        ("fleeting", qos.best_effort(), 200),
    ] {
        let options = PublisherOptions::new(&qos).asynchronous(SLOW);
        let node = &stage.publishing;
        let publisher = node.create_publisher_with(topic, options).unwrap();
        let node = &stage.subscribing;
        let subscription = node.create_polled_subscription(topic, &qos).unwrap();
        assert!(publisher.wait_for_matched(1, PATIENCE));
        stage.until("matched", || subscription.matched_count() == 1);
        // Half a kilobyte takes a tenth of a millisecond, so all of them take far
        // longer than it lives.
        let colors: Vec<String> = (0..count).map(|n| format!("{n:0100}")).collect();
        for color in &colors {
            publisher.publish(&shape(color, 1)).unwrap();
        }
        drop(publisher);
        let expected: Vec<Seen> = colors.iter().map(|c| at(c, 1)).collect();
        assert!(seen(stage, &subscription, count) == expected);
        let mut ends = seen(stage, &subscription, count);
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        let expected: Vec<Seen> = colors.iter().map(|c| ended(c, State::Disposed)).collect();
        assert!(ends == expected);
    }
}

pub fn take_passes_over_ends(stage: &Stage) {
    let Pair {
        publisher,
        subscription,
    } = pair(stage);
    publisher.dispose(&shape("red", 0)).unwrap();
    publisher.publish(&shape("blue", 5)).unwrap();
    assert_eq!(
        *subscription.take_timeout(PATIENCE).unwrap(),
        shape("blue", 5)
    );
    assert!(subscription.take_change().is_none());
}

pub fn a_queue_that_keeps_all_has_an_end(stage: &Stage) {
    let qos = QosProfile::default().keep_all();
    let Pair {
        publisher,
        subscription,
    } = pair_of(stage, &qos, &qos);
    publisher.publish(&shape("RED", 1)).unwrap();
    assert_eq!(next(stage, &subscription).0, at("RED", 1));
    // It went round and round on an empty one.
    assert!(subscription.take_change().is_none());
    assert!(subscription.take().is_none());
}
