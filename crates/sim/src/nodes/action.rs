//! Goals under faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, Fibonacci_Feedback, Fibonacci_Goal, Fibonacci_Result,
};
use pteros::msg::message::GoalId;
use pteros::{
    ActionClient, ActionError, ActionServerOptions, ClientGoal, GoalResponse, GoalStatus, Node,
    ServerGoal,
};

use super::stage::{Asker, SERVER, SOON, Stage};
use crate::relay::Companion;

/// How long a server works before it looks again.
const TICK: Duration = Duration::from_millis(20);

/// How long the server keeps results.
const KEPT: Duration = Duration::from_secs(10);

const CLIENTS: usize = 3;

/// What the server did with a goal.
#[derive(Clone, Debug, Default)]
struct Record {
    order: i32,
    accepted: u32,
    end: Option<(GoalStatus, Vec<i32>, Duration)>,
}

type Records = Arc<Mutex<BTreeMap<GoalId, Record>>>;

/// A goal at work, and how often it was worked on.
struct Job {
    goal: ServerGoal<Fibonacci>,
    ticks: i32,
}

pub fn play(stage: &Stage) {
    let records = Records::default();
    let mut server = stage.process(SERVER);
    let node = server.context.node("counter").expect("a node");
    let jobs: Arc<Mutex<Vec<Job>>> = Arc::default();
    let (noted, taken, book) = (records.clone(), jobs.clone(), stage.book.clone());
    let options = ActionServerOptions::<Fibonacci>::default()
        .result_timeout(KEPT)
        .on_goal(|goal| match goal.order % 5 {
            4 => GoalResponse::Reject,
            3 => GoalResponse::AcceptAndDefer,
            _ => GoalResponse::AcceptAndExecute,
        });
    let _actions =
        node.create_action_server("count", options, move |goal: ServerGoal<Fibonacci>| {
            let order = goal.goal().order;
            book.expect(order % 5 != 4, || {
                format!("I13 a rejected goal is to be worked on: {order}")
            });
            let mut records = noted.lock();
            let record = records.entry(goal.id()).or_default();
            record.order = order;
            record.accepted += 1;
            taken.lock().push(Job { goal, ticks: 0 });
        });
    let (noted, sim) = (records.clone(), stage.sim.clone());
    let _timer = node.create_timer(TICK, move || {
        jobs.lock().retain_mut(|job| work(job, &noted, sim.now()));
    });
    stage.spin(&mut server, stage.any_spin(), &[&node]);
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(stage, number, records.clone()))
        .collect();
    stage.storm();
    drop(clients);
    for (id, record) in records.lock().iter() {
        stage.book.expect(record.accepted == 1, || {
            format!("I13 goal {id:?} was accepted {} times", record.accepted)
        });
    }
}

/// Works once; whether there is more to do.
fn work(job: &mut Job, records: &Records, now: Duration) -> bool {
    let Job { goal, ticks } = job;
    let order = goal.goal().order;
    let end = |status| {
        let sequence: Vec<i32> = (0..*ticks).collect();
        let mut records = records.lock();
        let record = records.entry(goal.id()).or_default();
        record.end = Some((status, sequence.clone(), now));
        drop(records);
        Fibonacci_Result { sequence }
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
    goal.publish_feedback(Fibonacci_Feedback {
        sequence: vec![order, *ticks],
    });
    true
}

fn client(stage: &Stage, number: usize, records: Records) -> Companion {
    let process = stage.process(number);
    let (asker, seed) = (stage.asker(number), stage.seed());
    stage.sim.companion(Box::new(move || {
        let node = process
            .context
            .node(&format!("asker{number}"))
            .expect("a node");
        let client = node.create_action_client("count").expect("a client");
        let mut one = One {
            asker,
            node,
            client,
            records,
            random: Rng::with_seed(seed),
        };
        while one.asker.goes_on() {
            one.ask();
        }
        one.ask_in_calm();
        drop(process);
    }))
}

struct One {
    asker: Asker,
    node: Node,
    client: ActionClient<Fibonacci>,
    records: Records,
    random: Rng,
}

impl One {
    fn send(&mut self, order: i32, limit: Duration) -> Option<ClientGoal<Fibonacci>> {
        let book = self.asker.book.clone();
        let heard = Arc::new(Mutex::new(0));
        let noted = book.clone();
        let on_feedback = move |feedback: &Fibonacci_Feedback| {
            let mut heard = heard.lock();
            let [of, tick] = feedback.sequence[..] else {
                return noted.broken("I3 feedback of another form".into());
            };
            noted.expect(of == order && tick > *heard && tick <= order, || {
                format!("I3 feedback {tick} of {of} after {heard} of {order}")
            });
            *heard = tick;
        };
        let sent = self.asker.call("send_goal", limit, || {
            let goal = Fibonacci_Goal { order };
            self.client
                .send_goal_with_feedback(goal, on_feedback, limit)
        });
        match sent {
            Ok(goal) => {
                let records = self.records.lock();
                let record = records.get(&goal.id());
                let fits = record.is_some_and(|r| r.order == order && r.accepted == 1);
                book.expect(fits, || {
                    format!("I13 a goal of {order} was accepted, and is {record:?}")
                });
                drop(records);
                self.asker.note_done();
                Some(goal)
            }
            Err(ActionError::Rejected { .. }) => {
                book.expect(order % 5 == 4, || {
                    format!("I13 a goal of {order} was rejected")
                });
                None
            }
            Err(_) => None,
        }
    }

    /// Asks for a goal, perhaps for its end, then for its result.
    fn ask(&mut self) {
        let order = self.random.i32(0..20);
        let limit = Duration::from_millis(self.random.u64(100..4_000));
        let Some(goal) = self.send(order, limit) else {
            // Nobody there, perhaps: not at once again.
            self.asker.sim.pass(Duration::from_millis(50));
            return;
        };
        let mut is_promised = false;
        if self.random.u32(0..3) == 0 {
            let pause = Duration::from_millis(self.random.u64(0..300));
            self.node.spin_until(|| false, pause);
            is_promised = self
                .asker
                .call("cancel", limit, || goal.cancel(limit))
                .is_ok();
        }
        let limit = Duration::from_millis(self.random.u64(100..6_000));
        self.result(&goal, limit, is_promised);
        self.node.spin_until(|| false, Duration::from_millis(100));
    }

    /// Asks for a result; whether it came.
    fn result(&self, goal: &ClientGoal<Fibonacci>, limit: Duration, is_promised: bool) -> bool {
        let asked = self.asker.call("result", limit, || goal.result(limit));
        let record = self.records.lock().get(&goal.id()).cloned();
        let ended = record.and_then(|record| record.end);
        let book = &self.asker.book;
        match (asked, ended) {
            (Ok(end), Some((status, sequence, _))) => {
                book.expect(
                    (end.status, &end.result.sequence) == (status, &sequence),
                    || format!("I13 told {end:?}, was {status} {sequence:?}"),
                );
                book.expect(!is_promised || end.status == GoalStatus::Canceled, || {
                    format!("I13 cancelling was promised, yet the goal has {status}")
                });
                self.asker.note_done();
                true
            }
            (Ok(end), None) => {
                book.broken(format!("I13 told {end:?} of a goal that goes on"));
                false
            }
            (Err(ActionError::UnknownGoal { .. }), ended) => {
                let is_old = ended.is_some_and(|(_, _, at)| self.asker.sim.now() >= at + KEPT);
                book.expect(is_old, || {
                    "I13 the result of a young goal is unknown".into()
                });
                false
            }
            (Err(_), _) => false,
        }
    }

    /// Now everything must go well.
    fn ask_in_calm(&mut self) {
        self.asker.sim.pass(SOON);
        let book = self.asker.book.clone();
        for order in [0, 7, 13] {
            let Some(goal) = self.send(order, SOON) else {
                book.broken(format!("I13 no goal in calm: {order}"));
                continue;
            };
            let is_promised = order == 13;
            if is_promised {
                let asked = self.asker.call("cancel", SOON, || goal.cancel(SOON));
                book.expect(asked.is_ok(), || {
                    format!("I13 not cancelled in calm: {asked:?}")
                });
            }
            let came = self.result(&goal, SOON, is_promised);
            book.expect(came, || format!("I13 no result in calm: {order}"));
            let ended = || goal.status().is_end();
            let told = self.node.spin_until(ended, SOON);
            book.expect(told, || {
                format!("I13 the status in calm is {}", goal.status())
            });
        }
    }
}
