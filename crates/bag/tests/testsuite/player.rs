//! The player between contexts: state before an offset, clocks, bursts, services as
//! requests, and replay in step with a node.
#![allow(
    clippy::disallowed_methods,
    reason = "tests wait for other threads with a deadline"
)]

use pteros_test_support::folder::Folder;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use pteros::interfaces::rosbag2_interfaces::msg::ReadSplitEvent;
use pteros::interfaces::rosbag2_interfaces::srv;
use pteros::interfaces::rosgraph_msgs::msg::Clock;
use pteros::interfaces::std_msgs::msg::Int32;
use pteros::msg::dynamic::{DynamicMessage, DynamicService};
use pteros::prelude::*;
use pteros::timer::TimerOptions;
use pteros_bag::{
    BagOptions, BagReader, BagTopic, BagWriter, ClockOptions, LastKnown, MessageOrder, PlayedPart,
    Player, PlayerOptions, RequestSource, StepOptions,
};

const TIMEOUT: Duration = Duration::from_secs(60);
const START: u64 = 1_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

static NEXT_DOMAIN: AtomicU32 = AtomicU32::new(0);

/// Two contexts of a domain of their own: the player's and the others'.
struct Graph {
    player: Node,
    executor: SingleThreadedExecutor,
    node: Node,
    others: SingleThreadedExecutor,
}

impl Graph {
    fn new() -> Self {
        let next = NEXT_DOMAIN.fetch_add(1, Ordering::Relaxed);
        let domain = 20 + (std::process::id() * 11 + next) % 80;
        let context = || Context::with_options(ContextOptions::local(domain)).unwrap();
        let (own, other) = (context(), context());
        let player = own.create_node("player").unwrap();
        let node = other.create_node("other").unwrap();
        let executor = SingleThreadedExecutor::new(&own);
        executor.add_node(&player).unwrap();
        let others = SingleThreadedExecutor::new(&other);
        others.add_node(&node).unwrap();
        Self {
            player,
            executor,
            node,
            others,
        }
    }

    /// Spins both until it is so.
    #[track_caller]
    fn spin_until(&self, done: impl Fn() -> bool) {
        let end = Instant::now() + TIMEOUT;
        while !done() {
            assert!(Instant::now() < end, "it does not come to that");
            self.executor.spin_once(Duration::from_millis(1));
            self.others.spin_once(Duration::from_millis(1));
        }
    }

    /// A client of a service of the player.
    fn client<S>(&self, name: &str) -> Client<S>
    where
        S: pteros::msg::ServiceTypeSupport<Support: Default>,
    {
        self.node.create_client(name).unwrap()
    }

    fn play(&self, folder: &Path, options: PlayerOptions) -> Player {
        Player::start(&self.player, BagReader::open(folder).unwrap(), options).unwrap()
    }

    /// The numbers that arrive on topics, with the topics, in order.
    fn listen(&self, topics: &[&'static str]) -> (Heard, Vec<Subscription<Int32>>) {
        let heard = Heard::default();
        let subscriptions = topics.iter().map(|topic| {
            let (topic, heard) = (*topic, heard.clone());
            let qos = QosProfile::default().keep_last(1000);
            self.node
                .create_subscription::<Int32>(topic.qos(qos), move |message| {
                    heard.0.lock().unwrap().push((topic, message.data));
                })
                .unwrap()
        });
        let subscriptions = subscriptions.collect();
        (heard, subscriptions)
    }
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<(&'static str, i32)>>>);

impl Heard {
    fn all(&self) -> Vec<(&'static str, i32)> {
        self.0.lock().unwrap().clone()
    }
}

fn topic(name: &str) -> BagTopic {
    BagTopic {
        name: name.into(),
        type_name: "std_msgs/msg/Int32".into(),
        definition: "int32 data\n".into(),
        serialization_format: "cdr".into(),
        offered_qos: vec![QosProfile::default().keep_last(1000)],
        ..BagTopic::default()
    }
}

fn number(value: i32) -> Vec<u8> {
    [&[0, 1, 0, 0][..], &value.to_le_bytes()].concat()
}

/// A bag with numbered messages: topic, milliseconds after the start.
fn write(folder: &Path, topics: &[BagTopic], messages: &[(u16, u64)]) {
    let mut writer = BagWriter::create(folder, BagOptions::default()).unwrap();
    for topic in topics {
        writer.add_topic(topic.clone()).unwrap();
    }
    for (value, (channel, at)) in (0..).zip(messages) {
        let time = START + at * MILLISECOND;
        writer.write(*channel, time, time, &number(value)).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
}

fn latched(name: &str) -> BagTopic {
    BagTopic {
        offered_qos: vec![QosProfile::default().keep_last(2).transient_local()],
        ..topic(name)
    }
}

fn options() -> PlayerOptions {
    PlayerOptions {
        wait_for_matched: Some(TIMEOUT),
        wait_for_all_acked: Some(TIMEOUT),
        ..PlayerOptions::default()
    }
}

#[test]
fn an_offset_begins_with_latched_and_last_known_messages() {
    let graph = Graph::new();
    let bag = Folder::absent("player-offset");
    let topics = [latched("/map"), topic("/joints"), topic("/scan")];
    let messages = [
        (1, 0),
        (2, 1),
        (1, 2),
        (3, 3),
        (1, 4),
        (2, 5),
        (3, 6),
        (3, 20),
        (2, 30),
    ];
    write(&bag, &topics, &messages);
    let (heard, _subscriptions) = graph.listen(&["/map", "/joints", "/scan"]);
    let player = graph.play(
        &bag,
        PlayerOptions {
            part: PlayedPart {
                start_offset: Duration::from_millis(10),
                ..PlayedPart::default()
            },
            last_known: LastKnown {
                topics: vec!["/joints".into()],
                ..LastKnown::default()
            },
            ..options()
        },
    );
    graph.spin_until(|| player.summary().is_some() && heard.all().len() >= 5);
    // Two of the map's three, the last of the joints, and nothing else before.
    let of = |topic: &str| {
        let all = heard.all().into_iter();
        all.filter(|(on, _)| *on == topic)
            .map(|(_, value)| value)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("/map"), [2, 4]);
    assert_eq!(of("/joints"), [5, 8]);
    assert_eq!(of("/scan"), [7]);
}

#[test]
fn the_next_file_of_a_bag_is_announced() {
    let graph = Graph::new();
    let bag = Folder::absent("player-files");
    let options = BagOptions {
        split_duration: Some(Duration::from_millis(10)),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&bag, options).unwrap();
    let channel = writer.add_topic(topic("/a")).unwrap();
    for (value, at) in (0..).zip([0, 5, 12, 25]) {
        let time = START + at * MILLISECOND;
        writer.write(channel, time, time, &number(value)).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let opened = Arc::<Mutex<Vec<String>>>::default();
    let seen = opened.clone();
    let qos = QosProfile::default().keep_last(100);
    let _splits = graph
        .node
        .create_subscription::<ReadSplitEvent>("/events/read_split".qos(qos), move |event| {
            assert_eq!(event.node_name, "/player");
            let name = event.opened_file.rsplit('/').next().unwrap().to_owned();
            seen.lock().unwrap().push(name);
        })
        .unwrap();
    let (heard, _subscriptions) = graph.listen(&["/a"]);
    let player = graph.play(
        &bag,
        PlayerOptions {
            delay: Duration::from_millis(300),
            ..self::options()
        },
    );
    graph.spin_until(|| player.summary().is_some() && heard.all().len() == 4);
    graph.spin_until(|| opened.lock().unwrap().len() == 2);
    let names = ["player-files_1.mcap", "player-files_2.mcap"];
    assert_eq!(*opened.lock().unwrap(), names);
}

#[test]
fn the_clock_ticks_before_each_message_of_its_topics() {
    let graph = Graph::new();
    let bag = Folder::absent("player-clock");
    write(
        &bag,
        &[topic("/a"), topic("/b")],
        &[(1, 0), (2, 1), (1, 2), (2, 30)],
    );
    let ticks = Arc::<Mutex<Vec<u64>>>::default();
    let seen = ticks.clone();
    let qos = QosProfile::default().keep_last(100);
    let _clock = graph
        .node
        .create_subscription::<Clock>("/clock".qos(qos), move |tick| {
            let nanos = tick.clock.sec as u64 * 1_000_000_000 + u64::from(tick.clock.nanosec);
            seen.lock().unwrap().push(nanos - START);
        })
        .unwrap();
    let (heard, _subscriptions) = graph.listen(&["/a", "/b"]);
    graph.spin_until(|| graph.player.context().graph().subscriptions("/clock").len() == 1);
    let player = graph.play(
        &bag,
        PlayerOptions {
            clock: ClockOptions {
                topics: vec!["/b".into()],
                ..ClockOptions::default()
            },
            ..options()
        },
    );
    graph.spin_until(|| player.summary().is_some() && heard.all().len() == 4);
    graph.spin_until(|| ticks.lock().unwrap().last() == Some(&(30 * MILLISECOND)));
    let ticks = ticks.lock().unwrap();
    // The first may come before the clock's endpoints have matched.
    assert!(
        ticks.ends_with(&[30 * MILLISECOND]) && ticks.len() <= 2,
        "{ticks:?}"
    );
}

#[test]
fn a_paused_player_steps_bursts_and_plays_again_by_its_services() {
    let graph = Graph::new();
    let bag = Folder::absent("player-services");
    // An hour between the messages: only steps and bursts publish them.
    let messages: Vec<(u16, u64)> = (0..8).map(|n| (1, n * 3_600_000)).collect();
    write(&bag, &[topic("/a")], &messages);
    let (heard, _subscriptions) = graph.listen(&["/a"]);
    let player = graph.play(
        &bag,
        PlayerOptions {
            start_paused: true,
            stay: true,
            ..options()
        },
    );
    let burst = graph.client::<srv::Burst>("/player/burst");
    let next = graph.client::<srv::PlayNext>("/player/play_next");
    let play = graph.client::<srv::Play>("/player/play");
    graph.spin_until(|| {
        burst.service_is_ready() && next.service_is_ready() && play.service_is_ready()
    });
    let mut asked = next.call_async(&srv::PlayNextRequest::default()).unwrap();
    let answer = wait(&graph, || asked.take());
    assert!(answer.success);
    graph.spin_until(|| heard.all().len() == 1);
    let bursts = |count: u64| {
        let request = srv::BurstRequest {
            num_messages: count,
        };
        let mut asked = burst.call_async(&request).unwrap();
        wait(&graph, || asked.take()).actually_burst
    };
    assert_eq!(bursts(3), 3);
    graph.spin_until(|| heard.all().len() == 4);
    assert!(player.summary().is_none());
    // More than there are.
    assert_eq!(bursts(100), 4);
    graph.spin_until(|| heard.all().len() == 8);
    assert_eq!(bursts(1), 0, "it has ended");
    // Another part, as ~/play asks for.
    let mut request = srv::PlayRequest::default();
    request.start_offset.sec = 5 * 3600;
    request.playback_duration.sec = -1;
    request.playback_until_timestamp.sec = -1;
    let mut asked = play.call_async(&request).unwrap();
    assert!(wait(&graph, || asked.take()).success);
    let mut asked = play.call_async(&request).unwrap();
    assert!(!wait(&graph, || asked.take()).success, "it plays already");
    assert_eq!(bursts(0), 3);
    graph.spin_until(|| heard.all().len() == 11);
    let values: Vec<i32> = heard.all().into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [0, 1, 2, 3, 4, 5, 6, 7, 5, 6, 7]);
    assert!(player.summary().is_none(), "it stays");
    player.end();
    graph.spin_until(|| player.summary().is_some());
}

/// Spins until a call has its response.
#[track_caller]
fn wait<R: Clone, E: std::fmt::Debug>(
    graph: &Graph,
    mut take: impl FnMut() -> Option<Result<Sample<R>, E>>,
) -> R {
    let answer = std::cell::RefCell::new(None);
    let take = std::cell::RefCell::new(&mut take);
    graph.spin_until(|| {
        let taken = (take.borrow_mut())();
        let is_there = taken.is_some();
        *answer.borrow_mut() = taken;
        is_there
    });
    let sample = answer.into_inner().unwrap().unwrap();
    R::clone(&sample)
}

#[test]
fn recorded_requests_are_sent_to_their_service() {
    let graph = Graph::new();
    let bag = Folder::absent("player-requests");
    let library = pteros::interfaces::library();
    let ty = DynamicService::new(library, "example_interfaces/srv/AddTwoInts").unwrap();
    let event = ty.event().unwrap();
    let mut writer = BagWriter::create(&bag, BagOptions::default()).unwrap();
    let events = writer
        .add_topic(BagTopic {
            name: "/add/_service_event".into(),
            type_name: "example_interfaces/srv/AddTwoInts_Event".into(),
            definition: pteros_bag::definitions::definition_text(&event.description(), library),
            serialization_format: "cdr".into(),
            ..BagTopic::default()
        })
        .unwrap();
    // Sent and received, with and without contents; and the response.
    for (at, yaml) in (0..).zip([
        "{info: {event_type: 0}, request: [{a: 1, b: 2}]}",
        "{info: {event_type: 1}, request: [{a: 3, b: 4}]}",
        "{info: {event_type: 1}}",
        "{info: {event_type: 2}, response: [{sum: 7}]}",
        "{info: {event_type: 1}, request: [{a: 5, b: 6}]}",
    ]) {
        let message = DynamicMessage::from_yaml(event, yaml).unwrap();
        let payload = message.to_payload(Default::default());
        writer.write(events, START + at, START, &payload).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let received = Arc::<Mutex<Vec<(i64, i64)>>>::default();
    let seen = received.clone();
    let _service = graph
        .node
        .create_service::<AddTwoInts>("/add", move |request| {
            seen.lock().unwrap().push((request.a, request.b));
            AddTwoIntsResponse {
                sum: request.a + request.b,
            }
        })
        .unwrap();
    graph.spin_until(|| {
        let services = graph.player.context().graph().services();
        services.iter().any(|service| service.name == "/add")
    });
    for (source, expected) in [
        (RequestSource::Service, vec![(3, 4), (5, 6)]),
        (RequestSource::Client, vec![(1, 2)]),
    ] {
        received.lock().unwrap().clear();
        let player = graph.play(
            &bag,
            PlayerOptions {
                requests: Some(source),
                ..options()
            },
        );
        graph.spin_until(|| player.summary().is_some());
        let summary = player.summary().unwrap();
        assert_eq!(summary.problems, [""; 0]);
        assert_eq!(summary.published, expected.len() as u64);
        graph.spin_until(|| *received.lock().unwrap() == expected);
    }
}

/// The node keeps one message and takes a while for each. Without steps, a bag at full
/// speed would replace most of them. Its timer runs on the bag's time.
#[test]
fn a_bag_in_step_with_a_node_waits_until_its_callback_and_timers_are_done() {
    let bag = Folder::absent("player-step");
    let messages: Vec<(u16, u64)> = (0..40).map(|n| (1, n * 25)).collect();
    write(&bag, &[topic("/a")], &messages);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let next = NEXT_DOMAIN.fetch_add(1, Ordering::Relaxed);
        let domain = 20 + (std::process::id() * 11 + next) % 80;
        let stepped = Context::with_options(ContextOptions {
            use_sim_time: true,
            ..ContextOptions::local(domain)
        })
        .unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let spinning = stepped.clone();
        let seen = log.clone();
        stepped
            .spawn_thread("stepped", move || {
                let node = spinning.create_node("stepped").unwrap();
                let executor = SingleThreadedExecutor::new(&spinning);
                executor.add_node(&node).unwrap();
                let (by_message, by_timer) = (seen.clone(), seen);
                let clock = node.clock();
                let _subscription = node
                    .create_subscription::<Int32>("/a".keep_last(1), move |message| {
                        // A callback that takes its time.
                        let end = Instant::now() + Duration::from_millis(3);
                        while Instant::now() < end {}
                        let now = clock.now().as_nanos();
                        let line = format!("{} at {now}", message.data);
                        by_message.lock().unwrap().push(line);
                    })
                    .unwrap();
                let clock = node.clock();
                let period = TimerOptions::new(Duration::from_millis(100)).on_ros_time();
                let _timer = node
                    .create_timer(period, move || {
                        let now = clock.now().as_nanos();
                        by_timer.lock().unwrap().push(format!("timer at {now}"));
                    })
                    .unwrap();
                executor.spin();
            })
            .unwrap();
        let context = Context::with_options(ContextOptions::local(domain)).unwrap();
        let node = context.create_node("player").unwrap();
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).unwrap();
        let options = PlayerOptions {
            step: Some(StepOptions {
                nodes: vec!["stepped".into()],
                timeout: TIMEOUT,
            }),
            clock: ClockOptions {
                rate: Some(50.0),
                ..ClockOptions::default()
            },
            ..PlayerOptions::default()
        };
        let player = Player::start(&node, BagReader::open(&bag).unwrap(), options).unwrap();
        let end = Instant::now() + TIMEOUT;
        while player.summary().is_none() && Instant::now() < end {
            executor.spin_once(Duration::from_millis(5));
        }
        let summary = player.summary().expect("it ends");
        assert_eq!(
            (summary.published, summary.failed),
            (40, 0),
            "{:?}",
            summary.problems
        );
        stepped.shutdown();
        runs.push(log.lock().unwrap().clone());
    }
    let messages = runs[0].iter().filter(|line| !line.starts_with("timer"));
    assert_eq!(messages.count(), 40, "{:?}", runs[0]);
    let timers = runs[0].iter().filter(|line| line.starts_with("timer"));
    assert!(timers.count() >= 8, "{:?}", runs[0]);
    assert_eq!(runs[0], runs[1]);
}

/// Plays a bag of one message in step with a node that is not there.
fn play_in_step_with_nobody(graph: &Graph, name: &str) -> Player {
    let bag = Folder::absent(&format!("player-{name}"));
    write(&bag, &[topic("/a")], &[(1, 0)]);
    graph.play(
        &bag,
        PlayerOptions {
            step: Some(StepOptions {
                nodes: vec!["/nobody".into()],
                timeout: Duration::from_millis(200),
            }),
            ..PlayerOptions::default()
        },
    )
}

#[test]
fn a_node_that_is_not_there_ends_a_replay_in_step_with_its_name() {
    let graph = Graph::new();
    let player = play_in_step_with_nobody(&graph, "nobody");
    graph.spin_until(|| player.summary().is_some());
    let summary = player.summary().unwrap();
    assert_eq!((summary.published, summary.failed), (0, 1));
    assert!(
        summary.problems[0].contains("--step-with /nobody"),
        "{:?}",
        summary.problems
    );
}

#[test]
fn a_stop_while_a_node_is_awaited_is_no_failure() {
    let graph = Graph::new();
    let player = play_in_step_with_nobody(&graph, "awaited");
    player.stop();
    graph.spin_until(|| player.summary().is_some());
    let summary = player.summary().unwrap();
    assert_eq!((summary.published, summary.failed), (0, 0));
    assert!(summary.problems.is_empty(), "{:?}", summary.problems);
}

#[test]
fn messages_are_spaced_by_the_time_of_the_chosen_order() {
    let graph = Graph::new();
    let bag = Folder::absent("player-order");
    let mut writer = BagWriter::create(&bag, BagOptions::default()).unwrap();
    let channel = writer.add_topic(topic("/a")).unwrap();
    // Received in one order, sent in the other.
    for (value, (log, publish)) in (0..).zip([(0, 30), (1, 20), (2, 10)]) {
        let at = |ms: u64| START + ms * MILLISECOND;
        writer
            .write(channel, at(log), at(publish), &number(value))
            .unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let (heard, _subscriptions) = graph.listen(&["/a"]);
    let player = graph.play(
        &bag,
        PlayerOptions {
            order: MessageOrder::Sent,
            ..options()
        },
    );
    graph.spin_until(|| player.summary().is_some() && heard.all().len() == 3);
    let values: Vec<i32> = heard.all().into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [2, 1, 0]);
}

/// Each of two publishers kept one message. The player's publisher keeps both.
#[test]
fn latched_messages_of_several_publishers_reach_late_joiners() {
    let graph = Graph::new();
    let bag = Folder::absent("player-latched");
    let profile = QosProfile::default().keep_last(1).transient_local();
    let transforms = BagTopic {
        offered_qos: vec![profile.clone(), profile],
        ..topic("/transforms")
    };
    write(
        &bag,
        &[transforms, topic("/a")],
        &[(1, 0), (1, 1), (1, 2), (2, 20)],
    );
    let player = graph.play(
        &bag,
        PlayerOptions {
            part: PlayedPart {
                start_offset: Duration::from_millis(10),
                ..PlayedPart::default()
            },
            stay: true,
            ..PlayerOptions::default()
        },
    );
    let heard = Heard::default();
    let seen = heard.clone();
    let qos = QosProfile::default().keep_last(10).transient_local();
    let _late = graph
        .node
        .create_subscription::<Int32>("/transforms".qos(qos), move |message| {
            seen.0.lock().unwrap().push(("/transforms", message.data));
        })
        .unwrap();
    graph.spin_until(|| heard.all().len() == 2);
    assert_eq!(heard.all(), [("/transforms", 1), ("/transforms", 2)]);
    drop(player);
}

/// A chunk between the map and the offset is damaged, and is not read.
#[test]
fn an_offset_reads_no_chunk_without_missing_state() {
    let graph = Graph::new();
    let bag = Folder::absent("player-backwards");
    let options = BagOptions {
        chunk_bytes: 100,
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&bag, options).unwrap();
    let map = writer.add_topic(latched("/map")).unwrap();
    let scan = writer.add_topic(topic("/scan")).unwrap();
    for value in 0..50 {
        let time = START + value * MILLISECOND;
        let channel = if value < 3 { map } else { scan };
        let value = i32::try_from(value).unwrap();
        writer.write(channel, time, time, &number(value)).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let file = bag.join("player-backwards_0.mcap");
    let mut bytes = std::fs::read(&file).unwrap();
    let wanted = number(25);
    let mut windows = bytes.windows(wanted.len());
    let at = windows.position(|window| window == wanted).unwrap();
    bytes[at + 4] ^= 0x40;
    std::fs::write(&file, bytes).unwrap();
    let (heard, _subscriptions) = graph.listen(&["/map", "/scan"]);
    let player = graph.play(
        &bag,
        PlayerOptions {
            part: PlayedPart {
                start_offset: Duration::from_millis(48),
                ..PlayedPart::default()
            },
            ..self::options()
        },
    );
    graph.spin_until(|| player.summary().is_some() && heard.all().len() == 4);
    let mut all = heard.all();
    all.sort_unstable();
    assert_eq!(
        all,
        [("/map", 1), ("/map", 2), ("/scan", 48), ("/scan", 49)]
    );
    assert_eq!(player.summary().unwrap().problems, [""; 0]);
}

#[test]
fn stopping_an_idle_player_does_not_stop_the_next_part() {
    let graph = Graph::new();
    let bag = Folder::absent("player-idle");
    write(&bag, &[topic("/a")], &[(1, 0), (1, 1)]);
    let (heard, _subscriptions) = graph.listen(&["/a"]);
    let options = PlayerOptions {
        stay: true,
        ..options()
    };
    let player = graph.play(&bag, options);
    let stop = graph.client::<srv::Stop>("/player/stop");
    let play = graph.client::<srv::Play>("/player/play");
    graph.spin_until(|| stop.service_is_ready() && play.service_is_ready());
    let mut request = srv::PlayRequest::default();
    request.playback_duration.sec = -1;
    request.playback_until_timestamp.sec = -1;
    for round in 1..=3 {
        graph.spin_until(|| heard.all().len() == 2 * round);
        // Until it is idle, it cannot play another part.
        loop {
            let mut asked = stop.call_async(&srv::StopRequest::default()).unwrap();
            wait(&graph, || asked.take());
            let mut asked = play.call_async(&request).unwrap();
            if wait(&graph, || asked.take()).success {
                break;
            }
        }
    }
    graph.spin_until(|| heard.all().len() == 8);
    assert!(player.summary().is_none());
}

#[test]
fn no_span_and_no_rate_is_too_large() {
    let graph = Graph::new();
    let bag = Folder::absent("player-large");
    write(&bag, &[topic("/a")], &[(1, 0), (1, 1)]);
    let delayed = PlayerOptions {
        delay: Duration::MAX,
        wait_for_all_acked: Some(Duration::MAX),
        ..PlayerOptions::default()
    };
    let player = graph.play(&bag, delayed);
    player.stop();
    graph.spin_until(|| player.summary().is_some());
    let clock = |rate: f64| PlayerOptions {
        clock: ClockOptions {
            rate: Some(rate),
            ..ClockOptions::default()
        },
        ..PlayerOptions::default()
    };
    for rate in [f64::INFINITY, f64::NAN, 0.0, -1.0] {
        let reader = BagReader::open(&bag).unwrap();
        let error = Player::start(&graph.player, reader, clock(rate)).err();
        let error = error.unwrap().to_string();
        assert!(error.contains("clock rate"), "{error}");
    }
    // The clock is always due, and messages are published all the same.
    let player = graph.play(&bag, clock(1e300));
    graph.spin_until(|| player.summary().is_some());
    assert_eq!(player.summary().unwrap().published, 2);
}

/// Log of kinds: topics that cannot be played. Each is named, and the others are played.
#[test]
fn topics_that_cannot_be_published_are_named_and_the_others_played() {
    let graph = Graph::new();
    let bag = Folder::absent("player-refused");
    let foreign = |format: &str| BagTopic {
        serialization_format: format.into(),
        ..topic(&format!("/{format}"))
    };
    let unknown = BagTopic {
        definition: String::new(),
        type_name: "no_such/msg/Type".into(),
        ..topic("/unknown")
    };
    let other = BagTopic {
        definition: "int32 other\n".into(),
        ..topic("/a")
    };
    let topics = [
        topic("/a"),
        topic("/camera-left/1st image"),
        topic("/two//slashes"),
        foreign("ros1"),
        foreign("json"),
        unknown,
        other,
    ];
    let messages: Vec<(u16, u64)> = (1..=7)
        .map(|channel| (channel, u64::from(channel)))
        .collect();
    write(&bag, &topics, &messages);
    let (heard, _subscriptions) = graph.listen(&["/a"]);
    let options = PlayerOptions {
        wait_for_matched: Some(Duration::from_secs(5)),
        ..PlayerOptions::default()
    };
    let player = graph.play(&bag, options);
    let skipped = player.skipped().join("\n");
    for name in [
        "/camera-left/1st image",
        "/two//slashes",
        "/ros1",
        "/json",
        "/unknown",
    ] {
        let line = format!("topic {name} is not played: ");
        assert!(skipped.contains(&line), "{skipped}");
    }
    assert_eq!(player.skipped().len(), 5, "{skipped}");
    graph.spin_until(|| player.summary().is_some());
    let summary = player.summary().unwrap();
    assert_eq!(
        (summary.published, summary.failed),
        (2, 0),
        "{:?}",
        summary.problems
    );
    graph.spin_until(|| !heard.all().is_empty());
    // The other definition has another hash, so this subscription may refuse it.
    assert_eq!(heard.all()[0], ("/a", 0));
}
