//! Locator (address) validation for user traffic.
//!
//! A discovered participant receives at one validated address, but it may announce
//! others for its endpoints: those of a second network, or a victim's. No user data
//! goes there before a message addressed to us has come from there. To cause one,
//! the address is probed, as unvalidated participants are: at doubling delays, with
//! at most three times the bytes that announced it.

use alloc::vec::Vec;

use crate::id::GuidPrefix;
use crate::locator::Locator;
use crate::time::Instant;

use super::config::ParticipantLimits;
use super::unvalidated_participant::probe_period;

/// Addresses of one participant probed at a time; more wait until these are
/// validated or expire.
const PER_PARTICIPANT_MAX: usize = 2;

/// An address to probe.
struct UnvalidatedLocator {
    prefix: GuidPrefix,
    at: Locator,
    received_bytes: usize,
    sent_bytes: usize,
    /// When it was last announced.
    last_announced: Instant,
    probes_sent: u32,
    next_probe_at: Instant,
}

/// All of them; as many as unvalidated participants. When full, the oldest is
/// dropped.
#[derive(Default)]
pub(super) struct UnvalidatedLocators {
    list: Vec<UnvalidatedLocator>,
}

impl UnvalidatedLocators {
    /// Notes an announced address, and the minimum size of the message.
    pub(super) fn note(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        prefix: GuidPrefix,
        at: Locator,
        bytes: usize,
    ) {
        let known = self.list.iter_mut();
        let mut known = known.filter(|unvalidated| unvalidated.prefix == prefix);
        if let Some(unvalidated) = known.find(|unvalidated| unvalidated.at == at) {
            unvalidated.last_announced = now;
            unvalidated.received_bytes = unvalidated.received_bytes.saturating_add(bytes);
            unvalidated.next_probe_at = unvalidated
                .next_probe_at
                .min(now + probe_period(unvalidated.probes_sent));
            return;
        }
        let of_one = self
            .list
            .iter()
            .filter(|unvalidated| unvalidated.prefix == prefix);
        if of_one.count() >= PER_PARTICIPANT_MAX {
            return;
        }
        if self.list.len() >= limits.unvalidated_participants.max(1) {
            let oldest = self.list.iter().enumerate();
            let oldest = oldest.min_by_key(|(_, unvalidated)| unvalidated.last_announced);
            if let Some((oldest, _)) = oldest {
                self.list.remove(oldest);
            }
        }
        self.list.push(UnvalidatedLocator {
            prefix,
            at,
            received_bytes: bytes,
            sent_bytes: 0,
            last_announced: now,
            probes_sent: 0,
            next_probe_at: now,
        });
    }

    /// The next address to probe with a datagram of `bytes` bytes, and its
    /// participant.
    pub(super) fn next_probe(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        bytes: usize,
    ) -> Option<(GuidPrefix, Locator)> {
        for unvalidated in self
            .list
            .iter_mut()
            .filter(|unvalidated| unvalidated.next_probe_at <= now)
        {
            let budget = unvalidated
                .received_bytes
                .saturating_mul(limits.amplification_factor);
            if unvalidated.sent_bytes.saturating_add(bytes) > budget {
                unvalidated.next_probe_at = Instant::FAR_FUTURE;
                continue;
            }
            unvalidated.sent_bytes = unvalidated.sent_bytes.saturating_add(bytes);
            unvalidated.next_probe_at = now + probe_period(unvalidated.probes_sent);
            unvalidated.probes_sent = unvalidated.probes_sent.saturating_add(1);
            return Some((unvalidated.prefix, unvalidated.at));
        }
        None
    }

    /// Notes a message addressed to us from there. True if it was probed.
    pub(super) fn note_validated(&mut self, prefix: GuidPrefix, address: [u8; 16]) -> bool {
        let before = self.list.len();
        let is_it = |unvalidated: &UnvalidatedLocator| {
            unvalidated.prefix == prefix && unvalidated.at.address == address
        };
        self.list.retain(|unvalidated| !is_it(unvalidated));
        self.list.len() < before
    }

    /// Drops the addresses of a lost participant.
    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.list.retain(|unvalidated| unvalidated.prefix != prefix);
    }

    /// Drops addresses without a recent announcement.
    pub(super) fn expire(&mut self, now: Instant, limits: &ParticipantLimits) {
        self.list
            .retain(|unvalidated| unvalidated.last_announced + limits.unvalidated_age > now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn next_timeout(&self, limits: &ParticipantLimits) -> Option<Instant> {
        let due = |unvalidated: &UnvalidatedLocator| {
            unvalidated
                .next_probe_at
                .min(unvalidated.last_announced + limits.unvalidated_age)
        };
        self.list.iter().map(due).min()
    }
}
