//! The futures of one async callback: how many may wait at once, and where the
//! next one goes.

use std::future::Future;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{FutureTask, Owner, UserFuture};
use crate::callback_group::{CallbackGroup, GroupCore, group_for};
use crate::error::CreateError;
use crate::node::{Node, NodeCore};
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{Handler, Service, ServiceCall, ServiceOptions};
use crate::subscription::{Subscription, SubscriptionOptions};
use crate::timer::{Timer, TimerOptions};

use pteros_msg::message::{Message, Service as ServiceType};

/// Futures of one callback in a reentrant group that may wait at once, unless
/// told otherwise: enough to hide the wait for others, few enough to notice one
/// that never comes back.
pub(crate) const PENDING_MAX: usize = 16;

/// Places for the futures of one callback. Made as they are needed, used again.
pub(crate) struct Lanes {
    node: Weak<NodeCore>,
    group: Arc<GroupCore>,
    what: String,
    pending_max: usize,
    state: Mutex<State>,
    me: Weak<Lanes>,
}

#[derive(Default)]
struct State {
    busy: Vec<Arc<FutureTask>>,
    free: Vec<Arc<FutureTask>>,
    /// One has panicked: the callback is over.
    is_closed: bool,
    /// Looks for what could not be taken while all were busy.
    resume: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Lanes {
    /// For the callback `what` in `group`: one at a time if that is mutually
    /// exclusive, else `pending_max`, at least one.
    pub(crate) fn new(
        node: &Arc<NodeCore>,
        group: Option<&CallbackGroup>,
        what: String,
        pending_max: Option<usize>,
    ) -> Arc<Self> {
        let group = group_for(node, group);
        let pending_max = match group.gate() {
            Some(_) => 1,
            None => pending_max.unwrap_or(PENDING_MAX).max(1),
        };
        Arc::new_cyclic(|me| Self {
            node: Arc::downgrade(node),
            group,
            what,
            pending_max,
            state: Mutex::default(),
            me: me.clone(),
        })
    }

    /// What is called when a future has made room.
    pub(crate) fn on_room(&self, resume: impl Fn() + Send + Sync + 'static) {
        self.state.lock().resume = Some(Arc::new(resume));
    }

    /// Whether another future may begin.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.state.lock();
        !state.is_closed && state.busy.len() < self.pending_max
    }

    /// Has a future run. Called by one thread at a time, where there is room.
    pub(crate) fn start(&self, future: UserFuture) {
        let Some(node) = self.node.upgrade() else {
            return;
        };
        let free = self.state.lock().free.pop();
        let lane = free.unwrap_or_else(|| {
            let owner = Owner::Lanes(self.me.clone());
            FutureTask::new(&node, &self.group, self.what.clone(), owner)
        });
        self.state.lock().busy.push(lane.clone());
        lane.start(future);
    }

    pub(super) fn note_over(&self, lane: &FutureTask, panicked: bool) {
        let mut state = self.state.lock();
        state.is_closed |= panicked;
        let at = state.busy.iter().position(|l| std::ptr::eq(&**l, lane));
        if let Some(at) = at {
            let lane = state.busy.swap_remove(at);
            state.free.push(lane);
        }
        let resume = state.resume.clone();
        drop(state);
        if let Some(resume) = resume {
            resume();
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Wakers may keep a lane, but not what runs in it.
        let state = std::mem::take(self.state.get_mut());
        for lane in state.busy {
            lane.cancel();
        }
    }
}

impl<T: Send + 'static> SubscriptionOptions<T> {
    /// In place of [`SubscriptionOptions::callback`]: calls `callback` for each
    /// message and runs the future that it returns in the node's executor,
    /// whichever that is.
    ///
    /// In a mutually exclusive group the next message is taken when the future
    /// of the one before is done; until then messages wait as the QoS says. In a
    /// reentrant group up to [`SubscriptionOptions::pending_max`] wait at once.
    /// Either way the group is held while a future is polled, not while it waits:
    /// others of the group run between two polls.
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

    /// How many futures of a
    /// [`callback_async`](SubscriptionOptions::callback_async) in a reentrant
    /// group may wait at once: 16 by default, at least 1. Messages beyond wait in
    /// the subscription's queue. In a mutually exclusive group it is 1.
    pub fn pending_max(mut self, count: usize) -> Self {
        self.pending_max = Some(count);
        self
    }
}

impl Node {
    /// A subscription with an async callback; see
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
    /// let node = Context::new()?.node("doubler")?;
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

    /// A timer with an async callback: each tick calls it and runs the future
    /// that it returns in the node's executor. A tick that finds the future of
    /// the one before still waiting is skipped; in a reentrant group, the futures
    /// of the sixteen before.
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
        let what = format!("async timer of node \"{}\"", self.core().path());
        let lanes = Lanes::new(self.core(), options.callback_group.as_ref(), what, None);
        self.create_timer_with(options, move || {
            if lanes.has_room() {
                lanes.start(Box::pin(callback()));
            }
        })
    }

    /// Serves a service with an async callback, whose future gives the answer.
    /// In a mutually exclusive group one request is served at a time; in a
    /// reentrant group up to [`ServiceOptions::pending_max`] wait at once, and
    /// requests beyond wait in the queue.
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
        let what = format!(
            "async service \"{service}\" of node \"{}\"",
            self.core().path()
        );
        let (group, most) = (options.callback_group.as_ref(), options.pending_max);
        let lanes = Lanes::new(self.core(), group, what, most);
        let starts = lanes.clone();
        let take = move |call: ServiceCall<S::Request, S::Response>| {
            let (request, answerer) = call.into_parts();
            let answer = answer(request);
            starts.start(Box::pin(async move { answerer.answer(answer.await) }));
        };
        self.serve(
            service,
            options,
            Handler::Defer(Box::new(take), Some(lanes)),
        )
    }
}
