//! Wait sets: waiting for several things without an executor, for those who own
//! their loop.
//!
//! What is in a set stirs it instead of the executor that spins its node, until
//! it is removed. Waiting costs O(ready): nothing is asked that did not stir.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_msg::message::Service as ServiceType;
use pteros_rmw::reader::ReaderEndpoint;
use pteros_rmw::ready::Task;
use pteros_rmw::rtps::time::Instant;
use thiserror::Error;

use crate::context::Context;
use crate::executor::Home;
use crate::guard::GuardCondition;
use crate::node::{Attach, NodeCore};
use crate::service::{Client, Service};
use crate::subscription::Subscription;
use crate::timer::Timer;

/// What can be in a [`WaitSet`]: subscriptions, timers, guard conditions, clients
/// and services. Not for others to implement.
pub trait Waitable: Entity {}

impl<T: Send + 'static> Waitable for Subscription<T> {}
impl Waitable for Timer {}
impl Waitable for GuardCondition {}
impl<S: ServiceType> Waitable for Client<S> {}
impl<S: ServiceType> Waitable for Service<S> {}

/// What a wait set needs of an entity.
pub trait Entity {
    #[doc(hidden)]
    fn member(&self) -> Arc<dyn Member>;
}

/// An entity as a wait set has it. It stirs the set by its task, which stands in
/// the set's queue, or as a timer that is due.
#[allow(private_bounds, reason = "of our own entities only")]
pub trait Member: Task + Attach {
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "of our own entities only")]
    fn node_core(&self) -> &Arc<NodeCore>;

    /// Stirs for what comes from now on, and says whether something is there
    /// already.
    #[doc(hidden)]
    fn rearm(&self) -> bool;

    /// What its callback gets comes from here, if from a subscription or of
    /// requests or replies.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "of our own entities only")]
    fn reader(&self) -> Option<&ReaderEndpoint> {
        None
    }

    /// What has come to it so far, and of that, what waits.
    #[doc(hidden)]
    fn arrivals(&self) -> (u64, usize) {
        self.reader()
            .map_or((0, 0), |reader| (reader.received(), reader.waiting()))
    }

    /// The topic that makes it run.
    #[doc(hidden)]
    fn input_topic(&self) -> Option<&str> {
        None
    }
}

/// Names something in a [`WaitSet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct WaitKey(u32);

/// Why something is not in a wait set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WaitSetError {
    /// It is in this set or another, or in a static executor.
    #[error("{what} is in a wait set already; remove it from there, or add it once")]
    InUse {
        /// What.
        what: String,
    },
    /// It lives in another context.
    #[error("{what} is of another context than the wait set; make both from the same one")]
    OtherContext {
        /// What.
        what: String,
    },
}

/// Waits for several things at once, without an executor: rclcpp's `WaitSet`.
///
/// What is in the set is not called by any executor, whoever spins its node; the
/// set says that it is ready, and the caller takes what there is
/// ([`Subscription::take`], [`Call::take`](crate::Call::take),
/// [`Service::take_request`], [`GuardCondition::take`]) or has its callback run
/// once ([`WaitSet::run`]). What is left is ready again at the next wait. The set
/// keeps what is in it alive; callbacks of *events* of what is in it run inside
/// the wait. For one thread at a time.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::WaitSet;
/// use pteros::interfaces::sensor_msgs::msg::{Imu, LaserScan};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.node("fusion")?;
/// let scans = node.create_polled_subscription::<LaserScan>("scan", 10)?;
/// let motion = node.create_polled_subscription::<Imu>("imu", 10)?;
/// let mut set = WaitSet::new(&context);
/// let (scan, imu) = (set.add(&scans)?, set.add(&motion)?);
/// while !context.is_shut_down() {
///     set.wait(Duration::from_secs(1));
///     if set.is_ready(scan) && set.is_ready(imu) {
///         println!("{:?} {:?}", scans.take(), motion.take());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct WaitSet {
    context: Context,
    pub(crate) home: Arc<Home>,
    entries: Vec<Option<Entry>>,
    /// By the address of the entity, which is that of its task.
    keys: HashMap<usize, WaitKey>,
    ready: Vec<WaitKey>,
}

struct Entry {
    member: Arc<dyn Member>,
    is_ready: bool,
}

impl WaitSet {
    /// An empty set.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            home: Home::of_wait_set(context.core()),
            entries: Vec::new(),
            keys: HashMap::new(),
            ready: Vec::new(),
        }
    }

    /// Adds an entity, away from the executor that spins its node.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add(&mut self, entity: &impl Waitable) -> Result<WaitKey, WaitSetError> {
        let member = entity.member();
        let node = member.node_core();
        if !Arc::ptr_eq(node.core(), self.context.core()) {
            let what = member.describe();
            return Err(WaitSetError::OtherContext { what });
        }
        let free = self.entries.iter().position(Option::is_none);
        let at = free.unwrap_or(self.entries.len());
        let key = WaitKey(u32::try_from(at).unwrap_or(u32::MAX));
        // Before it may stir.
        let address = address_of(&*member);
        if !node.set_apart(address, &*member, &self.home) {
            let what = member.describe();
            return Err(WaitSetError::InUse { what });
        }
        self.keys.insert(address, key);
        let entry = Some(Entry {
            member,
            is_ready: false,
        });
        match self.entries.get_mut(at) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        // Room for all of them, so that a wait allocates nothing.
        self.ready.reserve(self.entries.len());
        Ok(key)
    }

    /// Gives an entity back to the executor that spins its node. False when it is
    /// not in the set.
    pub fn remove(&mut self, key: WaitKey) -> bool {
        let place = self.entries.get_mut(key.0 as usize);
        let Some(entry) = place.and_then(Option::take) else {
            return false;
        };
        self.ready.retain(|ready| *ready != key);
        let address = address_of(&*entry.member);
        self.keys.remove(&address);
        entry.member.node_core().end_apart(address, &*entry.member);
        true
    }

    /// How many are in the set.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Waits until something is ready, at most `timeout` or until the context
    /// shuts down; returns what is, in the order in which it became so. Blocks;
    /// drives the network itself. Zero only looks. Allocates nothing.
    pub fn wait(&mut self, timeout: Duration) -> &[WaitKey] {
        self.look_again();
        let now = self.context.core().env.now();
        let until = match self.ready.is_empty() {
            true => now.after(timeout.into()),
            // The sockets are looked at all the same.
            false => now,
        };
        self.gather(until, || false);
        &self.ready
    }

    /// Whether the last wait found it ready.
    pub fn is_ready(&self, key: WaitKey) -> bool {
        let entry = self.entries.get(key.0 as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.is_ready)
    }

    /// What the last wait found ready.
    pub fn ready(&self) -> &[WaitKey] {
        &self.ready
    }

    /// Runs the callback of what is ready once, on this thread, as an executor
    /// would: a timer ticks, a subscription handles one message. False when it
    /// is not in the set.
    pub fn run(&mut self, key: WaitKey) -> bool {
        let entry = self.entries.get(key.0 as usize).and_then(Option::as_ref);
        let member = entry.map(|entry| entry.member.clone());
        let is_here = member.is_some();
        if let Some(member) = member {
            member.run();
        }
        is_here
    }

    /// Looks at what was ready, which may be so still.
    pub(crate) fn look_again(&mut self) {
        let Self { entries, ready, .. } = self;
        ready.retain(|key| {
            let entry = entries.get_mut(key.0 as usize).and_then(Option::as_mut);
            entry.is_some_and(|entry| {
                entry.is_ready = entry.member.rearm();
                entry.is_ready
            })
        });
    }

    /// Drives the network until something else is ready, until then, or until
    /// somebody who recalls the queue wants it back.
    pub(crate) fn gather(&mut self, until: Instant, is_wanted: impl Fn() -> bool) {
        let context = self.context.clone();
        let (core, home) = (context.core(), self.home.clone());
        let before = self.ready.len();
        loop {
            core.drive(&home.queue, until.min(home.timers.next()));
            let now = core.env.now();
            self.collect(now);
            if self.ready.len() > before || now >= until || is_wanted() || core.is_shut_down() {
                break;
            }
        }
        // We may have been chosen to drive next.
        core.hand_over(&home.queue);
    }

    fn collect(&mut self, now: Instant) {
        // Each stands there once; those that come meanwhile are the next wait's.
        for _ in 0..self.home.queue.len() {
            let Some(task) = self.home.queue.pop() else {
                break;
            };
            match self.keys.get(&address_of_task(&*task)) {
                Some(key) => self.note_ready(*key),
                // An event, or what a client has to do for its calls.
                None => task.run(),
            }
        }
        while let Some(timer) = self.home.timers.pop_due(now) {
            let address = Arc::as_ptr(&timer).addr();
            if let Some(key) = self.keys.get(&address) {
                self.note_ready(*key);
            }
        }
    }

    fn note_ready(&mut self, key: WaitKey) {
        let entry = self.entries.get_mut(key.0 as usize);
        if let Some(entry) = entry.and_then(Option::as_mut)
            && !entry.is_ready
            // It may have been taken since it stirred.
            && entry.member.rearm()
        {
            entry.is_ready = true;
            self.ready.push(key);
        }
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        for at in 0..self.entries.len() {
            self.remove(WaitKey(u32::try_from(at).unwrap_or(u32::MAX)));
        }
    }
}

impl fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitSet")
            .field("len", &self.len())
            .field("ready", &self.ready)
            .finish()
    }
}

fn address_of(member: &dyn Member) -> usize {
    std::ptr::from_ref(member).cast::<()>().addr()
}

fn address_of_task(task: &dyn Task) -> usize {
    std::ptr::from_ref(task).cast::<()>().addr()
}
