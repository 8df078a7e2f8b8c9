//! The ready queue: which user code has something to do.
//!
//! One queue per executor. Whoever produces work pushes a task once, O(1);
//! the executor pops. The queue also is the executor's bed: it knows whether
//! its owner is awake, sleeps in the sockets' poll (as the driver) or sleeps
//! on a condition variable (because another thread drives), and wakes it by
//! the cheapest means, or not at all.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex};

use crate::gate::Gate;
use crate::graph::NodeKey;

/// A piece of user code that may be run when it has work.
pub trait Task: Send + Sync {
    /// Does one unit of work (one sample, one event) and declares itself ready
    /// again if more is waiting, so that others get their turn between.
    fn run(&self);

    /// What keeps it from running beside others, where several threads share a
    /// queue. `None`: nothing does.
    fn gate(&self) -> Option<&Gate> {
        None
    }

    /// The node it belongs to.
    fn node(&self) -> Option<NodeKey> {
        None
    }

    /// What it is, for people: `subscription "/scan" of node "/mapper"`.
    fn describe(&self) -> String {
        "a callback".into()
    }
}

/// Stands in the queue for nothing but the owner's return.
struct Nobody;

impl Task for Nobody {
    fn run(&self) {}
}

/// How the owner rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    Awake,
    InSockets,
    OnCondvar,
    Elsewhere,
}

struct State {
    /// Weak: an entity that is gone takes nobody with it, least of all the
    /// queue that it owns itself.
    tasks: VecDeque<Weak<dyn Task>>,
    rest: Rest,
    nudged: bool,
}

/// The queue of one executor. Bounded by one entry per entity, see [`Slot`].
pub struct ReadyQueue {
    state: Mutex<State>,
    condvar: Condvar,
    wake_sockets: Box<dyn Fn() + Send + Sync>,
    /// Wakes an owner that sleeps in a loop of its own.
    ring: Mutex<Option<Ring>>,
}

/// Wakes a foreign loop.
type Ring = Arc<dyn Fn() + Send + Sync>;

impl ReadyQueue {
    /// An empty queue whose owner, when it sleeps in its sockets, is woken by
    /// `wake_sockets`.
    pub fn new(wake_sockets: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            state: Mutex::new(State {
                tasks: VecDeque::new(),
                rest: Rest::Awake,
                nudged: false,
            }),
            condvar: Condvar::new(),
            wake_sockets: Box::new(wake_sockets),
            ring: Mutex::default(),
        }
    }

    /// Adds a task and wakes the owner if it sleeps.
    pub fn push(&self, task: Weak<dyn Task>) {
        let mut state = self.state.lock();
        state.tasks.push_back(task);
        self.rouse(state);
    }

    /// Takes the task that has waited longest and still exists.
    pub fn pop(&self) -> Option<Arc<dyn Task>> {
        loop {
            let task = self.state.lock().tasks.pop_front()?;
            if let Some(task) = task.upgrade() {
                return Some(task);
            }
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().tasks.is_empty()
    }

    /// How many tasks wait.
    pub fn len(&self) -> usize {
        self.state.lock().tasks.len()
    }

    /// Wakes the owner without work, to look at the world again.
    pub fn nudge(&self) {
        let mut state = self.state.lock();
        state.nudged = true;
        self.rouse(state);
    }

    /// Makes the owner come back to whoever called it, which a nudge does not if
    /// it only waits for work: its timers or its orders are others now.
    pub fn recall(&self) {
        let mut state = self.state.lock();
        if state.tasks.is_empty() {
            state.tasks.push_back(Weak::<Nobody>::new());
        }
        self.rouse(state);
    }

    fn rouse(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        match std::mem::replace(&mut state.rest, Rest::Awake) {
            Rest::Awake => {}
            Rest::InSockets => {
                drop(state);
                (self.wake_sockets)();
            }
            Rest::OnCondvar => {
                drop(state);
                self.condvar.notify_one();
            }
            Rest::Elsewhere => {
                drop(state);
                let ring = self.ring.lock().clone();
                if let Some(ring) = ring {
                    ring();
                }
            }
        }
    }

    /// What wakes the owner when it sleeps in a loop of its own.
    pub(crate) fn ring(&self, ring: Ring) {
        *self.ring.lock() = Some(ring);
    }

    /// As [`Self::may_sleep_in_sockets`], in a loop of its own.
    pub(crate) fn may_sleep_elsewhere(&self) -> bool {
        self.may_sleep(Rest::Elsewhere)
    }

    /// Whether its owner, who sleeps, has a reason to wake up: work or a nudge.
    pub fn is_roused(&self) -> bool {
        let state = self.state.lock();
        state.nudged || !state.tasks.is_empty()
    }

    /// Forgets nudges that came before now: the owner is about to look anyway.
    pub(crate) fn forget_nudges(&self) {
        self.state.lock().nudged = false;
    }

    /// Announces that the owner is about to sleep in its sockets. False when
    /// there is work already: then it must not.
    pub(crate) fn may_sleep_in_sockets(&self) -> bool {
        self.may_sleep(Rest::InSockets)
    }

    fn may_sleep(&self, rest: Rest) -> bool {
        let mut state = self.state.lock();
        if !state.tasks.is_empty() || std::mem::take(&mut state.nudged) {
            return false;
        }
        state.rest = rest;
        true
    }

    /// Announces that the owner is awake again.
    pub(crate) fn awake(&self) {
        self.state.lock().rest = Rest::Awake;
    }

    /// Sleeps until there is work, a nudge, or `limit` has passed.
    pub(crate) fn sleep(&self, limit: Option<std::time::Duration>) {
        let mut state = self.state.lock();
        if !state.tasks.is_empty() || std::mem::take(&mut state.nudged) {
            return;
        }
        state.rest = Rest::OnCondvar;
        match limit {
            Some(limit) => {
                self.condvar.wait_for(&mut state, limit);
            }
            None => self.condvar.wait(&mut state),
        }
        state.rest = Rest::Awake;
        state.nudged = false;
    }
}

/// An entity's place in whichever queue its node is spun by.
///
/// Holds at most one queue entry at a time, however much work arrives.
pub struct Slot {
    queued: AtomicBool,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    queue: Option<Arc<ReadyQueue>>,
    task: Option<Weak<dyn Task>>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            queued: AtomicBool::new(false),
            place: Mutex::default(),
        }
    }
}

impl Slot {
    /// Says which code runs when the entity is ready.
    pub fn set_task(&self, task: Weak<dyn Task>) {
        self.place.lock().task = Some(task);
    }

    /// Moves the entity to `queue` (`None`: nobody spins it). Work that arrived
    /// before, if `pending` says that there is some, is queued at once.
    pub fn attach(&self, queue: Option<Arc<ReadyQueue>>, pending: impl FnOnce() -> bool) {
        let mut place = self.place.lock();
        if let (Some(old), Some(new)) = (&place.queue, &queue)
            && Arc::ptr_eq(old, new)
        {
            return;
        }
        let left = std::mem::replace(&mut place.queue, queue);
        // Release: pairs with the swap in `ready`.
        self.queued.store(false, Ordering::Release);
        drop(place);
        drop(left);
        // Looked at only now: what arrives from here on finds the new queue.
        if pending() {
            self.ready();
        }
    }

    /// Notes that there is work.
    pub fn ready(&self) {
        // AcqRel: the producer's sample is visible to whoever clears the flag.
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let place = self.place.lock();
        match (&place.queue, &place.task) {
            (Some(queue), Some(task)) => queue.push(task.clone()),
            _ => self.queued.store(false, Ordering::Release),
        }
    }

    /// Called by the task before it looks for work, so that work arriving from
    /// now on queues it again.
    pub fn taken(&self) {
        self.queued.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Count(AtomicUsize);

    impl Task for Count {
        fn run(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_entity_stands_in_the_queue_once_however_often_it_is_ready() {
        let queue = Arc::new(ReadyQueue::new(|| {}));
        let task: Arc<Count> = Arc::new(Count(AtomicUsize::new(0)));
        let slot = Slot::default();
        let weak: Weak<Count> = Arc::downgrade(&task);
        slot.set_task(weak);
        slot.ready();
        assert!(queue.is_empty(), "nobody spins it yet");
        slot.attach(Some(queue.clone()), || true);
        slot.ready();
        slot.ready();
        assert_eq!(queue.len(), 1);
        slot.taken();
        slot.ready();
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn only_a_sleeping_owner_is_woken() {
        let rings = Arc::new(AtomicUsize::new(0));
        let queue = ReadyQueue::new({
            let rings = rings.clone();
            move || {
                rings.fetch_add(1, Ordering::Relaxed);
            }
        });
        let owner = Arc::new(Count(AtomicUsize::new(0)));
        let task: Weak<Count> = Arc::downgrade(&owner);
        queue.push(task.clone());
        assert_eq!(rings.load(Ordering::Relaxed), 0);
        assert!(!queue.may_sleep_in_sockets(), "there is work");
        queue.pop();
        assert!(queue.may_sleep_in_sockets());
        queue.push(task.clone());
        queue.push(task);
        assert_eq!(rings.load(Ordering::Relaxed), 1);
    }
}
