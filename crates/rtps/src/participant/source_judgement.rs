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
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

use super::challenges::{CHALLENGES_MAX, Challenge, Claim};
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant, ParticipantEvent};

/// How often an event reports another source address of one participant.
const TELL_PERIOD: Duration = Duration::from_secs(60);

impl Participant {
    /// Whether a datagram from this address is accepted as a participant's. An unknown
    /// participant may send from anywhere. A refusal is reported once; the caller
    /// counts it.
    ///
    /// The answer holds for a moment: ask again after 200 ms.
    pub fn accepts_source(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) -> bool {
        let foreign = self
            .peers
            .foreign_source(prefix, from, &self.config.network);
        let Some(ip) = foreign else {
            return true;
        };
        self.note_refused_source(now, prefix, ip);
        false
    }

    fn note_refused_source(&mut self, now: Instant, prefix: GuidPrefix, ip: [u8; 4]) {
        let Some(peer) = self.peers.find_mut(prefix) else {
            return;
        };
        let tells = peer
            .refused_source
            .is_none_or(|(told, at)| told != ip && now.since(at) >= TELL_PERIOD);
        if tells {
            peer.refused_source = Some((ip, now));
            self.events
                .push_back(ParticipantEvent::SourceRefused { prefix, from: ip });
        }
    }

    /// Judges a submessage of discovery. An authenticated participant's own built-in
    /// endpoints are protected, and may move.
    pub(super) fn judge_source(
        &mut self,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        message: &Submessage,
    ) -> bool {
        let is_builtin = message.writer().is_some_and(EntityId::is_builtin);
        if is_builtin && self.builtin.is_authenticated(source.prefix) {
            return true;
        }
        let accepted = self.accepts_source(now, source.prefix, from);
        self.stats.foreign_sources.tally_by(u64::from(!accepted));
        if accepted && self.answers_challenge(source, message) {
            let believed = self.peers.data(source.prefix);
            let is_believed = believed.is_some_and(|data| names_source(data, from));
            let has_all = match message {
                Submessage::AckNack(acknack) => self.builtin.sedp.is_acknowledged_by(acknack),
                _ => false,
            };
            let open = &mut self.challenges;
            if open.note_answer(source.prefix, from, is_believed, has_all) {
                self.builtin.sedp.reread(now, source.prefix);
            }
        }
        accepted
    }

    /// Whether a submessage may answer the question of a challenge.
    fn answers_challenge(&self, source: &Source, message: &Submessage) -> bool {
        if self.challenges.list.is_empty() {
            return false;
        }
        let is_directed = source.destination == self.config.prefix;
        (is_directed && matches!(message, Submessage::AckNack(_)))
            || self.peers.data(source.prefix).is_some_and(|peer| {
                self.builtin.secured.is_none()
                    && AskedEndpoints::of(peer, 0).is_answered_by(message)
            })
    }

    /// Probes a participant where it was proven, since something in its name claims
    /// that it is elsewhere.
    fn challenge(&mut self, now: Instant, prefix: GuidPrefix, claim: Claim) {
        let Some(peer) = self.peers.find(prefix) else {
            return;
        };
        if peer.is_same_host_peer || peer.metatraffic.locators.is_empty() {
            return;
        }
        let route = peer.metatraffic.clone();
        let mut known = self.challenges.list.iter();
        if known.any(|open| open.prefix == prefix) {
            return;
        }
        if self.challenges.list.len() < CHALLENGES_MAX {
            self.challenges.list.push(Challenge {
                prefix,
                route,
                claim,
                since: now,
                next_probe_at: now,
                answered: false,
            });
        }
    }

    /// Whether an announcement of a discovered participant waits until it is known
    /// whether the participant still answers at the locators in use, which the
    /// announcement gives up.
    pub(super) fn must_challenge(
        &mut self,
        now: Instant,
        data: &Arc<ParticipantData>,
        source_check: SourceCheck,
    ) -> bool {
        if self.builtin.secured.is_some() {
            return false;
        }
        let Some(peer) = self.peers.find(data.prefix) else {
            return false;
        };
        // A participant announces itself several times in a lease.
        let patience = self.lease_of(&peer.data);
        let is_repeated = peer
            .contradicting
            .as_ref()
            .is_some_and(|(before, since)| before == data && since.after(patience) <= now);
        if peer.is_same_host_peer || is_repeated || !peer.gives_up_routes(data) {
            return false;
        }
        let claim = Claim::Announcement(data.clone(), source_check);
        self.challenge(now, data.prefix, claim);
        true
    }

    /// Whether the announcement of a discovered participant from an address that it
    /// has not proven must wait, although that address has answered.
    pub(super) fn must_prove_move(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) -> bool {
        if self.builtin.secured.is_some()
            || self
                .peers
                .foreign_source(prefix, from, &self.config.network)
                .is_none()
        {
            return false;
        }
        self.challenge(now, prefix, Claim::Moved);
        true
    }

    /// Whether a participant whose SEDP writers were reset is asked first whether it
    /// restarted. A participant that has acknowledged nothing cannot know.
    pub(super) fn must_prove_restart(&mut self, now: Instant, prefix: GuidPrefix) -> bool {
        if self.builtin.secured.is_some() || !self.builtin.sedp.has_acknowledged_some(prefix) {
            return false;
        }
        self.challenge(now, prefix, Claim::Restarted);
        true
    }

    /// Believes the claims about participants that no longer answer.
    pub(super) fn end_challenges(&mut self, now: Instant) {
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
                Claim::Restarted => self.remove_participant(prefix, LostReason::Restarted),
                Claim::Announcement(data, source_check) => {
                    self.update_participant(now, data, source_check);
                }
                Claim::Moved => {
                    if let Some(moved) = self.unvalidated.take(prefix) {
                        let network = &self.config.network;
                        let announced = &moved.data.metatraffic_unicast;
                        let source_check = super::unvalidated_participant::check_source(
                            moved.from, announced, network,
                        );
                        self.update_participant(now, moved.data, source_check);
                    }
                }
            }
        }
    }
}

/// Whether an announcement names the source address of a datagram. A datagram without
/// one comes from where the participant is.
fn names_source(data: &ParticipantData, from: Option<Locator>) -> bool {
    let Some((ip, _)) = from.and_then(Locator::to_udp_v4) else {
        return true;
    };
    let announced = data.metatraffic_unicast.iter().chain(&data.default_unicast);
    let mut addresses = announced.filter_map(|at| at.to_udp_v4());
    addresses.any(|(named, _)| named == ip)
}
