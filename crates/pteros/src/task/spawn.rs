//! Spawned tasks: futures that a node's executor runs independently.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::callback_groups::{CallbackGroup, group_for};
use crate::error::ExecutorError;
use crate::node::{FutureOwner, FutureTask, Node, NodeCore};

/// Handle of a spawned task, itself a future of the task's output. Dropping it
/// cancels the task; see [`TaskHandle::detach`].
#[must_use = "dropping the handle cancels the task; detach it, or keep the handle"]
pub struct TaskHandle<T> {
    task: Arc<FutureTask>,
    state: Arc<Mutex<TaskState<T>>>,
    node: Arc<NodeCore>,
    is_detached: bool,
}

struct TaskState<T> {
    value: Option<T>,
    is_finished: bool,
    waker: Option<Waker>,
}

impl<T> TaskHandle<T> {
    /// Whether the task has ended: completed, cancelled or panicked.
    pub fn is_done(&self) -> bool {
        self.state.lock().is_finished
    }

    /// Takes the output. `None` before completion and on later calls.
    pub fn take(&mut self) -> Option<T> {
        self.state.lock().value.take()
    }

    /// Detaches the task: it runs until it completes or its node is dropped. A
    /// future that owns a clone of its node keeps the node alive until it
    /// completes.
    pub fn detach(mut self) {
        self.is_detached = true;
        self.node.spawned.detach(&self.task);
    }
}

/// `None`: the task panicked.
impl<T> Future for TaskHandle<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state.lock();
        if state.is_finished {
            return Poll::Ready(state.value.take());
        }
        let previous = state.waker.replace(context.waker().clone());
        drop(state);
        drop(previous);
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

/// Marks the task as finished on drop, for completion, cancellation and panic.
struct FinishOnDrop<T>(Arc<Mutex<TaskState<T>>>);

impl<T> Drop for FinishOnDrop<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_finished = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl FutureOwner for NodeCore {
    fn handle_finished(&self, task: &FutureTask, _: bool) {
        self.spawned.handle_finished(task);
    }
}

impl Node {
    /// Spawns a future on the node's executor, in the node's default callback
    /// group. No other callback of the group runs while it is polled. It starts
    /// when the node is spun. At most 1000 tasks may be unfinished at once
    /// ([`NodeOptions::tasks_max`](crate::NodeOptions::tasks_max)). A future must
    /// not loop without awaiting: the code between two awaits is one callback.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("clock")?;
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
    /// [`ExecutorError::TooManyTasks`]; the future is dropped.
    pub fn spawn<F>(&self, future: F) -> Result<TaskHandle<F::Output>, ExecutorError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.spawn_in(None, future)
    }

    /// Like [`Node::spawn`], in the given callback group.
    ///
    /// # Errors
    /// [`ExecutorError::TooManyTasks`]; the future is dropped.
    pub fn spawn_in_group<F>(
        &self,
        group: &CallbackGroup,
        future: F,
    ) -> Result<TaskHandle<F::Output>, ExecutorError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.spawn_in(Some(group), future)
    }

    fn spawn_in<F>(
        &self,
        group: Option<&CallbackGroup>,
        future: F,
    ) -> Result<TaskHandle<F::Output>, ExecutorError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let node = self.core();
        if !node.spawned.try_reserve() {
            return Err(ExecutorError::TooManyTasks {
                node: node.fully_qualified_name(),
                max: node.spawned.max,
            });
        }
        let state = Arc::new(Mutex::new(TaskState {
            value: None,
            is_finished: false,
            waker: None,
        }));
        let finish = FinishOnDrop(state.clone());
        let description = format!("spawned future of node \"{}\"", node.fully_qualified_name());
        let owner: Weak<NodeCore> = Arc::downgrade(node);
        let task = FutureTask::new(&group_for(node, group), description, owner);
        let entity: Weak<FutureTask> = Arc::downgrade(&task);
        node.add_entity(entity);
        task.start(Box::pin(async move {
            let value = future.await;
            finish.0.lock().value = Some(value);
        }));
        Ok(TaskHandle {
            task,
            state,
            node: node.clone(),
            is_detached: false,
        })
    }
}
