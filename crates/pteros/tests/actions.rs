//! Goals from being asked for to their result, within a process and between two.
#![allow(
    clippy::disallowed_methods,
    reason = "servers at work beside their clients are threads"
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
    ActionClient, ActionError, ActionServer, ActionServerOptions, CallError, GoalError,
    GoalResponse, GoalStatus, ServerGoal,
};

const PATIENCE: Duration = Duration::from_secs(20);
const SLICE: Duration = Duration::from_millis(20);

type Options = ActionServerOptions<Fibonacci>;

/// Nodes that are spun by a thread until this is dropped.
struct Spun {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Spun {
    fn new(node: &Node) -> Self {
        let (node, stop) = (node.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread =
            thread::spawn(
                move || {
                    while !node.spin_until(|| stopped.load(Ordering::Relaxed), SLICE) {}
                },
            );
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Spun {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server whose goals the test works on, and a client.
struct Stage {
    client: ActionClient<Fibonacci>,
    goals: mpsc::Receiver<ServerGoal<Fibonacci>>,
    server: ActionServer<Fibonacci>,
    asking: Node,
    _spun: [Spun; 2],
}

impl Stage {
    fn new(domain: u32, is_apart: bool, options: Options) -> Self {
        let open = || Context::with_options(ContextOptions::local(domain)).unwrap();
        let here = open();
        let there = if is_apart { open() } else { here.clone() };
        let serving = here.node("serving").unwrap();
        let asking = there.node("asking").unwrap();
        let (send, goals) = mpsc::channel();
        let server = serving
            .create_action_server("fibonacci", options, move |goal| send.send(goal).unwrap())
            .unwrap();
        Self {
            client: asking.create_action_client("fibonacci").unwrap(),
            goals,
            server,
            _spun: [Spun::new(&serving), Spun::new(&asking)],
            asking,
        }
    }

    fn goal(&self) -> ServerGoal<Fibonacci> {
        self.goals.recv_timeout(PATIENCE).unwrap()
    }

    #[track_caller]
    fn until(&self, done: impl FnMut() -> bool) {
        let graph = self.asking.context().graph();
        assert!(graph.wait_until(PATIENCE, done), "not within {PATIENCE:?}");
    }
}

/// Each story within a process and between two.
fn everywhere(domain: u32, options: impl Fn() -> Options, story: impl Fn(&Stage)) {
    for (nth, is_apart) in (0..).zip([false, true]) {
        story(&Stage::new(domain + nth, is_apart, options()));
    }
}

fn order(order: i32) -> Fibonacci_Goal {
    Fibonacci_Goal { order }
}

fn sequence(numbers: &[i32]) -> Fibonacci_Result {
    Fibonacci_Result {
        sequence: numbers.into(),
    }
}

#[test]
fn a_goal_is_accepted_tells_what_it_has_come_to_and_ends_with_its_result() {
    everywhere(70, Options::default, |stage| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        let on_feedback = move |feedback: &Fibonacci_Feedback| {
            hears.lock().unwrap().push(feedback.sequence.clone());
        };
        let asked = stage
            .client
            .send_goal_with_feedback(order(3), on_feedback, PATIENCE)
            .unwrap();
        let goal = stage.goal();
        assert_eq!((goal.goal().order, goal.id()), (3, asked.id()));
        assert_eq!(goal.status(), GoalStatus::Executing);
        stage.until(|| asked.status() == GoalStatus::Executing);
        for n in 1..=3 {
            goal.publish_feedback(Fibonacci_Feedback {
                sequence: vec![n; 2],
            });
        }
        stage.until(|| heard.lock().unwrap().len() == 3);
        assert_eq!(heard.lock().unwrap()[2], [3, 3]);
        // Asked for before its end, and after.
        thread::scope(|scope| {
            let waits = scope.spawn(|| asked.result(PATIENCE).unwrap());
            goal.succeed(sequence(&[0, 1, 1])).unwrap();
            let end = waits.join().unwrap();
            assert_eq!(end.status, GoalStatus::Succeeded);
            assert_eq!(end.result, sequence(&[0, 1, 1]));
        });
        assert_eq!(asked.result(PATIENCE).unwrap().result, sequence(&[0, 1, 1]));
        stage.until(|| asked.status() == GoalStatus::Succeeded);
        let again = goal.abort(sequence(&[])).unwrap_err();
        assert!(matches!(again, GoalError::Illegal { .. }));
        assert_eq!(stage.server.open_goals(), 0);
    });
}

#[test]
fn a_goal_is_cancelled_only_if_that_is_asked_for_and_allowed() {
    let options = || Options::default().on_cancel(|goal| goal.status() == GoalStatus::Executing);
    everywhere(72, options, |stage| {
        let asked = stage.client.send_goal(order(1), PATIENCE).unwrap();
        let goal = stage.goal();
        goal.canceled(sequence(&[])).unwrap_err();
        asked.cancel(PATIENCE).unwrap();
        assert!(goal.is_canceling());
        goal.canceled(sequence(&[7])).unwrap();
        let end = asked.result(PATIENCE).unwrap();
        assert_eq!(
            (end.status, end.result),
            (GoalStatus::Canceled, sequence(&[7]))
        );
        let late = asked.cancel(PATIENCE).unwrap_err();
        assert!(matches!(late, ActionError::Ended { .. }), "{late}");
        // All at once.
        let many: Vec<_> = (0..3)
            .map(|n| stage.client.send_goal(order(n), PATIENCE).unwrap())
            .collect();
        let goals = [(); 3].map(|()| stage.goal());
        let ids = stage.client.cancel_all(PATIENCE).unwrap();
        assert_eq!(ids, many.iter().map(|goal| goal.id()).collect::<Vec<_>>());
        assert!(goals.iter().all(ServerGoal::is_canceling));
    });
}

#[test]
fn who_works_in_the_executor_and_spins_it_meanwhile_hears_of_cancelling() {
    let context = Context::with_options(ContextOptions::local(80)).unwrap();
    let serving = context.node("serving").unwrap();
    let spinning = serving.clone();
    let work = move |goal: ServerGoal<Fibonacci>| {
        assert!(spinning.spin_until(|| goal.is_canceling(), PATIENCE));
        goal.canceled(sequence(&[1])).unwrap();
    };
    let _server = serving
        .create_action_server("fibonacci", Options::default(), work)
        .unwrap();
    let asking = context.node("asking").unwrap();
    let client = asking
        .create_action_client::<Fibonacci>("fibonacci")
        .unwrap();
    let _spun = Spun::new(&serving);
    let asked = client.send_goal(order(1), PATIENCE).unwrap();
    asked.cancel(PATIENCE).unwrap();
    assert_eq!(asked.result(PATIENCE).unwrap().status, GoalStatus::Canceled);
}

#[test]
fn what_the_server_does_not_want_is_said() {
    let options = || {
        Options::default()
            .on_goal(|goal| match goal.order {
                0 => GoalResponse::Reject,
                _ => GoalResponse::AcceptAndDefer,
            })
            .on_cancel(|_| false)
            .goals_max(1)
    };
    everywhere(74, options, |stage| {
        let error = stage.client.send_goal(order(0), PATIENCE).unwrap_err();
        assert!(matches!(error, ActionError::Rejected { .. }), "{error}");
        let asked = stage.client.send_goal(order(1), PATIENCE).unwrap();
        // As many as may be.
        let error = stage.client.send_goal(order(1), PATIENCE).unwrap_err();
        assert!(matches!(error, ActionError::Rejected { .. }), "{error}");
        let goal = stage.goal();
        assert_eq!(goal.status(), GoalStatus::Accepted);
        let kept = asked.cancel(PATIENCE).unwrap_err();
        assert!(matches!(kept, ActionError::NotCancelled { .. }), "{kept}");
        goal.execute().unwrap();
        let early = asked.result(SLICE).unwrap_err();
        assert!(matches!(
            early,
            ActionError::Call(CallError::TimedOut { .. })
        ));
        // Dropped without a result.
        drop(goal);
        let end = asked.result(PATIENCE).unwrap();
        assert_eq!(
            (end.status, end.result),
            (GoalStatus::Aborted, sequence(&[]))
        );
    });
}

#[test]
fn a_result_is_kept_for_a_while_and_then_answered_as_unknown() {
    let options = || Options::default().result_timeout(Duration::from_millis(50));
    everywhere(76, options, |stage| {
        let asked = stage.client.send_goal(order(1), PATIENCE).unwrap();
        stage.goal().succeed(sequence(&[1])).unwrap();
        let is_forgotten = || {
            let answer = asked.result(PATIENCE);
            matches!(answer, Err(ActionError::UnknownGoal { .. }))
        };
        let graph = stage.asking.context().graph();
        for _ in 0..PATIENCE.as_millis() / SLICE.as_millis() {
            if is_forgotten() {
                return;
            }
            graph.wait_until(SLICE, || false);
        }
        panic!("it is known for ever");
    });
}

#[test]
fn a_goal_whose_client_is_gone_is_cancelled_if_the_server_wants_that() {
    let stage = Stage::new(78, true, Options::default().cancel_abandoned(true));
    let passing = Context::with_options(ContextOptions::local(78)).unwrap();
    let node = passing.node("passing").unwrap();
    let client = node.create_action_client::<Fibonacci>("fibonacci").unwrap();
    let abandoned = client.send_goal(order(1), PATIENCE).unwrap();
    let goal = stage.goal();
    let asked = stage.client.send_goal(order(2), PATIENCE).unwrap();
    let other = stage.goal();
    drop((abandoned, client, node, passing));
    stage.until(|| goal.is_canceling());
    assert_eq!(other.status(), GoalStatus::Executing);
    drop((other, asked));
}

#[test]
fn a_new_goal_takes_the_place_of_the_one_before_if_the_server_wants_that() {
    everywhere(
        96,
        || Options::default().preempt(true),
        |stage| {
            let send = |n| {
                let asked = stage.client.send_goal(order(n), PATIENCE).unwrap();
                (asked, stage.goal())
            };
            let (first, worked) = send(1);
            assert!(worked.is_open());
            let (second, current) = send(2);
            assert!(!worked.is_open() && current.is_open());
            let end = first.result(PATIENCE).unwrap();
            assert_eq!(
                (end.status, end.result),
                (GoalStatus::Aborted, sequence(&[]))
            );
            let late = worked.succeed(sequence(&[7]));
            assert!(matches!(late, Err(GoalError::Illegal { .. })));
            // One that was being cancelled is.
            second.cancel(PATIENCE).unwrap();
            assert!(current.is_canceling());
            let (third, last) = send(3);
            assert_eq!(
                second.result(PATIENCE).unwrap().status,
                GoalStatus::Canceled
            );
            last.succeed(sequence(&[7])).unwrap();
            assert_eq!(
                third.result(PATIENCE).unwrap().status,
                GoalStatus::Succeeded
            );
            assert_eq!(stage.server.open_goals(), 0);
        },
    );
}

#[test]
fn the_end_of_a_goal_is_told_to_a_callback() {
    everywhere(94, Options::default, |stage| {
        let asked = stage.client.send_goal(order(1), PATIENCE).unwrap();
        let (tell, told) = mpsc::channel();
        asked
            .result_then(move |end| tell.send(end).unwrap())
            .unwrap();
        assert!(told.try_recv().is_err());
        stage.goal().succeed(sequence(&[7])).unwrap();
        let end = told.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(
            (end.status, end.result),
            (GoalStatus::Succeeded, sequence(&[7]))
        );
    });
}

#[test]
fn an_action_that_nobody_serves_says_so() {
    let context = Context::with_options(ContextOptions::local(79)).unwrap();
    let node = context.node("asking").unwrap();
    let client = node.create_action_client::<Fibonacci>("nobody").unwrap();
    assert!(!client.is_ready());
    let error = client.send_goal(order(1), SLICE).unwrap_err().to_string();
    assert!(error.contains("/nobody/_action/send_goal"), "{error}");
}
