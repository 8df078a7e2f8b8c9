//! The next message of a polled subscription, awaited.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::executor::Home;
use crate::sample::Sample;
use crate::subscription::Subscription;

/// The next message; see [`Subscription::next`].
#[must_use = "it waits when it is awaited"]
pub struct Next<'s, T: 'static> {
    subscription: &'s Subscription<T>,
    is_registered: bool,
}

/// Who waits for the messages of a subscription without a callback, and where.
#[derive(Default)]
pub(crate) struct Watch {
    /// The executor that spins the subscription's group.
    pub(crate) home: Option<Arc<Home>>,
    /// Futures that wait, woken or not.
    pub(crate) count: usize,
    wakers: Vec<Waker>,
}

impl Watch {
    fn add(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|known| known.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }

    /// All of them: each looks, and who finds nothing waits again.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers)
    }
}

impl<T: 'static> Subscription<T> {
    /// Waits for the next message, in a future that the node's executor runs. For
    /// subscriptions without a callback: with one there is usually nothing to
    /// wait for. Of several futures that wait each message goes to one.
    ///
    /// ```no_run
    /// use pteros::interfaces::sensor_msgs::msg::LaserScan;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.node("mapper")?;
    /// let scans = node.create_polled_subscription::<LaserScan>("scan", 10)?;
    /// let _task = node.spawn(async move {
    ///     let first = scans.next().await;
    ///     println!("{} ranges", first.ranges.len());
    /// })?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    pub fn next(&self) -> Next<'_, T> {
        Next {
            subscription: self,
            is_registered: false,
        }
    }
}

impl<T: 'static> Future for Next<'_, T> {
    type Output = Sample<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Sample<T>> {
        if let Some(sample) = self.subscription.take() {
            return Poll::Ready(sample);
        }
        let core = &self.subscription.core;
        let mut watch = core.watch.lock();
        watch.add(context.waker());
        if !self.is_registered {
            watch.count += 1;
        }
        drop(watch);
        self.is_registered = true;
        self.subscription.core.settle();
        // What came before it was known who waits.
        match self.subscription.take() {
            Some(sample) => Poll::Ready(sample),
            None => Poll::Pending,
        }
    }
}

impl<T: 'static> Drop for Next<'_, T> {
    fn drop(&mut self) {
        if self.is_registered {
            let core = &self.subscription.core;
            core.watch.lock().count -= 1;
            core.settle();
            // One that was woken and is dropped leaves the message to others.
            core.wake_watchers();
        }
    }
}

impl<T> fmt::Debug for Next<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}
