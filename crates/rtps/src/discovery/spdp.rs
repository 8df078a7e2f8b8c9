//! Simple participant discovery (RTPS 2.5 §8.5.3): when and what a participant
//! announces of itself. Best effort and stateless: the same change is sent
//! again and again until it changes.
//!
//! Cadence: five announcements in the first 800 ms, so that one lost datagram
//! does not cost a period, then one per period. The period is shortened by up
//! to a tenth, depending on our identity, so that participants which started
//! together drift apart.

use bytes::Bytes;

use crate::discovery::data::ParticipantData;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::{Data, DataHead, InlineQosHead, StatusInfo};

/// PID_BUILTIN_ENDPOINT_SET: SPDP writer.
pub const PARTICIPANT_ANNOUNCER: u32 = 1 << 0;
/// PID_BUILTIN_ENDPOINT_SET: SPDP reader.
pub const PARTICIPANT_DETECTOR: u32 = 1 << 1;
/// PID_BUILTIN_ENDPOINT_SET: SEDP writer of publications.
pub const PUBLICATIONS_ANNOUNCER: u32 = 1 << 2;
/// PID_BUILTIN_ENDPOINT_SET: SEDP reader of publications.
pub const PUBLICATIONS_DETECTOR: u32 = 1 << 3;
/// PID_BUILTIN_ENDPOINT_SET: SEDP writer of subscriptions.
pub const SUBSCRIPTIONS_ANNOUNCER: u32 = 1 << 4;
/// PID_BUILTIN_ENDPOINT_SET: SEDP reader of subscriptions.
pub const SUBSCRIPTIONS_DETECTOR: u32 = 1 << 5;
/// PID_BUILTIN_ENDPOINT_SET: writer of participant messages (liveliness).
pub const PARTICIPANT_MESSAGE_WRITER: u32 = 1 << 10;
/// PID_BUILTIN_ENDPOINT_SET: reader of participant messages (liveliness).
pub const PARTICIPANT_MESSAGE_READER: u32 = 1 << 11;
/// PID_BUILTIN_ENDPOINT_SET: TypeLookup's writer of requests (XTypes 1.3
/// §7.6.3.3.4).
pub const TYPE_REQUEST_WRITER: u32 = 1 << 12;
/// PID_BUILTIN_ENDPOINT_SET: TypeLookup's reader of requests.
pub const TYPE_REQUEST_READER: u32 = 1 << 13;
/// PID_BUILTIN_ENDPOINT_SET: TypeLookup's writer of replies.
pub const TYPE_REPLY_WRITER: u32 = 1 << 14;
/// PID_BUILTIN_ENDPOINT_SET: TypeLookup's reader of replies.
pub const TYPE_REPLY_READER: u32 = 1 << 15;

/// The built-in endpoints we have: 0xfc3f, what Cyclone announces too when
/// security is out of play.
pub const OUR_ENDPOINTS: u32 = PARTICIPANT_ANNOUNCER
    | PARTICIPANT_DETECTOR
    | PUBLICATIONS_ANNOUNCER
    | PUBLICATIONS_DETECTOR
    | SUBSCRIPTIONS_ANNOUNCER
    | SUBSCRIPTIONS_DETECTOR
    | PARTICIPANT_MESSAGE_WRITER
    | PARTICIPANT_MESSAGE_READER
    | TYPE_REQUEST_WRITER
    | TYPE_REQUEST_READER
    | TYPE_REPLY_WRITER
    | TYPE_REPLY_READER;

/// Pauses after the first announcements, in milliseconds.
const BURST: [i64; 4] = [100, 100, 200, 400];

/// The schedule and content of our announcements.
pub(crate) struct Announcer {
    payload: Bytes,
    sequence: SequenceNumber,
    period: Duration,
    sent: usize,
    next: Instant,
}

impl Announcer {
    pub(crate) fn new(now: Instant, data: &ParticipantData, period: Duration) -> Self {
        Self {
            payload: data.encode(),
            sequence: SequenceNumber::FIRST,
            period: shortened(period, data.prefix),
            sent: 0,
            next: now,
        }
    }

    /// New content, announced at once with a new burst: a change is as worth
    /// hearing as a birth.
    pub(crate) fn update(&mut self, now: Instant, data: &ParticipantData) {
        self.payload = data.encode();
        self.sequence = self.sequence.next();
        self.sent = 0;
        self.next = now;
    }

    /// The announcement as a change: its payload and number.
    pub(crate) fn change(&self) -> (&Bytes, SequenceNumber) {
        (&self.payload, self.sequence)
    }

    /// Whether an announcement is due; schedules the next one, ten times later
    /// when nobody depends on hearing it.
    pub(crate) fn take_due(&mut self, now: Instant, relaxed: bool) -> bool {
        if now < self.next {
            return false;
        }
        let pause = BURST
            .get(self.sent)
            .map_or(self.period.times(if relaxed { 10 } else { 1 }), |ms| {
                Duration::from_millis(*ms)
            });
        self.sent = self.sent.saturating_add(1);
        // A driver that was late (suspended) sends one announcement, not all
        // that it missed.
        self.next = match fault!("announced-only-at-birth") && self.sent > BURST.len() {
            true => Instant::FAR_FUTURE,
            false => now + pause,
        };
        true
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.next
    }
}

fn shortened(period: Duration, prefix: GuidPrefix) -> Duration {
    let sum: i64 = prefix.0.iter().map(|b| i64::from(*b)).sum();
    let by = (period.as_nanos() / 1000).saturating_mul(sum % 100);
    Duration::from_nanos(period.as_nanos().saturating_sub(by))
}

/// How an announcement is written. The reader is named because Fast DDS asks
/// for it; Cyclone does not mind.
pub(crate) fn head(sequence: SequenceNumber) -> DataHead<'static> {
    DataHead {
        reader: EntityId::SPDP_READER,
        writer: EntityId::SPDP_WRITER,
        sequence,
        ..DataHead::default()
    }
}

/// How a goodbye is written, with the key both as hash (Fast DDS reads that)
/// and as payload (Cyclone does).
pub(crate) fn goodbye_head(sequence: SequenceNumber, participant: Guid) -> DataHead<'static> {
    DataHead {
        inline_qos: InlineQosHead {
            status_info: Some(StatusInfo::DISPOSED_UNREGISTERED),
            key_hash: Some(participant.to_bytes()),
            ..InlineQosHead::NONE
        },
        key_only: true,
        ..head(sequence)
    }
}

/// Whether an SPDP change is a goodbye.
pub(crate) fn is_goodbye(data: &Data) -> bool {
    let ends = |status: StatusInfo| status.is_disposed() || status.is_unregistered();
    data.key_only || data.inline_qos.status_info().is_some_and(ends)
}
