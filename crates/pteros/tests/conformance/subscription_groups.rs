//! Subscriptions that are presented as one whole: what belongs together is seen
//! together, on every topic.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::interfaces::std_msgs::msg::{Int32, String as Text};
use pteros::msg::dynamic::{DynamicType, Value};
use pteros::msg::message::Message;
use pteros::prelude::*;
use pteros::qos::Presentation;
use pteros::{Change, PublisherGroup, SubscriptionGroup, SubscriptionOptions};

use crate::instances::shape;
use crate::stage::{PATIENCE, Stage, text};

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
struct Scene {
    out: PublisherGroup,
    left: Publisher<Text>,
    right: Publisher<Text>,
    group: SubscriptionGroup,
    of_left: Subscription<Text>,
    of_right: Subscription<Text>,
}

impl Scene {
    fn new(stage: &Stage, presentation: Presentation, qos: &QosProfile) -> Self {
        let (out, [left, right]) = publishers(stage, presentation, &depth(20));
        let scene = Self::with(stage, out, [left, right], qos);
        scene.wait_for_matches();
        assert!(scene.group.take().is_none(), "the first look");
        scene
    }

    fn with(
        stage: &Stage,
        out: PublisherGroup,
        [left, right]: [Publisher<Text>; 2],
        qos: &QosProfile,
    ) -> Self {
        let node = &stage.subscribing;
        let group = node.create_subscription_group(out.presentation()).unwrap();
        let [of_left, of_right] =
            ["left", "right"].map(|topic| group.create_polled_subscription(topic, qos).unwrap());
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
            assert!(publisher.wait_for_matched(1, PATIENCE));
            assert!(subscription.wait_for_matched(1, PATIENCE));
        }
    }

    /// A set with these on the left and those on the right.
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

    /// Waits until both have received so many, counted in both.
    fn until_received(&self, stage: &Stage, count: u64) {
        stage.until("received", || {
            let received = |s: &Subscription<Text>| s.counts().received;
            received(&self.of_left) + received(&self.of_right) == count
        });
    }

    fn taken(&self) -> (Vec<usize>, Vec<usize>) {
        (taken(&self.of_left), taken(&self.of_right))
    }

    /// What the group yields next.
    fn next(&self) -> usize {
        let next = self.group.take_timeout(PATIENCE).expect("a sample");
        let left = next.sample_of(&self.of_left);
        let right = next.sample_of(&self.of_right);
        assert!(left.is_some() != right.is_some());
        left.or(right).unwrap().data.parse().unwrap()
    }
}

fn publishers(
    stage: &Stage,
    presentation: Presentation,
    qos: &QosProfile,
) -> (PublisherGroup, [Publisher<Text>; 2]) {
    let node = &stage.publishing;
    let out = node.create_publisher_group(presentation).unwrap();
    let publishers = ["left", "right"].map(|topic| out.create_publisher(topic, qos).unwrap());
    (out, publishers)
}

/// What is there now.
fn taken(subscription: &Subscription<Text>) -> Vec<usize> {
    let all = std::iter::from_fn(|| subscription.take());
    all.map(|sample| sample.data.parse().unwrap()).collect()
}

pub fn a_set_is_seen_on_all_topics_and_an_access_shows_nothing_that_comes_later(stage: &Stage) {
    let scene = Scene::new(stage, coherent(), &depth(20));
    scene.publish_set(&[1, 2], &[3]);
    scene.until_received(stage, 3);
    let access = scene.group.begin_access();
    assert!(scene.group.is_accessed());
    assert_eq!(taken(&scene.of_left), [1, 2]);
    scene.publish_set(&[4], &[5, 6]);
    scene.until_received(stage, 6);
    let within = scene.group.begin_access();
    assert_eq!(scene.taken(), (vec![], vec![3]));
    within.end();
    assert_eq!(scene.taken(), (vec![], vec![]), "the outer one goes on");
    assert!(scene.group.take_timeout(Duration::from_millis(1)).is_none());
    access.end();
    assert!(!scene.group.is_accessed());
    assert_eq!(scene.taken(), (vec![4], vec![5, 6]));
    // Nothing of an open set is seen, on no topic.
    let changes = scene.out.begin_coherent_changes().unwrap();
    scene.left.publish(&text(7)).unwrap();
    scene.right.publish(&text(8)).unwrap();
    let pause = Duration::from_millis(100);
    assert!(!stage.watch(pause, || scene.group.take().is_some()));
    changes.end();
    assert_eq!([scene.next(), scene.next()], [7, 8]);
    for subscription in [&scene.of_left, &scene.of_right] {
        let counts = subscription.counts();
        assert_eq!((counts.incomplete_sets, counts.lost), (0, 0));
    }
}

pub fn a_set_spoiled_on_one_topic_is_withheld_on_all(stage: &Stage) {
    let scene = Scene::new(stage, coherent(), &depth(3));
    scene.publish_set(&[1], &[2, 3, 4, 5]);
    stage.until("counted", || {
        let incomplete = |s: &Subscription<Text>| s.counts().incomplete_sets;
        incomplete(&scene.of_left) == 1 && incomplete(&scene.of_right) == 1
    });
    assert_eq!(scene.of_left.counts().lost, 1);
    assert_eq!(scene.of_right.counts().lost, 4);
    scene.publish_set(&[6], &[7]);
    assert_eq!([scene.next(), scene.next()], [6, 7]);
    assert_eq!(scene.of_left.counts().received, 1);
}

pub fn when_sets_of_a_group_need_room_the_oldest_goes_on_all_topics(stage: &Stage) {
    let scene = Scene::new(stage, coherent(), &depth(3));
    scene.publish_set(&[1], &[2]);
    scene.publish_set(&[3, 4], &[5]);
    scene.publish_set(&[6], &[7]);
    scene.until_received(stage, 7);
    let access = scene.group.begin_access();
    assert_eq!(scene.taken(), (vec![3, 4, 6], vec![5, 7]));
    drop(access);
    // What an access left makes room for what came during it.
    scene.publish_set(&[8], &[9]);
    scene.until_received(stage, 9);
    let access = scene.group.begin_access();
    scene.publish_set(&[10, 11, 12], &[13]);
    scene.until_received(stage, 13);
    assert_eq!(taken(&scene.of_right), [9], "shown, so it stays");
    access.end();
    assert_eq!(scene.taken(), (vec![10, 11, 12], vec![13]));
    assert_eq!(scene.of_left.counts().overwritten, 2);
    assert_eq!(scene.of_right.counts().overwritten, 1);
}

pub fn a_group_yields_what_was_published_in_its_order_over_all_topics(stage: &Stage) {
    let (out, [left, right]) = publishers(stage, ordered(), &depth(200));
    let number: Publisher<Int32> = out.create_publisher("number", depth(200)).unwrap();
    let scene = Scene::with(stage, out, [left, right], &depth(200));
    let ty = DynamicType::new(Int32::type_description()).unwrap();
    let options = SubscriptionOptions::new(depth(200));
    let numbers = scene
        .group
        .create_dynamic_subscription("number", &ty, options)
        .unwrap();
    let raw = scene
        .group
        .create_raw_subscription(
            "number",
            "std_msgs/msg/Int32",
            None,
            SubscriptionOptions::new(depth(200)),
        )
        .unwrap();
    scene.wait_for_matches();
    assert!(number.wait_for_matched(2, PATIENCE));
    assert!(numbers.wait_for_matched(1, PATIENCE) && raw.wait_for_matched(1, PATIENCE));
    for n in 0..90 {
        match n % 3 {
            0 => scene.left.publish(&text(n)).unwrap(),
            1 => scene.right.publish(&text(n)).unwrap(),
            _ => number.publish(&Int32 { data: n as i32 }).unwrap(),
        }
    }
    let (mut seen, mut raws) = (Vec::new(), 0);
    while seen.len() < 90 || raws < 30 {
        let next = scene.group.take_timeout(PATIENCE).expect("a sample");
        let of_text = |s: &Subscription<Text>| Some(next.sample_of(s)?.data.parse().unwrap());
        if next.sample_of(&raw).is_some() {
            raws += 1;
        } else if let Some(message) = next.sample_of(&numbers) {
            let Some(Value::I32(n)) = message.field("data") else {
                panic!("a number")
            };
            seen.push(*n as usize);
        } else {
            let [left, right] = [&scene.of_left, &scene.of_right].map(of_text);
            seen.push(left.or(right).unwrap());
        }
    }
    assert_eq!(seen, (0..90).collect::<Vec<usize>>());
    assert_eq!(scene.of_left.counts().late, 0);
}

pub fn callbacks_of_a_group_run_in_its_order_and_see_sets_whole(stage: &Stage) {
    let presentation = Presentation {
        ordered: true,
        ..coherent()
    };
    let (out, [left, right]) = publishers(stage, presentation, &depth(20));
    let group = stage
        .subscribing
        .create_subscription_group(presentation)
        .unwrap();
    let heard = Arc::new(Mutex::new(Vec::<usize>::new()));
    let note = || {
        let heard = heard.clone();
        move |sample: Sample<Text>| heard.lock().unwrap().push(sample.data.parse().unwrap())
    };
    let of_left = group
        .create_subscription("left", depth(20), note())
        .unwrap();
    // Whoever is called may look at the others' part of the set.
    let aside: Publisher<Text> = out.create_publisher("aside", depth(20)).unwrap();
    let of_aside: Subscription<Text> = group
        .create_polled_subscription("aside", depth(20))
        .unwrap();
    let of_right = group
        .create_subscription("right", depth(20), {
            let (note, of_aside) = (note(), of_aside.clone());
            move |sample| {
                note(sample);
                note(of_aside.take().expect("the rest of the set"));
            }
        })
        .unwrap();
    for publisher in [&left, &right, &aside] {
        assert!(publisher.wait_for_matched(1, PATIENCE));
    }
    stage.until("matched", || {
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
    let all = || heard.lock().unwrap().len() == 12;
    assert!(stage.subscribing.spin_until(all, PATIENCE));
    let expected: Vec<usize> = (0..3).flat_map(|r| 10 * r..10 * r + 4).collect();
    assert_eq!(*heard.lock().unwrap(), expected);
}

pub fn subscriptions_made_before_the_first_look_begin_together(stage: &Stage) {
    let latched = depth(20).transient_local();
    let (out, publishers) = publishers(stage, coherent(), &latched);
    let changes = out.begin_coherent_changes().unwrap();
    publishers[0].publish(&text(1)).unwrap();
    publishers[1].publish(&text(2)).unwrap();
    changes.end();
    // The first one's part of it comes before there is a second one.
    let scene = Scene::with(stage, out, publishers, &latched);
    scene.wait_for_matches();
    assert_eq!([scene.next(), scene.next()], [1, 2]);
    assert_eq!(scene.of_left.counts().incomplete_sets, 0);
    assert_eq!(scene.of_right.counts().lost, 0);
}

pub fn a_subscription_that_leaves_a_group_is_missed_by_nobody(stage: &Stage) {
    let mut scene = Scene::new(stage, coherent(), &depth(20));
    scene.publish_set(&[1], &[2]);
    scene.until_received(stage, 2);
    let node = &stage.subscribing;
    let elsewhere = node.create_polled_subscription("elsewhere", 1).unwrap();
    drop(std::mem::replace(&mut scene.of_right, elsewhere));
    stage.until("it leaves", || scene.right.matched_count() == 0);
    scene.publish_set(&[3], &[4]);
    assert_eq!([scene.next(), scene.next()], [1, 3]);
    // A newcomer belongs to the sets that begin when it is there.
    scene.of_right = scene
        .group
        .create_polled_subscription("right", depth(20))
        .unwrap();
    scene.wait_for_matches();
    scene.publish_set(&[5], &[6]);
    assert_eq!([scene.next(), scene.next()], [5, 6]);
    assert_eq!(scene.of_left.counts().incomplete_sets, 0);
}

pub fn a_slow_group_holds_its_publishers_back_and_gets_every_set(stage: &Stage) {
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(8);
    qos.max_blocking_time = Some(PATIENCE);
    let (out, publishers) = publishers(stage, coherent(), &qos);
    let scene = Scene::with(stage, out, publishers, &qos);
    scene.wait_for_matches();
    let writing = || {
        for n in 0..40 {
            scene.publish_set(&[3 * n, 3 * n + 1], &[3 * n + 2]);
        }
    };
    stage.beside(writing, || {
        for n in 0..120 {
            if n % 30 == 0 {
                stage.watch(Duration::from_millis(20), || false);
            }
            assert_eq!(scene.next(), n);
        }
    });
    assert_eq!(scene.of_left.counts().incomplete_sets, 0);
}

pub fn what_expires_in_a_full_group_makes_room(stage: &Stage) {
    expire_in_a_full_group(stage, |_| {});
}

pub fn what_an_access_finds_expired_makes_room(stage: &Stage) {
    expire_in_a_full_group(stage, |group| group.begin_access().end());
}

/// All that a full group has expires; `look` is the first look at it after that.
fn expire_in_a_full_group(stage: &Stage, look: impl FnOnce(&SubscriptionGroup)) {
    let mut lasting = QosProfile::default().keep_all();
    lasting.resource_limits.max_samples = Some(4);
    lasting.max_blocking_time = Some(PATIENCE);
    let short_lived = lasting.clone().lifespan(Duration::from_millis(50));
    let (out, brief) = publishers(stage, coherent(), &short_lived);
    let scene = Scene::with(stage, out, brief, &lasting);
    scene.wait_for_matches();
    assert!(scene.group.take().is_none(), "the first look");
    scene.publish_set(&[0, 1, 2, 3], &[4, 5, 6, 7]);
    scene.until_received(stage, 8);
    stage.watch(Duration::from_millis(60), || false);
    // Another publisher finds no room: what has expired is still there.
    let (out, [left, right]) = publishers(stage, coherent(), &lasting);
    for (publisher, subscription) in [(&left, &scene.of_left), (&right, &scene.of_right)] {
        assert!(publisher.wait_for_matched(1, PATIENCE));
        stage.until("matched", || subscription.matched_count() == 2);
    }
    let writing = || {
        let changes = out.begin_coherent_changes().unwrap();
        left.publish(&text(8)).unwrap();
        right.publish(&text(9)).unwrap();
        changes.end();
    };
    stage.beside(writing, || {
        stage.watch(Duration::from_millis(20), || false);
        look(&scene.group);
        assert_eq!([scene.next(), scene.next()], [8, 9]);
    });
    let expired = |s: &Subscription<Text>| s.counts().expired;
    assert_eq!((expired(&scene.of_left), expired(&scene.of_right)), (4, 4));
}

pub fn what_filters_keep_back_of_a_set_does_not_spoil_it(stage: &Stage) {
    let (out, publishers) = publishers(stage, coherent(), &depth(20));
    let group = stage
        .subscribing
        .create_subscription_group(coherent())
        .unwrap();
    let options = SubscriptionOptions::new(depth(20)).content_filter("data LIKE 'a%'", [""; 0]);
    let of_left: Subscription<Text> = group.create_subscription_with("left", options).unwrap();
    let sparse = QosProfile {
        time_based_filter: Duration::from_secs(1000),
        ..depth(20)
    };
    let of_right: Subscription<Text> = group.create_polled_subscription("right", sparse).unwrap();
    for publisher in &publishers {
        assert!(publisher.wait_for_matched(1, PATIENCE));
    }
    assert!(of_left.wait_for_matched(1, PATIENCE) && of_right.wait_for_matched(1, PATIENCE));
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
            let sample = of_left.take_timeout(PATIENCE).expect("a sample");
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
    assert_eq!(of_left.counts().unwanted, 6);
}

pub fn instances_end_within_sets(stage: &Stage) {
    let presentation = Presentation {
        ordered: true,
        ..coherent()
    };
    let out = stage
        .publishing
        .create_publisher_group(presentation)
        .unwrap();
    let shapes: Publisher<Shape> = out.create_publisher("shapes", depth(2)).unwrap();
    let notes: Publisher<Text> = out.create_publisher("notes", depth(20)).unwrap();
    let group = stage
        .subscribing
        .create_subscription_group(presentation)
        .unwrap();
    let of_shapes: Subscription<Shape> = group
        .create_polled_subscription("shapes", depth(2))
        .unwrap();
    let of_notes: Subscription<Text> = group
        .create_polled_subscription("notes", depth(20))
        .unwrap();
    assert!(shapes.wait_for_matched(1, PATIENCE) && notes.wait_for_matched(1, PATIENCE));
    assert!(of_shapes.wait_for_matched(1, PATIENCE) && of_notes.wait_for_matched(1, PATIENCE));
    let next = || {
        let next = group.take_timeout(PATIENCE).expect("a change");
        match (next.change_of(&of_shapes), next.sample_of(&of_notes)) {
            (Some(Change::Sample(shape)), None) => format!("{} {}", shape.color, shape.x),
            (Some(Change::End(end)), None) => format!("{} {:?}", end.key().color, end.state()),
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
    assert!(!stage.watch(pause, || group.take().is_some()));
    changes.end();
    let seen: Vec<_> = (0..6).map(|_| next()).collect();
    assert_eq!(
        seen,
        ["RED 1", "BLUE 1", "1", "RED Disposed", "2", "BLUE 2"]
    );
    // An end alone is a set as well, and an instance comes back.
    let changes = out.begin_coherent_changes().unwrap();
    shapes.dispose(&shape("BLUE", 0)).unwrap();
    changes.end();
    assert_eq!(next(), "BLUE Disposed");
    shapes.publish(&shape("BLUE", 3)).unwrap();
    let back = group.take_timeout(PATIENCE).unwrap();
    let info = back.info().instance.unwrap();
    assert_eq!(info.disposed_generations, 1);
    assert_eq!(of_shapes.counts().incomplete_sets, 0);
}

pub fn a_group_of_plain_presentation_is_subscriptions_side_by_side(stage: &Stage) {
    let scene = Scene::new(stage, Presentation::default(), &depth(2));
    for n in 0..6 {
        let publisher = if n % 2 == 0 {
            &scene.left
        } else {
            &scene.right
        };
        publisher.publish(&text(n)).unwrap();
    }
    scene.until_received(stage, 6);
    let access = scene.group.begin_access();
    assert_eq!(scene.taken(), (vec![2, 4], vec![3, 5]));
    drop(access);
    assert_eq!(scene.of_left.counts().overwritten, 1);
    // Publishers of no group are heard as well.
    let alone: Publisher<Text> = stage.publishing.create_publisher("left", 10).unwrap();
    assert!(alone.wait_for_matched(1, PATIENCE));
    stage.until("matched", || scene.of_left.matched_count() == 2);
    alone.publish(&text(100)).unwrap();
    assert_eq!(scene.next(), 100);
    let scope = Presentation {
        access_scope: 3,
        ..Presentation::default()
    };
    let error = stage
        .subscribing
        .create_subscription_group(scope)
        .unwrap_err();
    assert!(error.to_string().contains("access scope 3"), "{error}");
}
