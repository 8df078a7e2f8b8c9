//! A scenario as values: what its steps do and what they expect. The parser
//! makes them, the stage carries them out.

use super::policies::{EndpointPlan, GroupPlan};
use super::seen::Expected;

/// Which path samples take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Within one context.
    Local,
    /// Between contexts, over the simulated network.
    Net,
    /// Between contexts of one host, by links of shared memory.
    Link,
}

impl Way {
    /// As scenarios write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Net => "net",
            Self::Link => "link",
        }
    }
}

/// One line.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, a sentence with underscores.
    pub name: String,
    /// Where it stands, from 1.
    pub line: usize,
    /// As it stands there.
    pub text: String,
    /// The paths that it is played on.
    pub ways: Vec<Way>,
    pub(super) steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its first character's column, from 1.
    pub column: usize,
    pub verb: Verb,
    /// The error that it is refused with.
    pub refused: Option<String>,
}

/// A message to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub key: String,
    pub x: i32,
    /// Nanoseconds between now and its source stamp.
    pub stamp: i64,
}

/// What happens to links from one context to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    Cut,
    /// In 1/10000.
    Lose(u32),
    /// In 1/10000.
    Repeat(u32),
    /// Nanoseconds.
    Delay(u64),
    /// Nanoseconds.
    Jitter(u64),
}

/// What a writer does with an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instance {
    Dispose,
    Unregister,
    Register,
}

#[derive(Clone, Debug)]
pub enum Verb {
    Create(Vec<EndpointPlan>, Vec<GroupPlan>),
    Delete(String),
    Write(String, Vec<Written>),
    Instance(String, Instance, Vec<String>),
    Assert(String),
    Flush(String),
    Filter(String, String),
    /// Options that its policies change by.
    Set(String, Vec<(String, Option<String>)>),
    Wait(u64),
    Take {
        reader: String,
        all: bool,
        expected: Vec<Taken>,
    },
    /// Statuses as they are.
    Status(String, Vec<Expected>),
    /// Events since the last look.
    Events(String, Vec<Expected>),
    Begin(String),
    End(String),
    Crash(usize),
    Leave(usize),
    Start(usize),
    Wall(usize, i64),
    /// From, to.
    Trouble(Vec<(usize, usize)>, Trouble),
    Heal,
}

/// A sample as `take` expects it. What is not given is not looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// `red=3`, `3`, `red:disposed`.
    pub what: String,
    /// `new`, `old`, `alive`, `disposed`, `no_writers`, `1.0`.
    pub traits: Vec<String>,
}

impl Verb {
    /// Whether it makes sense only with more than one context.
    pub fn needs_network(&self) -> bool {
        matches!(
            self,
            Self::Crash(_) | Self::Leave(_) | Self::Start(_) | Self::Trouble(..) | Self::Heal
        )
    }

    /// Whether something befalls datagrams.
    pub fn troubles_network(&self) -> bool {
        matches!(self, Self::Trouble(..) | Self::Heal)
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
    /// This scenario with each of its expectations made wrong in turn, and what
    /// was done to it: none of these may pass.
    pub fn spoiled(&self) -> Vec<(String, Scenario)> {
        let mut all = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            for (what, spoiled) in step.spoiled() {
                let mut scenario = self.clone();
                if let Some(place) = scenario.steps.get_mut(index) {
                    *place = spoiled;
                }
                all.push((format!("step {}: {what}", index + 1), scenario));
            }
        }
        all
    }
}

impl Step {
    fn spoiled(&self) -> Vec<(String, Step)> {
        let with = |what: &str, verb: Verb| {
            let step = Step {
                verb,
                ..self.clone()
            };
            (what.to_string(), step)
        };
        let mut all = Vec::new();
        if self.refused.is_some() {
            let accepted = Step {
                refused: None,
                ..self.clone()
            };
            let otherwise = Step {
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
                let more = Taken {
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
                    for (place, word) in taken.traits.iter().enumerate() {
                        let mut wrong = expected.clone();
                        wrong[index].traits[place] = opposite(word);
                        all.push(with("another trait", take(wrong)));
                    }
                }
            }
            Verb::Status(of, expected) => {
                for index in 0..expected.len() {
                    let mut wrong = expected.clone();
                    wrong[index] = wrong[index].spoiled();
                    all.push(with("another value", Verb::Status(of.clone(), wrong)));
                }
            }
            Verb::Events(of, expected) => {
                let mut longer = expected.clone();
                longer.push(Expected::unheard_of());
                all.push(with("one more event", Verb::Events(of.clone(), longer)));
                for index in 0..expected.len() {
                    let mut wrong = expected.clone();
                    wrong[index] = wrong[index].spoiled();
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
