//! Broadcasters and listeners: intra-process and between two contexts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::TimerOptions;
use pteros::clock::ClockServer;
use pteros::parameter::Parameter;
use pteros::prelude::*;
use pteros::tf::{
    LATEST, LookupError, StaticTransformBroadcaster, TransformBroadcaster, TransformBufferOptions,
    TransformListener,
};

use super::{ahead, at, ms};

const TIMEOUT: Duration = Duration::from_secs(20);

fn contexts(domain: u32) -> [(Context, Context); 2] {
    let open = || Context::with_options(ContextOptions::local(domain)).unwrap();
    let one = open();
    [(open(), open()), (one.clone(), one)]
}

#[test]
fn a_late_listener_gets_all_static_transforms_and_new_ones() {
    for (theirs, ours) in contexts(111) {
        let robot = theirs.create_node("robot").unwrap();
        let fixed = StaticTransformBroadcaster::new(&robot).unwrap();
        fixed
            .send_transform(at(0, "base_link", "laser", ahead(0.2)))
            .unwrap();
        fixed
            .send_transform(at(0, "base_link", "camera", ahead(0.3)))
            .unwrap();
        fixed
            .send_transform(at(0, "base_link", "/laser", ahead(0.4)))
            .unwrap();
        let moving = TransformBroadcaster::new(&robot).unwrap();
        let node = ours.create_node("listener").unwrap();
        let transforms = TransformListener::new(&node).unwrap();
        // Nobody spins.
        let laser = transforms
            .lookup_transform_within("base_link", "laser", LATEST, TIMEOUT)
            .unwrap();
        assert_eq!(laser.transform.translation.x, 0.4, "the last one told");
        assert!(
            transforms
                .lookup_transform("base_link", "camera", LATEST)
                .is_ok()
        );
        assert!(moving.publisher().wait_for_matched(1, TIMEOUT));
        moving
            .send_transform(at(1_000, "odom", "base_link", ahead(1.0)))
            .unwrap();
        moving
            .send_transform(at(2_000, "odom", "base_link", ahead(2.0)))
            .unwrap();
        let found = transforms
            .lookup_transform_within("odom", "laser", ms(1_500), TIMEOUT)
            .unwrap();
        assert!((found.transform.translation.x - 1.9).abs() < 1e-9);
        // The graph names the broadcasters.
        let named = || {
            let frames = transforms.buffer().frames();
            let laser = frames
                .iter()
                .find(|frame| frame.edge.frame == "laser")
                .unwrap();
            laser.edge.authority.as_deref() == Some("/robot")
        };
        assert!(
            ours.graph().wait_until(TIMEOUT, named),
            "{}",
            transforms.buffer().frames_yaml()
        );
        // An invalid transform is not sent.
        assert!(
            moving
                .send_transform(at(0, "odom", "odom", ahead(0.0)))
                .is_err()
        );
        let late = transforms.lookup_transform_within(
            "odom",
            "laser",
            ms(2_001),
            Duration::from_millis(20),
        );
        let late = late.unwrap_err();
        assert!(
            matches!(&late, LookupError::TimedOut { reason, .. }
            if matches!(**reason, LookupError::Extrapolation { .. })),
            "{late}"
        );
        assert!(
            late.to_string()
                .starts_with("after 0.02 s: no transform from \"laser\""),
            "{late}"
        );
    }
}

#[test]
fn listeners_of_a_process_share_subscriptions_by_topic() {
    let context = Context::with_options(ContextOptions::local(112)).unwrap();
    let (one, two) = (
        context.create_node("one").unwrap(),
        context.create_node("two").unwrap(),
    );
    let arguments = ["--ros-args", "-r", "/tf:=other_tf"].map(String::from);
    let (arguments, _) = pteros::args::Arguments::parse(arguments).unwrap();
    let elsewhere = NodeOptions::new("elsewhere").arguments(arguments);
    let elsewhere = context.create_node(elsewhere).unwrap();
    let listeners = [&one, &two, &two].map(|node| TransformListener::new(node).unwrap());
    let apart = TransformListener::new(&elsewhere).unwrap();
    let own = TransformBufferOptions::default();
    let own = TransformListener::with_options(&one, own).unwrap();
    let subscriptions = |topic| {
        let known = context.graph().subscriptions(topic).into_iter();
        let mut nodes: Vec<_> = known.filter_map(|info| info.node_name).collect();
        nodes.sort();
        nodes.join(" ")
    };
    assert_eq!(
        context.graph().subscriptions("/tf").len(),
        2,
        "shared, and one of its own"
    );
    assert_eq!(subscriptions("/other_tf"), "elsewhere");
    let broadcaster = TransformBroadcaster::new(&one).unwrap();
    broadcaster
        .send_transform(at(1_000, "a", "b", ahead(1.0)))
        .unwrap();
    for listener in listeners.iter().chain([&own]) {
        assert!(listener.lookup_transform("a", "b", LATEST).is_ok());
    }
    assert!(apart.lookup_transform("a", "b", LATEST).is_err());
    drop((listeners, own));
    assert_eq!(context.graph().subscriptions("/tf").len(), 0);
    assert_eq!(context.graph().subscriptions("/other_tf").len(), 1);
}

#[test]
fn a_callback_waits_for_a_transform_while_it_holds_the_only_thread() {
    for (theirs, ours) in contexts(113) {
        let robot = theirs.create_node("robot").unwrap();
        let broadcaster = TransformBroadcaster::new(&robot).unwrap();
        let node = ours.create_node("patient").unwrap();
        let transforms = TransformListener::new(&node).unwrap();
        assert!(broadcaster.publisher().wait_for_matched(1, TIMEOUT));
        let found = Arc::new(Mutex::new(None));
        let (note, stop) = (found.clone(), ours.clone());
        let _timer = node
            .create_timer(
                TimerOptions::new(Duration::from_millis(1)).one_shot(),
                move || {
                    broadcaster
                        .send_transform(at(1_000, "a", "b", ahead(1.0)))
                        .unwrap();
                    let answer = transforms.lookup_transform_within("a", "b", ms(1_000), TIMEOUT);
                    *note.lock().unwrap() = Some(answer);
                    stop.shutdown();
                },
            )
            .unwrap();
        node.spin();
        let found = found.lock().unwrap().take();
        assert!(found.unwrap().is_ok());
    }
}

#[test]
fn a_transform_future_completes_while_others_run() {
    for (theirs, ours) in contexts(114) {
        let robot = theirs.create_node("robot").unwrap();
        let broadcaster = TransformBroadcaster::new(&robot).unwrap();
        let node = ours.create_node("async").unwrap();
        let transforms = TransformListener::new(&node).unwrap();
        assert!(broadcaster.publisher().wait_for_matched(1, TIMEOUT));
        let done = Arc::new(AtomicBool::new(false));
        let (note, listener) = (done.clone(), transforms.clone());
        let limited = node.clone();
        let _task = node.spawn(async move {
            let never = listener.wait_for_transform("a", "c", LATEST);
            assert!(
                limited
                    .timeout(Duration::from_millis(5), never)
                    .await
                    .is_none()
            );
            assert!(
                listener.wait_for_transform("", "c", LATEST).await.is_err(),
                "a mistake is told"
            );
            let found = listener
                .wait_for_transform("a", "b", ms(1_500))
                .await
                .unwrap();
            assert_eq!(found.transform.translation.x, 1.5);
            note.store(true, Ordering::Relaxed);
        });
        let mut sent = 0;
        let _timer = node
            .create_timer(Duration::from_millis(10), move || {
                sent += 1;
                let x = f64::from(sent);
                let millis = i64::from(sent) * 1_000;
                broadcaster
                    .send_transform(at(millis, "a", "b", ahead(x)))
                    .unwrap();
            })
            .unwrap();
        assert!(node.spin_until(|| done.load(Ordering::Relaxed), TIMEOUT));
    }
}

#[test]
fn a_backward_time_jump_clears_dynamic_transforms_and_ends_waits() {
    let context = Context::with_options(ContextOptions::local(115)).unwrap();
    let source = context.create_node("source").unwrap();
    let time = ClockServer::new(&source, ms(5_000), Duration::from_secs(1)).unwrap();
    time.pause();
    let options =
        NodeOptions::new("simulated").parameter_overrides([Parameter::new("use_sim_time", true)]);
    let node = context.create_node(options).unwrap();
    let transforms = TransformListener::new(&node).unwrap();
    let broadcaster = TransformBroadcaster::new(&source).unwrap();
    let fixed = StaticTransformBroadcaster::new(&source).unwrap();
    fixed.send_transform(at(0, "b", "c", ahead(1.0))).unwrap();
    time.step(Duration::from_secs(1));
    broadcaster
        .send_transform(at(6_000, "a", "b", ahead(1.0)))
        .unwrap();
    assert!(transforms.lookup_transform("a", "c", LATEST).is_ok());
    // The time-out is in simulated time, which runs by itself now.
    time.set_speed(1_000.0).unwrap();
    time.resume();
    let second = Duration::from_secs(1);
    let stepping = time.clone();
    let _timer = source
        .create_timer(Duration::from_millis(1), move || stepping.step(second))
        .unwrap();
    let over = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let error = transforms.lookup_transform_within("a", "c", ms(7_000_000), 10 * second);
            over.store(true, Ordering::Relaxed);
            error.unwrap_err()
        });
        assert!(source.spin_until(|| over.load(Ordering::Relaxed), TIMEOUT));
        waiting.join().unwrap()
    });
    assert!(matches!(error, LookupError::TimedOut { .. }), "{error}");
    time.set(ms(2_000));
    assert!(
        transforms.lookup_transform("a", "b", LATEST).is_err(),
        "it went back"
    );
    assert!(
        transforms.lookup_transform("b", "c", LATEST).is_ok(),
        "static ones hold"
    );
    broadcaster
        .send_transform(at(2_000, "a", "b", ahead(1.0)))
        .unwrap();
    assert!(
        transforms.lookup_transform("a", "c", LATEST).is_ok(),
        "no longer too old"
    );
}
