//! Executors: where and when user code runs.
//!
//! The thread that spins is the receive loop (see `pteros_rmw`): it sleeps in
//! the sockets' poll, runs the protocol and then the callbacks. Nothing is
//! rebuilt per spin; a callback costs O(1) whatever the number of entities.

mod chain;
mod chain_report;
mod chained;
mod crew;
mod isolated;
mod multi;
mod panic;
mod polled;
mod single;
mod static_order;

use std::sync::Arc;

use pteros_rmw::Core;
use pteros_rmw::ready::ReadyQueue;
use pteros_rmw::thread::ThreadError;
use thiserror::Error;

pub use chain::{CHAINS_MAX, Chain, ChainError, ChainGraph};
pub use chain_report::{ChainReport, ChainReports};
pub use chained::ChainExecutor;
pub use crew::ExecutorHandle;
pub use isolated::IsolatedExecutor;
pub use multi::MultiThreadedExecutor;
pub use panic::PanicPolicy;
pub(crate) use panic::text as panic_text;
pub use polled::PolledExecutor;
pub use single::SingleThreadedExecutor;
pub use static_order::{
    DataSemantics, Output, Readiness, StaticExecutor, StaticExecutorHandle, StepKey, Trigger,
};

use crate::timer::TimerHeap;

/// Where the work of an executor's nodes gathers.
pub(crate) struct Home {
    pub(crate) queue: Arc<ReadyQueue>,
    pub(crate) timers: TimerHeap,
    /// Of a wait set: it hears of subscriptions that are polled as well.
    pub(crate) is_wait_set: bool,
}

impl Home {
    fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self {
            queue: core.ready_queue(),
            timers: TimerHeap::new(),
            is_wait_set: false,
        })
    }

    pub(crate) fn of_wait_set(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self {
            queue: core.ready_queue(),
            timers: TimerHeap::new(),
            is_wait_set: true,
        })
    }
}

/// Why an executor does not do what it was told.
#[derive(Debug, Error)]
pub enum ExecutorError {
    /// The node lives in another context.
    #[error("node \"{node}\" is of another context than the executor; make both from the same one")]
    OtherContext {
        /// The node.
        node: String,
    },
    /// It has the node already.
    #[error("node \"{node}\" is in this executor already; add it once")]
    AlreadyAdded {
        /// The node.
        node: String,
    },
    /// It has the callback group already.
    #[error("this callback group of node \"{node}\" is in the executor already; add it once")]
    GroupAlreadyAdded {
        /// The group's node.
        node: String,
    },
    /// Somebody spins it.
    #[error("the executor is spinning already; give it more threads, or make another executor")]
    AlreadySpinning,
    /// A static executor needs a positive period.
    #[error("a period must be longer than zero; use `spin` to run whenever something is ready")]
    ZeroPeriod,
    /// A thread could not be started.
    #[error(
        "no thread for the executor: {reason}; ask for fewer threads, or raise the limit (`ulimit -u`)"
    )]
    NoThread {
        /// The operating system's word.
        reason: String,
    },
    /// The kernel refuses what a thread is to be.
    #[error(transparent)]
    Thread(#[from] ThreadError),
}
