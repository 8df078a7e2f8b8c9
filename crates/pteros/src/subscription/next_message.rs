//! Awaiting the next message of a subscription without a callback.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Subscription;
use crate::executor_queue::ExecutorQueue;
use crate::sample::Sample;

/// Future of the next message; see [`Subscription::next`].
#[must_use = "futures do nothing unless awaited"]
pub struct NextMessage<'s, T: 'static> {
    subscription: &'s Subscription<T>,
    is_registered: bool,
}

/// Futures that wait for messages of a subscription without a callback.
#[derive(Default)]
pub(crate) struct MessageWaiters {
    /// The executor that spins the subscription's group.
    pub(crate) executor_queue: Option<Arc<ExecutorQueue>>,
    /// Number of waiting futures, woken or not.
    pub(crate) count: usize,
    wakers: Vec<Waker>,
}

impl MessageWaiters {
    fn add(&mut self, waker: &Waker) {
        if !self
            .wakers
            .iter()
            .any(|registered| registered.will_wake(waker))
        {
            self.wakers.push(waker.clone());
        }
    }

    /// Takes all wakers. Each future tries to take a message and waits again if
    /// there is none.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers)
    }
}

impl<T: 'static> Subscription<T> {
    /// Returns a future of the next message, for async code that the node's
    /// executor runs. Meant for subscriptions without a callback: with one, the
    /// callback takes the messages. If several futures wait, each message goes to
    /// one of them.
    ///
    /// ```no_run
    /// use pteros::interfaces::sensor_msgs::msg::LaserScan;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("mapper")?;
    /// let scans = node.create_polled_subscription::<LaserScan>("scan".keep_last(10))?;
    /// let _task = node.spawn(async move {
    ///     let first = scans.next().await;
    ///     println!("{} ranges", first.ranges.len());
    /// })?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    pub fn next(&self) -> NextMessage<'_, T> {
        NextMessage {
            subscription: self,
            is_registered: false,
        }
    }
}

impl<T: 'static> Future for NextMessage<'_, T> {
    type Output = Sample<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Sample<T>> {
        if let Some(sample) = self.subscription.take() {
            return Poll::Ready(sample);
        }
        let core = &self.subscription.core;
        let mut waiters = core.waiters.lock();
        waiters.add(context.waker());
        if !self.is_registered {
            waiters.count += 1;
        }
        drop(waiters);
        self.is_registered = true;
        self.subscription.core.update_waiters();
        // A message may have arrived before the waker was registered.
        match self.subscription.take() {
            Some(sample) => Poll::Ready(sample),
            None => Poll::Pending,
        }
    }
}

impl<T: 'static> Drop for NextMessage<'_, T> {
    fn drop(&mut self) {
        if self.is_registered {
            let core = &self.subscription.core;
            core.waiters.lock().count -= 1;
            core.update_waiters();
            // A woken future that is dropped must pass its wake-up to another one.
            core.wake_message_waiters();
        }
    }
}

impl<T> fmt::Debug for NextMessage<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextMessage").finish_non_exhaustive()
    }
}
