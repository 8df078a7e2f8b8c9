//! Callbacks for new data: the events executor never calls `rmw_wait`, so a thread of
//! the context sleeps in the poll of the sockets and runs them. For a message that stays in
//! the context, the thread that publishes runs them itself, as with other middlewares.
//!
//! The thread starts with the first callback. A context without callbacks has none.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use pteros_runtime::Core;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pteros_runtime::rtps::qos::History;
use pteros_runtime::rtps::time::Instant;
use pteros_runtime::service::{DeferredReplies, ServiceServer};
use pteros_runtime::writer::WriterEndpoint;

use crate::abi::EventCallback;
use crate::context::ContextState;
use crate::error::{Failure, Outcome};

/// The callback thread of a context.
pub(crate) struct Listener {
    core: Arc<Core>,
    queue: Arc<ReadyQueue>,
    is_stopped: Arc<AtomicBool>,
    thread: Arc<CallbackThread>,
}

/// Whether the thread runs.
#[derive(Default)]
struct CallbackThread {
    is_running: Mutex<bool>,
    ended: Condvar,
    /// Whether it was ever started: a publisher asks for each message.
    was_started: AtomicBool,
}

/// The part that a thread has in running callbacks now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing.
    None,
    /// It is a callback thread.
    CallbackThread,
    /// It has published, and runs the callbacks for that.
    Publisher,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::None) };
}

/// A role that ends with it.
struct RoleGuard;

impl RoleGuard {
    fn begin(role: Role) -> Self {
        ROLE.set(role);
        Self
    }
}

impl Drop for RoleGuard {
    fn drop(&mut self) {
        ROLE.set(Role::None);
    }
}

impl Listener {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self {
            queue: core.ready_queue(),
            core: core.clone(),
            is_stopped: Arc::default(),
            thread: Arc::default(),
        }
    }

    /// The queue whose tasks the thread runs. Starts the thread.
    fn start(&self) -> Outcome<Arc<ReadyQueue>> {
        let mut is_running = self.thread.is_running.lock();
        if !*is_running && !self.is_stopped.load(Ordering::Acquire) {
            let (core, queue) = (self.core.clone(), self.queue.clone());
            let (is_stopped, thread) = (self.is_stopped.clone(), self.thread.clone());
            let work = move || {
                let _role = RoleGuard::begin(Role::CallbackThread);
                while !is_stopped.load(Ordering::Acquire) && !core.is_shut_down() {
                    core.drive(&queue, Instant::FAR_FUTURE);
                    while let Some(task) = queue.pop() {
                        task.run();
                    }
                }
                core.hand_over(&queue);
                drop(core);
                *thread.is_running.lock() = false;
                thread.ended.notify_all();
            };
            let spawned = self.core.platform.spawn("pteros-callback", Box::new(work));
            spawned
                .map_err(|error| Failure::error(format!("start the callback thread: {error}")))?;
            *is_running = true;
            self.thread.was_started.store(true, Ordering::Release);
        }
        Ok(self.queue.clone())
    }

    /// Runs `publish`, which writes to `writer`. If the message stays in the context, the
    /// calling thread then runs the callbacks that it gave work, so no thread is woken.
    /// A callback that publishes leaves those to whoever called it.
    pub(crate) fn call_back_after<T>(
        &self,
        writer: &WriterEndpoint,
        publish: impl FnOnce() -> T,
    ) -> T {
        let has_callbacks = self.thread.was_started.load(Ordering::Acquire);
        // A KEEP_ALL writer may block, and others' callbacks would wait for that.
        let stays_here = || {
            let overwrites = writer.data.qos.history != History::KeepAll;
            overwrites && writer.intra_process_count() > 0
        };
        if !has_callbacks || ROLE.get() != Role::None || !stays_here() {
            return publish();
        }
        let hold = self.queue.hold_wake();
        let published = publish();
        let _role = RoleGuard::begin(Role::Publisher);
        hold.run_tasks();
        published
    }

    /// Ends the thread soon.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.queue.wake();
    }

    /// Waits until the thread has ended after [`Self::stop`], so that it keeps nothing
    /// of the context alive. A callback that never returns is given up after a second.
    pub(crate) fn join(&self) {
        let mut is_running = self.thread.is_running.lock();
        while *is_running {
            let waited = self
                .thread
                .ended
                .wait_for(&mut is_running, Duration::from_secs(1));
            if waited.timed_out() {
                break;
            }
        }
    }
}

/// A callback of the user. It is called under its own lock, so that none runs any
/// more once another one is set.
#[derive(Default)]
pub(crate) struct Callback {
    place: Mutex<Place>,
    /// Written under the lock of `place`. A wait asks for each entity, and has no time for
    /// the lock.
    is_set: AtomicBool,
}

/// The unread count outlives a callback: what one was told of, the next is not.
#[derive(Default)]
struct Place {
    registered: Option<Registered>,
    /// Items that some callback was told of, or that came before.
    told: u64,
}

struct Registered {
    function: unsafe extern "C" fn(*const c_void, usize),
    user_data: *const c_void,
}

impl Place {
    /// Calls the callback with a count above 0.
    fn call(&self, count: usize) {
        if let Some(callback) = self.registered.as_ref().filter(|_| count > 0) {
            // SAFETY: the user's function with the user's data.
            unsafe { (callback.function)(callback.user_data, count) };
        }
    }

    /// Marks all items up to `total` as told. Returns how many were not.
    fn mark_told(&mut self, total: u64) -> usize {
        let new = total.saturating_sub(self.told);
        self.told = self.told.max(total);
        usize::try_from(new).unwrap_or(usize::MAX)
    }
}

// SAFETY: rmw's contract lets any thread call the callback with its user data.
unsafe impl Send for Registered {}

impl Callback {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Sets it, or removes it. `unread` items are told at once.
    pub(crate) fn set(&self, function: EventCallback, user_data: *const c_void, unread: usize) {
        self.set_with(function, user_data, |_| unread);
    }

    /// As [`Self::set`], for items that are counted. `total` have ever arrived, and
    /// `queued` of them can be taken. Those that no callback was told of are told now.
    fn set_counted(
        &self,
        function: EventCallback,
        user_data: *const c_void,
        total: u64,
        queued: usize,
    ) {
        self.set_with(function, user_data, |place| {
            place.mark_told(total).min(queued)
        });
    }

    fn set_with(
        &self,
        function: EventCallback,
        user_data: *const c_void,
        unread: impl FnOnce(&mut Place) -> usize,
    ) {
        let mut place = self.place.lock();
        self.is_set.store(function.is_some(), Ordering::Release);
        place.registered = function.map(|function| Registered {
            function,
            user_data,
        });
        if place.registered.is_some() {
            let unread = unread(&mut place);
            place.call(unread);
        }
    }

    /// Its place, to call it. `None` for a publisher while another thread calls it, which
    /// may wait for a lock of that publisher.
    fn lock(&self) -> Option<MutexGuard<'_, Place>> {
        match ROLE.get() {
            Role::Publisher => self.place.try_lock(),
            Role::None | Role::CallbackThread => Some(self.place.lock()),
        }
    }

    /// Tells of the items beyond those that were told; `total` have ever arrived. Returns
    /// whether it could: otherwise the callback thread must.
    fn tell(&self, total: u64) -> bool {
        let Some(mut place) = self.lock() else {
            return false;
        };
        if place.registered.is_some() {
            let new = place.mark_told(total);
            place.call(new);
        }
        true
    }

    /// As [`Self::tell`], for a count of new items, which `take` takes.
    pub(crate) fn tell_new(&self, take: impl FnOnce() -> usize) -> bool {
        let Some(place) = self.lock() else {
            return false;
        };
        if place.registered.is_some() {
            place.call(take());
        }
        true
    }
}

/// The waiter for samples of a reader: a wait set, or a callback.
pub(crate) struct DataWaiter {
    core: Arc<Core>,
    pub(crate) reader: Arc<ReaderEndpoint>,
    callback: Callback,
    /// Samples may wait. A wait asks for each entity, and most have none: so it needs the
    /// lock of the reader only where this is set.
    may_have_samples: AtomicBool,
    /// Of a server: its replies that wait for their clients.
    replies: Option<Arc<DeferredReplies>>,
}

impl DataWaiter {
    pub(crate) fn new(core: &Arc<Core>, reader: Arc<ReaderEndpoint>) -> Arc<Self> {
        Self::with_replies(core, reader, None)
    }

    /// The waiter of a server.
    pub(crate) fn of_server(core: &Arc<Core>, server: &Arc<ServiceServer>) -> Arc<Self> {
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
            callback: Callback::default(),
            may_have_samples: AtomicBool::new(true),
            replies,
        });
        let task: std::sync::Weak<Self> = Arc::downgrade(&waiter);
        waiter.reader.slot.set_task(task);
        waiter
    }

    /// Wakes `queue` when a sample arrives, unless a callback is set.
    pub(crate) fn attach(&self, queue: &Arc<ReadyQueue>) {
        let is_attached = self.reader.slot.is_attached_to(queue);
        if !is_attached && !self.callback.is_set() {
            self.reader.slot.attach(Some(queue.clone()), || false);
            // The queue before, or none, was told of these.
            self.may_have_samples.store(true, Ordering::Release);
            if let Some(replies) = &self.replies {
                replies.attach(queue);
            }
        }
    }

    /// Whether a sample can be taken.
    pub(crate) fn is_ready(&self) -> bool {
        if !self.may_have_samples.load(Ordering::Acquire) {
            return false;
        }
        if self.reader.has_samples() {
            return true;
        }
        // The callback thread may have set the flag for a sample that came after the look,
        // so this looks again. A later sample sets the flag again.
        self.may_have_samples.store(false, Ordering::Release);
        let has_samples = self.reader.has_samples();
        if has_samples {
            self.may_have_samples.store(true, Ordering::Release);
        }
        has_samples
    }

    /// Sets or removes the callback.
    pub(crate) fn set_callback(
        &self,
        context: &ContextState,
        function: EventCallback,
        user_data: *const c_void,
    ) -> Outcome {
        if function.is_none() {
            self.callback.set(None, user_data, 0);
            self.reader.slot.attach(None, || false);
            if let Some(replies) = &self.replies {
                replies.detach(&context.listener.queue);
            }
            return Ok(());
        }
        let queue = context.listener.start()?;
        if let Some(replies) = &self.replies {
            replies.attach(&queue);
        }
        // In this order: a sample that comes between the two is told of later, not never.
        let total = self.reader.received_count();
        let queued = self.reader.queued_count();
        self.callback
            .set_counted(function, user_data, total, queued);
        let reader = &self.reader;
        reader
            .slot
            .attach(Some(queue), || reader.received_count() > total);
        Ok(())
    }
}

impl Task for DataWaiter {
    fn run(&self) {
        self.reader.slot.begin_take();
        self.may_have_samples.store(true, Ordering::Release);
        if self.callback.is_set() {
            if !self.callback.tell(self.reader.received_count()) {
                self.reader.slot.mark_ready();
            }
            // A thread that waits for the sample beside the callback.
            self.core.wake_waiters();
        }
    }
}

impl ContextState {
    /// The queue of the callback thread.
    pub(crate) fn callback_queue(&self) -> Outcome<Arc<ReadyQueue>> {
        self.listener.start()
    }
}
