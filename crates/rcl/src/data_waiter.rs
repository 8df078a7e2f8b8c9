//! The samples of a subscription, a server or a client, as a wait set or a callback of the
//! user waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use pteros_runtime::Core;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pteros_runtime::service::{DeferredReplies, ServiceServer};

use crate::wait_set::WaitSource;

/// A callback of the user that a language runs for new samples. `()`: it has none.
pub trait DataListener: Default + Send + Sync + 'static {
    /// Whether a callback is set. Then samples wake no wait set.
    fn is_set(&self) -> bool {
        false
    }

    /// Reports that `received` samples have arrived so far. Returns false if the task has
    /// to try it again.
    fn report(&self, _received: u64) -> bool {
        true
    }
}

impl DataListener for () {}

/// Waits for the samples of a reader.
pub struct DataWaiter<L = ()> {
    core: Arc<Core>,
    /// The reader.
    pub reader: Arc<ReaderEndpoint>,
    /// Of a server: its replies that wait for their clients.
    pub replies: Option<Arc<DeferredReplies>>,
    /// The callback of the user.
    pub listener: L,
    /// Whether samples may be queued. A wait reads it for each entry, and locks the reader
    /// only if it is set.
    may_have_samples: AtomicBool,
}

impl<L: DataListener> DataWaiter<L> {
    /// The waiter of a subscription or a client.
    pub fn new(core: &Arc<Core>, reader: Arc<ReaderEndpoint>) -> Arc<Self> {
        Self::with_replies(core, reader, None)
    }

    /// The waiter of a server.
    pub fn of_server(core: &Arc<Core>, server: &Arc<ServiceServer>) -> Arc<Self> {
        let replies = DeferredReplies::new(core, server);
        Self::with_replies(core, server.requests.clone(), Some(replies))
    }

    fn with_replies(
        core: &Arc<Core>,
        reader: Arc<ReaderEndpoint>,
        replies: Option<Arc<DeferredReplies>>,
    ) -> Arc<Self> {
        let waiter = Arc::new(Self {
            core: core.clone(),
            reader,
            replies,
            listener: L::default(),
            may_have_samples: AtomicBool::new(true),
        });
        let task: Weak<Self> = Arc::downgrade(&waiter);
        waiter.reader.slot.set_task(task);
        waiter
    }
}

impl<L: DataListener> WaitSource for DataWaiter<L> {
    fn attach(&self, queue: &Arc<ReadyQueue>) {
        if self.reader.slot.is_attached_to(queue) || self.listener.is_set() {
            return;
        }
        self.reader.slot.attach(Some(queue.clone()), || false);
        // Another queue may have been woken for these.
        self.may_have_samples.store(true, Ordering::Release);
        if let Some(replies) = &self.replies {
            replies.attach(queue);
        }
    }

    fn detach(&self, queue: &Arc<ReadyQueue>) {
        self.reader.slot.detach(queue);
        if let Some(replies) = &self.replies {
            replies.detach(queue);
        }
    }

    fn is_ready(&self) -> bool {
        if !self.may_have_samples.load(Ordering::Acquire) {
            return false;
        }
        if self.reader.has_samples() {
            return true;
        }
        // Another thread may have set the flag for a sample after the check, so this checks
        // again. A later sample sets the flag again.
        self.may_have_samples.store(false, Ordering::Release);
        let has_samples = self.reader.has_samples();
        if has_samples {
            self.may_have_samples.store(true, Ordering::Release);
        }
        has_samples
    }
}

impl<L: DataListener> Task for DataWaiter<L> {
    fn run(&self) {
        self.reader.slot.begin_take();
        self.may_have_samples.store(true, Ordering::Release);
        if self.listener.is_set() {
            if !self.listener.report(self.reader.received_count()) {
                self.reader.slot.mark_ready();
            }
            // For a thread that waits for the sample beside the callback.
            self.core.wake_waiters();
        }
    }
}
