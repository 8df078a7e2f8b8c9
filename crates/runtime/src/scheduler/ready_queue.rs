//! Ready queue of an executor: tasks of user code that have work, and the wake-up of its
//! owner.
//!
//! One queue per executor. A producer of work pushes a task once, O(1); the
//! executor pops. The queue also records the state of its owner: awake, asleep in the
//! poll of the sockets (as the driver), or asleep on a condition variable while another
//! thread drives. It wakes the owner by the cheapest means, or not at all.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

use crate::lock::{Condvar, Mutex, MutexGuard, rank};
use crate::node_key::NodeKey;
use crate::scheduler::mutual_exclusion::MutualExclusionGate;
use crate::scheduler::ready_flag::ReadyFlag;

/// User code that runs when it has work.
pub trait Task: Send + Sync {
    /// Does one unit of work, one sample or one event. Marks itself ready again if
    /// more is waiting, so that others run in between.
    fn run(&self);

    /// Gate of its callback group, if several threads share a queue. `None`: it may run
    /// in parallel with others.
    fn gate(&self) -> Option<&MutualExclusionGate> {
        None
    }

    /// The node it belongs to.
    fn node(&self) -> Option<NodeKey> {
        None
    }

    /// A description for people: `subscription "/scan" of node "/mapper"`.
    fn describe(&self) -> String {
        "a callback".into()
    }
}

/// A queue entry that only wakes the owner.
struct WakeOnlyTask;

impl Task for WakeOnlyTask {
    fn run(&self) {}
}

/// How the owner waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OwnerState {
    Awake,
    InSockets,
    OnCondvar,
    Elsewhere,
}

struct QueueState {
    /// Weak, so that a task keeps nothing alive, in particular not the queue that its
    /// entity owns.
    tasks: VecDeque<Weak<dyn Task>>,
    owner: OwnerState,
    wake_pending: bool,
}

/// The queue of one executor. Bounded by one entry per entity, see [`ReadySlot`].
pub struct ReadyQueue {
    state: Mutex<QueueState, rank::ReadyQueue>,
    condvar: Condvar,
    wake_sockets: Box<dyn Fn() + Send + Sync>,
    /// Wakes an owner that sleeps in an external event loop.
    external_waker: Mutex<Option<ExternalWaker>, rank::ExternalWaker>,
}

/// Wakes an external event loop.
type ExternalWaker = Arc<dyn Fn() + Send + Sync>;

impl ReadyQueue {
    /// Creates an empty queue. `wake_sockets` wakes an owner that sleeps in its
    /// sockets.
    pub fn new(wake_sockets: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            state: Mutex::new(QueueState {
                tasks: VecDeque::new(),
                owner: OwnerState::Awake,
                wake_pending: false,
            }),
            condvar: Condvar::new(),
            wake_sockets: Box::new(wake_sockets),
            external_waker: Mutex::default(),
        }
    }

    /// Adds a task and wakes the owner if it sleeps.
    pub fn push(&self, task: Weak<dyn Task>) {
        let mut state = self.state.lock();
        state.tasks.push_back(task);
        self.wake_owner(state);
    }

    /// Takes the oldest task that still exists.
    pub fn pop(&self) -> Option<Arc<dyn Task>> {
        loop {
            let task = self.state.lock().tasks.pop_front()?;
            if let Some(task) = task.upgrade() {
                return Some(task);
            }
        }
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().tasks.is_empty()
    }

    /// Number of waiting tasks.
    pub fn len(&self) -> usize {
        self.state.lock().tasks.len()
    }

    /// Wakes the owner without work, to check its conditions again.
    pub fn wake(&self) {
        let mut state = self.state.lock();
        state.wake_pending = true;
        self.wake_owner(state);
    }

    /// Makes the owner return to its caller, because its timers or commands have changed.
    /// A mere wake-up does not, if the owner only waits for work.
    pub fn interrupt(&self) {
        let mut state = self.state.lock();
        if state.tasks.is_empty() {
            state.tasks.push_back(Weak::<WakeOnlyTask>::new());
        }
        self.wake_owner(state);
    }

    fn wake_owner(&self, mut state: MutexGuard<'_, QueueState, rank::ReadyQueue>) {
        match std::mem::replace(&mut state.owner, OwnerState::Awake) {
            OwnerState::Awake => {}
            OwnerState::InSockets => {
                drop(state);
                (self.wake_sockets)();
            }
            OwnerState::OnCondvar => {
                drop(state);
                self.condvar.notify_one();
            }
            OwnerState::Elsewhere => {
                drop(state);
                let waker = self.external_waker.lock().clone();
                if let Some(waker) = waker {
                    waker();
                }
            }
        }
    }

    /// Holds the owner's wake-up back, for a thread that both produces and does the work.
    /// Hold it for microseconds only: work added meanwhile waits for its end.
    pub fn hold_wake(&self) -> WakeHold<'_> {
        let mut state = self.state.lock();
        let owner = std::mem::replace(&mut state.owner, OwnerState::Awake);
        WakeHold { queue: self, owner }
    }

    /// Sets what wakes an owner that sleeps in an external event loop.
    pub(crate) fn set_external_waker(&self, waker: ExternalWaker) {
        *self.external_waker.lock() = Some(waker);
    }

    /// As [`Self::begin_socket_sleep`], in an external event loop.
    pub(crate) fn begin_external_sleep(&self) -> bool {
        self.begin_sleep(OwnerState::Elsewhere)
    }

    /// Whether a sleeping owner has a reason to wake: work or a wake call.
    pub fn has_wake_reason(&self) -> bool {
        let state = self.state.lock();
        state.wake_pending || !state.tasks.is_empty()
    }

    /// Discards earlier wake calls, because the owner is about to check its
    /// conditions anyway.
    pub(crate) fn clear_wake(&self) {
        self.state.lock().wake_pending = false;
    }

    /// Announces that the owner is about to sleep in its sockets. Returns false if
    /// there is work: then it must not.
    pub(crate) fn begin_socket_sleep(&self) -> bool {
        self.begin_sleep(OwnerState::InSockets)
    }

    fn begin_sleep(&self, rest: OwnerState) -> bool {
        let mut state = self.state.lock();
        if !state.tasks.is_empty() || std::mem::take(&mut state.wake_pending) {
            return false;
        }
        state.owner = rest;
        true
    }

    /// Announces that the owner is awake.
    pub(crate) fn end_sleep(&self) {
        self.state.lock().owner = OwnerState::Awake;
    }

    /// Sleeps until there is work, a wake call, or `limit` has passed.
    pub(crate) fn sleep(&self, limit: Option<std::time::Duration>) {
        let mut state = self.state.lock();
        if !state.tasks.is_empty() || std::mem::take(&mut state.wake_pending) {
            return;
        }
        state.owner = OwnerState::OnCondvar;
        match limit {
            Some(limit) => {
                self.condvar.wait_for(&mut state, limit);
            }
            None => self.condvar.wait(&mut state),
        }
        state.owner = OwnerState::Awake;
        state.wake_pending = false;
    }
}

/// Holds back the wake-up of a queue's owner. Dropping it wakes the owner if work is
/// left.
pub struct WakeHold<'q> {
    queue: &'q ReadyQueue,
    /// How the owner was waiting. It may have started or ended a wait since, so that a
    /// producer may wake it once without need.
    owner: OwnerState,
}

impl WakeHold<'_> {
    /// Runs the tasks that wait now on the calling thread, each once.
    pub fn run_tasks(&self) {
        for _ in 0..self.queue.len() {
            let mut state = self.queue.state.lock();
            let Some(task) = state.tasks.pop_front() else {
                return;
            };
            match task.upgrade() {
                Some(task) => {
                    drop(state);
                    task.run();
                }
                // It may be an interrupt, which the owner must see.
                None => state.wake_pending = true,
            }
        }
    }
}

impl Drop for WakeHold<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        if state.owner == OwnerState::Awake {
            state.owner = self.owner;
        }
        if !state.tasks.is_empty() || state.wake_pending {
            self.queue.wake_owner(state);
        }
    }
}

/// An entity's position in the queue of the executor that spins its node.
///
/// Holds at most one queue entry at a time, however much work arrives.
#[derive(Default)]
pub struct ReadySlot {
    queued: ReadyFlag,
    /// Address of the queue in `target`; null: none. It is compared, never followed.
    attached: AtomicPtr<ReadyQueue>,
    target: Mutex<SlotTarget, rank::ReadySlot>,
}

#[derive(Default)]
struct SlotTarget {
    queue: Option<Arc<ReadyQueue>>,
    task: Option<Weak<dyn Task>>,
}

impl ReadySlot {
    /// Sets the task that runs when the entity is ready.
    pub fn set_task(&self, task: Weak<dyn Task>) {
        self.target.lock().task = Some(task);
    }

    /// Whether the entity is in `queue`: one load, for callers that attach it before each
    /// wait. Another thread may move it meanwhile, as it may after [`Self::attach`].
    pub fn is_attached_to(&self, queue: &Arc<ReadyQueue>) -> bool {
        // The slot keeps its queue alive, so no other has this address.
        std::ptr::eq(self.attached.load(Ordering::Acquire), Arc::as_ptr(queue))
    }

    /// Moves the entity to `queue` (`None`: no executor). Queues it at once if
    /// `pending` returns true. Returns whether another queue had it.
    pub fn attach(&self, queue: Option<Arc<ReadyQueue>>, pending: impl FnOnce() -> bool) -> bool {
        let mut target = self.target.lock();
        if let (Some(old), Some(new)) = (&target.queue, &queue)
            && Arc::ptr_eq(old, new)
        {
            return false;
        }
        let address = queue.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        self.attached.store(address.cast_mut(), Ordering::Release);
        let previous = std::mem::replace(&mut target.queue, queue);
        self.queued.clear();
        drop(target);
        let had_another = previous.is_some();
        drop(previous);
        // Checked after the change: later arrivals use the new queue.
        if pending() {
            self.mark_ready();
        }
        had_another
    }

    /// Moves the entity to no executor, unless it was moved from `queue` meanwhile.
    pub fn detach(&self, queue: &Arc<ReadyQueue>) {
        let mut target = self.target.lock();
        let is_there = |there: &Arc<ReadyQueue>| Arc::ptr_eq(there, queue);
        if !target.queue.as_ref().is_some_and(is_there) {
            return;
        }
        self.attached.store(std::ptr::null_mut(), Ordering::Release);
        let previous = target.queue.take();
        self.queued.clear();
        drop(target);
        drop(previous);
    }

    /// Notes that there is work.
    pub fn mark_ready(&self) {
        if !self.queued.set() {
            return;
        }
        let target = self.target.lock();
        match (&target.queue, &target.task) {
            (Some(queue), Some(task)) => queue.push(task.clone()),
            _ => self.queued.clear(),
        }
    }

    /// Called by the task before it checks for work, so that later work queues it again.
    pub fn begin_take(&self) {
        self.queued.begin_take();
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
    fn a_slot_knows_its_queue() {
        let queues = [(); 2].map(|()| Arc::new(ReadyQueue::new(|| {})));
        let slot = ReadySlot::default();
        assert!(!slot.is_attached_to(&queues[0]));
        for at in [0, 1] {
            slot.attach(Some(queues[at].clone()), || false);
            assert!(slot.is_attached_to(&queues[at]));
            assert!(!slot.is_attached_to(&queues[1 - at]));
        }
        slot.detach(&queues[0]);
        assert!(slot.is_attached_to(&queues[1]), "it was moved meanwhile");
        slot.detach(&queues[1]);
        assert!(!slot.is_attached_to(&queues[1]));
        slot.attach(Some(queues[0].clone()), || false);
        slot.attach(None, || false);
        assert!(!slot.is_attached_to(&queues[0]));
    }

    /// A queue whose owner sleeps in its sockets, and how often it was woken there.
    fn sleeping() -> (ReadyQueue, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let queue = ReadyQueue::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert!(queue.begin_socket_sleep());
        (queue, wakes)
    }

    #[test]
    fn a_producer_that_does_its_work_wakes_nobody() {
        let (queue, wakes) = sleeping();
        let task = Arc::new(Count(AtomicUsize::new(0)));
        let weak: Weak<Count> = Arc::downgrade(&task);
        let hold = queue.hold_wake();
        queue.push(weak.clone());
        hold.run_tasks();
        drop(hold);
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert_eq!(wakes.load(Ordering::Relaxed), 0);
        queue.push(weak);
        assert_eq!(wakes.load(Ordering::Relaxed), 1, "it sleeps as before");
    }

    #[test]
    fn what_a_held_wake_up_leaves_wakes_the_owner() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let task: Weak<Count> = Arc::downgrade(&count);
        for left in ["a task", "an interrupt", "a wake-up"] {
            let (queue, wakes) = sleeping();
            let hold = queue.hold_wake();
            match left {
                "a task" => {
                    hold.run_tasks();
                    queue.push(task.clone());
                }
                "an interrupt" => {
                    queue.interrupt();
                    hold.run_tasks();
                }
                _ => queue.wake(),
            }
            assert_eq!(wakes.load(Ordering::Relaxed), 0, "{left}");
            drop(hold);
            assert_eq!(wakes.load(Ordering::Relaxed), 1, "{left}");
            assert!(queue.has_wake_reason(), "{left}");
        }
    }

    #[test]
    fn an_entity_is_queued_once_however_often_it_is_ready() {
        let queue = Arc::new(ReadyQueue::new(|| {}));
        let task: Arc<Count> = Arc::new(Count(AtomicUsize::new(0)));
        let slot = ReadySlot::default();
        let weak: Weak<Count> = Arc::downgrade(&task);
        slot.set_task(weak);
        slot.mark_ready();
        assert!(queue.is_empty(), "nobody spins it yet");
        slot.attach(Some(queue.clone()), || true);
        slot.mark_ready();
        slot.mark_ready();
        assert_eq!(queue.len(), 1);
        slot.begin_take();
        slot.mark_ready();
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn an_entity_that_moved_meanwhile_stays_where_it_is() {
        let [first, second] = [(); 2].map(|()| Arc::new(ReadyQueue::new(|| {})));
        let task: Arc<Count> = Arc::new(Count(AtomicUsize::new(0)));
        let slot = ReadySlot::default();
        let weak: Weak<Count> = Arc::downgrade(&task);
        slot.set_task(weak);
        assert!(!slot.attach(Some(first.clone()), || false));
        assert!(slot.attach(Some(second.clone()), || false));
        assert!(!slot.attach(Some(second.clone()), || false));
        slot.detach(&first);
        slot.mark_ready();
        assert_eq!((first.len(), second.len()), (0, 1));
        slot.detach(&second);
        slot.mark_ready();
        assert_eq!(second.len(), 1, "nobody waits for it");
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
        assert!(!queue.begin_socket_sleep(), "there is work");
        queue.pop();
        assert!(queue.begin_socket_sleep());
        queue.push(task.clone());
        queue.push(task);
        assert_eq!(rings.load(Ordering::Relaxed), 1);
    }
}
