//! Participants and endpoints that discovery servers relay; see
//! [`discovery_client`](super::discovery_client).

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::change::{CacheChange, ChangeKind};
use crate::discovery::data::ParticipantData;
use crate::discovery::sedp::SedpChange;
use crate::id::GuidPrefix;
use crate::receiver::Source;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

use super::discovery_client::{DiscoveryServerState, is_server, key_of};
use super::local_participant::LocalParticipant;
use super::peer::Peer;
use super::remote_participants::RemoteParticipants;
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant, ParticipantEvent, zones};

impl DiscoveryServerState {
    /// The configured discovery servers of a participant, in their order.
    pub fn all(participant: &Participant) -> Vec<Self> {
        let local = &participant.local;
        let client = local.builtin.servers.as_ref();
        client.map_or_else(Vec::new, |client| client.states(local.clock))
    }
}

/// The other participants that one knows, while a server's submessage is handled at `now`.
pub(super) struct RelayedParticipants<'a> {
    pub remote: &'a mut RemoteParticipants,
    pub local: &'a mut LocalParticipant,
    pub now: Instant,
}

impl RelayedParticipants<'_> {
    /// Handles a submessage of a server's SPDP; false if it is of something else.
    pub(super) fn handle_server(&mut self, source: &Source, message: &Submessage) -> bool {
        let servers = self.local.builtin.servers.as_mut();
        if !servers.is_some_and(|servers| servers.handle(self.now, source, message)) {
            return false;
        }
        self.handle_relayed();
        while let Some(client) = &mut self.local.builtin.servers
            && let Some(reset) = client.poll_reset()
        {
            self.remote.handle_sedp_reset(self.local, self.now, reset);
        }
        true
    }

    /// Handles what the servers relay of SPDP.
    fn handle_relayed(&mut self) {
        while let Some(client) = &mut self.local.builtin.servers
            && let Some(change) = client.poll_change()
        {
            let Some(server) = client.index_of(change.writer.prefix) else {
                continue;
            };
            if change.kind == ChangeKind::Alive {
                self.handle_participant(server, &change);
            } else {
                self.handle_end(server, &change);
            }
        }
    }

    fn handle_participant(&mut self, server: usize, change: &CacheChange) {
        let Self { remote, local, now } = self;
        let Ok(mut data) =
            ParticipantData::parse_within(&change.payload, &local.config.limits.data)
        else {
            local.stats.malformed.tally();
            return;
        };
        let prefix = data.prefix;
        // Servers may know each other; we know ours by the configuration.
        let is_other = prefix != local.config.prefix && !is_server(&data);
        let by_itself = |peer: &Peer| !peer.is_relayed;
        if !is_other || remote.peers.find(prefix).is_some_and(by_itself) {
            return;
        }
        let known = remote.peers.data(prefix).cloned();
        zones::add_to_participant(&mut data, None, known.as_deref(), &local.config.network);
        if let Some(known) = known {
            note_relay(local, prefix, server);
            if *known == data {
                remote.leases.grant(*now, prefix, Duration::INFINITE);
            } else {
                remote.update_participant(local, *now, Arc::new(data), SourceCheck::Unknown);
            }
            return;
        }
        let route = local.config.network.choose_route(&data.metatraffic_unicast);
        if route.locators.is_empty() {
            local.stats.unreachable.tally();
            return;
        }
        if !remote.has_participant_place(local, *now, &data, SourceCheck::Unknown) {
            return;
        }
        remote.unvalidated.take(prefix);
        remote.leases.grant(*now, prefix, Duration::INFINITE);
        self.add_peer(Arc::new(data));
        if self.remote.peers.contains(prefix) {
            note_relay(self.local, prefix, server);
        }
    }

    /// Adds a relayed participant. Its endpoints come from the server, so SEDP is not
    /// matched.
    fn add_peer(&mut self, data: Arc<ParticipantData>) {
        let Self { remote, local, now } = self;
        if !remote.has_memory_for(local, &data) {
            return;
        }
        let network = &local.config.network;
        let mut peer = Peer::new(data.clone(), SourceCheck::Unknown, network, false);
        peer.is_relayed = true;
        local
            .builtin
            .match_relayed_peer(*now, &data, &peer.metatraffic);
        remote.peers.insert(*now, peer);
        remote.share_with_peer(local, data.prefix);
        remote.tombstones.remove(data.prefix);
        local
            .events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    fn handle_end(&mut self, server: usize, change: &CacheChange) {
        let prefix = key_of(&change.payload, change.key_hash);
        let peer = self.remote.peers.find(prefix);
        let is_relayed = peer.is_some_and(|peer| peer.is_relayed);
        let client = self.local.builtin.servers.as_mut();
        if is_relayed && client.is_some_and(|client| client.note_end(prefix, server)) {
            self.remote
                .remove_participant(self.local, prefix, LostReason::Disposed);
        }
    }

    /// Handles what the participant `by` announces of another one's endpoints.
    pub(super) fn handle_endpoint(&mut self, by: GuidPrefix, of: GuidPrefix, change: SedpChange) {
        let client = self.local.builtin.servers.as_ref();
        if !client.is_some_and(|client| client.is_connected(by)) {
            self.local.stats.impersonation.tally();
        } else if self
            .remote
            .peers
            .find(of)
            .is_some_and(|peer| peer.is_relayed)
        {
            self.remote.handle_sedp_change(self.local, self.now, change);
        }
    }

    /// Begins the leases of the participants that no server relays.
    pub(super) fn grant_leases(&mut self, unrelayed: Vec<GuidPrefix>) {
        for prefix in unrelayed {
            if let Some(data) = self.remote.peers.data(prefix).cloned() {
                self.remote.grant_lease(self.local, self.now, &data);
            }
        }
    }
}

fn note_relay(local: &mut LocalParticipant, prefix: GuidPrefix, server: usize) {
    if let Some(client) = &mut local.builtin.servers {
        client.note_relay(prefix, server);
    }
}
