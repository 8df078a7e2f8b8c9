//! Chains of callbacks, the more urgent ones first.
//!
//! The rules are those of PiCAS (H. Choi, Y. Xiang, H. Kim: "PiCAS: New Design of
//! Priority-Driven Chain-Aware Scheduling for ROS2", RTAS 2021): what is ready is
//! looked at after each callback; callbacks of the more urgent chain go first;
//! within a chain later callbacks go before earlier ones, so that an instance
//! that has begun ends before another begins, and the timer at a chain's head
//! comes last of all.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use thiserror::Error;

use crate::wait_set::{Member, Waitable};

/// Chains of one executor: a bit each in a word.
pub const CHAINS_MAX: usize = 64;

/// Why a chain is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChainError {
    /// It has no callback.
    #[error("chain \"{chain}\" has no callbacks; name them in order with `then`")]
    Empty {
        /// The chain.
        chain: String,
    },
    /// A callback comes twice in it.
    #[error("chain \"{chain}\": {what} comes twice; a chain goes through each callback once")]
    Twice {
        /// The chain.
        chain: String,
        /// The callback.
        what: String,
    },
    /// There are as many as may be.
    #[error(
        "chain \"{chain}\": an executor has at most {CHAINS_MAX} chains; spread them over several"
    )]
    TooMany {
        /// The chain.
        chain: String,
    },
}

/// Callbacks that run one because of the other, from a sensor to an actuator, as
/// a [`ChainExecutor`](crate::ChainExecutor) puts them in order. Keeps none of
/// them alive.
///
/// A callback may be in several chains; it is then as urgent as the most urgent
/// of them.
#[derive(Clone)]
pub struct Chain {
    pub(super) name: String,
    pub(super) priority: u32,
    pub(super) deadline: Option<Duration>,
    pub(super) links: Vec<Link>,
}

#[derive(Clone)]
pub(super) struct Link {
    /// Also what makes sure that its address is nobody else's.
    pub(super) member: Weak<dyn Member>,
    pub(super) address: usize,
    pub(super) what: String,
}

impl Link {
    fn to(entity: &impl Waitable) -> Self {
        let member = entity.member();
        Self {
            address: Arc::as_ptr(&member).cast::<()>().addr(),
            what: member.describe(),
            member: Arc::downgrade(&member),
        }
    }
}

impl Chain {
    /// A chain without callbacks; the greater the priority, the more urgent.
    pub fn new(name: impl Into<String>, priority: u32) -> Self {
        Self {
            name: name.into(),
            priority,
            deadline: None,
            links: Vec::new(),
        }
    }

    /// The next callback: that of a timer, a guard condition, a subscription, a
    /// service or a client.
    pub fn then(mut self, entity: &impl Waitable) -> Self {
        self.links.push(Link::to(entity));
        self
    }

    /// How urgent it is.
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// How long an instance may take from its release to the end of its last
    /// callback. Longer ones are counted, nothing else happens.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its callbacks are, in order.
    pub fn callbacks(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|link| link.what.as_str())
    }

    pub(super) fn check(&self) -> Result<(), ChainError> {
        let chain = || self.name.clone();
        if self.links.is_empty() {
            return Err(ChainError::Empty { chain: chain() });
        }
        for (at, link) in self.links.iter().enumerate() {
            let before = self.links.iter().take(at);
            if before.into_iter().any(|l| l.address == link.address) {
                let what = link.what.clone();
                return Err(ChainError::Twice {
                    chain: chain(),
                    what,
                });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("name", &self.name)
            .field("priority", &self.priority)
            .field("deadline", &self.deadline)
            .field("callbacks", &self.callbacks().collect::<Vec<_>>())
            .finish()
    }
}

/// Finds chains by who publishes what: a callback that publishes on a topic comes
/// before one that subscribes to it.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::std_msgs::msg::Empty;
/// use pteros::prelude::*;
/// use pteros::{ChainExecutor, ChainGraph};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.node("n")?;
/// let bumped = node.create_publisher::<Empty>("bumped", 1)?;
/// let topic = bumped.topic().to_owned();
/// let sense = node.create_timer(Duration::from_millis(5), move || {
///     let _ = bumped.publish_owned(Empty {});
/// })?;
/// let brake = node.create_subscription("bumped", 1, |_: Sample<Empty>| ())?;
/// let graph = ChainGraph::new()
///     .callback(&sense, [&topic])
///     .callback(&brake, [""; 0]);
/// let executor = ChainExecutor::new(&context);
/// executor.add_node(&node)?;
/// for chain in graph.chains()? {
///     println!("{chain:?}");
///     executor.add_chain(&chain.priority(10))?;
/// }
/// executor.spin();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ChainGraph {
    callbacks: Vec<Vertex>,
}

#[derive(Clone)]
struct Vertex {
    link: Link,
    takes: Option<String>,
    gives: Vec<String>,
}

impl ChainGraph {
    /// Without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// A callback, and the topics on which it publishes, by their full names
    /// ([`Publisher::topic`](crate::Publisher::topic)).
    pub fn callback(
        mut self,
        entity: &impl Waitable,
        publishes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let takes = entity.member().input_topic().map(str::to_owned);
        self.callbacks.push(Vertex {
            link: Link::to(entity),
            takes,
            gives: publishes.into_iter().map(Into::into).collect(),
        });
        self
    }

    /// Each way from a callback that none of the others makes run to one that
    /// makes none of them run, named by its topics, with priority 0.
    ///
    /// # Errors
    /// [`ChainError::TooMany`].
    pub fn chains(&self) -> Result<Vec<Chain>, ChainError> {
        let mut chains = Vec::new();
        for (at, head) in self.callbacks.iter().enumerate() {
            let is_caused = |by: &Vertex| head.takes.as_ref().is_some_and(|t| by.gives.contains(t));
            if !self.callbacks.iter().any(is_caused) {
                self.walk(&mut vec![at], &mut chains)?;
            }
        }
        Ok(chains)
    }

    fn walk(&self, path: &mut Vec<usize>, chains: &mut Vec<Chain>) -> Result<(), ChainError> {
        let last = path.last().and_then(|at| self.callbacks.get(*at));
        let Some(last) = last else {
            return Ok(());
        };
        let causes = |next: &Vertex| next.takes.as_ref().is_some_and(|t| last.gives.contains(t));
        let mut ends = true;
        for (at, next) in self.callbacks.iter().enumerate() {
            if causes(next) && !path.contains(&at) {
                ends = false;
                path.push(at);
                self.walk(path, chains)?;
                path.pop();
            }
        }
        if ends {
            let chain = self.chain(path);
            if chains.len() == CHAINS_MAX {
                return Err(ChainError::TooMany { chain: chain.name });
            }
            chains.push(chain);
        }
        Ok(())
    }

    fn chain(&self, path: &[usize]) -> Chain {
        let vertices: Vec<_> = path
            .iter()
            .filter_map(|at| self.callbacks.get(*at))
            .collect();
        let name = |v: &&Vertex| v.takes.clone().unwrap_or_else(|| v.link.what.clone());
        let names: Vec<_> = vertices.iter().map(name).collect();
        let mut chain = Chain::new(names.join(" → "), 0);
        chain.links = vertices.iter().map(|v| v.link.clone()).collect();
        chain
    }
}

impl fmt::Debug for ChainGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whats = self.callbacks.iter().map(|v| &v.link.what);
        f.debug_list().entries(whats).finish()
    }
}
