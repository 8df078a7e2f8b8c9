//! Locator (address) validation for user traffic.
//!
//! A discovered participant receives at one validated address, but it may announce
//! others for its endpoints: those of a second network, or a victim's. No user data
//! goes there before a message addressed to us has come from there. To cause one,
//! the address is probed, as unvalidated participants are: at doubling delays, with
//! at most three times the bytes that announced it.

use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::GuidPrefix;
use crate::locator::Locator;
use crate::time::Instant;

use super::config::{ParticipantConfig, ParticipantLimits};
use super::peer::Peer;
use super::unvalidated_participant::probe_period;

/// The smallest message that announces an endpoint's locator: headers, its GUID, a
/// locator and two names.
const ENDPOINT_DATA_BYTES_MIN: usize = 96;

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
    fn note(
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

    /// Notes an address that an endpoint announces, if none of its addresses is validated.
    pub(super) fn note_endpoint(
        &mut self,
        now: Instant,
        config: &ParticipantConfig,
        peer: &Peer,
        remote: &EndpointData,
    ) {
        if let Some(at) = peer.locator_to_validate(remote, &config.network) {
            let names = remote.topic.len().saturating_add(remote.type_name.len());
            let bytes = ENDPOINT_DATA_BYTES_MIN.saturating_add(names);
            self.note(now, &config.limits, remote.guid.prefix, at, bytes);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    const PEER: GuidPrefix = GuidPrefix([1; 12]);
    const OTHER: GuidPrefix = GuidPrefix([2; 12]);

    fn at(host: u8) -> Locator {
        Locator::udp_v4([10, 0, 0, host], 7411)
    }

    fn second(count: i64) -> Instant {
        Instant::ZERO + Duration::from_secs(count)
    }

    fn limits() -> ParticipantLimits {
        ParticipantLimits {
            unvalidated_participants: 3,
            amplification_factor: 3,
            unvalidated_age: Duration::from_secs(1_000),
            ..ParticipantLimits::default()
        }
    }

    #[test]
    fn probes_pause_longer_each_time_and_stay_within_the_budget() {
        let mut list = UnvalidatedLocators::default();
        list.note(second(1), &limits(), PEER, at(1), 100);
        assert_eq!(list.next_timeout(&limits()), Some(second(1)));
        let mut now = second(1);
        for sent in 0..3 {
            assert_eq!(list.next_probe(now, &limits(), 100), Some((PEER, at(1))));
            assert_eq!(list.next_probe(now, &limits(), 100), None, "at once");
            now = now + probe_period(sent);
            assert_eq!(list.next_timeout(&limits()), Some(now));
        }
        assert_eq!(list.next_probe(now, &limits(), 100), None, "three times");
        // Another announcement pays for more.
        list.note(now, &limits(), PEER, at(1), 100);
        let later = now + probe_period(3);
        assert_eq!(list.next_probe(later, &limits(), 100), Some((PEER, at(1))));
    }

    #[test]
    fn an_answer_validates_one_address_of_its_participant() {
        let mut list = UnvalidatedLocators::default();
        for (peer, host) in [(PEER, 1), (PEER, 2), (OTHER, 1)] {
            list.note(second(1), &limits(), peer, at(host), 100);
        }
        assert!(!list.note_validated(OTHER, at(2).address));
        assert!(list.note_validated(PEER, at(1).address));
        assert!(!list.note_validated(PEER, at(1).address), "once");
        list.remove_participant(PEER);
        assert!(!list.note_validated(PEER, at(2).address));
        assert!(list.note_validated(OTHER, at(1).address));
        assert!(list.is_empty());
    }

    #[test]
    fn the_list_has_two_addresses_of_a_participant_and_drops_the_oldest() {
        let mut list = UnvalidatedLocators::default();
        for host in 1..=3 {
            list.note(second(1), &limits(), PEER, at(host), 100);
        }
        assert!(!list.note_validated(PEER, at(3).address));
        list.note(second(2), &limits(), PEER, at(1), 100);
        list.note(second(3), &limits(), OTHER, at(4), 100);
        // Full: the address that was announced longest ago goes.
        list.note(second(4), &limits(), OTHER, at(5), 100);
        assert!(!list.note_validated(PEER, at(2).address));
        assert!(list.note_validated(PEER, at(1).address));
        // Announced at 3 and 4.
        list.expire(second(1_002), &limits());
        assert!(!list.is_empty());
        list.expire(second(1_003), &limits());
        assert!(!list.note_validated(OTHER, at(4).address));
        list.expire(second(1_004), &limits());
        assert!(list.is_empty());
    }
}
