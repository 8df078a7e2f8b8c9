//! Several threads that run the callbacks of the same nodes.
//!
//! Leader and followers: one thread at a time leads. It drives the network, and
//! when there is a callback to run it hands the lead to another thread and runs
//! it itself. So nothing is handed from thread to thread, a message that comes
//! alone wakes one thread, and the ready queue has one owner.

use std::collections::VecDeque;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use pteros_rmw::ready::Task;

use super::crew::Crew;
use super::panic::{PanicPolicy, Payload};
use super::{ExecutorError, ExecutorHandle};
use crate::callback_group::CallbackGroup;
use crate::context::Context;
use crate::node::Node;

/// Runs the callbacks of its nodes on several threads, as far as their
/// [groups](CallbackGroup) allow: those of one mutually exclusive group one after
/// the other, in the order they became ready, everything else side by side. A
/// group that always has work takes turns with the others. Thread-safe.
///
/// See [`CallbackGroup`] for an example.
pub struct MultiThreadedExecutor {
    crew: Arc<Crew>,
    threads: usize,
    /// Whether a thread leads.
    led: Mutex<bool>,
    free: Condvar,
    /// Callbacks whose groups let them in when the one before was done.
    admitted: Mutex<VecDeque<Arc<dyn Task>>>,
    /// Whose turn it is next, theirs or that of the ready queue.
    admitted_next: AtomicBool,
    /// The panic that ends the spin.
    panic: Mutex<Option<Payload>>,
}

impl MultiThreadedExecutor {
    /// An executor without nodes, of `threads` threads, the one that spins
    /// included; 0 is as many as the machine has processors.
    pub fn new(context: &Context, threads: usize) -> Self {
        Self::with_panic_policy(context, threads, PanicPolicy::default())
    }

    /// As [`Self::new`], and what ends when a callback panics.
    pub fn with_panic_policy(context: &Context, threads: usize, policy: PanicPolicy) -> Self {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            crew: Crew::new(context, policy),
            threads: match threads {
                0 => processors(),
                threads => threads,
            },
            led: Mutex::new(false),
            free: Condvar::new(),
            admitted: Mutex::default(),
            admitted_next: AtomicBool::new(false),
            panic: Mutex::default(),
        }
    }

    /// How many threads run callbacks.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What other threads and callbacks may do with it.
    pub fn handle(&self) -> ExecutorHandle {
        ExecutorHandle {
            crew: self.crew.clone(),
        }
    }

    /// As [`ExecutorHandle::add_node`].
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.crew.add_node(node)
    }

    /// As [`ExecutorHandle::remove_node`].
    pub fn remove_node(&self, node: &Node) -> bool {
        self.crew.remove_node(node)
    }

    /// As [`ExecutorHandle::add_callback_group`].
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.crew.add_group(group)
    }

    /// Runs callbacks until the context shuts down or the executor is
    /// [cancelled](ExecutorHandle::cancel). Blocks; the other threads end with it.
    ///
    /// # Errors
    /// [`ExecutorError::AlreadySpinning`], [`ExecutorError::NoThread`].
    ///
    /// # Panics
    /// With the panic of a callback, as [`PanicPolicy::Process`] says.
    #[allow(
        clippy::disallowed_methods,
        reason = "threads are what it is asked for"
    )]
    pub fn spin(&self) -> Result<(), ExecutorError> {
        let _spinning = self
            .crew
            .begin_spin()
            .ok_or(ExecutorError::AlreadySpinning)?;
        // The other threads inherit it.
        self.crew.thread_settings().apply()?;
        let started = std::thread::scope(|scope| {
            for number in 1..self.threads {
                let name = format!("executor-{number}");
                let builder = std::thread::Builder::new().name(name);
                if let Err(error) = builder.spawn_scoped(scope, || self.work()) {
                    self.handle().cancel();
                    return Err(ExecutorError::NoThread {
                        reason: error.to_string(),
                    });
                }
            }
            self.work();
            Ok(())
        });
        self.readmit();
        self.crew.context.core().hand_over(&self.crew.home.queue);
        match self.panic.lock().take() {
            Some(payload) => resume_unwind(payload),
            None => started,
        }
    }

    /// Opens the gates of those that were let in and did not run.
    fn readmit(&self) {
        let queue = &self.crew.home.queue;
        let admitted = std::mem::take(&mut *self.admitted.lock());
        for task in admitted {
            let mut next = Some(task);
            while let Some(task) = next {
                queue.push(Arc::downgrade(&task));
                next = task.gate().and_then(|gate| gate.leave());
            }
        }
    }

    fn work(&self) {
        while let Some(task) = self.lead() {
            if let Some(payload) = self.crew.run(&task, || task.run()) {
                self.panic.lock().get_or_insert(payload);
                self.handle().cancel();
            }
            if let Some(next) = task.gate().and_then(|gate| gate.leave()) {
                self.admitted.lock().push_back(next);
                self.crew.home.queue.recall();
            }
        }
    }

    /// Waits for the lead, then for a callback to run. `None` ends the thread.
    fn lead(&self) -> Option<Arc<dyn Task>> {
        let mut led = self.led.lock();
        while *led {
            self.free.wait(&mut led);
        }
        *led = true;
        drop(led);
        let task = self.next_task();
        *self.led.lock() = false;
        self.free.notify_one();
        task
    }

    fn next_task(&self) -> Option<Arc<dyn Task>> {
        let Crew { context, home, .. } = &*self.crew;
        while !self.crew.should_end() {
            // Those that waited at their group's gate take turns with the rest.
            // Relaxed: only who leads asks.
            if self.admitted_next.fetch_not(Ordering::Relaxed)
                && let Some(task) = self.admitted.lock().pop_front()
            {
                return Some(task);
            }
            let due = home.timers.pop_due(self.crew.now_for_timers());
            let due = due.map(|timer| timer as Arc<dyn Task>);
            if let Some(task) = due.or_else(|| home.queue.pop()) {
                if task.gate().is_none_or(|gate| gate.enter(&task)) {
                    return Some(task);
                }
                continue;
            }
            if let Some(task) = self.admitted.lock().pop_front() {
                return Some(task);
            }
            // What recalled us may have left the queue just now.
            if self.crew.should_end() {
                break;
            }
            context
                .core()
                .drive_until_work(&home.queue, home.timers.next());
        }
        None
    }
}

impl Drop for MultiThreadedExecutor {
    fn drop(&mut self) {
        self.crew.release();
    }
}

impl fmt::Debug for MultiThreadedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiThreadedExecutor")
            .field("threads", &self.threads)
            .field("executor", &self.handle())
            .finish()
    }
}
