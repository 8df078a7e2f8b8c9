//! Participants in the authentication handshake (DDS Security 1.1 §8.3), until they
//! are admitted or rejected.
//!
//! The table is small, because each handshake costs signatures and memory. Anyone can
//! claim an identity, so a full table must not keep newcomers out: it ends the
//! handshake that is least worth. An address with more than its share loses first,
//! then who has not proven to receive our datagrams. A source address can be forged,
//! that proof cannot.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::discovery::data::ParticipantData;
use crate::id::GuidPrefix;
use crate::stats::Tally;

use super::unvalidated_participant::SourceCheck;

/// Handshakes of one source address that are not ended in favour of unproven ones
/// of other addresses.
const SHARE_OF_ADDRESS: usize = 8;

/// A participant in the authentication handshake.
pub(super) struct AuthenticatingParticipant {
    pub(super) data: Arc<ParticipantData>,
    pub(super) source_check: SourceCheck,
    /// Bytes that may be sent to it until it has proven to receive our datagrams.
    pub(super) budget_bytes: Option<usize>,
}

impl AuthenticatingParticipant {
    /// Takes `bytes` from the budget; false if it is spent.
    pub(super) fn spend_budget(&mut self, bytes: usize) -> bool {
        let Some(budget) = &mut self.budget_bytes else {
            return true;
        };
        let left = budget.checked_sub(bytes);
        *budget = left.unwrap_or(*budget);
        left.is_some()
    }

    fn is_proven(&self) -> bool {
        self.budget_bytes.is_none()
    }
}

/// All of them, at most `capacity`.
pub(super) struct AuthenticatingParticipants {
    capacity: usize,
    table: BTreeMap<GuidPrefix, (u64, AuthenticatingParticipant)>,
    /// Participants that ever entered; orders them by age.
    entered: u64,
}

impl AuthenticatingParticipants {
    /// An empty table of at least one place.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            table: BTreeMap::new(),
            entered: 0,
        }
    }

    /// Adds a participant. Returns the one that lost its place to it.
    pub(super) fn insert(&mut self, participant: AuthenticatingParticipant) -> Option<GuidPrefix> {
        let prefix = participant.data.prefix;
        let is_full = self.table.len() >= self.capacity && !self.table.contains_key(&prefix);
        let evicted = if is_full { self.evict() } else { None };
        self.entered = self.entered.saturating_add(1);
        self.table.insert(prefix, (self.entered, participant));
        evicted
    }

    /// Removes the handshake that is least worth.
    fn evict(&mut self) -> Option<GuidPrefix> {
        let mut counts = BTreeMap::<SourceCheck, (usize, usize)>::new();
        for (_, participant) in self.table.values() {
            let (all, unproven) = counts.entry(participant.source_check).or_default();
            all.tally();
            if !participant.is_proven() {
                unproven.tally();
            }
        }
        let victim = self.table.iter().max_by_key(|(_, (entered, participant))| {
            let counts = counts.get(&participant.source_check);
            let (all, unproven) = counts.copied().unwrap_or_default();
            let beyond_share = all.saturating_sub(SHARE_OF_ADDRESS);
            let of_class = if participant.is_proven() {
                all
            } else {
                unproven
            };
            let oldest = core::cmp::Reverse(*entered);
            (beyond_share, !participant.is_proven(), of_class, oldest)
        });
        let prefix = victim.map(|(prefix, _)| *prefix)?;
        self.table.remove(&prefix);
        Some(prefix)
    }

    pub(super) fn contains(&self, prefix: GuidPrefix) -> bool {
        self.table.contains_key(&prefix)
    }

    pub(super) fn get(&self, prefix: GuidPrefix) -> Option<&AuthenticatingParticipant> {
        self.table.get(&prefix).map(|(_, found)| found)
    }

    pub(super) fn get_mut(&mut self, prefix: GuidPrefix) -> Option<&mut AuthenticatingParticipant> {
        self.table.get_mut(&prefix).map(|(_, found)| found)
    }

    pub(super) fn remove(&mut self, prefix: GuidPrefix) -> Option<AuthenticatingParticipant> {
        self.table.remove(&prefix).map(|(_, found)| found)
    }

    /// Empties the table and returns who was in it.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = GuidPrefix> + use<> {
        core::mem::take(&mut self.table).into_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: usize = 64;

    /// Claims an identity from 10.0.0.`host`; `proven` after a round trip.
    fn claim(table: &mut AuthenticatingParticipants, name: u32, host: u8, proven: bool) {
        let mut prefix = [host; 12];
        prefix[..4].copy_from_slice(&name.to_le_bytes());
        table.insert(AuthenticatingParticipant {
            data: Arc::new(ParticipantData::new(GuidPrefix(prefix))),
            source_check: SourceCheck::Address([10, 0, 0, host].into()),
            budget_bytes: (!proven).then_some(6_000),
        });
        assert!(table.table.len() <= CAPACITY);
    }

    fn holds(table: &AuthenticatingParticipants, name: u32, host: u8) -> bool {
        let mut prefix = [host; 12];
        prefix[..4].copy_from_slice(&name.to_le_bytes());
        table.contains(GuidPrefix(prefix))
    }

    #[test]
    fn a_flood_of_claims_from_one_address_ends_no_other_handshake() {
        let mut table = AuthenticatingParticipants::new(CAPACITY);
        for name in 0..1_000 {
            claim(&mut table, name, 66, true);
        }
        claim(&mut table, 1, 1, false);
        for name in 1_000..3_000 {
            claim(&mut table, name, 66, name % 2 == 0);
        }
        assert!(holds(&table, 1, 1));
    }

    #[test]
    fn claims_from_ten_addresses_end_no_other_handshake() {
        for proven in [false, true] {
            let mut table = AuthenticatingParticipants::new(CAPACITY);
            let flood = |table: &mut _, count: u32| {
                for name in 0..count {
                    claim(table, name, 50 + (name % 10) as u8, proven);
                }
            };
            flood(&mut table, 1_000);
            // A robot of five processes, each of which answers within a millisecond.
            for name in 0..5 {
                claim(&mut table, name, 1, false);
                claim(&mut table, 9_000 + name, 50, proven);
                claim(&mut table, name, 1, true);
            }
            flood(&mut table, 10_000);
            assert!((0..5).all(|name| holds(&table, name, 1)), "{proven}");
        }
    }

    #[test]
    fn claims_with_forged_addresses_end_no_proven_handshake() {
        let mut table = AuthenticatingParticipants::new(CAPACITY);
        for name in 0..8 {
            claim(&mut table, name, 1, true);
        }
        for name in 0..10_000 {
            claim(&mut table, name, 2 + (name % 250) as u8, false);
        }
        assert!((0..8).all(|name| holds(&table, name, 1)));
    }
}
