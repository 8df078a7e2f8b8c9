//! SPDP, the simple participant discovery protocol (RTPS 2.5 §8.5.3): the schedule
//! and content of participant announcements, and the bits of BuiltinEndpointSet. Best
//! effort and stateless: the same change is sent repeatedly until it changes.
//!
//! Schedule: a startup burst of five announcements in the first 800 ms, so that one
//! lost datagram does not cost a period, then one per period. The period is
//! shortened by up to a tenth, depending on the GUID prefix, so that participants
//! that started together drift apart. Repeats of the startup burst skip peers that
//! have answered.
//!
//! Same-host peers discover us without SPDP. The more of them there are, the longer
//! the period of multicast announcements. So a host with two hundred processes
//! announces little more than one with ten. Network peers then get unicast
//! announcements. A new participant announces itself and is answered.

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

/// PID_BUILTIN_ENDPOINT_SET: secured SEDP writer of publications (DDS Security 1.1
/// §7.4.1.4 and the bits of its table 8).
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
/// PID_BUILTIN_ENDPOINT_SET: writer of handshake messages.
pub const STATELESS_WRITER: u32 = 1 << 22;
/// PID_BUILTIN_ENDPOINT_SET: reader of handshake messages.
pub const STATELESS_READER: u32 = 1 << 23;
/// PID_BUILTIN_ENDPOINT_SET: writer of key exchange messages.
pub const VOLATILE_SECURE_WRITER: u32 = 1 << 24;
/// PID_BUILTIN_ENDPOINT_SET: reader of key exchange messages.
pub const VOLATILE_SECURE_READER: u32 = 1 << 25;
/// PID_BUILTIN_ENDPOINT_SET: secured SPDP's writer.
pub const SECURE_SPDP_WRITER: u32 = 1 << 26;
/// PID_BUILTIN_ENDPOINT_SET: secured SPDP's reader.
pub const SECURE_SPDP_READER: u32 = 1 << 27;

/// Our built-in endpoints: 0xfc3f, as Cyclone DDS announces without security.
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

/// The built-in endpoints of a secured participant. Without TypeLookup, which has
/// no protection.
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

/// Pauses of the startup burst, in milliseconds.
const STARTUP_BURST: [i64; 4] = [100, 100, 200, 400];
/// The same with many same-host peers: loss is rare on one host, and others
/// announce themselves.
const STARTUP_BURST_MANY: [i64; 1] = [800];
/// From this number on there are many same-host peers.
const SAME_HOST_MANY: usize = 8;
/// With same-host peers only, this many periods pass between announcements: at
/// least, and for each of them.
const PERIODS_MIN: usize = 10;
const PERIODS_PER_PEER: usize = 2;

/// The peers of a participant, counted by how they discover us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerCounts {
    /// Same-host peers, which need no SPDP.
    pub same_host: usize,
    /// Network peers.
    pub network: usize,
    /// Announcements go to unicast targets. Hosts there may not have us as a
    /// target, so a participant started there depends on our announcements.
    pub has_unicast_targets: bool,
}

impl PeerCounts {
    fn has_many_same_host(self) -> bool {
        self.same_host >= SAME_HOST_MANY
    }

    /// Periods between two announcements to all.
    fn periods(self) -> i64 {
        if self.same_host == 0 || (self.network > 0 && !self.has_many_same_host()) {
            return 1;
        }
        let periods = if self.has_unicast_targets {
            0
        } else {
            self.same_host.saturating_mul(PERIODS_PER_PEER)
        };
        i64::try_from(periods.max(PERIODS_MIN)).unwrap_or(i64::MAX)
    }
}

/// The receivers of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncementScope {
    /// All targets.
    All,
    /// All targets without those that have answered.
    UnknownPeers,
    /// Network peers only, whose lease would expire otherwise.
    NetworkPeers,
}

/// Fast DDS reads multicast and unicast on two threads. It drops a dispose that it
/// reads after an announcement with a higher number.
const PAUSE_AFTER_DISPOSE: Duration = Duration::from_millis(200);

/// The schedule and content of our announcements.
pub(crate) struct Announcer {
    payload: Bytes,
    sequence: SequenceNumber,
    period: Duration,
    sent: usize,
    next: Instant,
    /// When the next announcement to all is due; earlier ones go to network peers
    /// only.
    next_to_all: Instant,
}

impl Announcer {
    pub(crate) fn new(now: Instant, data: &ParticipantData, period: Duration) -> Self {
        Self {
            payload: data.encode(),
            sequence: SequenceNumber::FIRST,
            period: jittered(period, data.prefix),
            sent: 0,
            next: now,
            next_to_all: now,
        }
    }

    /// Replaces the content of the first announcement, before it is sent.
    pub(crate) fn replace(&mut self, data: &ParticipantData) {
        self.payload = data.encode();
    }

    /// Sets new content, announced at once with a new burst: a change matters as
    /// much as a start.
    pub(crate) fn update(&mut self, now: Instant, data: &ParticipantData) {
        self.payload = data.encode();
        self.sequence = self.sequence.next();
        self.sent = 0;
        self.next = now;
        self.next_to_all = now;
    }

    /// The payload and the sequence number of the announcement.
    pub(crate) fn change(&self) -> (&Bytes, SequenceNumber) {
        (&self.payload, self.sequence)
    }

    /// The sequence number for a dispose. Later announcements require
    /// [`restart`](Self::restart), or their receivers take them for older.
    pub(crate) fn next_dispose_number(&mut self) -> SequenceNumber {
        self.sequence = self.sequence.next();
        self.sequence
    }

    /// As [`update`](Self::update), after a dispose: delayed until its receivers
    /// have read that.
    pub(crate) fn restart(&mut self, now: Instant, data: &ParticipantData) {
        self.update(now, data);
        self.start_at(now + PAUSE_AFTER_DISPOSE);
    }

    /// The scope of a due announcement, if any; schedules the next one.
    pub(crate) fn take_due(
        &mut self,
        now: Instant,
        peers: PeerCounts,
    ) -> Option<AnnouncementScope> {
        if now < self.next {
            return None;
        }
        let burst: &[i64] = if peers.has_many_same_host() {
            &STARTUP_BURST_MANY
        } else {
            &STARTUP_BURST
        };
        let pause = burst.get(self.sent);
        let scope = if now < self.next_to_all {
            AnnouncementScope::NetworkPeers
        } else if pause.is_some() && self.is_startup_repeat() {
            AnnouncementScope::UnknownPeers
        } else {
            AnnouncementScope::All
        };
        // A late driver (suspended) sends one announcement, not all that it missed.
        if let Some(pause) = pause {
            self.next_to_all = now + Duration::from_millis(*pause);
        } else if scope != AnnouncementScope::NetworkPeers {
            self.next_to_all = now + self.period.times(peers.periods());
        }
        self.sent = self.sent.saturating_add(1);
        self.next = match peers.network {
            0 => self.next_to_all,
            _ => self.next_to_all.min(now + self.period),
        };
        Some(scope)
    }

    /// Whether this repeats the startup announcement, which peers that have
    /// answered know. A changed announcement may have been lost, and a short lease
    /// needs every announcement.
    fn is_startup_repeat(&self) -> bool {
        let is_first = self.sequence == SequenceNumber::FIRST && self.sent > 0;
        let burst = STARTUP_BURST.iter().sum();
        is_first && self.period >= Duration::from_millis(burst)
    }

    /// Notes a new network peer, whose lease needs our announcements. The first one
    /// on the network may mean that more are reachable now.
    pub(crate) fn note_network_peer(&mut self, now: Instant, is_first_on_network: bool) {
        self.next = self.next.min(now + self.period);
        if is_first_on_network {
            self.next_to_all = self.next_to_all.min(now + self.period);
        }
    }

    /// Delays the first announcement.
    pub(crate) fn start_at(&mut self, at: Instant) {
        if self.sent == 0 {
            self.next = at;
            self.next_to_all = at;
        }
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.next
    }
}

fn jittered(period: Duration, prefix: GuidPrefix) -> Duration {
    let sum: i64 = prefix.0.iter().map(|b| i64::from(*b)).sum();
    let by = (period.as_nanos() / 1000).saturating_mul(sum % 100);
    Duration::from_nanos(period.as_nanos().saturating_sub(by))
}

/// The DATA fields of an announcement. It names the reader, since Fast DDS requires
/// that.
pub(crate) fn data_head(sequence: SequenceNumber) -> DataHead<'static> {
    DataHead {
        reader: EntityId::SPDP_READER,
        writer: EntityId::SPDP_WRITER,
        sequence,
        ..DataHead::default()
    }
}

/// The DATA fields of a dispose, with the key both as hash (read by Fast DDS) and
/// as payload (read by Cyclone DDS).
pub(crate) fn dispose_head(sequence: SequenceNumber, participant: Guid) -> DataHead<'static> {
    DataHead {
        inline_qos: InlineQosHead {
            status_info: Some(StatusInfo::DISPOSED_UNREGISTERED),
            key_hash: Some(participant.to_bytes()),
            ..InlineQosHead::NONE
        },
        key_only: true,
        ..data_head(sequence)
    }
}

/// Whether an SPDP change is a dispose.
pub fn is_dispose(data: &Data) -> bool {
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

    /// Counts the announcements to all and to network peers within a span.
    fn due_within(
        announcer: &mut Announcer,
        from: Instant,
        span: Duration,
        peers: PeerCounts,
    ) -> [usize; 2] {
        let mut counts = [0, 0];
        let end = from.after(span);
        while announcer.next_timeout() < end {
            let now = announcer.next_timeout();
            match announcer.take_due(now, peers) {
                Some(AnnouncementScope::All | AnnouncementScope::UnknownPeers) => counts[0] += 1,
                Some(AnnouncementScope::NetworkPeers) => counts[1] += 1,
                None => {}
            }
        }
        counts
    }

    #[test]
    fn a_host_with_many_peers_announces_as_much_as_one_with_a_few() {
        let no_peers = PeerCounts::default();
        let many = PeerCounts {
            same_host: 200,
            ..no_peers
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(
            due_within(&mut announcer(), Instant::ZERO, hour, no_peers),
            [1204, 0]
        );
        assert_eq!(
            due_within(&mut announcer(), Instant::ZERO, hour, many),
            [4, 0]
        );
        // A participant started on a unicast target depends on announcements.
        let has_unicast_targets = PeerCounts {
            has_unicast_targets: true,
            ..many
        };
        assert_eq!(
            due_within(&mut announcer(), Instant::ZERO, hour, has_unicast_targets),
            [121, 0]
        );
    }

    #[test]
    fn network_peers_beside_many_same_host_peers_get_unicast_announcements_before_their_lease_ends()
    {
        let mut announcer = announcer();
        let minute = Duration::from_secs(60);
        let many = PeerCounts {
            same_host: 200,
            ..PeerCounts::default()
        };
        due_within(&mut announcer, Instant::ZERO, minute, many);
        let met = Instant::ZERO.after(minute);
        assert!(announcer.next_timeout() > met.after(minute));
        announcer.note_network_peer(met, false);
        assert_eq!(announcer.next_timeout(), met.after(PERIOD));
        let with_one = PeerCounts { network: 1, ..many };
        assert_eq!(due_within(&mut announcer, met, minute, with_one), [0, 19]);
    }

    #[test]
    fn the_first_network_peer_causes_an_announcement_to_all_within_a_period() {
        let mut announcer = announcer();
        let many = PeerCounts {
            same_host: 200,
            ..PeerCounts::default()
        };
        due_within(&mut announcer, Instant::ZERO, Duration::from_secs(60), many);
        let met = Instant::from_nanos(60_000_000_000);
        announcer.note_network_peer(met, true);
        let with_one = PeerCounts { network: 1, ..many };
        assert_eq!(
            due_within(&mut announcer, met, PERIOD.times(2), with_one),
            [1, 0]
        );
    }
}
