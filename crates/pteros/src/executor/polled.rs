//! An executor inside a foreign event loop.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use pteros_rmw::foreign::Foreign;

use super::SingleThreadedExecutor;

/// A [`SingleThreadedExecutor`] for those who have an event loop already (epoll,
/// GLib, Qt, libuv, mio, an async runtime): a descriptor that is readable when
/// [`PolledExecutor::spin_some`] has something to do. Timers, deadlines and what
/// other threads bring are in it, so the loop needs no timeout of its own.
///
/// ```no_run
/// use std::os::fd::AsFd;
///
/// use pteros::PolledExecutor;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # fn wait_for(_: std::os::fd::BorrowedFd<'_>) {}
/// let context = Context::new()?;
/// let node = context.node("guest")?;
/// let executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&node)?;
/// let executor = PolledExecutor::new(executor)?;
/// while !context.is_shut_down() {
///     wait_for(executor.as_fd()); // by the loop's own means, level-triggered
///     executor.spin_some();
/// }
/// # Ok(())
/// # }
/// ```
///
/// While the loop is busy elsewhere for longer than 50 ms, the process's helper
/// thread acknowledges what comes, as it does during a long callback.
pub struct PolledExecutor {
    executor: SingleThreadedExecutor,
    foreign: Foreign,
}

impl PolledExecutor {
    /// Takes an executor over. It is ready at once: the first
    /// [`PolledExecutor::spin_some`] runs what has waited.
    ///
    /// # Errors
    /// The operating system's, in practice "too many open files".
    pub fn new(executor: SingleThreadedExecutor) -> io::Result<Self> {
        let (core, home) = executor.parts();
        let foreign = core.foreign(&home.queue)?;
        let polled = Self { executor, foreign };
        polled.arm();
        Ok(polled)
    }

    /// As [`SingleThreadedExecutor::spin_some`]. What is left afterwards leaves
    /// the descriptor readable.
    pub fn spin_some(&self) -> usize {
        let (core, home) = self.executor.parts();
        self.foreign.disarm(core, &home.queue);
        // Also after a panic that somebody catches.
        let _rearm = Rearm(self);
        self.executor.spin_some()
    }

    fn arm(&self) {
        let (core, home) = self.executor.parts();
        self.foreign.arm(core, &home.queue, home.timers.next());
    }

    /// The executor: nodes are added to it and removed from it as ever.
    pub fn executor(&self) -> &SingleThreadedExecutor {
        &self.executor
    }

    /// The executor, to be spun in another way.
    pub fn into_inner(self) -> SingleThreadedExecutor {
        let (core, home) = self.executor.parts();
        self.foreign.disarm(core, &home.queue);
        self.executor
    }
}

struct Rearm<'p>(&'p PolledExecutor);

impl Drop for Rearm<'_> {
    fn drop(&mut self) {
        self.0.arm();
    }
}

impl AsFd for PolledExecutor {
    /// An epoll descriptor: readable while there is something to do. To be polled
    /// level-triggered, not read from.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.foreign.as_fd()
    }
}

impl fmt::Debug for PolledExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolledExecutor")
            .field(&self.executor)
            .finish()
    }
}
