//! Errors of contexts, of nodes and their entities, and of executors.

use pteros_runtime::thread::ThreadError;
use thiserror::Error;

pub use pteros_rcl::error::{
    ArgumentsError, ContentFilterError, ContextError, CreateError, EndpointError, GroupError,
    OpenError, PublishError, QosChangeError,
};

/// Why an executor or a wait set rejected an operation.
#[derive(Error)]
pub enum ExecutorError {
    /// The entity belongs to another context.
    #[error("{entity} belongs to another context than the {target}; create both from the same one")]
    OtherContext {
        /// The node or the entity.
        entity: String,
        /// Executor or wait set.
        target: &'static str,
    },
    /// The node or the callback group is already in this executor.
    #[error("{entity} is already in this executor; add it once")]
    AlreadyAdded {
        /// The node or the callback group.
        entity: String,
    },
    /// The entity is in a wait set or a static executor already.
    #[error("{entity} is already in a wait set; remove it from there, or add it once")]
    InWaitSet {
        /// Its kind and name.
        entity: String,
    },
    /// A chain is empty, has a callback twice, or is one too many.
    #[error("chain \"{chain}\" {problem}")]
    InvalidChain {
        /// Name of the chain.
        chain: String,
        /// The problem and the remedy.
        problem: String,
    },
    /// The node has as many unfinished tasks as allowed.
    #[error(
        "node \"{node}\": {max} spawned tasks are unfinished, the maximum; await some of them, or raise `NodeOptions::tasks_max`"
    )]
    TooManyTasks {
        /// Fully qualified name of the node.
        node: String,
        /// The limit.
        max: usize,
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

pteros_msg::debug_as_display!(ExecutorError);

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::tf::LookupError;

    /// `main` that returns one of them prints the Debug form.
    #[test]
    fn an_error_that_main_returns_prints_its_text() {
        let errors: [Box<dyn Error>; 4] = [
            Box::new(ContextError::DomainId(300)),
            Box::new(CreateError::ZeroPeriod),
            Box::new(ExecutorError::AlreadySpinning),
            Box::new(LookupError::EmptyFrameId("target")),
        ];
        for error in errors {
            assert_eq!(format!("{error:?}"), error.to_string());
        }
        let domain: Box<dyn Error> = Box::new(ContextError::DomainId(300));
        assert!(format!("{domain:?}").starts_with("domain 300: its UDP ports"));
    }
}
