//! Challenges: probes of a participant where it was proven, since something in its
//! name came from elsewhere, or says that it restarted (protection against forged
//! datagrams).
//!
//! [`super::source_judgement`] begins and ends them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::id::GuidPrefix;
use crate::locator::{Locator, Route};
use crate::time::{Duration, Instant};

use super::peer::Peers;
use super::unvalidated_participant::SourceCheck;

/// A challenged participant is silent if it answers none of the probes in this
/// time. At 30 % loss eight probes fail together once in 200 times.
const CHALLENGE_TIME: Duration = Duration::from_millis(500);
const PROBE_PERIOD: Duration = Duration::from_millis(60);
/// The pause between two challenges of one participant, which are traffic that an
/// attacker causes.
const CHALLENGE_PAUSE: Duration = Duration::from_secs(2);
/// Participants challenged at a time; more wait.
pub(super) const CHALLENGES_MAX: usize = 16;

/// The claim about a challenged participant, which counts if the participant is
/// silent where it was proven.
#[derive(Debug)]
pub(super) enum Claim {
    /// An announcement from a proven address that gives up locators in use.
    Announcement(Arc<ParticipantData>, SourceCheck),
    /// An announcement from another address, which has answered from there.
    Moved,
    /// Its SEDP writers were reset. If it restarted, it has nothing of what the one before
    /// acknowledged.
    Restarted,
}

impl Claim {
    /// Whether it is an announcement that names this address.
    fn names(&self, from: Option<Locator>) -> bool {
        match self {
            Self::Announcement(data, _) => names_source(data, from),
            Self::Moved | Self::Restarted => false,
        }
    }
}

/// A participant that is probed where it was proven.
#[derive(Debug)]
pub(super) struct Challenge {
    pub(super) prefix: GuidPrefix,
    /// Where it was proven.
    pub(super) route: Route,
    pub(super) claim: Claim,
    pub(super) since: Instant,
    pub(super) next_probe_at: Instant,
    pub(super) answered: bool,
}

impl Challenge {
    fn ends_at(&self) -> Instant {
        if self.answered {
            self.since.after(CHALLENGE_PAUSE)
        } else {
            self.since.after(CHALLENGE_TIME)
        }
    }
}

/// All challenges; those that were answered stay for a pause.
#[derive(Debug, Default)]
pub(super) struct Challenges {
    pub(super) list: Vec<Challenge>,
}

impl Challenges {
    /// Probes a participant where it was proven, since something in its name claims
    /// that it is elsewhere.
    pub(super) fn open(&mut self, now: Instant, prefix: GuidPrefix, claim: Claim, peers: &Peers) {
        let Some(peer) = peers.find(prefix) else {
            return;
        };
        if peer.is_same_host_peer || peer.is_relayed || peer.metatraffic.locators.is_empty() {
            return;
        }
        let route = peer.metatraffic.clone();
        let mut known = self.list.iter();
        if known.any(|open| open.prefix == prefix) {
            return;
        }
        if self.list.len() < CHALLENGES_MAX {
            self.list.push(Challenge {
                prefix,
                route,
                claim,
                since: now,
                next_probe_at: now,
                answered: false,
            });
        }
    }

    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.list.retain(|challenge| challenge.prefix != prefix);
    }

    /// Ends the pauses after answers: our links changed, so an answer that came before says
    /// nothing of where the participant is reached now.
    pub(super) fn forget_answered(&mut self) {
        self.list.retain(|challenge| !challenge.answered);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = |challenge: &Challenge| challenge.ends_at().min(challenge.next_probe_at);
        self.list.iter().map(due).min()
    }

    /// Whether a challenge ends unanswered now.
    pub(super) fn has_silent(&self, now: Instant) -> bool {
        let mut ended = self.list.iter().filter(|open| open.ends_at() <= now);
        ended.any(|open| !open.answered)
    }

    /// Notes an answer from a proven address: the claim is false. An answer from an
    /// address that only the claim names agrees with it. `is_believed` says whether the
    /// address is named by the announcement that counts now. That it restarted is
    /// contradicted only by an answer that `acknowledges_all`. True: by this one.
    pub(super) fn note_answer(
        &mut self,
        prefix: GuidPrefix,
        from: Option<Locator>,
        is_believed: bool,
        acknowledges_all: bool,
    ) -> bool {
        let contradicts = |open: &&mut Challenge| {
            let is_false = match open.claim {
                Claim::Restarted => acknowledges_all,
                _ => is_believed || !open.claim.names(from),
            };
            open.prefix == prefix && !open.answered && is_false
        };
        let mut is_no_restart = false;
        for challenge in self.list.iter_mut().filter(contradicts) {
            challenge.answered = true;
            challenge.next_probe_at = Instant::FAR_FUTURE;
            is_no_restart |= matches!(challenge.claim, Claim::Restarted);
        }
        is_no_restart
    }

    /// The next participant to probe.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<(GuidPrefix, Route)> {
        let due = self
            .list
            .iter_mut()
            .find(|open| open.next_probe_at <= now)?;
        due.next_probe_at = now.after(PROBE_PERIOD);
        Some((due.prefix, due.route.clone()))
    }

    pub(super) fn take_ended(&mut self, now: Instant) -> Option<Challenge> {
        let at = self.list.iter().position(|open| open.ends_at() <= now)?;
        Some(self.list.remove(at))
    }
}

/// Whether an announcement names the source address of a datagram. A datagram without
/// one comes from where the participant is.
pub(super) fn names_source(data: &ParticipantData, from: Option<Locator>) -> bool {
    let Some((ip, _)) = from.and_then(Locator::to_udp) else {
        return true;
    };
    let announced = data.metatraffic_unicast.iter().chain(&data.default_unicast);
    let mut addresses = announced.filter_map(|at| at.to_udp());
    addresses.any(|(named, _)| named == ip)
}
