//! WLP, the writer liveliness protocol (RTPS 2.5 §8.4.13): liveliness assertions of
//! participants.
//!
//! One participant message asserts the liveliness of all writers of a participant
//! with automatic, or manual-by-participant, liveliness. Nothing is sent while no
//! such writer has a finite lease. Manual-by-topic writers assert it themselves
//! (HEARTBEAT with the liveliness flag).

use alloc::boxed::Box;

use crate::change::ChangeKind;
use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic, earliest};
use crate::discovery::data::{ParticipantData, ParticipantMessageData};
use crate::discovery::spdp;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Route;
use crate::qos::Liveliness;
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

/// The shortest period between two assertions of one kind, so that a very short
/// lease cannot cause a flood.
const ASSERTION_PERIOD_MIN: Duration = Duration::from_millis(5);

/// Liveliness assertions, sent and received.
pub(crate) struct Wlp {
    pub(crate) channel: BuiltinTopic,
    /// With authenticated participants.
    secured: Option<Box<BuiltinTopic>>,
    /// Whether those use the unprotected topic, too: some topics have unprotected
    /// liveliness.
    uses_unprotected: bool,
    prefix: GuidPrefix,
    /// The period of automatic assertions, while there are such writers.
    period: Option<Duration>,
    next: Instant,
    manual_at: Option<Instant>,
    /// Asserted kinds to announce to same-host peers.
    asserted: [bool; 2],
}

impl Wlp {
    pub(crate) fn new(prefix: GuidPrefix, is_secured: bool, uses_unprotected: bool) -> Self {
        Self {
            secured: is_secured.then(|| {
                Box::new(BuiltinTopic::new(
                    prefix,
                    BuiltinEndpoints {
                        writer: EntityId::SECURE_WLP_WRITER,
                        reader: EntityId::SECURE_WLP_READER,
                        writer_bit: spdp::SECURE_WLP_WRITER,
                        reader_bit: spdp::SECURE_WLP_READER,
                    },
                ))
            }),
            uses_unprotected,
            channel: BuiltinTopic::new(
                prefix,
                BuiltinEndpoints {
                    writer: EntityId::WLP_WRITER,
                    reader: EntityId::WLP_READER,
                    writer_bit: spdp::PARTICIPANT_MESSAGE_WRITER,
                    reader_bit: spdp::PARTICIPANT_MESSAGE_READER,
                },
            ),
            prefix,
            period: None,
            next: Instant::FAR_FUTURE,
            manual_at: None,
            asserted: [false; 2],
        }
    }

    /// Both topics.
    pub(crate) fn channels(&mut self) -> impl Iterator<Item = &mut BuiltinTopic> {
        let secured = self.secured.as_deref_mut();
        [&mut self.channel].into_iter().chain(secured)
    }

    /// Matches a peer, on the secured topic if it is authenticated.
    pub(crate) fn match_peer(
        &mut self,
        now: Instant,
        peer: &ParticipantData,
        at: &Route,
        is_authenticated: bool,
    ) {
        let secured = self.secured.as_deref_mut().filter(|_| is_authenticated);
        if secured.is_none() || self.uses_unprotected {
            self.channel.match_peer(now, peer, at);
        }
        if let Some(secured) = secured {
            secured.match_peer(now, peer, at);
        }
    }

    /// Gives a submessage to the machine that it concerns; false if it is of
    /// another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        self.channels()
            .any(|channel| channel.handle(now, source, message))
    }

    /// Sets the shortest lease among our writers with automatic liveliness; `None`
    /// when no such writer has a finite one.
    pub(crate) fn set_automatic_lease(&mut self, now: Instant, shortest: Option<Duration>) {
        let period = shortest.map(|lease| lease.half().max(ASSERTION_PERIOD_MIN));
        if period == self.period {
            return;
        }
        self.period = period;
        self.next = period.map_or(Instant::FAR_FUTURE, |_| now);
    }

    /// Asserts liveliness now. A manual assertion within [`ASSERTION_PERIOD_MIN`]
    /// of the last one is dropped, since that one still holds.
    pub(crate) fn assert(&mut self, now: Instant, kind: Liveliness) {
        if kind == Liveliness::ManualByTopic {
            return;
        }
        if kind == Liveliness::ManualByParticipant {
            if self
                .manual_at
                .is_some_and(|at| now < at + ASSERTION_PERIOD_MIN)
            {
                return;
            }
            self.manual_at = Some(now);
        }
        let message = ParticipantMessageData::liveliness(self.prefix, kind);
        let key = message.key_hash();
        for channel in self.channels() {
            channel.publish(now, key, message.encode());
        }
        let [automatic, manual] = &mut self.asserted;
        match kind {
            Liveliness::Automatic => *automatic = true,
            _ => *manual = true,
        }
    }

    /// A kind asserted since the last call.
    pub(crate) fn take_asserted(&mut self) -> Option<Liveliness> {
        let [automatic, manual] = &mut self.asserted;
        if core::mem::take(automatic) {
            return Some(Liveliness::Automatic);
        }
        core::mem::take(manual).then_some(Liveliness::ManualByParticipant)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let Some(period) = self.period else { return };
        if now >= self.next {
            self.next = now + period;
            self.assert(now, Liveliness::Automatic);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        (self.next != Instant::FAR_FUTURE).then_some(self.next)
    }

    pub(crate) fn next_timeout_of_channels(&self) -> Option<Instant> {
        let secured = self.secured.as_deref().and_then(BuiltinTopic::next_timeout);
        earliest(self.channel.next_timeout(), secured)
    }

    /// The next assertion of a peer.
    pub(crate) fn poll_assertion(&mut self) -> Option<(GuidPrefix, Liveliness)> {
        while let Some(change) = self.channels().find_map(BuiltinTopic::poll_change) {
            if change.kind != ChangeKind::Alive {
                continue;
            }
            let Ok(message) = ParticipantMessageData::parse(&change.payload) else {
                continue;
            };
            if message.prefix != change.writer.prefix {
                continue;
            }
            if let Some(kind) = message.liveliness_kind() {
                return Some((message.prefix, kind));
            }
        }
        None
    }
}
