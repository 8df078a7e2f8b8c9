//! Workload "crashes": a process dies while calls, goals, transitions and load
//! requests are in progress, and starts again, at once or after its lease.
//!
//! A request to a dead incarnation ends with its reply, in time, or with an error
//! after the lease (I11, I13). The next incarnation does not know the request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesRequest, LoadNode, LoadNodeRequest,
};
use pteros::interfaces::example_interfaces::action::{Fibonacci, FibonacciGoal, FibonacciResult};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::lifecycle_msgs::srv::{GetState, GetStateRequest};
use pteros::msg::message::GoalId;
use pteros::{
    Client, Node, NodeOptions, Service,
    action::{ActionClient, ActionError, ActionServerOptions, GoalStatus, ServerGoalHandle},
    lifecycle::{LifecycleNode, LifecycleState, LifecycleSupervisor, LossPolicy, SupervisedNode},
    service::{CallError, ResponseFuture},
};
use pteros_container::{Container, ContainerOptions};

use super::component;
use super::world::{Caller, NodeWorld, Process, REPAIR_MAX, SERVER};
use crate::simulation::threads::SimThread;

const CLIENTS: usize = 3;
const SUPERVISOR: usize = 4;

/// Participant lease of the process that dies.
const LEASE: Duration = Duration::from_secs(2);

/// Maximum life time of all incarnations but the last.
const INCARNATION_MILLIS_MAX: u64 = 4_000;

/// Time from the end of the lease until waiting clients get an error.
const LOSS_REPORT_MAX: Duration = Duration::from_millis(500);

/// An incarnation of the process.
struct Incarnation {
    began: Duration,
    ended: Option<Duration>,
    /// Its lifecycle node.
    base: Option<LifecycleNode>,
}

/// The incarnation that accepted a goal, and the goal's result.
#[derive(Clone, Default)]
struct GoalFate {
    incarnation: usize,
    result: Option<Vec<i32>>,
}

/// A running goal and the number of its ticks.
struct RunningGoal {
    goal: ServerGoalHandle<Fibonacci>,
    ticks: i32,
}

/// The oracle: everything that the incarnations recorded.
#[derive(Default)]
struct CrashOracle {
    incarnations: Mutex<Vec<Incarnation>>,
    /// Number of requests for each sum.
    sums: Mutex<BTreeMap<(i64, i64), u32>>,
    /// Goals with their incarnation and result.
    goals: Mutex<BTreeMap<GoalId, GoalFate>>,
    /// Ids of loaded components, by incarnation.
    loaded: Mutex<BTreeSet<(usize, u64)>>,
}

impl CrashOracle {
    /// The number of the current or last incarnation.
    fn incarnation(&self) -> usize {
        self.incarnations.lock().len()
    }

    /// Whether a request sent at `asked` must have ended: all incarnations that it
    /// may have reached have been dead for longer than their lease.
    fn is_over(&self, asked: Duration, now: Duration) -> bool {
        let incarnations = self.incarnations.lock();
        let reached = incarnations
            .iter()
            .rev()
            .find(|incarnation| incarnation.began <= asked);
        let ended = reached.and_then(|incarnation| incarnation.ended);
        ended.is_some_and(|ended| now > ended + LEASE + LOSS_REPORT_MAX)
    }

    /// As [`Self::is_over`] for a call that waits for a server itself.
    fn is_over_for_current_server(&self, asked: Duration, now: Duration) -> bool {
        let newest = self
            .incarnations
            .lock()
            .last()
            .map(|incarnation| incarnation.began);
        newest.is_some_and(|began| began <= asked) && self.is_over(asked, now)
    }
}

pub fn run(world: &NodeWorld) {
    let oracle = Arc::new(CrashOracle::default());
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(world, number, oracle.clone()))
        .collect();
    let supervisor = supervise(world, oracle.clone());
    let last = Mutex::new(None);
    let incarnations = || *last.lock() = Some(incarnations(world, &oracle));
    world
        .sim
        .run_concurrently(vec![Box::new(incarnations)], || world.run_fault_phase());
    drop((clients, supervisor));
    drop(last.lock().take());
    for ((a, b), times) in oracle.sums.lock().iter() {
        world.report.expect(*times == 1, || {
            format!("I13 the sum of {a} and {b} was computed {times} times")
        });
    }
    let ends = oracle
        .incarnations
        .lock()
        .iter()
        .filter(|l| l.ended.is_some())
        .count();
    world
        .report
        .expect(ends > 0, || "no process died".to_string());
    component::clear_live_count();
}

/// Runs one incarnation after the other. The last one stays; it starts before fault
/// injection ends.
fn incarnations(world: &NodeWorld, oracle: &Arc<CrashOracle>) -> Process {
    let caller = world.caller(SERVER);
    loop {
        let process = start_process(world, oracle);
        let span = world.random.lock().u64(300..INCARNATION_MILLIS_MAX);
        world.sim.advance(Duration::from_millis(span));
        if !caller.faults_active() && oracle.incarnation() > 1 {
            return process;
        }
        world.sim.crash(SERVER);
        if let Some(incarnation) = oracle.incarnations.lock().last_mut() {
            incarnation.ended = Some(world.sim.now());
            incarnation.base = None;
        }
        world.sim.trace_line(format_args!(
            "crash of incarnation {}",
            oracle.incarnation()
        ));
        drop(process);
        let (is_back_at_once, pause) = {
            let mut random = world.random.lock();
            (random.bool(), random.u64(0..4_000))
        };
        let pause = if is_back_at_once { 0 } else { pause };
        world.sim.advance(Duration::from_millis(pause));
    }
}

/// Starts an incarnation of the process.
fn start_process(world: &NodeWorld, oracle: &Arc<CrashOracle>) -> Process {
    let mut process = world.process_with_lease(SERVER, LEASE);
    let context = process.context.clone();
    let node = context.create_node("server").expect("a node");
    let base = LifecycleNode::new(&context, NodeOptions::new("base"), ()).expect("a node");
    oracle.incarnations.lock().push(Incarnation {
        began: world.sim.now(),
        ended: None,
        base: Some(base.clone()),
    });
    let incarnation = oracle.incarnation();
    let noted = oracle.clone();
    let sums = node.create_service::<AddTwoInts>("add", move |request| {
        let (a, b) = (request.a, request.b);
        *noted.sums.lock().entry((a, b)).or_default() += 1;
        AddTwoIntsResponse { sum: a + b }
    });
    process.keep(sums.expect("a service"));
    let mut held = Vec::new();
    let never = Service::<AddTwoInts>::deferred(&node, "hold", move |call| held.push(call));
    process.keep(never.expect("a service"));
    count(&mut process, &node, incarnation, oracle.clone());
    world.spin(&mut process, world.random_executor(), &[&node, base.node()]);
    process.keep(base);
    let options = ContainerOptions {
        built_in: component::CLASSES.to_vec(),
        index: pteros_container::ComponentIndex::default(),
        ..ContainerOptions::default()
    };
    let container = Container::new(&context, options).expect("a container");
    process.add_thread(world.sim.spawn(Box::new(move || {
        let _ = container.spin();
    })));
    process
}

/// Serves goals: one tick per timer period, up to the goal's order.
fn count(process: &mut Process, node: &Node, incarnation: usize, oracle: Arc<CrashOracle>) {
    let jobs: Arc<Mutex<Vec<RunningGoal>>> = Arc::default();
    let (taken, noted) = (jobs.clone(), oracle.clone());
    let options = ActionServerOptions::<Fibonacci>::new("count");
    let actions = node.create_action_server(options, move |goal: ServerGoalHandle<_>| {
        let fate = GoalFate {
            incarnation,
            result: None,
        };
        noted.goals.lock().insert(goal.id(), fate);
        taken.lock().push(RunningGoal { goal, ticks: 0 });
    });
    process.keep(actions.expect("an action server"));
    let timer = node.create_timer(Duration::from_millis(20), move || {
        jobs.lock().retain_mut(|RunningGoal { goal, ticks }| {
            if *ticks < goal.goal().order {
                *ticks += 1;
                return true;
            }
            let sequence: Vec<i32> = (0..*ticks).collect();
            let fate = GoalFate {
                incarnation,
                result: Some(sequence.clone()),
            };
            oracle.goals.lock().insert(goal.id(), fate);
            let _ = goal.succeed(FibonacciResult { sequence });
            false
        });
    });
    process.keep(timer.expect("a timer"));
}

fn client(world: &NodeWorld, number: usize, oracle: Arc<CrashOracle>) -> SimThread {
    world.client(number, "asker", move |process, caller, node, random| {
        let container = |service: &str| format!("/ComponentManager/_container/{service}");
        let mut session = CrashSession {
            add: node.create_client("add").expect("a client"),
            hold: node.create_client("hold").expect("a client"),
            count: node.create_action_client("count").expect("a client"),
            state: node.create_client("/base/get_state").expect("a client"),
            load: node
                .create_client(container("load_node"))
                .expect("a client"),
            list: node
                .create_client(container("list_nodes"))
                .expect("a client"),
            held: Vec::new(),
            results: Arc::default(),
            asked: 0,
            caller,
            node,
            oracle,
            random,
        };
        if number == 1 {
            session
                .node
                .spin_until(|| session.hold.service_is_ready(), REPAIR_MAX);
            session.wait_without_reply();
        }
        while session.caller.faults_active() {
            session.send_random_request();
            session.node.spin_until(|| false, Duration::from_millis(30));
            session.check_open_calls();
        }
        session.check_after_healing();
        drop(session);
        drop(process);
    })
}

/// Open result requests without a time limit, with the time of sending.
type Results = Arc<Mutex<BTreeMap<GoalId, Duration>>>;

struct CrashSession {
    caller: Caller,
    node: Node,
    oracle: Arc<CrashOracle>,
    add: Client<AddTwoInts>,
    hold: Client<AddTwoInts>,
    count: ActionClient<Fibonacci>,
    state: Client<GetState>,
    load: Client<LoadNode>,
    list: Client<ListNodes>,
    /// Calls without a reply.
    held: Vec<(Duration, ResponseFuture<AddTwoIntsResponse>)>,
    results: Results,
    asked: i64,
    random: Rng,
}

impl CrashSession {
    /// Calls a service that must report the loss of its server in time.
    fn call<R>(
        &self,
        what: &str,
        limit: Duration,
        call: impl FnOnce() -> Result<R, CallError>,
    ) -> Option<R> {
        let begin = self.caller.sim.now();
        let reply = self.caller.call(what, limit, call);
        let now = self.caller.sim.now();
        let waits_for_dead_server = matches!(reply, Err(CallError::TimedOut { .. }))
            && self.oracle.is_over_for_current_server(begin, now);
        self.caller.report.expect(!waits_for_dead_server, || {
            format!("I13 {what} waited for {:?} for a dead server", now - begin)
        });
        if reply.is_ok() {
            self.caller.mark_done();
        }
        reply.ok()
    }

    fn request(&mut self) -> AddTwoIntsRequest {
        self.asked += 1;
        let a = i64::try_from(self.caller.number).unwrap_or(0);
        AddTwoIntsRequest { a, b: self.asked }
    }

    fn request_sum(&mut self, limit: Duration) -> bool {
        let request = self.request();
        let reply = self.call("add", limit, || self.add.call(&request, limit));
        let sum = reply.map(|answer| answer.sum);
        self.caller
            .report
            .expect(sum.is_none_or(|sum| sum == request.a + request.b), || {
                format!("I13 {request:?} makes {sum:?}")
            });
        sum.is_some()
    }

    /// Sends a request that gets no reply.
    fn hold(&mut self) {
        let request = self.request();
        if let Ok(call) = self.hold.call_async(&request) {
            self.held.push((self.caller.sim.now(), call));
        }
    }

    /// Waits for a reply that never comes, longer than an incarnation and its
    /// lease. Only the loss of the server may end the wait.
    fn wait_without_reply(&mut self) {
        if !self.hold.service_is_ready() {
            return;
        }
        let (begin, request) = (self.caller.sim.now(), self.request());
        let limit = Duration::from_millis(INCARNATION_MILLIS_MAX) + LEASE + 2 * LOSS_REPORT_MAX;
        let reply = self
            .caller
            .call("hold", limit, || self.hold.call(&request, limit));
        let now = self.caller.sim.now();
        let report = &self.caller.report;
        report.expect(reply.is_err(), || {
            format!("I13 no server replies, but the reply is {reply:?}")
        });
        // It was sent to a running incarnation, because it did not wait for a
        // server.
        report.expect(!self.oracle.is_over(begin, now), || {
            format!(
                "I13 hold waited for {:?} for a dead server: {reply:?}",
                now - begin
            )
        });
    }

    /// Sends a goal and requests its result, with a time limit or without.
    fn request_goal(&mut self, limit: Duration, is_patient: bool) -> bool {
        let order = self.random.i32(0..60);
        let (count, caller) = (&self.count, &self.caller);
        let sent = caller.call("send_goal", limit, || {
            count.send_goal(FibonacciGoal { order }, limit)
        });
        let Ok(goal) = sent else { return false };
        let (id, asked) = (goal.id(), self.caller.sim.now());
        if is_patient {
            self.results.lock().insert(id, asked);
            let (results, oracle) = (self.results.clone(), self.oracle.clone());
            let report = self.caller.report.clone();
            let sent = goal.result_then(move |reply| {
                results.lock().remove(&id);
                if let Ok(reply) = reply {
                    let was = oracle.goals.lock().get(&id).cloned();
                    let was = was.and_then(|fate| fate.result);
                    report.expect(was.as_ref() == Some(&reply.result.sequence), || {
                        format!("I13 reported {reply:?} of a goal with the result {was:?}")
                    });
                }
            });
            if sent.is_err() {
                self.results.lock().remove(&id);
            }
            return sent.is_ok();
        }
        let reply = self.caller.call("result", limit, || goal.result(limit));
        let now = self.caller.sim.now();
        let report = &self.caller.report;
        let GoalFate {
            incarnation,
            result: was,
        } = self
            .oracle
            .goals
            .lock()
            .get(&id)
            .cloned()
            .unwrap_or_default();
        match reply {
            Ok(reply) => {
                let fits = reply.status == GoalStatus::Succeeded
                    && was.as_ref() == Some(&reply.result.sequence);
                report.expect(fits, || {
                    format!("I13 reported {reply:?} of a goal with the result {was:?}")
                });
                self.caller.mark_done();
                true
            }
            Err(ActionError::UnknownGoal { .. }) => {
                report.expect(incarnation < self.oracle.incarnation(), || {
                    "I13 the incarnation that accepted a goal does not know it".into()
                });
                false
            }
            Err(ActionError::Call(CallError::TimedOut { .. })) => {
                report.expect(!self.oracle.is_over_for_current_server(asked, now), || {
                    format!(
                        "I13 a result request waited for {:?} for a dead server",
                        now - asked
                    )
                });
                false
            }
            Err(_) => false,
        }
    }

    fn request_state(&mut self, limit: Duration) -> Option<u8> {
        let request = GetStateRequest {};
        let reply = self.call("get_state", limit, || self.state.call(&request, limit));
        reply.map(|answer| answer.current_state.id)
    }

    fn load(&mut self, limit: Duration) -> bool {
        self.asked += 1;
        let before = self.oracle.incarnation();
        let request = LoadNodeRequest {
            package_name: "box".into(),
            plugin_name: "box::Quick".into(),
            node_name: format!("c{}_{}", self.caller.number, self.asked),
            ..LoadNodeRequest::default()
        };
        let reply = self.call("load_node", limit, || self.load.call(&request, limit));
        let Some(answer) = reply else { return false };
        let report = &self.caller.report;
        report.expect(answer.success, || {
            format!("I13 not loaded: {}", answer.error_message)
        });
        let incarnation = self.oracle.incarnation();
        // The incarnation is known unless another one started meanwhile.
        let is_new = before != incarnation
            || self
                .oracle
                .loaded
                .lock()
                .insert((incarnation, answer.unique_id));
        report.expect(is_new, || {
            format!("C3 id {} was assigned twice", answer.unique_id)
        });
        answer.success
    }

    fn send_random_request(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..6_000));
        match self.random.u32(0..7) {
            0 => self.hold(),
            1 => {
                self.request_goal(limit, true);
            }
            2 => {
                self.request_goal(limit, false);
            }
            3 => {
                self.request_state(limit);
            }
            4 => {
                self.load(limit);
            }
            _ => {
                self.request_sum(limit);
            }
        }
    }

    /// Calls without a reply and result requests end with their server.
    fn check_open_calls(&mut self) {
        let now = self.caller.sim.now();
        let report = self.caller.report.clone();
        let oracle = self.oracle.clone();
        self.held.retain_mut(|(asked, call)| {
            let reply = call.take();
            let is_gone = matches!(reply, None | Some(Err(CallError::ServerLost { .. })));
            report.expect(is_gone, || {
                format!("I13 no server replies, but the reply is {reply:?}")
            });
            report.expect(reply.is_some() || !oracle.is_over(*asked, now), || {
                format!("I13 a call of {asked:?} is open at {now:?}")
            });
            reply.is_none()
        });
        for asked in self.results.lock().values() {
            report.expect(!oracle.is_over(*asked, now), || {
                format!("I13 a result asked for at {asked:?} is awaited at {now:?}")
            });
        }
    }

    fn check_after_healing(&mut self) {
        // The last incarnation may start a while after healing.
        self.node.spin_until(|| false, 3 * REPAIR_MAX);
        self.check_open_calls();
        let report = self.caller.report.clone();
        let all = [
            ("sum", self.request_sum(REPAIR_MAX)),
            ("goal", self.request_goal(REPAIR_MAX, false)),
            ("result", self.request_goal(REPAIR_MAX, true)),
            ("component", self.load(REPAIR_MAX)),
        ];
        for (what, went_well) in all {
            report.expect(went_well, || format!("I13 no {what} after healing"));
        }
        let ended = || self.results.lock().is_empty();
        let ended = self.node.spin_until(ended, REPAIR_MAX);
        report.expect(ended, || "I13 a goal hangs after healing".into());
        let request = ListNodesRequest {};
        let reply = self.call("list_nodes", REPAIR_MAX, || {
            self.list.call(&request, REPAIR_MAX)
        });
        let incarnation = self.oracle.incarnation();
        let listed: BTreeSet<_> = reply
            .iter()
            .flat_map(|reply| reply.unique_ids.iter().map(|id| (incarnation, *id)))
            .collect();
        let mut loaded = self.oracle.loaded.lock().clone();
        loaded.retain(|(of, _)| *of == incarnation);
        report.expect(loaded.is_subset(&listed), || {
            format!("C1 {loaded:?} were loaded, listed are {listed:?}")
        });
        self.caller.sim.advance(REPAIR_MAX);
        let state = self.request_state(REPAIR_MAX);
        report.expect(state == Some(LifecycleState::Active.id()), || {
            format!("L4 after healing the state is {state:?}")
        });
        // Calls to the living server are still open.
        self.check_open_calls();
    }
}

/// Keeps the lifecycle node active in every incarnation.
fn supervise(world: &NodeWorld, oracle: Arc<CrashOracle>) -> SimThread {
    let process = world.process(SUPERVISOR);
    let caller = world.caller(SUPERVISOR);
    world.sim.spawn(Box::new(move || {
        let gone = Arc::new(AtomicUsize::new(0));
        let base = SupervisedNode::new("/base")
            .arrival_timeout(Duration::from_secs(60))
            .on_loss(LossPolicy::Restart {
                attempts: u32::MAX,
                backoff: Duration::from_millis(100),
                backoff_max: Duration::from_millis(500),
            });
        let made = LifecycleSupervisor::new(&process.context, [base]);
        let counted = gone.clone();
        let mut supervisor = made.expect("a supervisor").on_event(move |event| {
            let is_gone = matches!(event, pteros::lifecycle::SupervisorEvent::Lost { .. });
            counted.fetch_add(usize::from(is_gone), Ordering::Relaxed);
        });
        supervisor.bring_up();
        while caller.faults_active() {
            supervisor.watch(Duration::from_millis(300));
        }
        // No further transition is requested.
        let supervised = supervisor.watch(4 * REPAIR_MAX);
        let state = oracle.incarnations.lock().last().and_then(|incarnation| {
            let base = incarnation.base.as_ref()?;
            Some(base.state())
        });
        let report = &caller.report;
        report.expect(supervised.all_are(LifecycleState::Active), || {
            format!("L4 not up after healing: {supervised}, {gone:?} times gone")
        });
        report.expect(state == Some(LifecycleState::Active), || {
            format!("L4 reported up, is {state:?}")
        });
        drop(supervisor);
        drop(process);
    }))
}
