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

pub use chain::{CHAINS_MAX, Chain, ChainGraph};
pub use chain_executor::ChainExecutor;
pub use chain_report::{ChainReport, ChainReports};
pub use executor_core::ExecutorHandle;
pub use isolated::IsolatedExecutor;
pub use multi_threaded::MultiThreadedExecutor;
pub use panic_policy::PanicPolicy;
pub(crate) use panic_policy::panic_message;
pub use polled::{NoDescriptor, PolledExecutor};
pub use single_threaded::SingleThreadedExecutor;
pub use spin::{spin, spin_until_future_complete};
pub use static_executor::{
    DataSemantics, Readiness, RoundOutput, StaticExecutor, StaticExecutorHandle, StepKey, Trigger,
};

pub use crate::error::ExecutorError;
