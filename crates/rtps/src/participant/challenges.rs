//! Challenges: probes of a participant where it was proven, since something in its
//! name came from elsewhere (protection against forged datagrams).
//!
//! [`super::source_judgement`] begins and ends them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::id::GuidPrefix;
use crate::locator::Route;
use crate::time::{Duration, Instant};

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
    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.list.retain(|challenge| challenge.prefix != prefix);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = |challenge: &Challenge| challenge.ends_at().min(challenge.next_probe_at);
        self.list.iter().map(due).min()
    }

    /// Notes an answer from a proven address: the claim is false.
    pub(super) fn note_answer(&mut self, prefix: GuidPrefix) {
        let open = self.list.iter_mut().filter(|open| open.prefix == prefix);
        for challenge in open {
            challenge.answered = true;
            challenge.next_probe_at = Instant::FAR_FUTURE;
        }
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
