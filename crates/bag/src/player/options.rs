//! Options of a player, and its result.

use std::collections::BTreeMap;
use std::time::Duration;

use pteros::msg::library::InterfaceLibrary;
use pteros::qos::QosProfile;

use crate::reader::MessageOrder;
use crate::topic_filter::TopicFilter;
use crate::topic_remap::TopicRemap;

/// Options of a player.
#[derive(Clone, Debug)]
pub struct PlayerOptions {
    /// Speed; 1 is as recorded.
    pub rate: f64,
    /// Begins again at the end, until stopped.
    pub repeat: bool,
    /// The part of the bag.
    pub part: PlayedPart,
    /// Wait before each round.
    pub delay: Duration,
    /// The topics.
    pub filter: TopicFilter,
    /// The time that orders and spaces messages.
    pub order: MessageOrder,
    /// New names of topics.
    pub remap: TopicRemap,
    /// QoS of publishers by recorded topic.
    pub qos_overrides: BTreeMap<String, QosProfile>,
    /// When `/clock` is published.
    pub clock: ClockOptions,
    /// Begins paused.
    pub start_paused: bool,
    /// Begins paused, publishes this many messages as fast as possible, and ends; 0 is
    /// all.
    pub burst: Option<u64>,
    /// Topics whose latest message before the start is published first, beside those of
    /// transient local topics.
    pub last_known: LastKnown,
    /// Sends recorded requests of services to their servers, instead of the recorded
    /// events.
    pub requests: Option<RequestSource>,
    /// Releases the next message when these nodes are done with the last.
    pub step: Option<StepOptions>,
    /// Plays late messages as fast as possible, until the recorded times are reached again.
    /// Without it, what follows a delay of more than 100 ms is played that much later.
    pub catch_up: bool,
    /// Messages that are read ahead; 1 at least.
    pub read_ahead: usize,
    /// Waits this long at most until every publisher has a subscription, and every
    /// recorded request its service.
    pub wait_for_matched: Option<Duration>,
    /// Waits this long at the end until all messages are acknowledged, and as long until
    /// requests are responded to; zero is for ever.
    pub wait_for_all_acked: Option<Duration>,
    /// After the end, waits for `~/play` until the context shuts down.
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

/// The part of a bag's time that is played; all of it by default. Of `duration` and
/// `until`, the later end counts, as with rosbag2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayedPart {
    /// Time of the bag that is left out at its beginning.
    pub start_offset: Duration,
    /// Time of the bag that is played, after the offset, with a message at its end. Zero
    /// plays nothing.
    pub duration: Option<Duration>,
    /// The time after the last message, in nanoseconds since 1970.
    pub until: Option<u64>,
}

impl PlayedPart {
    /// The first time and the time after the last, of a bag that has these times.
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

/// When `/clock` is published; never by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClockOptions {
    /// This many times per second.
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
    /// Every topic.
    pub all_topics: bool,
    /// These topics.
    pub topics: Vec<String>,
}

/// Which introspection a recorded request is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestSource {
    /// The server's: the requests that it received.
    #[default]
    Service,
    /// The clients': the requests that they sent.
    Client,
}

/// Deterministic replay, see [`Player`](super::Player).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOptions {
    /// Full names of the nodes.
    pub nodes: Vec<String>,
    /// How long a node may take for one message. Then playback ends with a problem.
    pub timeout: Duration,
}

/// How far playback is, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaybackProgress {
    /// The time of the last message that was played; `start` before the first.
    pub time: u64,
    /// The first time of the bag.
    pub start: u64,
    /// The last.
    pub end: u64,
    /// Whether it is paused.
    pub is_paused: bool,
}

/// The result of playback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaybackSummary {
    /// Messages published and requests sent, those of transient-local topics before the start
    /// included.
    pub published: u64,
    /// Messages that could not be published.
    pub failed: u64,
    /// The first reason for it, and what of the bag could not be read since the player
    /// started.
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
