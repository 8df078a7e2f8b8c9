//! Workload "parameters": atomic sets under fault injection. Two parameters always
//! have the same sum. A token identifies each set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::rcl_interfaces::msg::ParameterEvent;
use pteros::parameter::{Parameter, ParameterClient, ParameterValue};
use pteros::{Node, Sample};

use super::world::{Caller, NodeWorld, REPAIR_MAX, SERVER};
use crate::simulation::threads::SimThread;

/// Sum of the two parameters.
const SUM: i64 = 100;

const CLIENTS: usize = 3;

/// Tokens in the order of the sets, with the value of `left`.
type AcceptedSets = Arc<Mutex<Vec<(i64, i64)>>>;

fn integer(value: &ParameterValue) -> i64 {
    match value {
        ParameterValue::Integer(value) => *value,
        _ => -1,
    }
}

/// The values of `left`, `right` and `token` in a list.
fn known_values(parameters: &[Parameter]) -> (Option<i64>, Option<i64>, Option<i64>) {
    let find = |name: &str| {
        let found = parameters.iter().find(|parameter| parameter.name == name);
        found.map(|parameter| integer(&parameter.value))
    };
    (find("left"), find("right"), find("token"))
}

pub fn run(world: &NodeWorld) {
    let sets = AcceptedSets::default();
    let mut server = world.process(SERVER);
    let node = server.context.create_node("tuned").expect("a node");
    for (name, value) in [("left", SUM / 2), ("right", SUM / 2), ("token", 0)] {
        node.declare_parameter(name, value)
            .expect("a new parameter");
    }
    let _validator = node.add_on_set_parameters_callback(|asked| match known_values(asked) {
        (Some(left), Some(right), Some(_)) if left + right == SUM => Ok(()),
        (Some(left), Some(right), _) => Err(format!("{left} and {right} are not {SUM}")),
        _ => Err("all three at once".into()),
    });
    let noted = sets.clone();
    let _noted = node.add_post_set_parameters_callback(move |set| {
        if let (Some(left), _, Some(token)) = known_values(set) {
            noted.lock().push((token, left));
        }
    });
    world.spin(&mut server, world.random_executor(), &[&node]);
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(world, number, sets.clone()))
        .collect();
    world.run_fault_phase();
    drop(clients);
    let sets = sets.lock();
    for (token, _) in sets.iter() {
        let times = sets.iter().filter(|(other, _)| other == token).count();
        world.report.expect(times == 1, || {
            format!("I13 token {token} was set {times} times")
        });
    }
    let held = node.parameter("token").map(|value| integer(&value)).ok();
    world
        .report
        .expect(held == sets.last().map(|(token, _)| *token), || {
            format!("I13 the token is {held:?}, last was {:?}", sets.last())
        });
}

fn client(world: &NodeWorld, number: usize, sets: AcceptedSets) -> SimThread {
    world.client(number, "tuner", move |process, caller, node, random| {
        let mut session = ParameterSession {
            client: ParameterClient::new(&node, "/tuned"),
            caller,
            node,
            sets,
            token: i64::try_from(number).unwrap_or(0) * 1_000_000,
            refused: BTreeMap::new(),
            random,
        };
        let received = AcceptedSets::default();
        let log = received.clone();
        let _events = session
            .client
            .on_events(move |event: Sample<ParameterEvent>| {
                let changed: Vec<_> = event
                    .changed_parameters
                    .iter()
                    .map(Parameter::from_message)
                    .collect();
                if let (left, _, Some(token)) = known_values(&changed) {
                    log.lock().push((token, left.unwrap_or(-1)));
                }
            });
        while session.caller.faults_active() {
            session.send_random_request();
        }
        session.check_after_healing(&received);
        drop(process);
    })
}

struct ParameterSession {
    caller: Caller,
    node: Node,
    client: ParameterClient,
    sets: AcceptedSets,
    token: i64,
    /// Tokens that must never be set, with the reported reason.
    refused: BTreeMap<i64, String>,
    random: Rng,
}

impl ParameterSession {
    fn times(&self, token: i64) -> usize {
        self.sets
            .lock()
            .iter()
            .filter(|(set, _)| *set == token)
            .count()
    }

    /// Sets all three parameters at once. Returns whether they were set, if known.
    fn set(&mut self, left: i64, right: i64, limit: Duration) -> Option<bool> {
        self.token += 1;
        let token = self.token;
        let wanted = vec![
            Parameter::new("left", left),
            Parameter::new("token", token),
            Parameter::new("right", right),
        ];
        let reply = self.caller.call("set_atomically", limit, || {
            self.client.set_atomically(wanted, limit)
        });
        let times = self.times(token);
        let report = &self.caller.report;
        match reply {
            Ok(Ok(())) => {
                report.expect(times == 1, || {
                    format!("I13 {token} is reported as set, and was set {times} times")
                });
                report.expect(left + right == SUM, || {
                    format!("I13 {left} and {right} were set")
                });
                self.caller.mark_done();
                Some(true)
            }
            Ok(Err(reason)) => {
                report.expect(left + right != SUM, || format!("I13 refused: {reason}"));
                self.refused.insert(token, reason);
                Some(false)
            }
            Err(_) => None,
        }
    }

    fn get(&self, limit: Duration) -> bool {
        let names = ["left", "right"];
        let got = self
            .caller
            .call("get", limit, || self.client.get(&names, limit));
        let Ok(got) = got else { return false };
        let sum: i64 = got.iter().map(integer).sum();
        self.caller.report.expect(sum == SUM, || {
            format!("I13 parameters of different sets: {got:?}")
        });
        self.caller.mark_done();
        true
    }

    fn send_random_request(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..3_000));
        let left = self.random.i64(0..=SUM);
        match self.random.u32(0..6) {
            0 => {
                self.set(left, SUM - left + 1, limit);
            }
            1 => {
                // Setting one of them alone would break the sum.
                let alone = vec![Parameter::new("left", left)];
                let reply = self
                    .caller
                    .call("set", limit, || self.client.set(alone, limit));
                let was_refused = reply.map_or(true, |reply| reply.iter().all(Result::is_err));
                self.caller
                    .report
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

    fn check_after_healing(&mut self, received: &AcceptedSets) {
        self.caller.sim.advance(REPAIR_MAX);
        let left = self.random.i64(0..=SUM);
        let set = self.set(left, SUM - left, REPAIR_MAX);
        let report = self.caller.report.clone();
        report.expect(set == Some(true), || {
            format!("I13 not set after healing: {set:?}")
        });
        report.expect(self.get(REPAIR_MAX), || "I13 not got after healing".into());
        let token = self.token;
        let own_event_received = || received.lock().contains(&(token, left));
        let reply = self.node.spin_until(own_event_received, REPAIR_MAX);
        report.expect(reply, || {
            format!("I13 the event of {token} did not come after healing")
        });
        for (token, reason) in &self.refused {
            let times = self.times(*token);
            report.expect(times == 0, || {
                format!("I13 {token} is set, though refused: {reason}")
            });
        }
        let (sets, received) = (self.sets.lock(), received.lock());
        let mut rest = sets.iter();
        let in_order = received.iter().all(|reply| rest.any(|set| set == reply));
        report.expect(in_order, || {
            "I13 events arrived out of order, or of sets that did not happen".into()
        });
    }
}
