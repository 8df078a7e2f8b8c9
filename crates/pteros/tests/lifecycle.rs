//! Managed nodes: what a state allows, who hears of it, and how it changes.
#![allow(
    clippy::disallowed_methods,
    reason = "an answer that comes from another thread needs one"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pteros::config::DiscoveryRange;
use pteros::interfaces::lifecycle_msgs::msg::{State, Transition, TransitionEvent};
use pteros::interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeState_Request, GetAvailableStates, GetAvailableStates_Request,
    GetAvailableTransitions, GetAvailableTransitions_Request, GetAvailableTransitions_Response,
    GetState, GetState_Request,
};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::msg::message::Service as ServiceType;
use pteros::prelude::*;
use pteros::{
    CallbackReturn, ExecutorHandle, LaterAnswer, LifecycleCallbacks, LifecycleNode,
    LifecyclePublisher, LifecycleState as S, LifecycleTransition as T, MultiThreadedExecutor,
    TransitionError,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Of a context that meets nobody.
fn context() -> Context {
    Context::with_options(ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        ..ContextOptions::default()
    })
    .unwrap()
}

type Answer = Box<dyn FnMut(&'static str) -> CallbackReturn + Send>;

/// Notes what is called, and answers as it is told.
struct Told {
    calls: Arc<Mutex<Vec<(&'static str, S)>>>,
    answer: Answer,
}

impl Told {
    fn call(&mut self, what: &'static str, previous: S) -> CallbackReturn {
        self.calls.lock().unwrap().push((what, previous));
        (self.answer)(what)
    }
}

impl LifecycleCallbacks for Told {
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

/// A node, who watches its topic, and what its callbacks were asked.
struct Stage {
    node: LifecycleNode,
    heard: Subscription<TransitionEvent>,
    calls: Arc<Mutex<Vec<(&'static str, S)>>>,
    watcher: Node,
}

impl Stage {
    fn new(answer: impl FnMut(&'static str) -> CallbackReturn + Send + 'static) -> Self {
        let context = context();
        let calls = Arc::new(Mutex::default());
        let told = Told {
            calls: Arc::clone(&calls),
            answer: Box::new(answer),
        };
        let watcher = context.node("watcher").unwrap();
        let topic = "/arm/transition_event";
        let heard = watcher.create_polled_subscription(topic, 100).unwrap();
        let node = LifecycleNode::new(&context, NodeOptions::new("arm"), told).unwrap();
        Self {
            node,
            heard,
            calls,
            watcher,
        }
    }

    fn obedient() -> Self {
        Self::new(|_| CallbackReturn::Success)
    }

    /// What was heard since: the states that were left and entered.
    fn events(&self) -> Vec<(u8, u8, u8)> {
        let mut events = Vec::new();
        while let Some(event) = self.heard.take() {
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

    /// Calls one of the node's services while it is spun.
    fn ask<V: ServiceType>(&self, service: &str, request: &V::Request) -> Sample<V::Response> {
        let name = format!("/arm/{service}");
        let client = self.watcher.create_client::<V>(&name).unwrap();
        let mut call = client.call_async(request).unwrap();
        let mut answer = None;
        let done = self.node.spin_until(
            || {
                answer = answer.take().or_else(|| call.take());
                answer.is_some()
            },
            PATIENCE,
        );
        assert!(done, "{service} is not answered");
        answer.unwrap().unwrap()
    }

    fn change(&self, id: u8, label: &str) -> bool {
        let transition = Transition {
            id,
            label: label.into(),
        };
        let request = ChangeState_Request { transition };
        self.ask::<ChangeState>("change_state", &request).success
    }

    fn transitions(&self, service: &str) -> Vec<(u8, String, u8, u8)> {
        let request = GetAvailableTransitions_Request {};
        let answer = self.ask::<GetAvailableTransitions>(service, &request);
        let GetAvailableTransitions_Response {
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
fn a_life_from_configure_to_shutdown_is_told_step_by_step() {
    let stage = Stage::obedient();
    let node = &stage.node;
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
    assert_eq!(stage.events(), events);
    let calls = [
        ("configure", S::Unconfigured),
        ("activate", S::Inactive),
        ("deactivate", S::Active),
        ("cleanup", S::Inactive),
        ("shutdown", S::Unconfigured),
    ];
    assert_eq!(stage.calls(), calls);
}

#[test]
fn services_change_and_tell_the_state_as_in_ros2() {
    let stage = Stage::obedient();
    assert!(stage.change(1, ""));
    // The label goes before the id, which many leave at zero.
    assert!(stage.change(0, "activate"));
    let state = stage.ask::<GetState>("get_state", &GetState_Request {});
    let active = State {
        id: 3,
        label: "active".into(),
    };
    assert_eq!(state.current_state, active);
    let row = |id, label: &str, start, goal| (id, label.to_string(), start, goal);
    assert_eq!(
        stage.transitions("get_available_transitions"),
        [row(4, "deactivate", 3, 14), row(7, "shutdown", 3, 12)]
    );
    // Not from here: refused, and nothing happens.
    assert!(!stage.change(1, ""));
    assert!(!stage.change(4, "activate"));
    // What callbacks decide cannot be asked for.
    assert!(!stage.change(0, "transition_success"));
    assert_eq!(stage.node.state(), S::Active);
    assert!(stage.change(0, "shutdown"));
    assert_eq!(stage.node.state(), S::Finalized);
    assert!(stage.transitions("get_available_transitions").is_empty());

    let states =
        stage.ask::<GetAvailableStates>("get_available_states", &GetAvailableStates_Request {});
    let states: Vec<_> = states.available_states.iter().map(|s| s.id).collect();
    assert_eq!(states, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15]);
    let graph = stage.transitions("get_transition_graph");
    assert_eq!(graph.len(), 25);
    assert_eq!(graph[0], row(1, "configure", 1, 10));
    assert_eq!(graph[3], row(12, "transition_error", 10, 15));
    assert_eq!(graph[18], row(7, "shutdown", 3, 12));
    assert_eq!(graph[24], row(62, "transition_error", 15, 4));
}

#[test]
fn an_illegal_transition_names_the_state_and_what_is_possible() {
    let stage = Stage::obedient();
    let error = stage.node.activate().unwrap_err();
    assert_eq!(
        error.to_string(),
        "node \"/arm\" is unconfigured [1]: no transition [3] leads away from there; \
         possible: configure [1], shutdown [5]"
    );
    let unknown = stage.node.change_state_by_label("dance").unwrap_err();
    assert!(unknown.to_string().contains("no transition \"dance\""));
    stage.node.shutdown().unwrap();
    let end = stage.node.configure().unwrap_err();
    assert!(end.to_string().ends_with("possible: none"), "{end}");
    assert_eq!(stage.calls().len(), 1);
}

#[test]
fn a_failure_leads_back_and_shutting_down_goes_on() {
    let stage = Stage::new(|_| CallbackReturn::Failure);
    let node = &stage.node;
    assert!(matches!(
        node.configure(),
        Err(TransitionError::Failed {
            transition: T::CONFIGURE,
            state: S::Unconfigured,
            ..
        })
    ));
    assert_eq!(stage.events(), [(1, 1, 10), (11, 10, 1)]);
    assert!(!stage.change(0, "shutdown"));
    assert_eq!(node.state(), S::Finalized);
}

#[test]
fn an_error_or_a_panic_is_processed_and_decides_what_becomes_of_the_node() {
    // What the callback does, what error processing says, where that leads.
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
        let stage = Stage::new(move |what| match what {
            "activate" => act(),
            "error" => clean(),
            _ => CallbackReturn::Success,
        });
        stage.node.configure().unwrap();
        let error = stage.node.activate().unwrap_err();
        assert!(matches!(error, TransitionError::Error { state, .. } if state == end));
        let events = [
            (1, 1, 10),
            (10, 10, 2),
            (3, 2, 13),
            (32, 13, 15),
            (last, 15, end.id()),
        ];
        assert_eq!(stage.events(), events);
        assert_eq!(stage.calls()[2], ("error", S::Inactive));
    }
}

/// Publishes in its callbacks and by a timer.
struct Speaker {
    publisher: Option<LifecyclePublisher<UInt64>>,
    timer: Option<Timer>,
    fails: Arc<AtomicBool>,
}

impl Speaker {
    fn say(&self, data: u64) -> CallbackReturn {
        let publisher = self.publisher.as_ref().unwrap();
        publisher.publish(&UInt64 { data }).unwrap();
        match self.fails.load(Ordering::Relaxed) {
            true => CallbackReturn::Failure,
            false => CallbackReturn::Success,
        }
    }
}

impl LifecycleCallbacks for Speaker {
    fn on_configure(&mut self, node: &LifecycleNode, _: S) -> CallbackReturn {
        let publisher = node.create_publisher::<UInt64>("said", 100).unwrap();
        self.publisher = Some(publisher.clone());
        self.say(1);
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
        self.say(2)
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, _: S) -> CallbackReturn {
        assert!(self.timer.as_ref().unwrap().is_cancelled());
        self.say(3)
    }

    fn on_shutdown(&mut self, _: &LifecycleNode, _: S) -> CallbackReturn {
        self.say(5)
    }
}

fn speaker(context: &Context) -> (LifecycleNode, Subscription<UInt64>, Arc<AtomicBool>) {
    let heard = context.node("ear").unwrap();
    let heard = heard.create_polled_subscription("said", 100).unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let callbacks = Speaker {
        publisher: None,
        timer: None,
        fails: fails.clone(),
    };
    let node = LifecycleNode::new(context, NodeOptions::new("mouth"), callbacks).unwrap();
    (node, heard, fails)
}

fn words(heard: &Subscription<UInt64>) -> Vec<u64> {
    std::iter::from_fn(|| heard.take())
        .map(|word| word.data)
        .collect()
}

#[test]
fn publishers_and_timers_work_while_the_node_is_active() {
    let context = context();
    let (node, heard, fails) = speaker(&context);
    let idle = || node.spin_until(|| false, Duration::from_millis(30));
    node.configure().unwrap();
    idle();
    assert_eq!(words(&heard), [0; 0], "it is inactive");
    node.activate().unwrap();
    let spoke = node.spin_until(|| heard.take().is_some_and(|w| w.data == 4), PATIENCE);
    assert!(spoke, "its timer ticks");
    words(&heard);
    // It is active still when deactivating fails.
    fails.store(true, Ordering::Relaxed);
    node.deactivate().unwrap_err();
    assert_eq!(words(&heard), [3]);
    assert!(node.spin_until(|| heard.take().is_some_and(|w| w.data == 4), PATIENCE));
    fails.store(false, Ordering::Relaxed);
    node.deactivate().unwrap();
    assert_eq!(words(&heard).last(), Some(&3));
    idle();
    assert_eq!(words(&heard), [0; 0], "it is inactive again");
    // Not active after all.
    fails.store(true, Ordering::Relaxed);
    node.activate().unwrap_err();
    assert_eq!(words(&heard), [2]);
    idle();
    // It was not active before it shut down.
    node.shutdown().unwrap_err();
    idle();
    assert_eq!(words(&heard), [0; 0]);
}

#[test]
fn what_an_inactive_publisher_drops_is_counted() {
    let context = context();
    let node = LifecycleNode::new(&context, NodeOptions::new("mouth"), ()).unwrap();
    let publisher = node.create_publisher::<UInt64>("said", 10).unwrap();
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

/// A node whose answers the test gives.
fn hesitant() -> (Stage, mpsc::Receiver<LaterAnswer>) {
    let (send, answers) = mpsc::channel();
    let stage = Stage::new(move |what| {
        if what == "error" {
            return CallbackReturn::Success;
        }
        let (later, answer) = CallbackReturn::later();
        send.send(answer).unwrap();
        later
    });
    (stage, answers)
}

#[test]
fn a_callback_may_answer_later_and_the_node_takes_one_transition_at_a_time() {
    let (stage, answers) = hesitant();
    let client = stage
        .watcher
        .create_client::<ChangeState>("/arm/change_state")
        .unwrap();
    let request = ChangeState_Request {
        transition: Transition {
            id: 1,
            label: String::new(),
        },
    };
    let mut call = client.call_async(&request).unwrap();
    assert!(
        stage
            .node
            .spin_until(|| stage.node.state() == S::Configuring, PATIENCE)
    );
    let answer = answers.recv_timeout(PATIENCE).unwrap();
    // Meanwhile it can be asked, and refuses more.
    let state = stage.ask::<GetState>("get_state", &GetState_Request {});
    assert_eq!(state.current_state.label, "configuring");
    assert!(!stage.change(0, "shutdown"));
    let busy = stage.node.configure().unwrap_err();
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
        stage
            .node
            .spin_until(|| stage.node.state() == S::Inactive, PATIENCE)
    );
    assert!(call.wait(PATIENCE).unwrap().success);
}

/// Ends a spin, also when the test fails meanwhile.
struct Cancel(ExecutorHandle);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[test]
fn its_state_is_told_while_a_callback_runs_if_there_is_a_thread() {
    let (release, released) = mpsc::channel::<()>();
    let stage = Stage::new(move |_| {
        released.recv_timeout(PATIENCE).unwrap();
        CallbackReturn::Success
    });
    let executor = MultiThreadedExecutor::new(stage.node.context(), 2);
    executor.add_node(&stage.node).unwrap();
    let watcher = &stage.watcher;
    let change = watcher.create_client::<ChangeState>("/arm/change_state");
    let state = watcher.create_client::<GetState>("/arm/get_state");
    let (change, state) = (change.unwrap(), state.unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| executor.spin());
        let _cancel = Cancel(executor.handle());
        let request = ChangeState_Request {
            transition: Transition {
                id: 1,
                label: String::new(),
            },
        };
        let call = change.call_async(&request).unwrap();
        let told = || state.call(&GetState_Request {}, PATIENCE).unwrap();
        while told().current_state.label != "configuring" {}
        release.send(()).unwrap();
        assert!(call.wait(PATIENCE).unwrap().success);
    });
}

#[test]
fn an_answer_that_is_never_given_is_an_error() {
    let (stage, answers) = hesitant();
    assert_eq!(stage.node.configure(), Ok(S::Configuring));
    drop(answers.recv_timeout(PATIENCE).unwrap());
    assert!(
        stage
            .node
            .spin_until(|| stage.node.state() == S::Unconfigured, PATIENCE)
    );
    let calls = [("configure", S::Unconfigured), ("error", S::Unconfigured)];
    assert_eq!(stage.calls(), calls);
    // One that is there before the callback returns is taken at once.
    let quick = Stage::new(|_| {
        let (later, answer) = CallbackReturn::later();
        answer.failure();
        later
    });
    assert!(matches!(
        quick.node.configure(),
        Err(TransitionError::Failed { .. })
    ));
}

#[test]
fn a_node_that_is_dropped_takes_its_callbacks_and_services_along() {
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
    let is_managed = |service: &pteros::TopicInfo| {
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
