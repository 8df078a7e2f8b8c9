//! SPDP announcements of a participant, sent and received (RTPS 2.5 §8.5.3): new
//! participants, changes, disposes and probes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::discovery::question::AskedEndpoints;
use crate::discovery::spdp;
use crate::id::GuidPrefix;
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, Data, Submessage};

use super::authenticating::AuthenticatingParticipant;
use super::local_participant::LocalParticipant;
use super::paths::path_question;
use super::remote_participants::RemoteParticipants;
use super::unvalidated_participant::{
    ParticipantProbe, ProbeSizes, SourceCheck, UnvalidatedParticipant, check_source, route,
};
use super::{LostReason, ParticipantEvent, zones};
use crate::stats::Tally;

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

impl RemoteParticipants {
    /// Handles an SPDP change.
    pub(super) fn handle_spdp(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        data: &Data,
    ) {
        local.stats.announcements_received.tally();
        if local.config.ignores_announcements {
            return;
        }
        let servers = local.builtin.servers.as_ref();
        if servers.is_some_and(|servers| servers.is_relayed_change(source.prefix, data)) {
            // The reliable topic of the servers handles it.
            return;
        }
        if spdp::is_dispose(data) {
            self.handle_dispose(local, from, source.prefix, data);
            return;
        }
        let Ok(mut peer) = ParticipantData::parse_within(data.payload, &local.config.limits.data)
        else {
            local.stats.malformed.tally();
            return;
        };
        if peer.prefix != source.prefix {
            local.stats.impersonation.tally();
            return;
        }
        let unvalidated = self.unvalidated.find(peer.prefix);
        let known = self.peers.data(peer.prefix);
        let known = unvalidated.map(|noted| &noted.data).or(known);
        zones::add_to_participant(
            &mut peer,
            from,
            known.map(|of| &**of),
            &local.config.network,
        );
        let servers = local.builtin.servers.as_ref();
        let is_server = servers.is_some_and(|own| own.is_of_server(&peer, from, &local.config));
        let must_be_known = servers.is_some() && !is_server;
        if !is_server && !local.config.is_in_domain(&peer) {
            local.stats.other_domain.tally();
            return;
        }
        if must_be_known && !self.may_announce_itself(local, peer.prefix, from) {
            local.stats.not_relayed.tally();
            return;
        }
        if self.peers.is_same_host_peer(peer.prefix) {
            // Meant for others; it announces itself to us on the host.
            return;
        }
        if let Some(known) = self.peers.find_mut(peer.prefix) {
            known
                .path
                .note_announcement(data.payload.len(), &local.config.limits);
            self.ask_announcing_address(now, peer.prefix, from);
        }
        if local.builtin.ignores_plain_announcements(peer.prefix) {
            return;
        }
        let source_check = check_source(from, &peer.metatraffic_unicast, &local.config.network);
        if let Some(known) = self.peers.data(peer.prefix) {
            if !names_new_address(known, &peer) {
                self.handle_reannouncement(local, now, peer, source_check);
                return;
            }
            // A third party must not move a living participant elsewhere.
            if source_check == SourceCheck::Mismatch {
                local.stats.impersonation.tally();
                return;
            }
            // A source address is easily forged, so even a matching one must answer
            // first, as a new participant must. Until then the old locators hold.
        }
        let (stats, events) = (&mut local.stats, &mut local.events);
        let secured = local.builtin.secured.as_mut();
        if secured.is_some_and(|own| !own.is_admissible(&peer, stats, events)) {
            return;
        }
        let is_known = self.peers.data(peer.prefix).is_some();
        if self.is_unproven_copy(local, now, &peer, from) {
            return;
        }
        if !is_known && from.is_some_and(|from| local.config.is_off_link(&from)) {
            local.stats.note_off_link(&peer, from);
            return;
        }
        if source_check == SourceCheck::Mismatch
            && self
                .unvalidated
                .came_from_announced(peer.prefix, &local.config.network)
        {
            // Another announcement came from where it says to be.
            local.stats.impersonation.tally();
            return;
        }
        let route = route(
            &local.config.network,
            &peer.metatraffic_unicast,
            source_check,
        );
        if route.locators.is_empty() {
            local.stats.unreachable.tally();
            return;
        }
        let evicted = self.unvalidated.note(
            now,
            &local.config.limits,
            Arc::new(peer),
            from,
            route,
            (HEADER_BYTES + DATA_HEAD_BYTES).saturating_add(data.payload.len()),
        );
        local.stats.unvalidated_evicted.tally_by(u64::from(evicted));
        self.authenticate_early(local, source.prefix);
    }

    /// Whether a participant may announce itself to a client of discovery servers: static
    /// peers may, and those that were discovered by it.
    fn may_announce_itself(
        &self,
        local: &LocalParticipant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) -> bool {
        let known = self.peers.find(prefix).map(|peer| !peer.is_relayed);
        known.unwrap_or_else(|| {
            let ip = from.and_then(Locator::to_udp).map(|(ip, _)| ip);
            ip.is_some_and(|ip| local.spdp.is_static_peer(ip))
        })
    }

    /// Whether a changed announcement is a copy, from an address that the participant
    /// has not proven, of one that came from a proven address. The copies of an
    /// announcement come from all addresses of its host. Its probes are answered from the
    /// address in use, which proves the other copy only.
    fn is_unproven_copy(
        &self,
        local: &LocalParticipant,
        now: Instant,
        data: &ParticipantData,
        from: Option<Locator>,
    ) -> bool {
        let (prefix, network) = (data.prefix, &local.config.network);
        let is_copy = |noted: &UnvalidatedParticipant| {
            *noted.data == *data
                && noted.is_announced_since(now, COPIES_SPAN)
                && self
                    .peers
                    .foreign_source(prefix, noted.from, network)
                    .is_none()
        };
        self.peers.foreign_source(prefix, from, network).is_some()
            && self.unvalidated.find(prefix).is_some_and(is_copy)
    }

    /// Handles a repeated announcement of a discovered participant.
    fn handle_reannouncement(
        &mut self,
        local: &mut LocalParticipant,
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
            local.stats.impersonation.tally();
            return;
        }
        let data = Arc::new(data);
        if !self.must_challenge(local, now, &data, source_check) {
            self.update_participant(local, now, data, source_check);
        }
    }

    /// Applies the changed announcement of a participant.
    pub(super) fn update_participant(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        data: Arc<ParticipantData>,
        source_check: SourceCheck,
    ) {
        let prefix = data.prefix;
        // A shorter lease would end at once what is alive.
        let known = self
            .peers
            .data(prefix)
            .map(|known| self.lease_of(local, known));
        let span = self.lease_of(local, &data);
        self.leases
            .grant(now, prefix, known.map_or(span, |known| known.max(span)));
        let clock = local.clock;
        let charged =
            self.receive_memory
                .charge_announcement(clock, &data, &self.peers, &mut local.events);
        if !charged {
            return;
        }
        self.peers.update(prefix, data.clone(), source_check);
        self.leave_unannounced_path(local, now, prefix, source_check);
        local
            .events
            .push_back(ParticipantEvent::ParticipantChanged(data));
        self.reroute(local, prefix);
    }

    pub(super) fn grant_lease(
        &mut self,
        local: &LocalParticipant,
        now: Instant,
        data: &ParticipantData,
    ) {
        let span = self.lease_of(local, data);
        self.leases.grant(now, data.prefix, span);
    }

    /// Handles the dispose of a participant, which may be forged.
    fn handle_dispose(
        &mut self,
        local: &mut LocalParticipant,
        from: Option<Locator>,
        prefix: GuidPrefix,
        data: &Data,
    ) {
        let key = data
            .inline_qos
            .key_hash()
            .map(crate::id::Guid::from_bytes)
            .or_else(|| ParticipantData::parse_key(data.payload));
        if key.is_some_and(|guid| guid.prefix != prefix) {
            local.stats.impersonation.tally();
            return;
        }
        if self.peers.is_same_host_peer(prefix) {
            // Every local user can send it from this address; it announces its end on
            // the host.
            return;
        }
        if local.builtin.ignores_plain_announcements(prefix) {
            // Anyone can send it; only its secured dispose or its lease counts.
            return;
        }
        if let Some(newcomer) = self.unvalidated.find(prefix) {
            let announced = &newcomer.data.metatraffic_unicast;
            if check_source(from, announced, &local.config.network) == SourceCheck::Mismatch {
                local.stats.impersonation.tally();
                return;
            }
            if newcomer.is_awaited() {
                // It was disposed of already, and may still answer.
                return;
            }
            // A newcomer that lives answers the next probe. Without the probes it would wait
            // for its next announcement. One that has ended is forgotten soon.
        }
        let Some(known) = self.peers.data(prefix) else {
            return;
        };
        if check_source(from, &known.metatraffic_unicast, &local.config.network)
            == SourceCheck::Mismatch
        {
            local.stats.impersonation.tally();
            return;
        }
        self.remove_participant(local, prefix, LostReason::Disposed);
    }

    /// Validates an unvalidated participant after a message addressed to us: it
    /// exists and receives our datagrams. The message must come from an announced
    /// address.
    pub(super) fn promote(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        from: Option<Locator>,
        prefix: GuidPrefix,
    ) {
        let Some(participant) = self.unvalidated.find(prefix) else {
            return;
        };
        let announced = &participant.data.metatraffic_unicast;
        let source_check = check_source(from, announced, &local.config.network);
        if source_check == SourceCheck::Mismatch || !self.unvalidated.note_answer(now, prefix) {
            return;
        }
        let Some(participant) = self.unvalidated.find(prefix) else {
            return;
        };
        if self.peers.contains(prefix) {
            let announced_from = participant.from;
            let data = participant.data.clone();
            if self.must_prove_move(local, now, prefix, announced_from) {
                return;
            }
            if self.must_challenge(local, now, &data, source_check) {
                self.unvalidated.take(prefix);
                return;
            }
            if let Some(participant) = self.unvalidated.take(prefix) {
                self.update_participant(local, now, participant.data, source_check);
            }
            return;
        }
        let data = participant.data.clone();
        if !self.has_participant_place(local, now, &data, source_check) {
            return;
        }
        let Some(participant) = self.unvalidated.take(prefix) else {
            return;
        };
        if let Some(secured) = &mut local.builtin.secured {
            let network = &local.config.network;
            let newcomer = AuthenticatingParticipant {
                data: participant.data.clone(),
                source_check,
                budget_bytes: None,
            };
            let (stats, events) = (&mut local.stats, &mut local.events);
            if secured.require_authentication(newcomer, network, stats, events) {
                return;
            }
        }
        if participant.is_awaited() {
            let reason = if participant.seemed_restarted() {
                LostReason::Restarted
            } else {
                LostReason::Disposed
            };
            local.stats.returned.tally();
            local
                .events
                .push_back(ParticipantEvent::ParticipantReturned { prefix, reason });
        }
        self.grant_lease(local, now, &participant.data);
        self.add_participant(local, now, participant.data, source_check);
    }

    /// Reports a participant that announces itself and never answers.
    pub(super) fn report_silent_participant(&mut self, local: &mut LocalParticipant, now: Instant) {
        if local.builtin.secured.is_some() {
            return;
        }
        let Some(silent) = self.unvalidated.take_silent(now) else {
            return;
        };
        let (data, from) = (silent.data.clone(), silent.from);
        if !self.peers.contains(data.prefix) {
            local
                .events
                .push_back(ParticipantEvent::ParticipantSilent { data, from });
        }
    }

    /// Answers unvalidated participants directly, so that they need not wait for
    /// our period. A question in the same datagram requests an answer even if they
    /// have known us for long.
    pub(super) fn transmit_participant_probes(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        out: &mut Outbox,
    ) {
        let with_announcement = (HEADER_BYTES + INFO_DST_BYTES + DATA_HEAD_BYTES)
            .saturating_add(local.spdp.announcer.change().0.len());
        let sizes = ProbeSizes {
            with_announcement,
            question_only: match local.builtin.secured {
                None => HEADER_BYTES + INFO_DST_BYTES,
                Some(_) => with_announcement,
            },
        };
        let limits = local.config.limits;
        while !out.is_full()
            && let Some(probe) =
                self.unvalidated
                    .next_probe(now, &limits, sizes, &mut local.stats.probes_withheld)
        {
            let (to, prefix) = (&probe.route.locators, probe.data.prefix);
            if local.builtin.secured.is_some() {
                // The question belongs to a topic closed to unauthenticated peers.
                local.stats.announcements_sent.tally();
                local.spdp.write_announcement(to, Some(prefix), None, out);
                continue;
            }
            let mut question = local.builtin.sedp.question(&probe.data, probe.asked);
            if self.peers.contains(prefix) {
                // It may use another address of ours, which it reaches no more. So its
                // answer is to come here.
                question = path_question(question, false);
            }
            if probe.kind == ParticipantProbe::WithAnnouncement {
                local.stats.announcements_sent.tally();
                local
                    .spdp
                    .write_announcement(to, Some(prefix), Some(question), out);
            } else {
                local.spdp.write_question(to, prefix, &question, out);
            }
        }
    }

    /// Whether a submessage shows that its sender receives what we send: it is addressed
    /// to us, or it answers what a sender without SEDP readers was asked, which may send
    /// no INFO_DST.
    pub(super) fn proves_reception(
        &self,
        local: &LocalParticipant,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        if source.destination == local.config.prefix {
            return true;
        }
        if local.builtin.secured.is_some() {
            return false;
        }
        if let Some(newcomer) = self.unvalidated.find(source.prefix) {
            return newcomer.asked.is_answered_by(message);
        }
        let peer = self.peers.data(source.prefix);
        peer.is_some_and(|peer| AskedEndpoints::of(peer, 0).is_answered_by(message))
    }

    /// Probes participants whose address another one took over, the addresses that
    /// participants announce for their endpoints, paths, and participants that something
    /// in their name challenges.
    pub(super) fn transmit_probes(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        out: &mut Outbox,
    ) {
        while !out.is_full()
            && let Some((prefix, route)) = self.peers.next_probe(now)
        {
            let question = local.builtin.question_to(prefix, &self.peers);
            let to = &route.locators;
            local.spdp.write_question(to, prefix, &question, out);
        }
        let bytes = HEADER_BYTES + INFO_DST_BYTES + QUESTION_BYTES_MAX;
        let limits = local.config.limits;
        while !out.is_full()
            && let Some((prefix, at)) = self.unvalidated_locators.next_probe(now, &limits, bytes)
        {
            let question = local.builtin.question_to(prefix, &self.peers);
            let to = local.config.network.choose_route(&[at]).locators;
            local.spdp.write_question(&to, prefix, &question, out);
        }
        while !out.is_full()
            && let Some((prefix, at, is_answer)) = self.paths.next_probe()
        {
            let question = local.builtin.question_to(prefix, &self.peers);
            let question = path_question(question, is_answer);
            let to: Arc<[Locator]> = Arc::from([at].as_slice());
            local.spdp.write_question(&to, prefix, &question, out);
        }
        while !out.is_full()
            && let Some((prefix, route)) = self.challenges.next_probe(now)
        {
            let question = local.builtin.question_to(prefix, &self.peers);
            let to = &route.locators;
            local.spdp.write_question(to, prefix, &question, out);
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
