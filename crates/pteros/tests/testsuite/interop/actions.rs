//! Actions across implementations: three services and two topics, in the request-id
//! style of the rmw layer over each stack.

#![allow(clippy::disallowed_methods, reason = "the client's node is a thread")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use pteros::action::{
    ActionClient, ActionError, ActionServer, ActionServerOptions, GoalResponse, GoalStatus,
    ServerGoalHandle,
};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::prelude::*;

use crate::interop::harness::{Harness, TIMEOUT};
use pteros_test_support::peer::Peer;

const NAME: &str = "fibonacci";
const SLICE: Duration = Duration::from_millis(20);

/// The id of their goal, as they print it: sixteen times its number.
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

/// Our action server, whose goals the test executes, and their client.
struct ServerCase {
    node: Node,
    goals: mpsc::Receiver<ServerGoalHandle<Fibonacci>>,
    server: ActionServer<Fibonacci>,
    peer: Peer,
}

impl ServerCase {
    fn new(harness: &Harness) -> Self {
        let node = harness.node();
        let (send, goals) = mpsc::channel();
        let options =
            ActionServerOptions::<Fibonacci>::new(NAME).on_goal(|goal: &FibonacciGoal| {
                if goal.order > 45 {
                    GoalResponse::Reject
                } else {
                    GoalResponse::AcceptAndExecute
                }
            });
        let server = node
            .create_action_server(options, move |goal| send.send(goal).unwrap())
            .unwrap();
        let mut peer = harness.node_peer("action", "call");
        peer.expect("ready", TIMEOUT);
        let mut case = Self {
            node,
            goals,
            server,
            peer,
        };
        case.expect_line("met");
        // Feedback is volatile: the subscriptions must be matched in both
        // directions.
        for topic in ["feedback", "status"] {
            let topic = format!("/{NAME}/_action/{topic}");
            let graph = case.node.context().graph();
            assert!(graph.wait_until(TIMEOUT, || graph.subscriptions(&topic).len() == 1));
        }
        case
    }

    /// Spins until they print such a line.
    #[track_caller]
    fn expect_line(&mut self, line: &str) {
        let Self { node, peer, .. } = self;
        let received = node.spin_until(|| peer.has(line), TIMEOUT);
        assert!(received, "no {line:?}: {:#?}", peer.seen());
    }

    fn goal(&mut self) -> ServerGoalHandle<Fibonacci> {
        let mut got = None;
        let Self { node, goals, .. } = self;
        node.spin_until(
            || {
                got = goals.try_recv().ok();
                got.is_some()
            },
            TIMEOUT,
        );
        got.unwrap_or_else(|| panic!("no goal came: {:#?}", self.peer.seen()))
    }
}

pub fn their_goals_are_worked_on_by_our_server(harness: &Harness) {
    let mut case = ServerCase::new(harness);
    let id = id_of(7);
    case.peer.send_line("goal 7 5");
    let goal = case.goal();
    assert_eq!((goal.goal().order, hex(goal.id())), (5, id.clone()));
    case.expect_line("goal 1 accepted");
    case.expect_line(&format!("status {id} 2"));
    case.peer.send_line("result 7"); // before its end
    for count in 3..6 {
        goal.publish_feedback(FibonacciFeedback {
            sequence: numbers(count),
        });
        case.expect_line(&format!("feedback {id}{}", words(&numbers(count))));
    }
    goal.succeed(FibonacciResult {
        sequence: numbers(6),
    })
    .unwrap();
    let result = format!("4{}", words(&numbers(6)));
    case.expect_line(&format!("result 1 {result}"));
    case.expect_line(&format!("status {id} 4"));
    case.peer.send_line("result 7"); // and after
    case.expect_line(&format!("result 2 {result}"));
    case.peer.send_line("result 8"); // one that never was
    case.expect_line("result 3 0");
    case.peer.send_line("goal 9 46");
    case.expect_line("goal 2 rejected");
    assert_eq!(case.server.open_goals(), 0);
}

pub fn their_goals_are_cancelled_at_our_server(harness: &Harness) {
    let mut case = ServerCase::new(harness);
    let mut open = Vec::new();
    for number in 1..=3 {
        case.peer.send_line(&format!("goal {number} 20"));
        open.push(case.goal());
        case.expect_line(&format!("goal {number} accepted"));
    }
    case.peer.send_line("cancel 2");
    case.expect_line("canceling 1 0 1");
    case.expect_line(&format!("canceled {}", id_of(2)));
    case.expect_line(&format!("status {} 3", id_of(2)));
    let second = open.remove(1);
    assert!(second.is_canceling() && !open.iter().any(ServerGoalHandle::is_canceling));
    second
        .canceled(FibonacciResult {
            sequence: numbers(4),
        })
        .unwrap();
    case.peer.send_line("result 2");
    case.expect_line(&format!("result 1 5{}", words(&numbers(4))));
    case.peer.send_line("cancel 2"); // has ended
    case.expect_line("canceling 2 3 0");
    case.peer.send_line("cancel 9"); // never was
    case.expect_line("canceling 3 2 0");
    case.peer.send_line("cancel 0"); // all
    case.expect_line("canceling 4 0 2");
    for (goal, number) in open.iter().zip([1, 3]) {
        assert!(goal.is_canceling());
        goal.canceled(FibonacciResult::default()).unwrap();
        case.expect_line(&format!("status {} 5", id_of(number)));
    }
}

/// Their action server, our client, and a thread that spins it.
struct ClientCase {
    client: ActionClient<Fibonacci>,
    node: Node,
    peer: Peer,
    stop: Arc<AtomicBool>,
    spins: Option<thread::JoinHandle<()>>,
}

impl ClientCase {
    fn new(harness: &Harness, options: &str) -> Self {
        let mut peer = harness.node_peer("action", &format!("serve {options}"));
        peer.expect("ready", TIMEOUT);
        let node = harness.node();
        let client = node.create_action_client(NAME).unwrap();
        peer.expect("met", TIMEOUT);
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
    fn spin_until_done(&self, done: impl FnMut() -> bool) {
        let graph = self.node.context().graph();
        assert!(graph.wait_until(TIMEOUT, done), "not within {TIMEOUT:?}");
    }
}

impl Drop for ClientCase {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(spins) = self.spins.take() {
            let _ = spins.join();
        }
    }
}

pub fn our_goals_are_worked_on_by_their_server(harness: &Harness) {
    let mut case = ClientCase::new(harness, "");
    let received = Arc::new(Mutex::new(Vec::new()));
    let expect_line = received.clone();
    let on_feedback = move |feedback: &FibonacciFeedback| {
        expect_line.lock().unwrap().push(feedback.sequence.clone());
    };
    let order = FibonacciGoal { order: 9 };
    let goal = case
        .client
        .send_goal_with_feedback(order, on_feedback, TIMEOUT)
        .unwrap();
    let id = hex(goal.id());
    case.peer.expect(&format!("asked {id} 9"), TIMEOUT);
    let end = goal.result(TIMEOUT).unwrap();
    assert_eq!(end.status, GoalStatus::Succeeded);
    assert_eq!(end.result.sequence, numbers(10));
    case.spin_until_done(|| goal.status() == GoalStatus::Succeeded);
    case.spin_until_done(|| received.lock().unwrap().last() == Some(&numbers(10)));
    let count = received.lock().unwrap().len();
    assert_eq!(
        *received.lock().unwrap(),
        (3..11).map(numbers).collect::<Vec<_>>(),
        "{count}"
    );
    // Kept, and requested once more.
    assert_eq!(goal.result(TIMEOUT).unwrap().result.sequence, numbers(10));
    let refused = case.client.send_goal(FibonacciGoal { order: 46 }, TIMEOUT);
    assert!(matches!(refused, Err(ActionError::Rejected { .. })));
}

pub fn our_goals_are_cancelled_at_their_server(harness: &Harness) {
    let mut case = ClientCase::new(harness, "--endless yes");
    let send = || {
        let order = FibonacciGoal { order: 3 };
        case.client.send_goal(order, TIMEOUT).unwrap()
    };
    let (first, second, third) = (send(), send(), send());
    case.spin_until_done(|| first.status() == GoalStatus::Executing);
    second.cancel(TIMEOUT).unwrap();
    let end = second.result(TIMEOUT).unwrap();
    assert_eq!(end.status, GoalStatus::Canceled);
    assert_eq!(end.result.sequence[..2], [0, 1]);
    assert!(matches!(
        second.cancel(TIMEOUT),
        Err(ActionError::GoalTerminated { .. })
    ));
    assert_eq!(first.status(), GoalStatus::Executing);
    let mut all = case.client.cancel_all(TIMEOUT).unwrap();
    let mut open = [first.id(), third.id()];
    all.sort_unstable();
    open.sort_unstable();
    assert_eq!(all, open);
    for goal in [first, third] {
        assert_eq!(goal.result(TIMEOUT).unwrap().status, GoalStatus::Canceled);
        let over = format!("over {} 5", hex(goal.id()));
        case.peer.expect(&over, TIMEOUT);
    }
}
