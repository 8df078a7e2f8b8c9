//! Async slots: the concurrent futures of one async callback.
//!
//! A mutually exclusive group has one slot per callback, a reentrant group up to
//! `pending_max`. Messages and requests beyond that stay in their queue
//! (back-pressure).

use std::future::Future;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{FutureOwner, FutureTask, UserFuture};
use crate::callback_group::{CallbackGroup, CallbackGroupCore, group_for};
use crate::error::CreateError;
use crate::node::{Node, NodeCore};
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{PendingRequest, RequestHandler, Service, ServiceOptions};
use crate::subscription::{Subscription, SubscriptionOptions};
use crate::timer::{Timer, TimerOptions};

use pteros_msg::message::{Message, Service as ServiceType};

/// Default number of slots of a callback in a reentrant group. It is large enough
/// to hide waiting times, and small enough to expose a future that never completes.
pub(crate) const PENDING_FUTURES_MAX: usize = 16;

/// The slots of one async callback. Slots are created on demand and reused.
pub(crate) struct AsyncSlots {
    node: Weak<NodeCore>,
    group: Arc<CallbackGroupCore>,
    description: String,
    pending_max: usize,
    state: Mutex<State>,
    weak_self: Weak<AsyncSlots>,
}

#[derive(Default)]
struct State {
    busy: Vec<Arc<FutureTask>>,
    free: Vec<Arc<FutureTask>>,
    /// A future panicked, so the callback starts no more.
    is_closed: bool,
    /// Called when a slot is free again, to take what waited.
    resume: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl AsyncSlots {
    /// Slots for the callback `description` in `group`: one if the group is
    /// mutually exclusive, else `pending_max`, at least one.
    pub(crate) fn new(
        node: &Arc<NodeCore>,
        group: Option<&CallbackGroup>,
        description: String,
        pending_max: Option<usize>,
    ) -> Arc<Self> {
        let group = group_for(node, group);
        let pending_max = match group.gate() {
            Some(_) => 1,
            None => pending_max.unwrap_or(PENDING_FUTURES_MAX).max(1),
        };
        Arc::new_cyclic(|weak_self| Self {
            node: Arc::downgrade(node),
            group,
            description,
            pending_max,
            state: Mutex::default(),
            weak_self: weak_self.clone(),
        })
    }

    /// Sets the function to call when a slot becomes free.
    pub(crate) fn on_free_slot(&self, resume: impl Fn() + Send + Sync + 'static) {
        self.state.lock().resume = Some(Arc::new(resume));
    }

    /// Whether a slot is free.
    pub(crate) fn has_free_slot(&self) -> bool {
        let state = self.state.lock();
        !state.is_closed && state.busy.len() < self.pending_max
    }

    /// Starts a future in a free slot. One thread at a time may call it.
    pub(crate) fn start(&self, future: UserFuture) {
        let Some(node) = self.node.upgrade() else {
            return;
        };
        let free = self.state.lock().free.pop();
        let task = free.unwrap_or_else(|| {
            let owner = FutureOwner::AsyncSlots(self.weak_self.clone());
            FutureTask::new(&node, &self.group, self.description.clone(), owner)
        });
        self.state.lock().busy.push(task.clone());
        task.start(future);
    }

    pub(super) fn handle_finished(&self, task: &FutureTask, panicked: bool) {
        let mut state = self.state.lock();
        state.is_closed |= panicked;
        let at = state.busy.iter().position(|l| std::ptr::eq(&**l, task));
        if let Some(at) = at {
            let task = state.busy.swap_remove(at);
            state.free.push(task);
        }
        let resume = state.resume.clone();
        drop(state);
        if let Some(resume) = resume {
            resume();
        }
    }
}

impl Drop for AsyncSlots {
    fn drop(&mut self) {
        // Wakers may keep a task alive, but not the future in it.
        let state = std::mem::take(self.state.get_mut());
        for task in state.busy {
            task.cancel();
        }
    }
}

impl<T: Send + 'static> SubscriptionOptions<T> {
    /// Sets an async callback, in place of [`SubscriptionOptions::callback`]. Each
    /// message calls `callback`, and the node's executor runs the returned future.
    ///
    /// In a mutually exclusive group, the next message is taken when the previous
    /// future has completed. Until then messages wait in the queue as the QoS
    /// allows. In a reentrant group up to [`SubscriptionOptions::pending_max`]
    /// futures are pending at once. The group is occupied while a future is polled,
    /// not while it waits, so other callbacks of the group run between two polls.
    pub fn callback_async<F>(
        mut self,
        mut callback: impl FnMut(Sample<T>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_async = Some(Box::new(move |sample| Box::pin(callback(sample))));
        self
    }

    /// Sets how many futures of a
    /// [`callback_async`](SubscriptionOptions::callback_async) in a reentrant group
    /// may be pending at once: 16 by default, at least 1. Further messages wait in
    /// the subscription's queue. In a mutually exclusive group it is always 1.
    pub fn pending_max(mut self, count: usize) -> Self {
        self.pending_max = Some(count);
        self
    }
}

impl Node {
    /// Creates a subscription with an async callback; see
    /// [`SubscriptionOptions::callback_async`].
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoInts_Request};
    /// use pteros::interfaces::std_msgs::msg::Int64;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("doubler")?;
    /// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    /// let _numbers = node.create_subscription_async("number", 10, move |number: Sample<Int64>| {
    ///     let client = client.clone();
    ///     async move {
    ///         let request = AddTwoInts_Request { a: number.data, b: number.data };
    ///         match client.call_async(&request) {
    ///             Ok(call) => println!("{:?}", call.await.map(|answer| answer.sum)),
    ///             Err(error) => println!("{error}"),
    ///         }
    ///     }
    /// })?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_subscription_async<T: Message, F>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
        callback: impl FnMut(Sample<T>) -> F + Send + 'static,
    ) -> Result<Subscription<T>, CreateError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let options = SubscriptionOptions::new(qos).callback_async(callback);
        self.create_subscription_with(topic, options)
    }

    /// Creates a timer with an async callback. Each tick calls it, and the node's
    /// executor runs the returned future. A tick is skipped while the previous
    /// future is pending; in a reentrant group, while sixteen are.
    ///
    /// # Errors
    /// [`CreateError::ZeroPeriod`].
    pub fn create_timer_async<F>(
        &self,
        options: TimerOptions,
        mut callback: impl FnMut() -> F + Send + 'static,
    ) -> Result<Timer, CreateError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let description = format!(
            "async timer of node \"{}\"",
            self.core().fully_qualified_name()
        );
        let async_slots = AsyncSlots::new(
            self.core(),
            options.callback_group.as_ref(),
            description,
            None,
        );
        self.create_timer_with(options, move || {
            if async_slots.has_free_slot() {
                async_slots.start(Box::pin(callback()));
            }
        })
    }

    /// Creates a service with an async callback whose future yields the response. A
    /// mutually exclusive group serves one request at a time. In a reentrant group
    /// up to [`ServiceOptions::pending_max`] are pending at once. Further requests
    /// wait in the queue.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_service_async<S: ServiceType, F>(
        &self,
        service: &str,
        options: ServiceOptions,
        mut answer: impl FnMut(Sample<S::Request>) -> F + Send + 'static,
    ) -> Result<Service<S>, CreateError>
    where
        F: Future<Output = S::Response> + Send + 'static,
    {
        let description = format!(
            "async service \"{service}\" of node \"{}\"",
            self.core().fully_qualified_name()
        );
        let (group, pending_max) = (options.callback_group.as_ref(), options.pending_max);
        let async_slots = AsyncSlots::new(self.core(), group, description, pending_max);
        let task_slots = async_slots.clone();
        let take = move |call: PendingRequest<S::Request, S::Response>| {
            let (request, responder) = call.into_parts();
            let answer = answer(request);
            task_slots.start(Box::pin(async move { responder.send(answer.await) }));
        };
        self.serve(
            service,
            options,
            RequestHandler::Deferred(Box::new(take), Some(async_slots)),
        )
    }
}
