//! Simulated time: what `/clock` says, for all nodes of a context that want it.
//!
//! One subscription for the process. Whichever thread receives a message notes the
//! time there and then ([`Attendant`](pteros_rmw::reader::Attendant)), while others
//! may be busy in user code, and queues the timers that are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_interfaces::rosgraph_msgs::msg::Clock as ClockMessage;
use pteros_msg::from_payload;
use pteros_rmw::Core;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::sample::{Body, Item};

use super::jump::{JumpKind, JumpTask, TimeJump};
use super::time::Time;
use crate::node::{TypeFacts, spec};
use crate::qos::QosProfile;
use crate::timer::{Entry, TimerCore};

/// The simulated time of a context. Nothing is subscribed to until a node wants it.
#[derive(Default)]
pub(crate) struct SimTime {
    /// 0 until the first message.
    nanos: AtomicI64,
    reader: Mutex<Option<Arc<ReaderEndpoint>>>,
    nodes: Mutex<Vec<Weak<NodeTime>>>,
    timers: Mutex<BinaryHeap<Reverse<Entry<u64>>>>,
}

impl SimTime {
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.nanos.load(Ordering::Acquire))
    }

    /// Subscribes to `/clock`, once, and names the reader as the node's.
    fn subscribe(self: &Arc<Self>, node: &NodeTime) {
        let core = &node.core;
        let mut reader = self.reader.lock();
        if reader.is_none() {
            let qos = QosProfile::clock();
            let ty = TypeFacts::of::<ClockMessage>();
            let (sim, waiters) = (Arc::downgrade(self), Arc::downgrade(core));
            let attendant = move |item: &Item| {
                let (Some(sim), Some(core)) = (sim.upgrade(), waiters.upgrade()) else {
                    return;
                };
                sim.hear(&item.body);
                core.wake_waiters();
            };
            let made = spec("/clock", ty, &qos, |qos| qos.to_reader())
                .map_err(|error| error.to_string())
                .and_then(|spec| {
                    let made = core.create_attended_reader(spec, Wants::Bytes, Box::new(attendant));
                    made.map_err(|error| error.to_string())
                });
            match made {
                Ok(made) => *reader = Some(made),
                Err(error) => {
                    tracing::error!("use_sim_time: no subscription to /clock: {error}");
                    return;
                }
            }
        }
        if let Some(reader) = &*reader
            && !node.attached.swap(true, Ordering::Relaxed)
        {
            core.attach_endpoint(node.node, &reader.announced());
        }
    }

    fn hear(&self, body: &Body) {
        let Body::Serialized(payload) = body else {
            return;
        };
        match from_payload::<ClockMessage>(payload) {
            Ok(message) => self.set(Time::from(&message.clock)),
            Err(error) => tracing::debug!("/clock: {error}"),
        }
    }

    fn set(&self, now: Time) {
        let before = self.nanos.swap(now.as_nanos(), Ordering::AcqRel);
        let delta = now.as_nanos().saturating_sub(before);
        if before == 0 || delta < 0 {
            self.each_node(NodeTime::restart_timers);
        }
        if before != 0 {
            let kind = JumpKind::Moved;
            self.each_node(|node| node.tell(TimeJump { kind, delta }));
        }
        self.queue_due(now);
    }

    fn each_node(&self, act: impl Fn(&NodeTime)) {
        let nodes: Vec<_> = {
            let mut nodes = self.nodes.lock();
            nodes.retain(|node| node.strong_count() > 0);
            nodes.iter().filter_map(Weak::upgrade).collect()
        };
        for node in nodes.iter().filter(|node| node.is_simulated()) {
            act(node);
        }
    }

    fn queue_due(&self, now: Time) {
        let now = u64::try_from(now.as_nanos()).unwrap_or(0);
        let mut due = Vec::new();
        let mut timers = self.timers.lock();
        while timers.peek().is_some_and(|entry| entry.0.due <= now) {
            due.extend(timers.pop().map(|entry| entry.0));
        }
        drop(timers);
        for entry in due {
            if let Some(timer) = entry.timer.upgrade() {
                timer.queue_tick(entry.due);
            }
        }
    }

    /// Queues the timer when that time has come, at once if it has.
    pub(crate) fn enlist(&self, due: u64, timer: Weak<TimerCore>) {
        let mut timers = self.timers.lock();
        if timers.len() == timers.capacity() {
            // Entries of timers that were started anew or dropped since.
            timers.retain(|Reverse(entry)| {
                let timer = entry.timer.upgrade();
                timer.is_some_and(|timer| timer.awaits(entry.due))
            });
        }
        timers.push(Reverse(Entry { due, timer }));
        drop(timers);
        self.queue_due(self.now());
    }
}

/// The ROS time of one node: simulated or the system's.
pub(crate) struct NodeTime {
    core: Arc<Core>,
    node: NodeKey,
    pub(crate) sim: Arc<SimTime>,
    simulated: AtomicBool,
    /// It is named as one of those who read `/clock`.
    attached: AtomicBool,
    timers: Mutex<Vec<Weak<TimerCore>>>,
    jumps: Mutex<Vec<Weak<JumpTask>>>,
    watches: Mutex<Vec<Weak<dyn TimeWatch>>>,
}

/// Hears of jumps at once, on whichever thread brings the message, under locks of
/// ours.
pub(crate) trait TimeWatch: Send + Sync {
    fn note_jump(&self, jump: TimeJump);
}

impl NodeTime {
    pub(crate) fn new(core: &Arc<Core>, node: NodeKey, sim: &Arc<SimTime>) -> Arc<Self> {
        Arc::new(Self {
            core: core.clone(),
            node,
            sim: sim.clone(),
            simulated: AtomicBool::new(false),
            attached: AtomicBool::new(false),
            timers: Mutex::default(),
            jumps: Mutex::default(),
            watches: Mutex::default(),
        })
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.load(Ordering::Acquire)
    }

    /// ROS time.
    pub(crate) fn now(&self) -> Time {
        match self.is_simulated() {
            true => self.sim.now(),
            false => Time::from_nanos(self.core.env.wall().as_nanos()),
        }
    }

    /// `use_sim_time` is this now.
    pub(crate) fn switch(self: &Arc<Self>, simulated: bool) {
        if self.is_simulated() == simulated {
            return;
        }
        let before = self.now();
        if simulated {
            self.sim.subscribe(self);
            let mut nodes = self.sim.nodes.lock();
            if !nodes.iter().any(|node| node.as_ptr() == Arc::as_ptr(self)) {
                nodes.push(Arc::downgrade(self));
            }
        }
        self.simulated.store(simulated, Ordering::Release);
        self.restart_timers();
        let delta = self.now().as_nanos().saturating_sub(before.as_nanos());
        let kind = match simulated {
            true => JumpKind::Activated,
            false => JumpKind::Deactivated,
        };
        self.tell(TimeJump { kind, delta });
        self.core.wake_waiters();
    }

    pub(crate) fn add_timer(&self, timer: &Arc<TimerCore>) {
        let mut timers = self.timers.lock();
        timers.retain(|timer| timer.strong_count() > 0);
        timers.push(Arc::downgrade(timer));
    }

    pub(super) fn add_jump(&self, task: &Arc<JumpTask>) {
        let mut jumps = self.jumps.lock();
        jumps.retain(|task| task.strong_count() > 0);
        jumps.push(Arc::downgrade(task));
    }

    /// Once per watch, however often it is asked.
    pub(crate) fn add_watch(&self, watch: &Arc<dyn TimeWatch>) {
        let mut watches = self.watches.lock();
        watches.retain(|known| known.strong_count() > 0);
        let is_known =
            |known: &Weak<dyn TimeWatch>| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(watch));
        if !watches.iter().any(is_known) {
            watches.push(Arc::downgrade(watch));
        }
    }

    /// The time is another one: periods begin now.
    fn restart_timers(&self) {
        let timers: Vec<_> = self
            .timers
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for timer in timers {
            timer.restart();
        }
    }

    fn tell(&self, jump: TimeJump) {
        let jumps: Vec<_> = self.jumps.lock().iter().filter_map(Weak::upgrade).collect();
        for task in jumps {
            task.note(jump);
        }
        let watches: Vec<_> = self
            .watches
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for watch in watches {
            watch.note_jump(jump);
        }
    }
}
