//! Writer configuration: heartbeat period, NACK suppression, fragment size, limits and
//! bursts (RTPS 2.5 §8.4.7.1), the properties of a matched reader, and the change to
//! write.

use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;

use super::write_error::WriteError;
use crate::change::ChangeKind;
use crate::coherent_mark::CoherentMark;
use crate::content_filter::ContentFilter;
use crate::id::{Guid, VendorId};
use crate::locator::Route;
use crate::qos::{Durability, History};
use crate::retry_backoff::RetryBackoff;
use crate::seq::SampleIdentity;
use crate::shared_qos::SharedQos;
use crate::time::{Duration, Instant, Timestamp};

/// The configuration of a [`Writer`](super::Writer).
#[derive(Clone, PartialEq, Debug)]
pub struct WriterConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Its QoS policies.
    pub qos: SharedQos,
    /// Payload bytes per fragment.
    pub fragment_size: FragmentSize,
    /// The largest datagram built from several small submessages.
    pub datagram_bytes_max: usize,
    /// Heartbeat period and its back-off.
    pub heartbeat: HeartbeatConfig,
    /// Limits of its memory.
    pub limits: WriterLimits,
    /// The amount that one poll sends.
    pub burst: Burst,
    /// NACK suppression: a request is ignored for this long after the
    /// retransmission, because it crossed that on the way (RTPS 2.5 §8.4.7.1,
    /// nackSuppressionDuration).
    pub nack_suppression: Duration,
    /// Flow control: the owner decides when and how much to send, with
    /// [`Writer::poll_transmit_up_to`](super::Writer::poll_transmit_up_to).
    pub flow_controlled: bool,
    /// Detects a restarted reader with the same GUID. Off by default.
    ///
    /// Such a reader requests samples that it had acknowledged, and its counts
    /// start again. It is not served for a while. If it continues, the writer emits
    /// [`WriterEvent::ReaderReset`](super::WriterEvent::ReaderReset), and the owner
    /// unmatches it.
    pub detects_reader_reset: bool,
    /// Omits INFO_DST before network fragments that all readers get. Off by
    /// default.
    ///
    /// It saves 16 bytes of each frame, and 12 more if the peer is Pteros and needs
    /// no second timestamp. Other participants at the same locator drop the
    /// fragment: they match no such writer, or have the sample. Not usable where
    /// the destination decides the protection of a datagram.
    pub omits_info_dst: bool,
}

impl WriterConfig {
    /// The defaults of this stack with these policies.
    pub fn new(guid: Guid, qos: impl Into<SharedQos>) -> Self {
        Self {
            guid,
            qos: qos.into(),
            fragment_size: FragmentSize::default(),
            datagram_bytes_max: 1_400,
            heartbeat: HeartbeatConfig::default(),
            limits: WriterLimits::default(),
            burst: Burst::default(),
            nack_suppression: Duration::from_millis(1),
            flow_controlled: false,
            detects_reader_reset: false,
            omits_info_dst: false,
        }
    }

    /// Whether changes are kept for late joiners.
    pub(super) fn keeps_for_late_joiners(&self) -> bool {
        self.qos.durability >= Durability::TransientLocal
    }

    pub(super) fn is_keep_all(&self) -> bool {
        self.qos.history == History::KeepAll
    }

    /// Refuses a sample that is larger than the limit.
    pub(super) fn check_size(&self, change: &NewChange) -> Result<(), WriteError> {
        let bytes = change.payload_bytes();
        let bytes_max = self.limits.sample_bytes_max;
        if bytes > bytes_max || u32::try_from(bytes).is_err() {
            return Err(WriteError::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }
}

/// Payload bytes per DATA or DATA_FRAG. The first transmission of a sample fixes
/// its fragment size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentSize {
    /// When all matched readers are on this host. Near the largest UDP datagram,
    /// since each datagram costs a system call and a wake-up.
    pub same_host: u16,
    /// Otherwise: fits the Ethernet MTU, so that one lost frame costs one fragment.
    pub network: u16,
}

impl Default for FragmentSize {
    fn default() -> Self {
        Self {
            same_host: 63_000,
            network: 1_344,
        }
    }
}

/// The heartbeat period of a reliable writer, and its back-off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatConfig {
    /// Heartbeat period while a change is not acknowledged. New changes and
    /// progress reset the period to this.
    pub period: Duration,
    /// Further heartbeats at the same period, so that a lossy network delays
    /// little. Zero for readers that never answered, since they may just be slow.
    pub steady_periods: u32,
    /// The period then doubles up to this, while nothing changes.
    pub period_max: Duration,
    /// After this many heartbeats in a row without an answer of any reader, the
    /// period doubles further.
    pub unanswered_max: u32,
    /// The longest period without an answer. Heartbeats never end while a sample is
    /// not acknowledged (RTPS 2.5 §8.4.2.2.3); their period is a choice of the
    /// implementation (§8.4.7.1, heartbeatPeriod).
    pub unanswered_period_max: Duration,
    /// A heartbeat in a DATA datagram requests an acknowledgement after an idle
    /// time of half a `period`, or after this many samples.
    pub ack_request_samples: u32,
    /// The same after this many bytes. Otherwise readers answer only to report
    /// losses.
    pub ack_request_bytes: usize,
    /// Replaces `period` after a sample of `ack_request_bytes` or more. A burst
    /// that overruns a receive buffer loses its end, including the heartbeat.
    pub period_after_large: Duration,
    /// Replaces both when all reliable readers use shared memory. They acknowledge
    /// without a request, and a refused message is known at once.
    pub shared_memory_period: Duration,
}

impl HeartbeatConfig {
    /// After this idle time the next sample requests an acknowledgement.
    pub(super) const fn idle_min(&self) -> Duration {
        Duration::from_nanos(self.period.as_nanos() / 2)
    }

    /// A heartbeat due within this time goes in the datagram of a sample.
    pub(super) const fn piggyback_window(&self) -> Duration {
        Duration::from_nanos(self.period.as_nanos() / 8)
    }

    /// The back-off after new data, depending on whether all readers have answered
    /// once.
    pub(super) const fn backoff(&self, has_acknowledged: bool) -> RetryBackoff {
        RetryBackoff::new(
            self.period,
            if has_acknowledged {
                self.steady_periods
            } else {
                0
            },
        )
    }

    /// The longest period after this many heartbeats without an answer.
    pub(super) fn period_max_after(&self, unanswered: u32) -> Duration {
        if unanswered > self.unanswered_max {
            self.unanswered_period_max.max(self.period_max)
        } else {
            self.period_max
        }
    }
}

impl Default for HeartbeatConfig {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(10),
            steady_periods: 12,
            period_max: Duration::from_millis(200),
            unanswered_max: 40,
            unanswered_period_max: Duration::from_secs(2),
            ack_request_samples: 256,
            ack_request_bytes: 256 << 10,
            period_after_large: Duration::from_micros(2_500),
            shared_memory_period: Duration::from_secs(1),
        }
    }
}

/// Limits of a writer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterLimits {
    /// Samples kept by KEEP_ALL when RESOURCE_LIMITS sets no number.
    pub samples_max: usize,
    /// Bytes in the history. Beyond it KEEP_LAST drops the oldest and KEEP_ALL
    /// blocks. One sample is always accepted.
    pub history_bytes_max: usize,
    /// The largest sample accepted.
    pub sample_bytes_max: usize,
    /// Matched readers; more are refused.
    pub readers_max: usize,
    /// Retransmitted bytes per poll, exceeded by less than a datagram. The next
    /// poll serves the remaining requests. A request occupies only its sequence
    /// number.
    pub retransmission_bytes_max: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self {
            samples_max: 5_000,
            history_bytes_max: 256 << 20,
            sample_bytes_max: 64 << 20,
            readers_max: 16_384,
            retransmission_bytes_max: 512 << 10,
        }
    }
}

/// The amount that one poll puts into the outbox. It prevents an overrun of receive
/// buffers and lets other work proceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// Datagrams per poll.
    pub datagrams: usize,
    /// Bytes per poll.
    pub bytes: usize,
}

impl Default for Burst {
    fn default() -> Self {
        Self {
            datagrams: 64,
            bytes: 1 << 20,
        }
    }
}

/// A change to write.
#[derive(Clone, Debug, Default)]
pub struct NewChange {
    /// The serialized sample with its encapsulation header. For dispose and
    /// unregister the serialized key, or empty.
    pub payload: Bytes,
    /// The size of a payload that is omitted until a reader is matched, see
    /// [`Writer::provide_deferred_payloads`](super::Writer::provide_deferred_payloads).
    /// Zero if the payload is present.
    pub deferred_bytes: usize,
    /// Its effect on the instance.
    pub kind: ChangeKind,
    /// The wall-clock time, sent as INFO_TS.
    pub source_timestamp: Option<Timestamp>,
    /// The request this replies to (DDS-RPC): service correlation.
    pub related_sample_identity: Option<SampleIdentity>,
    /// The key hash of the instance, on keyed topics.
    pub key_hash: Option<[u8; 16]>,
    /// Directed write: the only reader that receives it. The others get a GAP.
    pub directed_to: Option<Guid>,
    /// Its coherent set and its group sequence number. The end of a set has no
    /// payload and takes no space of samples. Only readers with coherent access
    /// receive it; the others get a GAP.
    pub coherent_mark: Option<Box<CoherentMark>>,
    /// Set for a sample from before the writer's restart.
    pub restored: Option<RestoredSample>,
}

impl NewChange {
    /// The size of its payload, present or deferred.
    pub fn payload_bytes(&self) -> usize {
        self.payload.len().max(self.deferred_bytes)
    }

    /// Whether it ends a coherent set and is no sample.
    pub fn is_set_end(&self) -> bool {
        self.coherent_mark
            .as_ref()
            .is_some_and(|coherent_mark| coherent_mark.is_set_end())
    }
}

/// A sample from a durable store, written before the writer's restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoredSample {
    /// Its identity at that time; sent with it, so that readers detect a duplicate.
    pub original_writer_info: SampleIdentity,
    /// When the rest of its lifespan ends.
    pub expires_at: Instant,
}

/// The properties of a matched reader, as discovery reports them.
#[derive(Clone, PartialEq, Debug)]
pub struct ReaderProxyConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Its requested QoS.
    pub qos: SharedQos,
    /// Where samples are sent.
    pub route: Route,
    /// It requests the writer's QoS with each sample (RTPS 2.5 §8.4.2.2.2).
    /// Ignored: no ROS 2 stack requests it, and discovery carries the policies.
    pub expects_inline_qos: bool,
    /// The implementation of its participant (PID_VENDORID).
    pub vendor: VendorId,
    /// Its content filter; `None` accepts everything. See
    /// [`Writer::set_content_filter`](super::Writer::set_content_filter).
    pub content_filter: Option<Arc<ContentFilter>>,
    /// Converts each payload for it; `None` sends what was written.
    pub payload_form: Option<PayloadForm>,
}

/// Converts a serialized sample for readers of another version of its type, which has
/// another layout under the same name. Called at each transmission; it may allocate.
///
/// The history keeps the sample as it was written. Samples for such readers are not
/// batched (LATENCY_BUDGET).
#[derive(Clone, Copy, Debug)]
pub struct PayloadForm(pub fn(&Bytes) -> Bytes);

impl PartialEq for PayloadForm {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.0, other.0)
    }
}
