//! Callbacks for new data. The events executor never calls `rmw_wait`, so a thread of the
//! context sleeps in the poll of the sockets and runs the callbacks. For a message within
//! the context, the publishing thread runs them itself, as with other middlewares.
//!
//! The thread starts with the first callback. A context without callbacks has none.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use pteros_rcl::data_waiter::DataListener;
use pteros_runtime::Core;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::qos::History;
use pteros_runtime::rtps::time::Instant;
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

/// State of the callback thread.
#[derive(Default)]
struct CallbackThread {
    is_running: Mutex<bool>,
    ended: Condvar,
    /// Whether it was ever started, which each publication checks.
    was_started: AtomicBool,
}

/// Role of a thread in running callbacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The thread runs no callbacks.
    None,
    /// The thread was started for callbacks.
    CallbackThread,
    /// The thread has published, and runs the callbacks for its message.
    Publisher,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::None) };
}

/// Role of the thread until the guard is dropped.
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

    /// Returns the queue of the callback thread, and starts the thread if necessary.
    fn start(&self) -> Outcome<Arc<ReadyQueue>> {
        let mut is_running = self.thread.is_running.lock();
        if !*is_running && !self.is_stopped.load(Ordering::Acquire) {
            let (core, queue) = (self.core.clone(), self.queue.clone());
            let (is_stopped, thread) = (self.is_stopped.clone(), self.thread.clone());
            let work = move || {
                let _role = RoleGuard::begin(Role::CallbackThread);
                while !is_stopped.load(Ordering::Acquire) && !core.is_shut_down() {
                    core.driver().drive(&queue, Instant::FAR_FUTURE);
                    while let Some(task) = queue.pop() {
                        task.run();
                    }
                }
                core.driver().hand_over(&queue);
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
    /// calling thread then runs the callbacks that it made ready, so no thread is woken.
    /// Callbacks that publish leave further ones to the outermost caller.
    pub(crate) fn call_back_after<T>(
        &self,
        writer: &WriterEndpoint,
        publish: impl FnOnce() -> T,
    ) -> T {
        let has_callbacks = self.thread.was_started.load(Ordering::Acquire);
        // A KEEP_ALL writer may block, which would delay other callbacks.
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

    /// Requests the end of the thread.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.queue.wake();
    }

    /// Waits until the thread has ended after [`Self::stop`], so that it keeps nothing of
    /// the context alive. Gives up after a second if a callback does not return.
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

/// A callback of the user. It is called under its own lock, so that it is not running
/// when another one has been set.
#[derive(Default)]
pub(crate) struct Callback {
    place: Mutex<Place>,
    /// Written under the lock of `place`. A wait reads it for each entity without the
    /// lock.
    is_set: AtomicBool,
}

/// Callback with its counts. The counts outlive a callback, so that the next one does not
/// get the same items.
#[derive(Default)]
pub(crate) struct Place {
    registered: Option<Registered>,
    /// Items that were reported to a callback, or that arrived before.
    told: u64,
}

struct Registered {
    function: unsafe extern "C" fn(*const c_void, usize),
    user_data: *const c_void,
}

impl Place {
    /// Calls the callback if `count` is above 0.
    fn call(&self, count: usize) {
        if let Some(callback) = self.registered.as_ref().filter(|_| count > 0) {
            // SAFETY: the user's function with the user's data.
            unsafe { (callback.function)(callback.user_data, count) };
        }
    }

    /// Marks all items up to `total` as reported. Returns the number of new ones.
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

    /// Sets or removes the callback. Reports `unread` items at once.
    pub(crate) fn set(&self, function: EventCallback, user_data: *const c_void, unread: usize) {
        self.set_with(function, user_data, |_| unread);
    }

    /// As [`Self::set`], for counted items. `total` have arrived so far, and `queued` of
    /// them can be taken. Items that were not reported to any callback are reported now.
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

    /// Locks the callback for a call. `None` for a publishing thread while another thread
    /// calls it, because that one may wait for a lock of the publisher.
    fn lock(&self) -> Option<MutexGuard<'_, Place>> {
        match ROLE.get() {
            Role::Publisher => self.place.try_lock(),
            Role::None | Role::CallbackThread => Some(self.place.lock()),
        }
    }

    /// Reports new items, whose count `new` returns and resets. Returns false if it could
    /// not: then the callback thread must.
    pub(crate) fn tell(&self, new: impl FnOnce(&mut Place) -> usize) -> bool {
        let Some(mut place) = self.lock() else {
            return false;
        };
        if place.registered.is_some() {
            let new = new(&mut place);
            place.call(new);
        }
        true
    }
}

impl DataListener for Callback {
    fn is_set(&self) -> bool {
        self.is_set()
    }

    fn report(&self, received: u64) -> bool {
        self.tell(|place| place.mark_told(received))
    }
}

/// Waits for the samples of a reader: wakes a wait set, or calls a callback.
pub(crate) type DataWaiter = pteros_rcl::data_waiter::DataWaiter<Callback>;

/// Sets or removes the callback for new samples.
pub(crate) fn set_data_callback(
    waiter: &DataWaiter,
    context: &ContextState,
    function: EventCallback,
    user_data: *const c_void,
) -> Outcome {
    let (reader, callback) = (&waiter.reader, &waiter.listener);
    if function.is_none() {
        callback.set(None, user_data, 0);
        reader.slot.attach(None, || false);
        if let Some(replies) = &waiter.replies {
            replies.detach(&context.listener.queue);
        }
        return Ok(());
    }
    let queue = context.listener.start()?;
    if let Some(replies) = &waiter.replies {
        replies.attach(&queue);
    }
    // In this order, a sample that arrives in between is reported later instead of never.
    let total = reader.received_count();
    let queued = reader.queued_count();
    callback.set_counted(function, user_data, total, queued);
    reader
        .slot
        .attach(Some(queue), || reader.received_count() > total);
    Ok(())
}

impl ContextState {
    /// The queue of the callback thread.
    pub(crate) fn callback_queue(&self) -> Outcome<Arc<ReadyQueue>> {
        self.listener.start()
    }
}
