//! Simulated time from /clock, for all nodes of a context that use it.
//!
//! A context has one subscription. The thread that receives a message updates the
//! time at once, through an inline listener of the reader, even if other threads
//! are busy in callbacks. It also queues the timers that are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_interfaces::rosgraph_msgs::msg::Clock as ClockMessage;
use pteros_msg::cdr::DecodeError;
use pteros_msg::from_payload;
use pteros_runtime::Core;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::sample::{QueuedSample, SampleBody};

use crate::clock::{ClockTimer, FirstTime, JumpThreshold, PendingJump, RosClock, TimeJump};
use crate::message_type_info::{MessageTypeInfo, endpoint_spec};
use crate::time::Time;
use crate::timer_heap::{ScheduledTimer, TimerEntry};
use pteros_runtime::qos::QosProfile;

/// Simulated time of a context. It subscribes when the first node uses it.
#[derive(Default)]
pub struct SimTime {
    /// 0 before the first message. No clock of a node is behind it, so that a timer which it
    /// makes due is due by its own clock.
    nanos: AtomicI64,
    reader: Mutex<Option<Arc<ReaderEndpoint>>>,
    /// Locked while the time changes.
    nodes: Mutex<Vec<Weak<NodeTime>>>,
    timers: Mutex<BinaryHeap<Reverse<TimerEntry<u64>>>>,
}

impl SimTime {
    fn now(&self) -> Time {
        Time::from_nanos(self.nanos.load(Ordering::Acquire))
    }

    /// Subscribes to `/clock` once, and lists the reader as an endpoint of the
    /// node.
    fn subscribe(self: &Arc<Self>, node: &NodeTime) {
        let core = &node.core;
        let mut reader = self.reader.lock();
        if reader.is_none() {
            let qos = QosProfile::clock();
            let ty = MessageTypeInfo::of::<ClockMessage>(&());
            let (sim, waiters) = (Arc::downgrade(self), Arc::downgrade(core));
            let listener = move |item: &QueuedSample| {
                let (Some(sim), Some(core)) = (sim.upgrade(), waiters.upgrade()) else {
                    return Ok(());
                };
                sim.handle_clock_message(&item.body)?;
                core.wake_waiters();
                Ok(())
            };
            let created = endpoint_spec("/clock", ty, &qos, |qos| qos.to_reader())
                .map_err(|error| error.to_string())
                .and_then(|spec| {
                    let created = core.create_reader_with_listener(
                        spec,
                        DeliveryForm::Bytes,
                        Box::new(listener),
                    );
                    created.map_err(|error| error.to_string())
                });
            match created {
                Ok(created) => *reader = Some(created),
                Err(error) => {
                    tracing::error!("use_sim_time: cannot subscribe to /clock: {error}");
                    return;
                }
            }
        }
        if let Some(reader) = &*reader
            && !node.is_listed_as_reader.swap(true, Ordering::Relaxed)
        {
            core.discovery()
                .attach_endpoint(node.node, &reader.announced());
        }
    }

    fn handle_clock_message(&self, body: &SampleBody) -> Result<(), DecodeError> {
        if let SampleBody::Serialized(payload) = body {
            let message = from_payload::<ClockMessage>(payload)?;
            self.set(Time::from(&message.clock));
        }
        Ok(())
    }

    fn set(&self, now: Time) {
        let mut known = self.nodes.lock();
        known.retain(|node| node.strong_count() > 0);
        let nodes: Vec<_> = known.iter().filter_map(Weak::upgrade).collect();
        self.nanos.fetch_min(now.as_nanos(), Ordering::AcqRel);
        for node in &nodes {
            node.make(node.clock.set_time(now.as_nanos()));
        }
        self.nanos.store(now.as_nanos(), Ordering::Release);
        drop(known);
        self.queue_due(now);
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

    /// As [`SimTime::schedule`], unless the timer is scheduled for that time already.
    pub fn keep_scheduled(&self, due: u64, timer: Weak<dyn ScheduledTimer>) {
        let is_same = |Reverse(entry): &Reverse<TimerEntry<u64>>| {
            entry.due == due && std::ptr::addr_eq(entry.timer.as_ptr(), timer.as_ptr())
        };
        let is_scheduled = self.timers.lock().iter().any(is_same);
        if !is_scheduled {
            self.schedule(due, timer);
        }
    }

    /// Queues the timer when simulated time reaches `due`, at once if it has.
    pub fn schedule(&self, due: u64, timer: Weak<dyn ScheduledTimer>) {
        let mut timers = self.timers.lock();
        if timers.len() == timers.capacity() {
            // Remove entries of timers that were reset or dropped.
            timers.retain(|Reverse(entry)| {
                let timer = entry.timer.upgrade();
                timer.is_some_and(|timer| timer.is_scheduled_at(entry.due))
            });
        }
        timers.push(Reverse(TimerEntry { due, timer }));
        drop(timers);
        self.queue_due(self.now());
    }
}

/// ROS time of one node: simulated or system time.
pub struct NodeTime {
    core: Arc<Core>,
    node: NodeKey,
    /// The simulated time of its context.
    pub sim: Arc<SimTime>,
    clock: RosClock<Weak<dyn TimeJumpObserver>>,
    /// The node is listed as a subscriber of `/clock` in the graph.
    is_listed_as_reader: AtomicBool,
}

/// Observer of time jumps, called at once on the receiving thread with our locks
/// held.
pub trait TimeJumpObserver: Send + Sync {
    /// Called for every jump that exceeds the threshold.
    fn handle_jump(&self, jump: TimeJump);
}

impl NodeTime {
    /// System time, until [`NodeTime::set_simulated`] says otherwise.
    pub fn new(core: &Arc<Core>, node: NodeKey, sim: &Arc<SimTime>) -> Arc<Self> {
        Arc::new(Self {
            core: core.clone(),
            node,
            sim: sim.clone(),
            clock: RosClock::new(FirstTime::StartsPeriods),
            is_listed_as_reader: AtomicBool::new(false),
        })
    }

    /// Whether `use_sim_time` is true.
    pub fn is_simulated(&self) -> bool {
        self.clock.is_simulated()
    }

    /// How often `use_sim_time` has changed.
    pub fn switches(&self) -> u64 {
        self.clock.switches()
    }

    /// Current ROS time.
    pub fn now(&self) -> Time {
        let simulated = self.clock.simulated_now();
        Time::from_nanos(simulated.unwrap_or_else(|| self.core.platform.wall_clock().as_nanos()))
    }

    /// Applies a change of `use_sim_time`.
    pub fn set_simulated(self: &Arc<Self>, simulated: bool) {
        if self.is_simulated() == simulated {
            return;
        }
        if simulated {
            self.sim.subscribe(self);
            let mut nodes = self.sim.nodes.lock();
            if !nodes.iter().any(|node| node.as_ptr() == Arc::as_ptr(self)) {
                // The clock keeps it for the switch.
                self.make(self.clock.set_time(self.sim.now().as_nanos()));
                nodes.push(Arc::downgrade(self));
            }
            drop(nodes);
        }
        self.make(self.clock.set_simulated(simulated));
        self.core.wake_waiters();
    }

    /// Makes a jump and reports it.
    fn make(&self, pending: Option<PendingJump<Weak<dyn TimeJumpObserver>>>) {
        let Some(pending) = pending else {
            return;
        };
        self.clock.commit(&pending);
        for observer in pending.callbacks.iter().filter_map(Weak::upgrade) {
            observer.handle_jump(pending.jump);
        }
    }

    /// Adds a timer in ROS time, which is told of jumps.
    pub fn add_timer(&self, timer: Weak<dyn ClockTimer>) {
        self.clock.add_timer(timer);
    }

    /// Adds an observer. One that was dropped is not called any more.
    pub fn add_jump_observer(
        &self,
        threshold: JumpThreshold,
        observer: Weak<dyn TimeJumpObserver>,
    ) {
        self.clock
            .retain_callbacks(|known| known.strong_count() > 0);
        self.clock.add_callback(threshold, observer);
    }
}
