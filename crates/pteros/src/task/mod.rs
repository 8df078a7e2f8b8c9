//! Futures in executors: `async` callbacks without an async runtime.
//!
//! A future is a task of its node like any callback: its waker puts it into the
//! ready queue of whatever executor spins its group, and a poll is one callback.
//! The group's gate is held while it is polled, not while it waits. Nothing here
//! knows a thread or an event source of its own.

mod lanes;
mod next;
mod sleep;
mod spawn;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::{Slot, Task};
use pteros_rmw::trace;

use crate::callback_group::GroupCore;
use crate::executor::Home;
use crate::node::{Attach, NodeCore};

pub(crate) use lanes::Lanes;
pub use next::Next;
pub(crate) use next::Watch;
pub use sleep::Sleep;
pub(crate) use spawn::Spawned;
pub use spawn::{SpawnError, TaskHandle};

/// A future of user code, boxed.
pub(crate) type UserFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A place in the executor for one future after the other.
pub(crate) struct FutureTask {
    what: String,
    slot: Slot,
    state: Mutex<State>,
    /// The traced callback that its future came out of; 0 is none.
    span: AtomicU64,
    group: Arc<GroupCore>,
    owner: Owner,
    me: Weak<FutureTask>,
}

/// Who hears of a future's end.
enum Owner {
    Lanes(Weak<Lanes>),
    Node(Weak<NodeCore>),
}

enum State {
    /// Between two polls.
    Rests(UserFuture),
    /// Being polled, by whichever thread.
    Polled { again: bool, cancelled: bool },
    /// There is no future.
    Over,
}

impl FutureTask {
    fn new(node: &Arc<NodeCore>, group: &Arc<GroupCore>, what: String, owner: Owner) -> Arc<Self> {
        let task = Arc::new_cyclic(|me: &Weak<Self>| Self {
            what,
            slot: Slot::default(),
            state: Mutex::new(State::Over),
            span: AtomicU64::new(0),
            group: group.clone(),
            owner,
            me: me.clone(),
        });
        let weak: Weak<Self> = Arc::downgrade(&task);
        task.slot.set_task(weak.clone());
        node.add(weak);
        task
    }

    /// Has a future run here; the one before is over.
    fn start(&self, future: UserFuture) {
        *self.state.lock() = State::Rests(future);
        self.span.store(trace::span(), Ordering::Relaxed);
        self.slot.ready();
    }

    /// Drops the future, at once or when the poll that goes on is done.
    fn cancel(&self) {
        let mut state = self.state.lock();
        if let State::Polled { cancelled, .. } = &mut *state {
            *cancelled = true;
            return;
        }
        let left = std::mem::replace(&mut *state, State::Over);
        drop(state);
        if let State::Rests(future) = left {
            drop(future);
            self.note_over(false);
        }
    }

    fn is_over(&self) -> bool {
        matches!(*self.state.lock(), State::Over)
    }

    /// The future for a poll; nobody else has it meanwhile.
    fn begin_poll(&self) -> Option<UserFuture> {
        let mut state = self.state.lock();
        match &mut *state {
            State::Rests(_) => {}
            State::Polled { again, .. } => {
                // By the executor that had it before, or it spins itself.
                *again = true;
                return None;
            }
            State::Over => return None,
        }
        let polled = State::Polled {
            again: false,
            cancelled: false,
        };
        match std::mem::replace(&mut *state, polled) {
            State::Rests(future) => Some(future),
            _ => None,
        }
    }

    /// Puts a future that is not done back, unless it was cancelled.
    fn put_back(&self, future: UserFuture) {
        let mut state = self.state.lock();
        let State::Polled { again, cancelled } = *state else {
            return;
        };
        if cancelled {
            *state = State::Over;
            drop(state);
            drop(future);
            self.note_over(false);
            return;
        }
        *state = State::Rests(future);
        drop(state);
        if again {
            self.slot.ready();
        }
    }

    fn note_over(&self, panicked: bool) {
        match &self.owner {
            Owner::Lanes(lanes) => {
                if let Some(lanes) = lanes.upgrade() {
                    lanes.note_over(self, panicked);
                }
            }
            Owner::Node(node) => {
                if let Some(node) = node.upgrade() {
                    node.spawned.note_over(self);
                }
            }
        }
    }
}

impl Task for FutureTask {
    fn run(&self) {
        self.slot.taken();
        let (Some(me), Some(future)) = (self.me.upgrade(), self.begin_poll()) else {
            return;
        };
        let mut polling = Polling {
            task: self,
            future: Some(future),
        };
        let waker = Waker::from(me);
        let within = Within::group(&self.group);
        let span = self.span.load(Ordering::Relaxed);
        let on = (span != 0).then(|| trace::On::span(span));
        let poll = polling.poll(&mut Context::from_waker(&waker));
        drop(on);
        drop(within);
        if poll.is_pending()
            && let Some(future) = polling.future.take()
        {
            self.put_back(future);
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.group.node)
    }

    fn describe(&self) -> String {
        self.what.clone()
    }
}

/// A future while it is polled. Whatever ends the poll with the future in here,
/// its own end or a panic, ends the future.
struct Polling<'t> {
    task: &'t FutureTask,
    future: Option<UserFuture>,
}

impl Polling<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            *self.task.state.lock() = State::Over;
            let over = Over(self.task);
            drop(future);
            drop(over);
        }
    }
}

/// Tells of the end, also if the future's own end panics.
struct Over<'t>(&'t FutureTask);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.note_over(std::thread::panicking());
    }
}

impl Wake for FutureTask {
    fn wake(self: Arc<Self>) {
        self.slot.ready();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.slot.ready();
    }
}

impl Attach for FutureTask {
    fn attach(&self, home: Option<&Arc<Home>>) {
        let queue = home.map(|home| home.queue.clone());
        // A poll too many does no harm.
        self.slot.attach(queue, || !self.is_over());
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.group
    }
}

thread_local! {
    /// The group of the future that this thread polls.
    static GROUP: RefCell<Option<Arc<GroupCore>>> = const { RefCell::new(None) };
}

/// This thread polls a future of a group, until this is dropped.
struct Within {
    outer: Option<Arc<GroupCore>>,
}

impl Within {
    fn group(group: &Arc<GroupCore>) -> Self {
        Self {
            outer: GROUP.replace(Some(group.clone())),
        }
    }

    /// Where what a future of `node` waits for is to happen: where it is polled.
    fn of(node: &Arc<NodeCore>) -> Arc<GroupCore> {
        let current = GROUP.with_borrow(Clone::clone);
        let own = |group: &Arc<GroupCore>| group.node == node.key;
        current
            .filter(own)
            .unwrap_or_else(|| node.own_group.clone())
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        GROUP.set(self.outer.take());
    }
}
