//! Scenarios as data: steps and expectations. The parser creates them, and the
//! harness runs them.

use super::policies::{EndpointPlan, GroupPlan};
use super::statuses::Expected;

/// The path that samples take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioPath {
    /// Within one context.
    Local,
    /// Between contexts, over the simulated network.
    Network,
    /// Between contexts of one host, through shared memory.
    SharedMemory,
}

impl ScenarioPath {
    /// Its name in scenarios and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Network => "net",
            Self::SharedMemory => "shared_memory",
        }
    }
}

/// A scenario: one line.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, a sentence with underscores.
    pub name: String,
    /// Line number, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// The paths that it runs on.
    pub paths: Vec<ScenarioPath>,
    pub(super) steps: Vec<ScenarioStep>,
}

#[derive(Clone, Debug)]
pub struct ScenarioStep {
    /// Column of its first character, from 1.
    pub column: usize,
    pub verb: Verb,
    /// The error with which the engine must refuse it.
    pub refused: Option<String>,
}

/// A message to write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteValue {
    pub key: String,
    pub x: i32,
    /// Nanoseconds from now to its source timestamp.
    pub stamp: i64,
}

/// A fault of the link from one context to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkFault {
    Cut,
    /// Chance in 1/10000.
    Lose(u32),
    /// Chance in 1/10000.
    Repeat(u32),
    /// Nanoseconds.
    Delay(u64),
    /// Nanoseconds.
    Jitter(u64),
}

/// Operation of a writer on an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InstanceOperation {
    Dispose,
    Unregister,
    Register,
}

#[derive(Clone, Debug)]
pub enum Verb {
    Create(Vec<EndpointPlan>, Vec<GroupPlan>),
    Delete(String),
    Write(String, Vec<WriteValue>),
    Instance(String, InstanceOperation, Vec<String>),
    Assert(String),
    Flush(String),
    Filter(String, String),
    /// Options that change policies.
    Set(String, Vec<(String, Option<String>)>),
    Wait(u64),
    Take {
        reader: String,
        all: bool,
        expected: Vec<ExpectedSample>,
    },
    /// Current statuses.
    Status(String, Vec<Expected>),
    /// Events since the last check.
    Events(String, Vec<Expected>),
    Begin(String),
    End(String),
    Crash(usize),
    Leave(usize),
    Start(usize),
    WallClock(usize, i64),
    /// From, to.
    LinkFault(Vec<(usize, usize)>, LinkFault),
    Heal,
}

/// A sample that `take` expects. Traits that are not listed are not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedSample {
    /// `red=3`, `3`, `red:disposed`.
    pub what: String,
    /// `new`, `old`, `alive`, `disposed`, `no_writers`, `1.0`.
    pub traits: Vec<String>,
}

impl Verb {
    /// Whether it needs more than one context.
    pub fn needs_network(&self) -> bool {
        matches!(
            self,
            Self::Crash(_) | Self::Leave(_) | Self::Start(_) | Self::LinkFault(..) | Self::Heal
        )
    }

    /// Whether it injects link faults.
    pub fn faults_network(&self) -> bool {
        matches!(self, Self::LinkFault(..) | Self::Heal)
    }

    /// Whether the engine may refuse it.
    pub fn may_be_refused(&self) -> bool {
        matches!(
            self,
            Self::Create(..)
                | Self::Write(..)
                | Self::Instance(..)
                | Self::Filter(..)
                | Self::Set(..)
                | Self::Begin(_)
                | Self::End(_)
        )
    }
}

impl Scenario {
    /// Copies of this scenario, each with one expectation changed, and what was
    /// changed. None of them may pass.
    pub fn falsified(&self) -> Vec<(String, Scenario)> {
        let mut all = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            for (what, falsified) in step.falsified() {
                let mut scenario = self.clone();
                if let Some(replaced) = scenario.steps.get_mut(index) {
                    *replaced = falsified;
                }
                all.push((format!("step {}: {what}", index + 1), scenario));
            }
        }
        all
    }
}

impl ScenarioStep {
    fn falsified(&self) -> Vec<(String, ScenarioStep)> {
        let with = |what: &str, verb: Verb| {
            let step = ScenarioStep {
                verb,
                ..self.clone()
            };
            (what.to_string(), step)
        };
        let mut all = Vec::new();
        if self.refused.is_some() {
            let accepted = ScenarioStep {
                refused: None,
                ..self.clone()
            };
            let otherwise = ScenarioStep {
                refused: Some("otherwise".into()),
                ..self.clone()
            };
            all.push(("not refused".into(), accepted));
            all.push(("refused otherwise".into(), otherwise));
        }
        match &self.verb {
            Verb::Take {
                reader,
                all: everything,
                expected,
            } => {
                let take = |expected| Verb::Take {
                    reader: reader.clone(),
                    all: *everything,
                    expected,
                };
                let more = ExpectedSample {
                    what: "4711".into(),
                    traits: Vec::new(),
                };
                let longer = [&expected[..], std::slice::from_ref(&more)].concat();
                all.push(with("one more", take(longer)));
                if let Some((_, rest)) = expected.split_last() {
                    if *everything {
                        all.push(with("one less", take(rest.to_vec())));
                    }
                    let other = [rest, &[more]].concat();
                    all.push(with("the last is another", take(other)));
                }
                for (index, taken) in expected.iter().enumerate() {
                    for (position, word) in taken.traits.iter().enumerate() {
                        let mut wrong = expected.clone();
                        wrong[index].traits[position] = opposite(word);
                        all.push(with("another trait", take(wrong)));
                    }
                }
            }
            Verb::Status(of, expected) => {
                for index in 0..expected.len() {
                    let mut wrong = expected.clone();
                    wrong[index] = wrong[index].falsified();
                    all.push(with("another value", Verb::Status(of.clone(), wrong)));
                }
            }
            Verb::Events(of, expected) => {
                let mut longer = expected.clone();
                longer.push(Expected::never_reported());
                all.push(with("one more event", Verb::Events(of.clone(), longer)));
                for index in 0..expected.len() {
                    let mut wrong = expected.clone();
                    wrong[index] = wrong[index].falsified();
                    all.push(with("another event", Verb::Events(of.clone(), wrong)));
                    let mut fewer = expected.clone();
                    fewer.remove(index);
                    all.push(with("one event less", Verb::Events(of.clone(), fewer)));
                }
            }
            _ => {}
        }
        all
    }
}

fn opposite(word: &str) -> String {
    match word {
        "new" => "old".into(),
        "old" => "new".into(),
        "alive" => "disposed".into(),
        "disposed" | "no_writers" => "alive".into(),
        generations => format!("9{generations}"),
    }
}
