//! Future tasks: a future as a task of an executor, and the spawned tasks of a node.
//!
//! The waker puts the task into the ready queue of the executor that spins its
//! callback group. Each poll is one callback.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::ready_queue::{ReadySlot, Task};
use pteros_runtime::trace;

use super::entity::{CallbackGroupCore, NodeEntity};
use crate::executor_queue::ExecutorQueue;
use crate::sample::UndecodableSample;

/// Boxed future of user code.
pub type UserFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The return type of a callback: nothing, or a boxed future for the executor to run.
///
/// `|message| Box::pin(async move { … })` is an async callback.
#[diagnostic::on_unimplemented(
    message = "a callback cannot return `{Self}`",
    label = "returns neither nothing nor a boxed future",
    note = "handle an error in the callback and end it with `;`, or return `Box::pin(async move {{ … }})`"
)]
pub trait CallbackOutput {
    /// Whether it is a future.
    const IS_FUTURE: bool;

    /// The future, if it is one.
    fn into_future(self) -> Option<UserFuture>;

    /// An error if the callback could not decode its message.
    #[doc(hidden)]
    fn into_result(self) -> Result<(), UndecodableSample>
    where
        Self: Sized,
    {
        Ok(())
    }
}

impl CallbackOutput for () {
    const IS_FUTURE: bool = false;

    fn into_future(self) -> Option<UserFuture> {
        None
    }
}

impl<F: Future<Output = ()> + Send + 'static> CallbackOutput for Pin<Box<F>> {
    const IS_FUTURE: bool = true;

    fn into_future(self) -> Option<UserFuture> {
        Some(self)
    }
}

/// Executor task that runs one future at a time and is reusable.
pub(crate) struct FutureTask {
    description: String,
    slot: ReadySlot,
    state: Mutex<State>,
    /// Trace span of the callback that created the future; 0 is none.
    span: AtomicU64,
    group: Arc<CallbackGroupCore>,
    owner: Weak<dyn FutureOwner>,
    weak_self: Weak<FutureTask>,
}

/// Owner to notify when the future has finished.
pub(crate) trait FutureOwner: Send + Sync {
    fn handle_finished(&self, task: &FutureTask, panicked: bool);
}

enum State {
    /// Not being polled.
    Idle(UserFuture),
    /// Being polled by some thread.
    Polling { poll_again: bool, cancelled: bool },
    /// No future is set.
    Finished,
}

impl FutureTask {
    /// Creates a task of `group`. The caller adds it to the entities of its node.
    pub(crate) fn new(
        group: &Arc<CallbackGroupCore>,
        description: String,
        owner: Weak<dyn FutureOwner>,
    ) -> Arc<Self> {
        let task = Arc::new_cyclic(|weak_self: &Weak<Self>| Self {
            description,
            slot: ReadySlot::default(),
            state: Mutex::new(State::Finished),
            span: AtomicU64::new(0),
            group: group.clone(),
            owner,
            weak_self: weak_self.clone(),
        });
        let weak: Weak<Self> = Arc::downgrade(&task);
        task.slot.set_task(weak);
        task
    }

    /// Starts a future; the previous one has finished.
    pub(crate) fn start(&self, future: UserFuture) {
        *self.state.lock() = State::Idle(future);
        self.span.store(trace::span(), Ordering::Relaxed);
        self.slot.mark_ready();
    }

    /// Drops the future, at once or after the current poll.
    pub(crate) fn cancel(&self) {
        let mut state = self.state.lock();
        if let State::Polling { cancelled, .. } = &mut *state {
            *cancelled = true;
            return;
        }
        let previous = std::mem::replace(&mut *state, State::Finished);
        drop(state);
        if let State::Idle(future) = previous {
            drop(future);
            self.handle_finished(false);
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        matches!(*self.state.lock(), State::Finished)
    }

    /// Takes the future out for a poll, exclusively.
    fn begin_poll(&self) -> Option<UserFuture> {
        let mut state = self.state.lock();
        match &mut *state {
            State::Idle(_) => {}
            State::Polling { poll_again, .. } => {
                // Polled by the previous executor, or recursively by a future that
                // spins.
                *poll_again = true;
                return None;
            }
            State::Finished => return None,
        }
        let polled = State::Polling {
            poll_again: false,
            cancelled: false,
        };
        match std::mem::replace(&mut *state, polled) {
            State::Idle(future) => Some(future),
            _ => None,
        }
    }

    /// Puts a pending future back, unless it was cancelled.
    fn put_back(&self, future: UserFuture) {
        let mut state = self.state.lock();
        let State::Polling {
            poll_again,
            cancelled,
        } = *state
        else {
            return;
        };
        if cancelled {
            *state = State::Finished;
            drop(state);
            drop(future);
            self.handle_finished(false);
            return;
        }
        *state = State::Idle(future);
        drop(state);
        if poll_again {
            self.slot.mark_ready();
        }
    }

    fn handle_finished(&self, panicked: bool) {
        if let Some(owner) = self.owner.upgrade() {
            owner.handle_finished(self, panicked);
        }
    }
}

impl Task for FutureTask {
    fn run(&self) {
        self.slot.begin_take();
        let (Some(task), Some(future)) = (self.weak_self.upgrade(), self.begin_poll()) else {
            return;
        };
        let mut polling = PollGuard {
            task: self,
            future: Some(future),
        };
        let waker = Waker::from(task);
        let current_group = CurrentGroup::enter(&self.group);
        let span = self.span.load(Ordering::Relaxed);
        let current_span = (span != 0).then(|| trace::SpanGuard::span(span));
        let poll = polling.poll(&mut Context::from_waker(&waker));
        drop(current_span);
        drop(current_group);
        if poll.is_pending()
            && let Some(future) = polling.future.take()
        {
            self.put_back(future);
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.group.node)
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

/// Holds the future during a poll. If it is dropped with the future still inside
/// (completion or panic), the future ends.
struct PollGuard<'t> {
    task: &'t FutureTask,
    future: Option<UserFuture>,
}

impl PollGuard<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            *self.task.state.lock() = State::Finished;
            let report_finished = ReportFinishedOnDrop(self.task);
            drop(future);
            drop(report_finished);
        }
    }
}

/// Reports the end on drop, also if dropping the future panics.
struct ReportFinishedOnDrop<'t>(&'t FutureTask);

impl Drop for ReportFinishedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.handle_finished(std::thread::panicking());
    }
}

impl Wake for FutureTask {
    fn wake(self: Arc<Self>) {
        self.slot.mark_ready();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.slot.mark_ready();
    }
}

impl NodeEntity for FutureTask {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        // A superfluous poll is harmless.
        self.slot.attach(queue, || !self.is_finished());
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.group
    }
}

thread_local! {
    /// Callback group of the future that this thread is polling.
    static GROUP: RefCell<Option<Arc<CallbackGroupCore>>> = const { RefCell::new(None) };
}

/// Guard that sets the callback group of the future polled on this thread.
pub(crate) struct CurrentGroup {
    outer: Option<Arc<CallbackGroupCore>>,
}

impl CurrentGroup {
    fn enter(group: &Arc<CallbackGroupCore>) -> Self {
        Self {
            outer: GROUP.replace(Some(group.clone())),
        }
    }

    /// The callback group of the future that this thread polls, if it is of that
    /// node.
    pub(crate) fn of_node(node: NodeKey) -> Option<Arc<CallbackGroupCore>> {
        let current = GROUP.with_borrow(Clone::clone);
        current.filter(|group| group.node == node)
    }
}

impl Drop for CurrentGroup {
    fn drop(&mut self) {
        GROUP.set(self.outer.take());
    }
}

/// Spawned tasks of a node.
pub(crate) struct SpawnedTasks {
    count: AtomicUsize,
    pub(crate) max: usize,
    /// Tasks without a handle.
    detached: Mutex<Vec<Arc<FutureTask>>>,
}

impl SpawnedTasks {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
            detached: Mutex::default(),
        }
    }

    pub(crate) fn try_reserve(&self) -> bool {
        let one_more = |count: usize| (count < self.max).then_some(count + 1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        self.count.fetch_update(set, fetch, one_more).is_ok()
    }

    pub(crate) fn detach(&self, task: &Arc<FutureTask>) {
        self.detached.lock().push(task.clone());
        if task.is_finished() {
            self.release_detached(task);
        }
    }

    fn release_detached(&self, task: &FutureTask) {
        let mut detached = self.detached.lock();
        let at = detached.iter().position(|t| std::ptr::eq(&**t, task));
        let removed = at.map(|at| detached.swap_remove(at));
        drop(detached);
        drop(removed);
    }

    pub(crate) fn handle_finished(&self, task: &FutureTask) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.release_detached(task);
    }
}

impl Drop for SpawnedTasks {
    fn drop(&mut self) {
        for task in self.detached.get_mut().drain(..) {
            task.cancel();
        }
    }
}
