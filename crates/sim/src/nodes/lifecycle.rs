//! Managed nodes under faults: one whose state many ask to be changed, and two that
//! a supervisor brings up in their order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::lifecycle_msgs::msg::{Transition, TransitionEvent};
use pteros::interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeState_Request, GetState, GetState_Request,
};
use pteros::{
    CallbackReturn, Client, LifecycleCallbacks, LifecycleNode, LifecycleState as State,
    LifecycleSupervisor, Node, NodeOptions, Sample, SupervisedNode,
};

use super::stage::{Asker, Book, SERVER, SOON, Stage};
use crate::relay::Companion;

const CLIENTS: usize = 3;
const SUPERVISOR: usize = 4;

/// ROS 2's table, by numbers of `lifecycle_msgs`: from where, by which transition,
/// to where.
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

/// What can be asked for, and the transition by which it succeeds.
const ASKED: [(u8, u8); 4] = [(1, 10), (2, 20), (3, 30), (4, 40)];

/// A state that was left for another, and when.
type Passage = (Duration, (u8, u8, u8));

/// What became of the node, as it told within its own process.
type History = Arc<Mutex<Vec<Passage>>>;

/// Does as it likes, but recovers from every error.
struct Moody(Rng);

impl Moody {
    fn decide(&mut self) -> CallbackReturn {
        match self.0.u32(0..10) {
            0 => CallbackReturn::Failure,
            1 => CallbackReturn::Error,
            _ => CallbackReturn::Success,
        }
    }
}

impl LifecycleCallbacks for Moody {
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

/// Needs another node to be active before it is configured.
struct Dependent {
    base: LifecycleNode,
    book: Arc<Book>,
}

impl LifecycleCallbacks for Dependent {
    fn on_configure(&mut self, _: &LifecycleNode, _: State) -> CallbackReturn {
        let base = self.base.state();
        self.book.expect(base == State::Active, || {
            format!("L1 configured while what it depends on is {base}")
        });
        CallbackReturn::Success
    }
}

pub fn play(stage: &Stage) {
    let history = History::default();
    let mut server = stage.process(SERVER);
    let moody = Moody(Rng::with_seed(stage.seed()));
    let node = |name: &str| NodeOptions::new(name);
    let arm = LifecycleNode::new(&server.context, node("arm"), moody).expect("a node");
    let base = LifecycleNode::new(&server.context, node("base"), ()).expect("a node");
    let dependent = Dependent {
        base: base.clone(),
        book: stage.book.clone(),
    };
    let tip = LifecycleNode::new(&server.context, node("tip"), dependent).expect("a node");
    let watcher = server.context.node("watcher").expect("a node");
    let (noted, sim) = (history.clone(), stage.sim.clone());
    let _watch = watcher
        .create_subscription(
            "/arm/transition_event",
            100,
            move |event: Sample<TransitionEvent>| {
                noted.lock().push((sim.now(), passage(&event)));
            },
        )
        .expect("a subscription");
    let nodes = [arm.node(), base.node(), tip.node(), &watcher];
    stage.spin(&mut server, stage.any_spin(), &nodes);
    let all: Arc<Mutex<Vec<Tally>>> = Arc::default();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(stage, number, history.clone(), all.clone()))
        .collect();
    let supervisor = supervise(stage, [base.clone(), tip.clone()]);
    stage.storm();
    drop((clients, supervisor));
    check(&stage.book, &history.lock(), &all.lock());
    let (last, state) = (
        history.lock().last().map_or(1, |(_, way)| way.2),
        arm.state().id(),
    );
    stage
        .book
        .expect(last == state, || format!("L2 told {last}, is {state}"));
}

fn passage(event: &TransitionEvent) -> (u8, u8, u8) {
    (
        event.start_state.id,
        event.transition.id,
        event.goal_state.id,
    )
}

/// The node took legal ways only, one after the other, and each as often as it was
/// asked to.
fn check(book: &Book, history: &[Passage], all: &[Tally]) {
    let mut at = 1;
    for (_, way) in history {
        book.expect(LEGAL.contains(way), || {
            format!("L3 {way:?} is no legal way")
        });
        book.expect(way.0 == at, || {
            format!("L3 {way:?} begins elsewhere than at {at}")
        });
        at = way.2;
    }
    for (asked, by) in ASKED {
        let done = history.iter().filter(|(_, way)| way.1 == by).count();
        let sum = |count: fn(&Tally) -> &BTreeMap<u8, usize>| -> usize {
            let counts = all.iter().filter_map(|tally| count(tally).get(&asked));
            counts.sum()
        };
        let (told, unsure) = (sum(|tally| &tally.told), sum(|tally| &tally.unsure));
        book.expect((told..=told + unsure).contains(&done), || {
            format!("I13 transition {asked} was done {done} times, told {told}, unsure {unsure}")
        });
    }
}

/// What a client was told of what it asked for, by transition.
#[derive(Default)]
struct Tally {
    told: BTreeMap<u8, usize>,
    unsure: BTreeMap<u8, usize>,
}

fn client(
    stage: &Stage,
    number: usize,
    history: History,
    all: Arc<Mutex<Vec<Tally>>>,
) -> Companion {
    let process = stage.process(number);
    let (asker, seed) = (stage.asker(number), stage.seed());
    stage.sim.companion(Box::new(move || {
        let node = process
            .context
            .node(&format!("asker{number}"))
            .expect("a node");
        let heard = History::default();
        let (hears, sim) = (heard.clone(), asker.sim.clone());
        let _watch = node.create_subscription(
            "/arm/transition_event",
            100,
            move |event: Sample<TransitionEvent>| hears.lock().push((sim.now(), passage(&event))),
        );
        let mut one = One {
            change: node.create_client("/arm/change_state").expect("a client"),
            state: node.create_client("/arm/get_state").expect("a client"),
            asker,
            node,
            history,
            tally: Tally::default(),
            random: Rng::with_seed(seed),
        };
        while one.asker.goes_on() {
            one.ask();
        }
        one.ask_in_calm(&heard);
        all.lock().push(one.tally);
        drop(process);
    }))
}

struct One {
    asker: Asker,
    node: Node,
    change: Client<ChangeState>,
    state: Client<GetState>,
    history: History,
    tally: Tally,
    random: Rng,
}

impl One {
    /// States that the node had since then.
    fn had_since(&self, since: Duration) -> Vec<u8> {
        let history = self.history.lock();
        let before = history.iter().take_while(|(at, _)| *at < since).last();
        let mut had = vec![before.map_or(1, |(_, way)| way.2)];
        had.extend(
            history
                .iter()
                .filter(|(at, _)| *at >= since)
                .map(|(_, way)| way.2),
        );
        had
    }

    fn ask_state(&self, limit: Duration) -> Option<u8> {
        let since = self.asker.sim.now();
        let request = GetState_Request {};
        let told = self
            .asker
            .call("get_state", limit, || self.state.call(&request, limit));
        let state = told.ok()?.current_state.id;
        let had = self.had_since(since);
        self.asker.book.expect(had.contains(&state), || {
            format!("L2 told state {state}, had {had:?}")
        });
        self.asker.note_done();
        Some(state)
    }

    fn ask_change(&mut self, id: u8, limit: Duration) -> Option<bool> {
        let transition = Transition {
            id,
            ..Transition::default()
        };
        let request = ChangeState_Request { transition };
        let told = self
            .asker
            .call("change_state", limit, || self.change.call(&request, limit));
        match told {
            Ok(answer) => {
                *self.tally.told.entry(id).or_default() += usize::from(answer.success);
                self.asker.note_done();
                Some(answer.success)
            }
            Err(_) => {
                *self.tally.unsure.entry(id).or_default() += 1;
                None
            }
        }
    }

    fn ask(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..3_000));
        match self.random.u32(0..3) {
            0 => {
                self.ask_state(limit);
            }
            _ => {
                let id = self.random.u8(1..=4);
                self.ask_change(id, limit);
            }
        }
        let pause = Duration::from_millis(self.random.u64(1..100));
        self.node.spin_until(|| false, pause);
    }

    fn ask_in_calm(&mut self, heard: &History) {
        self.asker.sim.pass(SOON);
        let told = self.ask_state(SOON);
        self.asker
            .book
            .expect(told.is_some(), || "I13 no state told in calm".into());
        let told = self.ask_change(1, SOON);
        self.asker
            .book
            .expect(told.is_some(), || "I13 no answer in calm".into());
        self.node.spin_until(|| false, SOON);
        let (history, heard) = (self.history.lock(), heard.lock());
        let mut rest = history.iter();
        let in_order = heard
            .iter()
            .all(|(_, told)| rest.any(|(_, was)| was == told));
        let book = &self.asker.book;
        book.expect(in_order, || {
            "L2 events were told in another order, or of nothing".into()
        });
        let last = |list: &[Passage]| list.last().map(|(_, way)| *way);
        // Told by reliable means, unless the first was before they met.
        book.expect(heard.is_empty() || last(&heard) == last(&history), || {
            format!("L2 told {:?}, was {:?}", last(&heard), last(&history))
        });
    }
}

/// Brings two nodes up and down in the storm, and up in the calm.
fn supervise(stage: &Stage, nodes: [LifecycleNode; 2]) -> Companion {
    let process = stage.process(SUPERVISOR);
    let asker = stage.asker(SUPERVISOR);
    stage.sim.companion(Box::new(move || {
        let supervised = [
            SupervisedNode::new("/tip").depends_on("/base"),
            SupervisedNode::new("/base"),
        ];
        let made = LifecycleSupervisor::new(&process.context, supervised);
        let mut supervisor = made.expect("a supervisor").on_event(|_| {});
        while asker.goes_on() {
            supervisor.bring_up();
            supervisor.watch(Duration::from_millis(300));
            supervisor.bring_down();
        }
        asker.sim.pass(SOON);
        let report = supervisor.bring_up();
        let book = &asker.book;
        book.expect(report.all_are(State::Active), || {
            format!("L4 not up in calm: {report}")
        });
        let states = nodes.each_ref().map(LifecycleNode::state);
        book.expect(states == [State::Active; 2], || {
            format!("L4 told up, are {states:?}")
        });
        drop(supervisor);
        drop(process);
    }))
}
