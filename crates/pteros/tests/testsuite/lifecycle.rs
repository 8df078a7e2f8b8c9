//! Lifecycle nodes: states, transitions, events and services.
#![allow(clippy::disallowed_methods, reason = "another thread answers")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::local::context;
use pteros::interfaces::lifecycle_msgs::msg::{State, Transition, TransitionEvent};
use pteros::interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, GetAvailableStates, GetAvailableStatesRequest,
    GetAvailableTransitions, GetAvailableTransitionsRequest, GetAvailableTransitionsResponse,
    GetState, GetStateRequest,
};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::msg::message::Service as ServiceType;
use pteros::prelude::*;
use pteros::{
    executors::{ExecutorHandle, MultiThreadedExecutor},
    lifecycle::{
        CallbackReturn, CallbackReturnSender, LifecycleCallbacks, LifecycleNode,
        LifecyclePublisher, LifecycleState as S, LifecycleTransition as T, TransitionError,
    },
};

const TIMEOUT: Duration = Duration::from_secs(20);

type CallbackScript = Box<dyn FnMut(&'static str) -> CallbackReturn + Send>;

/// Records the calls and returns scripted results.
struct RecordingCallbacks {
    calls: Arc<Mutex<Vec<(&'static str, S)>>>,
    answer: CallbackScript,
}

impl RecordingCallbacks {
    fn call(&mut self, what: &'static str, previous: S) -> CallbackReturn {
        self.calls.lock().unwrap().push((what, previous));
        (self.answer)(what)
    }
}

impl LifecycleCallbacks for RecordingCallbacks {
    fn on_configure(&mut self, _: &LifecycleNode, previous: S) -> CallbackReturn {
        self.call("configure", previous)
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, previous: S) -> CallbackReturn {
        self.call("cleanup", previous)
    }

    fn on_activate(&mut self, _: &LifecycleNode, previous: S) -> CallbackReturn {
        self.call("activate", previous)
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, previous: S) -> CallbackReturn {
        self.call("deactivate", previous)
    }

    fn on_shutdown(&mut self, _: &LifecycleNode, previous: S) -> CallbackReturn {
        self.call("shutdown", previous)
    }

    fn on_error(&mut self, _: &LifecycleNode, previous: S) -> CallbackReturn {
        self.call("error", previous)
    }
}

/// A lifecycle node, a subscription to its events, and its recorded callbacks.
struct LifecycleFixture {
    node: LifecycleNode,
    subscription: Subscription<TransitionEvent>,
    calls: Arc<Mutex<Vec<(&'static str, S)>>>,
    watcher: Node,
}

impl LifecycleFixture {
    fn new(answer: impl FnMut(&'static str) -> CallbackReturn + Send + 'static) -> Self {
        let context = context();
        let calls = Arc::new(Mutex::default());
        let callbacks = RecordingCallbacks {
            calls: Arc::clone(&calls),
            answer: Box::new(answer),
        };
        let watcher = context.create_node("watcher").unwrap();
        let topic = "/arm/transition_event";
        let subscription = watcher
            .create_polled_subscription(topic.keep_last(100))
            .unwrap();
        let node = LifecycleNode::new(&context, NodeOptions::new("arm"), callbacks).unwrap();
        Self {
            node,
            subscription,
            calls,
            watcher,
        }
    }

    fn succeeding() -> Self {
        Self::new(|_| CallbackReturn::Success)
    }

    /// Transition events since the last call: start and goal states.
    fn events(&self) -> Vec<(u8, u8, u8)> {
        let mut events = Vec::new();
        while let Some(event) = self.subscription.take() {
            assert!(event.timestamp > 0);
            let (from, to) = (&event.start_state, &event.goal_state);
            assert_eq!(from.label, S::from_id(from.id).unwrap().label());
            events.push((event.transition.id, from.id, to.id));
        }
        events
    }

    fn calls(&self) -> Vec<(&'static str, S)> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// Calls a service of the node while it is spun.
    fn call_service<V: ServiceType>(
        &self,
        service: &str,
        request: &V::Request,
    ) -> Sample<V::Response> {
        let name = format!("/arm/{service}");
        let client = self.watcher.create_client::<V>(&name).unwrap();
        let mut call = client.call_async(request).unwrap();
        let mut answer = None;
        let done = self.node.spin_until(
            || {
                answer = answer.take().or_else(|| call.take());
                answer.is_some()
            },
            TIMEOUT,
        );
        assert!(done, "{service} is not answered");
        answer.unwrap().unwrap()
    }

    fn change(&self, id: u8, label: &str) -> bool {
        let transition = Transition {
            id,
            label: label.into(),
        };
        let request = ChangeStateRequest { transition };
        self.call_service::<ChangeState>("change_state", &request)
            .success
    }

    fn transitions(&self, service: &str) -> Vec<(u8, String, u8, u8)> {
        let request = GetAvailableTransitionsRequest {};
        let answer = self.call_service::<GetAvailableTransitions>(service, &request);
        let GetAvailableTransitionsResponse {
            available_transitions,
        } = &*answer;
        let row = available_transitions.iter().map(|row| {
            let transition = &row.transition;
            let (start, goal) = (row.start_state.id, row.goal_state.id);
            (transition.id, transition.label.clone(), start, goal)
        });
        row.collect()
    }
}

#[test]
fn transitions_from_configure_to_shutdown_are_published() {
    let fixture = LifecycleFixture::succeeding();
    let node = &fixture.node;
    assert_eq!(node.state(), S::Unconfigured);
    assert_eq!(node.configure(), Ok(S::Inactive));
    assert_eq!(node.activate(), Ok(S::Active));
    assert_eq!(node.deactivate(), Ok(S::Inactive));
    assert_eq!(node.cleanup(), Ok(S::Unconfigured));
    assert_eq!(node.shutdown(), Ok(S::Finalized));
    let events = [
        (1, 1, 10),
        (10, 10, 2),
        (3, 2, 13),
        (30, 13, 3),
        (4, 3, 14),
        (40, 14, 2),
        (2, 2, 11),
        (20, 11, 1),
        (5, 1, 12),
        (50, 12, 4),
    ];
    assert_eq!(fixture.events(), events);
    let calls = [
        ("configure", S::Unconfigured),
        ("activate", S::Inactive),
        ("deactivate", S::Active),
        ("cleanup", S::Inactive),
        ("shutdown", S::Unconfigured),
    ];
    assert_eq!(fixture.calls(), calls);
}

#[test]
fn services_change_and_report_the_state_as_in_ros2() {
    let fixture = LifecycleFixture::succeeding();
    assert!(fixture.change(1, ""));
    // The label takes precedence over the id, which many clients leave at zero.
    assert!(fixture.change(0, "activate"));
    let state = fixture.call_service::<GetState>("get_state", &GetStateRequest {});
    let active = State {
        id: 3,
        label: "active".into(),
    };
    assert_eq!(state.current_state, active);
    let row = |id, label: &str, start, goal| (id, label.to_string(), start, goal);
    assert_eq!(
        fixture.transitions("get_available_transitions"),
        [row(4, "deactivate", 3, 14), row(7, "shutdown", 3, 12)]
    );
    // Not available here: rejected without effect.
    assert!(!fixture.change(1, ""));
    assert!(!fixture.change(4, "activate"));
    // Transitions that follow from callbacks cannot be requested.
    assert!(!fixture.change(0, "transition_success"));
    assert_eq!(fixture.node.state(), S::Active);
    assert!(fixture.change(0, "shutdown"));
    assert_eq!(fixture.node.state(), S::Finalized);
    assert!(fixture.transitions("get_available_transitions").is_empty());

    let states = fixture
        .call_service::<GetAvailableStates>("get_available_states", &GetAvailableStatesRequest {});
    let states: Vec<_> = states.available_states.iter().map(|s| s.id).collect();
    assert_eq!(states, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15]);
    let graph = fixture.transitions("get_transition_graph");
    assert_eq!(graph.len(), 25);
    assert_eq!(graph[0], row(1, "configure", 1, 10));
    assert_eq!(graph[3], row(12, "transition_error", 10, 15));
    assert_eq!(graph[18], row(7, "shutdown", 3, 12));
    assert_eq!(graph[24], row(62, "transition_error", 15, 4));
}

#[test]
fn an_illegal_transition_names_the_state_and_available_transitions() {
    let fixture = LifecycleFixture::succeeding();
    let error = fixture.node.activate().unwrap_err();
    assert_eq!(
        error.to_string(),
        "node \"/arm\": transition [3] is not available in state unconfigured [1]; \
         available: configure [1], shutdown [5]"
    );
    let unknown = fixture.node.change_state_by_label("dance").unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("transition \"dance\" is not available")
    );
    fixture.node.shutdown().unwrap();
    let end = fixture.node.configure().unwrap_err();
    assert!(end.to_string().ends_with("available: none"), "{end}");
    assert_eq!(fixture.calls().len(), 1);
}

#[test]
fn a_failure_returns_to_the_previous_state_but_shutdown_continues() {
    let fixture = LifecycleFixture::new(|_| CallbackReturn::Failure);
    let node = &fixture.node;
    assert!(matches!(
        node.configure(),
        Err(TransitionError::Failed {
            transition: T::CONFIGURE,
            state: S::Unconfigured,
            ..
        })
    ));
    assert_eq!(fixture.events(), [(1, 1, 10), (11, 10, 1)]);
    assert!(!fixture.change(0, "shutdown"));
    assert_eq!(node.state(), S::Finalized);
}

#[test]
fn errors_and_panics_run_on_error_which_decides_the_next_state() {
    // The callback, the return value of `on_error`, and the resulting state.
    type Act = fn() -> CallbackReturn;
    let stories: [(Act, Act, u8, S); 4] = [
        (
            || CallbackReturn::Error,
            || CallbackReturn::Success,
            60,
            S::Unconfigured,
        ),
        (
            || panic!("no motor"),
            || CallbackReturn::Failure,
            61,
            S::Finalized,
        ),
        (
            || CallbackReturn::Error,
            || CallbackReturn::Error,
            62,
            S::Finalized,
        ),
        (
            || panic!("no motor"),
            || panic!("and no brake"),
            62,
            S::Finalized,
        ),
    ];
    for (act, clean, last, end) in stories {
        let fixture = LifecycleFixture::new(move |what| match what {
            "activate" => act(),
            "error" => clean(),
            _ => CallbackReturn::Success,
        });
        fixture.node.configure().unwrap();
        let error = fixture.node.activate().unwrap_err();
        assert!(matches!(error, TransitionError::Error { state, .. } if state == end));
        let events = [
            (1, 1, 10),
            (10, 10, 2),
            (3, 2, 13),
            (32, 13, 15),
            (last, 15, end.id()),
        ];
        assert_eq!(fixture.events(), events);
        assert_eq!(fixture.calls()[2], ("error", S::Inactive));
    }
}

/// Publishes in its callbacks and from a timer.
struct PublishingCallbacks {
    publisher: Option<LifecyclePublisher<UInt64>>,
    timer: Option<Timer>,
    fails: Arc<AtomicBool>,
}

impl PublishingCallbacks {
    fn publish(&self, data: u64) -> CallbackReturn {
        let publisher = self.publisher.as_ref().unwrap();
        publisher.publish(&UInt64 { data }).unwrap();
        if self.fails.load(Ordering::Relaxed) {
            CallbackReturn::Failure
        } else {
            CallbackReturn::Success
        }
    }
}

impl LifecycleCallbacks for PublishingCallbacks {
    fn on_configure(&mut self, node: &LifecycleNode, _: S) -> CallbackReturn {
        let publisher = node
            .create_publisher::<UInt64>("said".keep_last(100))
            .unwrap();
        self.publisher = Some(publisher.clone());
        self.publish(1);
        let ticks = publisher.clone();
        let me = node.clone();
        let tick = move || {
            assert_eq!(me.state(), S::Active);
            ticks.publish(&UInt64 { data: 4 }).unwrap();
        };
        let timer = node.create_timer(Duration::from_millis(1), tick);
        self.timer = Some(timer.unwrap());
        CallbackReturn::Success
    }

    fn on_activate(&mut self, _: &LifecycleNode, _: S) -> CallbackReturn {
        self.publish(2)
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, _: S) -> CallbackReturn {
        assert!(self.timer.as_ref().unwrap().is_cancelled());
        self.publish(3)
    }

    fn on_shutdown(&mut self, _: &LifecycleNode, _: S) -> CallbackReturn {
        self.publish(5)
    }
}

fn publishing_node(context: &Context) -> (LifecycleNode, Subscription<UInt64>, Arc<AtomicBool>) {
    let subscription = context.create_node("ear").unwrap();
    let subscription = subscription
        .create_polled_subscription("said".keep_last(100))
        .unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let callbacks = PublishingCallbacks {
        publisher: None,
        timer: None,
        fails: fails.clone(),
    };
    let node = LifecycleNode::new(context, NodeOptions::new("mouth"), callbacks).unwrap();
    (node, subscription, fails)
}

fn received_values(subscription: &Subscription<UInt64>) -> Vec<u64> {
    std::iter::from_fn(|| subscription.take())
        .map(|word| word.data)
        .collect()
}

#[test]
fn publishers_and_timers_work_while_the_node_is_active() {
    let context = context();
    let (node, subscription, fails) = publishing_node(&context);
    let idle = || node.spin_until(|| false, Duration::from_millis(30));
    node.configure().unwrap();
    idle();
    assert_eq!(received_values(&subscription), [0; 0], "it is inactive");
    node.activate().unwrap();
    let spoke = node.spin_until(|| subscription.take().is_some_and(|w| w.data == 4), TIMEOUT);
    assert!(spoke, "its timer ticks");
    received_values(&subscription);
    // It stays active if deactivation fails.
    fails.store(true, Ordering::Relaxed);
    node.deactivate().unwrap_err();
    assert_eq!(received_values(&subscription), [3]);
    assert!(node.spin_until(|| subscription.take().is_some_and(|w| w.data == 4), TIMEOUT));
    fails.store(false, Ordering::Relaxed);
    node.deactivate().unwrap();
    assert_eq!(received_values(&subscription).last(), Some(&3));
    idle();
    assert_eq!(
        received_values(&subscription),
        [0; 0],
        "it is inactive again"
    );
    // Activation failed.
    fails.store(true, Ordering::Relaxed);
    node.activate().unwrap_err();
    assert_eq!(received_values(&subscription), [2]);
    idle();
    // It was not active before it shut down.
    node.shutdown().unwrap_err();
    idle();
    assert_eq!(received_values(&subscription), [0; 0]);
}

#[test]
fn messages_dropped_by_an_inactive_publisher_are_counted() {
    let context = context();
    let node = LifecycleNode::new(&context, NodeOptions::new("mouth"), ()).unwrap();
    let publisher = node
        .create_publisher::<UInt64>("said".keep_last(10))
        .unwrap();
    for data in 0..3 {
        publisher.publish_owned(UInt64 { data }).unwrap();
    }
    assert_eq!(publisher.dropped_count(), 3);
    assert!(publisher.when_active().is_none());
    node.configure().unwrap();
    node.activate().unwrap();
    publisher.publish_owned(UInt64 { data: 3 }).unwrap();
    assert!(publisher.is_activated());
    assert_eq!(publisher.dropped_count(), 4);
}

/// A node whose callback results the test sends.
fn deferring() -> (LifecycleFixture, mpsc::Receiver<CallbackReturnSender>) {
    let (send, answers) = mpsc::channel();
    let fixture = LifecycleFixture::new(move |what| {
        if what == "error" {
            return CallbackReturn::Success;
        }
        let (later, answer) = CallbackReturn::deferred();
        send.send(answer).unwrap();
        later
    });
    (fixture, answers)
}

#[test]
fn a_callback_may_defer_its_result_and_transitions_do_not_overlap() {
    let (fixture, answers) = deferring();
    let client = fixture
        .watcher
        .create_client::<ChangeState>("/arm/change_state")
        .unwrap();
    let request = ChangeStateRequest {
        transition: Transition {
            id: 1,
            label: String::new(),
        },
    };
    let mut call = client.call_async(&request).unwrap();
    assert!(
        fixture
            .node
            .spin_until(|| fixture.node.state() == S::Configuring, TIMEOUT)
    );
    let answer = answers.recv_timeout(TIMEOUT).unwrap();
    // Meanwhile its state can be queried, and it rejects further requests.
    let state = fixture.call_service::<GetState>("get_state", &GetStateRequest {});
    assert_eq!(state.current_state.label, "configuring");
    assert!(!fixture.change(0, "shutdown"));
    let busy = fixture.node.configure().unwrap_err();
    assert!(
        matches!(
            busy,
            TransitionError::Busy {
                state: S::Configuring,
                ..
            }
        ),
        "{busy}"
    );
    assert!(call.take().is_none());
    std::thread::spawn(move || answer.success());
    assert!(
        fixture
            .node
            .spin_until(|| fixture.node.state() == S::Inactive, TIMEOUT)
    );
    assert!(call.wait(TIMEOUT).unwrap().success);
}

/// Cancels the spin on drop, also if the test fails.
struct CancelOnDrop(ExecutorHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[test]
fn the_state_can_be_queried_while_a_callback_runs() {
    let (release, released) = mpsc::channel::<()>();
    let fixture = LifecycleFixture::new(move |_| {
        released.recv_timeout(TIMEOUT).unwrap();
        CallbackReturn::Success
    });
    let executor = MultiThreadedExecutor::new(fixture.node.context(), 2);
    executor.add_node(&fixture.node).unwrap();
    let watcher = &fixture.watcher;
    let change = watcher.create_client::<ChangeState>("/arm/change_state");
    let state = watcher.create_client::<GetState>("/arm/get_state");
    let (change, state) = (change.unwrap(), state.unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| executor.spin());
        let _cancel = CancelOnDrop(executor.handle());
        let request = ChangeStateRequest {
            transition: Transition {
                id: 1,
                label: String::new(),
            },
        };
        let call = change.call_async(&request).unwrap();
        let queried_state = || state.call(&GetStateRequest {}, TIMEOUT).unwrap();
        while queried_state().current_state.label != "configuring" {}
        release.send(()).unwrap();
        assert!(call.wait(TIMEOUT).unwrap().success);
    });
}

#[test]
fn a_deferred_result_that_is_never_sent_is_an_error() {
    let (fixture, answers) = deferring();
    assert_eq!(fixture.node.configure(), Ok(S::Configuring));
    drop(answers.recv_timeout(TIMEOUT).unwrap());
    assert!(
        fixture
            .node
            .spin_until(|| fixture.node.state() == S::Unconfigured, TIMEOUT)
    );
    let calls = [("configure", S::Unconfigured), ("error", S::Unconfigured)];
    assert_eq!(fixture.calls(), calls);
    // A result sent before the callback returns is applied at once.
    let quick = LifecycleFixture::new(|_| {
        let (later, answer) = CallbackReturn::deferred();
        answer.failure();
        later
    });
    assert!(matches!(
        quick.node.configure(),
        Err(TransitionError::Failed { .. })
    ));
}

#[test]
fn a_dropped_node_drops_its_callbacks_and_services() {
    struct Flag(Arc<AtomicBool>, Option<Timer>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    impl LifecycleCallbacks for Flag {
        fn on_configure(&mut self, node: &LifecycleNode, _: S) -> CallbackReturn {
            let me = node.clone();
            let timer = node.create_timer(Duration::from_secs(1), move || {
                let _ = me.deactivate();
            });
            self.1 = timer.ok();
            CallbackReturn::Success
        }
    }
    let context = context();
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Flag(gone.clone(), None);
    let node = LifecycleNode::new(&context, NodeOptions::new("n"), flag).unwrap();
    node.configure().unwrap();
    let graph = context.graph();
    let is_managed = |service: &pteros::graph::TopicInfo| {
        let mut types = service.types.iter();
        types.any(|ty| ty.starts_with("lifecycle_msgs/"))
    };
    let managed = || graph.services().into_iter().filter(is_managed).count();
    assert_eq!(managed(), 5);
    assert!(!gone.load(Ordering::Relaxed));
    drop(node);
    assert!(gone.load(Ordering::Relaxed));
    assert!(graph.services().is_empty());
    assert!(graph.nodes().is_empty());
}
