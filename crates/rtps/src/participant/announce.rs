//! SPDP announcements of a participant, sent and received (RTPS 2.5 §8.5.3): new
//! participants, changes, disposes and probes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::discovery::question::{AskedEndpoints, Question};
use crate::discovery::spdp::{self, AnnouncementScope};
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, Data, Submessage};

use super::peer::Peer;
use super::unvalidated_participant::{
    ParticipantProbe, ProbeSizes, SourceCheck, UnvalidatedParticipant, check_source, route,
};
use super::{LostReason, Participant, ParticipantEvent};
use crate::stats::Tally;

/// The largest discovery datagram. IP fragments an announcement that exceeds the
/// MTU, as with Fast DDS.
const DATAGRAM_BYTES: usize = 63_000;

/// Within this time the copies of an announcement come from all addresses of a host. The
/// next announcement may be the first from another address.
const COPIES_SPAN: Duration = Duration::from_millis(500);

/// Sizes of the parts of an announcement, for the byte budget of unvalidated
/// participants.
const HEADER_BYTES: usize = 20;
const INFO_DST_BYTES: usize = 16;
const DATA_HEAD_BYTES: usize = 24;
/// A question to a discovered participant: a HEARTBEAT, or two ACKNACKs.
const QUESTION_BYTES_MAX: usize = 2 * AckNack::EMPTY_SIZE_BYTES;

impl Participant {
    /// Handles an SPDP change.
    pub(super) fn handle_spdp(
        &mut self,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        data: &Data,
    ) {
        self.stats.announcements_received.tally();
        if self.config.ignores_announcements {
            return;
        }
        if spdp::is_dispose(data) {
            self.handle_dispose(from, source.prefix, data);
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
        if self.is_same_host_peer(peer.prefix) {
            // Meant for others; it announces itself to us on the host.
            return;
        }
        if let Some(known) = self.peers.find_mut(peer.prefix) {
            known
                .path
                .note_announcement(data.payload.len(), &self.config.limits);
            self.ask_announcing_address(now, peer.prefix, from);
        }
        let secured = self.secured.as_ref();
        if secured.is_some_and(|own| own.ignores_plain_announcements(peer.prefix)) {
            return;
        }
        let source_check = check_source(from, &peer.metatraffic_unicast, &self.config.network);
        if let Some(known) = self.peers.data(peer.prefix) {
            if !names_new_address(known, &peer) {
                self.handle_reannouncement(now, peer, source_check);
                return;
            }
            // A third party must not move a living participant elsewhere.
            if source_check == SourceCheck::Mismatch {
                self.stats.impersonation.tally();
                return;
            }
            // A source address is easily forged, so even a matching one must answer
            // first, as a new participant must. Until then the old locators hold.
        }
        if !self.is_admissible(&peer) {
            return;
        }
        let is_known = self.peers.data(peer.prefix).is_some();
        if self.is_unproven_copy(now, &peer, from) {
            return;
        }
        if !is_known && from.is_some_and(|from| self.is_off_link(&from)) {
            self.note_off_link(&peer, from);
            return;
        }
        if source_check == SourceCheck::Mismatch
            && self
                .unvalidated
                .came_from_announced(peer.prefix, &self.config.network)
        {
            // Another announcement came from where it says to be.
            self.stats.impersonation.tally();
            return;
        }
        let route = route(
            &self.config.network,
            &peer.metatraffic_unicast,
            source_check,
        );
        if route.locators.is_empty() {
            self.stats.unreachable.tally();
            return;
        }
        let evicted = self.unvalidated.note(
            now,
            &self.config.limits,
            Arc::new(peer),
            from,
            route,
            (HEADER_BYTES + DATA_HEAD_BYTES).saturating_add(data.payload.len()),
        );
        self.stats.unvalidated_evicted.tally_by(u64::from(evicted));
        self.authenticate_early(source.prefix);
    }

    /// Whether a changed announcement is a copy, from an address that the participant
    /// has not proven, of one that came from a proven address. The copies of an
    /// announcement come from all addresses of its host. Its probes are answered from the
    /// address in use, which proves the other copy only.
    fn is_unproven_copy(
        &self,
        now: Instant,
        data: &ParticipantData,
        from: Option<Locator>,
    ) -> bool {
        let prefix = data.prefix;
        let is_copy = |noted: &UnvalidatedParticipant| {
            *noted.data == *data
                && noted.is_announced_since(now, COPIES_SPAN)
                && self.foreign_source(prefix, noted.from).is_none()
        };
        self.foreign_source(prefix, from).is_some()
            && self.unvalidated.find(prefix).is_some_and(is_copy)
    }

    /// Whether a source lies beyond a router and is not a static peer. Discovery ends
    /// at the router (ROS 2's range SUBNET), so that no host outside can make this
    /// host answer.
    ///
    /// An interface with a prefix of 31 or 32 bits is a tunnel or a cloud's network.
    /// It does not say which addresses are beyond it, so nothing is judged then.
    fn is_off_link(&self, from: &Locator) -> bool {
        let network = &self.config.network;
        let is_unclear = network.addresses.iter().any(|own| own.prefix_length > 30);
        let is_named = |named: &Locator| named.address == from.address;
        !is_unclear
            && !network.addresses.is_empty()
            && from.to_udp_v4().is_some()
            && !from.is_loopback()
            && !network.is_on_link(from)
            && !network.is_on_down_link(from)
            && !self.config.announce_to.iter().any(is_named)
    }

    /// Counts a participant beyond a router, and reports the first one.
    fn note_off_link(&mut self, peer: &ParticipantData, from: Option<Locator>) {
        if self.stats.off_link == 0
            && let Some(from) = from
        {
            tracing::warn!(
                participant = %peer.prefix,
                "a participant at {from} is outside of this host's networks and ignored, as are later ones; name its host in ROS_STATIC_PEERS to communicate with it"
            );
        }
        self.stats.off_link.tally();
    }

    /// Whether it announced our domain, without a domain tag.
    pub(super) fn is_in_domain(&self, peer: &ParticipantData) -> bool {
        let id = peer.domain_id.unwrap_or(self.config.domain_id);
        let tag = peer.domain_tag.as_deref().unwrap_or_default();
        id == self.config.domain_id && tag.is_empty()
    }

    /// Handles a repeated announcement of a discovered participant.
    fn handle_reannouncement(
        &mut self,
        now: Instant,
        data: ParticipantData,
        source_check: SourceCheck,
    ) {
        let prefix = data.prefix;
        if self.peers.data(prefix).is_some_and(|known| **known == data) {
            if let Some(peer) = self.peers.find_mut(prefix) {
                peer.contradicting = None;
            }
            return;
        }
        // A third party must not move a living participant elsewhere.
        if source_check == SourceCheck::Mismatch {
            self.stats.impersonation.tally();
            return;
        }
        let data = Arc::new(data);
        if !self.must_challenge(now, &data, source_check) {
            self.update_participant(now, data, source_check);
        }
    }

    /// Applies the changed announcement of a participant.
    pub(super) fn update_participant(
        &mut self,
        now: Instant,
        data: Arc<ParticipantData>,
        source_check: SourceCheck,
    ) {
        let prefix = data.prefix;
        // A shorter lease would end at once what is alive.
        let known = self.peers.data(prefix).map(|known| self.lease_of(known));
        let span = self.lease_of(&data);
        self.leases
            .grant(now, prefix, known.map_or(span, |known| known.max(span)));
        if !self.charge_announcement(&data) {
            return;
        }
        self.peers.update(prefix, data.clone(), source_check);
        self.leave_unannounced_path(now, prefix, source_check);
        self.events
            .push_back(ParticipantEvent::ParticipantChanged(data));
        self.reroute(prefix);
    }

    pub(super) fn grant_lease(&mut self, now: Instant, data: &ParticipantData) {
        let span = self.lease_of(data);
        self.leases.grant(now, data.prefix, span);
    }

    /// Handles the dispose of a participant, which may be forged.
    fn handle_dispose(&mut self, from: Option<Locator>, prefix: GuidPrefix, data: &Data) {
        let key = data
            .inline_qos
            .key_hash()
            .map(crate::id::Guid::from_bytes)
            .or_else(|| ParticipantData::parse_key(data.payload));
        if key.is_some_and(|guid| guid.prefix != prefix) {
            self.stats.impersonation.tally();
            return;
        }
        if self.is_same_host_peer(prefix) {
            // Every local user can send it from this address; it announces its end on
            // the host.
            return;
        }
        let secured = self.secured.as_ref();
        if secured.is_some_and(|own| own.ignores_plain_announcements(prefix)) {
            // Anyone can send it; only its secured dispose or its lease counts.
            return;
        }
        if let Some(newcomer) = self.unvalidated.find(prefix) {
            let announced = &newcomer.data.metatraffic_unicast;
            if check_source(from, announced, &self.config.network) == SourceCheck::Mismatch {
                self.stats.impersonation.tally();
                return;
            }
            if newcomer.is_awaited() {
                // It was disposed of already, and may still answer.
                return;
            }
            self.unvalidated.take(prefix);
        }
        let Some(known) = self.peers.data(prefix) else {
            return;
        };
        if check_source(from, &known.metatraffic_unicast, &self.config.network)
            == SourceCheck::Mismatch
        {
            self.stats.impersonation.tally();
            return;
        }
        self.remove_participant(prefix, LostReason::Disposed);
    }

    /// Validates an unvalidated participant after a message addressed to us: it
    /// exists and receives our datagrams. The message must come from an announced
    /// address.
    pub(super) fn promote(&mut self, now: Instant, from: Option<Locator>, prefix: GuidPrefix) {
        let Some(participant) = self.unvalidated.find(prefix) else {
            return;
        };
        let announced = &participant.data.metatraffic_unicast;
        let source_check = check_source(from, announced, &self.config.network);
        if source_check == SourceCheck::Mismatch || !self.unvalidated.note_answer(now, prefix) {
            return;
        }
        let Some(participant) = self.unvalidated.find(prefix) else {
            return;
        };
        if self.peers.contains(prefix) {
            let announced_from = participant.from;
            let data = participant.data.clone();
            if self.must_prove_move(now, prefix, announced_from) {
                return;
            }
            if self.must_challenge(now, &data, source_check) {
                self.unvalidated.take(prefix);
                return;
            }
            if let Some(participant) = self.unvalidated.take(prefix) {
                self.update_participant(now, participant.data, source_check);
            }
            return;
        }
        let data = participant.data.clone();
        if !self.has_participant_place(now, &data, source_check) {
            return;
        }
        let Some(participant) = self.unvalidated.take(prefix) else {
            return;
        };
        if self.require_authentication(&participant.data, source_check, None) {
            return;
        }
        if participant.is_awaited() {
            let reason = if participant.seemed_restarted() {
                LostReason::Restarted
            } else {
                LostReason::Disposed
            };
            self.stats.returned.tally();
            self.events
                .push_back(ParticipantEvent::ParticipantReturned { prefix, reason });
        }
        self.grant_lease(now, &participant.data);
        self.add_participant(now, participant.data, source_check);
    }

    /// Reports a participant that announces itself and never answers.
    pub(super) fn report_silent_participant(&mut self, now: Instant) {
        if self.secured.is_some() {
            return;
        }
        let Some(silent) = self.unvalidated.take_silent(now) else {
            return;
        };
        let (data, from) = (silent.data.clone(), silent.from);
        if !self.peers.contains(data.prefix) {
            self.events
                .push_back(ParticipantEvent::ParticipantSilent { data, from });
        }
    }

    /// Sends the periodic announcement, when due, to the configured locators and to
    /// those participants that do not listen there.
    pub(super) fn transmit_announcements(&mut self, now: Instant, out: &mut Outbox) {
        if out.is_full() {
            return;
        }
        let is_remote_host = |at: &Locator| at.is_unicast() && !at.is_loopback();
        let peer_counts = self
            .peers
            .peer_counts(self.announce_to.iter().any(is_remote_host));
        let Some(scope) = self.announcer.take_due(now, peer_counts) else {
            return;
        };
        self.stats.announcements_sent.tally();
        if scope == AnnouncementScope::NetworkPeers {
            for (prefix, peer) in self.peers.network_peers() {
                self.write_announcement(&peer.metatraffic.locators, Some(prefix), None, out);
            }
            return;
        }
        let targets = self.announcement_locators();
        if scope == AnnouncementScope::UnknownPeers {
            let strange = targets.iter().filter(|at| !self.has_peer_at(at));
            self.announce_at(&strange.copied().collect(), out);
            return;
        }
        self.announce_at(&targets, out);
        for (prefix, route) in self.peers.not_listening_at(&targets) {
            self.write_announcement(&route.locators, Some(prefix), None, out);
        }
    }

    fn announce_at(&self, locators: &Arc<[Locator]>, out: &mut Outbox) {
        if !locators.is_empty() {
            self.write_announcement(locators, None, None, out);
        }
    }

    /// Whether a discovered peer uses a locator of this host. Others that share its
    /// port, as several participants in a Cyclone DDS process do, received the same
    /// datagrams.
    fn has_peer_at(&self, at: &Locator) -> bool {
        let is_there = |peer: &Peer| {
            let route = &peer.metatraffic;
            route.is_same_host() && route.locators.iter().any(|l| l.port == at.port)
        };
        at.is_loopback() && self.peers.network_peers().any(|(_, peer)| is_there(peer))
    }

    /// Whether an announcement is due.
    pub fn is_announcement_due(&self, now: Instant) -> bool {
        self.announcer.next_timeout() <= now
    }

    /// Sets the bound UDP ports of this host; `None` if unknown.
    ///
    /// Announcements skip the unbound ports and our own until the next call. A
    /// process that binds one later announces itself, and is answered.
    pub fn set_bound_ports(&mut self, ports: Option<Vec<u16>>) {
        self.bound_ports = ports;
    }

    /// The announcement locators that may have unknown participants: without those
    /// of same-host peers and unbound ports.
    fn announcement_locators(&self) -> Arc<[Locator]> {
        let is_pointless = |at: &Locator| {
            at.is_loopback()
                && (self.peers.has_same_host_peer_at(at.port) || self.is_unbound(at.port))
        };
        if !self.announce_to.iter().any(is_pointless) {
            return self.announce_to.clone();
        }
        let locators = self.announce_to.iter().filter(|at| !is_pointless(at));
        locators.copied().collect()
    }

    /// Whether a port of this host is unbound, or only we are bound to it.
    fn is_unbound(&self, port: u32) -> bool {
        let Some(bound) = &self.bound_ports else {
            return false;
        };
        let is_ours = |at: &Locator| at.port == port;
        !bound.iter().any(|at| u32::from(*at) == port)
            || self.config.metatraffic_unicast.iter().any(is_ours)
    }

    /// Answers unvalidated participants directly, so that they need not wait for
    /// our period. A question in the same datagram requests an answer even if they
    /// have known us for long.
    pub(super) fn transmit_participant_probes(&mut self, now: Instant, out: &mut Outbox) {
        let with_announcement = (HEADER_BYTES + INFO_DST_BYTES + DATA_HEAD_BYTES)
            .saturating_add(self.announcer.change().0.len());
        let sizes = ProbeSizes {
            with_announcement,
            question_only: match self.secured {
                None => HEADER_BYTES + INFO_DST_BYTES,
                Some(_) => with_announcement,
            },
        };
        let limits = self.config.limits;
        while !out.is_full()
            && let Some(probe) =
                self.unvalidated
                    .next_probe(now, &limits, sizes, &mut self.stats.probes_withheld)
        {
            let (to, prefix) = (&probe.route.locators, probe.data.prefix);
            if self.secured.is_some() {
                // The question belongs to a topic closed to unauthenticated peers.
                self.stats.announcements_sent.tally();
                self.write_announcement(to, Some(prefix), None, out);
                continue;
            }
            let question = self.sedp.question(&probe.data, probe.asked);
            if probe.kind == ParticipantProbe::WithAnnouncement {
                self.stats.announcements_sent.tally();
                self.write_announcement(to, Some(prefix), Some(question), out);
            } else {
                self.write_question(to, prefix, &question, out);
            }
        }
    }

    fn write_announcement(
        &self,
        to: &Arc<[Locator]>,
        destination: Option<GuidPrefix>,
        question: Option<Question>,
        out: &mut Outbox,
    ) {
        let (payload, sequence) = self.announcer.change();
        let mut message = out.begin(self.config.prefix, to, DATAGRAM_BYTES);
        if let Some(prefix) = destination {
            message.info_destination(prefix);
        }
        message.data(&spdp::data_head(sequence), payload);
        if let Some(question) = question {
            question.write(&mut message);
        }
        message.finish();
    }

    /// The question whose answer shows that a discovered participant receives.
    pub(super) fn question_to(&mut self, prefix: GuidPrefix) -> Question {
        let Some(data) = self.peers.data(prefix) else {
            return Question::default();
        };
        self.sedp.question(data, AskedEndpoints::of(data, 0))
    }

    /// Whether a submessage shows that its sender receives what we send: it is addressed
    /// to us, or it answers what a sender without SEDP readers was asked, which may send
    /// no INFO_DST.
    pub(super) fn proves_reception(&self, source: &Source, message: &Submessage) -> bool {
        if source.destination == self.config.prefix {
            return true;
        }
        if self.secured.is_some() {
            return false;
        }
        if let Some(newcomer) = self.unvalidated.find(source.prefix) {
            return newcomer.asked.is_answered_by(message);
        }
        let peer = self.peers.data(source.prefix);
        peer.is_some_and(|peer| AskedEndpoints::of(peer, 0).is_answered_by(message))
    }

    /// Probes participants whose address another one took over.
    pub(super) fn transmit_suspect_probes(&mut self, now: Instant, out: &mut Outbox) {
        while !out.is_full()
            && let Some((prefix, route)) = self.peers.next_probe(now)
        {
            let question = self.question_to(prefix);
            self.write_question(&route.locators, prefix, &question, out);
        }
    }

    /// Probes participants where they were proven, because something in their name
    /// came from elsewhere, or says that they restarted.
    pub(super) fn transmit_challenges(&mut self, now: Instant, out: &mut Outbox) {
        while !out.is_full()
            && let Some((prefix, route)) = self.challenges.next_probe(now)
        {
            let question = self.question_to(prefix);
            self.write_question(&route.locators, prefix, &question, out);
        }
    }

    /// Probes the addresses that participants announce for their endpoints.
    pub(super) fn transmit_locator_probes(&mut self, now: Instant, out: &mut Outbox) {
        let bytes = HEADER_BYTES + INFO_DST_BYTES + QUESTION_BYTES_MAX;
        let limits = self.config.limits;
        while !out.is_full()
            && let Some((prefix, at)) = self.unvalidated_locators.next_probe(now, &limits, bytes)
        {
            let question = self.question_to(prefix);
            let route = self.config.network.choose_route(&[at]);
            self.write_question(&route.locators, prefix, &question, out);
        }
    }

    pub(super) fn write_question(
        &self,
        to: &Arc<[Locator]>,
        prefix: GuidPrefix,
        question: &Question,
        out: &mut Outbox,
    ) {
        let mut message = out.begin(self.config.prefix, to, DATAGRAM_BYTES);
        message.info_destination(prefix);
        question.write(&mut message);
        message.finish();
    }

    /// Sends the SPDP dispose to everyone who may know us.
    pub(super) fn transmit_dispose(&mut self, out: &mut Outbox) {
        let locators = self.announcement_locators();
        self.write_dispose(core::iter::once((None, locators)), out);
        self.transmit_dispose_to_peers(out);
    }

    /// Sends the SPDP dispose to the discovered participants.
    pub(super) fn transmit_dispose_to_peers(&mut self, out: &mut Outbox) {
        let peers = self.peers.network_peers();
        let at = peers.map(|(prefix, peer)| (Some(prefix), peer.metatraffic.locators.clone()));
        let at: Vec<_> = at.collect();
        self.write_dispose(at, out);
    }

    pub(super) fn write_dispose(
        &mut self,
        to: impl IntoIterator<Item = (Option<GuidPrefix>, Arc<[Locator]>)>,
        out: &mut Outbox,
    ) {
        let guid = self.config.prefix.with(EntityId::PARTICIPANT);
        let head = spdp::dispose_head(self.announcer.next_dispose_number(), guid);
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

/// Whether an announcement names an address that the participant had not named
/// before.
fn names_new_address(known: &ParticipantData, now: &ParticipantData) -> bool {
    let all = |data: &ParticipantData| {
        let (own, users) = (&data.metatraffic_unicast, &data.default_unicast);
        let hosts = own.iter().chain(users).map(|l| (l.kind, l.address));
        hosts.collect::<Vec<_>>()
    };
    let before = all(known);
    all(now).iter().any(|host| !before.contains(host))
}
