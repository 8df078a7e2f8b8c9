//! The event statuses of a publisher or subscription, as a wait set or callbacks of the
//! user wait for them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::Core;
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::ready_queue::{ReadyQueue, Task};

use crate::event_status::{EventStatus, EventStatuses, StatusKind};
use crate::wait_set::WaitSource;

/// Callbacks of the user that a language runs for changes of statuses. `()`: it has none.
pub trait EventListener: Send + Sync + 'static {
    /// Whether a callback is set. Then events wake no wait set.
    fn is_set(&self) -> bool {
        false
    }

    /// Counts a change of a status.
    fn note(&self, _kind: StatusKind) {}

    /// Discards the count, because the status was taken.
    fn note_taken(&self, _kind: StatusKind) {}

    /// Reports the changes. Returns false if the task has to try it again.
    fn report(&self) -> bool {
        true
    }
}

impl EventListener for () {}

/// Waits for the events of an endpoint, and has its statuses.
pub struct EventWaiter<L = ()> {
    core: Arc<Core>,
    /// The queued events.
    pub events: Arc<EndpointEvents>,
    /// Whether it is a subscription's.
    pub is_reader: bool,
    /// The callbacks of the user.
    pub listener: L,
    statuses: Mutex<EventStatuses>,
    /// Kinds with changes that were not taken, one bit each. Written under the lock of
    /// `statuses`; a wait reads it without the lock.
    untaken_kinds: AtomicU32,
}

fn bit(kind: StatusKind) -> u32 {
    1 << kind as u32
}

impl<L: EventListener> EventWaiter<L> {
    /// The waiter of an endpoint with these events.
    pub fn new(
        core: &Arc<Core>,
        events: &Arc<EndpointEvents>,
        is_reader: bool,
        listener: L,
    ) -> Arc<Self> {
        let waiter = Arc::new(Self {
            core: core.clone(),
            events: events.clone(),
            is_reader,
            listener,
            statuses: Mutex::default(),
            untaken_kinds: AtomicU32::default(),
        });
        let task: Weak<Self> = Arc::downgrade(&waiter);
        waiter.events.slot.set_task(task);
        waiter
    }

    /// Applies the queued events.
    pub fn sync(&self) {
        let mut statuses = self.statuses.lock();
        while let Some(event) = self.events.take() {
            if let Some(kind) = statuses.apply(&event) {
                self.listener.note(kind);
                self.untaken_kinds.fetch_or(bit(kind), Ordering::Release);
            }
        }
    }

    /// Wakes `queue` at an event, unless a callback is set.
    pub fn attach(&self, queue: &Arc<ReadyQueue>) {
        if !self.events.slot.is_attached_to(queue) && !self.listener.is_set() {
            self.events.slot.attach(Some(queue.clone()), || false);
        }
    }

    /// Whether a kind has changes that were not taken. Its callback is called before.
    pub fn is_ready(&self, kind: StatusKind) -> bool {
        if !self.events.is_empty() {
            self.sync();
        }
        self.listener.report();
        self.untaken_kinds.load(Ordering::Acquire) & bit(kind) != 0
    }

    /// Takes the status of a kind, whose changes begin again at 0.
    pub fn take(&self, kind: StatusKind) -> EventStatus {
        self.sync();
        let mut statuses = self.statuses.lock();
        let status = statuses.take(kind);
        self.listener.note_taken(kind);
        self.untaken_kinds.fetch_and(!bit(kind), Ordering::Release);
        status
    }
}

impl<L: EventListener> Task for EventWaiter<L> {
    fn run(&self) {
        self.events.slot.begin_take();
        self.sync();
        if !self.listener.report() {
            self.events.slot.mark_ready();
        }
        // For a thread that waits for the event beside the one that runs the task.
        self.core.wake_waiters();
    }
}

/// One kind of status, as a wait set waits for it.
pub struct EventSource<L = ()> {
    /// The statuses of the endpoint.
    pub waiter: Arc<EventWaiter<L>>,
    /// The kind.
    pub kind: StatusKind,
}

impl<L: EventListener> WaitSource for EventSource<L> {
    fn attach(&self, queue: &Arc<ReadyQueue>) {
        self.waiter.attach(queue);
    }

    fn detach(&self, queue: &Arc<ReadyQueue>) {
        self.waiter.events.slot.detach(queue);
    }

    fn is_ready(&self) -> bool {
        self.waiter.is_ready(self.kind)
    }
}
