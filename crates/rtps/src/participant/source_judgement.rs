//! Judgement of datagrams by their source address (protection against forged
//! datagrams in the name of a living participant).
//!
//! A GUID prefix is public, so anyone can send in the name of a participant. Datagrams
//! of a discovered participant are accepted from the addresses that it has proven.
//! These are the addresses that it announces and those that answered a probe. For a
//! participant of this host, all addresses of the host count. Anything else is dropped
//! and counted, and an event reports it once per participant.
//!
//! A participant may move, and lose the addresses that it has proven. Then its
//! announcement from elsewhere challenges it: if it no longer answers where it was
//! proven, and answers from there, the new address counts. So no other host takes the name
//! of a participant that answers.
//!
//! An announcement from a proven address that gives up locators in use is challenged
//! as well. If they still answer, it counts only when it is repeated for a lease, with
//! no other announcement in between. Until then traffic goes where it is answered. An
//! answer from an address that only the new announcement names agrees with it.
//!
//! A participant whose SEDP writers were reset is challenged, too: one that restarted does
//! not acknowledge what the one before had received. If it does, the counts were forged,
//! and its announcements are read again.
//!
//! The driver asks [`Participant::accepts_source`] for user traffic and keeps the
//! answer for a moment. [`Participant::handle_submessage`] asks for discovery.

use alloc::sync::Arc;

use crate::discovery::data::ParticipantData;
use crate::discovery::question::AskedEndpoints;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::receiver::Source;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::Submessage;

use super::challenges::Claim;
use super::local_participant::LocalParticipant;
use super::remote_participants::RemoteParticipants;
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant};

impl Participant {
    /// Whether a datagram in the name of a participant may come from this address. True
    /// of participants that are not discovered.
    pub fn accepts_source(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) -> bool {
        self.remote
            .accepts_source(&mut self.local, now, prefix, from)
    }
}

impl RemoteParticipants {
    /// Whether a datagram from this address is accepted as a participant's. An unknown
    /// participant may send from anywhere. A refusal is reported once; the caller
    /// counts it.
    ///
    /// The answer holds for a moment: ask again after 200 ms.
    pub(super) fn accepts_source(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) -> bool {
        let foreign = self
            .peers
            .foreign_source(prefix, from, &local.config.network);
        let Some(ip) = foreign else {
            return true;
        };
        self.peers
            .note_refused_source(now, prefix, ip, &mut local.events);
        false
    }

    /// Judges a submessage of discovery. An authenticated participant's own built-in
    /// endpoints are protected, and may move.
    pub(super) fn judge_source(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        let is_builtin = message.writer().is_some_and(EntityId::is_builtin);
        if is_builtin && local.builtin.is_authenticated(source.prefix) {
            return true;
        }
        let accepted = self.accepts_source(local, now, source.prefix, from);
        local.stats.foreign_sources.tally_by(u64::from(!accepted));
        if accepted && self.answers_challenge(local, source, message) {
            let believed = self.peers.data(source.prefix);
            let is_believed = believed.is_some_and(|data| names_source(data, from));
            let has_all = match message {
                Submessage::AckNack(acknack) => local.builtin.sedp.is_acknowledged_by(acknack),
                _ => false,
            };
            let open = &mut self.challenges;
            if open.note_answer(source.prefix, from, is_believed, has_all) {
                local.builtin.sedp.reread(now, source.prefix);
            }
        }
        accepted
    }

    /// Whether a submessage may answer the question of a challenge.
    fn answers_challenge(
        &self,
        local: &LocalParticipant,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        if self.challenges.list.is_empty() {
            return false;
        }
        let is_directed = source.destination == local.config.prefix;
        (is_directed && matches!(message, Submessage::AckNack(_)))
            || self.peers.data(source.prefix).is_some_and(|peer| {
                local.builtin.secured.is_none()
                    && AskedEndpoints::of(peer, 0).is_answered_by(message)
            })
    }

    /// Whether an announcement of a discovered participant waits until it is known
    /// whether the participant still answers at the locators in use, which the
    /// announcement gives up.
    pub(super) fn must_challenge(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        data: &Arc<ParticipantData>,
        source_check: SourceCheck,
    ) -> bool {
        if local.builtin.secured.is_some() {
            return false;
        }
        let Some(peer) = self.peers.find(data.prefix) else {
            return false;
        };
        // A participant announces itself several times in a lease.
        let patience = self.lease_of(local, &peer.data);
        let is_repeated = peer
            .contradicting
            .as_ref()
            .is_some_and(|(before, since)| before == data && since.after(patience) <= now);
        if peer.is_same_host_peer || is_repeated || !peer.gives_up_routes(data) {
            return false;
        }
        let claim = Claim::Announcement(data.clone(), source_check);
        self.challenges.open(now, data.prefix, claim, &self.peers);
        true
    }

    /// Whether the announcement of a discovered participant from an address that it
    /// has not proven must wait, although that address has answered.
    pub(super) fn must_prove_move(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) -> bool {
        if local.builtin.secured.is_some()
            || self
                .peers
                .foreign_source(prefix, from, &local.config.network)
                .is_none()
        {
            return false;
        }
        self.challenges.open(now, prefix, Claim::Moved, &self.peers);
        true
    }

    /// Whether a participant whose SEDP writers were reset is asked first whether it
    /// restarted. A participant that has acknowledged nothing cannot know.
    pub(super) fn must_prove_restart(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
    ) -> bool {
        if local.builtin.secured.is_some() || !local.builtin.sedp.has_acknowledged_some(prefix) {
            return false;
        }
        self.challenges
            .open(now, prefix, Claim::Restarted, &self.peers);
        true
    }

    /// Believes the claims about participants that no longer answer.
    pub(super) fn end_challenges(&mut self, local: &mut LocalParticipant, now: Instant) {
        while let Some(challenge) = self.challenges.take_ended(now) {
            let prefix = challenge.prefix;
            match challenge.claim {
                Claim::Announcement(data, _) if challenge.answered => {
                    if let Some(peer) = self.peers.find_mut(prefix) {
                        let known = peer.contradicting.take();
                        let known = known.filter(|(before, _)| *before == data);
                        peer.contradicting = known.or(Some((data, challenge.since)));
                    }
                }
                _ if challenge.answered => {}
                Claim::Restarted => self.remove_participant(local, prefix, LostReason::Restarted),
                Claim::Announcement(data, source_check) => {
                    self.update_participant(local, now, data, source_check);
                }
                Claim::Moved => {
                    if let Some(moved) = self.unvalidated.take(prefix) {
                        let network = &local.config.network;
                        let announced = &moved.data.metatraffic_unicast;
                        let source_check = super::unvalidated_participant::check_source(
                            moved.from, announced, network,
                        );
                        self.update_participant(local, now, moved.data, source_check);
                    }
                }
            }
        }
    }
}

/// Whether an announcement names the source address of a datagram. A datagram without
/// one comes from where the participant is.
fn names_source(data: &ParticipantData, from: Option<Locator>) -> bool {
    let Some((ip, _)) = from.and_then(Locator::to_udp) else {
        return true;
    };
    let announced = data.metatraffic_unicast.iter().chain(&data.default_unicast);
    let mut addresses = announced.filter_map(|at| at.to_udp());
    addresses.any(|(named, _)| named == ip)
}
