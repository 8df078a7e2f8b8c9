//! Lifecycle supervisor with nodes in other contexts, as in other processes.
#![allow(clippy::disallowed_methods, reason = "threads stand for processes")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::Empty;
use pteros::lifecycle::{
    CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState as S, LifecycleSupervisor,
    LossPolicy, NodeCondition, SupervisedNode, SupervisorEvent,
};
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;
use pteros_test_support::spin_thread::{SPIN_PERIOD, SpinThread};

const TIMEOUT: Duration = Duration::from_secs(20);
const SLICE: Duration = Duration::from_millis(20);

/// A managed node in its own context, until dropped.
struct Process {
    state: Arc<Mutex<S>>,
    _spun: SpinThread,
}

impl Process {
    fn start(domain: u32, name: &str, callbacks: impl LifecycleCallbacks) -> Self {
        let context = Context::with_options(ContextOptions::local(domain)).unwrap();
        let node = LifecycleNode::new(&context, NodeOptions::new(name), callbacks).unwrap();
        let state = Arc::new(Mutex::new(S::Unconfigured));
        let seen = state.clone();
        let spun = SpinThread::new(move |is_over| {
            let look = || {
                *seen.lock().unwrap() = node.state();
                is_over()
            };
            while !node.spin_until(look, SPIN_PERIOD) {}
        });
        Self { state, _spun: spun }
    }

    fn state(&self) -> S {
        *self.state.lock().unwrap()
    }
}

type Events = Arc<Mutex<Vec<SupervisorEvent>>>;

fn supervise(
    domain: u32,
    nodes: impl IntoIterator<Item = SupervisedNode>,
) -> (LifecycleSupervisor, Events) {
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let events = Events::default();
    let sink = events.clone();
    let supervisor = LifecycleSupervisor::new(&context, nodes).unwrap();
    let supervisor = supervisor.on_event(move |event| sink.lock().unwrap().push(event.clone()));
    (supervisor, events)
}

/// Watches until the condition holds.
#[track_caller]
fn watch_until(
    supervisor: &mut LifecycleSupervisor,
    events: &Events,
    done: impl Fn(&LifecycleSupervisor) -> bool,
) {
    for _ in 0..TIMEOUT.as_millis() / SLICE.as_millis() {
        if done(supervisor) {
            return;
        }
        supervisor.watch(SLICE);
    }
    panic!("not so: {}, {:?}", supervisor.report(), events.lock());
}

const RETRY_AT_ONCE: LossPolicy = LossPolicy::Restart {
    attempts: 5,
    backoff: Duration::from_millis(10),
    backoff_max: Duration::from_millis(100),
};

#[test]
fn nodes_of_other_processes_are_brought_up_and_restarted() {
    const DOMAIN: u32 = 97;
    let lidar = Process::start(DOMAIN, "lidar", ());
    let map = Process::start(DOMAIN, "map", ());
    let (mut supervisor, events) = supervise(
        DOMAIN,
        [
            SupervisedNode::new("map").depends_on("lidar"),
            SupervisedNode::new("lidar").on_loss(RETRY_AT_ONCE),
        ],
    );
    let report = supervisor.bring_up();
    assert!(report.all_are(S::Active), "{report} {:?}", events.lock());
    assert_eq!(report.nodes[0].node, "/lidar");
    assert_eq!(report.to_string(), "/lidar active, /map active");
    let lines: Vec<_> = events
        .lock()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let at = |text: &str| lines.iter().position(|line| line == text);
    assert!(at("/lidar is active") < at("/map is inactive"), "{lines:?}");

    drop(lidar);
    watch_until(&mut supervisor, &events, |s| {
        s.report().nodes[0].condition == NodeCondition::Missing
    });
    assert_eq!(map.state(), S::Active);
    let lidar = Process::start(DOMAIN, "lidar", ());
    watch_until(&mut supervisor, &events, |s| s.report().all_are(S::Active));
    assert_eq!(lidar.state(), S::Active);

    let report = supervisor.shut_down();
    assert!(report.all_are(S::Finalized), "{report}");
}

#[test]
fn a_node_that_restarts_before_its_loss_is_detected_is_brought_up_again() {
    const DOMAIN: u32 = 96;
    let first = Process::start(DOMAIN, "arm", ());
    let (mut supervisor, events) =
        supervise(DOMAIN, [SupervisedNode::new("arm").on_loss(RETRY_AT_ONCE)]);
    let report = supervisor.bring_up();
    assert!(report.all_are(S::Active), "{report} {:?}", events.lock());
    // As after a crash: the lost node counts as alive until its lease expires.
    let second = Process::start(DOMAIN, "arm", ());
    let are_two = |event: &SupervisorEvent| matches!(event, SupervisorEvent::DuplicateName { .. });
    watch_until(&mut supervisor, &events, |_| {
        events.lock().unwrap().iter().any(are_two)
    });
    assert_eq!(second.state(), S::Unconfigured);
    drop(first);
    watch_until(&mut supervisor, &events, |s| {
        second.state() == S::Active && s.report().all_are(S::Active)
    });
}

/// Asserts liveliness as part of its work.
#[derive(Default)]
struct WorkingCallbacks {
    timer: Option<Timer>,
    stuck: Arc<AtomicBool>,
}

impl LifecycleCallbacks for WorkingCallbacks {
    fn on_configure(&mut self, node: &LifecycleNode, _: S) -> CallbackReturn {
        let qos = QosProfile::default().liveliness(LivelinessPolicy::ManualByTopic, LEASE);
        let beat = node.create_publisher::<Empty>("beat".qos(&qos)).unwrap();
        let stuck = self.stuck.clone();
        let timer = node.create_timer(LEASE / 10, move || {
            if !stuck.load(Ordering::Relaxed) {
                beat.publish(&Empty {}).unwrap();
            }
        });
        self.timer = timer.ok();
        CallbackReturn::Success
    }
}

const LEASE: Duration = Duration::from_millis(500);

#[test]
fn a_node_that_stops_working_is_detected_by_its_liveliness() {
    const DOMAIN: u32 = 98;
    let stuck = Arc::new(AtomicBool::new(false));
    let callbacks = WorkingCallbacks {
        timer: None,
        stuck: stuck.clone(),
    };
    let _arm = Process::start(DOMAIN, "arm", callbacks);
    let hand = Process::start(DOMAIN, "hand", ());
    let arm = SupervisedNode::new("arm").liveliness_topic("beat", "std_msgs/msg/Empty", LEASE);
    let hand_of_arm = SupervisedNode::new("hand").depends_on("arm");
    let (mut supervisor, events) = supervise(DOMAIN, [arm, hand_of_arm]);
    let report = supervisor.bring_up();
    assert!(report.all_are(S::Active), "{report}");
    // Its loss can be detected only after the first liveliness assertion.
    supervisor.watch(LEASE);
    stuck.store(true, Ordering::Relaxed);
    watch_until(&mut supervisor, &events, |s| {
        s.report().nodes[0].condition == NodeCondition::Unresponsive
    });
    watch_until(&mut supervisor, &events, |_| {
        hand.state() == S::Unconfigured
    });
    stuck.store(false, Ordering::Relaxed);
    watch_until(&mut supervisor, &events, |s| s.report().all_are(S::Active));
}

#[test]
fn a_missing_node_is_named() {
    let shy = SupervisedNode::new("shy").arrival_timeout(Duration::from_millis(200));
    let (mut supervisor, events) = supervise(99, [shy]);
    let report = supervisor.bring_up();
    assert_eq!(report.to_string(), "/shy unknown (missing)");
    let events = events.lock().unwrap();
    assert!(matches!(&events[..], [SupervisorEvent::Missing { node, .. }] if node == "/shy"));
}
