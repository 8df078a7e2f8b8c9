//! What a writer is made with, what it is told of each reader, what it is
//! given to write.

use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;

use crate::content_filter::ContentFilter;
use crate::history::ChangeKind;
use crate::id::{Guid, VendorId};
use crate::locator::Route;
use crate::mark::Mark;
use crate::pace::Pace;
use crate::seq::SampleIdentity;
use crate::shared_qos::SharedQos;
use crate::time::{Duration, Instant, Timestamp};

/// Everything a [`Writer`](super::Writer) needs to know at birth.
#[derive(Clone, PartialEq, Debug)]
pub struct WriterConfig {
    /// Its own identity.
    pub guid: Guid,
    /// Its policies.
    pub qos: SharedQos,
    /// How large samples are cut.
    pub fragment_size: FragmentSize,
    /// The largest datagram built from several small submessages.
    pub datagram_bytes_max: usize,
    /// When heartbeats are sent.
    pub heartbeat: HeartbeatConfig,
    /// Bounds of its memory.
    pub limits: WriterLimits,
    /// How much one poll puts out.
    pub burst: Burst,
    /// A request for a sample that was sent again less than this ago has
    /// crossed the answer and is ignored (RTPS 2.5 §8.4.7.1,
    /// nackSuppressionDuration).
    pub nack_suppression: Duration,
    /// The owner decides when it sends and how much, with
    /// [`Writer::poll_transmit_up_to`](super::Writer::poll_transmit_up_to).
    pub paced: bool,
    /// A reader that asks again for what it acknowledged, counting from the
    /// start, may be another one with the same GUID: it is not served for a
    /// while, and if it goes on,
    /// [`WriterEvent::ReaderBeganAnew`](super::WriterEvent::ReaderBeganAnew)
    /// tells. Whoever sets this ends the match then. Off by default.
    pub doubts_readers: bool,
    /// Fragments of what is for all readers name no participant (INFO_DST) where the
    /// network carries them and nothing goes along: 16 bytes of each frame less, and 12
    /// more where the peer runs this stack and need not hear the time again. Whoever
    /// else listens at the same place drops what it matches no writer of, or has. Not where the
    /// destination decides on how a datagram is protected. Off by default.
    pub spares_destinations: bool,
}

impl WriterConfig {
    /// The stack's defaults around these policies.
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
            paced: false,
            doubts_readers: false,
            spares_destinations: false,
        }
    }
}

/// Bytes of payload per DATA or DATA_FRAG. A sample's size of fragments is
/// fixed when it is first sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentSize {
    /// When all matched readers are on this host. Near the largest UDP
    /// datagram: each one costs a system call and a wake-up.
    pub same_host: u16,
    /// Otherwise: fits an Ethernet frame, so that one lost frame costs one
    /// fragment.
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

/// When a reliable writer sends heartbeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatConfig {
    /// After a write that is not acknowledged. New samples and progress bring
    /// the period back to this.
    pub first: Duration,
    /// So many more at the same pause, so that a bad link delays little (none to
    /// those who have never answered: whether they are slow is not known) ...
    pub steady: u32,
    /// ... then the period doubles up to this while nothing changes ...
    pub max: Duration,
    /// ... and when so many in a row had no answer of any reader ...
    pub silent: u32,
    /// ... up to this, until one answers. Heartbeats never end while a sample is
    /// not acknowledged (RTPS 2.5 §8.4.2.2.3); how often they come is ours to choose
    /// (§8.4.7.1, heartbeatPeriod).
    pub silent_max: Duration,
    /// A heartbeat sent along with data asks for an acknowledgement if nothing was
    /// written for half of `first` before it, or after so many samples ...
    pub ack_samples: u32,
    /// ... or so many bytes; otherwise readers answer only to report losses.
    pub ack_bytes: usize,
    /// After a sample of `ack_bytes` or more, in place of `first`: a burst
    /// that overruns a receiver's buffer loses its end, heartbeat included.
    pub after_large: Duration,
    /// After a write that all reliable readers get by links, in place of both:
    /// they acknowledge unasked, and what a link refuses is known at once.
    pub linked: Duration,
}

impl HeartbeatConfig {
    /// A writer that has written nothing for so long asks with its next sample.
    pub(super) const fn pause_of_stream(&self) -> Duration {
        Duration::from_nanos(self.first.as_nanos() / 2)
    }

    /// A heartbeat that is due within so long goes with a sample.
    pub(super) const fn ahead(&self) -> Duration {
        Duration::from_nanos(self.first.as_nanos() / 8)
    }

    /// The pauses after news for readers of which all have answered once, or not.
    pub(super) const fn pace(&self, is_heard: bool) -> Pace {
        Pace::new(self.first, if is_heard { self.steady } else { 0 })
    }

    /// The longest pause after so many heartbeats without an answer.
    pub(super) fn longest(&self, unanswered: u32) -> Duration {
        match unanswered > self.silent {
            true => self.silent_max.max(self.max),
            false => self.max,
        }
    }
}

impl Default for HeartbeatConfig {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(10),
            steady: 12,
            max: Duration::from_millis(200),
            silent: 40,
            silent_max: Duration::from_secs(2),
            ack_samples: 256,
            ack_bytes: 256 << 10,
            after_large: Duration::from_micros(2_500),
            linked: Duration::from_secs(1),
        }
    }
}

/// Bounds of a writer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterLimits {
    /// Samples kept by KEEP_ALL when RESOURCE_LIMITS names no number.
    pub samples_max: usize,
    /// Bytes kept: KEEP_LAST drops the oldest beyond it, KEEP_ALL blocks.
    /// One sample is always accepted.
    pub history_bytes_max: usize,
    /// The largest sample accepted.
    pub sample_bytes_max: usize,
    /// Matched readers; more are refused.
    pub readers_max: usize,
    /// Bytes of what is sent again that one poll puts out, over by less than a
    /// datagram. What readers asked for beyond stays theirs to be sent at the
    /// next poll: of requests only numbers are kept.
    pub repair_bytes_max: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self {
            samples_max: 5_000,
            history_bytes_max: 256 << 20,
            sample_bytes_max: 64 << 20,
            readers_max: 4_096,
            repair_bytes_max: 512 << 10,
        }
    }
}

/// How much one poll puts into the outbox, so that receivers' socket buffers
/// are not overrun and other work gets its turn.
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

/// A change to be written.
#[derive(Clone, Debug, Default)]
pub struct NewChange {
    /// The serialized sample with its encapsulation header; for endings of
    /// instances the serialized key, or nothing.
    pub payload: Bytes,
    /// The size of a payload that is left out until a reader is matched, see
    /// [`Writer::supply`](super::Writer::supply); 0 where it is there.
    pub deferred_bytes: usize,
    /// What it says about its instance.
    pub kind: ChangeKind,
    /// The wall clock's time, sent along.
    pub source_timestamp: Option<Timestamp>,
    /// The request this replies to (DDS-RPC), sent along.
    pub related: Option<SampleIdentity>,
    /// The instance, on keyed topics.
    pub key_hash: Option<[u8; 16]>,
    /// The only reader it is meant for; the others get a GAP.
    pub only_for: Option<Guid>,
    /// Its coherent set and its place in its publisher. The end of a set has
    /// no payload, takes no room that samples need, and goes only to readers
    /// that ask for coherent access; the others get a GAP.
    pub mark: Option<Box<Mark>>,
    /// Set for a sample of the writer's earlier life.
    pub restored: Option<Restored>,
}

impl NewChange {
    /// The size of its payload, here or deferred.
    pub fn bytes(&self) -> usize {
        self.payload.len().max(self.deferred_bytes)
    }

    /// Whether it ends a coherent set and is no sample.
    pub fn is_end(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.ends())
    }
}

/// What is known of a sample that was written in an earlier life of its writer
/// and comes from a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Which it was then; sent along, so that readers that have it know it.
    pub original: SampleIdentity,
    /// When what is left of its lifespan ends.
    pub expires_at: Instant,
}

/// What discovery tells of a matched reader.
#[derive(Clone, PartialEq, Debug)]
pub struct ReaderProxyConfig {
    /// Its identity.
    pub guid: Guid,
    /// What it requests.
    pub qos: SharedQos,
    /// Where samples go.
    pub route: Route,
    /// It wants the writer's QoS with each sample (RTPS 2.5 §8.4.2.2.2). Nothing
    /// acts upon it: no ROS 2 stack asks, and we read policies in discovery.
    pub expects_inline_qos: bool,
    /// Whose software it is.
    pub vendor: VendorId,
    /// What it wants of the topic; `None` is all. See
    /// [`Writer::set_content_filter`](super::Writer::set_content_filter).
    pub content_filter: Option<Arc<ContentFilter>>,
}
