//! What a reader is made with, and what it is told of each writer.

use alloc::sync::Arc;

use crate::content_filter::ContentFilter;
use crate::defrag::DefragLimits;
use crate::id::{Guid, VendorId};
use crate::locator::Route;
use crate::qos::History;
use crate::shared_qos::SharedQos;
use crate::time::Duration;

/// Everything a [`Reader`](super::Reader) needs to know at birth.
#[derive(Clone, PartialEq, Debug)]
pub struct ReaderConfig {
    /// Its own identity.
    pub guid: Guid,
    /// Its policies.
    pub qos: SharedQos,
    /// When missing samples are asked for.
    pub nack: NackConfig,
    /// Bounds of its memory.
    pub limits: ReaderLimits,
    /// The largest datagram it sends.
    pub datagram_bytes_max: usize,
    /// What it wants of the topic; `None` is all.
    pub content_filter: Option<Arc<ContentFilter>>,
}

impl ReaderConfig {
    /// The stack's defaults around these policies. A KEEP_ALL reader's queue
    /// holds its `max_samples`; when that is full, reliable writers wait.
    pub fn new(guid: Guid, qos: impl Into<SharedQos>) -> Self {
        let qos = qos.into();
        let mut limits = ReaderLimits::default();
        if qos.history == History::KeepAll
            && let Some(samples) = qos.resource_limits.max_samples
        {
            limits.ready_samples_max = usize::try_from(samples.max(1)).unwrap_or(usize::MAX);
        }
        Self {
            guid,
            qos,
            nack: NackConfig::default(),
            limits,
            datagram_bytes_max: 1_400,
            content_filter: None,
        }
    }
}

/// When a reliable reader asks for what is missing. Heartbeats are answered at
/// once (RTPS 2.5 §8.4.10.1 allows a heartbeatResponseDelay; ours is zero).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackConfig {
    /// After a gap seen without heartbeat: datagrams may have overtaken each
    /// other, so the request waits this long.
    pub gap_delay: Duration,
    /// A heartbeat does not make us repeat a request younger than this; the
    /// answer may be under way. Once answers were seen: a quarter longer than
    /// they take, at least `suppression_min`.
    pub suppression: Duration,
    /// The shortest such age.
    pub suppression_min: Duration,
    /// Pause before an unanswered request is repeated. Once answers were seen:
    /// a quarter longer than they take, at least `first_min`.
    pub first: Duration,
    /// The shortest such pause.
    pub first_min: Duration,
    /// So many repetitions at an equal pause before it doubles: at a loss of
    /// 30 % each way one exchange in two fails.
    pub steady: u32,
    /// The longest such pause.
    pub max: Duration,
    /// How often a reader presents itself to a reliable writer that has not
    /// sent a heartbeat, at pauses from `first` up to `introduction_max`.
    pub introductions: u32,
    /// The longest pause between introductions.
    pub introduction_max: Duration,
}

impl Default for NackConfig {
    fn default() -> Self {
        Self {
            gap_delay: Duration::from_millis(5),
            suppression: Duration::from_millis(5),
            suppression_min: Duration::from_millis(1),
            first: Duration::from_millis(10),
            first_min: Duration::from_millis(5),
            steady: 12,
            max: Duration::from_millis(200),
            introductions: 12,
            introduction_max: Duration::from_secs(1),
        }
    }
}

/// Bounds of a reader's memory. All but `ready` are per matched writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderLimits {
    /// Samples waiting to be polled. When full, reliable samples stay with the
    /// writer; best-effort ones push out the oldest.
    pub ready_samples_max: usize,
    /// Samples waiting for an earlier one.
    pub reorder_samples_max: usize,
    /// Their bytes.
    pub reorder_bytes_max: usize,
    /// Runs of known sequence numbers.
    pub intervals_max: usize,
    /// Samples in pieces.
    pub defrag: DefragLimits,
    /// Matched writers; more are refused.
    pub writers_max: usize,
    /// Events waiting to be polled. When full, the oldest goes; totals in
    /// later events include it.
    pub events_max: usize,
}

impl ReaderLimits {
    /// As if memory were short: a few samples and numbers of each writer.
    pub(crate) fn little(self) -> Self {
        Self {
            reorder_samples_max: self.reorder_samples_max.min(4),
            intervals_max: self.intervals_max.min(4),
            ..self
        }
    }
}

impl Default for ReaderLimits {
    fn default() -> Self {
        Self {
            ready_samples_max: 5_000,
            reorder_samples_max: 256,
            reorder_bytes_max: 64 << 20,
            intervals_max: 256,
            defrag: DefragLimits::default(),
            writers_max: 4_096,
            events_max: 256,
        }
    }
}

/// What discovery tells of a matched writer.
#[derive(Clone, PartialEq, Debug)]
pub struct WriterProxyConfig {
    /// Its identity.
    pub guid: Guid,
    /// What it offers.
    pub qos: SharedQos,
    /// Where acknowledgements go.
    pub route: Route,
    /// Whose software it is.
    pub vendor: VendorId,
}
