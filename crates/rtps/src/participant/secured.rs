//! A participant that has others prove who they are (DDS Security 1.1 §8.8).
//!
//! One that announces an identity and has answered us is a *stranger*: its owner
//! hears of it, carries messages of the handshake to and fro, and lets it in or
//! turns it away. Until then nothing else is said to it. What it announces in
//! the open counts no more once it is in: its secured announcements do, so
//! nobody takes it away, or moves it, who has not its keys.
//!
//! Nothing is sealed here: the owner does that on the way to the sockets, and
//! nothing gets here that was less protected than its endpoint asks.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::discovery::channel::{Channel, earliest};
use crate::discovery::data::{DataLimits, ParticipantData};
use crate::discovery::spdp;
use crate::discovery::stateless::Stateless;
use crate::history::ChangeKind;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::{Locator, Route};
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::{DataHead, Submessage};

use super::candidate::{Proof, proof, route};
use super::{LostReason, Participant, ParticipantEvent};
use crate::stats::Tally;

/// What a secured participant announces, and whom it lets in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityConfig {
    /// Parameters of its announcement, little-endian: tokens of identity and
    /// permissions, PARTICIPANT_SECURITY_INFO.
    pub tokens: Vec<(u16, Bytes)>,
    /// Whether it also meets those who announce no identity.
    pub admits_unauthenticated: bool,
    /// Whether liveliness of some topics is told in the open.
    pub open_liveliness: bool,
    /// What others hear of it by the secured announcement alone.
    pub user_data: Vec<u8>,
}

/// Messages of one peer about keys that are on their way: two endpoints for
/// each of its own and of ours that match.
const KEY_MESSAGES_MAX: u32 = 1024;
/// Refused participants that are remembered, so that each is told once. Beyond
/// that all are forgotten.
const REFUSED_MAX: usize = 64;

/// What is to be sent at the least to somebody who has not shown that it hears us:
/// the first message of a handshake.
const HANDSHAKE_BYTES: usize = 6_000;

/// Of a goodbye to one, and more than it takes, protected.
const LAST_WORD_BYTES: usize = 400;

/// One that has not proved who it is.
struct Stranger {
    data: Arc<ParticipantData>,
    proof: Proof,
    /// Bytes that may be sent to it, until it has shown that it hears us.
    budget_bytes: Option<usize>,
}

impl Stranger {
    /// Whether so many bytes may be sent to it.
    fn may_hear(&mut self, bytes: usize) -> bool {
        let Some(budget) = &mut self.budget_bytes else {
            return true;
        };
        let left = budget.checked_sub(bytes);
        *budget = left.unwrap_or(*budget);
        left.is_some()
    }
}

/// See the module.
pub(super) struct Secured {
    prefix: GuidPrefix,
    pub(super) config: SecurityConfig,
    strangers: BTreeMap<GuidPrefix, Stranger>,
    refused: BTreeSet<GuidPrefix>,
    stateless: Stateless,
    /// Of those who are in: for messages about keys. One channel for each, so
    /// that every datagram has one receiver, whose key it is sealed with.
    keys: BTreeMap<GuidPrefix, Channel>,
    /// Of those who are in: who has not got our first keys yet, and whether they
    /// are on their way. What it could not read is not said to it.
    entering: BTreeMap<GuidPrefix, bool>,
    announcements: Channel,
}

impl Secured {
    pub(super) fn new(now: Instant, config: SecurityConfig, data: &ParticipantData) -> Self {
        let mut secured = Self {
            prefix: data.prefix,
            strangers: BTreeMap::new(),
            refused: BTreeSet::new(),
            stateless: Stateless::new(data.prefix),
            keys: BTreeMap::new(),
            entering: BTreeMap::new(),
            announcements: Channel::new(
                data.prefix,
                EntityId::SECURE_SPDP_WRITER,
                EntityId::SECURE_SPDP_READER,
                (spdp::SECURE_SPDP_WRITER, spdp::SECURE_SPDP_READER),
            ),
            config,
        };
        secured.announce(now, data);
        secured
    }

    /// Tells those who are in what we are, with what is not for everybody.
    pub(super) fn announce(&mut self, now: Instant, data: &ParticipantData) {
        let mut data = data.clone();
        data.user_data.clone_from(&self.config.user_data);
        let key = data.guid().to_bytes();
        self.announcements.put(now, key, data.encode());
    }

    /// Whether its open announcements count no more.
    pub(super) fn is_beyond_announcing(&self, prefix: GuidPrefix) -> bool {
        self.is_in(prefix) || self.strangers.contains_key(&prefix)
    }

    /// Whether it has proved who it is.
    pub(super) fn is_in(&self, prefix: GuidPrefix) -> bool {
        self.keys.contains_key(&prefix)
    }

    /// Notes that one is refused; true if that is news.
    fn note_refused(&mut self, prefix: GuidPrefix) -> bool {
        if self.refused.len() >= REFUSED_MAX && !self.refused.contains(&prefix) {
            self.refused.clear();
        }
        self.refused.insert(prefix)
    }

    fn part(&mut self, prefix: GuidPrefix) {
        self.strangers.remove(&prefix);
        self.keys.remove(&prefix);
        self.entering.remove(&prefix);
        self.stateless.part(prefix);
        self.announcements.part(prefix);
    }

    fn channels(&mut self) -> impl Iterator<Item = &mut Channel> {
        let keys = self.keys.values_mut();
        keys.chain(core::iter::once(&mut self.announcements))
    }

    pub(super) fn reroute(&mut self, prefix: GuidPrefix, route: &Route) {
        for channel in self.channels() {
            channel.reroute(prefix, route);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for channel in self.channels() {
            channel.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let keys = self.keys.values().map(Channel::next_timeout);
        let all = keys.chain(core::iter::once(self.announcements.next_timeout()));
        all.fold(None, earliest)
    }

    /// True if there is more to send.
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let mut more = self.stateless.poll_transmit(out);
        for channel in self.channels() {
            more |= channel.poll_transmit(now, out);
        }
        more
    }

    /// The last word to those who are in.
    pub(super) fn farewell(&mut self, now: Instant, out: &mut Outbox) {
        let key = self.prefix.with(EntityId::PARTICIPANT).to_bytes();
        let key_only = ParticipantData::encode_key(self.prefix);
        self.announcements.dispose(now, key, key_only);
        self.announcements.poll_transmit(now, out);
    }
}

/// Whether it says that it can prove who it is.
pub(super) fn has_identity(data: &ParticipantData) -> bool {
    let is_token = |(id, _): &(u16, Bytes)| *id == crate::wire::pid::IDENTITY_TOKEN;
    let speaks = data.builtin_endpoints & spdp::STATELESS_WRITER != 0;
    // Some set the bits without a token, so both are needed.
    speaks && data.security_tokens.iter().any(is_token)
}

impl Participant {
    /// Whether a participant has proved who it is.
    pub fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        self.secured.as_ref().is_some_and(|own| own.is_in(prefix))
    }

    /// How many participants have announced an identity and not proved it.
    pub fn stranger_count(&self) -> usize {
        let secured = self.secured.as_ref();
        secured.map_or(0, |secured| secured.strangers.len())
    }

    /// Says something to a stranger, or to one who was one, once. False if it is
    /// neither, or there is no room: it is lost then, as on the network.
    pub fn send_stateless(&mut self, to: GuidPrefix, payload: Bytes) -> bool {
        let Some(secured) = &mut self.secured else {
            return false;
        };
        let stranger = secured.strangers.get_mut(&to);
        let may_hear = stranger.is_none_or(|stranger| stranger.may_hear(payload.len()));
        may_hear && secured.stateless.send(to, payload)
    }

    /// Says something about keys to one who is in; it arrives once, in order, as
    /// long as that one stays.
    pub fn send_keys(&mut self, now: Instant, to: GuidPrefix, payload: Bytes) {
        let secured = self.secured.as_mut();
        if let Some(channel) = secured.and_then(|secured| secured.keys.get_mut(&to)) {
            channel.send(now, to, payload);
        }
    }

    /// A stranger has proved who it is, and may be here: it is met. What it
    /// signed of itself, where it is told, counts in place of what it announced
    /// in the open. What it is known by from now on; `None` if it is no stranger,
    /// or there is no room. Only of keys is spoken with it until it has those that
    /// [`note_first_keys`](Self::note_first_keys) tells of.
    pub fn admit(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        signed: Option<ParticipantData>,
    ) -> Option<Arc<ParticipantData>> {
        if self.peers.len() >= self.config.limits.participants {
            self.stats.participants_refused.tally();
            return None;
        }
        let secured = self.secured.as_mut()?;
        let stranger = secured.strangers.remove(&prefix)?;
        let reach = &self.config.reach;
        let reachable = |data: &ParticipantData| {
            let route = route(reach, &data.metatraffic_unicast, stranger.proof);
            data.prefix == prefix && !route.locators.is_empty()
        };
        let data = match signed.filter(reachable) {
            // Its tokens and bits may not be part of what it signs.
            // Nor is where it lives: who links with it has that proved.
            Some(signed) => Arc::new(ParticipantData {
                properties: stranger.data.properties.clone(),
                builtin_endpoints: stranger.data.builtin_endpoints,
                security_tokens: stranger.data.security_tokens.clone(),
                vendor: stranger.data.vendor,
                version: stranger.data.version,
                ..signed
            }),
            None => stranger.data,
        };
        let at = route(reach, &data.metatraffic_unicast, stranger.proof);
        secured.entering.insert(prefix, false);
        let mut keys = Channel::volatile(
            self.config.prefix,
            (
                EntityId::VOLATILE_SECURE_WRITER,
                EntityId::VOLATILE_SECURE_READER,
            ),
            (spdp::VOLATILE_SECURE_WRITER, spdp::VOLATILE_SECURE_READER),
            KEY_MESSAGES_MAX,
        );
        keys.meet(now, &data, &at);
        secured.keys.insert(prefix, keys);
        self.grant_lease(now, &data);
        self.meet(now, data.clone(), stranger.proof);
        Some(data)
    }

    /// All has been given to [`send_keys`](Self::send_keys) that one who was admitted
    /// needs to read our built-in endpoints. They speak with it as soon as it has
    /// acknowledged that, at once if there was nothing: each heartbeat that it could not
    /// read would be repeated, by all of a crowd that meets to all of it.
    pub fn note_first_keys(&mut self, now: Instant, prefix: GuidPrefix) {
        let secured = self.secured.as_mut();
        if let Some(are_given) = secured.and_then(|own| own.entering.get_mut(&prefix)) {
            *are_given = true;
        }
        self.enter(now, prefix);
    }

    /// Whether our built-in endpoints are silent to one, since it could not read them.
    pub(super) fn is_entering(&self, prefix: GuidPrefix) -> bool {
        let secured = self.secured.as_ref();
        secured.is_some_and(|secured| secured.entering.contains_key(&prefix))
    }

    fn enter(&mut self, now: Instant, prefix: GuidPrefix) {
        let Some(secured) = &mut self.secured else {
            return;
        };
        let are_given = secured.entering.get(&prefix) == Some(&true);
        let keys = secured.keys.get(&prefix);
        if !are_given || keys.is_some_and(|keys| !keys.is_acked()) {
            return;
        }
        secured.entering.remove(&prefix);
        if let Some(peer) = self.peers.find(prefix) {
            let (data, at) = (peer.data.clone(), peer.metatraffic.clone());
            secured.announcements.meet(now, &data, &at);
            self.sedp.meet(now, &data, &at, true);
            self.wlp.meet(now, &data, &at, true);
        }
    }

    /// One who is in has proved once more who it is, since it had lost us: it is
    /// lost, and a stranger that can be admitted at once. False if it is not in.
    pub fn estrange(&mut self, prefix: GuidPrefix) -> bool {
        let Some(peer) = self.peers.find(prefix) else {
            return false;
        };
        let (data, proof) = (peer.data.clone(), peer.proof());
        self.lose(prefix, LostReason::Renewed);
        let Some(secured) = &mut self.secured else {
            return false;
        };
        let route = route(&self.config.reach, &data.metatraffic_unicast, proof);
        secured.stateless.meet(prefix, route);
        let stranger = Stranger {
            data,
            proof,
            budget_bytes: None,
        };
        secured.strangers.insert(prefix, stranger);
        true
    }

    /// Tells those who are in that we leave, before [`begin_anew`](Self::begin_anew).
    /// Best effort: who does not hear it finds out when we begin anew. In the open,
    /// too: Fast DDS 2.9 has no other goodbye, and a participant of it answers no
    /// handshake of one that it knows.
    pub fn take_leave(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(secured) = &mut self.secured {
            secured.farewell(now, out);
            self.transmit_goodbye_to_peers(out);
        }
    }

    /// What others know of us is not so any longer: those who are in are lost, and
    /// strangers turned away, to be met again; we announce ourselves as soon as they
    /// have read the goodbye. Who they are.
    pub fn begin_anew(&mut self, now: Instant) -> Vec<GuidPrefix> {
        let Some(secured) = &mut self.secured else {
            return Vec::new();
        };
        let strangers = core::mem::take(&mut secured.strangers);
        for prefix in strangers.keys() {
            secured.stateless.part(*prefix);
        }
        let lost: Vec<GuidPrefix> = secured.keys.keys().copied().collect();
        secured.announce(now, &self.data);
        for prefix in &lost {
            self.lose(*prefix, LostReason::Renewed);
        }
        self.announcer.begin_anew(now, &self.data);
        strangers.into_keys().chain(lost).collect()
    }

    /// The goodbye that one would believe who was in and has been lost: to be
    /// protected while its keys are known, and [sent](Self::part_from_stranger) if it
    /// comes again, says nothing, and so seems to know us still. Without destination.
    pub fn write_last_word(&self, lost: GuidPrefix, out: &mut Outbox) {
        if let Some(secured) = &self.secured {
            let head = secured.announcements.next_head();
            let guid = self.config.prefix.with(EntityId::PARTICIPANT);
            let head = DataHead {
                inline_qos: spdp::goodbye_head(head.sequence, guid).inline_qos,
                key_only: true,
                ..head
            };
            let payload = ParticipantData::encode_key(self.config.prefix);
            let nowhere: Arc<[Locator]> = Arc::from([]);
            let mut message = out.begin(self.config.prefix, &nowhere, LAST_WORD_BYTES);
            message.info_destination(lost);
            message.data(&head, &payload);
            message.finish();
        }
    }

    /// A stranger that has not answered is to forget us, as far as a goodbye in the
    /// open has it do so; we announce ourselves once more. Where it is, for a
    /// [last word](Self::write_last_word); `None` if it is no stranger, or has never
    /// shown that it is there.
    pub fn part_from_stranger(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        out: &mut Outbox,
    ) -> Option<Arc<[Locator]>> {
        let secured = self.secured.as_mut()?;
        let stranger = secured.strangers.get_mut(&prefix)?;
        if !stranger.may_hear(2 * LAST_WORD_BYTES) {
            return None;
        }
        let at = &stranger.data.metatraffic_unicast;
        let to = route(&self.config.reach, at, stranger.proof).locators;
        self.write_goodbye([(Some(prefix), to.clone())], out);
        self.announcer.begin_anew(now, &self.data);
        Some(to)
    }

    /// A stranger has not proved who it is, or may not be here: it is forgotten,
    /// until it announces itself again.
    pub fn turn_away(&mut self, prefix: GuidPrefix) {
        if let Some(secured) = &mut self.secured
            && secured.strangers.remove(&prefix).is_some()
        {
            secured.stateless.part(prefix);
        }
    }

    /// Something came that is addressed to us, even if no more of it is believed:
    /// whoever it is from hears us.
    pub fn note_addressed(&mut self, now: Instant, from: Locator, prefix: GuidPrefix) {
        self.promote(now, Some(from), prefix);
        self.note_heard(Some(from), prefix);
    }

    /// Ends what there is with one who is in, since it may be here no longer.
    pub fn expel(&mut self, prefix: GuidPrefix) {
        self.lose(prefix, LostReason::Expelled);
    }

    /// A participant of which nothing is known but its announcement: whether it
    /// is worth answering.
    pub(super) fn is_welcome(&mut self, data: &ParticipantData) -> bool {
        let Some(secured) = &mut self.secured else {
            return true;
        };
        if secured.config.admits_unauthenticated || has_identity(data) {
            return true;
        }
        self.stats.unauthenticated.tally();
        if secured.note_refused(data.prefix) {
            let data = Arc::new(data.clone());
            self.events
                .push_back(ParticipantEvent::Unauthenticated(data));
        }
        false
    }

    /// A newcomer has announced itself. One that announces an identity may wait
    /// for our word before it says any (Fast DDS does): it gets that as soon as
    /// three times the bytes it sent are enough.
    pub(super) fn approach(&mut self, prefix: GuidPrefix) {
        let Some(candidate) = self.candidates.find(prefix) else {
            return;
        };
        let budget = candidate.budget_bytes(&self.config.limits);
        let announced = &candidate.data.metatraffic_unicast;
        let proof = proof(candidate.from, announced, &self.config.reach);
        let is_due = budget >= HANDSHAKE_BYTES && has_identity(&candidate.data);
        if self.secured.is_none() || proof == Proof::None || !is_due {
            return;
        }
        if let Some(candidate) = self.candidates.take(prefix) {
            self.keep_out(&candidate.data, proof, Some(budget));
        }
    }

    /// A message addressed to us came from a stranger: it hears us.
    pub(super) fn note_heard(&mut self, from: Option<Locator>, prefix: GuidPrefix) {
        let secured = self.secured.as_mut();
        let stranger = secured.and_then(|secured| secured.strangers.get_mut(&prefix));
        if let Some(stranger) = stranger.filter(|stranger| stranger.budget_bytes.is_some()) {
            let announced = &stranger.data.metatraffic_unicast;
            if proof(from, announced, &self.config.reach) != Proof::None {
                stranger.budget_bytes = None;
            }
        }
    }

    /// A newcomer has answered, or is to hear no more than `budget_bytes` until it
    /// does. True if it has to prove first who it is.
    pub(super) fn keep_out(
        &mut self,
        data: &Arc<ParticipantData>,
        proof: Proof,
        budget_bytes: Option<usize>,
    ) -> bool {
        let Some(secured) = &mut self.secured else {
            return false;
        };
        if !has_identity(data) {
            return false;
        }
        if secured.strangers.len() >= self.config.limits.candidates.max(1) {
            self.stats.participants_refused.tally();
            return true;
        }
        let route = route(&self.config.reach, &data.metatraffic_unicast, proof);
        secured.stateless.meet(data.prefix, route);
        let data = data.clone();
        let event = ParticipantEvent::Stranger(data.clone());
        let stranger = Stranger {
            data,
            proof,
            budget_bytes,
        };
        secured.strangers.insert(stranger.data.prefix, stranger);
        self.events.push_back(event);
        true
    }

    /// Gives a submessage to the endpoint of security that it concerns; false if
    /// it concerns none.
    pub(super) fn handle_secured(
        &mut self,
        now: Instant,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        let limits = &self.config.limits;
        let Some(secured) = &mut self.secured else {
            return false;
        };
        if secured.stateless.handle(source, message) {
            while let Some((from, payload)) = secured.stateless.poll_message() {
                if let Some(stranger) = secured.strangers.get_mut(&from)
                    && let Some(budget) = &mut stranger.budget_bytes
                {
                    let more = payload.len().saturating_mul(limits.amplification);
                    *budget = budget.saturating_add(more);
                }
                let event = ParticipantEvent::StatelessMessage { from, payload };
                self.events.push_back(event);
            }
            return true;
        }
        if message.writer() == Some(EntityId::VOLATILE_SECURE_WRITER) {
            if let Some(channel) = secured.keys.get_mut(&source.prefix) {
                channel.handle(now, source, message);
                while let Some(change) = channel.poll_change() {
                    if change.kind == ChangeKind::Alive {
                        self.events.push_back(ParticipantEvent::KeysMessage {
                            from: change.writer.prefix,
                            payload: change.payload,
                        });
                    }
                }
                self.enter(now, source.prefix);
            }
            return true;
        }
        if !secured.announcements.handle(now, source, message) {
            return false;
        }
        while let Some(secured) = &mut self.secured
            && let Some(change) = secured.announcements.poll_change()
        {
            let from = change.writer.prefix;
            if change.kind != ChangeKind::Alive {
                self.lose(from, LostReason::Goodbye);
                continue;
            }
            self.handle_secured_announcement(now, from, &change.payload);
        }
        true
    }

    fn handle_secured_announcement(&mut self, now: Instant, from: GuidPrefix, payload: &[u8]) {
        let limits: &DataLimits = &self.config.limits.data;
        let Ok(data) = ParticipantData::parse_within(payload, limits) else {
            self.stats.malformed.tally();
            return;
        };
        if data.prefix != from {
            self.stats.impersonation.tally();
            return;
        }
        let Some(peer) = self.peers.find(from) else {
            return;
        };
        let is_news = *peer.data != data;
        let proof = peer.proof();
        if is_news {
            self.renew(now, Arc::new(data), proof);
        }
    }

    /// Nothing of security speaks with it any more.
    pub(super) fn part_secured(&mut self, prefix: GuidPrefix) {
        if let Some(secured) = &mut self.secured {
            secured.part(prefix);
        }
    }
}
