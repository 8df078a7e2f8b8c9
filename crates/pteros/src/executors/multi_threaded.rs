//! Multi-threaded executor, by the leader/followers pattern.
//!
//! One thread at a time is the leader and drives the network. When a callback is
//! ready, it hands leadership to another thread and runs the callback itself. No
//! work is passed between threads, a single message wakes one thread, and the ready
//! queue has one owner.

use std::collections::VecDeque;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use pteros_runtime::ready_queue::Task;

use super::executor_core::ExecutorCore;
use super::panic_policy::{PanicPayload, PanicPolicy};
use super::{ExecutorError, ExecutorHandle};
use crate::callback_groups::CallbackGroup;
use crate::context::Context;
use crate::node::Node;

/// Runs the callbacks of its nodes on several threads, as their
/// [callback groups](CallbackGroup) allow. Callbacks of one mutually exclusive
/// group run one after the other, in the order in which they became ready.
/// Everything else runs in parallel. A group that always has work alternates with
/// the others. Thread-safe.
///
/// See [`CallbackGroup`] for an example.
pub struct MultiThreadedExecutor {
    core: Arc<ExecutorCore>,
    threads: usize,
    /// Whether a thread is the leader.
    has_leader: Mutex<bool>,
    leader_left: Condvar,
    /// Callbacks admitted by their mutually exclusive group when the previous one
    /// ended.
    admitted: Mutex<VecDeque<Arc<dyn Task>>>,
    /// Whether admitted callbacks or the ready queue come first next time.
    admitted_first: AtomicBool,
    /// The panic that ends the spin.
    panic: Mutex<Option<PanicPayload>>,
}

impl MultiThreadedExecutor {
    /// Creates an executor without nodes. `threads` includes the thread that spins;
    /// 0 means one per processor.
    pub fn new(context: &Context, threads: usize) -> Self {
        Self::with_panic_policy(context, threads, PanicPolicy::default())
    }

    /// Like [`Self::new`], with a policy for panics in callbacks.
    pub fn with_panic_policy(context: &Context, threads: usize, policy: PanicPolicy) -> Self {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            core: ExecutorCore::new(context, policy),
            threads: match threads {
                0 => processors(),
                threads => threads,
            },
            has_leader: Mutex::new(false),
            leader_left: Condvar::new(),
            admitted: Mutex::default(),
            admitted_first: AtomicBool::new(false),
            panic: Mutex::default(),
        }
    }

    /// Number of threads that run callbacks.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns a handle for other threads and for callbacks.
    pub fn handle(&self) -> ExecutorHandle {
        ExecutorHandle {
            core: self.core.clone(),
        }
    }

    /// Adds a node; see [`ExecutorHandle::add_node`].
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.core.add_node(node)
    }

    /// Removes a node; see [`ExecutorHandle::remove_node`].
    pub fn remove_node(&self, node: &Node) -> bool {
        self.core.remove_node(node)
    }

    /// Adds a callback group; see [`ExecutorHandle::add_callback_group`].
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.core.add_group(group)
    }

    /// Runs callbacks until the context shuts down or the executor is
    /// [cancelled](ExecutorHandle::cancel). Blocks; the other threads end with it.
    ///
    /// # Errors
    /// [`ExecutorError::AlreadySpinning`], [`ExecutorError::ThreadSpawn`].
    ///
    /// # Panics
    /// Resumes the panic of a callback under [`PanicPolicy::Process`].
    #[allow(
        clippy::disallowed_methods,
        reason = "the executor's purpose is to create threads"
    )]
    pub fn spin(&self) -> Result<(), ExecutorError> {
        let _spin_guard = self
            .core
            .begin_spin()
            .ok_or(ExecutorError::AlreadySpinning)?;
        // The other threads inherit the settings.
        self.core.thread_settings().apply()?;
        let started = std::thread::scope(|scope| {
            for number in 1..self.threads {
                let name = format!("executor-{number}");
                let builder = std::thread::Builder::new().name(name);
                if let Err(error) = builder.spawn_scoped(scope, || self.run_thread()) {
                    self.handle().cancel();
                    return Err(ExecutorError::ThreadSpawn {
                        reason: error.to_string(),
                    });
                }
            }
            self.run_thread();
            Ok(())
        });
        self.requeue_admitted();
        self.core
            .context
            .core()
            .driver()
            .hand_over(&self.core.executor_queue.ready);
        match self.panic.lock().take() {
            Some(payload) => resume_unwind(payload),
            None => started,
        }
    }

    /// Returns admitted callbacks that did not run to the ready queue and opens
    /// their gates.
    fn requeue_admitted(&self) {
        let queue = &self.core.executor_queue.ready;
        let admitted = std::mem::take(&mut *self.admitted.lock());
        for task in admitted {
            let mut next = Some(task);
            while let Some(task) = next {
                queue.push(Arc::downgrade(&task));
                next = task.gate().and_then(|gate| gate.leave());
            }
        }
    }

    fn run_thread(&self) {
        while let Some(task) = self.lead_until_task() {
            if let Some(payload) = self.core.run(&task, || task.run()) {
                self.panic.lock().get_or_insert(payload);
                self.handle().cancel();
            }
            if let Some(next) = task.gate().and_then(|gate| gate.leave()) {
                self.admitted.lock().push_back(next);
                self.core.executor_queue.ready.interrupt();
            }
        }
    }

    /// Waits for leadership, then for a callback to run. `None` ends the thread.
    fn lead_until_task(&self) -> Option<Arc<dyn Task>> {
        let mut has_leader = self.has_leader.lock();
        while *has_leader {
            self.leader_left.wait(&mut has_leader);
        }
        *has_leader = true;
        drop(has_leader);
        let task = self.next_task();
        *self.has_leader.lock() = false;
        self.leader_left.notify_one();
        task
    }

    fn next_task(&self) -> Option<Arc<dyn Task>> {
        let ExecutorCore {
            context,
            executor_queue,
            ..
        } = &*self.core;
        while !self.core.should_end() {
            // Callbacks that waited at their group's gate alternate with the ready
            // queue. Relaxed: only the leader accesses the flag.
            if self.admitted_first.fetch_not(Ordering::Relaxed)
                && let Some(task) = self.admitted.lock().pop_front()
            {
                return Some(task);
            }
            let due = executor_queue.timers.pop_due(self.core.now_for_timers());
            let due = due.map(|timer| timer as Arc<dyn Task>);
            if let Some(task) = due.or_else(|| executor_queue.ready.pop()) {
                if task.gate().is_none_or(|gate| gate.enter(&task)) {
                    return Some(task);
                }
                continue;
            }
            if let Some(task) = self.admitted.lock().pop_front() {
                return Some(task);
            }
            // The task that interrupted the wait may already have left the queue.
            if self.core.should_end() {
                break;
            }
            context
                .core()
                .driver()
                .drive_until_work(&executor_queue.ready, executor_queue.timers.next());
        }
        None
    }
}

impl Drop for MultiThreadedExecutor {
    fn drop(&mut self) {
        self.core.release();
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
