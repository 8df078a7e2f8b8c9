//! Futures that a node runs by themselves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use thiserror::Error;

use super::{FutureTask, Owner};
use crate::callback_group::{CallbackGroup, group_for};
use crate::node::{Node, NodeCore};

/// Why a future is not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpawnError {
    /// As many are there as may be.
    #[error(
        "node \"{node}\": {max} spawned futures are not done, the most that may; await some of them, or raise `NodeOptions::tasks_max`"
    )]
    TooManyTasks {
        /// The node.
        node: String,
        /// The limit.
        max: usize,
    },
}

/// A future that was spawned: itself a future of what that one gives. Dropped, it
/// ends it; see [`TaskHandle::detach`].
#[must_use = "the future ends when its handle is dropped; detach it, or keep the handle"]
pub struct TaskHandle<T> {
    task: Arc<FutureTask>,
    outcome: Arc<Mutex<Outcome<T>>>,
    node: Arc<NodeCore>,
    is_detached: bool,
}

struct Outcome<T> {
    value: Option<T>,
    is_over: bool,
    waker: Option<Waker>,
}

impl<T> TaskHandle<T> {
    /// Whether it is done, or ended without being done.
    pub fn is_done(&self) -> bool {
        self.outcome.lock().is_over
    }

    /// What it has given, once.
    pub fn take(&mut self) -> Option<T> {
        self.outcome.lock().value.take()
    }

    /// Lets it run to its end by itself, or to that of its node. A future that
    /// owns a clone of its node keeps it until it is done.
    pub fn detach(mut self) {
        self.is_detached = true;
        self.node.spawned.keep(&self.task);
    }
}

/// `None`: it panicked.
impl<T> Future for TaskHandle<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut outcome = self.outcome.lock();
        if outcome.is_over {
            return Poll::Ready(outcome.value.take());
        }
        let left = outcome.waker.replace(context.waker().clone());
        drop(outcome);
        drop(left);
        Poll::Pending
    }
}

impl<T> Drop for TaskHandle<T> {
    fn drop(&mut self) {
        if !self.is_detached {
            self.task.cancel();
        }
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("done", &self.is_done())
            .finish()
    }
}

/// Where the future leaves what it gives; tells of the end however it comes.
struct Fill<T>(Arc<Mutex<Outcome<T>>>);

impl<T> Drop for Fill<T> {
    fn drop(&mut self) {
        let mut outcome = self.0.lock();
        outcome.is_over = true;
        let waker = outcome.waker.take();
        drop(outcome);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The spawned futures of a node.
pub(crate) struct Spawned {
    count: AtomicUsize,
    max: usize,
    /// Those that nobody has a handle of.
    detached: Mutex<Vec<Arc<FutureTask>>>,
}

impl Spawned {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
            detached: Mutex::default(),
        }
    }

    fn begin(&self) -> bool {
        let one_more = |count: usize| (count < self.max).then_some(count + 1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        self.count.fetch_update(set, fetch, one_more).is_ok()
    }

    fn keep(&self, task: &Arc<FutureTask>) {
        self.detached.lock().push(task.clone());
        if task.is_over() {
            self.let_go(task);
        }
    }

    fn let_go(&self, task: &FutureTask) {
        let mut detached = self.detached.lock();
        let at = detached.iter().position(|t| std::ptr::eq(&**t, task));
        let gone = at.map(|at| detached.swap_remove(at));
        drop(detached);
        drop(gone);
    }

    pub(super) fn note_over(&self, task: &FutureTask) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.let_go(task);
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        for task in self.detached.get_mut().drain(..) {
            task.cancel();
        }
    }
}

impl Node {
    /// Runs a future in the node's executor, whichever that is, in the node's own
    /// group: no other callback of the group runs while it is polled. Begins when
    /// the node is spun; a thousand may be there at once
    /// ([`NodeOptions::tasks_max`](crate::NodeOptions::tasks_max)). A future
    /// that waits for nothing else must not loop: it is one callback between two
    /// awaits.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.node("clock")?;
    /// let clock = node.clone();
    /// let _task = node.spawn(async move {
    ///     for second in 1.. {
    ///         clock.sleep(Duration::from_secs(1)).await;
    ///         println!("{second}");
    ///     }
    /// })?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SpawnError::TooManyTasks`]; the future is dropped.
    pub fn spawn<F>(&self, future: F) -> Result<TaskHandle<F::Output>, SpawnError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.spawn_in(None, future)
    }

    /// As [`Node::spawn`], in a group of the node's.
    ///
    /// # Errors
    /// [`SpawnError::TooManyTasks`]; the future is dropped.
    pub fn spawn_in_group<F>(
        &self,
        group: &CallbackGroup,
        future: F,
    ) -> Result<TaskHandle<F::Output>, SpawnError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.spawn_in(Some(group), future)
    }

    fn spawn_in<F>(
        &self,
        group: Option<&CallbackGroup>,
        future: F,
    ) -> Result<TaskHandle<F::Output>, SpawnError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let node = self.core();
        if !node.spawned.begin() {
            return Err(SpawnError::TooManyTasks {
                node: node.path(),
                max: node.spawned.max,
            });
        }
        let outcome = Arc::new(Mutex::new(Outcome {
            value: None,
            is_over: false,
            waker: None,
        }));
        let fill = Fill(outcome.clone());
        let what = format!("spawned future of node \"{}\"", node.path());
        let owner = Owner::Node(Arc::downgrade(node));
        let task = FutureTask::new(node, &group_for(node, group), what, owner);
        task.start(Box::pin(async move {
            let value = future.await;
            fill.0.lock().value = Some(value);
        }));
        Ok(TaskHandle {
            task,
            outcome,
            node: node.clone(),
            is_detached: false,
        })
    }
}
