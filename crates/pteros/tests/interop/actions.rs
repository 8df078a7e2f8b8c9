//! Actions between us and them: three services and two topics, each in the
//! dialect that ROS 2's layer over that stack has.

#![allow(
    clippy::disallowed_methods,
    reason = "our client's node is spun by a thread beside what the story asks"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use pteros::interfaces::example_interfaces::action::{
    Fibonacci, Fibonacci_Feedback, Fibonacci_Goal, Fibonacci_Result,
};
use pteros::prelude::*;
use pteros::{
    ActionClient, ActionError, ActionServer, ActionServerOptions, GoalResponse, GoalStatus,
    ServerGoal,
};

use crate::peer::Peer;
use crate::stage::{PATIENCE, Stage};

const NAME: &str = "fibonacci";
const SLICE: Duration = Duration::from_millis(20);

/// The id of a goal of theirs, as they print it: sixteen times its number.
fn id_of(number: u8) -> String {
    format!("{number:02x}").repeat(16)
}

fn hex(id: [u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn numbers(count: usize) -> Vec<i32> {
    let mut numbers = vec![0, 1];
    while numbers.len() < count {
        numbers.push(numbers.iter().rev().take(2).sum());
    }
    numbers
}

fn words(numbers: &[i32]) -> String {
    numbers.iter().map(|n| format!(" {n}")).collect()
}

/// Our server, whose goals the story works on, and their client, who sees it.
struct Serving {
    node: Node,
    goals: mpsc::Receiver<ServerGoal<Fibonacci>>,
    server: ActionServer<Fibonacci>,
    peer: Peer,
}

impl Serving {
    fn new(stage: &Stage) -> Self {
        let node = stage.node();
        let (send, goals) = mpsc::channel();
        let options =
            ActionServerOptions::<Fibonacci>::default().on_goal(|goal: &Fibonacci_Goal| {
                match goal.order > 45 {
                    true => GoalResponse::Reject,
                    false => GoalResponse::AcceptAndExecute,
                }
            });
        let server = node
            .create_action_server(NAME, options, move |goal| send.send(goal).unwrap())
            .unwrap();
        let mut peer = stage.node_peer("action", "call");
        peer.expect("ready", PATIENCE);
        let mut serving = Self {
            node,
            goals,
            server,
            peer,
        };
        serving.hears("met");
        // Feedback is for those who are there: we have to know them, too.
        for topic in ["feedback", "status"] {
            let topic = format!("/{NAME}/_action/{topic}");
            let graph = serving.node.context().graph();
            assert!(graph.wait_until(PATIENCE, || graph.subscriptions(&topic).len() == 1));
        }
        serving
    }

    /// Works until they say such a line.
    #[track_caller]
    fn hears(&mut self, line: &str) {
        let Self { node, peer, .. } = self;
        let heard = node.spin_until(|| peer.has(line), PATIENCE);
        assert!(heard, "no {line:?}: {:#?}", peer.seen());
    }

    fn goal(&mut self) -> ServerGoal<Fibonacci> {
        let mut got = None;
        let Self { node, goals, .. } = self;
        node.spin_until(
            || {
                got = goals.try_recv().ok();
                got.is_some()
            },
            PATIENCE,
        );
        got.unwrap_or_else(|| panic!("no goal came: {:#?}", self.peer.seen()))
    }
}

pub fn their_goals_are_worked_on_by_our_server(stage: &Stage) {
    let mut serving = Serving::new(stage);
    let id = id_of(7);
    serving.peer.tell("goal 7 5");
    let goal = serving.goal();
    assert_eq!((goal.goal().order, hex(goal.id())), (5, id.clone()));
    serving.hears("goal 1 accepted");
    serving.hears(&format!("status {id} 2"));
    serving.peer.tell("result 7"); // before its end
    for count in 3..6 {
        goal.publish_feedback(Fibonacci_Feedback {
            sequence: numbers(count),
        });
        serving.hears(&format!("feedback {id}{}", words(&numbers(count))));
    }
    goal.succeed(Fibonacci_Result {
        sequence: numbers(6),
    })
    .unwrap();
    let result = format!("4{}", words(&numbers(6)));
    serving.hears(&format!("result 1 {result}"));
    serving.hears(&format!("status {id} 4"));
    serving.peer.tell("result 7"); // and after
    serving.hears(&format!("result 2 {result}"));
    serving.peer.tell("result 8"); // one that never was
    serving.hears("result 3 0");
    serving.peer.tell("goal 9 46");
    serving.hears("goal 2 rejected");
    assert_eq!(serving.server.open_goals(), 0);
}

pub fn their_goals_are_cancelled_at_our_server(stage: &Stage) {
    let mut serving = Serving::new(stage);
    let mut open = Vec::new();
    for number in 1..=3 {
        serving.peer.tell(&format!("goal {number} 20"));
        open.push(serving.goal());
        serving.hears(&format!("goal {number} accepted"));
    }
    serving.peer.tell("cancel 2");
    serving.hears("canceling 1 0 1");
    serving.hears(&format!("canceled {}", id_of(2)));
    serving.hears(&format!("status {} 3", id_of(2)));
    let second = open.remove(1);
    assert!(second.is_canceling() && !open.iter().any(ServerGoal::is_canceling));
    second
        .canceled(Fibonacci_Result {
            sequence: numbers(4),
        })
        .unwrap();
    serving.peer.tell("result 2");
    serving.hears(&format!("result 1 5{}", words(&numbers(4))));
    serving.peer.tell("cancel 2"); // has ended
    serving.hears("canceling 2 3 0");
    serving.peer.tell("cancel 9"); // never was
    serving.hears("canceling 3 2 0");
    serving.peer.tell("cancel 0"); // all
    serving.hears("canceling 4 0 2");
    for (goal, number) in open.iter().zip([1, 3]) {
        assert!(goal.is_canceling());
        goal.canceled(Fibonacci_Result::default()).unwrap();
        serving.hears(&format!("status {} 5", id_of(number)));
    }
}

/// Their server, our client, and a thread that spins for it.
struct Asking {
    client: ActionClient<Fibonacci>,
    node: Node,
    peer: Peer,
    stop: Arc<AtomicBool>,
    spins: Option<thread::JoinHandle<()>>,
}

impl Asking {
    fn new(stage: &Stage, options: &str) -> Self {
        let mut peer = stage.node_peer("action", &format!("serve {options}"));
        peer.expect("ready", PATIENCE);
        let node = stage.node();
        let client = node.create_action_client(NAME).unwrap();
        peer.expect("met", PATIENCE);
        let stop = Arc::new(AtomicBool::new(false));
        let (spun, stopped) = (node.clone(), stop.clone());
        let spins =
            thread::spawn(
                move || {
                    while !spun.spin_until(|| stopped.load(Ordering::Relaxed), SLICE) {}
                },
            );
        Self {
            client,
            node,
            peer,
            stop,
            spins: Some(spins),
        }
    }

    #[track_caller]
    fn until(&self, done: impl FnMut() -> bool) {
        let graph = self.node.context().graph();
        assert!(graph.wait_until(PATIENCE, done), "not within {PATIENCE:?}");
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(spins) = self.spins.take() {
            let _ = spins.join();
        }
    }
}

pub fn our_goals_are_worked_on_by_their_server(stage: &Stage) {
    let mut asking = Asking::new(stage, "");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let on_feedback = move |feedback: &Fibonacci_Feedback| {
        hears.lock().unwrap().push(feedback.sequence.clone());
    };
    let order = Fibonacci_Goal { order: 9 };
    let goal = asking
        .client
        .send_goal_with_feedback(order, on_feedback, PATIENCE)
        .unwrap();
    let id = hex(goal.id());
    asking.peer.expect(&format!("asked {id} 9"), PATIENCE);
    let end = goal.result(PATIENCE).unwrap();
    assert_eq!(end.status, GoalStatus::Succeeded);
    assert_eq!(end.result.sequence, numbers(10));
    asking.until(|| goal.status() == GoalStatus::Succeeded);
    asking.until(|| heard.lock().unwrap().last() == Some(&numbers(10)));
    let count = heard.lock().unwrap().len();
    assert_eq!(
        *heard.lock().unwrap(),
        (3..11).map(numbers).collect::<Vec<_>>(),
        "{count}"
    );
    // Kept, and asked for once more.
    assert_eq!(goal.result(PATIENCE).unwrap().result.sequence, numbers(10));
    let refused = asking
        .client
        .send_goal(Fibonacci_Goal { order: 46 }, PATIENCE);
    assert!(matches!(refused, Err(ActionError::Rejected { .. })));
}

pub fn our_goals_are_cancelled_at_their_server(stage: &Stage) {
    let mut asking = Asking::new(stage, "--endless yes");
    let send = || {
        let order = Fibonacci_Goal { order: 3 };
        asking.client.send_goal(order, PATIENCE).unwrap()
    };
    let (first, second, third) = (send(), send(), send());
    asking.until(|| first.status() == GoalStatus::Executing);
    second.cancel(PATIENCE).unwrap();
    let end = second.result(PATIENCE).unwrap();
    assert_eq!(end.status, GoalStatus::Canceled);
    assert_eq!(end.result.sequence[..2], [0, 1]);
    assert!(matches!(
        second.cancel(PATIENCE),
        Err(ActionError::Ended { .. })
    ));
    assert_eq!(first.status(), GoalStatus::Executing);
    let mut all = asking.client.cancel_all(PATIENCE).unwrap();
    let mut open = [first.id(), third.id()];
    all.sort_unstable();
    open.sort_unstable();
    assert_eq!(all, open);
    for goal in [first, third] {
        assert_eq!(goal.result(PATIENCE).unwrap().status, GoalStatus::Canceled);
        let over = format!("over {} 5", hex(goal.id()));
        asking.peer.expect(&over, PATIENCE);
    }
}
