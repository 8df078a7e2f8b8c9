//! The writer liveliness protocol (RTPS 2.5 §8.4.13): one participant message
//! speaks for all writers of a participant whose liveliness is automatic, or
//! manual by participant. Nothing is sent while no such writer has a finite
//! lease. Manual by topic is each writer's own business (HEARTBEAT with the
//! liveliness flag).

use alloc::boxed::Box;

use crate::discovery::channel::{Channel, earliest};
use crate::discovery::data::{ParticipantData, ParticipantMessageData};
use crate::discovery::spdp;
use crate::history::ChangeKind;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Route;
use crate::qos::Liveliness;
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

/// The shortest pause between two assertions of one kind, so that a peer's
/// or a user's tiny lease cannot turn us into a flood.
const PAUSE_MIN: Duration = Duration::from_millis(5);

/// Our assertions and the peers'.
pub(crate) struct Wlp {
    pub(crate) channel: Channel,
    /// To and from those who have proved who they are.
    secured: Option<Box<Channel>>,
    /// Whether they use the other one, too: some topics' liveliness is open.
    is_open: bool,
    prefix: GuidPrefix,
    /// The pause between automatic assertions, while there are such writers.
    period: Option<Duration>,
    next: Instant,
    manual_at: Option<Instant>,
    /// Kinds asserted that neighbours have not been told yet.
    asserted: [bool; 2],
}

impl Wlp {
    pub(crate) fn new(prefix: GuidPrefix, is_secured: bool, is_open: bool) -> Self {
        Self {
            secured: is_secured.then(|| {
                Box::new(Channel::new(
                    prefix,
                    EntityId::SECURE_WLP_WRITER,
                    EntityId::SECURE_WLP_READER,
                    (spdp::SECURE_WLP_WRITER, spdp::SECURE_WLP_READER),
                ))
            }),
            is_open,
            channel: Channel::new(
                prefix,
                EntityId::WLP_WRITER,
                EntityId::WLP_READER,
                (
                    spdp::PARTICIPANT_MESSAGE_WRITER,
                    spdp::PARTICIPANT_MESSAGE_READER,
                ),
            ),
            prefix,
            period: None,
            next: Instant::FAR_FUTURE,
            manual_at: None,
            asserted: [false; 2],
        }
    }

    /// Both.
    pub(crate) fn channels(&mut self) -> impl Iterator<Item = &mut Channel> {
        let secured = self.secured.as_deref_mut();
        [&mut self.channel].into_iter().chain(secured)
    }

    /// Starts talking to a peer, by the channel that it has to be talked to.
    pub(crate) fn meet(&mut self, now: Instant, peer: &ParticipantData, at: &Route, is_in: bool) {
        let secured = self.secured.as_deref_mut().filter(|_| is_in);
        if secured.is_none() || self.is_open {
            self.channel.meet(now, peer, at);
        }
        if let Some(secured) = secured {
            secured.meet(now, peer, at);
        }
    }

    /// Gives a submessage to the machine that it concerns; false if it is of
    /// another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        self.channels()
            .any(|channel| channel.handle(now, source, message))
    }

    /// The shortest lease among our writers with automatic liveliness; `None`
    /// when no such writer has a finite one.
    pub(crate) fn set_automatic_lease(&mut self, now: Instant, shortest: Option<Duration>) {
        let period = shortest.map(|lease| lease.half().max(PAUSE_MIN));
        if period == self.period {
            return;
        }
        self.period = period;
        self.next = period.map_or(Instant::FAR_FUTURE, |_| now);
    }

    /// Asserts liveliness now. Manual assertions follow each other no faster
    /// than [`PAUSE_MIN`]; one in between is dropped, since the last one holds.
    pub(crate) fn assert(&mut self, now: Instant, kind: Liveliness) {
        if kind == Liveliness::ManualByTopic {
            return;
        }
        if kind == Liveliness::ManualByParticipant {
            if self.manual_at.is_some_and(|at| now < at + PAUSE_MIN) {
                return;
            }
            self.manual_at = Some(now);
        }
        let message = ParticipantMessageData::liveliness(self.prefix, kind);
        let key = message.key_hash();
        for channel in self.channels() {
            channel.put(now, key, message.encode());
        }
        let [automatic, manual] = &mut self.asserted;
        match kind {
            Liveliness::Automatic => *automatic = true,
            _ => *manual = true,
        }
    }

    /// A kind that was asserted since the last look.
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
            if !fault!("liveliness-not-asserted") {
                self.assert(now, Liveliness::Automatic);
            }
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        (self.next != Instant::FAR_FUTURE).then_some(self.next)
    }

    pub(crate) fn next_timeout_of_channels(&self) -> Option<Instant> {
        let secured = self.secured.as_deref().and_then(Channel::next_timeout);
        earliest(self.channel.next_timeout(), secured)
    }

    /// The next assertion of a peer.
    pub(crate) fn poll_assertion(&mut self) -> Option<(GuidPrefix, Liveliness)> {
        while let Some(change) = self.channels().find_map(Channel::poll_change) {
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
