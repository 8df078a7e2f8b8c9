//! Executors: where and when user code runs.
//!
//! The thread that spins is the receive loop (see `pteros_rmw`): it sleeps in
//! the sockets' poll, runs the protocol and then the callbacks. Nothing is
//! rebuilt per spin; a callback costs O(1) whatever the number of entities.

use std::sync::Arc;
use std::time::Duration;

use pteros_rmw::Core;
use pteros_rmw::ready::ReadyQueue;
use pteros_rmw::rtps::time::Instant;

use crate::context::Context;
use crate::node::Node;
use crate::timer::TimerHeap;

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
/// between two rounds the sockets are served.
pub struct SingleThreadedExecutor {
    context: Context,
    home: Arc<Home>,
    nodes: Vec<Node>,
}

impl SingleThreadedExecutor {
    /// An executor without nodes.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            home: Home::new(context.core()),
            nodes: Vec::new(),
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
        node.core().attach(Some(&self.home));
        self.nodes.push(node.clone());
    }

    /// Lets a node go; its callbacks wait until another executor takes it.
    pub fn remove_node(&mut self, node: &Node) {
        let before = self.nodes.len();
        self.nodes.retain(|n| !Arc::ptr_eq(n.core(), node.core()));
        if self.nodes.len() < before {
            node.core().attach(None);
        }
    }

    /// Runs callbacks until the context shuts down. Blocks.
    pub fn spin(&self) {
        self.spin_while(Instant::FAR_FUTURE, || true);
    }

    /// Runs at most one callback, waiting for it at most `timeout`; returns
    /// whether one ran.
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let core = self.context.core();
        let until = core.env.now().after(timeout.into());
        loop {
            let now = core.env.now();
            if self.home.timers.run_one(now) {
                return true;
            }
            if let Some(task) = self.home.queue.pop() {
                task.run();
                return true;
            }
            if now >= until || core.is_shut_down() {
                return false;
            }
            core.drive(&self.home.queue, until.min(self.home.timers.next()));
        }
    }

    /// Runs the callbacks that are ready now, and those that become ready
    /// through what the sockets hold now; does not wait. Returns how many ran.
    pub fn spin_some(&self) -> usize {
        let core = self.context.core();
        let now = core.env.now();
        let mut ran = 0;
        loop {
            core.drive(&self.home.queue, now);
            let round = self.round(now);
            if round == 0 {
                return ran;
            }
            ran += round;
        }
    }

    /// Runs callbacks until `done` says so, `timeout` has passed or the
    /// context shuts down. Returns `done`'s last word. Blocks.
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
        while !core.is_shut_down() {
            let now = core.env.now();
            self.round(now);
            if !go_on() || now >= until {
                return;
            }
            core.drive(&self.home.queue, until.min(self.home.timers.next()));
        }
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
            if node.core().is_at_home(&self.home) {
                node.core().attach(None);
            }
        }
    }
}
