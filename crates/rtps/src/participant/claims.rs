//! Addresses that participants name for user traffic, and have not been heard
//! from.
//!
//! A participant that is spoken to has shown that it receives at one address,
//! but it may name others for its endpoints: those of a second network, or a
//! victim's. Nothing of the users' goes there before a message addressed to us
//! has come from there. To bring one about we ask, as candidates are asked: at
//! doubling pauses, at most three times the bytes in which the address was
//! named.

use alloc::vec::Vec;

use crate::id::GuidPrefix;
use crate::locator::Locator;
use crate::time::Instant;

use super::candidate::pause;
use super::config::ParticipantLimits;

/// Addresses of one participant that are asked at a time; more have to wait
/// until these have answered or were given up.
const OF_ONE_MAX: usize = 2;

/// An address to be asked.
struct Claim {
    prefix: GuidPrefix,
    at: Locator,
    received_bytes: usize,
    sent_bytes: usize,
    /// When it was last named.
    seen: Instant,
    tries: u32,
    next_try: Instant,
}

/// All of them; as many as there may be candidates. When full, the oldest goes.
#[derive(Default)]
pub(super) struct Claims {
    list: Vec<Claim>,
}

impl Claims {
    /// An address was named, in a message of so many bytes at the least.
    pub(super) fn note(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        prefix: GuidPrefix,
        at: Locator,
        bytes: usize,
    ) {
        let known = self.list.iter_mut();
        let mut known = known.filter(|claim| claim.prefix == prefix);
        if let Some(claim) = known.find(|claim| claim.at == at) {
            claim.seen = now;
            claim.received_bytes = claim.received_bytes.saturating_add(bytes);
            claim.next_try = claim.next_try.min(now + pause(claim.tries));
            return;
        }
        let of_one = self.list.iter().filter(|claim| claim.prefix == prefix);
        if of_one.count() >= OF_ONE_MAX {
            return;
        }
        if self.list.len() >= limits.candidates.max(1) {
            let oldest = self.list.iter().enumerate();
            let oldest = oldest.min_by_key(|(_, claim)| claim.seen);
            if let Some((oldest, _)) = oldest {
                self.list.remove(oldest);
            }
        }
        self.list.push(Claim {
            prefix,
            at,
            received_bytes: bytes,
            sent_bytes: 0,
            seen: now,
            tries: 0,
            next_try: now,
        });
    }

    /// The next address to be asked with so many bytes, whose they are.
    pub(super) fn next_question(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        bytes: usize,
    ) -> Option<(GuidPrefix, Locator)> {
        for claim in self.list.iter_mut().filter(|claim| claim.next_try <= now) {
            let budget = claim.received_bytes.saturating_mul(limits.amplification);
            if claim.sent_bytes.saturating_add(bytes) > budget {
                claim.next_try = Instant::FAR_FUTURE;
                continue;
            }
            claim.sent_bytes = claim.sent_bytes.saturating_add(bytes);
            claim.next_try = now + pause(claim.tries);
            claim.tries = claim.tries.saturating_add(1);
            return Some((claim.prefix, claim.at));
        }
        None
    }

    /// A message addressed to us came from there. True if that was asked for.
    pub(super) fn settle(&mut self, prefix: GuidPrefix, address: [u8; 16]) -> bool {
        let before = self.list.len();
        let is_it = |claim: &Claim| claim.prefix == prefix && claim.at.address == address;
        self.list.retain(|claim| !is_it(claim));
        self.list.len() < before
    }

    /// A participant is gone.
    pub(super) fn forget(&mut self, prefix: GuidPrefix) {
        self.list.retain(|claim| claim.prefix != prefix);
    }

    /// Gives up those that have not answered for too long.
    pub(super) fn expire(&mut self, now: Instant, limits: &ParticipantLimits) {
        self.list
            .retain(|claim| claim.seen + limits.candidate_age > now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn next_timeout(&self, limits: &ParticipantLimits) -> Option<Instant> {
        let due = |claim: &Claim| claim.next_try.min(claim.seen + limits.candidate_age);
        self.list.iter().map(due).min()
    }
}
