//! External contexts: contexts that a caller opens over the simulated clock and
//! network.
//!
//! The callers are tests of `pteros`. Executors run the callbacks through a
//! [`Runner`].

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use pteros_runtime::Core;

use crate::env::SimEnv;
use crate::world::{SimProcess, SimWorld, unique};

/// Rounds of reading the sockets of an external context per poll.
const DRAIN_ROUNDS: usize = 64;

/// Runs the callbacks of an external context.
pub trait Runner: Send {
    /// Runs what is ready and polls the driver once. Never blocks.
    fn run(&mut self);

    /// Nanoseconds until it has something to run even if nothing arrives.
    fn due(&self) -> Option<u64>;
}

/// A context that a caller has opened.
pub struct ExternalContext {
    core: Weak<Core>,
    /// `None` while it runs.
    runner: Option<Box<dyn Runner>>,
}

/// An action of the test at some time.
type ScheduledAction = Box<dyn FnOnce() + Send>;

/// Actions ordered by time, then by the order of scheduling.
#[derive(Default)]
pub(crate) struct ScheduledActions {
    planned: BTreeMap<(u64, u64), ScheduledAction>,
    serial: u64,
}

impl ScheduledActions {
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.planned.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn add(&mut self, at: u64, action: ScheduledAction) {
        self.serial += 1;
        self.planned.insert((at, self.serial), action);
    }
}

impl SimProcess {
    /// When the external context has something to do even if nothing arrives.
    pub(crate) fn external_due(&self, now: u64) -> Option<u64> {
        let external = self.external.as_ref().filter(|_| !self.blocked)?;
        let core = external.core.upgrade()?;
        let runner = external.runner.as_ref().and_then(|runner| runner.due());
        let runner = runner.map_or(u64::MAX, |span| now.saturating_add(span));
        let at = core.next_deadline().as_nanos().min(runner);
        let at = at.max(self.paused_until);
        (at < u64::MAX).then_some(at)
    }
}

impl SimWorld {
    /// The platform for the next context of a process.
    pub(crate) fn external_env(self: &Arc<Self>, process: usize) -> SimEnv {
        let mut processes = self.processes();
        let entry = &mut processes[process];
        entry.incarnations += 1;
        SimEnv {
            world: Arc::downgrade(self),
            process,
            host: entry.host,
            unique: unique(process, entry.incarnations),
            is_external: true,
            disk: None,
            buffer_bytes: 8 << 20,
        }
    }

    /// Attaches an external context, in place of the previous one.
    pub(crate) fn attach_external_context(&self, process: usize, core: &Weak<Core>) {
        let external = ExternalContext {
            core: core.clone(),
            runner: None,
        };
        let left = self.processes()[process].external.replace(external);
        drop(left);
    }

    /// Sets the runner of an external context.
    pub(crate) fn set_runner(&self, process: usize, runner: Option<Box<dyn Runner>>) {
        let left = match &mut self.processes()[process].external {
            Some(external) => std::mem::replace(&mut external.runner, runner),
            None => None,
        };
        // Dropped outside of the lock, because a context ends with its last holder.
        drop(left);
    }

    /// As [`SimWorld::poll_process`] for an external context. False if there is
    /// none.
    pub(crate) fn poll_external(&self, process: usize) -> bool {
        loop {
            let now = self.now();
            let (core, runner) = {
                let mut processes = self.processes();
                let entry = &mut processes[process];
                let Some(external) = &mut entry.external else {
                    return false;
                };
                if entry.blocked || entry.paused_until > now {
                    return true;
                }
                entry.polls_total += 1;
                let Some(core) = external.core.upgrade() else {
                    return true;
                };
                (core, external.runner.take())
            };
            match runner {
                Some(mut runner) => {
                    runner.run();
                    self.restore_runner(process, runner, &core);
                }
                None => {
                    core.drive_undriven(DRAIN_ROUNDS);
                }
            }
            self.check_memory(process, &core);
            let socket = self.processes()[process].socket;
            let has_input = socket.is_some_and(|s| self.network().has_input(s));
            if !has_input || self.has_failed() {
                return true;
            }
        }
    }

    /// Puts a runner back, unless another context has replaced its own meanwhile.
    fn restore_runner(&self, process: usize, runner: Box<dyn Runner>, core: &Arc<Core>) {
        let mut processes = self.processes();
        if let Some(external) = &mut processes[process].external
            && std::ptr::eq(external.core.as_ptr(), Arc::as_ptr(core))
            && external.runner.is_none()
        {
            external.runner = Some(runner);
            return;
        }
        drop(processes);
        drop(runner);
    }

    /// Runs the earliest scheduled action.
    pub(crate) fn run_scheduled_action(&self) {
        let action = self.scheduled_actions.lock().planned.pop_first();
        if let Some((_, action)) = action {
            action();
        }
    }
}
