//! Simple participant discovery (RTPS 2.5 §8.5.3): when and what a participant
//! announces of itself. Best effort and stateless: the same change is sent
//! again and again until it changes.
//!
//! Cadence: five announcements in the first 800 ms, so that one lost datagram
//! does not cost a period, then one per period. The period is shortened by up
//! to a tenth, depending on our identity, so that participants which started
//! together drift apart. What repeats a birth is not for those who have answered.
//!
//! Neighbours know us without: the more of them there are, the rarer we
//! announce to everybody, so that a host with two hundred processes says little
//! more than one with ten. Those who depend on hearing us are told by
//! themselves then. Who comes announces itself and is answered.

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

/// PID_BUILTIN_ENDPOINT_SET: secured SEDP's writer of publications (DDS Security
/// 1.1 §7.4.1.4 and the bits of its table 8).
pub const SECURE_PUBLICATIONS_WRITER: u32 = 1 << 16;
/// PID_BUILTIN_ENDPOINT_SET: secured SEDP's reader of publications.
pub const SECURE_PUBLICATIONS_READER: u32 = 1 << 17;
/// PID_BUILTIN_ENDPOINT_SET: secured SEDP's writer of subscriptions.
pub const SECURE_SUBSCRIPTIONS_WRITER: u32 = 1 << 18;
/// PID_BUILTIN_ENDPOINT_SET: secured SEDP's reader of subscriptions.
pub const SECURE_SUBSCRIPTIONS_READER: u32 = 1 << 19;
/// PID_BUILTIN_ENDPOINT_SET: secured writer of participant messages.
pub const SECURE_WLP_WRITER: u32 = 1 << 20;
/// PID_BUILTIN_ENDPOINT_SET: secured reader of participant messages.
pub const SECURE_WLP_READER: u32 = 1 << 21;
/// PID_BUILTIN_ENDPOINT_SET: writer of handshakes.
pub const STATELESS_WRITER: u32 = 1 << 22;
/// PID_BUILTIN_ENDPOINT_SET: reader of handshakes.
pub const STATELESS_READER: u32 = 1 << 23;
/// PID_BUILTIN_ENDPOINT_SET: writer of keys.
pub const VOLATILE_SECURE_WRITER: u32 = 1 << 24;
/// PID_BUILTIN_ENDPOINT_SET: reader of keys.
pub const VOLATILE_SECURE_READER: u32 = 1 << 25;
/// PID_BUILTIN_ENDPOINT_SET: secured SPDP's writer.
pub const SECURE_SPDP_WRITER: u32 = 1 << 26;
/// PID_BUILTIN_ENDPOINT_SET: secured SPDP's reader.
pub const SECURE_SPDP_READER: u32 = 1 << 27;

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

/// The built-in endpoints of a secured participant. It tells nobody what its
/// types are made of: that service knows no protection.
pub const OUR_SECURED_ENDPOINTS: u32 = PARTICIPANT_ANNOUNCER
    | PARTICIPANT_DETECTOR
    | PUBLICATIONS_ANNOUNCER
    | PUBLICATIONS_DETECTOR
    | SUBSCRIPTIONS_ANNOUNCER
    | SUBSCRIPTIONS_DETECTOR
    | PARTICIPANT_MESSAGE_WRITER
    | PARTICIPANT_MESSAGE_READER
    | SECURE_PUBLICATIONS_WRITER
    | SECURE_PUBLICATIONS_READER
    | SECURE_SUBSCRIPTIONS_WRITER
    | SECURE_SUBSCRIPTIONS_READER
    | SECURE_WLP_WRITER
    | SECURE_WLP_READER
    | STATELESS_WRITER
    | STATELESS_READER
    | VOLATILE_SECURE_WRITER
    | VOLATILE_SECURE_READER
    | SECURE_SPDP_WRITER
    | SECURE_SPDP_READER;

/// Pauses after the first announcements, in milliseconds.
const BURST: [i64; 4] = [100, 100, 200, 400];
/// The same among a crowd: loss is rare on one host, and others announce themselves.
const BURST_IN_CROWD: [i64; 1] = [800];
/// So many neighbours are a crowd.
const CROWD: usize = 8;
/// So many periods, at least and for each neighbour, pass between announcements
/// that nobody depends on.
const PERIODS_MIN: usize = 10;
const PERIODS_EACH: usize = 2;

/// Whom a participant is in company with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Company {
    /// Those who know us without announcements.
    pub neighbours: usize,
    /// Those who do not.
    pub others: usize,
    /// We call hosts by name that may not know ours: whoever starts there has to
    /// hear us.
    pub calls_afar: bool,
}

impl Company {
    fn is_crowd(self) -> bool {
        self.neighbours >= CROWD
    }

    /// Periods between two announcements to everybody.
    fn periods(self) -> i64 {
        if self.neighbours == 0 || (self.others > 0 && !self.is_crowd()) {
            return 1;
        }
        let periods = match self.calls_afar {
            true => 0,
            false => self.neighbours.saturating_mul(PERIODS_EACH),
        };
        i64::try_from(periods.max(PERIODS_MIN)).unwrap_or(i64::MAX)
    }
}

/// Whom an announcement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Everybody who may be there.
    All,
    /// The same without those who have answered: they have heard what is repeated.
    Strangers,
    /// Those who would take our silence for our end.
    Others,
}

/// Fast DDS reads what is sent to its group and to itself on a thread each, and
/// drops a goodbye that it reads after an announcement of a higher number.
const PAUSE_AFTER_GOODBYE: Duration = Duration::from_millis(200);

/// The schedule and content of our announcements.
pub(crate) struct Announcer {
    payload: Bytes,
    sequence: SequenceNumber,
    period: Duration,
    sent: usize,
    next: Instant,
    /// When everybody is told next; before, those alone who depend on it.
    next_to_all: Instant,
}

impl Announcer {
    pub(crate) fn new(now: Instant, data: &ParticipantData, period: Duration) -> Self {
        Self {
            payload: data.encode(),
            sequence: SequenceNumber::FIRST,
            period: shortened(period, data.prefix),
            sent: 0,
            next: now,
            next_to_all: now,
        }
    }

    /// New content, announced at once with a new burst: a change is as worth
    /// hearing as a birth.
    pub(crate) fn update(&mut self, now: Instant, data: &ParticipantData) {
        self.payload = data.encode();
        self.sequence = self.sequence.next();
        self.sent = 0;
        self.next = now;
        self.next_to_all = now;
    }

    /// The announcement as a change: its payload and number.
    pub(crate) fn change(&self) -> (&Bytes, SequenceNumber) {
        (&self.payload, self.sequence)
    }

    /// The number of a goodbye. Announcements after it need to
    /// [`begin_anew`](Self::begin_anew), or whoever has heard it takes them for older.
    pub(crate) fn take_leave(&mut self) -> SequenceNumber {
        self.sequence = self.sequence.next();
        self.sequence
    }

    /// As [`update`](Self::update), for those to whom goodbye has just been said: not
    /// before they have read that.
    pub(crate) fn begin_anew(&mut self, now: Instant, data: &ParticipantData) {
        self.update(now, data);
        self.begin_at(now + PAUSE_AFTER_GOODBYE);
    }

    /// Whom an announcement is due for, if one is; schedules the next one.
    pub(crate) fn take_due(&mut self, now: Instant, company: Company) -> Option<Audience> {
        if now < self.next {
            return None;
        }
        let burst: &[i64] = match company.is_crowd() {
            true => &BURST_IN_CROWD,
            false => &BURST,
        };
        let pause = burst.get(self.sent);
        let audience = match now < self.next_to_all {
            true => Audience::Others,
            false if pause.is_some() && self.is_birth_repeated() => Audience::Strangers,
            false => Audience::All,
        };
        // A driver that was late (suspended) sends one announcement, not all
        // that it missed.
        if let Some(pause) = pause {
            self.next_to_all = now + Duration::from_millis(*pause);
        } else if audience != Audience::Others {
            self.next_to_all = now + self.period.times(company.periods());
        }
        self.sent = self.sent.saturating_add(1);
        self.next = match company.others {
            0 => self.next_to_all,
            _ => self.next_to_all.min(now + self.period),
        };
        if fault!("announced-only-at-birth") && self.sent > BURST.len() {
            self.next = Instant::FAR_FUTURE;
        }
        Some(audience)
    }

    /// Whether what is announced has been once, and is the first that ever was: who has
    /// answered knows it. A change may have been missed by those who know us, and
    /// between short leases no announcement can be spared.
    fn is_birth_repeated(&self) -> bool {
        let is_first = self.sequence == SequenceNumber::FIRST && self.sent > 0;
        let burst = BURST.iter().sum();
        is_first && self.period >= Duration::from_millis(burst)
    }

    /// Somebody depends on hearing us from now on. Where it is the first of
    /// other hosts, more may have come within reach with it.
    pub(crate) fn note_other(&mut self, now: Instant, is_first_afar: bool) {
        if fault!("announced-only-at-birth") {
            return;
        }
        self.next = self.next.min(now + self.period);
        if is_first_afar {
            self.next_to_all = self.next_to_all.min(now + self.period);
        }
    }

    /// Waits with the first announcement.
    pub(crate) fn begin_at(&mut self, at: Instant) {
        if self.sent == 0 {
            self.next = at;
            self.next_to_all = at;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(3);

    fn announcer() -> Announcer {
        let data = ParticipantData::new(GuidPrefix([0; 12]));
        Announcer::new(Instant::ZERO, &data, PERIOD)
    }

    /// How many of each audience are due within a span, looking when due.
    fn due_within(
        announcer: &mut Announcer,
        from: Instant,
        span: Duration,
        who: Company,
    ) -> [usize; 2] {
        let mut counts = [0, 0];
        let end = from.after(span);
        while announcer.next_timeout() < end {
            let now = announcer.next_timeout();
            match announcer.take_due(now, who) {
                Some(Audience::All | Audience::Strangers) => counts[0] += 1,
                Some(Audience::Others) => counts[1] += 1,
                None => {}
            }
        }
        counts
    }

    #[test]
    fn a_host_full_of_neighbours_announces_as_much_as_a_few() {
        let alone = Company::default();
        let crowd = Company {
            neighbours: 200,
            ..alone
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(
            due_within(&mut announcer(), Instant::ZERO, hour, alone),
            [1204, 0]
        );
        assert_eq!(
            due_within(&mut announcer(), Instant::ZERO, hour, crowd),
            [4, 0]
        );
        // Whoever starts on a host that is called by name must hear us.
        let calls_afar = Company {
            calls_afar: true,
            ..crowd
        };
        assert_eq!(
            due_within(&mut announcer(), Instant::ZERO, hour, calls_afar),
            [121, 0]
        );
    }

    #[test]
    fn others_among_many_neighbours_are_told_by_themselves_before_their_lease_ends() {
        let mut announcer = announcer();
        let minute = Duration::from_secs(60);
        let crowd = Company {
            neighbours: 200,
            ..Company::default()
        };
        due_within(&mut announcer, Instant::ZERO, minute, crowd);
        let met = Instant::ZERO.after(minute);
        assert!(announcer.next_timeout() > met.after(minute));
        announcer.note_other(met, false);
        assert_eq!(announcer.next_timeout(), met.after(PERIOD));
        let with_one = Company { others: 1, ..crowd };
        assert_eq!(due_within(&mut announcer, met, minute, with_one), [0, 19]);
    }

    #[test]
    fn the_first_of_another_host_has_everybody_told_within_a_period() {
        let mut announcer = announcer();
        let crowd = Company {
            neighbours: 200,
            ..Company::default()
        };
        due_within(
            &mut announcer,
            Instant::ZERO,
            Duration::from_secs(60),
            crowd,
        );
        let met = Instant::from_nanos(60_000_000_000);
        announcer.note_other(met, true);
        let with_one = Company { others: 1, ..crowd };
        assert_eq!(
            due_within(&mut announcer, met, PERIOD.times(2), with_one),
            [1, 0]
        );
    }
}
