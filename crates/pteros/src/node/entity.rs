//! Entities of a node, as the node and its executors see them, and the callback
//! group that each belongs to.

use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;

use crate::executor_queue::ExecutorQueue;

/// An entity of a node whose callbacks an executor runs.
pub(crate) trait NodeEntity: Send + Sync {
    /// Moves to the executor that now spins its callback group, or to none.
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>);

    /// The group that says which executor runs its callbacks, and beside which others.
    fn callback_group(&self) -> &Arc<CallbackGroupCore>;
}

/// Whether callbacks of one group may run in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CallbackGroupType {
    /// One callback at a time, in the order in which they became ready.
    MutuallyExclusive,
    /// Callbacks run in parallel; a single callback never runs twice at the same
    /// time.
    Reentrant,
}

/// A callback group without a reference to its node, which may own it.
pub(crate) struct CallbackGroupCore {
    pub(crate) node: NodeKey,
    gate: Option<MutualExclusionGate>,
    /// Executors to which the group itself was added; the last one spins it.
    /// Without any, the node's executor does.
    pub(crate) executor_queues: Mutex<Vec<Arc<ExecutorQueue>>>,
}

impl CallbackGroupCore {
    pub(crate) fn new(group_type: CallbackGroupType, node: NodeKey) -> Arc<Self> {
        let gate = match group_type {
            CallbackGroupType::MutuallyExclusive => Some(MutualExclusionGate::default()),
            CallbackGroupType::Reentrant => None,
        };
        Arc::new(Self {
            node,
            gate,
            executor_queues: Mutex::default(),
        })
    }

    pub(crate) fn group_type(&self) -> CallbackGroupType {
        match self.gate {
            Some(_) => CallbackGroupType::MutuallyExclusive,
            None => CallbackGroupType::Reentrant,
        }
    }

    pub(crate) fn gate(&self) -> Option<&MutualExclusionGate> {
        self.gate.as_ref()
    }
}
