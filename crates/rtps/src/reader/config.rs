//! Reader configuration: NACK timing (RTPS 2.5 §8.4.10.1) and limits, and the
//! properties of a matched writer.

use alloc::sync::Arc;

use crate::content_filter::ContentFilter;
use crate::defrag::DefragLimits;
use crate::id::{Guid, VendorId};
use crate::locator::Route;
use crate::qos::History;
use crate::shared_qos::SharedQos;
use crate::time::Duration;

/// The configuration of a [`Reader`](super::Reader).
#[derive(Clone, PartialEq, Debug)]
pub struct ReaderConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Its QoS policies.
    pub qos: SharedQos,
    /// Timing of requests for missing samples.
    pub nack: NackConfig,
    /// Limits of its memory.
    pub limits: ReaderLimits,
    /// The largest datagram it sends.
    pub datagram_bytes_max: usize,
    /// Its content filter; `None` accepts everything.
    pub content_filter: Option<Arc<ContentFilter>>,
    /// Whether a resynchronised reader requests the whole history of its writer
    /// again: for built-in topics, where a repeated sample changes nothing.
    pub rereads_history: bool,
}

impl ReaderConfig {
    /// The defaults of this stack with these policies. The queue of a KEEP_ALL
    /// reader holds its `max_samples`; when it is full, reliable writers wait
    /// (back-pressure).
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
            rereads_history: false,
        }
    }
}

/// Timing of requests for missing samples. Heartbeats are answered at once (RTPS
/// 2.5 §8.4.10.1, heartbeatResponseDelay is zero).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackConfig {
    /// Delay of a request after a gap without a heartbeat, since datagrams may be
    /// reordered.
    pub gap_delay: Duration,
    /// NACK suppression: a heartbeat does not repeat a request younger than this.
    /// With a measured round trip: a quarter longer than that, at least
    /// `suppression_min`.
    pub suppression: Duration,
    /// The shortest suppression.
    pub suppression_min: Duration,
    /// Delay before an unanswered request is repeated. With a measured round trip:
    /// a quarter longer than that, at least `retry_period_min`.
    pub retry_period: Duration,
    /// The shortest such delay.
    pub retry_period_min: Duration,
    /// Repetitions at an equal delay before it doubles. At a loss of 30 % each way
    /// one exchange in two fails.
    pub steady_retries: u32,
    /// The longest such delay.
    pub retry_period_max: Duration,
    /// Preemptive ACKNACKs to a reliable writer that has not sent a heartbeat, at
    /// delays from `retry_period` up to `preemptive_period_max`.
    pub preemptive_acknacks: u32,
    /// The longest delay between preemptive ACKNACKs.
    pub preemptive_period_max: Duration,
}

impl Default for NackConfig {
    fn default() -> Self {
        Self {
            gap_delay: Duration::from_millis(5),
            suppression: Duration::from_millis(5),
            suppression_min: Duration::from_millis(1),
            retry_period: Duration::from_millis(10),
            retry_period_min: Duration::from_millis(5),
            steady_retries: 12,
            retry_period_max: Duration::from_millis(200),
            preemptive_acknacks: 12,
            preemptive_period_max: Duration::from_secs(1),
        }
    }
}

/// Limits of a reader's memory. All but `ready_samples_max` are per matched writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderLimits {
    /// Samples in the receive queue. When it is full, reliable samples stay with
    /// the writer, and best-effort samples replace the oldest.
    pub ready_samples_max: usize,
    /// Samples in the reorder buffer. It holds more than a shared-memory ring and a
    /// history of 1 000. Otherwise each round trip behind a loss moves on by one buffer
    /// only.
    pub reorder_samples_max: usize,
    /// Bytes in the reorder buffer.
    pub reorder_bytes_max: usize,
    /// Runs of known sequence numbers.
    pub intervals_max: usize,
    /// Fragment reassembly.
    pub defrag: DefragLimits,
    /// Matched writers; more are refused.
    pub writers_max: usize,
    /// Events in the queue. When full, the oldest is dropped; totals in later
    /// events include it.
    pub events_max: usize,
}

impl Default for ReaderLimits {
    fn default() -> Self {
        Self {
            ready_samples_max: 5_000,
            reorder_samples_max: 4_096,
            reorder_bytes_max: 64 << 20,
            intervals_max: 256,
            defrag: DefragLimits::default(),
            writers_max: 16_384,
            events_max: 256,
        }
    }
}

/// The properties of a matched writer, as discovery reports them.
#[derive(Clone, PartialEq, Debug)]
pub struct WriterProxyConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Its offered QoS.
    pub qos: SharedQos,
    /// Where acknowledgements are sent.
    pub route: Route,
    /// The implementation of its participant; some writers answer only certain
    /// ACKNACKs.
    pub vendor: VendorId,
}
