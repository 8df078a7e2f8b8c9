//! A thread for each node, or each callback group.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use pteros_rmw::thread::ThreadSettings;

use super::crew::Crew;
use super::panic::{PanicPolicy, Payload};
use super::{ExecutorError, ExecutorHandle};
use crate::callback_group::CallbackGroup;
use crate::context::Context;
use crate::node::Node;

/// Spins each node, or each callback group, on a thread of its own with its own
/// scheduling policy, priority and CPUs. No callback waits for one of another
/// thread. Thread-safe.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros::thread::{Cpus, Priority};
/// use pteros::{IsolatedExecutor, ThreadSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let (control, planner) = (context.node("control")?, context.node("planner")?);
/// let executor = IsolatedExecutor::new(&context);
/// let urgent = ThreadSettings {
///     priority: Some(Priority::new(80)?),
///     cpus: Some(Cpus::new([1])?),
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
    cells: Vec<Cell>,
    threads: Vec<JoinHandle<Result<(), Failure>>>,
    spinning: bool,
}

/// What one thread spins, and how the thread is to be.
struct Cell {
    crew: Arc<Crew>,
    settings: ThreadSettings,
}

enum Failure {
    Panic(Payload),
    Error(ExecutorError),
}

impl IsolatedExecutor {
    /// An executor without nodes.
    pub fn new(context: &Context) -> Self {
        Self::with_panic_policy(context, PanicPolicy::default())
    }

    /// As [`Self::new`], and what ends when a callback panics.
    pub fn with_panic_policy(context: &Context, policy: PanicPolicy) -> Self {
        Self {
            context: context.clone(),
            on_panic: policy,
            state: Arc::default(),
        }
    }

    /// Gives a node a thread, at once if it spins. Returns the handle of that
    /// thread alone.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`],
    /// [`ExecutorError::NoThread`].
    pub fn add_node(
        &self,
        node: &Node,
        settings: ThreadSettings,
    ) -> Result<ExecutorHandle, ExecutorError> {
        let mut state = self.state.lock();
        if state.cells.iter().any(|cell| cell.crew.has_node(node)) {
            let node = node.fully_qualified_name();
            return Err(ExecutorError::AlreadyAdded { node });
        }
        let crew = Crew::new(&self.context, self.on_panic);
        crew.add_node(node)?;
        self.add(&mut state, Cell { crew, settings })
    }

    /// Gives a callback group a thread, at once if it spins; the rest of its node
    /// stays where it is. Returns the handle of that thread alone.
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(
        &self,
        group: &CallbackGroup,
        settings: ThreadSettings,
    ) -> Result<ExecutorHandle, ExecutorError> {
        let mut state = self.state.lock();
        if state.cells.iter().any(|cell| cell.crew.has_group(group)) {
            let node = group.node().path();
            return Err(ExecutorError::GroupAlreadyAdded { node });
        }
        let crew = Crew::new(&self.context, self.on_panic);
        crew.add_group(group)?;
        self.add(&mut state, Cell { crew, settings })
    }

    fn add(&self, state: &mut State, cell: Cell) -> Result<ExecutorHandle, ExecutorError> {
        let crew = cell.crew.clone();
        if state.spinning {
            let started = self.start(&cell);
            let thread = started.inspect_err(|_| cell.crew.release())?;
            state.threads.push(thread);
        }
        state.cells.push(cell);
        Ok(ExecutorHandle { crew })
    }

    fn start(&self, cell: &Cell) -> Result<JoinHandle<Result<(), Failure>>, ExecutorError> {
        let (crew, settings, all) = (cell.crew.clone(), cell.settings.clone(), self.state.clone());
        let run = move || {
            // Whoever starts the process knows better than who wrote the program.
            let said = crew.thread_settings();
            let settings = ThreadSettings {
                priority: said.priority.or(settings.priority),
                cpus: said.cpus.or(settings.cpus),
                lock_memory: said.lock_memory || settings.lock_memory,
            };
            let ended = match settings.apply() {
                Ok(()) => {
                    let _spinning = crew.begin_spin();
                    crew.spin_alone().map_err(Failure::Panic)
                }
                Err(error) => Err(Failure::Error(error.into())),
            };
            if ended.is_err() {
                all.lock().cancel();
            }
            ended
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "threads are what it is asked for"
        )]
        let thread = std::thread::Builder::new()
            .name("executor".into())
            .spawn(run);
        thread.map_err(|error| ExecutorError::NoThread {
            reason: error.to_string(),
        })
    }

    /// Ends the spin that goes on, or else the next one, after the callbacks that
    /// run now. Returns at once.
    pub fn cancel(&self) {
        self.state.lock().cancel();
    }

    /// Runs callbacks, each thread its own, until the context shuts down or
    /// [`IsolatedExecutor::cancel`] is called. Blocks; the threads end with it.
    /// Without nodes it returns at once.
    ///
    /// # Errors
    /// [`ExecutorError::AlreadySpinning`]; [`ExecutorError::NoThread`] and
    /// [`ExecutorError::Thread`] when a thread cannot be what it is to be, which
    /// ends the others.
    ///
    /// # Panics
    /// With the panic of a callback, as [`PanicPolicy::Process`] says.
    pub fn spin(&self) -> Result<(), ExecutorError> {
        let mut outcome = {
            let mut state = self.state.lock();
            // Under one lock: what is added meanwhile is started once.
            if std::mem::replace(&mut state.spinning, true) {
                return Err(ExecutorError::AlreadySpinning);
            }
            self.start_all(&mut state)
        };
        let mut panic = None;
        while let Some(thread) = self.next_thread() {
            let ended = thread.join().unwrap_or_else(|p| Err(Failure::Panic(p)));
            match ended {
                Ok(()) => {}
                Err(Failure::Panic(payload)) => panic = panic.or(Some(payload)),
                Err(Failure::Error(error)) => outcome = outcome.and(Err(error)),
            }
        }
        match panic {
            Some(payload) => resume_unwind(payload),
            None => outcome,
        }
    }

    fn start_all(&self, state: &mut State) -> Result<(), ExecutorError> {
        let State { cells, threads, .. } = state;
        let started = cells.iter().try_for_each(|cell| {
            threads.push(self.start(cell)?);
            Ok(())
        });
        if started.is_err() {
            state.cancel();
        }
        started
    }

    /// A thread to wait for; others may be added until there is none.
    fn next_thread(&self) -> Option<JoinHandle<Result<(), Failure>>> {
        let mut state = self.state.lock();
        let thread = state.threads.pop();
        if thread.is_none() {
            state.spinning = false;
            // Those that never began must not keep what ended the others.
            for cell in &state.cells {
                drop(cell.crew.begin_spin());
            }
        }
        thread
    }
}

impl State {
    fn cancel(&self) {
        for cell in &self.cells {
            cell.crew.cancel();
        }
    }
}

impl Drop for IsolatedExecutor {
    fn drop(&mut self) {
        for cell in self.state.lock().cells.drain(..) {
            cell.crew.release();
        }
    }
}

impl fmt::Debug for IsolatedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("IsolatedExecutor")
            .field("cells", &state.cells.len())
            .field("spinning", &state.spinning)
            .finish()
    }
}
