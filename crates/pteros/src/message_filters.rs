//! Message filters: synchronizers of several topics by time stamps, caches and chains
//! (ROS 2's package `message_filters`).
//!
//! ```no_run
//! use pteros::interfaces::sensor_msgs::msg::{CameraInfo, Image};
//! use pteros::message_filters::{Policy, Subscriber, Synchronizer};
//! use pteros::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Context::new()?.create_node("rectify")?;
//! let image = Subscriber::<Image>::new(&node, "image".sensor_data())?;
//! let info = Subscriber::<CameraInfo>::new(&node, "camera_info".sensor_data())?;
//! let _sync = Synchronizer::new((&image, &info), Policy::exact(10), |(image, info)| {
//!     println!("{} x {} with {:?}", image.width, image.height, info.k);
//! });
//! node.spin();
//! # Ok(())
//! # }
//! ```
//!
//! [`Policy`] says which messages belong together. Each queue has the size that the user
//! gives, and a full one drops its oldest message. What waits is dropped when the clock of a
//! subscriber's node goes back or gets another source. Without such a clock, time has gone
//! back when more messages in a row than a queue holds are older than its newest.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rcl::message_filters as core;
pub use pteros_rcl::message_filters::{Chain as FilterChain, MessageFilter, Stamped};

use crate::error::CreateError;
use crate::node::{Node, NodeCore};
use crate::ros_clock::{JumpThreshold, TimeJump};
use crate::sample::Sample;
use crate::subscription::{Subscription, SubscriptionMessage, SubscriptionOptions};
use crate::time::Time;
use crate::time_source::TimeJumpObserver;

/// A filter that passes messages on.
pub trait Source {
    /// Their type.
    type Message: Stamped + Send + Sync + 'static;

    /// Where other filters and callbacks join.
    fn output(&self) -> &Output<Self::Message>;
}

type Call<T> = Arc<dyn Fn(&Arc<T>) + Send + Sync>;

struct Sink<T> {
    /// The filter that ends it; none for a callback.
    filter: Option<Weak<dyn TimeJumpObserver>>,
    call: Call<T>,
}

impl<T> Sink<T> {
    fn has_ended(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| filter.strong_count() == 0)
    }
}

/// The output of a filter. Cheap to clone; clones share it.
pub struct Output<T> {
    sinks: Arc<Mutex<Vec<Sink<T>>>>,
    /// The node whose clock jumps.
    node: Option<Arc<NodeCore>>,
}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        Self {
            sinks: self.sinks.clone(),
            node: self.node.clone(),
        }
    }
}

impl<T: 'static> Output<T> {
    fn new(node: Option<Arc<NodeCore>>) -> Self {
        Self {
            sinks: Arc::default(),
            node,
        }
    }

    /// Calls `callback` with each message from now on, on the thread that passes it.
    pub fn on_message(&self, callback: impl Fn(&Arc<T>) + Send + Sync + 'static) {
        self.sinks.lock().push(Sink {
            filter: None,
            call: Arc::new(callback),
        });
    }

    /// Removes the sinks of filters that were dropped.
    fn prune(&self) {
        let mut sinks = self.sinks.lock();
        let ended: Vec<_> = sinks.extract_if(.., |sink| sink.has_ended()).collect();
        drop(sinks);
        drop(ended);
    }

    /// Passes messages and jumps of the clock to a filter, while that lives.
    fn connect<F: TimeJumpObserver + 'static>(
        &self,
        filter: &Arc<F>,
        add: impl Fn(&F, &Arc<T>) + Send + Sync + 'static,
    ) {
        let weak = Arc::downgrade(filter);
        let call = move |message: &Arc<T>| {
            if let Some(filter) = weak.upgrade() {
                add(&filter, message);
            }
        };
        self.prune();
        let observer: Weak<F> = Arc::downgrade(filter);
        self.sinks.lock().push(Sink {
            filter: Some(observer.clone()),
            call: Arc::new(call),
        });
        if let Some(node) = &self.node {
            let threshold = JumpThreshold {
                on_clock_change: true,
                min_forward: None,
                min_backward: Some(Duration::from_nanos(1)),
            };
            node.time.add_jump_observer(threshold, observer);
        }
    }

    /// Runs no callback under a lock.
    fn pass(&self, message: &Arc<T>) {
        self.prune();
        let sinks = self.sinks.lock();
        let calls: Vec<_> = sinks.iter().map(|sink| sink.call.clone()).collect();
        drop(sinks);
        calls.iter().for_each(|call| call(message));
    }
}

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("sinks", &self.sinks.lock().len())
            .finish()
    }
}

/// The messages of a topic, as the start of filters.
#[must_use = "a subscriber ends when it is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct Subscriber<T> {
    subscription: Subscription<T>,
    output: Output<T>,
}

impl<T: SubscriptionMessage + Stamped> Subscriber<T> {
    /// Subscribes to a topic.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(
        node: &Node,
        options: impl Into<SubscriptionOptions<T>>,
    ) -> Result<Self, CreateError> {
        let output = Output::new(Some(node.core().clone()));
        let passed = output.clone();
        let callback = move |sample: Sample<T>| passed.pass(&sample.into_shared());
        let subscription = node.create_subscription(options, callback)?;
        Ok(Self {
            subscription,
            output,
        })
    }

    /// The subscription whose messages it passes on.
    pub fn subscription(&self) -> &Subscription<T> {
        &self.subscription
    }
}

impl<T: SubscriptionMessage + Stamped> Source for Subscriber<T> {
    type Message = T;

    fn output(&self) -> &Output<T> {
        &self.output
    }
}

/// Messages that the program itself passes to filters, of a bag for example.
#[derive(Clone, Debug)]
pub struct PassThrough<T> {
    output: Output<T>,
}

impl<T: Stamped + Send + Sync + 'static> PassThrough<T> {
    /// A source without a topic.
    pub fn new() -> Self {
        Self {
            output: Output::new(None),
        }
    }

    /// Passes a message on. The filters and their callbacks run at once, on this thread.
    pub fn pass(&self, message: impl Into<Arc<T>>) {
        self.output.pass(&message.into());
    }
}

impl<T: Stamped + Send + Sync + 'static> Default for PassThrough<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Stamped + Send + Sync + 'static> Source for PassThrough<T> {
    type Message = T;

    fn output(&self) -> &Output<T> {
        &self.output
    }
}

/// The last messages of a filter, by time. It passes all messages on. Thread-safe.
#[must_use = "a cache ends when it is dropped: keep it in a variable or a field"]
#[derive(Debug)]
pub struct Cache<T> {
    kept: Arc<Kept<T>>,
    output: Output<T>,
}

#[derive(Debug)]
struct Kept<T>(Mutex<core::Cache<Arc<T>>>);

impl<T: Send + Sync> TimeJumpObserver for Kept<T> {
    fn handle_jump(&self, _jump: TimeJump) {
        self.0.lock().clear();
    }
}

impl<T: Stamped + Send + Sync + 'static> Cache<T> {
    /// Keeps the last `size` messages of a filter, at least one.
    pub fn new(source: &impl Source<Message = T>, size: usize) -> Self {
        let kept = Arc::new(Kept(Mutex::new(core::Cache::new(size))));
        let output = Output::new(source.output().node.clone());
        let passed = output.clone();
        source.output().connect(&kept, move |kept, message| {
            let stamp = message.stamp().as_nanos();
            kept.0.lock().add(stamp, message.clone());
            passed.pass(message);
        });
        Self { kept, output }
    }

    /// The messages of a span of time with both ends, the oldest first.
    pub fn interval(&self, from: Time, to: Time) -> Vec<Arc<T>> {
        let cache = self.kept.0.lock();
        let messages = cache.interval(from.as_nanos(), to.as_nanos());
        messages.cloned().collect()
    }

    /// The last message at a time or before.
    pub fn before(&self, time: Time) -> Option<Arc<T>> {
        self.kept.0.lock().before(time.as_nanos()).cloned()
    }

    /// The first message at a time or after.
    pub fn after(&self, time: Time) -> Option<Arc<T>> {
        self.kept.0.lock().after(time.as_nanos()).cloned()
    }

    /// The message of the latest time.
    pub fn latest(&self) -> Option<Arc<T>> {
        let cache = self.kept.0.lock();
        let last = cache.messages().next_back();
        last.map(|(_, message)| message.clone())
    }

    /// The message of the oldest time.
    pub fn oldest(&self) -> Option<Arc<T>> {
        let cache = self.kept.0.lock();
        let first = cache.messages().next();
        first.map(|(_, message)| message.clone())
    }
}

impl<T: Stamped + Send + Sync + 'static> Source for Cache<T> {
    type Message = T;

    fn output(&self) -> &Output<T> {
        &self.output
    }
}

/// Filters of one input, one behind the other.
#[must_use = "a chain ends when it is dropped: keep it in a variable or a field"]
#[derive(Debug)]
pub struct Chain<T> {
    _filters: Arc<ChainFilters<T>>,
    output: Output<T>,
}

#[derive(Debug)]
struct ChainFilters<T> {
    filters: Mutex<FilterChain<Arc<T>>>,
    /// The next message clears them. Filters run under their lock and may receive jumps.
    has_jumped: AtomicBool,
}

impl<T: Send + Sync> TimeJumpObserver for ChainFilters<T> {
    fn handle_jump(&self, _jump: TimeJump) {
        self.has_jumped.store(true, Ordering::Release);
    }
}

impl<T: Stamped + Send + Sync + 'static> Chain<T> {
    /// Passes the messages of a filter through `filters`, one after the other.
    ///
    /// Filters run one message at a time, under a lock: they must not spin, nor pass
    /// messages to the source of the chain. Callbacks behind the chain may.
    pub fn new(source: &impl Source<Message = T>, filters: FilterChain<Arc<T>>) -> Self {
        let filters = Arc::new(ChainFilters {
            filters: Mutex::new(filters),
            has_jumped: AtomicBool::new(false),
        });
        let output = Output::new(source.output().node.clone());
        let passed = output.clone();
        source.output().connect(&filters, move |chain, message| {
            let stamp = message.stamp().as_nanos();
            let mut filters = chain.filters.lock();
            if chain.has_jumped.swap(false, Ordering::AcqRel) {
                filters.clear();
            }
            let messages = filters.pass(stamp, message.clone());
            drop(filters);
            messages
                .iter()
                .for_each(|(_, message)| passed.pass(message));
        });
        Self {
            _filters: filters,
            output,
        }
    }
}

impl<T: Stamped + Send + Sync + 'static> Source for Chain<T> {
    type Message = T;

    fn output(&self) -> &Output<T> {
        &self.output
    }
}

/// Which messages belong together, and how many of each input may wait for others.
#[derive(Clone, Debug)]
pub struct Policy {
    kind: PolicyKind,
    queue_size: usize,
    interval_max: i64,
    age_penalty: Option<f64>,
    periods_min: Vec<(usize, i64)>,
}

#[derive(Clone, Copy, Debug)]
enum PolicyKind {
    Exact,
    Approximate,
    Slop(i64),
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

impl Policy {
    fn new(kind: PolicyKind, queue_size: usize) -> Self {
        Self {
            kind,
            queue_size,
            interval_max: i64::MAX,
            age_penalty: None,
            periods_min: Vec::new(),
        }
    }

    /// Messages with equal stamps. Those that are older than a set are dropped with it.
    pub fn exact(queue_size: usize) -> Self {
        Self::new(PolicyKind::Exact, queue_size)
    }

    /// The messages that fit best, as rclcpp's `ApproximateTime`. A set waits until no
    /// better one can come, mostly for the next message of an input.
    pub fn approximate(queue_size: usize) -> Self {
        Self::new(PolicyKind::Approximate, queue_size)
    }

    /// Messages whose stamps are closer together than `slop`, as Python's
    /// `ApproximateTimeSynchronizer`. A set is passed on with its last message.
    pub fn slop(queue_size: usize, slop: Duration) -> Self {
        Self::new(PolicyKind::Slop(nanos(slop)), queue_size)
    }

    /// The longest interval of a set; any unless set. For [`Policy::approximate`].
    pub fn max_interval(mut self, interval: Duration) -> Self {
        self.interval_max = nanos(interval);
        self
    }

    /// Weight of a later end of a set against a later start; 0.1 unless set. The larger it
    /// is, the more often the earlier of two sets wins. For [`Policy::approximate`].
    pub fn age_penalty(mut self, penalty: f64) -> Self {
        self.age_penalty = Some(penalty);
        self
    }

    /// The shortest time between two messages of an input, if it is known, so that sets
    /// are passed on earlier. Inputs count from 0. For [`Policy::approximate`].
    pub fn min_period(mut self, input: usize, period: Duration) -> Self {
        self.periods_min.push((input, nanos(period)));
        self
    }

    fn make(&self, inputs: usize) -> Box<dyn core::SyncPolicy<AnyMessage>> {
        match self.kind {
            PolicyKind::Exact => Box::new(core::ExactTime::new(inputs, self.queue_size)),
            PolicyKind::Slop(slop) => Box::new(core::SlopTime::new(inputs, self.queue_size, slop)),
            PolicyKind::Approximate => {
                let mut policy = core::ApproximateTime::new(inputs, self.queue_size)
                    .max_interval(self.interval_max);
                if let Some(penalty) = self.age_penalty {
                    policy = policy.age_penalty(penalty);
                }
                for (input, period) in &self.periods_min {
                    policy = policy.min_period(*input, *period);
                }
                Box::new(policy)
            }
        }
    }
}

type AnyMessage = Arc<dyn Any + Send + Sync>;

/// Two to nine sources: a tuple of references to filters.
pub trait Inputs {
    /// One message of each: a tuple of `Arc`s.
    type Set: Send + 'static;

    /// How many.
    const COUNT: usize;

    #[doc(hidden)]
    fn connect(&self, core: &Arc<SyncCore<Self::Set>>);

    #[doc(hidden)]
    fn set(messages: Vec<AnyMessage>) -> Option<Self::Set>;
}

/// Joins the messages of several filters to sets. It ends when it is dropped.
#[must_use = "a synchronizer ends when it is dropped: keep it in a variable or a field"]
pub struct Synchronizer<I: Inputs> {
    core: Arc<SyncCore<I::Set>>,
}

#[doc(hidden)]
pub struct SyncCore<S> {
    state: Mutex<SyncState<S>>,
    /// Never waited for: its holder may spin, and looks for more sets afterwards.
    callback: Mutex<Box<dyn FnMut(S) + Send>>,
}

struct SyncState<S> {
    policy: Box<dyn core::SyncPolicy<AnyMessage>>,
    /// Complete sets that wait for the callback, in their order.
    sets: VecDeque<S>,
    waiting_max: usize,
}

impl<I: Inputs> Synchronizer<I> {
    /// Calls `callback` with each set, and never twice at the same time.
    ///
    /// It runs on the thread that passes the last message of a set. While it runs, it may
    /// spin or pass messages to its own inputs. Sets that are complete meanwhile wait, and
    /// follow on the same thread. As many may wait as messages of an input; beyond that the
    /// oldest is dropped.
    pub fn new(inputs: I, policy: Policy, callback: impl FnMut(I::Set) + Send + 'static) -> Self {
        let core = Arc::new(SyncCore {
            state: Mutex::new(SyncState {
                policy: policy.make(I::COUNT),
                sets: VecDeque::new(),
                waiting_max: policy.queue_size.max(1),
            }),
            callback: Mutex::new(Box::new(callback)),
        });
        inputs.connect(&core);
        Self { core }
    }

    /// Drops the messages that wait for others.
    pub fn clear(&self) {
        self.core.state.lock().policy.clear();
    }
}

impl<I: Inputs> fmt::Debug for Synchronizer<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Synchronizer")
            .field("inputs", &I::COUNT)
            .finish()
    }
}

impl<S: Send + 'static> SyncCore<S> {
    fn add(
        &self,
        input: usize,
        stamp: Time,
        message: AnyMessage,
        typed: fn(Vec<AnyMessage>) -> Option<S>,
    ) {
        let mut state = self.state.lock();
        let complete = state.policy.add(input, stamp.as_nanos(), message);
        let excess = state.sets.len().saturating_sub(state.waiting_max);
        let dropped: Vec<_> = state.sets.drain(..excess).collect();
        state.sets.extend(complete.into_iter().filter_map(typed));
        drop(state);
        drop(dropped);
        self.pass_sets();
    }

    fn pass_sets(&self) {
        while !self.state.lock().sets.is_empty() {
            let Some(mut callback) = self.callback.try_lock() else {
                return;
            };
            let set = self.state.lock().sets.pop_front();
            if let Some(set) = set {
                callback(set);
            }
        }
    }
}

impl<S: Send + 'static> TimeJumpObserver for SyncCore<S> {
    fn handle_jump(&self, _jump: TimeJump) {
        self.state.lock().policy.clear();
    }
}

macro_rules! inputs {
    ($count:literal: $($source:ident $index:tt),+) => {
        impl<$($source: Source),+> Inputs for ($(&$source,)+) {
            type Set = ($(Arc<$source::Message>,)+);

            const COUNT: usize = $count;

            fn connect(&self, core: &Arc<SyncCore<Self::Set>>) {
                $(self.$index.output().connect(core, |core, message| {
                    core.add($index, message.stamp(), message.clone(), Self::set);
                });)+
            }

            fn set(messages: Vec<AnyMessage>) -> Option<Self::Set> {
                let mut messages = messages.into_iter();
                Some(($(messages.next()?.downcast::<$source::Message>().ok()?,)+))
            }
        }
    };
}

inputs!(2: A 0, B 1);
inputs!(3: A 0, B 1, C 2);
inputs!(4: A 0, B 1, C 2, D 3);
inputs!(5: A 0, B 1, C 2, D 3, E 4);
inputs!(6: A 0, B 1, C 2, D 3, E 4, F 5);
inputs!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
inputs!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
inputs!(9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, ContextOptions};
    use crate::interfaces::geometry_msgs::msg::{PointStamped, PoseStamped};
    use crate::interfaces::rosgraph_msgs::msg::Clock;

    fn point(nanos: i64) -> PointStamped {
        let mut point = PointStamped::default();
        point.header.stamp = Time::from_nanos(nanos).into();
        point
    }

    fn pose(nanos: i64) -> PoseStamped {
        let mut pose = PoseStamped::default();
        pose.header.stamp = Time::from_nanos(nanos).into();
        pose
    }

    type Stamps = Arc<Mutex<Vec<(i64, i64)>>>;

    fn noted(stamps: &Stamps) -> impl FnMut((Arc<PointStamped>, Arc<PoseStamped>)) + use<> {
        let stamps = stamps.clone();
        move |(point, pose)| {
            let stamps_of_set = (point.stamp().as_nanos(), pose.stamp().as_nanos());
            stamps.lock().push(stamps_of_set);
        }
    }

    #[test]
    fn messages_of_two_types_are_joined_until_the_synchronizer_is_dropped() {
        let (points, poses) = (PassThrough::new(), PassThrough::new());
        for (policy, expected) in [
            (Policy::exact(10), vec![(2, 2)]),
            (Policy::approximate(10), vec![(2, 2)]),
            (
                Policy::slop(10, Duration::from_nanos(2)),
                vec![(2, 2), (1, 1)],
            ),
        ] {
            let stamps = Stamps::default();
            let sync = Synchronizer::new((&points, &poses), policy, noted(&stamps));
            points.pass(point(1));
            points.pass(point(2));
            poses.pass(pose(2));
            poses.pass(pose(1));
            assert_eq!(*stamps.lock(), expected);
            drop(sync);
        }
        points.pass(point(5));
        assert!(points.output.sinks.lock().is_empty());
    }

    #[test]
    fn a_callback_may_pass_messages_to_its_own_inputs() {
        let (points, poses) = (PassThrough::new(), PassThrough::new());
        let stamps = Stamps::default();
        let (mut note, inputs) = (noted(&stamps), (points.clone(), poses.clone()));
        let seen = stamps.clone();
        let callback = move |set: (Arc<PointStamped>, Arc<PoseStamped>)| {
            let first = set.0.stamp().as_nanos();
            note(set);
            for nanos in (first + 1..=first + 4).filter(|_| first == 1) {
                inputs.0.pass(point(nanos));
                inputs.1.pass(pose(nanos));
            }
            assert_eq!(seen.lock().last(), Some(&(first, first)));
        };
        let _sync = Synchronizer::new((&points, &poses), Policy::exact(2), callback);
        points.pass(point(1));
        poses.pass(pose(1));
        // Two wait beside those of the last message.
        assert_eq!(*stamps.lock(), [(1, 1), (3, 3), (4, 4), (5, 5)]);
        points.pass(point(9));
        poses.pass(pose(9));
        assert_eq!(stamps.lock().last(), Some(&(9, 9)));
    }

    #[test]
    fn a_silent_source_keeps_nothing_of_filters_that_were_dropped() {
        let (points, poses) = (PassThrough::new(), PassThrough::new());
        for _ in 0..9 {
            let stamps = Stamps::default();
            drop(Cache::new(&points, 1));
            let _ = Synchronizer::new((&points, &poses), Policy::exact(1), noted(&stamps));
        }
        assert_eq!(points.output.sinks.lock().len(), 1);
        assert_eq!(poses.output.sinks.lock().len(), 1);
        points.output().on_message(|_| ());
        points.output.prune();
        assert_eq!(points.output.sinks.lock().len(), 1);
    }

    #[test]
    fn caches_and_chains_are_sources_of_other_filters() {
        let (points, poses) = (PassThrough::new(), PassThrough::new());
        let cache = Cache::new(&points, 2);
        let even =
            |_: i64, pose: Arc<PoseStamped>| (pose.stamp().as_nanos() % 2 == 0).then_some(pose);
        let chain = Chain::new(&poses, FilterChain::new().with(even));
        let stamps = Stamps::default();
        let _sync = Synchronizer::new((&cache, &chain), Policy::exact(10), noted(&stamps));
        for nanos in 1..=4 {
            points.pass(point(nanos));
            poses.pass(pose(nanos));
        }
        assert_eq!(*stamps.lock(), [(2, 2), (4, 4)]);
        let (three, four) = (Time::from_nanos(3), Time::from_nanos(4));
        let stamp = |point: Option<Arc<PointStamped>>| point.map(|point| point.stamp());
        assert_eq!(stamp(cache.oldest()), Some(three));
        assert_eq!(stamp(cache.latest()), Some(four));
        assert_eq!(stamp(cache.before(three)), Some(three));
        assert_eq!(stamp(cache.after(four)), Some(four));
        assert_eq!(cache.interval(three, four).len(), 2);
        assert!(stamp(cache.before(Time::from_nanos(2))).is_none());
    }

    #[test]
    fn a_jump_back_of_the_clock_drops_what_waits() {
        let context = Context::with_options(ContextOptions::local(197)).unwrap();
        let node = context.create_node("joined").unwrap();
        let clock = node.create_publisher::<Clock>("/clock").unwrap();
        let time = |nanos: i64| {
            let clock_message = Clock {
                clock: Time::from_nanos(nanos).into(),
            };
            clock.publish(&clock_message).unwrap();
        };
        node.set_parameter("use_sim_time", true).unwrap();
        time(100);
        let points = Subscriber::<PointStamped>::new(&node, "points").unwrap();
        let poses = Subscriber::<PoseStamped>::new(&node, "poses").unwrap();
        let stamps = Stamps::default();
        let _sync = Synchronizer::new((&points, &poses), Policy::exact(2), noted(&stamps));
        let point_publisher = node.create_publisher::<PointStamped>("points").unwrap();
        let pose_publisher = node.create_publisher::<PoseStamped>("poses").unwrap();
        let seen = Arc::new(Mutex::new(0));
        let count = seen.clone();
        points.output().on_message(move |_| *count.lock() += 1);
        point_publisher.publish(&point(98)).unwrap();
        point_publisher.publish(&point(99)).unwrap();
        let timeout = Duration::from_secs(10);
        assert!(node.spin_until(|| *seen.lock() == 2, timeout));
        time(10);
        point_publisher.publish(&point(9)).unwrap();
        pose_publisher.publish(&pose(9)).unwrap();
        assert!(node.spin_until(|| !stamps.lock().is_empty(), timeout));
        assert_eq!(*stamps.lock(), [(9, 9)]);
    }
}
