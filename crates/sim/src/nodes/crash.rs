//! A process that dies without goodbye while calls, goals, transitions and requests
//! to load are under way, and comes back, at once or after its lease.
//!
//! Whatever was asked of a life that is over ends: in an answer that it gave, in time,
//! or in an error once its lease is over (I11, I13). The next life knows nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodes_Request, LoadNode, LoadNode_Request,
};
use pteros::interfaces::example_interfaces::action::{Fibonacci, Fibonacci_Goal, Fibonacci_Result};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoInts_Request, AddTwoInts_Response,
};
use pteros::interfaces::lifecycle_msgs::srv::{GetState, GetState_Request};
use pteros::msg::message::GoalId;
use pteros::{
    ActionClient, ActionError, ActionServerOptions, Call, CallError, Client, GoalStatus,
    LifecycleNode, LifecycleState, LifecycleSupervisor, LossPolicy, Node, NodeOptions, ServerGoal,
    ServiceOptions, SupervisedNode,
};
use pteros_component::{Container, ContainerOptions};

use super::component;
use super::stage::{Asker, Process, SERVER, SOON, Stage};
use crate::relay::Companion;

const CLIENTS: usize = 3;
const SUPERVISOR: usize = 4;

/// How long a dead process is taken for alive.
const LEASE: Duration = Duration::from_secs(2);

/// How long a life but the last lasts at most.
const LIFE_MILLIS_MAX: u64 = 4_000;

/// Until whoever waits for it has heard of its end.
const WORD: Duration = Duration::from_millis(500);

/// One run of the process.
struct Life {
    began: Duration,
    ended: Option<Duration>,
    /// Its managed node.
    base: Option<LifecycleNode>,
}

/// A goal: the life that accepted it, and what it came to.
type Accepted = (usize, Option<Vec<i32>>);

/// A goal at work, and how often it was worked on.
type Job = (ServerGoal<Fibonacci>, i32);

/// What became of everything, as the lives themselves noted it.
#[derive(Default)]
struct Truth {
    lives: Mutex<Vec<Life>>,
    /// How often a sum was asked for, by its two numbers.
    sums: Mutex<BTreeMap<(i64, i64), u32>>,
    /// What goals came to, and in which life they were accepted.
    goals: Mutex<BTreeMap<GoalId, Accepted>>,
    /// Numbers given to components, with the life.
    loaded: Mutex<BTreeSet<(usize, u64)>>,
}

impl Truth {
    /// The number of the life that goes on, or was the last.
    fn life(&self) -> usize {
        self.lives.lock().len()
    }

    /// Whether what was asked of the process at `asked` must be over: all lives
    /// that it may have reached have been dead for longer than their lease.
    fn is_over(&self, asked: Duration, now: Duration) -> bool {
        let lives = self.lives.lock();
        let reached = lives.iter().rev().find(|life| life.began <= asked);
        let ended = reached.and_then(|life| life.ended);
        ended.is_some_and(|ended| now > ended + LEASE + WORD)
    }

    /// As [`Self::is_over`], of a call that looks for a server itself.
    fn is_over_for_good(&self, asked: Duration, now: Duration) -> bool {
        let newest = self.lives.lock().last().map(|life| life.began);
        newest.is_some_and(|began| began <= asked) && self.is_over(asked, now)
    }
}

pub fn play(stage: &Stage) {
    let truth = Arc::new(Truth::default());
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(stage, number, truth.clone()))
        .collect();
    let supervisor = supervise(stage, truth.clone());
    let last = Mutex::new(None);
    let lives = || *last.lock() = Some(lives(stage, &truth));
    stage.sim.beside(vec![Box::new(lives)], || stage.storm());
    drop((clients, supervisor));
    drop(last.lock().take());
    for ((a, b), times) in truth.sums.lock().iter() {
        stage.book.expect(*times == 1, || {
            format!("I13 the sum of {a} and {b} was made {times} times")
        });
    }
    let ends = truth
        .lives
        .lock()
        .iter()
        .filter(|l| l.ended.is_some())
        .count();
    stage
        .book
        .expect(ends > 0, || "nobody has died".to_string());
    component::forget();
}

/// One life after the other; the last, which begins before it is calm for good, goes on.
fn lives(stage: &Stage, truth: &Arc<Truth>) -> Process {
    let asker = stage.asker(SERVER);
    loop {
        let process = live(stage, truth);
        let span = stage.random.lock().u64(300..LIFE_MILLIS_MAX);
        stage.sim.pass(Duration::from_millis(span));
        if !asker.goes_on() && truth.life() > 1 {
            return process;
        }
        stage.sim.crash(SERVER);
        if let Some(life) = truth.lives.lock().last_mut() {
            life.ended = Some(stage.sim.now());
            life.base = None;
        }
        stage
            .sim
            .say(format_args!("crash of life {}", truth.life()));
        drop(process);
        let (is_back_at_once, pause) = {
            let mut random = stage.random.lock();
            (random.bool(), random.u64(0..4_000))
        };
        let pause = if is_back_at_once { 0 } else { pause };
        stage.sim.pass(Duration::from_millis(pause));
    }
}

/// The process as it begins to live.
fn live(stage: &Stage, truth: &Arc<Truth>) -> Process {
    let mut process = stage.mortal(SERVER, LEASE);
    let context = process.context.clone();
    let node = context.node("server").expect("a node");
    let base = LifecycleNode::new(&context, NodeOptions::new("base"), ()).expect("a node");
    truth.lives.lock().push(Life {
        began: stage.sim.now(),
        ended: None,
        base: Some(base.clone()),
    });
    let life = truth.life();
    let noted = truth.clone();
    let sums = node.create_service::<AddTwoInts>("add", move |request| {
        let (a, b) = (request.a, request.b);
        *noted.sums.lock().entry((a, b)).or_default() += 1;
        AddTwoInts_Response { sum: a + b }
    });
    process.keep(sums.expect("a service"));
    let mut held = Vec::new();
    let never = node.create_deferred_service::<AddTwoInts>(
        "hold",
        ServiceOptions::default(),
        move |call| held.push(call),
    );
    process.keep(never.expect("a service"));
    count(&mut process, &node, (life, truth.clone()));
    stage.spin(&mut process, stage.any_spin(), &[&node, base.node()]);
    process.keep(base);
    let options = ContainerOptions {
        built_in: component::CLASSES.to_vec(),
        index: pteros_component::Index::default(),
        ..ContainerOptions::default()
    };
    let container = Container::new(&context, options).expect("a container");
    process.spins(stage.sim.companion(Box::new(move || {
        let _ = container.spin();
    })));
    process
}

/// Serves goals: so many ticks each.
fn count(process: &mut Process, node: &Node, (life, truth): (usize, Arc<Truth>)) {
    let jobs: Arc<Mutex<Vec<Job>>> = Arc::default();
    let (taken, noted) = (jobs.clone(), truth.clone());
    let options = ActionServerOptions::<Fibonacci>::default();
    let actions = node.create_action_server("count", options, move |goal: ServerGoal<_>| {
        noted.goals.lock().insert(goal.id(), (life, None));
        taken.lock().push((goal, 0));
    });
    process.keep(actions.expect("an action server"));
    let timer = node.create_timer(Duration::from_millis(20), move || {
        jobs.lock().retain_mut(|(goal, ticks)| {
            if *ticks < goal.goal().order {
                *ticks += 1;
                return true;
            }
            let sequence: Vec<i32> = (0..*ticks).collect();
            let end = (life, Some(sequence.clone()));
            truth.goals.lock().insert(goal.id(), end);
            let _ = goal.succeed(Fibonacci_Result { sequence });
            false
        });
    });
    process.keep(timer.expect("a timer"));
}

fn client(stage: &Stage, number: usize, truth: Arc<Truth>) -> Companion {
    let process = stage.process(number);
    let (asker, seed) = (stage.asker(number), stage.seed());
    stage.sim.companion(Box::new(move || {
        let node = process
            .context
            .node(&format!("asker{number}"))
            .expect("a node");
        let container = |service: &str| format!("/ComponentManager/_container/{service}");
        let mut one = One {
            add: node.create_client("add").expect("a client"),
            hold: node.create_client("hold").expect("a client"),
            count: node.create_action_client("count").expect("a client"),
            state: node.create_client("/base/get_state").expect("a client"),
            load: node
                .create_client(&container("load_node"))
                .expect("a client"),
            list: node
                .create_client(&container("list_nodes"))
                .expect("a client"),
            held: Vec::new(),
            results: Arc::default(),
            asked: 0,
            asker,
            node,
            truth,
            random: Rng::with_seed(seed),
        };
        if number == 1 {
            one.node.spin_until(|| one.hold.is_ready(), SOON);
            one.wait_in_vain();
        }
        while one.asker.goes_on() {
            one.ask();
            one.node.spin_until(|| false, Duration::from_millis(30));
            one.look_at_what_is_open();
        }
        one.ask_in_calm();
        drop(one);
        drop(process);
    }))
}

/// Results that somebody waits for without a limit, by when they were asked for.
type Results = Arc<Mutex<BTreeMap<GoalId, Duration>>>;

struct One {
    asker: Asker,
    node: Node,
    truth: Arc<Truth>,
    add: Client<AddTwoInts>,
    hold: Client<AddTwoInts>,
    count: ActionClient<Fibonacci>,
    state: Client<GetState>,
    load: Client<LoadNode>,
    list: Client<ListNodes>,
    /// Calls that nobody answers.
    held: Vec<(Duration, Call<AddTwoInts_Response>)>,
    results: Results,
    asked: i64,
    random: Rng,
}

impl One {
    /// Calls something that is told in time if its server is dead.
    fn call<R>(
        &self,
        what: &str,
        limit: Duration,
        call: impl FnOnce() -> Result<R, CallError>,
    ) -> Option<R> {
        let begin = self.asker.sim.now();
        let told = self.asker.call(what, limit, call);
        let now = self.asker.sim.now();
        let hangs = matches!(told, Err(CallError::TimedOut { .. }))
            && self.truth.is_over_for_good(begin, now);
        self.asker.book.expect(!hangs, || {
            format!("I13 {what} waited for {:?} for the dead", now - begin)
        });
        if told.is_ok() {
            self.asker.note_done();
        }
        told.ok()
    }

    fn request(&mut self) -> AddTwoInts_Request {
        self.asked += 1;
        let a = i64::try_from(self.asker.number).unwrap_or(0);
        AddTwoInts_Request { a, b: self.asked }
    }

    fn ask_sum(&mut self, limit: Duration) -> bool {
        let request = self.request();
        let told = self.call("add", limit, || self.add.call(&request, limit));
        let sum = told.map(|answer| answer.sum);
        self.asker
            .book
            .expect(sum.is_none_or(|sum| sum == request.a + request.b), || {
                format!("I13 {request:?} makes {sum:?}")
            });
        sum.is_some()
    }

    /// Sends what nobody answers.
    fn hold(&mut self) {
        let request = self.request();
        if let Ok(call) = self.hold.call_async(&request) {
            self.held.push((self.asker.sim.now(), call));
        }
    }

    /// Waits for what nobody answers, longer than a life and the lease after it: only
    /// the word of its server's end may end that.
    fn wait_in_vain(&mut self) {
        if !self.hold.is_ready() {
            return;
        }
        let (begin, request) = (self.asker.sim.now(), self.request());
        let limit = Duration::from_millis(LIFE_MILLIS_MAX) + LEASE + 2 * WORD;
        let told = self
            .asker
            .call("hold", limit, || self.hold.call(&request, limit));
        let now = self.asker.sim.now();
        let book = &self.asker.book;
        book.expect(told.is_err(), || {
            format!("I13 nobody answers, and told is {told:?}")
        });
        // It was sent to a life that had begun, for it did not wait for a server.
        book.expect(!self.truth.is_over(begin, now), || {
            format!(
                "I13 hold waited for {:?} for the dead: {told:?}",
                now - begin
            )
        });
    }

    /// Asks for a goal, then for its result: within a limit, or for as long as it
    /// takes.
    fn ask_goal(&mut self, limit: Duration, is_patient: bool) -> bool {
        let order = self.random.i32(0..60);
        let (count, asker) = (&self.count, &self.asker);
        let sent = asker.call("send_goal", limit, || {
            count.send_goal(Fibonacci_Goal { order }, limit)
        });
        let Ok(goal) = sent else { return false };
        let (id, asked) = (goal.id(), self.asker.sim.now());
        if is_patient {
            self.results.lock().insert(id, asked);
            let (results, truth) = (self.results.clone(), self.truth.clone());
            let book = self.asker.book.clone();
            let sent = goal.result_then(move |told| {
                results.lock().remove(&id);
                if let Ok(told) = told {
                    let was = truth.goals.lock().get(&id).cloned();
                    let was = was.and_then(|(_, end)| end);
                    book.expect(was.as_ref() == Some(&told.result.sequence), || {
                        format!("I13 told {told:?} of a goal that came to {was:?}")
                    });
                }
            });
            if sent.is_err() {
                self.results.lock().remove(&id);
            }
            return sent.is_ok();
        }
        let told = self.asker.call("result", limit, || goal.result(limit));
        let now = self.asker.sim.now();
        let book = &self.asker.book;
        let (life, was) = self
            .truth
            .goals
            .lock()
            .get(&id)
            .cloned()
            .unwrap_or_default();
        match told {
            Ok(told) => {
                let fits = told.status == GoalStatus::Succeeded
                    && was.as_ref() == Some(&told.result.sequence);
                book.expect(fits, || {
                    format!("I13 told {told:?} of a goal that came to {was:?}")
                });
                self.asker.note_done();
                true
            }
            Err(ActionError::UnknownGoal { .. }) => {
                book.expect(life < self.truth.life(), || {
                    "I13 the life that accepted a goal does not know it".into()
                });
                false
            }
            Err(ActionError::Call(CallError::TimedOut { .. })) => {
                book.expect(!self.truth.is_over_for_good(asked, now), || {
                    format!("I13 a result waited for {:?} for the dead", now - asked)
                });
                false
            }
            Err(_) => false,
        }
    }

    fn ask_state(&mut self, limit: Duration) -> Option<u8> {
        let request = GetState_Request {};
        let told = self.call("get_state", limit, || self.state.call(&request, limit));
        told.map(|answer| answer.current_state.id)
    }

    fn load(&mut self, limit: Duration) -> bool {
        self.asked += 1;
        let before = self.truth.life();
        let request = LoadNode_Request {
            package_name: "box".into(),
            plugin_name: "box::Quick".into(),
            node_name: format!("c{}_{}", self.asker.number, self.asked),
            ..LoadNode_Request::default()
        };
        let told = self.call("load_node", limit, || self.load.call(&request, limit));
        let Some(answer) = told else { return false };
        let book = &self.asker.book;
        book.expect(answer.success, || {
            format!("I13 not loaded: {}", answer.error_message)
        });
        let life = self.truth.life();
        // Of which life it was is known unless another began meanwhile.
        let is_new = before != life || self.truth.loaded.lock().insert((life, answer.unique_id));
        book.expect(is_new, || {
            format!("C3 number {} is given twice", answer.unique_id)
        });
        answer.success
    }

    fn ask(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..6_000));
        match self.random.u32(0..7) {
            0 => self.hold(),
            1 => {
                self.ask_goal(limit, true);
            }
            2 => {
                self.ask_goal(limit, false);
            }
            3 => {
                self.ask_state(limit);
            }
            4 => {
                self.load(limit);
            }
            _ => {
                self.ask_sum(limit);
            }
        }
    }

    /// What nobody answers ends with its server, and so does the wait for a result.
    fn look_at_what_is_open(&mut self) {
        let now = self.asker.sim.now();
        let book = self.asker.book.clone();
        let truth = self.truth.clone();
        self.held.retain_mut(|(asked, call)| {
            let told = call.take();
            let is_gone = matches!(told, None | Some(Err(CallError::ServerGone { .. })));
            book.expect(is_gone, || {
                format!("I13 nobody answers, and told is {told:?}")
            });
            book.expect(told.is_some() || !truth.is_over(*asked, now), || {
                format!("I13 a call of {asked:?} is open at {now:?}")
            });
            told.is_none()
        });
        for asked in self.results.lock().values() {
            book.expect(!truth.is_over(*asked, now), || {
                format!("I13 a result asked for at {asked:?} is awaited at {now:?}")
            });
        }
    }

    fn ask_in_calm(&mut self) {
        // The last life may begin a while after the storm.
        self.node.spin_until(|| false, 3 * SOON);
        self.look_at_what_is_open();
        let book = self.asker.book.clone();
        let all = [
            ("sum", self.ask_sum(SOON)),
            ("goal", self.ask_goal(SOON, false)),
            ("result", self.ask_goal(SOON, true)),
            ("component", self.load(SOON)),
        ];
        for (what, went_well) in all {
            book.expect(went_well, || format!("I13 no {what} in calm"));
        }
        let ended = || self.results.lock().is_empty();
        let ended = self.node.spin_until(ended, SOON);
        book.expect(ended, || "I13 a goal hangs in calm".into());
        let request = ListNodes_Request {};
        let told = self.call("list_nodes", SOON, || self.list.call(&request, SOON));
        let life = self.truth.life();
        let listed: BTreeSet<_> = told
            .iter()
            .flat_map(|told| told.unique_ids.iter().map(|id| (life, *id)))
            .collect();
        let mut loaded = self.truth.loaded.lock().clone();
        loaded.retain(|(of, _)| *of == life);
        book.expect(loaded.is_subset(&listed), || {
            format!("C1 {loaded:?} were loaded, listed are {listed:?}")
        });
        self.asker.sim.pass(SOON);
        let state = self.ask_state(SOON);
        book.expect(state == Some(LifecycleState::Active.id()), || {
            format!("L4 in calm the state is {state:?}")
        });
        // Those are open still whose server lives.
        self.look_at_what_is_open();
    }
}

/// Keeps the managed node active, in whichever life it is.
fn supervise(stage: &Stage, truth: Arc<Truth>) -> Companion {
    let process = stage.process(SUPERVISOR);
    let asker = stage.asker(SUPERVISOR);
    stage.sim.companion(Box::new(move || {
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
            let is_gone = matches!(event, pteros::SupervisorEvent::Gone { .. });
            counted.fetch_add(usize::from(is_gone), Ordering::Relaxed);
        });
        supervisor.bring_up();
        while asker.goes_on() {
            supervisor.watch(Duration::from_millis(300));
        }
        // Nobody tells it anything any more.
        let report = supervisor.watch(4 * SOON);
        let state = truth.lives.lock().last().and_then(|life| {
            let base = life.base.as_ref()?;
            Some(base.state())
        });
        let book = &asker.book;
        book.expect(report.all_are(LifecycleState::Active), || {
            format!("L4 not up in calm: {report}, {gone:?} times gone")
        });
        book.expect(state == Some(LifecycleState::Active), || {
            format!("L4 told up, is {state:?}")
        });
        drop(supervisor);
        drop(process);
    }))
}
