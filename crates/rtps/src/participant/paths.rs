//! Paths to participants with several addresses: which address of a peer is in use,
//! and when traffic moves to another one (multihoming; RTPS 2.5 §8.4.7.4 and §9.6.2.2
//! leave the choice among several locators to the implementation).
//!
//! A path is one announced address of a participant, thus one network between the two
//! hosts. The decision needs evidence, as with BFD (RFC 5880) in demand mode:
//!
//! - While an address in use is quiet, it is asked: a HEARTBEAT of a built-in topic
//!   with the liveliness flag, which no other one there has. The peer answers with a
//!   final one to where the question came from, whatever path it uses itself. Other
//!   stacks answer with an ACKNACK, so any of their datagrams counts as an answer,
//!   unless a participant of Pteros has the same address.
//! - A participant that announces itself from an address that it has not proven is asked
//!   in the same way. Otherwise its answer would go to the address in use, which may carry
//!   nothing any more.
//! - Other datagrams of an address delay the first question, unless the address in use
//!   does not answer. They do not prove that it receives, so only answers count once it
//!   is asked, and before traffic moves there. Announcements by multicast and questions
//!   do not even delay it.
//! - A peer that repeats its question does not receive, so its path is asked at once,
//!   unless it has just answered.
//! - Five questions (`RETRIES_MAX`) without an answer, while another address of the peer
//!   answers: traffic moves there, within 0.7 s. Addresses that have never answered are
//!   asked from the second such question on: their network may work by now. A silent peer without another
//!   address that answers is left alone: its lease decides.
//! - A local link without a carrier ends its paths at once, and so does an
//!   announcement that no longer names the address.
//! - The better path is used again when it has answered for two seconds, longer after
//!   each loss of a flapping link. Both sides rank the paths by the locator list of
//!   the same one of them, so that both choose the same network.
//!
//! Evidence is kept per address, not per participant: thirty processes of one host
//! cost as many questions as one. Peers with one address cost nothing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::discovery::question::Question;
use crate::id::{EntityId, GuidPrefix, VendorId};
use crate::locator::{Locator, NetworkScope};
use crate::receiver::Source;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

use super::local_participant::LocalParticipant;
use super::path_evidence::{
    ASKED_MAX, Address, BETTER_PERIOD, CANDIDATES_MAX, FRESH, Ip, LocalLinks, ONE_WAY_TIME,
    PathInfo, PathReason, PathState, Paths, QUESTION_BYTES, QUIET, QUIET_IDLE, RETRIES_MAX, RETRY,
    SUSPECT_AFTER,
};
use super::peer::Peer;
use super::remote_participants::RemoteParticipants;
use super::unvalidated_participant::SourceCheck;
use super::{Participant, ParticipantConfig, ParticipantEvent};

/// One address of a peer that traffic may use.
#[derive(Clone, Copy)]
struct Candidate {
    locator: Locator,
    ip: Ip,
    is_validated: bool,
    /// Lower is better.
    rank: (bool, usize, usize),
}

/// A change of path that one turn decided for a peer.
struct Move {
    prefix: GuidPrefix,
    to: Ip,
    reason: PathReason,
}

/// When each address wants to be asked, and in whose name.
#[derive(Default)]
struct Wishes {
    by_address: BTreeMap<Ip, (Instant, Vec<(GuidPrefix, Locator)>)>,
}

impl Wishes {
    fn add(&mut self, at: Instant, prefix: GuidPrefix, to: &Candidate) {
        let empty = (Instant::FAR_FUTURE, Vec::new());
        let (due, peers) = self.by_address.entry(to.ip).or_insert(empty);
        *due = (*due).min(at);
        peers.push((prefix, to.locator));
    }
}

impl Participant {
    /// Follows our own links: call it whenever an address came or went, or a link
    /// lost or regained its carrier. No change has no effect.
    ///
    /// We announce ourselves at once, with the new locators. Peers on a link that is
    /// down are reached at another of their addresses, if one is validated.
    pub fn set_local_links(&mut self, now: Instant, links: LocalLinks) {
        let network = NetworkScope {
            addresses: links.addresses,
            down: links.down,
            local_only: self.local.config.network.local_only,
        };
        let is_renamed = links.unicast != self.local.config.metatraffic_unicast
            || links.multicast != self.local.config.metatraffic_multicast;
        if network == self.local.config.network && !is_renamed {
            return;
        }
        self.local.config.network = network;
        if is_renamed {
            self.local
                .config
                .metatraffic_unicast
                .clone_from(&links.unicast);
            self.local.config.default_unicast = links.unicast;
            let named = self
                .local
                .spdp
                .announce_to
                .iter()
                .filter(|at| !at.is_multicast());
            let targets = links.multicast.iter().chain(named).copied();
            self.local.spdp.announce_to = targets.collect();
            self.local.config.metatraffic_multicast = links.multicast;
            self.local.spdp.rebuild(&self.local.config);
            if let Some(secured) = &mut self.local.builtin.secured {
                secured.announce(now, &self.local.spdp.data);
            }
        }
        self.local.spdp.update(now);
        self.remote.challenges.forget_answered();
        let peers: Vec<GuidPrefix> = self
            .remote
            .peers
            .remote_peers()
            .map(|(prefix, _)| prefix)
            .collect();
        for prefix in peers {
            self.remote
                .leave_lost_path(&mut self.local, now, prefix, PathReason::LinkDown);
            if let Some(peer) = self.remote.peers.find_mut(prefix) {
                peer.path.validate_again();
            }
            self.remote.reroute(&mut self.local, prefix);
        }
        self.remote.paths.look_at(now);
    }

    /// The addresses of a participant and what is known of them, the best first.
    /// Empty for a participant that is not reached by a network.
    pub fn paths_to(&self, now: Instant, prefix: GuidPrefix) -> Vec<PathInfo> {
        let Some(peer) = self
            .remote
            .peers
            .find(prefix)
            .filter(|peer| is_on_network(peer))
        else {
            return Vec::new();
        };
        let mut all = candidates(&self.local.config, prefix, peer);
        let is_listed = |ip: Ip| all.iter().any(|c| c.ip == ip);
        let announced = peer.data.metatraffic_unicast.iter().copied();
        let down: Vec<Candidate> = announced
            .filter_map(|locator| Some((locator, locator.to_udp()?.0)))
            .filter(|(at, ip)| self.local.config.network.is_on_down_link(at) && !is_listed(*ip))
            .map(|(locator, ip)| Candidate {
                locator,
                ip,
                is_validated: true,
                rank: (true, usize::MAX, usize::MAX),
            })
            .collect();
        all.extend(down);
        let info = |candidate: &Candidate| {
            let known = self.remote.paths.addresses.get(&candidate.ip);
            let in_use = peer.metatraffic.locators.contains(&candidate.locator);
            let state = if self
                .local
                .config
                .network
                .is_on_down_link(&candidate.locator)
            {
                PathState::LinkDown
            } else if !candidate.is_validated {
                PathState::Unvalidated
            } else if known.is_some_and(|at| at.asked >= RETRIES_MAX) {
                PathState::Silent
            } else if in_use || known.is_some_and(|at| at.is_heard_after(before(now, FRESH))) {
                PathState::Working
            } else {
                PathState::Unused
            };
            PathInfo {
                locator: candidate.locator,
                state,
                in_use,
                reason: peer.path.reason.filter(|_| in_use),
            }
        };
        all.iter().map(info).collect()
    }

    /// Notes any datagram of a known participant from an address. Cheap: call it for
    /// user traffic now and then, too.
    pub fn note_heard(&mut self, now: Instant, from: Locator, prefix: GuidPrefix) {
        self.remote.note_heard(now, from, prefix);
    }
}

impl RemoteParticipants {
    /// Notes any datagram of a known participant from an address. Cheap: call it for
    /// user traffic now and then, too.
    pub(super) fn note_heard(&mut self, now: Instant, from: Locator, prefix: GuidPrefix) {
        let Some((ip, _)) = from.to_udp() else {
            return;
        };
        let Some(address) = self.paths.addresses.get_mut(&ip) else {
            return;
        };
        let Some(peer) = self.peers.find(prefix).filter(|peer| is_on_network(peer)) else {
            return;
        };
        if !announces(&peer.data, ip) {
            return;
        }
        if address.is_one_way(now) {
            return;
        }
        // Other stacks do not answer where they were asked. Beside a participant that does,
        // their datagrams prove nothing: they may only reach us (seed 10700020252).
        if peer.data.vendor != VendorId::PTEROS && !address.has_answering_peer {
            self.paths.note_answer(now, ip);
            return;
        }
        address.note_heard(now);
        if self.paths.next_turn.is_none() {
            self.paths.look_at(now);
        }
    }

    /// Handles what a built-in submessage from an address says about its path, and
    /// answers a question where it came from. The usual answer, an ACKNACK, goes to
    /// the address in use.
    pub(super) fn note_path(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        message: &Submessage,
    ) {
        let Some(from) = from.filter(|_| self.peers.contains(source.prefix)) else {
            return;
        };
        let Some((ip, _)) = from.to_udp() else {
            return;
        };
        let is_for_us = source.destination == local.config.prefix;
        let (is_question, is_answer) = match message {
            Submessage::Heartbeat(beat) if beat.liveliness => (!beat.is_final, beat.is_final),
            _ => (false, false),
        };
        let is_announced = self
            .peers
            .find(source.prefix)
            .is_some_and(|peer| is_on_network(peer) && announces(&peer.data, ip));
        match self.paths.addresses.get_mut(&ip) {
            Some(address) if is_question => {
                let peer = self.peers.find_mut(source.prefix).filter(|_| is_for_us);
                let is_repeated = peer.is_some_and(|peer| peer.path.note_questioned(now, ip));
                // An address that just answered receives. Without this, two hosts that ask each
                // other would take each question for a repeated one, and ask in return.
                let hears_us = address.is_answered_after(before(now, QUIET));
                if is_repeated && !hears_us {
                    address.one_way_until = now + ONE_WAY_TIME;
                    self.paths.look_at(now);
                }
            }
            Some(_) if is_answer && is_for_us && is_announced => self.paths.note_answer(now, ip),
            Some(_) if !is_for_us && is_announcement(message) => {}
            _ => self.note_heard(now, from, source.prefix),
        }
        if !is_for_us {
            return;
        }
        let Some(peer) = self.peers.find_mut(source.prefix) else {
            return;
        };
        if !is_on_network(peer) || !announces(&peer.data, ip) {
            return;
        }
        if !peer.is_validated_ip(ip) {
            peer.note_validated(ip);
            self.paths.look_at(now);
            self.reroute(local, source.prefix);
        }
        let Some(peer) = self.peers.find(source.prefix) else {
            return;
        };
        let at = peer.data.metatraffic_unicast.iter().copied();
        let at = at.filter(|at| at.to_udp().is_some_and(|(named, _)| named == ip));
        if is_question {
            let answers = at.map(|at| (source.prefix, at)).take(1);
            let waiting = &mut self.paths.answers;
            answers.for_each(|answer| {
                if !waiting.contains(&answer) {
                    waiting.push(answer);
                }
            });
        }
    }

    /// Asks the address from which a peer announces itself, if that never answered: its
    /// network may have begun to work.
    pub(super) fn ask_announcing_address(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        from: Option<Locator>,
    ) {
        let Some((ip, _)) = from.and_then(|from| from.to_udp()) else {
            return;
        };
        let Some(peer) = self
            .peers
            .find_mut(prefix)
            .filter(|peer| is_on_network(peer))
        else {
            return;
        };
        if announces(&peer.data, ip) && !peer.is_validated_ip(ip) {
            peer.path.note_unvalidated_announcement();
            self.paths.look_at(now);
        }
    }

    /// Looks at all paths when that is due: asks quiet addresses and moves traffic.
    pub(super) fn take_path_turn(&mut self, local: &mut LocalParticipant, now: Instant) {
        if self.paths.next_turn.is_none_or(|at| now < at) {
            return;
        }
        let mut wishes = Wishes::default();
        let mut moves = Vec::new();
        let mut validations = Vec::new();
        let mut next = Instant::FAR_FUTURE;
        let mut known = core::mem::take(&mut self.paths.addresses);
        let mut kept = BTreeMap::new();
        for (prefix, peer) in self.peers.network_peers() {
            let Some(in_use) = peer.path.in_use.filter(|_| is_on_network(peer)) else {
                continue;
            };
            let candidates = candidates(&local.config, prefix, peer);
            let is_only_path = candidates.iter().all(|c| c.ip == in_use);
            if is_only_path || local.builtin.is_awaiting_keys(prefix) {
                continue;
            }
            for at in &candidates {
                let address = known.remove(&at.ip).map(Address::without_peers);
                kept.entry(at.ip).or_insert(address.unwrap_or(Address::NEW));
            }
            let chosen = judge_path(&local.config, now, prefix, peer, in_use, &candidates, &kept);
            moves.extend(chosen.map(|(to, reason)| Move { prefix, to, reason }));
            let is_unproven = |c: &&Candidate| !c.is_validated;
            if candidates.iter().any(|c| !c.is_validated) {
                let is_suspect = kept.get(&in_use).is_some_and(Address::is_suspect);
                let at = peer.path.validation_at(is_suspect);
                if at <= now {
                    let unproven = candidates.iter().filter(is_unproven);
                    validations.push((prefix, unproven.map(|c| c.locator).collect::<Vec<_>>()));
                } else {
                    next = next.min(at);
                }
            }
            let has_user_match = local.endpoints.has_user_match(prefix, &local.config);
            let whom = (prefix, has_user_match);
            wish(now, whom, in_use, &candidates, &kept, &mut wishes);
        }
        self.paths.addresses = kept;
        for (ip, (due, peers)) in wishes.by_address {
            let Some(address) = self.paths.addresses.get_mut(&ip) else {
                continue;
            };
            // Of those that are asked there.
            address.has_answering_peer = peers.iter().any(|(prefix, _)| {
                let peer = self.peers.find(*prefix);
                peer.is_some_and(|peer| peer.data.vendor == VendorId::PTEROS)
            });
            if due > now {
                next = next.min(due);
                continue;
            }
            // One participant answers for its host. If it does not, others are asked:
            // it may have been stopped, and all of them must learn that we do not
            // hear them.
            let count = if address.asked == 0 { 1 } else { ASKED_MAX };
            self.paths.questions.extend(peers.iter().take(count));
            address.note_asked(now);
            next = next.min(now + RETRY);
        }
        for (prefix, unproven) in validations {
            if let Some(peer) = self.peers.find_mut(prefix) {
                let path = &mut peer.path;
                let mut affordable = unproven;
                affordable.retain(|_| path.spend(QUESTION_BYTES));
                let questions = affordable.into_iter().map(|at| (prefix, at));
                self.paths.questions.extend(questions);
                path.note_validation(now);
                next = next.min(path.validation_at(false));
            }
        }
        self.paths.next_turn = (!self.paths.addresses.is_empty()).then_some(next);
        for Move { prefix, to, reason } in moves {
            self.move_path(local, now, prefix, to, reason);
        }
    }

    /// Moves to another address if the one in use is not usable any more.
    pub(super) fn leave_lost_path(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        reason: PathReason,
    ) {
        let Some(peer) = self.peers.find(prefix).filter(|peer| is_on_network(peer)) else {
            return;
        };
        let Some(in_use) = peer.path.in_use else {
            return;
        };
        let candidates = candidates(&local.config, prefix, peer);
        if candidates.iter().any(|c| c.ip == in_use) {
            return;
        }
        if let Some(to) = best_path(&local.config, now, prefix, peer, &self.paths.addresses) {
            self.move_path(local, now, prefix, to, reason);
        }
    }

    /// As [`leave_lost_path`](Self::leave_lost_path), after a changed announcement
    /// from an address, if that is known.
    pub(super) fn leave_unannounced_path(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        source_check: SourceCheck,
    ) {
        self.paths.look_at(now);
        let Some(peer) = self.peers.find(prefix) else {
            return;
        };
        let Some(in_use) = peer.path.in_use else {
            return;
        };
        if announces(&peer.data, in_use) {
            return;
        }
        match source_check {
            SourceCheck::Address(ip) if announces(&peer.data, ip) => {
                self.move_path(local, now, prefix, ip, PathReason::AddressGone);
            }
            _ => self.leave_lost_path(local, now, prefix, PathReason::AddressGone),
        }
    }

    /// Moves the traffic of a peer to another of its addresses.
    pub(super) fn move_path(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        to: Ip,
        reason: PathReason,
    ) {
        let Some(peer) = self.peers.find_mut(prefix) else {
            return;
        };
        let from = peer.path.in_use;
        if from == Some(to) {
            return;
        }
        let is_change = peer.path.note_moved(now, to, reason);
        self.paths.look_at(now);
        self.reroute(local, prefix);
        if !is_change {
            return;
        }
        local.stats.paths_changed.tally();
        local.events.push_back(ParticipantEvent::PathChanged {
            prefix,
            from: from.unwrap_or_default(),
            to,
            reason,
        });
    }
}

impl Paths {
    /// Notes a proof that an address receives our datagrams.
    fn note_answer(&mut self, now: Instant, ip: Ip) {
        let Some(address) = self.addresses.get_mut(&ip) else {
            return;
        };
        let was_silent = address.asked >= SUSPECT_AFTER || address.good_since.is_none();
        address.one_way_until = Instant::ZERO;
        address.note_answer(now);
        if was_silent || self.next_turn.is_none() {
            self.look_at(now);
        }
    }

    /// The next answer, else the next question, to send: to whom, where, and whether it
    /// is an answer.
    pub(super) fn next_probe(&mut self) -> Option<(GuidPrefix, Locator, bool)> {
        let answer = self.answers.pop().map(|(to, at)| (to, at, true));
        answer.or_else(|| self.questions.pop().map(|(to, at)| (to, at, false)))
    }
}

/// The question of a path, or the answer to one, made of the usual question.
pub(super) fn path_question(mut question: Question, is_answer: bool) -> Question {
    let [first, second] = question.acknacks;
    question.acknacks = [first.or(second), None];
    if let Some(heartbeat) = &mut question.heartbeat {
        heartbeat.is_final = is_answer;
        // Other heartbeats of these topics never assert liveliness.
        heartbeat.liveliness = true;
    }
    question
}

/// Where the traffic of a peer should move, if anywhere.
fn judge_path(
    config: &ParticipantConfig,
    now: Instant,
    prefix: GuidPrefix,
    peer: &Peer,
    in_use: Ip,
    candidates: &[Candidate],
    known: &BTreeMap<Ip, Address>,
) -> Option<(Ip, PathReason)> {
    let state = |ip: Ip| known.get(&ip).copied().unwrap_or(Address::NEW);
    let mut usable = candidates
        .iter()
        .filter(|c| c.is_validated && c.ip != in_use);
    let Some(present) = candidates.iter().find(|c| c.ip == in_use) else {
        return best_path(config, now, prefix, peer, known).map(|to| (to, PathReason::LinkDown));
    };
    let address = state(in_use);
    if address.is_silent(now) {
        let answers = |c: &&Candidate| {
            let other = state(c.ip);
            other.is_answered_after(address.first_asked_at) && !other.is_back_after(&address)
        };
        return usable.find(answers).map(|to| (to.ip, PathReason::Silent));
    }
    let hold = peer.path.hold();
    let better = usable.find(|c| c.rank < present.rank && state(c.ip).is_steady(now, hold));
    better.map(|to| (to.ip, PathReason::Better))
}

/// The best validated address with a recent datagram, else the best validated one.
fn best_path(
    config: &ParticipantConfig,
    now: Instant,
    prefix: GuidPrefix,
    peer: &Peer,
    known: &BTreeMap<Ip, Address>,
) -> Option<Ip> {
    let candidates = candidates(config, prefix, peer);
    let is_fresh = |c: &Candidate| {
        let at = known.get(&c.ip);
        at.is_some_and(|at| at.is_heard_after(before(now, FRESH)) && at.asked < RETRIES_MAX)
    };
    let usable = || candidates.iter().filter(|c| c.is_validated);
    let best = usable().find(|c| is_fresh(c)).or_else(|| usable().next());
    best.map(|c| c.ip)
}

/// When the addresses of a peer are to be asked; sooner with user traffic.
fn wish(
    now: Instant,
    (prefix, has_user_match): (GuidPrefix, bool),
    in_use: Ip,
    candidates: &[Candidate],
    known: &BTreeMap<Ip, Address>,
    wishes: &mut Wishes,
) {
    let state = |ip: Ip| known.get(&ip).copied().unwrap_or(Address::NEW);
    let present = candidates.iter().find(|c| c.ip == in_use);
    let quiet = if has_user_match { QUIET } else { QUIET_IDLE };
    let is_suspect = present.is_none() || state(in_use).asked >= SUSPECT_AFTER;
    for candidate in candidates.iter().filter(|c| c.is_validated) {
        let address = state(candidate.ip);
        let at = if candidate.ip == in_use {
            let mut others = candidates.iter().map(|c| state(c.ip));
            if others.any(|other| address.is_silent(now) && other.is_back_after(&address)) {
                now
            } else {
                address.ask_at(now, quiet)
            }
        } else if is_suspect && !address.is_answered_after(state(in_use).first_asked_at) {
            // Datagrams from there do not count: the path may work in one direction.
            address.next_ask_at
        } else if present.is_some_and(|present| candidate.rank < present.rank) {
            address.ask_at(now, BETTER_PERIOD)
        } else {
            continue;
        };
        wishes.add(at, prefix, candidate);
    }
}

/// The addresses of a peer that may work, the best first.
fn candidates(config: &ParticipantConfig, prefix: GuidPrefix, peer: &Peer) -> Vec<Candidate> {
    let network = &config.network;
    let we_rank = config.prefix < prefix;
    let own_order = |at: &Locator| {
        let mut own = config.metatraffic_unicast.iter();
        own.position(|own| network.is_same_link(own, at))
    };
    let mut found: Vec<Candidate> = Vec::new();
    for (index, locator) in peer.data.metatraffic_unicast.iter().enumerate() {
        let Some((ip, _)) = locator.to_udp() else {
            continue;
        };
        let is_known = found.iter().any(|c| c.ip == ip);
        if is_known || !network.may_reach(locator) || found.len() >= CANDIDATES_MAX {
            continue;
        }
        let own_order = own_order(locator);
        let order = match own_order {
            Some(order) if we_rank => order,
            _ => index,
        };
        found.push(Candidate {
            locator: *locator,
            ip,
            is_validated: peer.is_validated_ip(ip),
            rank: (own_order.is_none(), order, index),
        });
    }
    found.sort_by_key(|c| c.rank);
    found
}

/// Whether a submessage announces a participant, usually by multicast.
fn is_announcement(message: &Submessage) -> bool {
    matches!(message, Submessage::Data(data) if data.writer == EntityId::SPDP_WRITER)
}

/// Whether a peer is reached across a network, so that it may have several paths.
fn is_on_network(peer: &Peer) -> bool {
    !peer.is_same_host_peer && !peer.metatraffic.is_same_host()
}

fn announces(data: &ParticipantData, ip: Ip) -> bool {
    let mut named = data.metatraffic_unicast.iter();
    named.any(|at| at.to_udp().is_some_and(|(named, _)| named == ip))
}

/// The instant so long before `now`.
fn before(now: Instant, span: Duration) -> Instant {
    let span = u64::try_from(span.as_nanos()).unwrap_or(0);
    Instant::from_nanos(now.as_nanos().saturating_sub(span))
}
