//! Playback thread: waits for each message's time and publishes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pteros::error::CreateError;
use pteros::interfaces::builtin_interfaces;
use pteros::interfaces::rosbag2_interfaces::msg::ReadSplitEvent;
use pteros::interfaces::rosgraph_msgs::msg::Clock;
use pteros::msg::dynamic::DynamicMessage;
use pteros::service::ResponseFuture;
use pteros::{Context, NamedQosExt, Node, Publisher};

use super::options::{PlaybackSummary, PlayedPart, PlayerOptions};
use super::outputs::{Output, Outputs, Replayed};
use super::read_ahead::ReadAhead;
use super::state::Shared;
use super::stepping::Stepper;
use crate::reader::{BagMessage, BagReader, MessageFilter};
use crate::saturating_instant::{FOR_EVER, saturating_add};

/// Timeout for a stepped node's endpoints to match, once the node is discovered.
const MATCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait of a step for a graph that keeps changing.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(1);
/// Discovery is complete after this time without changes.
const QUIET_PERIOD: Duration = Duration::from_millis(120);

/// Pending requests for whose responses the player waits at the end. Beyond the limit,
/// the oldest are dropped.
const PENDING_MAX: usize = 1000;

/// Outcome of the wait for a message's time.
enum Wait {
    Due,
    Seek(u64),
    Stopped,
}

/// State of the playback thread.
pub(super) struct Playback {
    pub context: Context,
    pub bag: BagReader,
    /// Problems of the bag that were known at the start.
    pub known_problems: usize,
    pub options: PlayerOptions,
    pub outputs: Outputs,
    pub clock: Option<Publisher<Clock>>,
    pub splits: SplitReport,
    pub stepper: Option<Stepper>,
    pub shared: Arc<Shared>,
    pub next_tick: Option<Instant>,
    /// Whether a delay was reported.
    pub is_delay_noted: bool,
    /// Bag time of the next clock message in stepped replay.
    pub next_step_tick: Option<u64>,
    /// Graph revision after the last step.
    pub revision: u64,
    /// Requests without a response.
    pub pending: VecDeque<ResponseFuture<DynamicMessage>>,
    pub summary: PlaybackSummary,
}

impl Playback {
    pub(super) fn run(&mut self) {
        let ready = self.wait_for_subscriptions();
        self.revision = self.context.graph().revision();
        if let Err(problem) = ready {
            self.fail_unless_ended(problem);
            self.shared.change(|state| state.is_stopped = true);
        }
        self.stop_reading_when_stopped();
        let mut part = Some(self.options.part);
        while let Some(played) = part {
            self.play_part(played);
            self.wait_for_all_acked();
            part = self.wait_for_play();
        }
        self.shared.change(|state| {
            state.be_idle();
            state.is_ended = true;
        });
        let problems = self.bag.problems().iter().skip(self.known_problems);
        self.summary.problems.extend(problems.cloned());
        let summary = std::mem::take(&mut self.summary);
        self.shared.change(|state| state.summary = Some(summary));
    }

    fn stop_reading_when_stopped(&mut self) {
        let shared = self.shared.clone();
        self.bag.interrupt_when(move || shared.is_stopped());
    }

    /// An end requested by the user is no failure.
    fn fail_unless_ended(&mut self, problem: String) {
        if !self.context.is_shut_down() && !self.shared.is_stopped() {
            self.fail(problem);
        }
    }

    fn fail(&mut self, problem: String) {
        if self.summary.failed == 0 {
            self.summary.problems.push(problem);
        }
        self.summary.failed += 1;
    }

    /// Plays a part of the bag, repeatedly if so configured.
    fn play_part(&mut self, part: PlayedPart) {
        if let Some(span) = self.bag.span_by(self.options.order) {
            self.shared.lock().span = span;
            let (from, until) = part.span(span);
            while self.play_round(from, until) && self.options.repeat {}
        }
    }

    /// Waits until `~/play` requests another part. Returns `None` without
    /// [`PlayerOptions::stay`].
    fn wait_for_play(&mut self) -> Option<PlayedPart> {
        if !self.options.stay || self.context.is_shut_down() || self.shared.lock().is_ended {
            return None;
        }
        self.shared.change(super::state::PlayerState::be_idle);
        let mut state = self.shared.lock();
        loop {
            if let Some(part) = state.play.take() {
                return Some(part);
            }
            if self.context.is_shut_down() || state.is_ended {
                return None;
            }
            self.shared.wait(&mut state);
        }
    }

    /// Plays from one time to another. Returns false if it was stopped.
    fn play_round(&mut self, mut from: u64, until: u64) -> bool {
        if !self.shared.sleep(self.options.delay) {
            return false;
        }
        loop {
            self.splits.rewind();
            self.publish_state_before(from);
            let filter = MessageFilter {
                topics: Some(self.outputs.played()),
                from: Some(from),
                until: Some(until),
                order: self.options.order,
            };
            self.shared.change(|state| state.anchor = None);
            self.next_step_tick = None;
            let bag = std::mem::replace(&mut self.bag, BagReader::empty());
            let count = self.options.read_ahead.max(1);
            let messages = match ReadAhead::start(&self.context, &self.shared, bag, filter, count) {
                Ok(messages) => messages,
                Err(error) => {
                    self.fail(error.to_string());
                    return false;
                }
            };
            let end = if self.stepper.is_some() {
                self.step_through(&messages, from)
            } else {
                self.play_messages(&messages, from)
            };
            self.bag = messages.finish();
            self.stop_reading_when_stopped();
            match end {
                Wait::Due => {
                    self.shared.change(super::state::PlayerState::end_bursts);
                    return !self.shared.lock().is_stopped;
                }
                Wait::Seek(time) => from = time,
                Wait::Stopped => return false,
            }
        }
    }

    fn play_messages(&mut self, messages: &ReadAhead, from: u64) -> Wait {
        while let Some(message) = messages.next() {
            let time = message.time(self.options.order);
            match self.wait_until(time, from) {
                Wait::Due => {}
                other => return other,
            }
            if self.ticks_with(&message) {
                self.publish_clock(time);
            }
            self.publish(&message);
            self.shared.lock().count(time);
        }
        Wait::Due
    }

    /// Releases each message after the stepped nodes have handled the previous one.
    fn step_through(&mut self, messages: &ReadAhead, from: u64) -> Wait {
        while let Some(message) = messages.next() {
            match self.wait_until(0, from) {
                Wait::Due => {}
                other => return other,
            }
            if let Err(problem) = self.step(&message, from) {
                self.fail_unless_ended(problem);
                self.shared.change(|state| state.is_stopped = true);
                return Wait::Stopped;
            }
            self.shared.lock().count(message.time(self.options.order));
        }
        Wait::Due
    }

    fn step(&mut self, message: &BagMessage, from: u64) -> Result<(), String> {
        let time = message.time(self.options.order);
        if let Some(rate) = self.options.clock.rate {
            let period = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(FOR_EVER);
            let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
            let mut tick = self.next_step_tick.unwrap_or(from);
            while tick <= time {
                self.publish_clock(tick);
                self.wait_until_done()?;
                tick = tick.saturating_add(period);
                if self.shared.lock().is_stopped {
                    break;
                }
            }
            self.next_step_tick = Some(tick);
        }
        if self.ticks_with(message) {
            self.publish_clock(time);
            self.wait_until_done()?;
        }
        self.publish(message);
        self.wait_until_done()
    }

    /// Waits until the stepped nodes are idle. New endpoints, for example those of a
    /// configured node, first receive their transient-local messages.
    fn wait_until_done(&mut self) -> Result<(), String> {
        self.wait_for_callbacks()?;
        let graph = self.context.graph();
        if graph.revision() != self.revision {
            wait_until_quiet(&graph, CHANGE_TIMEOUT);
            self.revision = graph.revision();
            self.wait_for_callbacks()?;
        }
        Ok(())
    }

    fn wait_for_callbacks(&self) -> Result<(), String> {
        let Some(stepper) = &self.stepper else {
            return Ok(());
        };
        for publisher in self.outputs.publishers() {
            if !publisher.wait_for_all_acked(stepper.timeout()) {
                return Err(format!(
                    "topic {}: a subscription acknowledged no message for {} s",
                    publisher.topic(),
                    stepper.timeout().as_secs_f64()
                ));
            }
        }
        stepper.wait_until_done()
    }

    fn ticks_with(&self, message: &BagMessage) -> bool {
        let name = self.outputs.names.get(message.topic);
        self.options
            .clock
            .ticks_with(name.map_or("", String::as_str))
    }

    /// Publishes what a late joiner would receive at `from`: the latest messages of
    /// transient-local topics, and the last ones of other configured topics.
    fn publish_state_before(&mut self, from: u64) {
        let order = self.options.order;
        if self
            .bag
            .span_by(order)
            .is_none_or(|(start, _)| from <= start)
        {
            return;
        }
        let known = &self.options.last_known;
        let mut depths = BTreeMap::new();
        for at in self.outputs.played() {
            let Some(recorded) = self.bag.topics().get(at) else {
                continue;
            };
            let topic = &recorded.topic;
            let is_request = matches!(self.outputs.by_topic.get(at), Some(Output::Requests(_)));
            if topic.is_transient_local() {
                depths.insert(at, topic.transient_local_depth_of_all());
            } else if !is_request && (known.all_topics || known.topics.contains(&topic.name)) {
                depths.insert(at, 1);
            }
        }
        if depths.is_empty() {
            return;
        }
        for message in self.bag.latest_before(&depths, from, order) {
            self.publish(&message);
        }
    }

    fn publish(&mut self, message: &BagMessage) {
        self.splits.follow(message.file);
        let published = match self.outputs.by_topic.get(message.topic) {
            Some(Output::Topic(publisher)) => publisher
                .publish_serialized(message.payload.clone())
                .map(|()| true)
                .map_err(|error| error.to_string()),
            Some(Output::Requests(requests)) => {
                if let Some(stepper) = &self.stepper {
                    // The server may have been started by the last message.
                    requests.client.wait_for_service(stepper.timeout());
                }
                requests
                    .send(&message.payload)
                    .and_then(|replayed| match replayed {
                        Replayed::Nothing => Ok(false),
                        Replayed::Sent(response) => {
                            let Some(stepper) = &self.stepper else {
                                if self.pending.len() >= PENDING_MAX {
                                    self.pending.pop_front();
                                }
                                self.pending.push_back(response);
                                return Ok(true);
                            };
                            let response = response.wait(stepper.timeout());
                            response.map(|_| true).map_err(|error| error.to_string())
                        }
                    })
            }
            Some(Output::None) | None => Ok(false),
        };
        match published {
            Ok(true) => self.summary.published += 1,
            Ok(false) => {}
            // The player ends with its context, which is no failure.
            Err(_) if self.context.is_shut_down() => {
                self.shared.change(super::state::PlayerState::stop);
            }
            Err(problem) => self.fail(problem),
        }
    }

    /// Waits for the stepped nodes, and for a subscription of each topic.
    fn wait_for_subscriptions(&self) -> Result<(), String> {
        if let Some(stepper) = &self.stepper {
            stepper.wait_for_nodes()?;
            // A node answers once its executor spins. Its endpoints are announced by
            // then.
            stepper.wait_until_done()?;
            let graph = self.context.graph();
            wait_until_quiet(&graph, MATCH_TIMEOUT);
            for publisher in self.outputs.publishers() {
                let names = stepper.names();
                let expected = graph.subscriptions(publisher.topic());
                let subscribes = |name: &str| {
                    expected
                        .iter()
                        .any(|endpoint| full_name(endpoint) == Some(name.to_owned()))
                };
                if names.into_iter().any(subscribes) {
                    publisher.wait_for_matched(1, MATCH_TIMEOUT);
                }
            }
        }
        if let Some(limit) = self.options.wait_for_matched {
            let end = saturating_add(Shared::now(), limit);
            for output in &self.outputs.by_topic {
                let left = end.saturating_duration_since(Shared::now());
                match output {
                    Output::Topic(publisher) => publisher.wait_for_matched(1, left),
                    Output::Requests(requests) => requests.client.wait_for_service(left),
                    Output::None => true,
                };
            }
        }
        Ok(())
    }

    /// Waits until messages are acknowledged and requests are answered. A request ends
    /// with its client.
    fn wait_for_all_acked(&mut self) {
        if let Some(limit) = self.options.wait_for_all_acked {
            let limit = if limit.is_zero() { FOR_EVER } else { limit };
            // One timeout for all publishers together.
            let end = saturating_add(Shared::now(), limit.min(FOR_EVER));
            for publisher in self.outputs.publishers() {
                publisher.wait_for_all_acked(end.saturating_duration_since(Shared::now()));
            }
            for response in self.pending.drain(..) {
                let left = end.saturating_duration_since(Shared::now());
                if let Err(error) = response.wait(left) {
                    tracing::debug!("a replayed request: {error}");
                }
            }
        }
    }

    /// Waits until bag time `time`, and publishes the clock meanwhile. In stepped replay,
    /// a time of 0 is reached at once.
    fn wait_until(&mut self, time: u64, from: u64) -> Wait {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        loop {
            if state.is_stopped {
                return Wait::Stopped;
            }
            if let Some(time) = state.seek.take() {
                return Wait::Seek(time);
            }
            let now = Shared::now();
            let (at, start) = *state.anchor.get_or_insert((now, from));
            // A step requested before the resumption still counts.
            let is_stepped = state.steps > 0;
            if is_stepped || (state.is_paused && state.is_bursting()) {
                state.steps -= u64::from(is_stepped);
                state.anchor = Some((now, time.max(start)));
                return Wait::Due;
            }
            if state.is_paused {
                shared.wait(&mut state);
                continue;
            }
            let ahead = Duration::from_nanos(time.saturating_sub(start));
            let due = after(at, ahead.as_secs_f64() / state.rate);
            let mut tick = self.next_tick(now);
            if tick.is_some_and(|tick| tick <= now)
                && let (Some(position), Some(rate)) = (state.position(now), self.options.clock.rate)
            {
                tick = Some(after(now, 1.0 / rate));
                self.next_tick = tick;
                self.publish_clock(position.min(time));
            }
            // Clock messages do not delay a message that is due.
            if due <= now {
                let moves = !self.options.catch_up && self.stepper.is_none();
                if moves && let Some(delay) = state.skip_delay(now, due, time.max(start)) {
                    drop(state);
                    self.note_delay(delay);
                }
                return Wait::Due;
            }
            let wake = tick.map_or(due, |tick| tick.min(due));
            shared.wait_until(&mut state, wake);
        }
    }

    fn note_delay(&mut self, delay: Duration) {
        if std::mem::replace(&mut self.is_delay_noted, true) {
            return;
        }
        tracing::warn!(
            "playback is {delay:.1?} late, because the process was stopped or the bag, a queue or the rate is too much for it: what follows is played that much later, without a burst; further delays are not reported"
        );
    }

    /// Next clock message by the configured rate. In stepped replay the clock follows the
    /// bag.
    fn next_tick(&mut self, now: Instant) -> Option<Instant> {
        self.options.clock.rate?;
        if self.stepper.is_some() {
            return None;
        }
        Some(*self.next_tick.get_or_insert(now))
    }

    fn publish_clock(&self, time: u64) {
        if let Some(clock) = &self.clock {
            let message = Clock {
                clock: to_stamp(time),
            };
            // The clock's history cannot be full.
            if let Err(error) = clock.publish(&message) {
                tracing::debug!("/clock: {error}");
            }
        }
    }
}

/// Waits until the graph has not changed for [`QUIET_PERIOD`].
fn wait_until_quiet(graph: &pteros::Graph, timeout: Duration) {
    let end = saturating_add(Shared::now(), timeout);
    let mut revision = graph.revision();
    while Shared::now() < end {
        let now = graph.wait_for_change(revision, QUIET_PERIOD);
        if now == revision {
            return;
        }
        revision = now;
    }
}

/// Reports on `events/read_split` that playback enters the next file.
pub(super) struct SplitReport {
    publisher: Publisher<ReadSplitEvent>,
    files: Vec<String>,
    node_name: String,
    /// File of the last message.
    current: usize,
}

impl SplitReport {
    pub(super) fn new(node: &Node, bag: &BagReader) -> Result<Self, CreateError> {
        Ok(Self {
            publisher: node.create_publisher("events/read_split".keep_last(10))?,
            files: bag.files().map(|file| file.display().to_string()).collect(),
            node_name: node.fully_qualified_name(),
            current: 0,
        })
    }

    /// Notes the file of a published message. Messages of overlapping files alternate, so
    /// only the first step forward is reported.
    fn follow(&mut self, file: usize) {
        if file <= self.current {
            return;
        }
        let name = |file: usize| self.files.get(file).cloned().unwrap_or_default();
        let event = ReadSplitEvent {
            closed_file: name(self.current),
            opened_file: name(file),
            node_name: self.node_name.clone(),
        };
        self.current = file;
        if let Err(error) = self.publisher.publish(&event) {
            tracing::debug!("events/read_split: {error}");
        }
    }

    /// Playback restarts, or seeks.
    fn rewind(&mut self) {
        self.current = 0;
    }
}

fn full_name(endpoint: &pteros::graph::EndpointInfo) -> Option<String> {
    let namespace = endpoint.node_namespace.as_deref()?.trim_end_matches('/');
    Some(format!("{namespace}/{}", endpoint.node_name.as_deref()?))
}

/// The instant `seconds` later, or one in the far future.
fn after(moment: Instant, seconds: f64) -> Instant {
    let span = Duration::try_from_secs_f64(seconds).unwrap_or(FOR_EVER);
    saturating_add(moment, span)
}

fn to_stamp(time: u64) -> builtin_interfaces::msg::Time {
    let seconds = i32::try_from(time / 1_000_000_000).unwrap_or(i32::MAX);
    builtin_interfaces::msg::Time {
        sec: seconds,
        nanosec: u32::try_from(time % 1_000_000_000).unwrap_or(0),
    }
}
