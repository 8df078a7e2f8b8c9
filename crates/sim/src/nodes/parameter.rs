//! Parameters under faults: two that always add up, and a token that tells each set
//! from all others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::rcl_interfaces::msg::ParameterEvent;
use pteros::parameter::{Parameter, ParameterClient, ParameterValue};
use pteros::{Node, Sample};

use super::stage::{Asker, SERVER, SOON, Stage};
use crate::relay::Companion;

/// What the two add up to.
const SUM: i64 = 100;

const CLIENTS: usize = 3;

/// Tokens in the order in which they were set, with the half that came along.
type Sets = Arc<Mutex<Vec<(i64, i64)>>>;

fn integer(value: &ParameterValue) -> i64 {
    match value {
        ParameterValue::Integer(value) => *value,
        _ => -1,
    }
}

/// What a list has for the three.
fn three(parameters: &[Parameter]) -> (Option<i64>, Option<i64>, Option<i64>) {
    let find = |name: &str| {
        let found = parameters.iter().find(|parameter| parameter.name == name);
        found.map(|parameter| integer(&parameter.value))
    };
    (find("left"), find("right"), find("token"))
}

pub fn play(stage: &Stage) {
    let sets = Sets::default();
    let mut server = stage.process(SERVER);
    let node = server.context.node("tuned").expect("a node");
    for (name, value) in [("left", SUM / 2), ("right", SUM / 2), ("token", 0)] {
        node.declare_parameter(name, value)
            .expect("a new parameter");
    }
    let _judge = node.on_set_parameters(|asked| match three(asked) {
        (Some(left), Some(right), Some(_)) if left + right == SUM => Ok(()),
        (Some(left), Some(right), _) => Err(format!("{left} and {right} are not {SUM}")),
        _ => Err("all three at once".into()),
    });
    let noted = sets.clone();
    let _noted = node.on_post_set_parameters(move |set| {
        if let (Some(left), _, Some(token)) = three(set) {
            noted.lock().push((token, left));
        }
    });
    stage.spin(&mut server, stage.any_spin(), &[&node]);
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(stage, number, sets.clone()))
        .collect();
    stage.storm();
    drop(clients);
    let sets = sets.lock();
    for (token, _) in sets.iter() {
        let times = sets.iter().filter(|(other, _)| other == token).count();
        stage.book.expect(times == 1, || {
            format!("I13 token {token} was set {times} times")
        });
    }
    let held = node.parameter("token").map(|value| integer(&value)).ok();
    stage
        .book
        .expect(held == sets.last().map(|(token, _)| *token), || {
            format!("I13 the token is {held:?}, last was {:?}", sets.last())
        });
}

fn client(stage: &Stage, number: usize, sets: Sets) -> Companion {
    let process = stage.process(number);
    let (asker, seed) = (stage.asker(number), stage.seed());
    stage.sim.companion(Box::new(move || {
        let node = process
            .context
            .node(&format!("tuner{number}"))
            .expect("a node");
        let mut one = One {
            client: ParameterClient::new(&node, "/tuned"),
            asker,
            node,
            sets,
            token: i64::try_from(number).unwrap_or(0) * 1_000_000,
            refused: BTreeMap::new(),
            random: Rng::with_seed(seed),
        };
        let heard = Sets::default();
        let hears = heard.clone();
        let _events = one.client.on_events(move |event: Sample<ParameterEvent>| {
            let changed: Vec<_> = event
                .changed_parameters
                .iter()
                .map(Parameter::from_message)
                .collect();
            if let (left, _, Some(token)) = three(&changed) {
                hears.lock().push((token, left.unwrap_or(-1)));
            }
        });
        while one.asker.goes_on() {
            one.ask();
        }
        one.ask_in_calm(&heard);
        drop(process);
    }))
}

struct One {
    asker: Asker,
    node: Node,
    client: ParameterClient,
    sets: Sets,
    token: i64,
    /// Tokens that must never be set, with what was told.
    refused: BTreeMap<i64, String>,
    random: Rng,
}

impl One {
    fn times(&self, token: i64) -> usize {
        self.sets
            .lock()
            .iter()
            .filter(|(set, _)| *set == token)
            .count()
    }

    /// Sets all three at once; whether they were set, if it is known.
    fn set(&mut self, left: i64, right: i64, limit: Duration) -> Option<bool> {
        self.token += 1;
        let token = self.token;
        let wanted = vec![
            Parameter::new("left", left),
            Parameter::new("token", token),
            Parameter::new("right", right),
        ];
        let told = self.asker.call("set_atomically", limit, || {
            self.client.set_atomically(wanted, limit)
        });
        let times = self.times(token);
        let book = &self.asker.book;
        match told {
            Ok(Ok(())) => {
                book.expect(times == 1, || {
                    format!("I13 told that {token} is set, {times} times")
                });
                book.expect(left + right == SUM, || {
                    format!("I13 {left} and {right} are set")
                });
                self.asker.note_done();
                Some(true)
            }
            Ok(Err(reason)) => {
                book.expect(left + right != SUM, || format!("I13 refused: {reason}"));
                self.refused.insert(token, reason);
                Some(false)
            }
            Err(_) => None,
        }
    }

    fn get(&self, limit: Duration) -> bool {
        let names = ["left", "right"];
        let got = self
            .asker
            .call("get", limit, || self.client.get(&names, limit));
        let Ok(got) = got else { return false };
        let sum: i64 = got.iter().map(integer).sum();
        self.asker
            .book
            .expect(sum == SUM, || format!("I13 parameters in part: {got:?}"));
        self.asker.note_done();
        true
    }

    fn ask(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..3_000));
        let left = self.random.i64(0..=SUM);
        match self.random.u32(0..6) {
            0 => {
                self.set(left, SUM - left + 1, limit);
            }
            1 => {
                // One alone would break the sum.
                let alone = vec![Parameter::new("left", left)];
                let told = self
                    .asker
                    .call("set", limit, || self.client.set(alone, limit));
                let was_refused = told.map_or(true, |told| told.iter().all(Result::is_err));
                self.asker
                    .book
                    .expect(was_refused, || "I13 one alone was set".into());
            }
            2 | 3 => {
                self.get(limit);
            }
            _ => {
                self.set(left, SUM - left, limit);
            }
        }
        let pause = Duration::from_millis(self.random.u64(1..100));
        self.node.spin_until(|| false, pause);
    }

    fn ask_in_calm(&mut self, heard: &Sets) {
        self.asker.sim.pass(SOON);
        let left = self.random.i64(0..=SUM);
        let set = self.set(left, SUM - left, SOON);
        let book = self.asker.book.clone();
        book.expect(set == Some(true), || {
            format!("I13 not set in calm: {set:?}")
        });
        book.expect(self.get(SOON), || "I13 not got in calm".into());
        let token = self.token;
        let mine = || heard.lock().contains(&(token, left));
        let told = self.node.spin_until(mine, SOON);
        book.expect(told, || {
            format!("I13 the event of {token} did not come in calm")
        });
        for (token, reason) in &self.refused {
            let times = self.times(*token);
            book.expect(times == 0, || {
                format!("I13 {token} is set, but told: {reason}")
            });
        }
        let (sets, heard) = (self.sets.lock(), heard.lock());
        let mut rest = sets.iter();
        let in_order = heard.iter().all(|told| rest.any(|set| set == told));
        book.expect(in_order, || {
            "I13 events were told in another order, or of nothing".into()
        });
    }
}
