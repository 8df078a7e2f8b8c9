//! Executors: where and when user code runs.
//!
//! The thread that spins is the receive loop (see `pteros_rmw`): it sleeps in
//! the sockets' poll, runs the protocol and then the callbacks. Nothing is
//! rebuilt per spin; a callback costs O(1) whatever the number of entities.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use pteros_rmw::Core;
use pteros_rmw::ready::ReadyQueue;
use pteros_rmw::rtps::time::Instant;

use crate::context::Context;
use crate::node::Node;
use crate::timer::TimerHeap;

/// Rounds of [`SingleThreadedExecutor::spin_some`]: enough to empty sockets that
/// give one message each.
const SOME_ROUNDS_MAX: usize = 64;

/// Where the work of an executor's nodes gathers.
pub(crate) struct Home {
    pub(crate) queue: Arc<ReadyQueue>,
    pub(crate) timers: TimerHeap,
}

impl Home {
    fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self {
            queue: core.ready_queue(),
            timers: TimerHeap::new(),
        })
    }
}

/// Runs the callbacks of its nodes one after the other, on the thread that
/// spins it.
///
/// Timers go first, then samples and events in the order they became ready;
/// between two rounds the sockets are served. It may be moved to another thread,
/// not shared; several executors, each with nodes of its own, may spin at once.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let (left, right) = (context.node("left")?, context.node("right")?);
/// let mut executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&left);
/// executor.add_node(&right);
/// executor.spin();
/// # Ok(())
/// # }
/// ```
pub struct SingleThreadedExecutor {
    context: Context,
    home: Arc<Home>,
    nodes: Vec<Node>,
    /// One thread at a time: its bed and its callbacks are not shared.
    _not_sync: PhantomData<Cell<()>>,
}

impl SingleThreadedExecutor {
    /// An executor without nodes.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            home: Home::new(context.core()),
            nodes: Vec::new(),
            _not_sync: PhantomData,
        }
    }

    /// Takes a node over, from another executor if one had it. The node must
    /// be of the executor's context.
    ///
    /// # Panics
    /// When the node is of another context.
    pub fn add_node(&mut self, node: &Node) {
        assert!(
            Arc::ptr_eq(node.core().core(), self.context.core()),
            "node {} is of another context than the executor",
            node.fully_qualified_name()
        );
        if self.position(node).is_some() {
            return;
        }
        node.core().move_to(&self.home);
        self.nodes.push(node.clone());
    }

    /// Lets a node go: back to the executor that had it before, if that still
    /// exists; else its callbacks wait until another executor takes it.
    pub fn remove_node(&mut self, node: &Node) {
        if let Some(at) = self.position(node) {
            let node = self.nodes.remove(at);
            node.core().leave(&self.home);
        }
    }

    fn position(&self, node: &Node) -> Option<usize> {
        let is_it = |member: &Node| Arc::ptr_eq(member.core(), node.core());
        self.nodes.iter().position(is_it)
    }

    /// Runs callbacks until the context shuts down: by [`Context::shutdown`] or
    /// Ctrl-C. Blocks.
    pub fn spin(&self) {
        let core = self.context.core();
        let _spinning = core.begin_spin(&self.home.queue);
        while !core.is_shut_down() {
            self.rounds(self.now_for_timers());
            core.drive_until_work(&self.home.queue, self.home.timers.next());
        }
        // We may have been chosen to drive next.
        core.hand_over(&self.home.queue);
    }

    /// Runs at most one callback, waiting for it at most `timeout`; returns
    /// whether one ran. Zero only looks.
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let core = self.context.core();
        let mut until = None;
        loop {
            if self.home.timers.run_one(self.now_for_timers()) {
                return true;
            }
            if let Some(task) = self.home.queue.pop() {
                task.run();
                return true;
            }
            let now = core.env.now();
            let until = *until.get_or_insert_with(|| now.after(timeout.into()));
            if now >= until || core.is_shut_down() {
                core.hand_over(&self.home.queue);
                return false;
            }
            core.drive(&self.home.queue, until.min(self.home.timers.next()));
        }
    }

    /// Runs the callbacks that are ready now, and those that become ready
    /// through what the sockets hold now; does not wait, and ends even when
    /// work keeps coming. Returns how many ran.
    pub fn spin_some(&self) -> usize {
        let core = self.context.core();
        let _spinning = core.begin_spin(&self.home.queue);
        let now = core.env.now();
        let mut ran = 0;
        for _ in 0..SOME_ROUNDS_MAX {
            core.drive(&self.home.queue, now);
            let round = self.rounds(now);
            if round == 0 {
                break;
            }
            ran += round;
        }
        ran
    }

    /// Runs callbacks until `done` says so, `timeout` has passed or the
    /// context shuts down. Returns `done`'s last word; it is asked between rounds
    /// of callbacks. Blocks.
    pub fn spin_until(&self, mut done: impl FnMut() -> bool, timeout: Duration) -> bool {
        let until = self.context.core().env.now().after(timeout.into());
        let mut met = done();
        if !met {
            self.spin_while(until, || {
                met = done();
                !met
            });
        }
        met
    }

    fn spin_while(&self, until: Instant, mut go_on: impl FnMut() -> bool) {
        let core = self.context.core();
        let _spinning = core.begin_spin(&self.home.queue);
        while !core.is_shut_down() {
            let now = core.env.now();
            self.rounds(now);
            if !go_on() || now >= until {
                break;
            }
            core.drive(&self.home.queue, until.min(self.home.timers.next()));
        }
        // We may have been chosen to drive next.
        core.hand_over(&self.home.queue);
    }

    /// The time, for which nobody asks without timers: a look at the clock costs
    /// as much as a message.
    fn now_for_timers(&self) -> Instant {
        match self.home.timers.next() {
            Instant::FAR_FUTURE => Instant::ZERO,
            _ => self.context.core().env.now(),
        }
    }

    /// A round, and at once another one if what the first published waits for
    /// callbacks that are ready now.
    fn rounds(&self, now: Instant) -> usize {
        let core = self.context.core();
        let mut ran = self.round(now);
        if core.end_round(&self.home.queue) {
            ran += self.round(now);
            core.end_round(&self.home.queue);
        }
        ran
    }

    /// Runs due timers and the tasks that are ready now, each once.
    fn round(&self, now: Instant) -> usize {
        let mut ran = 0;
        while self.home.timers.run_one(now) {
            ran += 1;
        }
        for _ in 0..self.home.queue.len() {
            let Some(task) = self.home.queue.pop() else {
                break;
            };
            task.run();
            ran += 1;
        }
        ran
    }
}

impl Drop for SingleThreadedExecutor {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.core().leave(&self.home);
        }
    }
}
