//! Executors: they run the callbacks of nodes on the threads that spin.
//!
//! The spinning thread is the receive loop (see `pteros_runtime`). It sleeps in the
//! poll of the sockets, runs the protocol and then the callbacks. Nothing is
//! rebuilt per spin, and a callback costs O(1) for any number of entities.

mod chain;
mod chain_executor;
mod chain_report;
mod executor_core;
mod isolated;
mod multi_threaded;
mod panic_policy;
mod polled;
mod single_threaded;
mod spin;
mod static_executor;

use pteros_runtime::thread::ThreadError;
use thiserror::Error;

pub use chain::{CHAINS_MAX, Chain, ChainError, ChainGraph};
pub use chain_executor::ChainExecutor;
pub use chain_report::{ChainReport, ChainReports};
pub use executor_core::ExecutorHandle;
pub use isolated::IsolatedExecutor;
pub use multi_threaded::MultiThreadedExecutor;
pub use panic_policy::PanicPolicy;
pub(crate) use panic_policy::panic_message;
pub use polled::PolledExecutor;
pub use single_threaded::SingleThreadedExecutor;
pub use spin::spin;
pub use static_executor::{
    DataSemantics, Readiness, RoundOutput, StaticExecutor, StaticExecutorHandle, StepKey, Trigger,
};

/// Why an executor rejected an operation.
#[derive(Debug, Error)]
pub enum ExecutorError {
    /// The node belongs to another context.
    #[error(
        "node \"{node}\" belongs to another context than the executor; create both from the same one"
    )]
    OtherContext {
        /// Fully qualified name of the node.
        node: String,
    },
    /// The node is already in this executor.
    #[error("node \"{node}\" is already in this executor; add it once")]
    NodeAlreadyAdded {
        /// Fully qualified name of the node.
        node: String,
    },
    /// The callback group is already in this executor.
    #[error("this callback group of node \"{node}\" is already in the executor; add it once")]
    GroupAlreadyAdded {
        /// Node of the callback group.
        node: String,
    },
    /// Another thread is spinning the executor.
    #[error("the executor is already spinning; give it more threads, or create another executor")]
    AlreadySpinning,
    /// The period of a static executor is zero.
    #[error("period = 0; use a positive period, or `spin` to run whenever something is ready")]
    ZeroPeriod,
    /// A thread could not be started.
    #[error(
        "executor thread cannot start: {reason}; use fewer threads, or raise the limit (`ulimit -u`)"
    )]
    ThreadSpawn {
        /// Error text of the operating system.
        reason: String,
    },
    /// The kernel rejected the thread settings.
    #[error(transparent)]
    Thread(#[from] ThreadError),
}
