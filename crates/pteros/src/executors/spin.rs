//! Spinning of one node on the calling thread, with an executor of its own.

use std::time::Duration;

use super::SingleThreadedExecutor;
use crate::node::Node;

/// Spins one node until the context shuts down. Blocks.
pub fn spin(node: &Node) {
    node.spin();
}

/// Spins one node until `future` completes and returns its output.
///
/// Returns `None` if `timeout` passes or the context shuts down first. Blocks. See
/// [`SingleThreadedExecutor::spin_until_future_complete`].
pub fn spin_until_future_complete<F: Future>(
    node: &Node,
    future: F,
    timeout: Duration,
) -> Option<F::Output> {
    node.executor().spin_until_future_complete(future, timeout)
}

impl Node {
    fn executor(&self) -> SingleThreadedExecutor {
        let executor = SingleThreadedExecutor::new(self.context());
        // Cannot fail: the executor is new and of the node's own context.
        let added = executor.add_node(self);
        debug_assert!(added.is_ok(), "{added:?}");
        executor
    }

    /// Runs the node's callbacks until the context shuts down. Blocks.
    pub fn spin(&self) {
        self.executor().spin();
    }

    /// Runs at most one callback, waiting for it at most `timeout`; true if one
    /// ran.
    ///
    /// In a loop, an executor of your own costs less.
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let timer_ran_last = &self.core().timer_ran_last;
        self.executor().spin_once_after(timeout, timer_ran_last)
    }

    /// Runs callbacks until `done` returns true, `timeout` passes or the context
    /// shuts down.
    ///
    /// Returns the last result of `done`. Blocks.
    pub fn spin_until(&self, done: impl FnMut() -> bool, timeout: Duration) -> bool {
        self.executor().spin_until(done, timeout)
    }
}
