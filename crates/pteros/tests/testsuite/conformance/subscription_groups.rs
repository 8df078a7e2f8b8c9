//! Subscription groups: coherent and ordered access across topics.

use pteros::subscription::SerializedMessage;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::interfaces::std_msgs::msg::{Int32, String as Text};
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::dynamic::{DynamicType, Value};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::qos::Presentation;
use pteros::subscription::SerializedType;
use pteros::{
    SubscriptionOptions, instance::ReceivedChange, publisher::PublisherGroup,
    subscription::SubscriptionGroup,
};

use crate::conformance::harness::{Harness, TIMEOUT, text};
use crate::conformance::instances::shape;

const GROUP: u8 = 2;

fn coherent() -> Presentation {
    Presentation {
        access_scope: GROUP,
        coherent: true,
        ordered: false,
    }
}

fn ordered() -> Presentation {
    Presentation {
        access_scope: GROUP,
        coherent: false,
        ordered: true,
    }
}

fn depth(depth: usize) -> QosProfile {
    QosProfile::default().keep_last(depth)
}

/// A group on either side, with a pair of endpoints on each of two topics.
struct GroupFixture {
    out: PublisherGroup,
    left: Publisher<Text>,
    right: Publisher<Text>,
    group: SubscriptionGroup,
    of_left: Subscription<Text>,
    of_right: Subscription<Text>,
}

impl GroupFixture {
    fn new(harness: &Harness, presentation: Presentation, qos: &QosProfile) -> Self {
        let (out, [left, right]) = publishers(harness, presentation, &depth(20));
        let fixture = Self::with(harness, out, [left, right], qos);
        fixture.wait_for_matches();
        assert!(fixture.group.take().is_none(), "the first look");
        fixture
    }

    fn with(
        harness: &Harness,
        out: PublisherGroup,
        [left, right]: [Publisher<Text>; 2],
        qos: &QosProfile,
    ) -> Self {
        let node = &harness.subscribing;
        let group = SubscriptionGroup::new(node, out.presentation()).unwrap();
        let [of_left, of_right] = ["left", "right"]
            .map(|topic| group.create_polled_subscription(topic.qos(qos)).unwrap());
        Self {
            out,
            left,
            right,
            group,
            of_left,
            of_right,
        }
    }

    fn wait_for_matches(&self) {
        for (publisher, subscription) in
            [(&self.left, &self.of_left), (&self.right, &self.of_right)]
        {
            assert!(publisher.wait_for_matched(1, TIMEOUT));
            assert!(subscription.wait_for_matched(1, TIMEOUT));
        }
    }

    /// A coherent set with these samples on the left and those on the right.
    fn publish_set(&self, left: &[usize], right: &[usize]) {
        let changes = self.out.begin_coherent_changes().unwrap();
        for n in left {
            self.left.publish(&text(*n)).unwrap();
        }
        for n in right {
            self.right.publish(&text(*n)).unwrap();
        }
        changes.end();
    }

    /// Waits until both have received that many samples.
    fn wait_until_received(&self, harness: &Harness, count: u64) {
        harness.wait_until("received", || {
            let received = |s: &Subscription<Text>| s.counts().received;
            received(&self.of_left) + received(&self.of_right) == count
        });
    }

    fn taken(&self) -> (Vec<usize>, Vec<usize>) {
        (taken(&self.of_left), taken(&self.of_right))
    }

    /// The next change of the group.
    fn next(&self) -> usize {
        let next = self.group.take_timeout(TIMEOUT).expect("a sample");
        let left = next.sample_of(&self.of_left);
        let right = next.sample_of(&self.of_right);
        assert!(left.is_some() != right.is_some());
        left.or(right).unwrap().data.parse().unwrap()
    }
}

fn publishers(
    harness: &Harness,
    presentation: Presentation,
    qos: &QosProfile,
) -> (PublisherGroup, [Publisher<Text>; 2]) {
    let node = &harness.publishing;
    let out = PublisherGroup::new(node, presentation).unwrap();
    let publishers = ["left", "right"].map(|topic| out.create_publisher(topic.qos(qos)).unwrap());
    (out, publishers)
}

/// All samples that wait now.
fn taken(subscription: &Subscription<Text>) -> Vec<usize> {
    let all = std::iter::from_fn(|| subscription.take());
    all.map(|sample| sample.data.parse().unwrap()).collect()
}

pub fn a_set_is_visible_on_all_topics_and_an_access_is_frozen(harness: &Harness) {
    let fixture = GroupFixture::new(harness, coherent(), &depth(20));
    fixture.publish_set(&[1, 2], &[3]);
    fixture.wait_until_received(harness, 3);
    let access = fixture.group.begin_access();
    assert!(fixture.group.has_open_access());
    assert_eq!(taken(&fixture.of_left), [1, 2]);
    fixture.publish_set(&[4], &[5, 6]);
    fixture.wait_until_received(harness, 6);
    let within = fixture.group.begin_access();
    assert_eq!(fixture.taken(), (vec![], vec![3]));
    within.end();
    assert_eq!(fixture.taken(), (vec![], vec![]), "the outer one goes on");
    assert!(
        fixture
            .group
            .take_timeout(Duration::from_millis(1))
            .is_none()
    );
    access.end();
    assert!(!fixture.group.has_open_access());
    assert_eq!(fixture.taken(), (vec![4], vec![5, 6]));
    // Nothing of an open set is visible on any topic.
    let changes = fixture.out.begin_coherent_changes().unwrap();
    fixture.left.publish(&text(7)).unwrap();
    fixture.right.publish(&text(8)).unwrap();
    let pause = Duration::from_millis(100);
    assert!(!harness.poll_for(pause, || fixture.group.take().is_some()));
    changes.end();
    assert_eq!([fixture.next(), fixture.next()], [7, 8]);
    for subscription in [&fixture.of_left, &fixture.of_right] {
        let counts = subscription.counts();
        assert_eq!((counts.incomplete_sets, counts.lost), (0, 0));
    }
}

pub fn a_set_incomplete_on_one_topic_is_dropped_on_all(harness: &Harness) {
    let fixture = GroupFixture::new(harness, coherent(), &depth(3));
    fixture.publish_set(&[1], &[2, 3, 4, 5]);
    harness.wait_until("counted", || {
        let incomplete = |s: &Subscription<Text>| s.counts().incomplete_sets;
        incomplete(&fixture.of_left) == 1 && incomplete(&fixture.of_right) == 1
    });
    assert_eq!(fixture.of_left.counts().lost, 1);
    assert_eq!(fixture.of_right.counts().lost, 4);
    fixture.publish_set(&[6], &[7]);
    assert_eq!([fixture.next(), fixture.next()], [6, 7]);
    assert_eq!(fixture.of_left.counts().received, 1);
}

pub fn a_full_history_drops_the_oldest_group_set_on_all_topics(harness: &Harness) {
    let fixture = GroupFixture::new(harness, coherent(), &depth(3));
    fixture.publish_set(&[1], &[2]);
    fixture.publish_set(&[3, 4], &[5]);
    fixture.publish_set(&[6], &[7]);
    fixture.wait_until_received(harness, 7);
    let access = fixture.group.begin_access();
    assert_eq!(fixture.taken(), (vec![3, 4, 6], vec![5, 7]));
    drop(access);
    // Samples left by an access are displaced by those that arrived during it.
    fixture.publish_set(&[8], &[9]);
    fixture.wait_until_received(harness, 9);
    let access = fixture.group.begin_access();
    fixture.publish_set(&[10, 11, 12], &[13]);
    fixture.wait_until_received(harness, 13);
    assert_eq!(taken(&fixture.of_right), [9], "shown, so it stays");
    access.end();
    assert_eq!(fixture.taken(), (vec![10, 11, 12], vec![13]));
    assert_eq!(fixture.of_left.counts().overwritten, 2);
    assert_eq!(fixture.of_right.counts().overwritten, 1);
}

pub fn an_ordered_group_yields_samples_in_publishing_order_across_topics(harness: &Harness) {
    let (out, [left, right]) = publishers(harness, ordered(), &depth(200));
    let number: Publisher<Int32> = out.create_publisher("number".qos(depth(200))).unwrap();
    let fixture = GroupFixture::with(harness, out, [left, right], &depth(200));
    let ty = DynamicType::new(Int32::type_description()).unwrap();
    let options = SubscriptionOptions::of_type(&ty, "number".qos(depth(200)));
    let numbers = fixture
        .group
        .create_polled_subscription::<DynamicMessage>(options)
        .unwrap();
    let raw = fixture
        .group
        .create_polled_subscription::<SerializedMessage>(SubscriptionOptions::of_type(
            &SerializedType::new("std_msgs/msg/Int32", None),
            "number".qos(depth(200)),
        ))
        .unwrap();
    fixture.wait_for_matches();
    assert!(number.wait_for_matched(2, TIMEOUT));
    assert!(numbers.wait_for_matched(1, TIMEOUT) && raw.wait_for_matched(1, TIMEOUT));
    for n in 0..90 {
        match n % 3 {
            0 => fixture.left.publish(&text(n)).unwrap(),
            1 => fixture.right.publish(&text(n)).unwrap(),
            _ => number.publish(&Int32 { data: n as i32 }).unwrap(),
        }
    }
    let (mut seen, mut raws) = (Vec::new(), 0);
    while seen.len() < 90 || raws < 30 {
        let next = fixture.group.take_timeout(TIMEOUT).expect("a sample");
        let of_text = |s: &Subscription<Text>| Some(next.sample_of(s)?.data.parse().unwrap());
        if next.sample_of(&raw).is_some() {
            raws += 1;
        } else if let Some(message) = next.sample_of(&numbers) {
            let Some(Value::I32(n)) = message.field("data") else {
                panic!("a number")
            };
            seen.push(*n as usize);
        } else {
            let [left, right] = [&fixture.of_left, &fixture.of_right].map(of_text);
            seen.push(left.or(right).unwrap());
        }
    }
    assert_eq!(seen, (0..90).collect::<Vec<usize>>());
    assert_eq!(fixture.of_left.counts().late, 0);
}

pub fn group_callbacks_run_in_order_and_see_complete_sets(harness: &Harness) {
    let presentation = Presentation {
        ordered: true,
        ..coherent()
    };
    let (out, [left, right]) = publishers(harness, presentation, &depth(20));
    let group = SubscriptionGroup::new(&harness.subscribing, presentation).unwrap();
    let received = Arc::new(Mutex::new(Vec::<usize>::new()));
    let note = || {
        let received = received.clone();
        move |sample: Sample<Text>| received.lock().unwrap().push(sample.data.parse().unwrap())
    };
    let of_left = group
        .create_subscription("left".qos(depth(20)), note())
        .unwrap();
    // A callback may take the other subscriptions' part of the set.
    let aside: Publisher<Text> = out.create_publisher("aside".qos(depth(20))).unwrap();
    let of_aside: Subscription<Text> = group
        .create_polled_subscription("aside".qos(depth(20)))
        .unwrap();
    let of_right = group
        .create_subscription("right".qos(depth(20)), {
            let (note, of_aside) = (note(), of_aside.clone());
            move |sample| {
                note(sample);
                note(of_aside.take().expect("the rest of the set"));
            }
        })
        .unwrap();
    for publisher in [&left, &right, &aside] {
        assert!(publisher.wait_for_matched(1, TIMEOUT));
    }
    harness.wait_until("matched", || {
        of_left.matched_count() == 1
            && of_aside.matched_count() == 1
            && of_right.matched_count() == 1
    });
    for round in 0..3 {
        let changes = out.begin_coherent_changes().unwrap();
        right.publish(&text(10 * round)).unwrap();
        aside.publish(&text(10 * round + 1)).unwrap();
        left.publish(&text(10 * round + 2)).unwrap();
        left.publish(&text(10 * round + 3)).unwrap();
        changes.end();
    }
    let all = || received.lock().unwrap().len() == 12;
    assert!(harness.subscribing.spin_until(all, TIMEOUT));
    let expected: Vec<usize> = (0..3).flat_map(|r| 10 * r..10 * r + 4).collect();
    assert_eq!(*received.lock().unwrap(), expected);
}

pub fn subscriptions_created_before_the_first_access_begin_together(harness: &Harness) {
    let latched = depth(20).transient_local();
    let (out, publishers) = publishers(harness, coherent(), &latched);
    let changes = out.begin_coherent_changes().unwrap();
    publishers[0].publish(&text(1)).unwrap();
    publishers[1].publish(&text(2)).unwrap();
    changes.end();
    // The first one's part arrives before the second subscription exists.
    let fixture = GroupFixture::with(harness, out, publishers, &latched);
    fixture.wait_for_matches();
    assert_eq!([fixture.next(), fixture.next()], [1, 2]);
    assert_eq!(fixture.of_left.counts().incomplete_sets, 0);
    assert_eq!(fixture.of_right.counts().lost, 0);
}

pub fn a_dropped_subscription_does_not_block_its_group(harness: &Harness) {
    let mut fixture = GroupFixture::new(harness, coherent(), &depth(20));
    fixture.publish_set(&[1], &[2]);
    fixture.wait_until_received(harness, 2);
    let node = &harness.subscribing;
    let elsewhere = node
        .create_polled_subscription("elsewhere".keep_last(1))
        .unwrap();
    drop(std::mem::replace(&mut fixture.of_right, elsewhere));
    harness.wait_until("it leaves", || fixture.right.matched_count() == 0);
    fixture.publish_set(&[3], &[4]);
    assert_eq!([fixture.next(), fixture.next()], [1, 3]);
    // A new subscription belongs to the sets that begin after it.
    fixture.of_right = fixture
        .group
        .create_polled_subscription("right".qos(depth(20)))
        .unwrap();
    fixture.wait_for_matches();
    fixture.publish_set(&[5], &[6]);
    assert_eq!([fixture.next(), fixture.next()], [5, 6]);
    assert_eq!(fixture.of_left.counts().incomplete_sets, 0);
}

pub fn a_slow_keep_all_group_blocks_its_publishers_and_gets_every_set(harness: &Harness) {
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(8);
    qos.max_blocking_time = Some(TIMEOUT);
    let (out, publishers) = publishers(harness, coherent(), &qos);
    let fixture = GroupFixture::with(harness, out, publishers, &qos);
    fixture.wait_for_matches();
    let writing = || {
        for n in 0..40 {
            fixture.publish_set(&[3 * n, 3 * n + 1], &[3 * n + 2]);
        }
    };
    harness.run_concurrently(writing, || {
        for n in 0..120 {
            if n % 30 == 0 {
                harness.poll_for(Duration::from_millis(20), || false);
            }
            assert_eq!(fixture.next(), n);
        }
    });
    assert_eq!(fixture.of_left.counts().incomplete_sets, 0);
}

pub fn expired_samples_in_a_full_group_make_room(harness: &Harness) {
    expire_in_a_full_group(harness, |_| {});
}

pub fn samples_that_expire_before_an_access_make_room(harness: &Harness) {
    expire_in_a_full_group(harness, |group| group.begin_access().end());
}

/// All samples of a full group expire; `look` is the first access afterwards.
fn expire_in_a_full_group(harness: &Harness, look: impl FnOnce(&SubscriptionGroup)) {
    let mut lasting = QosProfile::default().keep_all();
    lasting.resource_limits.max_samples = Some(4);
    lasting.max_blocking_time = Some(TIMEOUT);
    let short_lived = lasting.clone().lifespan(Duration::from_millis(50));
    let (out, brief) = publishers(harness, coherent(), &short_lived);
    let fixture = GroupFixture::with(harness, out, brief, &lasting);
    fixture.wait_for_matches();
    assert!(fixture.group.take().is_none(), "the first look");
    fixture.publish_set(&[0, 1, 2, 3], &[4, 5, 6, 7]);
    fixture.wait_until_received(harness, 8);
    harness.poll_for(Duration::from_millis(60), || false);
    // Another publisher finds no room: the expired samples are still stored.
    let (out, [left, right]) = publishers(harness, coherent(), &lasting);
    for (publisher, subscription) in [(&left, &fixture.of_left), (&right, &fixture.of_right)] {
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        harness.wait_until("matched", || subscription.matched_count() == 2);
    }
    let writing = || {
        let changes = out.begin_coherent_changes().unwrap();
        left.publish(&text(8)).unwrap();
        right.publish(&text(9)).unwrap();
        changes.end();
    };
    harness.run_concurrently(writing, || {
        harness.poll_for(Duration::from_millis(20), || false);
        look(&fixture.group);
        assert_eq!([fixture.next(), fixture.next()], [8, 9]);
    });
    let expired = |s: &Subscription<Text>| s.counts().expired;
    assert_eq!(
        (expired(&fixture.of_left), expired(&fixture.of_right)),
        (4, 4)
    );
}

pub fn filtered_samples_do_not_make_a_set_incomplete(harness: &Harness) {
    let (out, publishers) = publishers(harness, coherent(), &depth(20));
    let group = SubscriptionGroup::new(&harness.subscribing, coherent()).unwrap();
    let options =
        SubscriptionOptions::new("left".qos(depth(20))).content_filter("data LIKE 'a%'", [""; 0]);
    let of_left: Subscription<Text> = group.create_polled_subscription(options).unwrap();
    let sparse = QosProfile {
        time_based_filter: Duration::from_secs(1000),
        ..depth(20)
    };
    let of_right: Subscription<Text> = group
        .create_polled_subscription("right".qos(sparse))
        .unwrap();
    for publisher in &publishers {
        assert!(publisher.wait_for_matched(1, TIMEOUT));
    }
    assert!(of_left.wait_for_matched(1, TIMEOUT) && of_right.wait_for_matched(1, TIMEOUT));
    let say = |publisher: &Publisher<Text>, data: &str| {
        publisher.publish(&Text { data: data.into() }).unwrap();
    };
    for round in 0..2 {
        let changes = out.begin_coherent_changes().unwrap();
        for data in ["x", "a1", "y", "a2", "z"] {
            say(&publishers[0], data);
        }
        say(&publishers[1], &format!("first {round}"));
        say(&publishers[1], "second");
        changes.end();
        let next = || {
            let sample = of_left.take_timeout(TIMEOUT).expect("a sample");
            sample.data.clone()
        };
        assert_eq!([next(), next()], ["a1", "a2"]);
        let right: Vec<_> = std::iter::from_fn(|| of_right.take()).collect();
        let right: Vec<_> = right.iter().map(|sample| sample.data.as_str()).collect();
        let expected: &[&str] = if round == 0 { &["first 0"] } else { &[] };
        assert_eq!(right, expected);
    }
    for subscription in [&of_left, &of_right] {
        let counts = subscription.counts();
        assert_eq!((counts.incomplete_sets, counts.lost), (0, 0));
    }
    assert_eq!(of_left.counts().content_filtered, 6);
}

pub fn instances_end_within_sets(harness: &Harness) {
    let presentation = Presentation {
        ordered: true,
        ..coherent()
    };
    let out = PublisherGroup::new(&harness.publishing, presentation).unwrap();
    let shapes: Publisher<Shape> = out.create_publisher("shapes".qos(depth(2))).unwrap();
    let notes: Publisher<Text> = out.create_publisher("notes".qos(depth(20))).unwrap();
    let group = SubscriptionGroup::new(&harness.subscribing, presentation).unwrap();
    let of_shapes: Subscription<Shape> = group
        .create_polled_subscription("shapes".qos(depth(2)))
        .unwrap();
    let of_notes: Subscription<Text> = group
        .create_polled_subscription("notes".qos(depth(20)))
        .unwrap();
    assert!(shapes.wait_for_matched(1, TIMEOUT) && notes.wait_for_matched(1, TIMEOUT));
    assert!(of_shapes.wait_for_matched(1, TIMEOUT) && of_notes.wait_for_matched(1, TIMEOUT));
    let next = || {
        let next = group.take_timeout(TIMEOUT).expect("a change");
        match (next.change_of(&of_shapes), next.sample_of(&of_notes)) {
            (Some(ReceivedChange::Sample(shape)), None) => format!("{} {}", shape.color, shape.x),
            (Some(ReceivedChange::End(end)), None) => {
                format!("{} {:?}", end.key().color, end.state())
            }
            (None, Some(note)) => note.data.clone(),
            _ => panic!("of no subscription"),
        }
    };
    let changes = out.begin_coherent_changes().unwrap();
    shapes.publish(&shape("RED", 1)).unwrap();
    shapes.publish(&shape("BLUE", 1)).unwrap();
    notes.publish(&text(1)).unwrap();
    shapes.dispose(&shape("RED", 0)).unwrap();
    notes.publish(&text(2)).unwrap();
    shapes.publish(&shape("BLUE", 2)).unwrap();
    let pause = Duration::from_millis(100);
    assert!(!harness.poll_for(pause, || group.take().is_some()));
    changes.end();
    let seen: Vec<_> = (0..6).map(|_| next()).collect();
    assert_eq!(
        seen,
        ["RED 1", "BLUE 1", "1", "RED Disposed", "2", "BLUE 2"]
    );
    // The end of an instance alone is a set as well, and the instance becomes alive
    // again.
    let changes = out.begin_coherent_changes().unwrap();
    shapes.dispose(&shape("BLUE", 0)).unwrap();
    changes.end();
    assert_eq!(next(), "BLUE Disposed");
    shapes.publish(&shape("BLUE", 3)).unwrap();
    let back = group.take_timeout(TIMEOUT).unwrap();
    let info = back.info().instance.unwrap();
    assert_eq!(info.disposed_generations, 1);
    assert_eq!(of_shapes.counts().incomplete_sets, 0);
}

pub fn a_group_without_group_access_has_independent_subscriptions(harness: &Harness) {
    let fixture = GroupFixture::new(harness, Presentation::default(), &depth(2));
    for n in 0..6 {
        let publisher = if n % 2 == 0 {
            &fixture.left
        } else {
            &fixture.right
        };
        publisher.publish(&text(n)).unwrap();
    }
    fixture.wait_until_received(harness, 6);
    let access = fixture.group.begin_access();
    assert_eq!(fixture.taken(), (vec![2, 4], vec![3, 5]));
    drop(access);
    assert_eq!(fixture.of_left.counts().overwritten, 1);
    // Publishers outside of groups are received as well.
    let alone: Publisher<Text> = harness
        .publishing
        .create_publisher("left".keep_last(10))
        .unwrap();
    assert!(alone.wait_for_matched(1, TIMEOUT));
    harness.wait_until("matched", || fixture.of_left.matched_count() == 2);
    alone.publish(&text(100)).unwrap();
    assert_eq!(fixture.next(), 100);
    let scope = Presentation {
        access_scope: 3,
        ..Presentation::default()
    };
    let error = SubscriptionGroup::new(&harness.subscribing, scope).unwrap_err();
    assert!(error.to_string().contains("access scope 3"), "{error}");
}
