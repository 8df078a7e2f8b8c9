//! Announcements in and out: newcomers, changes, goodbyes, answers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::discovery::spdp::{self, Audience};
use crate::id::{EntityId, GuidPrefix};
use crate::locator::{Locator, Route};
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::{Data, Heartbeat};

use super::candidate::{Answer, AnswerSizes, Proof, proof, route};
use super::peer::Peer;
use super::{LostReason, Participant, ParticipantEvent};
use crate::stats::Tally;

/// The largest datagram of discovery. Announcements that do not fit are
/// fragmented by IP, like Fast DDS's.
const DATAGRAM_BYTES: usize = 63_000;

/// Sizes of the parts of an announcement, for the byte budget of candidates.
const HEADER_BYTES: usize = 20;
const INFO_DST_BYTES: usize = 16;
const DATA_HEAD_BYTES: usize = 24;

impl Participant {
    /// An SPDP change arrived.
    pub(super) fn handle_announcement(
        &mut self,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        data: &Data,
    ) {
        self.stats.announcements_received.tally();
        if spdp::is_goodbye(data) {
            self.handle_goodbye(from, source.prefix, data);
            return;
        }
        let Ok(peer) = ParticipantData::parse_within(data.payload, &self.config.limits.data) else {
            self.stats.malformed.tally();
            return;
        };
        if peer.prefix != source.prefix {
            self.stats.impersonation.tally();
            return;
        }
        if !self.is_in_domain(&peer) {
            self.stats.other_domain.tally();
            return;
        }
        if self.is_neighbour(peer.prefix) {
            // Meant for others; what it has to tell us it posts.
            return;
        }
        let secured = self.secured.as_ref();
        if secured.is_some_and(|own| own.is_beyond_announcing(peer.prefix)) {
            return;
        }
        let proof = proof(from, &peer.metatraffic_unicast, &self.config.reach);
        if let Some(known) = self.peers.data(peer.prefix) {
            if !lives_elsewhere(known, &peer) {
                self.handle_reannouncement(now, peer, proof);
                return;
            }
            // Somebody else must not move a living participant elsewhere.
            if proof == Proof::None {
                self.stats.impersonation.tally();
                return;
            }
            // A source address is forged easily, so even one that fits has to
            // answer first, as a newcomer has; until then the old ones hold.
        }
        if !self.is_welcome(&peer) {
            return;
        }
        let route = route(&self.config.reach, &peer.metatraffic_unicast, proof);
        if route.locators.is_empty() {
            self.stats.unreachable.tally();
            return;
        }
        let evicted = self.candidates.note(
            now,
            &self.config.limits,
            Arc::new(peer),
            from,
            route,
            (HEADER_BYTES + DATA_HEAD_BYTES).saturating_add(data.payload.len()),
        );
        self.stats.candidates_evicted.tally_by(u64::from(evicted));
        self.approach(source.prefix);
    }

    /// Whether it announced our domain, and no tag.
    pub(super) fn is_in_domain(&self, peer: &ParticipantData) -> bool {
        let id = peer.domain_id.unwrap_or(self.config.domain_id);
        let tag = peer.domain_tag.as_deref().unwrap_or_default();
        id == self.config.domain_id && tag.is_empty()
    }

    /// A participant that is spoken to announced itself again.
    fn handle_reannouncement(&mut self, now: Instant, data: ParticipantData, proof: Proof) {
        let prefix = data.prefix;
        if self.peers.data(prefix).is_some_and(|known| **known == data) {
            return;
        }
        // Somebody else must not move a living participant elsewhere.
        if proof == Proof::None {
            self.stats.impersonation.tally();
            return;
        }
        self.renew(now, Arc::new(data), proof);
    }

    /// Takes over what a participant says of itself now.
    pub(super) fn renew(&mut self, now: Instant, data: Arc<ParticipantData>, proof: Proof) {
        let prefix = data.prefix;
        self.grant_lease(now, &data);
        self.peers.update(prefix, data.clone(), proof);
        self.events
            .push_back(ParticipantEvent::ParticipantChanged(data));
        self.reroute(prefix);
    }

    pub(super) fn grant_lease(&mut self, now: Instant, data: &ParticipantData) {
        let span = data.lease.min(self.config.limits.lease_max);
        self.leases.grant(now, data.prefix, span);
    }

    /// A participant, or somebody in its name, said goodbye.
    fn handle_goodbye(&mut self, from: Option<Locator>, prefix: GuidPrefix, data: &Data) {
        let key = data
            .inline_qos
            .key_hash()
            .map(crate::id::Guid::from_bytes)
            .or_else(|| ParticipantData::parse_key(data.payload));
        if key.is_some_and(|guid| guid.prefix != prefix) {
            self.stats.impersonation.tally();
            return;
        }
        let secured = self.secured.as_ref();
        if secured.is_some_and(|own| own.is_beyond_announcing(prefix)) {
            // Anybody can say so; its secured goodbye counts, or its silence.
            return;
        }
        self.candidates.take(prefix);
        let Some(known) = self.peers.data(prefix) else {
            return;
        };
        if proof(from, &known.metatraffic_unicast, &self.config.reach) == Proof::None {
            self.stats.impersonation.tally();
            return;
        }
        self.lose(prefix, LostReason::Goodbye);
    }

    /// A message addressed to us came from a candidate: it exists, and hears
    /// us. If it came from an announced address, it becomes a participant.
    pub(super) fn promote(&mut self, now: Instant, from: Option<Locator>, prefix: GuidPrefix) {
        let Some(candidate) = self.candidates.find(prefix) else {
            return;
        };
        let announced = &candidate.data.metatraffic_unicast;
        let proof = proof(from, announced, &self.config.reach);
        if proof == Proof::None {
            return;
        }
        if self.peers.contains(prefix) {
            if let Some(candidate) = self.candidates.take(prefix) {
                self.renew(now, candidate.data, proof);
            }
            return;
        }
        if self.peers.len() >= self.config.limits.participants {
            self.stats.participants_refused.tally();
            return;
        }
        let Some(candidate) = self.candidates.take(prefix) else {
            return;
        };
        if self.keep_out(&candidate.data, proof, None) {
            return;
        }
        self.grant_lease(now, &candidate.data);
        self.meet(now, candidate.data, proof);
    }

    /// Sends the periodic announcement, when due, to the configured places and
    /// to those participants that do not listen there.
    pub(super) fn transmit_announcements(&mut self, now: Instant, out: &mut Outbox) {
        if out.is_full() {
            return;
        }
        let is_afar = |at: &Locator| at.is_unicast() && !at.is_loopback();
        let company = self.peers.company(self.announce_to.iter().any(is_afar));
        let Some(audience) = self.announcer.take_due(now, company) else {
            return;
        };
        self.stats.announcements_sent.tally();
        if audience == Audience::Others {
            for (prefix, peer) in self.peers.others() {
                self.write_announcement(&peer.metatraffic.locators, Some(prefix), None, out);
            }
            return;
        }
        let targets = self.places_to_announce_at();
        if audience == Audience::Strangers {
            let strange = targets.iter().filter(|at| !self.has_peer_at(at));
            self.announce_at(&strange.copied().collect(), out);
            return;
        }
        self.announce_at(&targets, out);
        for (prefix, route) in self.peers.not_listening_at(&targets) {
            self.write_announcement(&route.locators, Some(prefix), None, out);
        }
    }

    fn announce_at(&self, places: &Arc<[Locator]>, out: &mut Outbox) {
        if !places.is_empty() {
            self.write_announcement(places, None, None, out);
        }
    }

    /// Whether at a place of this host one is that we speak with. It has answered to
    /// become that: what shares its port with it, as several of Cyclone DDS's do in one
    /// process, has heard what it has.
    fn has_peer_at(&self, at: &Locator) -> bool {
        let is_there = |peer: &Peer| {
            let route = &peer.metatraffic;
            route.is_same_host() && route.locators.iter().any(|l| l.port == at.port)
        };
        at.is_loopback() && self.peers.others().any(|(_, peer)| is_there(peer))
    }

    /// Whether an announcement is due.
    pub fn announces_by(&self, now: Instant) -> bool {
        self.announcer.next_timeout() <= now
    }

    /// Tells which ports of this host somebody is bound to; `None` where that is
    /// not known. Until the next word nothing is announced to its other ports, nor
    /// to ourselves: who binds one later announces itself, and is answered.
    pub fn know_bound_ports(&mut self, ports: Option<Vec<u16>>) {
        self.bound_ports = ports;
    }

    /// Where somebody may be whom we do not know: not at a neighbour's, and not
    /// where nobody is.
    fn places_to_announce_at(&self) -> Arc<[Locator]> {
        let is_vain = |at: &Locator| {
            at.is_loopback() && (self.peers.has_neighbour_at(at.port) || self.is_unbound(at.port))
        };
        if !self.announce_to.iter().any(is_vain) {
            return self.announce_to.clone();
        }
        let places = self.announce_to.iter().filter(|at| !is_vain(at));
        places.copied().collect()
    }

    /// Whether nobody is bound to a port of this host, but perhaps ourselves.
    fn is_unbound(&self, port: u32) -> bool {
        let Some(bound) = &self.bound_ports else {
            return false;
        };
        let is_ours = |at: &Locator| at.port == port;
        !bound.iter().any(|at| u32::from(*at) == port)
            || self.config.metatraffic_unicast.iter().any(is_ours)
    }

    /// Answers candidates directly, so that they need not wait for our period,
    /// together with a heartbeat that asks them to show themselves even if
    /// they have known us for long.
    pub(super) fn transmit_answers(&mut self, now: Instant, out: &mut Outbox) {
        let question = HEADER_BYTES + INFO_DST_BYTES + Heartbeat::SIZE_BYTES;
        let whole = (question + DATA_HEAD_BYTES).saturating_add(self.announcer.change().0.len());
        let sizes = AnswerSizes {
            whole,
            question: match self.secured {
                None => question,
                Some(_) => whole,
            },
        };
        let limits = self.config.limits;
        while !out.is_full()
            && let Some((prefix, route, answer)) =
                self.candidates
                    .next_answer(now, &limits, sizes, &mut self.stats.answers_withheld)
        {
            if self.secured.is_some() {
                // A question would be of a topic that a stranger hears nothing of.
                self.stats.announcements_sent.tally();
                self.write_announcement(&route.locators, Some(prefix), None, out);
                continue;
            }
            let probe = self.sedp.publications.probe();
            if answer == Answer::Whole {
                self.stats.announcements_sent.tally();
                self.write_announcement(&route.locators, Some(prefix), Some(probe), out);
            } else {
                self.write_probe(&route, prefix, &probe, out);
            }
        }
    }

    fn write_announcement(
        &self,
        to: &Arc<[Locator]>,
        destination: Option<GuidPrefix>,
        probe: Option<Heartbeat>,
        out: &mut Outbox,
    ) {
        let (payload, sequence) = self.announcer.change();
        let mut message = out.begin(self.config.prefix, to, DATAGRAM_BYTES);
        if let Some(prefix) = destination {
            message.info_destination(prefix);
        }
        message.data(&spdp::head(sequence), payload);
        if let Some(probe) = probe {
            message.heartbeat(&probe);
        }
        message.finish();
    }

    /// Asks participants whose address somebody else took whether they live.
    pub(super) fn transmit_probes(&mut self, now: Instant, out: &mut Outbox) {
        while !out.is_full()
            && let Some((prefix, route)) = self.peers.next_probe(now)
        {
            let probe = self.sedp.publications.probe();
            self.write_probe(&route, prefix, &probe, out);
        }
    }

    /// Asks at addresses that participants name for their endpoints.
    pub(super) fn transmit_questions(&mut self, now: Instant, out: &mut Outbox) {
        let bytes = HEADER_BYTES + INFO_DST_BYTES + Heartbeat::SIZE_BYTES;
        let limits = self.config.limits;
        while !out.is_full()
            && let Some((prefix, at)) = self.claims.next_question(now, &limits, bytes)
        {
            let probe = self.sedp.publications.probe();
            let route = self.config.reach.choose(&[at]);
            self.write_probe(&route, prefix, &probe, out);
        }
    }

    fn write_probe(&self, route: &Route, prefix: GuidPrefix, probe: &Heartbeat, out: &mut Outbox) {
        let mut message = out.begin(self.config.prefix, &route.locators, DATAGRAM_BYTES);
        message.info_destination(prefix);
        message.heartbeat(probe);
        message.finish();
    }

    /// Sends the SPDP dispose to everybody who may know us.
    pub(super) fn transmit_goodbye(&mut self, out: &mut Outbox) {
        let places = self.places_to_announce_at();
        self.write_goodbye(core::iter::once((None, places)), out);
        self.transmit_goodbye_to_peers(out);
    }

    /// Sends the SPDP dispose to those who are spoken to.
    pub(super) fn transmit_goodbye_to_peers(&mut self, out: &mut Outbox) {
        let others = self.peers.others();
        let at = others.map(|(prefix, peer)| (Some(prefix), peer.metatraffic.locators.clone()));
        let at: Vec<_> = at.collect();
        self.write_goodbye(at, out);
    }

    pub(super) fn write_goodbye(
        &mut self,
        to: impl IntoIterator<Item = (Option<GuidPrefix>, Arc<[Locator]>)>,
        out: &mut Outbox,
    ) {
        let guid = self.config.prefix.with(EntityId::PARTICIPANT);
        let head = spdp::goodbye_head(self.announcer.take_leave(), guid);
        let payload = ParticipantData::encode_key(self.config.prefix);
        for (destination, to) in to.into_iter().filter(|(_, to)| !to.is_empty()) {
            let mut message = out.begin(self.config.prefix, &to, DATAGRAM_BYTES);
            if let Some(prefix) = destination {
                message.info_destination(prefix);
            }
            message.data(&head, &payload);
            message.finish();
        }
    }
}

/// Whether an announcement names a host that the participant had not named
/// before.
fn lives_elsewhere(known: &ParticipantData, now: &ParticipantData) -> bool {
    let all = |data: &ParticipantData| {
        let (own, users) = (&data.metatraffic_unicast, &data.default_unicast);
        let hosts = own.iter().chain(users).map(|l| (l.kind, l.address));
        hosts.collect::<Vec<_>>()
    };
    let before = all(known);
    all(now).iter().any(|host| !before.contains(host))
}
