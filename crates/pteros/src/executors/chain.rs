//! Callback chains: cause-effect chains with a priority and a deadline.
//!
//! A chain is a sequence of callbacks in which each one triggers the next. The
//! scheduling rules are those of PiCAS (H. Choi, Y. Xiang, H. Kim: "PiCAS: New
//! Design of Priority-Driven Chain-Aware Scheduling for ROS2", RTAS 2021):
//!
//! - The executor re-evaluates what is ready after each callback.
//! - Callbacks of the chain with the higher priority run first.
//! - Within a chain, later callbacks run before earlier ones. A started instance
//!   ends before another one begins, and the timer at the head runs last.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::ExecutorError;
use crate::waitable::{Waitable, WaitableEntity};

/// Maximum number of chains per executor. Each chain is one bit of a `u64`.
pub const CHAINS_MAX: usize = 64;

/// A cause-effect chain of callbacks, for example from a sensor to an actuator. A
/// [`ChainExecutor`](crate::executors::ChainExecutor) schedules by it. The chain does not keep
/// its callbacks alive.
///
/// A callback may belong to several chains. It then runs with the highest priority
/// among them.
#[derive(Clone)]
pub struct Chain {
    pub(super) name: String,
    pub(super) priority: u32,
    pub(super) deadline: Option<Duration>,
    pub(super) callbacks: Vec<ChainCallback>,
}

#[derive(Clone)]
pub(super) struct ChainCallback {
    /// The weak reference also keeps the address from being reused.
    pub(super) entity: Weak<dyn WaitableEntity>,
    pub(super) address: usize,
    pub(super) callback: String,
}

impl ChainCallback {
    fn of(entity: &impl Waitable) -> Self {
        let entity = entity.waitable_entity();
        Self {
            address: Arc::as_ptr(&entity).cast::<()>().addr(),
            callback: entity.describe(),
            entity: Arc::downgrade(&entity),
        }
    }
}

impl Chain {
    /// Creates a chain without callbacks. A greater `priority` runs first.
    pub fn new(name: impl Into<String>, priority: u32) -> Self {
        Self {
            name: name.into(),
            priority,
            deadline: None,
            callbacks: Vec::new(),
        }
    }

    /// Appends a callback: that of a timer, guard condition, subscription, service
    /// or client.
    pub fn then(mut self, entity: &impl Waitable) -> Self {
        self.callbacks.push(ChainCallback::of(entity));
        self
    }

    /// Sets the priority; a greater number runs first.
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the deadline of an instance, from its release to the end of the last
    /// callback. Misses are counted and have no other effect.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Name of the chain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Descriptions of the callbacks, in order.
    pub fn callbacks(&self) -> impl Iterator<Item = &str> {
        self.callbacks
            .iter()
            .map(|callback| callback.callback.as_str())
    }

    pub(super) fn validate(&self) -> Result<(), ExecutorError> {
        let invalid = |problem: String| ExecutorError::InvalidChain {
            chain: self.name.clone(),
            problem,
        };
        if self.callbacks.is_empty() {
            let problem = "has no callbacks; name them in order with `then`";
            return Err(invalid(problem.into()));
        }
        for (index, callback) in self.callbacks.iter().enumerate() {
            let before = self.callbacks.iter().take(index);
            if before.into_iter().any(|l| l.address == callback.address) {
                let callback = &callback.callback;
                return Err(invalid(format!(
                    "lists {callback} twice; list each callback once"
                )));
            }
        }
        Ok(())
    }
}

/// The executor, or the graph, already has [`CHAINS_MAX`] chains.
pub(super) fn too_many(chain: String) -> ExecutorError {
    ExecutorError::InvalidChain {
        chain,
        problem: format!(
            "is one too many: an executor has at most {CHAINS_MAX} chains; spread them over several"
        ),
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

/// Derives chains from topics: a callback that publishes on a topic precedes a
/// callback that subscribes to it.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::std_msgs::msg::Empty;
/// use pteros::prelude::*;
/// use pteros::executors::{ChainExecutor, ChainGraph};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("n")?;
/// let bumped = node.create_publisher::<Empty>("bumped".keep_last(1))?;
/// let topic = bumped.topic().to_owned();
/// let sense = node.create_timer(Duration::from_millis(5), move || {
///     let _ = bumped.publish_owned(Empty {});
/// })?;
/// let brake = node.create_subscription("bumped".keep_last(1), |_: Sample<Empty>| ())?;
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
    callback: ChainCallback,
    subscribed_topic: Option<String>,
    published_topics: Vec<String>,
}

impl ChainGraph {
    /// Creates a graph without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a callback and the fully qualified names of the topics on which it
    /// publishes ([`Publisher::topic`](crate::Publisher::topic)).
    pub fn callback(
        mut self,
        entity: &impl Waitable,
        publishes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let subscribed_topic = entity.waitable_entity().input_topic().map(str::to_owned);
        self.callbacks.push(Vertex {
            callback: ChainCallback::of(entity),
            subscribed_topic,
            published_topics: publishes.into_iter().map(Into::into).collect(),
        });
        self
    }

    /// Returns every path from a callback without a predecessor to one without a
    /// successor. Chains are named by their topics and have priority 0.
    ///
    /// # Errors
    /// [`ExecutorError::InvalidChain`] beyond [`CHAINS_MAX`].
    pub fn chains(&self) -> Result<Vec<Chain>, ExecutorError> {
        let mut chains = Vec::new();
        for (index, head) in self.callbacks.iter().enumerate() {
            let is_caused = |by: &Vertex| {
                head.subscribed_topic
                    .as_ref()
                    .is_some_and(|t| by.published_topics.contains(t))
            };
            if !self.callbacks.iter().any(is_caused) {
                self.collect_paths(&mut vec![index], &mut chains)?;
            }
        }
        Ok(chains)
    }

    fn collect_paths(
        &self,
        path: &mut Vec<usize>,
        chains: &mut Vec<Chain>,
    ) -> Result<(), ExecutorError> {
        let last = path.last().and_then(|index| self.callbacks.get(*index));
        let Some(last) = last else {
            return Ok(());
        };
        let causes = |next: &Vertex| {
            next.subscribed_topic
                .as_ref()
                .is_some_and(|t| last.published_topics.contains(t))
        };
        let mut is_last = true;
        for (index, next) in self.callbacks.iter().enumerate() {
            if causes(next) && !path.contains(&index) {
                is_last = false;
                path.push(index);
                self.collect_paths(path, chains)?;
                path.pop();
            }
        }
        if is_last {
            let chain = self.chain(path);
            if chains.len() == CHAINS_MAX {
                return Err(too_many(chain.name));
            }
            chains.push(chain);
        }
        Ok(())
    }

    fn chain(&self, path: &[usize]) -> Chain {
        let vertices: Vec<_> = path
            .iter()
            .filter_map(|index| self.callbacks.get(*index))
            .collect();
        let name = |v: &&Vertex| {
            v.subscribed_topic
                .clone()
                .unwrap_or_else(|| v.callback.callback.clone())
        };
        let names: Vec<_> = vertices.iter().map(name).collect();
        let mut chain = Chain::new(names.join(" → "), 0);
        chain.callbacks = vertices.iter().map(|v| v.callback.clone()).collect();
        chain
    }
}

impl fmt::Debug for ChainGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.callbacks.iter().map(|v| &v.callback.callback);
        f.debug_list().entries(names).finish()
    }
}
