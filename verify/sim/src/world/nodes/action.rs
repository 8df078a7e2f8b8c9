//! Workload "actions": goals under fault injection. Invariant I13 of the goal state
//! machine: accepted once, ended once, results and cancellations as promised.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::msg::message::GoalId;
use pteros::{
    Node,
    action::{
        ActionClient, ActionError, ActionServerOptions, ClientGoalHandle, GoalResponse, GoalStatus,
        ServerGoalHandle,
    },
};

use super::world::{Caller, NodeWorld, REPAIR_MAX, SERVER};
use crate::simulation::threads::SimThread;

/// Period of the server's work on its goals.
const TICK_PERIOD: Duration = Duration::from_millis(20);

/// How long the server keeps results.
const RESULT_TIMEOUT: Duration = Duration::from_secs(10);

const CLIENTS: usize = 3;

/// The server's record of a goal.
#[derive(Clone, Debug, Default)]
struct GoalRecord {
    order: i32,
    accepted: u32,
    end: Option<(GoalStatus, Vec<i32>, Duration)>,
}

type GoalRecords = Arc<Mutex<BTreeMap<GoalId, GoalRecord>>>;

/// A running goal and the number of its ticks.
struct RunningGoal {
    goal: ServerGoalHandle<Fibonacci>,
    ticks: i32,
}

pub fn run(world: &NodeWorld) {
    let records = GoalRecords::default();
    let mut server = world.process(SERVER);
    let node = server.context.create_node("counter").expect("a node");
    let jobs: Arc<Mutex<Vec<RunningGoal>>> = Arc::default();
    let (noted, taken, report) = (records.clone(), jobs.clone(), world.report.clone());
    let options = ActionServerOptions::<Fibonacci>::new("count")
        .result_timeout(RESULT_TIMEOUT)
        .on_goal(|goal| match goal.order % 5 {
            4 => GoalResponse::Reject,
            3 => GoalResponse::AcceptAndDefer,
            _ => GoalResponse::AcceptAndExecute,
        });
    let _actions = node.create_action_server(options, move |goal: ServerGoalHandle<Fibonacci>| {
        let order = goal.goal().order;
        report.expect(order % 5 != 4, || {
            format!("I13 the server got a rejected goal to execute: {order}")
        });
        let mut records = noted.lock();
        let record = records.entry(goal.id()).or_default();
        record.order = order;
        record.accepted += 1;
        taken.lock().push(RunningGoal { goal, ticks: 0 });
    });
    let (noted, sim) = (records.clone(), world.sim.clone());
    let _timer = node.create_timer(TICK_PERIOD, move || {
        jobs.lock().retain_mut(|job| work(job, &noted, sim.now()));
    });
    world.spin(&mut server, world.random_executor(), &[&node]);
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(world, number, records.clone()))
        .collect();
    world.run_fault_phase();
    drop(clients);
    for (id, record) in records.lock().iter() {
        world.report.expect(record.accepted == 1, || {
            format!("I13 goal {id:?} was accepted {} times", record.accepted)
        });
    }
}

/// Works on a goal once. Returns whether it is still running.
fn work(job: &mut RunningGoal, records: &GoalRecords, now: Duration) -> bool {
    let RunningGoal { goal, ticks } = job;
    let order = goal.goal().order;
    let end = |status| {
        let sequence: Vec<i32> = (0..*ticks).collect();
        let mut records = records.lock();
        let record = records.entry(goal.id()).or_default();
        record.end = Some((status, sequence.clone(), now));
        drop(records);
        FibonacciResult { sequence }
    };
    if goal.is_canceling() {
        let result = end(GoalStatus::Canceled);
        goal.canceled(result).expect("a goal that is canceling");
        return false;
    }
    if *ticks >= order {
        let result = end(GoalStatus::Succeeded);
        goal.succeed(result).expect("a goal that goes on");
        return false;
    }
    if goal.status() == GoalStatus::Accepted {
        goal.execute().expect("an accepted goal");
    }
    *ticks += 1;
    goal.publish_feedback(FibonacciFeedback {
        sequence: vec![order, *ticks],
    });
    true
}

fn client(world: &NodeWorld, number: usize, records: GoalRecords) -> SimThread {
    world.client(number, "asker", move |process, caller, node, random| {
        let client = node.create_action_client("count").expect("a client");
        let mut session = ActionSession {
            caller,
            node,
            client,
            records,
            random,
        };
        while session.caller.faults_active() {
            session.send_random_request();
        }
        session.check_after_healing();
        drop(process);
    })
}

struct ActionSession {
    caller: Caller,
    node: Node,
    client: ActionClient<Fibonacci>,
    records: GoalRecords,
    random: Rng,
}

impl ActionSession {
    fn send(&mut self, order: i32, limit: Duration) -> Option<ClientGoalHandle<Fibonacci>> {
        let report = self.caller.report.clone();
        let last_tick = Arc::new(Mutex::new(0));
        let noted = report.clone();
        let on_feedback = move |feedback: &FibonacciFeedback| {
            let mut last_tick = last_tick.lock();
            let [of, tick] = feedback.sequence[..] else {
                return noted.violation("I3 feedback of an unexpected form".into());
            };
            noted.expect(of == order && tick > *last_tick && tick <= order, || {
                format!("I3 feedback {tick} of {of} after {last_tick} of {order}")
            });
            *last_tick = tick;
        };
        let sent = self.caller.call("send_goal", limit, || {
            let goal = FibonacciGoal { order };
            self.client
                .send_goal_with_feedback(goal, on_feedback, limit)
        });
        match sent {
            Ok(goal) => {
                let records = self.records.lock();
                let record = records.get(&goal.id());
                let fits = record.is_some_and(|r| r.order == order && r.accepted == 1);
                report.expect(fits, || {
                    format!("I13 a goal of {order} was accepted, and is {record:?}")
                });
                drop(records);
                self.caller.mark_done();
                Some(goal)
            }
            Err(ActionError::Rejected { .. }) => {
                report.expect(order % 5 == 4, || {
                    format!("I13 a goal of {order} was rejected")
                });
                None
            }
            Err(_) => None,
        }
    }

    /// Sends a goal, cancels it sometimes, then requests its result.
    fn send_random_request(&mut self) {
        let order = self.random.i32(0..20);
        let limit = Duration::from_millis(self.random.u64(100..4_000));
        let Some(goal) = self.send(order, limit) else {
            // The server may be absent. Waits before the next attempt.
            self.caller.sim.advance(Duration::from_millis(50));
            return;
        };
        let mut is_promised = false;
        if self.random.u32(0..3) == 0 {
            let pause = Duration::from_millis(self.random.u64(0..300));
            self.node.spin_until(|| false, pause);
            is_promised = self
                .caller
                .call("cancel", limit, || goal.cancel(limit))
                .is_ok();
        }
        let limit = Duration::from_millis(self.random.u64(100..6_000));
        self.result(&goal, limit, is_promised);
        self.node.spin_until(|| false, Duration::from_millis(100));
    }

    /// Requests a result. Returns whether it came.
    fn result(
        &self,
        goal: &ClientGoalHandle<Fibonacci>,
        limit: Duration,
        is_promised: bool,
    ) -> bool {
        let asked = self.caller.call("result", limit, || goal.result(limit));
        let record = self.records.lock().get(&goal.id()).cloned();
        let ended = record.and_then(|record| record.end);
        let report = &self.caller.report;
        match (asked, ended) {
            (Ok(end), Some((status, sequence, _))) => {
                report.expect(
                    (end.status, &end.result.sequence) == (status, &sequence),
                    || format!("I13 reported {end:?}, was {status} {sequence:?}"),
                );
                report.expect(!is_promised || end.status == GoalStatus::Canceled, || {
                    format!("I13 the cancellation was accepted, yet the goal has {status}")
                });
                self.caller.mark_done();
                true
            }
            (Ok(end), None) => {
                report.violation(format!("I13 reported {end:?} of a running goal"));
                false
            }
            (Err(ActionError::UnknownGoal { .. }), ended) => {
                let is_old =
                    ended.is_some_and(|(_, _, at)| self.caller.sim.now() >= at + RESULT_TIMEOUT);
                report.expect(is_old, || {
                    "I13 the result of a recent goal is unknown".into()
                });
                false
            }
            (Err(_), _) => false,
        }
    }

    /// After healing every request must succeed.
    fn check_after_healing(&mut self) {
        self.caller.sim.advance(REPAIR_MAX);
        let report = self.caller.report.clone();
        for order in [0, 7, 13] {
            let Some(goal) = self.send(order, REPAIR_MAX) else {
                report.violation(format!("I13 no goal after healing: {order}"));
                continue;
            };
            let is_promised = order == 13;
            if is_promised {
                let asked = self
                    .caller
                    .call("cancel", REPAIR_MAX, || goal.cancel(REPAIR_MAX));
                report.expect(asked.is_ok(), || {
                    format!("I13 not cancelled after healing: {asked:?}")
                });
            }
            let came = self.result(&goal, REPAIR_MAX, is_promised);
            report.expect(came, || format!("I13 no result after healing: {order}"));
            let ended = || goal.status().is_terminal();
            let reply = self.node.spin_until(ended, REPAIR_MAX);
            report.expect(reply, || {
                format!("I13 the status after healing is {}", goal.status())
            });
        }
    }
}
