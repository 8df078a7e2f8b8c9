//! The bridge between RTPS domains and Zenoh networks, with nodes on one transport each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use pteros::action::GoalStatus;
use pteros::interfaces::example_interfaces::action::{FibonacciGoal, FibonacciResult};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::to_payload;
use pteros::prelude::*;
use pteros::service::CallError;
use pteros::subscription::{SerializedMessage, SerializedType};
use pteros::{QosProfile, SubscriptionOptions};
use pteros_runtime::EndpointSpec;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::rtps::qos::EndpointQos;
use pteros_zenoh::bridge::{
    Bridge, BridgeEvent, BridgeId, BridgeOptions, NameSelection, RouteCounts, RouteKind,
    RuleOptions, Side,
};

use crate::harness::{FibonacciAction, Net, SOON, add_two_ints, next, text, until};
use pteros_test_support::spin_thread::SpinThread;
use zenoh::Wait as _;

/// A domain for RTPS that no other test of this program has.
fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(60);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A context that RTPS alone joins with others of this host.
fn open_rtps(domain: u32) -> Context {
    Context::with_options(ContextOptions::local(domain)).unwrap()
}

/// Waits for something that the threads of a bridge do: it wakes nobody here.
fn eventually(context: &Context, done: impl Fn() -> bool) -> bool {
    let graph = context.graph();
    let looks = || graph.wait_until(Duration::from_millis(20), &done);
    (0..1_000).any(|_| looks())
}

/// A bridge with its contexts and reports.
struct Running {
    bridge: Option<Bridge>,
    rtps: Context,
    zenoh: Context,
    events: Arc<Mutex<Vec<BridgeEvent>>>,
}

impl Running {
    fn start(net: &Net, domain: u32, id: u32, rules: RuleOptions) -> Self {
        let [rtps, zenoh] = [open_rtps(domain), net.open()];
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = events.clone();
        let options = BridgeOptions {
            rules,
            id: Some(BridgeId(id)),
            report: Box::new(move |event| sink.lock().unwrap().push(event.clone())),
            ..BridgeOptions::default()
        };
        let bridge = Bridge::start(rtps.runtime(), zenoh.runtime(), options).unwrap();
        Self {
            bridge: Some(bridge),
            rtps,
            zenoh,
            events,
        }
    }

    fn has(&self, is_it: impl Fn(&BridgeEvent) -> bool) -> bool {
        self.events.lock().unwrap().iter().any(is_it)
    }

    /// Waits for a report.
    #[track_caller]
    fn expect(&self, what: &str, is_it: impl Fn(&BridgeEvent) -> bool) {
        let found = eventually(&self.rtps, || self.has(&is_it));
        assert!(found, "no {what}: {:#?}", self.events.lock().unwrap());
    }

    fn counts(&self, name: &str) -> RouteCounts {
        let status = self.bridge.as_ref().unwrap().status();
        let of_name = status.routes.iter().filter(|of| of.rtps_name == name);
        of_name.fold(RouteCounts::default(), |sum, of| sum.plus(of.counts))
    }

    fn stop(&mut self) {
        self.bridge = None;
    }
}

/// One robot on RTPS, a bridge, and the cloud on Zenoh.
struct Pair {
    net: Net,
    domain: u32,
    robot: Context,
    cloud: Context,
    bridge: Running,
}

impl Pair {
    fn new(rules: RuleOptions) -> Self {
        let (net, domain) = (Net::new(), domain());
        let bridge = Running::start(&net, domain, 7, rules);
        Self {
            robot: open_rtps(domain),
            cloud: net.open(),
            net,
            domain,
            bridge,
        }
    }

    fn plain() -> Self {
        Self::new(RuleOptions::default())
    }

    /// From the robot to the cloud, and back.
    fn both_ways(&self) -> [(&Context, &Context); 2] {
        [(&self.robot, &self.cloud), (&self.cloud, &self.robot)]
    }
}

/// Chooses names that begin so.
fn below(prefix: &'static str) -> NameSelection {
    Arc::new(move |name| name.starts_with(prefix))
}

#[track_caller]
fn matched(publisher: &Publisher<Text>, subscription: &Subscription<Text>) {
    assert!(publisher.wait_for_matched(1, SOON), "the publisher");
    assert!(subscription.wait_for_matched(1, SOON), "the subscription");
}

#[test]
fn messages_pass_both_ways_once_and_in_order() {
    let pair = Pair::plain();
    // The same topic both ways at once: nothing comes back.
    let sides = pair.both_ways().map(|(here, _)| {
        let node = here.create_node("node").unwrap();
        // 102 messages may wait.
        let profile = || "chatter".keep_last(200);
        let publisher: Publisher<Text> = node.create_publisher(profile()).unwrap();
        let subscription: Subscription<Text> = node.create_polled_subscription(profile()).unwrap();
        (node, publisher, subscription)
    });
    for (_, publisher, subscription) in &sides {
        // Its own side's and the other's.
        assert!(publisher.wait_for_matched(2, SOON));
        assert!(subscription.wait_for_matched(2, SOON));
    }
    for n in 0..50 {
        for (at, (_, publisher, _)) in sides.iter().enumerate() {
            publisher.publish(&text(format!("{at} {n}"))).unwrap();
        }
    }
    for (_, publisher, _) in &sides {
        publisher.publish(&text("end")).unwrap();
    }
    for (_, _, subscription) in &sides {
        let mut heard: [Vec<String>; 2] = Default::default();
        let mut ends = 0;
        while ends < 2 {
            match next(subscription).split_once(' ') {
                Some((at, n)) => heard[at.parse::<usize>().unwrap()].push(n.into()),
                None => ends += 1,
            }
        }
        let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        assert_eq!(heard, [expected.clone(), expected]);
        assert!(subscription.take().is_none());
    }
}

#[test]
fn stamps_and_qos_are_kept() {
    let pair = Pair::plain();
    for (here, there) in pair.both_ways() {
        let node = here.create_node("talker").unwrap();
        let profile = QosProfile::sensor_data().lifespan(Duration::from_secs(100));
        let publisher: Publisher<Text> = node.create_publisher("stamped".qos(profile)).unwrap();
        let listener = there.create_node("listener").unwrap();
        let subscription: Subscription<Text> = listener
            .create_polled_subscription("stamped".sensor_data())
            .unwrap();
        matched(&publisher, &subscription);
        // A token has its node, while RTPS announces nodes a moment later.
        let infos = || there.graph().publishers("/stamped");
        until(there, || infos().iter().all(|of| of.node_name.is_some()));
        let infos = infos();
        let [info] = &infos[..] else {
            panic!("one publisher: {infos:?}");
        };
        assert_eq!(info.qos.reliability, publisher.qos().reliability);
        assert_eq!(info.qos.lifespan, publisher.qos().lifespan);
        assert_eq!(info.node_name.as_deref(), Some("_pteros_bridge_00000007"));
        let at = SystemTime::now() - Duration::from_secs(10);
        publisher.publish_at(&text("old"), at).unwrap();
        let sample = subscription.take_timeout(SOON).unwrap();
        let stamp = sample.info().source_timestamp.unwrap();
        let apart = stamp.max(at).duration_since(stamp.min(at)).unwrap();
        // RTPS counts fractions of a second in binary.
        assert!(apart < Duration::from_micros(1), "{apart:?}");
        drop((publisher, subscription));
    }
}

#[test]
fn transient_local_history_passes_both_ways_for_each_publisher() {
    let pair = Pair::plain();
    for (here, there) in pair.both_ways() {
        let profile = || "latched".keep_last(1).transient_local().reliable();
        let nodes = ["one", "two", "three"].map(|name| here.create_node(name).unwrap());
        let publishers = nodes.each_ref().map(|node| {
            let publisher: Publisher<Text> = node.create_publisher(profile()).unwrap();
            publisher
                .publish(&text(format!("old {}", node.name())))
                .unwrap();
            publisher.publish(&text(node.name())).unwrap();
            publisher
        });
        let listener = there.create_node("listener").unwrap();
        let deep = "latched".keep_last(10).transient_local().reliable();
        // After the bridge has them: nobody on the other side asked for it.
        until(there, || there.graph().publishers("/latched").len() == 3);
        let mut heard = Vec::new();
        let subscription: Subscription<Text> = listener.create_polled_subscription(deep).unwrap();
        while heard.len() < 3 {
            heard.push(next(&subscription));
        }
        heard.sort();
        assert_eq!(heard, ["one", "three", "two"]);
        // One that comes later is heard at once, and the others not again.
        let late = here.create_node("late").unwrap();
        let publisher: Publisher<Text> = late.create_publisher(profile()).unwrap();
        publisher.publish(&text("late")).unwrap();
        assert_eq!(next(&subscription), "late");
        publisher.publish(&text("later")).unwrap();
        assert_eq!(next(&subscription), "later");
        assert!(subscription.take().is_none());
        drop(publishers);
    }
}

#[test]
fn a_large_message_passes_both_ways_unchanged() {
    let pair = Pair::plain();
    for (here, there) in pair.both_ways() {
        let node = here.create_node("camera").unwrap();
        let publisher: Publisher<Image> = node.create_publisher("image").unwrap();
        let viewer = there.create_node("viewer").unwrap();
        let subscription: Subscription<Image> = viewer.create_polled_subscription("image").unwrap();
        assert!(publisher.wait_for_matched(1, SOON) && subscription.wait_for_matched(1, SOON));
        let image = Image {
            encoding: "mono8".into(),
            data: (0..1_000_003_u32).map(|n| n.to_le_bytes()[0]).collect(),
            ..Image::default()
        };
        // Zenoh drops a large one of a keep-last publisher on a machine that is too slow.
        let short = Duration::from_millis(500);
        let heard = (0..40).find_map(|_| {
            publisher.publish(&image).unwrap();
            subscription.take_timeout(short)
        });
        assert_eq!(*heard.unwrap(), image);
    }
}

#[test]
fn types_that_nobody_knows_pass_as_bytes() {
    let pair = Pair::plain();
    let core = pair.robot.runtime();
    let node = core.discovery().add_node("stranger", "/");
    let hash = format!("RIHS01_{}", "5a".repeat(32));
    let spec = EndpointSpec {
        topic: "rt/strange".into(),
        type_name: "nobody_msgs::msg::dds_::Knows_".into(),
        qos: EndpointQos {
            user_data: format!("typehash={hash};").into_bytes(),
            ..EndpointQos::default()
        },
        ..EndpointSpec::default()
    };
    let writer = core.create_writer(spec).unwrap();
    core.discovery().attach_endpoint(node, &writer.data);
    let listener = pair.cloud.create_node("listener").unwrap();
    let ty = SerializedType::new("nobody_msgs/msg/Knows", Some(hash.parse().unwrap()));
    let options = SubscriptionOptions::<SerializedMessage>::of_type(&ty, "strange");
    let subscription = listener.create_polled_subscription(options).unwrap();
    assert!(subscription.wait_for_matched(1, SOON));
    until(&pair.robot, || writer.matched_count() == 1);
    // Not even valid CDR of anything.
    let bytes: Vec<u8> = [0, 1, 0, 0].into_iter().chain(0..=255).collect();
    let now = core.platform.wall_clock();
    let mut message = SerializedPayload::new(bytes.clone().into());
    core.publish(&writer, &mut message, now).unwrap();
    let sample = subscription.take_timeout(SOON).unwrap();
    assert_eq!(sample.0.as_ref(), bytes);
}

#[test]
fn a_volatile_topic_crosses_only_while_somebody_listens() {
    let pair = Pair::plain();
    let node = pair.robot.create_node("talker").unwrap();
    let publisher: Publisher<Text> = node.create_publisher("quiet").unwrap();
    pair.bridge.expect(
        "route",
        |event| matches!(event, BridgeEvent::RouteBegan(of) if of.rtps_name == "/quiet"),
    );
    assert_eq!(publisher.matched_count(), 0);
    let listener = pair.cloud.create_node("listener").unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription("quiet").unwrap();
    matched(&publisher, &subscription);
    publisher.publish(&text("heard")).unwrap();
    assert_eq!(next(&subscription), "heard");
    drop(subscription);
    until(&pair.robot, || publisher.matched_count() == 0);
    // The publisher goes: so does the route.
    drop(publisher);
    pair.bridge.expect("end", |event| {
        matches!(event, BridgeEvent::RouteEnded(of)
            if of.rtps_name == "/quiet" && of.kind == RouteKind::Topic && of.counts.forwarded == 1)
    });
    until(&pair.cloud, || {
        pair.cloud.graph().publishers("/quiet").is_empty()
    });
}

fn serve(context: &Context, name: &str) -> SpinThread {
    let node = context.create_node("serving").unwrap();
    let service = add_two_ints(&node, name);
    SpinThread::of_node(&node, service)
}

#[test]
fn services_work_both_ways_and_end_with_their_server() {
    let pair = Pair::plain();
    for (here, there) in pair.both_ways() {
        let spin = serve(here, "add_two_ints");
        let asking = there.create_node("asking").unwrap();
        let client = asking.create_client::<AddTwoInts>("add_two_ints").unwrap();
        assert!(client.wait_for_service(SOON));
        for a in 0..20 {
            let answer = client.call(&AddTwoIntsRequest { a, b: 7 }, SOON).unwrap();
            assert_eq!(answer.sum, a + 7);
        }
        assert_eq!(client.unmatched_response_count(), 0);
        let counted = || pair.bridge.counts("/add_two_ints").forwarded == 20;
        assert!(eventually(there, counted));
        drop(spin);
        until(there, || !client.service_is_ready());
    }
}

#[test]
fn a_call_in_flight_ends_when_its_server_leaves() {
    let pair = Pair::plain();
    for (here, there) in pair.both_ways() {
        let serving = here.create_node("serving").unwrap();
        // Nobody spins it.
        let service = serving
            .create_service::<AddTwoInts>("never", |_| AddTwoIntsResponse::default())
            .unwrap();
        let asking = there.create_node("asking").unwrap();
        let client = asking.create_client::<AddTwoInts>("never").unwrap();
        assert!(client.wait_for_service(SOON));
        let call = client.call_async(&AddTwoIntsRequest { a: 1, b: 2 });
        let call = call.unwrap();
        drop(service);
        let answer = call.wait(SOON);
        assert!(
            matches!(answer, Err(CallError::ServerLost { .. })),
            "{answer:?}"
        );
        pair.bridge.expect(
            "end",
            |event| matches!(event, BridgeEvent::RouteEnded(of) if of.rtps_name == "/never"),
        );
    }
}

/// Neither is asked by the other side's clients, and no request goes round.
#[test]
fn a_service_that_both_sides_have_stays_at_its_side() {
    let pair = Pair::plain();
    let _spun = [serve(&pair.robot, "both"), serve(&pair.cloud, "both")];
    let _far = serve(&pair.robot, "far");
    for (here, _) in pair.both_ways() {
        let node = here.create_node("asking").unwrap();
        // A later one is there: the bridge has seen the earlier ones.
        let far = node.create_client::<AddTwoInts>("far").unwrap();
        assert!(far.wait_for_service(SOON));
        let client = node.create_client::<AddTwoInts>("both").unwrap();
        assert!(client.wait_for_service(SOON));
        for a in 0..10 {
            let answer = client.call(&AddTwoIntsRequest { a, b: 1 }, SOON).unwrap();
            assert_eq!(answer.sum, a + 1);
        }
        assert_eq!(client.unmatched_response_count(), 0);
    }
    assert_eq!(pair.bridge.counts("/both"), RouteCounts::default());
}

#[test]
fn actions_work_both_ways() {
    let pair = Pair::plain();
    for (here, there) in pair.both_ways() {
        let action = FibonacciAction::new(here, there);
        action.expect_success(there);
        // A second goal is cancelled.
        let goal = action.client.send_goal(FibonacciGoal { order: 9 }, SOON);
        let goal = goal.unwrap();
        let served = action.goals.recv_timeout(SOON).unwrap();
        goal.cancel(SOON).unwrap();
        until(here, || served.is_canceling());
        served.canceled(FibonacciResult::default()).unwrap();
        assert_eq!(goal.result(SOON).unwrap().status, GoalStatus::Canceled);
    }
}

#[test]
fn rules_choose_names_rename_them_and_limit_rates() {
    let pair = Pair::new(RuleOptions {
        allow: vec![below("/camera/"), below("/cmd")],
        deny: vec![below("/camera/raw")],
        rates: vec![(below("/camera/slow"), 1.0)],
        namespace: "/robot1".into(),
        ..RuleOptions::default()
    });
    let node = pair.robot.create_node("robot").unwrap();
    let cloud = pair.cloud.create_node("cloud").unwrap();
    let talk = |node: &Node, name: &str| -> Publisher<Text> {
        node.create_publisher(name.keep_last(100)).unwrap()
    };
    let listen = |node: &Node, name: &str| -> Subscription<Text> {
        node.create_polled_subscription(name.keep_last(100))
            .unwrap()
    };
    let _silent = ["/camera/raw", "/secret"].map(|name| talk(&node, name));
    // Outside the namespace, and inside.
    let _outside = talk(&cloud, "/cmd");
    let inside = talk(&cloud, "/robot1/cmd");
    let heard = listen(&node, "/cmd");
    matched(&inside, &heard);
    inside.publish(&text("go")).unwrap();
    assert_eq!(next(&heard), "go");
    let slow = talk(&node, "/camera/slow");
    let fast = talk(&node, "/camera/fast");
    let slowly = listen(&cloud, "/robot1/camera/slow");
    let fastly = listen(&cloud, "/robot1/camera/fast");
    matched(&slow, &slowly);
    matched(&fast, &fastly);
    for n in 0..50 {
        slow.publish(&text(n)).unwrap();
        fast.publish(&text(n)).unwrap();
    }
    for n in 0..50 {
        assert_eq!(next(&fastly), n.to_string());
    }
    // At most one a second and one of tolerance; the first is among them.
    assert_eq!(next(&slowly), "0");
    assert!(eventually(&pair.cloud, || {
        let counts = pair.bridge.counts("/camera/slow");
        counts.forwarded + counts.limited == 50
    }));
    let counts = pair.bridge.counts("/camera/slow");
    assert!(counts.limited >= 25, "{counts:?}");
    let graph = pair.cloud.graph();
    let is_there = |name: &str| !graph.publishers(name).is_empty();
    assert!(is_there("/robot1/camera/fast") && is_there("/robot1/camera/slow"));
    for name in ["/robot1/camera/raw", "/robot1/secret", "/camera/fast"] {
        assert!(!is_there(name), "{name}");
    }
    assert_eq!(heard.matched_count(), 1);
}

#[test]
fn two_robots_with_namespaces_meet_in_the_cloud() {
    let net = Net::new();
    let cloud = net.open();
    let node = cloud.create_node("cloud").unwrap();
    let robots = [1, 2].map(|number| {
        let domain = domain();
        let rules = RuleOptions {
            namespace: format!("/robot{number}"),
            ..RuleOptions::default()
        };
        let bridge = Running::start(&net, domain, number, rules);
        let robot = open_rtps(domain);
        let node = robot.create_node("robot").unwrap();
        let publisher: Publisher<Text> = node.create_publisher("/tf").unwrap();
        (bridge, node, publisher)
    });
    for (at, (_, _, publisher)) in robots.iter().enumerate() {
        let topic = format!("/robot{}/tf", at + 1);
        let subscription: Subscription<Text> =
            node.create_polled_subscription(topic.as_str()).unwrap();
        matched(publisher, &subscription);
        publisher.publish(&text(at)).unwrap();
        assert_eq!(next(&subscription), at.to_string());
    }
    // Neither robot has the other's: only the cloud has them all.
    for (_, node, _) in &robots {
        let topics = node.context().graph().topics();
        assert!(
            topics.iter().all(|of| !of.name.starts_with("/robot")),
            "{topics:?}"
        );
    }
}

#[test]
fn parallel_bridges_pass_each_message_once_and_stand_in_for_each_other() {
    let (net, domain) = (Net::new(), domain());
    let mut first = Running::start(&net, domain, 1, RuleOptions::default());
    let second = Running::start(&net, domain, 2, RuleOptions::default());
    let [robot, cloud] = [open_rtps(domain), net.open()];
    let sides = [(&robot, &cloud), (&cloud, &robot)].map(|(here, there)| {
        let node = here.create_node("here").unwrap();
        let name = if std::ptr::eq(here, &raw const robot) {
            "up"
        } else {
            "down"
        };
        let publisher: Publisher<Text> = node.create_publisher(name.keep_last(100)).unwrap();
        let node = there.create_node("there").unwrap();
        let subscription: Subscription<Text> = node
            .create_polled_subscription(name.keep_last(100))
            .unwrap();
        (publisher, subscription)
    });
    let _spin = serve(&robot, "add_two_ints");
    let asking = cloud.create_node("asking").unwrap();
    let client = asking.create_client::<AddTwoInts>("add_two_ints").unwrap();
    second.expect("standby", |event| {
        *event == BridgeEvent::StandsBy { elder: BridgeId(1) }
    });
    let check = |begin: i32| {
        for (publisher, subscription) in &sides {
            matched(publisher, subscription);
            for n in begin..begin + 30 {
                publisher.publish(&text(n)).unwrap();
            }
            for n in begin..begin + 30 {
                assert_eq!(next(subscription), n.to_string());
            }
            assert!(subscription.take().is_none());
            assert_eq!(publisher.matched_count(), 1);
        }
        assert!(client.wait_for_service(SOON));
        let request = AddTwoIntsRequest {
            a: 1,
            b: i64::from(begin),
        };
        assert_eq!(
            client.call(&request, SOON).unwrap().sum,
            1 + i64::from(begin)
        );
    };
    check(0);
    assert!(!second.has(|event| matches!(event, BridgeEvent::RouteBegan(_))));
    first.stop();
    second.expect("takeover", |event| *event == BridgeEvent::Active);
    for (publisher, subscription) in &sides {
        matched(publisher, subscription);
    }
    second.expect(
        "route",
        |event| matches!(event, BridgeEvent::RouteBegan(of) if of.kind == RouteKind::Service),
    );
    until(&cloud, || client.service_is_ready());
    check(100);
}

/// RTPS, Zenoh, RTPS, Zenoh and back.
#[test]
fn a_ring_of_bridges_brings_nothing_back() {
    let nets = [Net::new(), Net::new()];
    let domains = [domain(), domain()];
    let bridges = [(0, 0, 1), (1, 0, 2), (1, 1, 3), (0, 1, 4)].map(|(domain, net, id)| {
        let (domain, net) = (domains[domain], &nets[net]);
        Running::start(net, domain, id, RuleOptions::default())
    });
    let home = open_rtps(domains[0]);
    let node = home.create_node("home").unwrap();
    let profile = || "round".keep_last(1_000);
    let publisher: Publisher<Text> = node.create_publisher(profile()).unwrap();
    let own: Subscription<Text> = node.create_polled_subscription(profile()).unwrap();
    let far = open_rtps(domains[1]);
    let listener = far.create_node("far").unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription(profile()).unwrap();
    // By either way once.
    assert!(subscription.wait_for_matched(2, SOON));
    assert!(publisher.wait_for_matched(3, SOON));
    for n in 0..20 {
        publisher.publish(&text(n)).unwrap();
    }
    let mut heard: Vec<String> = (0..40).map(|_| next(&subscription)).collect();
    heard.sort_by_key(|text| text.parse::<u32>().unwrap());
    let twice: Vec<String> = (0..40).map(|n| (n / 2).to_string()).collect();
    assert_eq!(heard, twice);
    for n in 0..20 {
        assert_eq!(next(&own), n.to_string());
    }
    // Nothing goes round: the counters stand still while other messages pass.
    let total = || -> u64 {
        let counts = bridges.iter().map(|of| of.counts("/round").forwarded);
        counts.sum()
    };
    assert!(eventually(&home, || total() == 20 * 4), "{}", total());
    publisher.publish(&text("end")).unwrap();
    assert_eq!([next(&subscription), next(&subscription)], ["end", "end"]);
    assert_eq!(next(&own), "end");
    assert!(eventually(&home, || total() >= 21 * 4));
    assert_eq!(total(), 21 * 4);
    assert!(own.take().is_none() && subscription.take().is_none());
    assert_eq!(own.matched_count(), 1);
}

/// Regression: each route was told all publishers of its side, and services began in the order
/// of their names, so that a peer with a thousand endpoints delayed a new route of others by
/// seconds. And the bridge, one participant on RTPS, announced more endpoints than peers accept
/// of one, so that the routes of others were not seen.
#[test]
fn a_crowd_of_endpoints_neither_delays_nor_hides_routes_of_others() {
    const HASH: &str = "RIHS01_0000000000000000000000000000000000000000000000000000000000000007";
    let pair = Pair::new(RuleOptions {
        endpoints_max: Some(880),
        ..RuleOptions::default()
    });
    let crowd = pair.net.plain_session();
    let own = crowd.zid();
    let tokens: Vec<_> = (0..1_000)
        .map(|number| {
            let begin = format!("@ros2_lv/0/{own}/0/{number}");
            let key = match number % 3 {
                0 if number < 70 => format!("{begin}/SS/%/%/crowd/%a_{number}/std_srvs::srv::dds_::Empty_/{HASH}/::,10:,:,:,,"),
                1 => format!("{begin}/MP/%/%/crowd/%a/std_msgs::msg::dds_::String_/{HASH}/:1:,10:,:,:,,"),
                _ => format!("{begin}/MP/%/%/crowd/%a_{number}/std_msgs::msg::dds_::String_/{HASH}/::,10:,:,:,,"),
            };
            crowd.liveliness().declare_token(key).wait().unwrap()
        })
        .collect();
    let limited = || pair.bridge.bridge.as_ref().unwrap().status().above_share;
    assert!(eventually(&pair.robot, || !limited().is_empty()));
    for (round, (here, there)) in pair.both_ways().into_iter().enumerate() {
        let talker = here.create_node("talker").unwrap();
        let listener = there.create_node("listener").unwrap();
        // Routes of the crowd end for them.
        let pairs: Vec<_> = (0..40)
            .map(|number| {
                let name = format!("z_{round}_{number}");
                let publisher: Publisher<Text> = talker.create_publisher(name.as_str()).unwrap();
                let subscription: Subscription<Text> =
                    listener.create_polled_subscription(name.as_str()).unwrap();
                (publisher, subscription)
            })
            .collect();
        for (number, (publisher, subscription)) in pairs.iter().enumerate() {
            matched(publisher, subscription);
            publisher.publish(&text(number)).unwrap();
            assert_eq!(next(subscription), number.to_string());
        }
        let _served = serve(here, &format!("z_{round}_add"));
        let client = listener.create_client::<AddTwoInts>(&format!("z_{round}_add"));
        let client = client.unwrap();
        assert!(client.wait_for_service(SOON));
        let answer = client.call(&AddTwoIntsRequest { a: 1, b: 2 }, SOON);
        assert_eq!(answer.unwrap().sum, 3);
    }
    let [(participant, left_out)] = &limited().into_iter().collect::<Vec<_>>()[..] else {
        panic!("one is above its share: {:?}", limited());
    };
    assert!(participant.0 == Side::Zenoh && *left_out > 100);
    let name = participant.1.to_string();
    pair.bridge.expect("refusal", |event| {
        matches!(event, BridgeEvent::Refused { from: Side::Zenoh, reason, .. }
            if reason.contains(&name) && reason.contains("another bridge"))
    });
    // Another bridge routes the names of which the first one routes none.
    let _second = Running::start(&pair.net, pair.domain, 8, RuleOptions::default());
    let names = || {
        let topics = pair.robot.graph().topics().into_iter();
        topics.filter(|of| of.name.starts_with("/a_")).count()
    };
    assert!(eventually(&pair.robot, || names() == 643), "{}", names());
    drop(tokens);
}

#[test]
fn what_cannot_be_bridged_is_reported_once() {
    let pair = Pair::plain();
    let core = pair.robot.runtime();
    let node = core.discovery().add_node("nameless", "/");
    let payload = to_payload(&text("x"), pteros::msg::cdr::Representation::Xcdr1);
    let spec = EndpointSpec {
        topic: "rt/hashless".into(),
        type_name: "std_msgs::msg::dds_::String_".into(),
        ..EndpointSpec::default()
    };
    let writer = core.create_writer(spec).unwrap();
    core.discovery().attach_endpoint(node, &writer.data);
    pair.bridge.expect("refusal", |event| {
        matches!(event, BridgeEvent::Refused { from: Side::Rtps, rtps_name, reason, .. }
            if rtps_name == "/hashless" && reason.contains("--interfaces DIR"))
    });
    let now = core.platform.wall_clock();
    core.publish(&writer, &mut SerializedPayload::new(payload.into()), now)
        .unwrap();
    // Others go on.
    let talker = pair.robot.create_node("talker").unwrap();
    let publisher: Publisher<Text> = talker.create_publisher("chatter").unwrap();
    let listener = pair.cloud.create_node("listener").unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription("chatter").unwrap();
    matched(&publisher, &subscription);
    publisher.publish(&text("on")).unwrap();
    assert_eq!(next(&subscription), "on");
    let events = pair.bridge.events.lock().unwrap();
    let refusals = events
        .iter()
        .filter(|event| matches!(event, BridgeEvent::Refused { .. }));
    assert_eq!(refusals.count(), 1);
    let _ = (&pair.net, pair.domain, &pair.bridge.zenoh);
}

/// Found by reading: the other thread went on alone, and dropping the bridge never ended.
#[test]
fn a_report_that_panics_ends_the_bridge() {
    let (net, domain) = (Net::new(), domain());
    let [rtps, zenoh] = [open_rtps(domain), net.open()];
    let node = rtps.create_node("talker").unwrap();
    let _publisher: Publisher<Text> = node.create_publisher("chatter").unwrap();
    let panics = Mutex::new(Some(()));
    let options = BridgeOptions {
        report: Box::new(move |_| {
            let panics = panics.lock().unwrap().take();
            assert!(panics.is_none(), "on purpose");
        }),
        ..BridgeOptions::default()
    };
    let robot = open_rtps(domain);
    let bridge = Bridge::start(robot.runtime(), zenoh.runtime(), options).unwrap();
    assert!(eventually(&rtps, || bridge.has_ended()));
    let (send, has_ended) = mpsc::channel();
    std::thread::spawn(move || {
        drop(bridge);
        send.send(()).unwrap();
    });
    assert!(has_ended.recv_timeout(SOON).is_ok(), "it never ends");
}
