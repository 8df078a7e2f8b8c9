//! Executor in an external event loop: a pollable file descriptor.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use pteros_runtime::external_event_loop::ExternalEventLoop;
use thiserror::Error;

use super::SingleThreadedExecutor;

/// A [`SingleThreadedExecutor`] for an external event loop (epoll, GLib, Qt, libuv,
/// mio, an async runtime). Its descriptor is readable when
/// [`PolledExecutor::spin_some`] has work. Timers, deadlines and wake-ups from
/// other threads are included, so the loop needs no timeout of its own.
///
/// ```no_run
/// use std::os::fd::AsFd;
///
/// use pteros::executors::PolledExecutor;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # fn wait_for(_: std::os::fd::BorrowedFd<'_>) {}
/// let context = Context::new()?;
/// let node = context.create_node("guest")?;
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
/// If the loop does not call `spin_some` for more than 50 ms, the background I/O
/// thread acknowledges incoming data, as it does during a long callback.
pub struct PolledExecutor {
    executor: SingleThreadedExecutor,
    event_loop: ExternalEventLoop,
}

impl PolledExecutor {
    /// Wraps an executor. The descriptor is readable at once, and the first
    /// [`PolledExecutor::spin_some`] runs the callbacks that waited.
    ///
    /// # Errors
    /// That of the operating system, in practice "too many open files". The executor
    /// ends; [`PolledExecutor::try_new`] returns it.
    pub fn new(executor: SingleThreadedExecutor) -> io::Result<Self> {
        Self::try_new(executor).map_err(|refused| refused.source)
    }

    /// As [`PolledExecutor::new`], but an executor without a descriptor can be spun, or
    /// wrapped later.
    ///
    /// # Errors
    /// As [`PolledExecutor::new`], with the executor.
    pub fn try_new(executor: SingleThreadedExecutor) -> Result<Self, NoDescriptor> {
        let (core, executor_queue) = executor.core_and_queue();
        let event_loop = match core.driver().external_event_loop(&executor_queue.ready) {
            Ok(event_loop) => event_loop,
            Err(source) => return Err(NoDescriptor { source, executor }),
        };
        let polled = Self {
            executor,
            event_loop,
        };
        polled.arm();
        Ok(polled)
    }

    /// Like [`SingleThreadedExecutor::spin_some`]. The descriptor stays readable
    /// while work is left.
    pub fn spin_some(&self) -> usize {
        let (core, executor_queue) = self.executor.core_and_queue();
        self.event_loop.disarm(core.driver(), &executor_queue.ready);
        // Re-arms also after a panic that the caller catches.
        let _rearm = RearmOnDrop(self);
        self.executor.spin_some()
    }

    fn arm(&self) {
        let (core, executor_queue) = self.executor.core_and_queue();
        self.event_loop.arm(
            core.driver(),
            &executor_queue.ready,
            executor_queue.timers.next(),
        );
    }

    /// The executor, to add and remove nodes.
    pub fn executor(&self) -> &SingleThreadedExecutor {
        &self.executor
    }

    /// Returns the executor, to be spun in another way.
    pub fn into_inner(self) -> SingleThreadedExecutor {
        let (core, executor_queue) = self.executor.core_and_queue();
        self.event_loop.disarm(core.driver(), &executor_queue.ready);
        self.executor
    }
}

/// An executor for which the system has no descriptor.
#[derive(Error)]
#[error(
    "no descriptor for the executor: {source}; close files, or raise the limit (`ulimit -n`), and \
     try again"
)]
pub struct NoDescriptor {
    /// Why there is none.
    pub source: io::Error,
    /// The executor, as it was.
    pub executor: SingleThreadedExecutor,
}

pteros_msg::debug_as_display!(NoDescriptor);

struct RearmOnDrop<'p>(&'p PolledExecutor);

impl Drop for RearmOnDrop<'_> {
    fn drop(&mut self) {
        self.0.arm();
    }
}

impl AsFd for PolledExecutor {
    /// An epoll descriptor, readable while there is work. Poll it level-triggered
    /// and do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event_loop.as_fd()
    }
}

impl fmt::Debug for PolledExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolledExecutor")
            .field(&self.executor)
            .finish()
    }
}
