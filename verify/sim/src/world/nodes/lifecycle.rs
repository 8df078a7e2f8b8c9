//! Workload "lifecycle": the lifecycle state machine under fault injection. Several
//! clients change the state of one node, and a supervisor brings up two others in
//! the order of their dependencies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::NamedQosExt;
use pteros::interfaces::lifecycle_msgs::msg::{Transition, TransitionEvent};
use pteros::interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, GetState, GetStateRequest,
};
use pteros::{
    Client, Node, NodeOptions, Sample,
    lifecycle::{
        CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState as State,
        LifecycleSupervisor, SupervisedNode,
    },
};

use super::world::{Caller, InvariantReport, NodeWorld, REPAIR_MAX, SERVER};
use crate::simulation::threads::SimThread;

const CLIENTS: usize = 3;
const SUPERVISOR: usize = 4;

/// The transitions of ROS 2 by numbers of `lifecycle_msgs`: start state,
/// transition, goal state.
const LEGAL: &[(u8, u8, u8)] = &[
    (1, 1, 10),
    (10, 10, 2),
    (10, 11, 1),
    (10, 12, 15),
    (2, 2, 11),
    (11, 20, 1),
    (11, 21, 2),
    (11, 22, 15),
    (2, 3, 13),
    (13, 30, 3),
    (13, 31, 2),
    (13, 32, 15),
    (3, 4, 14),
    (14, 40, 2),
    (14, 41, 3),
    (14, 42, 15),
    (15, 60, 1),
    (15, 61, 4),
    (15, 62, 4),
];

/// Transitions that clients request, and the transition on success.
const REQUEST_TRANSITIONS: [(u8, u8); 4] = [(1, 10), (2, 20), (3, 30), (4, 40)];

/// A transition and its time.
struct TimedTransition {
    at: Duration,
    start: u8,
    id: u8,
    goal: u8,
}

impl TimedTransition {
    fn new(at: Duration, event: &TransitionEvent) -> Self {
        Self {
            at,
            start: event.start_state.id,
            id: event.transition.id,
            goal: event.goal_state.id,
        }
    }

    /// Its numbers in the order of [`LEGAL`].
    fn numbers(&self) -> (u8, u8, u8) {
        (self.start, self.id, self.goal)
    }
}

/// Transitions that the node reported within its own process.
type History = Arc<Mutex<Vec<TimedTransition>>>;

/// Callbacks with random results. They recover from every error.
struct RandomCallbacks(Rng);

impl RandomCallbacks {
    fn decide(&mut self) -> CallbackReturn {
        match self.0.u32(0..10) {
            0 => CallbackReturn::Failure,
            1 => CallbackReturn::Error,
            _ => CallbackReturn::Success,
        }
    }
}

impl LifecycleCallbacks for RandomCallbacks {
    fn on_configure(&mut self, _: &LifecycleNode, _: State) -> CallbackReturn {
        self.decide()
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: State) -> CallbackReturn {
        self.decide()
    }

    fn on_activate(&mut self, _: &LifecycleNode, _: State) -> CallbackReturn {
        self.decide()
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, _: State) -> CallbackReturn {
        self.decide()
    }
}

/// A node that needs another node to be active before it is configured.
struct Dependent {
    base: LifecycleNode,
    report: Arc<InvariantReport>,
}

impl LifecycleCallbacks for Dependent {
    fn on_configure(&mut self, _: &LifecycleNode, _: State) -> CallbackReturn {
        let base = self.base.state();
        self.report.expect(base == State::Active, || {
            format!("L1 configured while its dependency is {base}")
        });
        CallbackReturn::Success
    }
}

pub fn run(world: &NodeWorld) {
    let history = History::default();
    let mut server = world.process(SERVER);
    let random_callbacks = RandomCallbacks(Rng::with_seed(world.seed()));
    let node = |name: &str| NodeOptions::new(name);
    let arm = LifecycleNode::new(&server.context, node("arm"), random_callbacks).expect("a node");
    let base = LifecycleNode::new(&server.context, node("base"), ()).expect("a node");
    let dependent = Dependent {
        base: base.clone(),
        report: world.report.clone(),
    };
    let tip = LifecycleNode::new(&server.context, node("tip"), dependent).expect("a node");
    let watcher = server.context.create_node("watcher").expect("a node");
    let (noted, sim) = (history.clone(), world.sim.clone());
    let _watch = watcher
        .create_subscription(
            "/arm/transition_event".keep_last(100),
            move |event: Sample<TransitionEvent>| {
                noted.lock().push(TimedTransition::new(sim.now(), &event));
            },
        )
        .expect("a subscription");
    let nodes = [arm.node(), base.node(), tip.node(), &watcher];
    world.spin(&mut server, world.random_executor(), &nodes);
    let all: Arc<Mutex<Vec<TransitionTally>>> = Arc::default();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(world, number, history.clone(), all.clone()))
        .collect();
    let supervisor = supervise(world, [base.clone(), tip.clone()]);
    world.run_fault_phase();
    drop((clients, supervisor));
    check(&world.report, &history.lock(), &all.lock());
    let (last, state) = (
        history
            .lock()
            .last()
            .map_or(1, |transition| transition.goal),
        arm.state().id(),
    );
    world
        .report
        .expect(last == state, || format!("L2 reported {last}, is {state}"));
}

/// The node made legal transitions only, in sequence, and each as often as
/// requested.
fn check(report: &InvariantReport, history: &[TimedTransition], all: &[TransitionTally]) {
    let mut at = 1;
    for transition in history {
        let numbers = transition.numbers();
        report.expect(LEGAL.contains(&numbers), || {
            format!("L3 {numbers:?} is not a legal transition")
        });
        report.expect(transition.start == at, || {
            format!("L3 {numbers:?} does not start at {at}")
        });
        at = transition.goal;
    }
    for (asked, by) in REQUEST_TRANSITIONS {
        let done = history
            .iter()
            .filter(|transition| transition.id == by)
            .count();
        let sum = |count: fn(&TransitionTally) -> &BTreeMap<u8, usize>| -> usize {
            let counts = all.iter().filter_map(|tally| count(tally).get(&asked));
            counts.sum()
        };
        let (reply, unsure) = (sum(|tally| &tally.confirmed), sum(|tally| &tally.unsure));
        report.expect((reply..=reply + unsure).contains(&done), || {
            format!(
                "I13 transition {asked} happened {done} times, reported {reply}, unsure {unsure}"
            )
        });
    }
}

/// Results of a client's requests by transition.
#[derive(Default)]
struct TransitionTally {
    confirmed: BTreeMap<u8, usize>,
    unsure: BTreeMap<u8, usize>,
}

fn client(
    world: &NodeWorld,
    number: usize,
    history: History,
    all: Arc<Mutex<Vec<TransitionTally>>>,
) -> SimThread {
    world.client(number, "asker", move |process, caller, node, random| {
        let received = History::default();
        let (log, sim) = (received.clone(), caller.sim.clone());
        let _watch = node.create_subscription(
            "/arm/transition_event".keep_last(100),
            move |event: Sample<TransitionEvent>| {
                log.lock().push(TimedTransition::new(sim.now(), &event))
            },
        );
        let mut session = LifecycleSession {
            change: node.create_client("/arm/change_state").expect("a client"),
            state: node.create_client("/arm/get_state").expect("a client"),
            caller,
            node,
            history,
            tally: TransitionTally::default(),
            random,
        };
        while session.caller.faults_active() {
            session.send_random_request();
        }
        session.check_after_healing(&received);
        all.lock().push(session.tally);
        drop(process);
    })
}

struct LifecycleSession {
    caller: Caller,
    node: Node,
    change: Client<ChangeState>,
    state: Client<GetState>,
    history: History,
    tally: TransitionTally,
    random: Rng,
}

impl LifecycleSession {
    /// The states of the node since `since`.
    fn states_since(&self, since: Duration) -> Vec<u8> {
        let history = self.history.lock();
        let before = history
            .iter()
            .take_while(|transition| transition.at < since)
            .last();
        let mut states = vec![before.map_or(1, |transition| transition.goal)];
        states.extend(
            history
                .iter()
                .filter(|transition| transition.at >= since)
                .map(|transition| transition.goal),
        );
        states
    }

    fn request_state(&self, limit: Duration) -> Option<u8> {
        let since = self.caller.sim.now();
        let request = GetStateRequest {};
        let reply = self
            .caller
            .call("get_state", limit, || self.state.call(&request, limit));
        let state = reply.ok()?.current_state.id;
        let states = self.states_since(since);
        self.caller.report.expect(states.contains(&state), || {
            format!("L2 reported state {state}, had {states:?}")
        });
        self.caller.mark_done();
        Some(state)
    }

    fn request_transition(&mut self, id: u8, limit: Duration) -> Option<bool> {
        let transition = Transition {
            id,
            ..Transition::default()
        };
        let request = ChangeStateRequest { transition };
        let reply = self
            .caller
            .call("change_state", limit, || self.change.call(&request, limit));
        match reply {
            Ok(answer) => {
                *self.tally.confirmed.entry(id).or_default() += usize::from(answer.success);
                self.caller.mark_done();
                Some(answer.success)
            }
            Err(_) => {
                *self.tally.unsure.entry(id).or_default() += 1;
                None
            }
        }
    }

    fn send_random_request(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..3_000));
        match self.random.u32(0..3) {
            0 => {
                self.request_state(limit);
            }
            _ => {
                let id = self.random.u8(1..=4);
                self.request_transition(id, limit);
            }
        }
        let pause = Duration::from_millis(self.random.u64(1..100));
        self.node.spin_until(|| false, pause);
    }

    fn check_after_healing(&mut self, received: &History) {
        self.caller.sim.advance(REPAIR_MAX);
        let reply = self.request_state(REPAIR_MAX);
        self.caller.report.expect(reply.is_some(), || {
            "I13 no state reported after healing".into()
        });
        let reply = self.request_transition(1, REPAIR_MAX);
        self.caller
            .report
            .expect(reply.is_some(), || "I13 no answer after healing".into());
        self.node.spin_until(|| false, REPAIR_MAX);
        let (history, received) = (self.history.lock(), received.lock());
        let mut rest = history.iter();
        let in_order = received
            .iter()
            .all(|reply| rest.any(|was| was.numbers() == reply.numbers()));
        let report = &self.caller.report;
        report.expect(in_order, || {
            "L2 events arrived out of order, or of transitions that did not happen".into()
        });
        let last = |list: &[TimedTransition]| list.last().map(TimedTransition::numbers);
        // Delivery is reliable, except for events before the match.
        report.expect(
            received.is_empty() || last(&received) == last(&history),
            || {
                format!(
                    "L2 reported {:?}, was {:?}",
                    last(&received),
                    last(&history)
                )
            },
        );
    }
}

/// Brings two nodes up and down under faults, and up after healing.
fn supervise(world: &NodeWorld, nodes: [LifecycleNode; 2]) -> SimThread {
    let process = world.process(SUPERVISOR);
    let caller = world.caller(SUPERVISOR);
    world.sim.spawn(Box::new(move || {
        let supervised = [
            SupervisedNode::new("/tip").depends_on("/base"),
            SupervisedNode::new("/base"),
        ];
        let made = LifecycleSupervisor::new(&process.context, supervised);
        let mut supervisor = made.expect("a supervisor").on_event(|_| {});
        while caller.faults_active() {
            supervisor.bring_up();
            supervisor.watch(Duration::from_millis(300));
            supervisor.bring_down();
        }
        caller.sim.advance(REPAIR_MAX);
        let supervised = supervisor.bring_up();
        let report = &caller.report;
        report.expect(supervised.all_are(State::Active), || {
            format!("L4 not up after healing: {supervised}")
        });
        let states = nodes.each_ref().map(LifecycleNode::state);
        report.expect(states == [State::Active; 2], || {
            format!("L4 reported up, are {states:?}")
        });
        drop(supervisor);
        drop(process);
    }))
}
