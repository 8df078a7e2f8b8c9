//! Actions: goals from request to result, within a process and between two.
#![allow(clippy::disallowed_methods, reason = "servers spin beside clients")]

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::prelude::*;
use pteros::{
    action::{
        ActionClient, ActionError, ActionServer, ActionServerOptions, GoalResponse, GoalStatus,
        ServerGoalHandle,
    },
    service::CallError,
};
use pteros_test_support::spin_thread::SpinThread;

const TIMEOUT: Duration = Duration::from_secs(20);
const SLICE: Duration = Duration::from_millis(20);

type Options = ActionServerOptions<Fibonacci>;

fn options() -> Options {
    Options::new("fibonacci")
}

/// An action server whose goals the test executes, and a client.
struct ActionFixture {
    client: ActionClient<Fibonacci>,
    goals: mpsc::Receiver<ServerGoalHandle<Fibonacci>>,
    server: ActionServer<Fibonacci>,
    asking: Node,
    _spun: [SpinThread; 2],
}

impl ActionFixture {
    fn new(domain: u32, two_processes: bool, options: Options) -> Self {
        let open = || Context::with_options(ContextOptions::local(domain)).unwrap();
        let here = open();
        let there = if two_processes { open() } else { here.clone() };
        let serving = here.create_node("serving").unwrap();
        let asking = there.create_node("asking").unwrap();
        let (send, goals) = mpsc::channel();
        let server = serving
            .create_action_server(options, move |goal| send.send(goal).unwrap())
            .unwrap();
        Self {
            client: asking.create_action_client("fibonacci").unwrap(),
            goals,
            server,
            _spun: [
                SpinThread::of_node(&serving, ()),
                SpinThread::of_node(&asking, ()),
            ],
            asking,
        }
    }

    fn goal(&self) -> ServerGoalHandle<Fibonacci> {
        self.goals.recv_timeout(TIMEOUT).unwrap()
    }

    #[track_caller]
    fn until(&self, done: impl FnMut() -> bool) {
        let graph = self.asking.context().graph();
        assert!(graph.wait_until(TIMEOUT, done), "not within {TIMEOUT:?}");
    }
}

/// Runs each scenario within a process and between two.
fn for_each_transport(
    domain: u32,
    options: impl Fn() -> Options,
    scenario: impl Fn(&ActionFixture),
) {
    for (nth, two_processes) in (0..).zip([false, true]) {
        scenario(&ActionFixture::new(domain + nth, two_processes, options()));
    }
}

fn order(order: i32) -> FibonacciGoal {
    FibonacciGoal { order }
}

fn sequence(numbers: &[i32]) -> FibonacciResult {
    FibonacciResult {
        sequence: numbers.into(),
    }
}

#[test]
fn a_goal_is_accepted_gives_feedback_and_ends_with_a_result() {
    for_each_transport(1, options, |fixture| {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = received.clone();
        let on_feedback = move |feedback: &FibonacciFeedback| {
            sink.lock().unwrap().push(feedback.sequence.clone());
        };
        let sent = fixture
            .client
            .send_goal_with_feedback(order(3), on_feedback, TIMEOUT)
            .unwrap();
        let goal = fixture.goal();
        assert_eq!((goal.goal().order, goal.id()), (3, sent.id()));
        assert_eq!(goal.status(), GoalStatus::Executing);
        fixture.until(|| sent.status() == GoalStatus::Executing);
        for n in 1..=3 {
            goal.publish_feedback(FibonacciFeedback {
                sequence: vec![n; 2],
            });
        }
        fixture.until(|| received.lock().unwrap().len() == 3);
        assert_eq!(received.lock().unwrap()[2], [3, 3]);
        // Requested before the end of the goal, and after.
        thread::scope(|scope| {
            let waits = scope.spawn(|| sent.result(TIMEOUT).unwrap());
            goal.succeed(sequence(&[0, 1, 1])).unwrap();
            let outcome = waits.join().unwrap();
            assert_eq!(outcome.status, GoalStatus::Succeeded);
            assert_eq!(outcome.result, sequence(&[0, 1, 1]));
        });
        assert_eq!(sent.result(TIMEOUT).unwrap().result, sequence(&[0, 1, 1]));
        fixture.until(|| sent.status() == GoalStatus::Succeeded);
        let again = goal.abort(sequence(&[])).unwrap_err();
        assert!(matches!(again, ActionError::IllegalTransition { .. }));
        assert_eq!(fixture.server.open_goals(), 0);
    });
}

#[test]
fn a_goal_is_cancelled_only_if_requested_and_allowed() {
    let options = || self::options().on_cancel(|goal| goal.status() == GoalStatus::Executing);
    for_each_transport(3, options, |fixture| {
        let sent = fixture.client.send_goal(order(1), TIMEOUT).unwrap();
        let goal = fixture.goal();
        goal.canceled(sequence(&[])).unwrap_err();
        sent.cancel(TIMEOUT).unwrap();
        assert!(goal.is_canceling());
        goal.canceled(sequence(&[7])).unwrap();
        let outcome = sent.result(TIMEOUT).unwrap();
        assert_eq!(
            (outcome.status, outcome.result),
            (GoalStatus::Canceled, sequence(&[7]))
        );
        let late = sent.cancel(TIMEOUT).unwrap_err();
        assert!(matches!(late, ActionError::GoalTerminated { .. }), "{late}");
        // All at once.
        let many: Vec<_> = (0..3)
            .map(|n| fixture.client.send_goal(order(n), TIMEOUT).unwrap())
            .collect();
        let goals = [(); 3].map(|()| fixture.goal());
        let ids = fixture.client.cancel_all(TIMEOUT).unwrap();
        assert_eq!(ids, many.iter().map(|goal| goal.id()).collect::<Vec<_>>());
        assert!(goals.iter().all(ServerGoalHandle::is_canceling));
    });
}

#[test]
fn a_goal_executed_in_the_executor_sees_the_cancel_request() {
    let context = Context::with_options(ContextOptions::local(11)).unwrap();
    let serving = context.create_node("serving").unwrap();
    let spinning = serving.clone();
    let work = move |goal: ServerGoalHandle<Fibonacci>| {
        assert!(spinning.spin_until(|| goal.is_canceling(), TIMEOUT));
        goal.canceled(sequence(&[1])).unwrap();
    };
    let _server = serving.create_action_server("fibonacci", work).unwrap();
    let asking = context.create_node("asking").unwrap();
    let client = asking
        .create_action_client::<Fibonacci>("fibonacci")
        .unwrap();
    let _spun = SpinThread::of_node(&serving, ());
    let sent = client.send_goal(order(1), TIMEOUT).unwrap();
    sent.cancel(TIMEOUT).unwrap();
    assert_eq!(sent.result(TIMEOUT).unwrap().status, GoalStatus::Canceled);
}

#[test]
fn the_server_reports_rejected_goals_and_cancel_requests() {
    let options = || {
        options()
            .on_goal(|goal| match goal.order {
                0 => GoalResponse::Reject,
                _ => GoalResponse::AcceptAndDefer,
            })
            .on_cancel(|_| false)
            .goals_max(1)
    };
    for_each_transport(5, options, |fixture| {
        let error = fixture.client.send_goal(order(0), TIMEOUT).unwrap_err();
        assert!(matches!(error, ActionError::Rejected { .. }), "{error}");
        let sent = fixture.client.send_goal(order(1), TIMEOUT).unwrap();
        // The maximum number of goals.
        let error = fixture.client.send_goal(order(1), TIMEOUT).unwrap_err();
        assert!(matches!(error, ActionError::Rejected { .. }), "{error}");
        let goal = fixture.goal();
        assert_eq!(goal.status(), GoalStatus::Accepted);
        let kept = sent.cancel(TIMEOUT).unwrap_err();
        assert!(matches!(kept, ActionError::CancelRejected { .. }), "{kept}");
        goal.execute().unwrap();
        let early = sent.result(SLICE).unwrap_err();
        assert!(matches!(
            early,
            ActionError::Call(CallError::TimedOut { .. })
        ));
        // Dropped without a result.
        drop(goal);
        let outcome = sent.result(TIMEOUT).unwrap();
        assert_eq!(
            (outcome.status, outcome.result),
            (GoalStatus::Aborted, sequence(&[]))
        );
    });
}

#[test]
fn a_result_expires_and_is_then_reported_as_unknown() {
    let options = || self::options().result_timeout(Duration::from_millis(50));
    for_each_transport(7, options, |fixture| {
        let sent = fixture.client.send_goal(order(1), TIMEOUT).unwrap();
        fixture.goal().succeed(sequence(&[1])).unwrap();
        let is_forgotten = || {
            let response = sent.result(TIMEOUT);
            matches!(response, Err(ActionError::UnknownGoal { .. }))
        };
        let graph = fixture.asking.context().graph();
        for _ in 0..TIMEOUT.as_millis() / SLICE.as_millis() {
            if is_forgotten() {
                return;
            }
            graph.wait_until(SLICE, || false);
        }
        panic!("it is known for ever");
    });
}

#[test]
fn abandoned_goals_are_cancelled_if_enabled() {
    let fixture = ActionFixture::new(9, true, options().cancel_abandoned(true));
    let passing = Context::with_options(ContextOptions::local(9)).unwrap();
    let node = passing.create_node("passing").unwrap();
    let client = node.create_action_client::<Fibonacci>("fibonacci").unwrap();
    let abandoned = client.send_goal(order(1), TIMEOUT).unwrap();
    let goal = fixture.goal();
    let sent = fixture.client.send_goal(order(2), TIMEOUT).unwrap();
    let other = fixture.goal();
    drop((abandoned, client, node, passing));
    fixture.until(|| goal.is_canceling());
    assert_eq!(other.status(), GoalStatus::Executing);
    drop((other, sent));
}

#[test]
fn a_new_goal_preempts_the_previous_one_if_enabled() {
    for_each_transport(
        14,
        || options().preempt(true),
        |fixture| {
            let send = |n| {
                let sent = fixture.client.send_goal(order(n), TIMEOUT).unwrap();
                (sent, fixture.goal())
            };
            let (first, worked) = send(1);
            assert!(worked.is_active());
            let (second, current) = send(2);
            assert!(!worked.is_active() && current.is_active());
            let outcome = first.result(TIMEOUT).unwrap();
            assert_eq!(
                (outcome.status, outcome.result),
                (GoalStatus::Aborted, sequence(&[]))
            );
            let late = worked.succeed(sequence(&[7]));
            assert!(matches!(late, Err(ActionError::IllegalTransition { .. })));
            // A goal that was canceling ends as canceled.
            second.cancel(TIMEOUT).unwrap();
            assert!(current.is_canceling());
            let (third, last) = send(3);
            assert_eq!(second.result(TIMEOUT).unwrap().status, GoalStatus::Canceled);
            last.succeed(sequence(&[7])).unwrap();
            assert_eq!(third.result(TIMEOUT).unwrap().status, GoalStatus::Succeeded);
            assert_eq!(fixture.server.open_goals(), 0);
        },
    );
}

#[test]
fn result_then_calls_back_at_the_end_of_a_goal() {
    for_each_transport(12, options, |fixture| {
        let sent = fixture.client.send_goal(order(1), TIMEOUT).unwrap();
        let (sender, receiver) = mpsc::channel();
        sent.result_then(move |outcome| sender.send(outcome).unwrap())
            .unwrap();
        assert!(receiver.try_recv().is_err());
        fixture.goal().succeed(sequence(&[7])).unwrap();
        let outcome = receiver.recv_timeout(TIMEOUT).unwrap().unwrap();
        assert_eq!(
            (outcome.status, outcome.result),
            (GoalStatus::Succeeded, sequence(&[7]))
        );
    });
}

#[test]
fn an_action_without_a_server_is_reported() {
    let context = Context::with_options(ContextOptions::local(10)).unwrap();
    let node = context.create_node("asking").unwrap();
    let client = node.create_action_client::<Fibonacci>("nobody").unwrap();
    assert!(!client.action_server_is_ready());
    let error = client.send_goal(order(1), SLICE).unwrap_err().to_string();
    assert!(error.contains("/nobody/_action/send_goal"), "{error}");
}
