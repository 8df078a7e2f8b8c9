//! Wait sets: waiting for several entities without an executor.
//!
//! A wait set is for programs with their own loop, as rclcpp's `WaitSet`. An entity
//! in a set wakes the set instead of the executor of its node, until it is removed.
//! A wait costs O(ready): only entities that woke the set are checked.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_rcl::wait_set::{self as rcl, Entries, FirstLook, WaitContext};
use pteros_runtime::ready_queue::Task;
use pteros_runtime::rtps::time::Instant;

use crate::context::Context;
use crate::error::ExecutorError;
use crate::executor_queue::ExecutorQueue;

pub use crate::waitable::{Waitable, WaitableEntity};

/// Identifies an entity in a [`WaitSet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct WaitKey(u32);

/// Waits for several entities at once, without an executor: rclcpp's `WaitSet`.
///
/// No executor runs the callback of an entity in the set. The set reports it as
/// ready, and the caller takes the data ([`Subscription::take`](crate::Subscription::take),
/// [`ResponseFuture::take`](crate::service::ResponseFuture::take),
/// [`Service::take_request`](crate::Service::take_request), [`GuardCondition::take`](crate::guard_condition::GuardCondition::take)) or runs its callback once
/// ([`WaitSet::run`]). Data that is left makes it ready again at the next wait. The
/// set keeps its entities alive. Their *event* callbacks run inside the wait. For
/// one thread at a time.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::wait_set::WaitSet;
/// use pteros::interfaces::sensor_msgs::msg::{Imu, LaserScan};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("fusion")?;
/// let scans = node.create_polled_subscription::<LaserScan>("scan".keep_last(10))?;
/// let motion = node.create_polled_subscription::<Imu>("imu".keep_last(10))?;
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
    pub(crate) set: Arc<rcl::WaitSet>,
    entries: WaitSetEntries,
}

struct WaitSetEntries {
    context: Context,
    executor_queue: Arc<ExecutorQueue>,
    list: Vec<Option<WaitSetEntry>>,
    /// Keyed by the address of the entity, which equals that of its task.
    keys: HashMap<usize, WaitKey>,
    ready: Vec<WaitKey>,
    /// Number of entries that were ready before the wait.
    ready_before: usize,
}

struct WaitSetEntry {
    entity: Arc<dyn WaitableEntity>,
    is_ready: bool,
}

impl WaitSet {
    /// Creates an empty set.
    pub fn new(context: &Context) -> Self {
        let executor_queue = ExecutorQueue::for_wait_set(context.core());
        let waits = WaitContext::new(context.core());
        let set = rcl::WaitSet::with_queue(&waits, executor_queue.ready.clone());
        Self {
            set: Arc::new(set),
            entries: WaitSetEntries {
                context: context.clone(),
                executor_queue,
                list: Vec::new(),
                keys: HashMap::new(),
                ready: Vec::new(),
                ready_before: 0,
            },
        }
    }

    /// Adds an entity, removing it from the executor of its node.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add(&mut self, entity: &impl Waitable) -> Result<WaitKey, ExecutorError> {
        let entity = entity.waitable_entity();
        let node = entity.node_core();
        if !Arc::ptr_eq(node.core(), self.entries.context.core()) {
            return Err(ExecutorError::OtherContext {
                entity: entity.describe(),
                target: "wait set",
            });
        }
        let entries = &mut self.entries;
        let free = entries.list.iter().position(Option::is_none);
        let index = free.unwrap_or(entries.list.len());
        let key = WaitKey(u32::try_from(index).unwrap_or(u32::MAX));
        // Before the entity can wake the set.
        let address = address_of(&*entity);
        if !node.add_to_wait_set(address, &*entity, &entries.executor_queue) {
            let entity = entity.describe();
            return Err(ExecutorError::InWaitSet { entity });
        }
        entries.keys.insert(address, key);
        let entry = Some(WaitSetEntry {
            entity,
            is_ready: false,
        });
        match entries.list.get_mut(index) {
            Some(place) => *place = entry,
            None => entries.list.push(entry),
        }
        // Reserve space for all entities, so that a wait does not allocate.
        entries.ready.reserve(entries.list.len());
        Ok(key)
    }

    /// Removes an entity, which returns to the executor of its node. Returns false
    /// if it is not in the set.
    pub fn remove(&mut self, key: WaitKey) -> bool {
        let entries = &mut self.entries;
        let place = entries.list.get_mut(key.0 as usize);
        let Some(entry) = place.and_then(Option::take) else {
            return false;
        };
        entries.ready.retain(|ready| *ready != key);
        let address = address_of(&*entry.entity);
        entries.keys.remove(&address);
        entry
            .entity
            .node_core()
            .remove_from_wait_set(address, &*entry.entity);
        true
    }

    /// Number of entities in the set.
    pub fn len(&self) -> usize {
        self.entries.keys.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.keys.is_empty()
    }

    /// Waits until an entity is ready, `timeout` has passed or the context shuts
    /// down; zero does not wait. Returns the ready entities in the order in which
    /// they became ready. Blocks; drives the network itself. Allocates nothing.
    pub fn wait(&mut self, timeout: Duration) -> &[WaitKey] {
        self.recheck_ready();
        let now = self.entries.context.core().platform.now();
        let until = if self.entries.ready.is_empty() {
            now.after(timeout.into())
        } else {
            // The sockets are polled all the same.
            now
        };
        self.wait_for_ready(until);
        &self.entries.ready
    }

    /// Whether the last wait found the entity ready.
    pub fn is_ready(&self, key: WaitKey) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_ready)
    }

    /// Entities that the last wait found ready.
    pub fn ready(&self) -> &[WaitKey] {
        &self.entries.ready
    }

    /// Runs the callback of an entity once, on this thread, as an executor would: a
    /// timer ticks, a subscription handles one message. Returns false if it is not
    /// in the set.
    pub fn run(&mut self, key: WaitKey) -> bool {
        let entry = self.entries.get(key);
        entry.inspect(|entry| entry.entity.run()).is_some()
    }

    /// Checks again which of the ready entities still are.
    pub(crate) fn recheck_ready(&mut self) {
        let WaitSetEntries { list, ready, .. } = &mut self.entries;
        ready.retain(|key| {
            let entry = list.get_mut(key.0 as usize).and_then(Option::as_mut);
            entry.is_some_and(|entry| {
                entry.is_ready = entry.entity.rearm();
                entry.is_ready
            })
        });
    }

    /// Drives the network until another entity is ready, `until` has passed, or the set is
    /// woken.
    pub(crate) fn wait_for_ready(&mut self, until: Instant) {
        self.entries.ready_before = self.entries.ready.len();
        // The sockets are polled in each wait.
        let first = match self.set.begin(&mut self.entries) {
            FirstLook::Ready => FirstLook::ReadyBeforePoll,
            first => first,
        };
        self.set.wait(&mut self.entries, first, until);
        self.set.take_wake();
    }
}

impl WaitSetEntries {
    fn get(&self, key: WaitKey) -> Option<&WaitSetEntry> {
        self.list.get(key.0 as usize).and_then(Option::as_ref)
    }

    fn mark_ready(&mut self, key: WaitKey) {
        let entry = self.list.get_mut(key.0 as usize);
        if let Some(entry) = entry.and_then(Option::as_mut)
            && !entry.is_ready
            // The data may have been taken since the wake-up.
            && entry.entity.rearm()
        {
            entry.is_ready = true;
            self.ready.push(key);
        }
    }
}

/// A wait looks only at the entities that woke the set.
impl Entries for WaitSetEntries {
    const LOOKS_AT_ALL: bool = false;

    fn run_task(&mut self, task: Arc<dyn Task>) {
        match self.keys.get(&address_of_task(&*task)) {
            Some(key) => self.mark_ready(*key),
            // An event callback, or the housekeeping of a client.
            None => task.run(),
        }
    }

    fn is_any_ready(&mut self) -> bool {
        let now = self.context.core().platform.now();
        while let Some(timer) = self.executor_queue.timers.pop_due(now) {
            if let Some(key) = self.keys.get(&address_of_task(&*timer)) {
                self.mark_ready(*key);
            }
        }
        self.ready.len() > self.ready_before
    }

    fn next_due(&self, _now: Instant) -> Instant {
        self.executor_queue.timers.next()
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        for index in 0..self.entries.list.len() {
            self.remove(WaitKey(u32::try_from(index).unwrap_or(u32::MAX)));
        }
    }
}

impl fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitSet")
            .field("len", &self.len())
            .field("ready", &self.entries.ready)
            .finish()
    }
}

fn address_of(entity: &dyn WaitableEntity) -> usize {
    std::ptr::from_ref(entity).cast::<()>().addr()
}

fn address_of_task(task: &dyn Task) -> usize {
    std::ptr::from_ref(task).cast::<()>().addr()
}
