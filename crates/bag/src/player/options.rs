//! Player options, and the result of playback.

use std::collections::BTreeMap;
use std::time::Duration;

use pteros::msg::library::InterfaceLibrary;
use pteros::qos::QosProfile;

use crate::reader::MessageOrder;
use crate::topic_filter::TopicFilter;
use crate::topic_remap::TopicRemap;

/// How a player plays a bag.
#[derive(Clone, Debug)]
pub struct PlayerOptions {
    /// Playback rate; 1 is as recorded.
    pub rate: f64,
    /// Repeats playback until it is stopped.
    pub repeat: bool,
    /// Played part of the bag.
    pub part: PlayedPart,
    /// Delay before each round.
    pub delay: Duration,
    /// Selected topics.
    pub filter: TopicFilter,
    /// Time that orders and spaces messages.
    pub order: MessageOrder,
    /// Remapping of topic names.
    pub remap: TopicRemap,
    /// QoS of publishers, by recorded topic.
    pub qos_overrides: BTreeMap<String, QosProfile>,
    /// When `/clock` is published.
    pub clock: ClockOptions,
    /// Publishes nothing until it is resumed or stepped.
    pub start_paused: bool,
    /// Starts paused, publishes this many messages as fast as possible, and ends; 0 means
    /// all.
    pub burst: Option<u64>,
    /// Topics whose latest message before the start is published first, in addition to
    /// transient-local topics.
    pub last_known: LastKnown,
    /// Sends recorded service requests to their servers, instead of publishing the
    /// recorded events.
    pub requests: Option<RequestSource>,
    /// Releases the next message when these nodes have handled the previous one.
    pub step: Option<StepOptions>,
    /// Plays late messages as fast as possible until playback is on time again.
    /// Otherwise, after a delay of more than 100 ms all later messages are played that
    /// much later.
    pub catch_up: bool,
    /// Messages read ahead; at least 1.
    pub read_ahead: usize,
    /// Maximum wait until every publisher has a subscription, and every recorded request
    /// its service.
    pub wait_for_matched: Option<Duration>,
    /// Maximum wait at the end until all messages are acknowledged and all requests are
    /// answered; zero means no limit.
    pub wait_for_all_acked: Option<Duration>,
    /// At the end, waits for `~/play` until the context shuts down.
    pub stay: bool,
    /// Definitions of types that the bag lacks.
    pub library: InterfaceLibrary,
}

impl Default for PlayerOptions {
    fn default() -> Self {
        Self {
            rate: 1.0,
            repeat: false,
            part: PlayedPart::default(),
            delay: Duration::ZERO,
            filter: TopicFilter::all(),
            order: MessageOrder::Received,
            remap: TopicRemap::default(),
            qos_overrides: BTreeMap::new(),
            clock: ClockOptions::default(),
            start_paused: false,
            burst: None,
            last_known: LastKnown::default(),
            requests: None,
            step: None,
            catch_up: false,
            read_ahead: 1000,
            wait_for_matched: None,
            wait_for_all_acked: None,
            stay: false,
            library: pteros::interfaces::library().clone(),
        }
    }
}

/// Played part of a bag's time; by default all of it. Of `duration` and `until`, the
/// later end applies, as with rosbag2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayedPart {
    /// Time skipped at the start of the bag.
    pub start_offset: Duration,
    /// Played time after the offset, including a message at its end. Zero plays nothing.
    pub duration: Option<Duration>,
    /// Time after the last played message, nanoseconds since 1970.
    pub until: Option<u64>,
}

impl PlayedPart {
    /// First time, and the time after the last, for a bag with the given times.
    pub(super) fn span(&self, (start, end): (u64, u64)) -> (u64, u64) {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let from = start.saturating_add(nanos(self.start_offset));
        let by_duration = self.duration.map(|duration| match nanos(duration) {
            0 => 0,
            nanos => from.saturating_add(nanos).saturating_add(1),
        });
        let limit = by_duration.max(self.until).unwrap_or(u64::MAX);
        (from, end.saturating_add(1).min(limit))
    }
}

/// When `/clock` is published; by default never.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClockOptions {
    /// Messages per second.
    pub rate: Option<f64>,
    /// Before each message of these topics.
    pub topics: Vec<String>,
    /// Before each message.
    pub all_topics: bool,
}

impl ClockOptions {
    pub(super) fn is_on(&self) -> bool {
        self.rate.is_some() || self.all_topics || !self.topics.is_empty()
    }

    pub(super) fn ticks_with(&self, topic: &str) -> bool {
        self.all_topics || self.topics.iter().any(|known| known == topic)
    }
}

/// Topics whose latest message before the start is published first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastKnown {
    /// Applies to every topic.
    pub all_topics: bool,
    /// Applies to these topics.
    pub topics: Vec<String>,
}

/// Introspection events from which requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestSource {
    /// Events of the server: requests that it received.
    #[default]
    Service,
    /// Events of the clients: requests that they sent.
    Client,
}

/// Deterministic replay, see [`Player`](super::Player).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOptions {
    /// Fully qualified node names.
    pub nodes: Vec<String>,
    /// Timeout of a node for one message. Playback then ends with a problem.
    pub timeout: Duration,
}

/// Position of playback, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaybackProgress {
    /// Time of the last played message; `start` before the first.
    pub time: u64,
    /// First time of the bag.
    pub start: u64,
    /// Last time of the bag.
    pub end: u64,
    /// Whether playback is paused, at a time between `start` and `end`.
    pub is_paused: bool,
}

/// The result of playback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaybackSummary {
    /// Published messages and sent requests, including transient-local messages before
    /// the start.
    pub published: u64,
    /// Messages that could not be published.
    pub failed: u64,
    /// The first publication error, and the parts of the bag that could not be read since
    /// the player started.
    pub problems: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_end_of_duration_and_until_counts_and_both_are_inclusive() {
        let span = |offset, duration: Option<u64>, until| {
            let part = PlayedPart {
                start_offset: Duration::from_nanos(offset),
                duration: duration.map(Duration::from_nanos),
                until,
            };
            part.span((1000, 2000))
        };
        assert_eq!(span(0, None, None), (1000, 2001));
        assert_eq!(span(100, Some(50), None), (1100, 1151));
        assert_eq!(span(0, Some(50), Some(1900)), (1000, 1900));
        assert_eq!(span(0, Some(950), Some(1900)), (1000, 1951));
        assert_eq!(span(0, Some(5000), None), (1000, 2001));
        assert_eq!(span(0, Some(0), None), (1000, 0));
    }
}
