//! Isolated executor: one thread per node or per callback group.
//!
//! Each thread has its own scheduling policy, priority and CPU affinity, so no
//! callback waits for one of another thread.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use pteros_runtime::thread::ThreadSettings;

use super::executor_core::{ExecutorCore, already_added, group_already_added};
use super::panic_policy::{PanicPayload, PanicPolicy};
use super::{ExecutorError, ExecutorHandle};
use crate::callback_groups::CallbackGroup;
use crate::context::Context;
use crate::node::Node;

/// Spins each node or callback group on its own thread, with its own scheduling
/// policy, priority and CPU affinity. No callback waits for one of another thread.
/// Thread-safe.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros::thread::{CpuList, Priority};
/// use pteros::{executors::IsolatedExecutor, thread::ThreadSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let (control, planner) = (context.create_node("control")?, context.create_node("planner")?);
/// let executor = IsolatedExecutor::new(&context);
/// let urgent = ThreadSettings {
///     priority: Some(Priority::new(80)?),
///     cpus: Some(CpuList::new([1])?),
///     ..ThreadSettings::default()
/// };
/// executor.add_node(&control, urgent)?;
/// executor.add_node(&planner, ThreadSettings::default())?;
/// executor.spin()?;
/// # Ok(())
/// # }
/// ```
pub struct IsolatedExecutor {
    context: Context,
    on_panic: PanicPolicy,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    workers: Vec<IsolatedWorker>,
    join_handles: Vec<JoinHandle<Result<(), SpinFailure>>>,
    spinning: bool,
}

/// One thread: the node or group that it spins, and its settings.
struct IsolatedWorker {
    core: Arc<ExecutorCore>,
    settings: ThreadSettings,
}

enum SpinFailure {
    Panic(PanicPayload),
    Error(ExecutorError),
}

impl IsolatedExecutor {
    /// Creates an executor without nodes.
    pub fn new(context: &Context) -> Self {
        Self::with_panic_policy(context, PanicPolicy::default())
    }

    /// Like [`Self::new`], with a policy for panics in callbacks.
    pub fn with_panic_policy(context: &Context, policy: PanicPolicy) -> Self {
        Self {
            context: context.clone(),
            on_panic: policy,
            state: Arc::default(),
        }
    }

    /// Adds a node with its own thread, which starts at once if the executor spins.
    /// Returns the handle of that thread alone.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`],
    /// [`ExecutorError::ThreadSpawn`].
    pub fn add_node(
        &self,
        node: &Node,
        settings: ThreadSettings,
    ) -> Result<ExecutorHandle, ExecutorError> {
        let mut state = self.state.lock();
        if state
            .workers
            .iter()
            .any(|worker| worker.core.has_node(node))
        {
            return Err(already_added(node));
        }
        let core = ExecutorCore::new(&self.context, self.on_panic);
        core.add_node(node)?;
        self.add(&mut state, IsolatedWorker { core, settings })
    }

    /// Adds a callback group with its own thread, which starts at once if the
    /// executor spins. The rest of the node stays with its executor. Returns the
    /// handle of that thread alone.
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(
        &self,
        group: &CallbackGroup,
        settings: ThreadSettings,
    ) -> Result<ExecutorHandle, ExecutorError> {
        let mut state = self.state.lock();
        if state
            .workers
            .iter()
            .any(|worker| worker.core.has_group(group))
        {
            return Err(group_already_added(group));
        }
        let core = ExecutorCore::new(&self.context, self.on_panic);
        core.add_group(group)?;
        self.add(&mut state, IsolatedWorker { core, settings })
    }

    fn add(
        &self,
        state: &mut State,
        worker: IsolatedWorker,
    ) -> Result<ExecutorHandle, ExecutorError> {
        let core = worker.core.clone();
        if state.spinning {
            let started = self.start(&worker);
            let thread = started.inspect_err(|_| worker.core.release())?;
            state.join_handles.push(thread);
        }
        state.workers.push(worker);
        Ok(ExecutorHandle { core })
    }

    fn start(
        &self,
        worker: &IsolatedWorker,
    ) -> Result<JoinHandle<Result<(), SpinFailure>>, ExecutorError> {
        let (core, settings, state) = (
            worker.core.clone(),
            worker.settings.clone(),
            self.state.clone(),
        );
        let run = move || {
            // Parameters given at start-up take precedence over the settings in the
            // program.
            let from_parameters = core.thread_settings();
            let settings = ThreadSettings {
                priority: from_parameters.priority.or(settings.priority),
                cpus: from_parameters.cpus.or(settings.cpus),
                lock_memory: from_parameters.lock_memory || settings.lock_memory,
            };
            let result = match settings.apply() {
                Ok(()) => {
                    let _spin_guard = core.begin_spin();
                    core.spin_on_this_thread().map_err(SpinFailure::Panic)
                }
                Err(error) => Err(SpinFailure::Error(error.into())),
            };
            if result.is_err() {
                state.lock().cancel();
            }
            result
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "the executor's purpose is to create threads"
        )]
        let thread = std::thread::Builder::new()
            .name("executor".into())
            .spawn(run);
        thread.map_err(|error| ExecutorError::ThreadSpawn {
            reason: error.to_string(),
        })
    }

    /// Ends the current spin, or else the next one, after the running callbacks.
    /// Returns at once.
    pub fn cancel(&self) {
        self.state.lock().cancel();
    }

    /// Runs the callbacks of each thread until the context shuts down or
    /// [`IsolatedExecutor::cancel`] is called. Blocks; the threads end with it.
    /// Returns at once if there are no nodes.
    ///
    /// # Errors
    /// [`ExecutorError::AlreadySpinning`]; [`ExecutorError::ThreadSpawn`] and
    /// [`ExecutorError::Thread`] if a thread cannot start or get its settings,
    /// which ends the other threads.
    ///
    /// # Panics
    /// Resumes the panic of a callback under [`PanicPolicy::Process`].
    pub fn spin(&self) -> Result<(), ExecutorError> {
        let mut started = {
            let mut state = self.state.lock();
            // One lock for both: a node added concurrently is started exactly once.
            if std::mem::replace(&mut state.spinning, true) {
                return Err(ExecutorError::AlreadySpinning);
            }
            self.start_all(&mut state)
        };
        let mut panic = None;
        while let Some(thread) = self.pop_join_handle() {
            let result = thread.join().unwrap_or_else(|p| Err(SpinFailure::Panic(p)));
            match result {
                Ok(()) => {}
                Err(SpinFailure::Panic(payload)) => panic = panic.or(Some(payload)),
                Err(SpinFailure::Error(error)) => started = started.and(Err(error)),
            }
        }
        match panic {
            Some(payload) => resume_unwind(payload),
            None => started,
        }
    }

    fn start_all(&self, state: &mut State) -> Result<(), ExecutorError> {
        let State {
            workers,
            join_handles,
            ..
        } = state;
        let started = workers.iter().try_for_each(|worker| {
            join_handles.push(self.start(worker)?);
            Ok(())
        });
        if started.is_err() {
            state.cancel();
        }
        started
    }

    /// Takes the next thread to join. Threads may be added until none is left.
    fn pop_join_handle(&self) -> Option<JoinHandle<Result<(), SpinFailure>>> {
        let mut state = self.state.lock();
        let thread = state.join_handles.pop();
        if thread.is_none() {
            state.spinning = false;
            // Workers that never started must not keep the cancellation of this
            // spin.
            for worker in &state.workers {
                drop(worker.core.begin_spin());
            }
        }
        thread
    }
}

impl State {
    fn cancel(&self) {
        for worker in &self.workers {
            worker.core.cancel();
        }
    }
}

impl Drop for IsolatedExecutor {
    fn drop(&mut self) {
        for worker in self.state.lock().workers.drain(..) {
            worker.core.release();
        }
    }
}

impl fmt::Debug for IsolatedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("IsolatedExecutor")
            .field("threads", &state.workers.len())
            .field("spinning", &state.spinning)
            .finish()
    }
}
