//! Player: publishes the messages of a bag with their spacing in time.
//!
//! A thread of its own waits for each message's time on the steady clock and
//! publishes. The thread that spins the node serves the services, which change the
//! shared state and wake the player. Messages are published serialized, as they were
//! recorded.
#![allow(
    clippy::disallowed_methods,
    reason = "playback follows the steady clock of this host"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use pteros::interfaces::builtin_interfaces;
use pteros::interfaces::rosbag2_interfaces::srv;
use pteros::interfaces::rosgraph_msgs;
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::library::InterfaceLibrary;
use pteros::qos::{HistoryPolicy, QosProfile};
use pteros::{NamedQosExt, Node, Publisher, PublisherOptions, Service};

use crate::definitions::type_of;
use crate::error::BagError;
use crate::reader::{BagMessage, BagReader, MessageFilter};
use crate::topic_filter::TopicFilter;

/// Longer than anybody waits; the sum with any clock time is valid.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// How a bag is played.
#[derive(Clone, Debug)]
pub struct PlayerOptions {
    /// Speed; 1 is as recorded.
    pub rate: f64,
    /// Begins again at the end, until stopped.
    pub repeat: bool,
    /// Time of the bag that is left out at its beginning.
    pub start_offset: Duration,
    /// Time of the bag that is played, after the offset.
    pub duration: Option<Duration>,
    /// The log time after the last message, in nanoseconds since 1970.
    pub until: Option<u64>,
    /// Wait before each round.
    pub delay: Duration,
    /// The topics.
    pub filter: TopicFilter,
    /// New names by recorded name.
    pub remap: BTreeMap<String, String>,
    /// QoS of publishers by recorded topic.
    pub qos_overrides: BTreeMap<String, QosProfile>,
    /// Publishes `/clock` this many times per second.
    pub clock_rate: Option<f64>,
    /// Begins paused.
    pub start_paused: bool,
    /// Waits this long at most until every publisher has a subscription.
    pub wait_for_matched: Option<Duration>,
    /// Waits this long at the end until all messages are acknowledged; zero is for
    /// ever.
    pub wait_for_all_acked: Option<Duration>,
    /// Definitions of types that the bag lacks.
    pub library: InterfaceLibrary,
}

impl Default for PlayerOptions {
    fn default() -> Self {
        Self {
            rate: 1.0,
            repeat: false,
            start_offset: Duration::ZERO,
            duration: None,
            until: None,
            delay: Duration::ZERO,
            filter: TopicFilter::all(),
            remap: BTreeMap::new(),
            qos_overrides: BTreeMap::new(),
            clock_rate: None,
            start_paused: false,
            wait_for_matched: None,
            wait_for_all_acked: None,
            library: pteros::interfaces::library().clone(),
        }
    }
}

/// What was played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaybackSummary {
    /// Messages published, those of latched topics before the start included.
    pub published: u64,
    /// Messages that could not be published.
    pub failed: u64,
    /// The first reason for it, and what of the bag could not be read.
    pub problems: Vec<String>,
}

/// Plays a bag on a thread of its own, see [`Player::start`].
///
/// It offers `~/pause`, `~/resume`, `~/toggle_paused`, `~/is_paused`, `~/play_next`,
/// `~/get_rate`, `~/set_rate`, `~/seek` and `~/stop`, as rosbag2's player.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros_bag::{BagReader, Player, PlayerOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("player")?;
/// let executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&node)?;
/// let bag = BagReader::open("my_bag".as_ref())?;
/// let player = Player::start(&node, bag, PlayerOptions::default())?;
/// executor.spin_until(|| player.summary().is_some(), std::time::Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
pub struct Player {
    shared: Arc<Shared>,
    skipped: Vec<String>,
    _services: Services,
}

struct Shared {
    state: Mutex<PlayerState>,
    changed: Condvar,
}

struct PlayerState {
    is_paused: bool,
    rate: f64,
    is_stopped: bool,
    seek: Option<u64>,
    /// Messages to publish although paused.
    steps: u64,
    /// A moment and the bag's time at it; `None` until the first message.
    anchor: Option<(Instant, u64)>,
    span: (u64, u64),
    summary: Option<PlaybackSummary>,
}

impl PlayerState {
    /// The bag's time now.
    fn position(&self, now: Instant) -> Option<u64> {
        let (at, time) = self.anchor?;
        if self.is_paused {
            return Some(time);
        }
        let passed = now.saturating_duration_since(at).as_secs_f64() * self.rate;
        let passed = Duration::try_from_secs_f64(passed).unwrap_or(Duration::MAX);
        Some(time.saturating_add(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Makes the bag's time now the start of what follows.
    fn settle(&mut self, now: Instant) {
        if let Some(time) = self.position(now) {
            self.anchor = Some((now, time));
        }
    }

    fn set_paused(&mut self, is_paused: bool) {
        let now = Instant::now();
        self.settle(now);
        self.is_paused = is_paused;
        self.settle(now);
    }
}

/// What happened while a message waited for its time.
enum Wait {
    Due,
    Seek(u64),
    Stopped,
}

struct Services {
    _pause: Service<srv::Pause>,
    _resume: Service<srv::Resume>,
    _toggle: Service<srv::TogglePaused>,
    _is_paused: Service<srv::IsPaused>,
    _next: Service<srv::PlayNext>,
    _rate: Service<srv::GetRate>,
    _set_rate: Service<srv::SetRate>,
    _seek: Service<srv::Seek>,
    _stop: Service<srv::Stop>,
}

impl Player {
    /// Creates a publisher per topic and begins to play.
    ///
    /// # Errors
    /// No topic is chosen, the rate is not positive, or an endpoint cannot be created.
    pub fn start(node: &Node, bag: BagReader, options: PlayerOptions) -> Result<Self, BagError> {
        if !(options.rate.is_finite() && options.rate > 0.0) {
            return Err(BagError::Invalid(format!(
                "rate {}: the rate is a number above 0, for example 0.5",
                options.rate
            )));
        }
        let span = bag.span().unwrap_or((0, 0));
        let shared = Arc::new(Shared {
            state: Mutex::new(PlayerState {
                is_paused: options.start_paused,
                rate: options.rate,
                is_stopped: false,
                seek: None,
                steps: 0,
                anchor: None,
                span,
                summary: None,
            }),
            changed: Condvar::new(),
        });
        let (publishers, skipped) = create_publishers(node, &bag, &options)?;
        let clock = match options.clock_rate {
            Some(_) => Some(node.create_publisher("/clock".qos(QosProfile::default()))?),
            None => None,
        };
        let services = create_services(node, &shared)?;
        let mut playback = Playback {
            bag,
            options,
            publishers,
            clock,
            next_tick: None,
            shared: shared.clone(),
            summary: PlaybackSummary::default(),
        };
        let spawned = node
            .context()
            .spawn_thread("bag_player", move || playback.run());
        spawned
            .map_err(|error| BagError::Invalid(format!("starting the player thread: {error}")))?;
        Ok(Self {
            shared,
            skipped,
            _services: services,
        })
    }

    /// Topics that are not played, with the reason.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// What was played; `None` while it plays.
    pub fn summary(&self) -> Option<PlaybackSummary> {
        self.shared.state.lock().summary.clone()
    }

    /// Pauses or resumes.
    pub fn set_paused(&self, is_paused: bool) {
        self.shared.change(|state| state.set_paused(is_paused));
    }

    /// Ends playback at the next message.
    pub fn stop(&self) {
        self.shared.change(|state| state.is_stopped = true);
    }
}

impl Shared {
    fn change<R>(&self, change: impl FnOnce(&mut PlayerState) -> R) -> R {
        let result = change(&mut self.state.lock());
        self.changed.notify_all();
        result
    }
}

type TopicPublisher = Publisher<DynamicMessage>;

fn create_publishers(
    node: &Node,
    bag: &BagReader,
    options: &PlayerOptions,
) -> Result<(Vec<Option<TopicPublisher>>, Vec<String>), BagError> {
    let mut skipped = Vec::new();
    let mut publishers = Vec::new();
    for recorded in bag.topics() {
        let topic = &recorded.topic;
        // The player's own clock takes its place.
        let is_clock = topic.name == "/clock" && options.clock_rate.is_some();
        if is_clock || !options.filter.chooses(&topic.name, &topic.type_name) {
            publishers.push(None);
            continue;
        }
        let ty = match type_of(&topic.type_name, &topic.definition, &options.library) {
            Ok(ty) => ty,
            Err(problem) => {
                skipped.push(format!("topic {} is not played: {problem}", topic.name));
                publishers.push(None);
                continue;
            }
        };
        let name = options.remap.get(&topic.name).unwrap_or(&topic.name);
        let qos = match options.qos_overrides.get(&topic.name) {
            Some(profile) => profile.clone(),
            None => offered(&topic.offered_qos),
        };
        let created = node.create_publisher(PublisherOptions::<DynamicMessage>::of_type(
            &ty,
            name.qos(qos),
        ))?;
        publishers.push(Some(created));
    }
    if publishers.iter().all(Option::is_none) {
        let topics: Vec<&str> = bag.topics().iter().map(|t| t.topic.name.as_str()).collect();
        let reason = skipped
            .first()
            .cloned()
            .unwrap_or_else(|| format!("no topic to play; the bag has: {}", topics.join(", ")));
        return Err(BagError::NotABag {
            path: bag.path().to_owned(),
            problem: reason,
        });
    }
    Ok((publishers, skipped))
}

/// The recorded profile if all publishers agreed, history apart; else the default.
fn offered(profiles: &[QosProfile]) -> QosProfile {
    let Some(first) = profiles.first() else {
        return QosProfile::default();
    };
    let alike = |profile: &QosProfile| QosProfile {
        history: first.history,
        ..profile.clone()
    };
    if profiles.iter().any(|profile| alike(profile) != *first) {
        return QosProfile::default();
    }
    let mut profile = first.clone();
    if profile.history == HistoryPolicy::SystemDefault {
        profile.history = HistoryPolicy::KeepLast(10);
    }
    // A bag's messages are older than any lifespan, and pauses end no deadline.
    profile.lifespan = None;
    profile
}

/// The player's thread.
struct Playback {
    bag: BagReader,
    options: PlayerOptions,
    publishers: Vec<Option<TopicPublisher>>,
    clock: Option<Publisher<rosgraph_msgs::msg::Clock>>,
    next_tick: Option<Instant>,
    shared: Arc<Shared>,
    summary: PlaybackSummary,
}

impl Playback {
    fn run(&mut self) {
        self.wait_for_matched();
        let offset = u64::try_from(self.options.start_offset.as_nanos()).unwrap_or(u64::MAX);
        if let Some((start, end)) = self.bag.span() {
            let from = start.saturating_add(offset);
            let mut until = end
                .saturating_add(1)
                .min(self.options.until.unwrap_or(u64::MAX));
            if let Some(duration) = self.options.duration {
                let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                until = until.min(from.saturating_add(nanos));
            }
            while self.play_round(from, until) && self.options.repeat {}
        }
        if let Some(limit) = self.options.wait_for_all_acked {
            let limit = if limit.is_zero() { FOR_EVER } else { limit };
            for publisher in self.publishers.iter().flatten() {
                publisher.wait_for_all_acked(limit);
            }
        }
        let problems = self.bag.problems().iter().cloned();
        self.summary.problems.extend(problems);
        let summary = std::mem::take(&mut self.summary);
        self.shared.change(|state| state.summary = Some(summary));
    }

    /// Plays from one time to another; false if it was stopped.
    fn play_round(&mut self, mut from: u64, until: u64) -> bool {
        if !self.sleep(self.options.delay) {
            return false;
        }
        loop {
            self.publish_latched_before(from);
            let filter = MessageFilter {
                topics: Some(self.played()),
                from: Some(from),
                until: Some(until),
            };
            self.shared.change(|state| state.anchor = None);
            let mut bag = std::mem::replace(&mut self.bag, BagReader::empty());
            let end = self.play_messages(bag.messages(filter), from);
            self.bag = bag;
            match end {
                Wait::Due => return true,
                Wait::Seek(time) => from = time,
                Wait::Stopped => return false,
            }
        }
    }

    fn play_messages(&mut self, messages: impl Iterator<Item = BagMessage>, from: u64) -> Wait {
        for message in messages {
            match self.wait_until(message.log_time, from) {
                Wait::Due => self.publish(&message),
                other => return other,
            }
        }
        Wait::Due
    }

    fn played(&self) -> Vec<usize> {
        let all = self.publishers.iter().enumerate();
        all.filter_map(|(at, publisher)| publisher.as_ref().map(|_| at))
            .collect()
    }

    /// Publishes what late joiners would have of latched topics at that time.
    fn publish_latched_before(&mut self, from: u64) {
        if self.bag.span().is_none_or(|(start, _)| from <= start) {
            return;
        }
        let mut topics = self.played();
        topics.retain(|at| {
            self.bag
                .topics()
                .get(*at)
                .is_some_and(|t| t.topic.is_latched())
        });
        if topics.is_empty() {
            return;
        }
        let depth = |bag: &BagReader, at: usize| {
            bag.topics()
                .get(at)
                .map_or(1, |recorded| recorded.topic.latched_depth())
        };
        let depths: BTreeMap<usize, usize> = topics
            .iter()
            .map(|at| (*at, depth(&self.bag, *at)))
            .collect();
        let mut kept: BTreeMap<usize, VecDeque<BagMessage>> = BTreeMap::new();
        let filter = MessageFilter {
            topics: Some(topics),
            from: None,
            until: Some(from),
        };
        for mut message in self.bag.messages(filter) {
            // A view would keep its whole chunk.
            message.payload = bytes::Bytes::copy_from_slice(&message.payload);
            let queue = kept.entry(message.topic).or_default();
            let depth = depths.get(&message.topic).copied().unwrap_or(1);
            queue.push_back(message);
            if queue.len() > depth {
                queue.pop_front();
            }
        }
        for message in kept.into_values().flatten() {
            self.publish(&message);
        }
    }

    fn publish(&mut self, message: &BagMessage) {
        let Some(Some(publisher)) = self.publishers.get(message.topic) else {
            return;
        };
        match publisher.publish_serialized(message.payload.clone()) {
            Ok(()) => self.summary.published += 1,
            Err(error) => {
                if self.summary.failed == 0 {
                    self.summary.problems.push(error.to_string());
                }
                self.summary.failed += 1;
            }
        }
    }

    fn wait_for_matched(&self) {
        let Some(limit) = self.options.wait_for_matched else {
            return;
        };
        let end = Instant::now() + limit;
        for publisher in self.publishers.iter().flatten() {
            let left = end.saturating_duration_since(Instant::now());
            publisher.wait_for_matched(1, left);
        }
    }

    /// Sleeps; false if it was stopped.
    fn sleep(&self, span: Duration) -> bool {
        let end = Instant::now() + span;
        let mut state = self.shared.state.lock();
        while !state.is_stopped && Instant::now() < end {
            self.shared.changed.wait_until(&mut state, end);
        }
        !state.is_stopped
    }

    /// Waits until the time of the bag is reached, and publishes the clock meanwhile.
    fn wait_until(&mut self, time: u64, from: u64) -> Wait {
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        loop {
            if state.is_stopped {
                return Wait::Stopped;
            }
            if let Some(time) = state.seek.take() {
                return Wait::Seek(time);
            }
            let now = Instant::now();
            let (at, start) = *state.anchor.get_or_insert((now, from));
            if state.is_paused {
                if state.steps > 0 {
                    state.steps -= 1;
                    state.anchor = Some((now, time));
                    return Wait::Due;
                }
                shared.changed.wait(&mut state);
                continue;
            }
            let ahead = Duration::from_nanos(time.saturating_sub(start));
            let due = after(at, ahead.as_secs_f64() / state.rate);
            let tick = self.next_tick(now);
            if tick.is_some_and(|tick| tick <= now) {
                if let Some(position) = state.position(now) {
                    self.publish_clock(position.min(time), now);
                }
                continue;
            }
            if due <= now {
                return Wait::Due;
            }
            let wake = tick.map_or(due, |tick| tick.min(due));
            shared.changed.wait_until(&mut state, wake);
        }
    }

    fn next_tick(&mut self, now: Instant) -> Option<Instant> {
        self.clock.as_ref()?;
        Some(*self.next_tick.get_or_insert(now))
    }

    fn publish_clock(&mut self, time: u64, now: Instant) {
        let rate = self
            .options
            .clock_rate
            .unwrap_or(1.0)
            .max(f64::MIN_POSITIVE);
        self.next_tick = Some(after(now, 1.0 / rate));
        if let Some(clock) = &self.clock {
            let message = rosgraph_msgs::msg::Clock {
                clock: to_stamp(time),
            };
            // The clock has no history that could be full.
            if let Err(error) = clock.publish(&message) {
                tracing::debug!("/clock: {error}");
            }
        }
    }
}

/// The moment that many seconds later, or one in the far future.
fn after(moment: Instant, seconds: f64) -> Instant {
    let span = Duration::try_from_secs_f64(seconds).unwrap_or(FOR_EVER);
    moment + span.min(FOR_EVER)
}

fn to_stamp(time: u64) -> builtin_interfaces::msg::Time {
    let seconds = i32::try_from(time / 1_000_000_000).unwrap_or(i32::MAX);
    builtin_interfaces::msg::Time {
        sec: seconds,
        nanosec: u32::try_from(time % 1_000_000_000).unwrap_or(0),
    }
}

fn from_stamp(stamp: &builtin_interfaces::msg::Time) -> u64 {
    let seconds = u64::try_from(stamp.sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::from(stamp.nanosec)
}

fn create_services(node: &Node, shared: &Arc<Shared>) -> Result<Services, BagError> {
    let [
        pause,
        resume,
        toggle,
        is_paused,
        next,
        rate,
        set_rate,
        seek,
        stop,
    ] = std::array::from_fn(|_| shared.clone());
    Ok(Services {
        _pause: node.create_service("~/pause", move |_| {
            pause.change(|state| state.set_paused(true));
            srv::PauseResponse {}
        })?,
        _resume: node.create_service("~/resume", move |_| {
            resume.change(|state| state.set_paused(false));
            srv::ResumeResponse {}
        })?,
        _toggle: node.create_service("~/toggle_paused", move |_| {
            toggle.change(|state| state.set_paused(!state.is_paused));
            srv::TogglePausedResponse {}
        })?,
        _is_paused: node.create_service("~/is_paused", move |_| srv::IsPausedResponse {
            paused: is_paused.state.lock().is_paused,
        })?,
        _next: node.create_service("~/play_next", move |_| {
            let success = next.change(|state| {
                let possible = state.is_paused && state.summary.is_none();
                state.steps += u64::from(possible);
                possible
            });
            srv::PlayNextResponse { success }
        })?,
        _rate: node.create_service("~/get_rate", move |_| srv::GetRateResponse {
            rate: rate.state.lock().rate,
        })?,
        _set_rate: node.create_service::<srv::SetRate>("~/set_rate", move |request| {
            let success = request.rate.is_finite() && request.rate > 0.0;
            if success {
                set_rate.change(|state| {
                    state.settle(Instant::now());
                    state.rate = request.rate;
                });
            }
            srv::SetRateResponse { success }
        })?,
        _seek: node.create_service::<srv::Seek>("~/seek", move |request| {
            let time = from_stamp(&request.time);
            let success = seek.change(|state| {
                let (start, end) = state.span;
                let possible = (start..=end).contains(&time) && state.summary.is_none();
                if possible {
                    state.seek = Some(time);
                }
                possible
            });
            srv::SeekResponse { success }
        })?,
        _stop: node.create_service("~/stop", move |_| {
            stop.change(|state| state.is_stopped = true);
            srv::StopResponse {}
        })?,
    })
}
