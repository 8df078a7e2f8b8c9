//! Fair shares of the tables of remote participants and endpoints. `promote`, `admit`
//! and SEDP ask here for a place when a table is full.
//!
//! Any host may fill a free table. When it is full, a newcomer takes the place of the
//! least useful entry of the source address that has the most. Participants of this
//! host and static peers (unicast targets of our announcements) are preferred. They
//! lose no place to others, and may take one from any other.
//!
//! A participant is useful once it has acknowledged our endpoints (SEDP), or one of
//! its endpoints matches ours. Until then its lease is short, whatever it announces.
//! A participant that is never useful loses its place to any newcomer.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::discovery::data::ParticipantData;
use crate::id::GuidPrefix;
use crate::locator::IpAddress;
use crate::time::{Duration, Instant};

use super::local_participant::LocalParticipant;
use super::peer::Peer;
use super::remote_participants::RemoteParticipants;
use super::unvalidated_participant::{SourceCheck, is_of_this_host};
use super::{
    LostReason, Participant, ParticipantEvent, RemoteEndpoint, Table, TableFill, TableHolder,
};
use crate::stats::Tally;

/// The longest lease of a participant that has not been useful.
pub(super) const PROBATION_LEASE: Duration = Duration::from_secs(20);

/// The time a new participant has to become useful before any newcomer may take its
/// place.
const PROBATION: Duration = Duration::from_secs(5);

/// Where a participant is, for the shares of the tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Origin {
    ThisHost,
    /// Another host, by address.
    Address(IpAddress),
    /// No address is known.
    Unknown,
}

/// How soon a participant loses its place: the greatest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct EvictionRank {
    is_useless: bool,
    /// The places of its source.
    held: usize,
    age: Duration,
}

impl Participant {
    /// How full both tables are.
    pub fn table_fills(&self) -> [TableFill; 2] {
        let limits = &self.local.config.limits;
        [
            TableFill {
                table: Table::Participants,
                held: self.remote.peers.len(),
                limit: limits.participants,
                holder: largest(&self.remote.participants_by_origin(&self.local)),
            },
            TableFill {
                table: Table::Endpoints,
                held: self.local.endpoints.remotes.len(),
                limit: limits.endpoints,
                holder: largest(&self.remote.endpoints_by_origin(&self.local)),
            },
        ]
    }
}

impl RemoteParticipants {
    /// Where a participant with this announcement and source check is.
    fn origin_of(
        &self,
        local: &LocalParticipant,
        data: &ParticipantData,
        source_check: SourceCheck,
    ) -> Origin {
        let announced = data.metatraffic_unicast.iter();
        let ip = match source_check {
            SourceCheck::SameHost => return Origin::ThisHost,
            SourceCheck::Address(ip) => Some(ip),
            SourceCheck::Unknown | SourceCheck::Mismatch => announced
                .filter_map(|at| at.to_udp())
                .map(|(ip, _)| ip)
                .next(),
        };
        match ip {
            Some(ip) if is_of_this_host(ip, &local.config.network) => Origin::ThisHost,
            Some(ip) => Origin::Address(ip),
            None => Origin::Unknown,
        }
    }

    fn origin_of_peer(&self, local: &LocalParticipant, peer: &Peer) -> Origin {
        if peer.is_same_host_peer {
            return Origin::ThisHost;
        }
        self.origin_of(local, &peer.data, peer.source_check())
    }

    /// Whether participants from there are preferred: this host, and static peers.
    fn is_preferred(&self, local: &LocalParticipant, origin: Origin) -> bool {
        match origin {
            Origin::ThisHost => true,
            Origin::Address(ip) => local.spdp.is_static_peer(ip),
            Origin::Unknown => false,
        }
    }

    /// Whether a participant acknowledged our endpoints, or matches one of them.
    fn is_useful(&self, local: &LocalParticipant, prefix: GuidPrefix) -> bool {
        local.builtin.sedp.has_acknowledged(prefix)
            || local
                .endpoints
                .remotes
                .of(prefix)
                .any(|e| local.endpoints.is_matched(e.guid()))
    }

    /// The lease to grant to a participant now: short, until it is useful.
    pub(super) fn lease_of(&self, local: &LocalParticipant, data: &ParticipantData) -> Duration {
        let servers = local.builtin.servers.as_ref();
        if servers.is_some_and(|servers| servers.is_relaying(data.prefix)) {
            return Duration::INFINITE;
        }
        let span = data.lease.min(local.config.limits.lease_max);
        let is_same_host_peer = self.peers.is_same_host_peer(data.prefix);
        let is_trusted = is_same_host_peer || local.builtin.secured.is_some();
        if is_trusted || self.is_useful(local, data.prefix) {
            span
        } else {
            span.min(PROBATION_LEASE)
        }
    }

    /// Grants the announced lease to a participant that has become useful. Called
    /// after each discovery submessage of it.
    pub(super) fn end_probation(
        &mut self,
        local: &LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
    ) {
        if self.peers.find(prefix).is_some_and(|peer| peer.is_useful)
            || !self.is_useful(local, prefix)
        {
            return;
        }
        if let Some(peer) = self.peers.find_mut(prefix) {
            peer.is_useful = true;
            let data = peer.data.clone();
            self.grant_lease(local, now, &data);
        }
    }

    /// Whether the table of participants has a place for this one; makes one if
    /// another has too many. Reports a full table once.
    pub(super) fn has_participant_place(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        data: &ParticipantData,
        source_check: SourceCheck,
    ) -> bool {
        let max = local.config.limits.participants;
        let held = self.peers.len();
        if held < max {
            // Reported again after an eighth of the places was free.
            if held < max.saturating_sub((max / 8).max(1)) {
                self.table_states.participants_full = false;
            }
            return true;
        }
        let newcomer = self.origin_of(local, data, source_check);
        let held_by = self.participants_by_origin(local);
        self.report_full(local, Table::Participants, &held_by);
        let held_from = |origin: Origin| held_by.get(&origin).copied().unwrap_or(0);
        let own = held_from(newcomer);
        let is_preferred = self.is_preferred(local, newcomer);
        let preferred = self.preferred_among(local, &held_by);
        let mut victim: Option<(EvictionRank, GuidPrefix)> = None;
        for peer in self.peers.all() {
            let origin = self.origin_of_peer(local, peer);
            if preferred.contains(&origin) {
                continue;
            }
            let held = held_from(origin);
            let is_useless = !peer.is_useful && peer.since.after(PROBATION) <= now;
            let has_more = held >= own.saturating_add(2);
            if !(is_preferred || has_more || (is_useless && held >= own)) {
                continue;
            }
            let rank = EvictionRank {
                is_useless: !peer.is_useful,
                held,
                age: now.since(peer.since),
            };
            if victim.as_ref().is_none_or(|(best, _)| rank > *best) {
                victim = Some((rank, peer.data.prefix));
            }
        }
        let Some((_, prefix)) = victim else {
            local.stats.participants_refused.tally();
            return false;
        };
        local.stats.participants_evicted.tally();
        self.remove_participant(local, prefix, LostReason::Evicted);
        true
    }

    /// Whether the table of endpoints has a place for one of this participant; makes
    /// one if another source has too many. Reports a full table once.
    pub(super) fn has_endpoint_place(
        &mut self,
        local: &mut LocalParticipant,
        prefix: GuidPrefix,
    ) -> bool {
        let limits = local.config.limits;
        if local.endpoints.remotes.count_of(prefix) >= limits.endpoints_per_participant {
            local.stats.endpoints_refused.tally();
            return false;
        }
        let held = local.endpoints.remotes.len();
        if held < limits.endpoints {
            if held
                < limits
                    .endpoints
                    .saturating_sub((limits.endpoints / 8).max(1))
            {
                self.table_states.endpoints_full = false;
            }
            return true;
        }
        let held_by = self.endpoints_by_origin(local);
        self.report_full(local, Table::Endpoints, &held_by);
        let preferred = self.preferred_among(local, &held_by);
        let own_origin = self
            .peers
            .find(prefix)
            .map(|peer| self.origin_of_peer(local, peer));
        let own = own_origin
            .and_then(|o| held_by.get(&o).copied())
            .unwrap_or(0);
        let own_count = local.endpoints.remotes.count_of(prefix);
        let is_preferred = own_origin.is_some_and(|origin| self.is_preferred(local, origin));
        let mut victim: Option<((usize, usize), GuidPrefix)> = None;
        for peer in self.peers.all() {
            let origin = self.origin_of_peer(local, peer);
            let count = local.endpoints.remotes.count_of(peer.data.prefix);
            let held = held_by.get(&origin).copied().unwrap_or(0);
            // Within one source the participants share fairly, too.
            let has_more = if Some(origin) == own_origin {
                count >= own_count.saturating_add(2)
            } else {
                !preferred.contains(&origin) && (is_preferred || held >= own.saturating_add(2))
            };
            if has_more
                && count > 0
                && victim
                    .as_ref()
                    .is_none_or(|(best, _)| (held, count) > *best)
            {
                victim = Some(((held, count), peer.data.prefix));
            }
        }
        let last = victim.and_then(|(_, prefix)| {
            let unmatched = local
                .endpoints
                .remotes
                .of(prefix)
                .filter(|e| !local.endpoints.is_matched(e.guid()));
            // The one with the highest entity id is most often the newest.
            unmatched
                .last()
                .or_else(|| local.endpoints.remotes.of(prefix).last())
        });
        let Some(evicted) = last.map(RemoteEndpoint::data) else {
            local.stats.endpoints_refused.tally();
            return false;
        };
        local.stats.endpoints_evicted.tally();
        local
            .endpoints
            .remove_remote(evicted.guid, &mut local.events);
        local.endpoints.note_unstored(&evicted);
        true
    }

    fn participants_by_origin(&self, local: &LocalParticipant) -> BTreeMap<Origin, usize> {
        let mut held_by = BTreeMap::<Origin, usize>::new();
        for peer in self.peers.all() {
            held_by
                .entry(self.origin_of_peer(local, peer))
                .or_default()
                .tally();
        }
        held_by
    }

    fn endpoints_by_origin(&self, local: &LocalParticipant) -> BTreeMap<Origin, usize> {
        let mut held_by = BTreeMap::<Origin, usize>::new();
        for peer in self.peers.all() {
            let count = local.endpoints.remotes.count_of(peer.data.prefix);
            let held = held_by.entry(self.origin_of_peer(local, peer)).or_default();
            held.tally_by(count);
        }
        held_by
    }

    fn preferred_among(
        &self,
        local: &LocalParticipant,
        held_by: &BTreeMap<Origin, usize>,
    ) -> BTreeSet<Origin> {
        let origins = held_by.keys().copied();
        origins
            .filter(|origin| self.is_preferred(local, *origin))
            .collect()
    }

    /// Reports a full table, once until places are free again.
    fn report_full(
        &mut self,
        local: &mut LocalParticipant,
        table: Table,
        held_by: &BTreeMap<Origin, usize>,
    ) {
        let (state, limit) = match table {
            // `receive_memory.rs` reports it.
            Table::Memory => return,
            Table::Participants => (
                &mut self.table_states.participants_full,
                local.config.limits.participants,
            ),
            Table::Endpoints => (
                &mut self.table_states.endpoints_full,
                local.config.limits.endpoints,
            ),
        };
        if !core::mem::replace(state, true) {
            let holder = largest(held_by);
            local.events.push_back(ParticipantEvent::TableFull {
                table,
                limit,
                holder,
            });
        }
    }
}

fn largest(held_by: &BTreeMap<Origin, usize>) -> TableHolder {
    let largest = held_by.iter().max_by_key(|(_, held)| **held);
    let (origin, held) = largest.map_or((Origin::Unknown, 0), |(o, held)| (*o, *held));
    let address = match origin {
        Origin::Address(ip) => Some(ip),
        Origin::ThisHost | Origin::Unknown => None,
    };
    TableHolder {
        address,
        is_this_host: origin == Origin::ThisHost,
        held,
    }
}
