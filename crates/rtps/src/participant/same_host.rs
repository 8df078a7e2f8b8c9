//! Same-host peers: participants of this host, discovered without a datagram. Each
//! appends its announcements to a discovery log that the others read; the owner
//! passes the [`Announcement`]s on.
//!
//! The announcements carry the data of SPDP, SEDP and WLP in the same encoding. But
//! there is no copy per reader: no reliable channel, no acknowledgement, no
//! repetition. A same-host peer costs one record per endpoint. Its participant
//! lease works as for others; the owner renews it with
//! [`Participant::renew_lease`]. TypeLookup is matched with it after a request.
//!
//! The owner ensures that the stated author is right. An announcement is accepted
//! for this author only, within the same limits as data from the network.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::spdp;
use crate::id::{Guid, GuidPrefix};
use crate::stats::Tally;
use crate::time::{Duration, Instant};

use super::local_participant::LocalParticipant;
use super::remote_participants::RemoteParticipants;
use super::same_host_announcement::{Announcement, Announcements};
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant, ParticipantEvent, zones};

impl Participant {
    /// Handles an announcement of the same-host peer `prefix`.
    ///
    /// The first one of an unknown peer must be [`Announcement::Participant`];
    /// others are ignored before it. False if it is refused, which is counted.
    pub fn handle_announcement(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        announcement: &Announcement,
    ) -> bool {
        if prefix == self.local.config.prefix {
            return false;
        }
        if let Announcement::Participant(payload) = announcement {
            return self
                .remote
                .handle_same_host_participant(&mut self.local, now, prefix, payload);
        }
        if !self.remote.peers.is_same_host_peer(prefix) {
            return false;
        }
        self.renew_lease(prefix, now);
        match announcement {
            Announcement::Participant(_) => true,
            Announcement::Endpoint(payload) => {
                let Ok(data) = EndpointData::parse_within(payload, &self.local.config.limits.data)
                else {
                    self.local.stats.malformed.tally();
                    return false;
                };
                if data.guid.prefix != prefix {
                    self.local.stats.impersonation.tally();
                    return false;
                }
                self.remote.handle_endpoint(&mut self.local, data)
            }
            Announcement::EndpointRemoved(guid) => {
                if guid.prefix != prefix {
                    self.local.stats.impersonation.tally();
                    return false;
                }
                self.local
                    .endpoints
                    .remove_remote(*guid, &mut self.local.events);
                true
            }
            Announcement::LivelinessAsserted(kind) => {
                self.local
                    .events
                    .push_back(ParticipantEvent::LivelinessAsserted {
                        prefix,
                        kind: *kind,
                    });
                true
            }
        }
    }

    /// The shortest lease of a same-host peer: the period for checking which ones
    /// live.
    pub fn shortest_same_host_lease(&self) -> Option<Duration> {
        let same_host_peers = self.remote.peers.same_host_peers();
        same_host_peers
            .map(|data| data.lease.min(self.local.config.limits.lease_max))
            .min()
    }

    /// Removes a same-host peer that announced its end, or whose process ended.
    pub fn remove_same_host_peer(&mut self, prefix: GuidPrefix, reason: LostReason) {
        if self.remote.peers.is_same_host_peer(prefix) {
            self.remote
                .remove_participant(&mut self.local, prefix, reason);
        }
    }

    /// Removes the endpoints of a same-host peer that are not in `announced`, after
    /// it announced all of them.
    pub fn retain_endpoints(&mut self, prefix: GuidPrefix, announced: &[Guid]) {
        if !self.remote.peers.is_same_host_peer(prefix) {
            return;
        }
        self.local
            .endpoints
            .retain(prefix, announced, &mut self.local.events);
    }

    /// Whether a participant is a same-host peer.
    pub fn is_same_host_peer(&self, prefix: GuidPrefix) -> bool {
        self.remote.peers.is_same_host_peer(prefix)
    }

    /// The announcements since the last call; `None` when there is nothing new.
    ///
    /// Always `None` unless
    /// [`ParticipantConfig::announces_on_host`](super::ParticipantConfig::announces_on_host).
    /// The first call, and one after an overflow, returns all announcements.
    pub fn take_announcements(&mut self) -> Option<Announcements> {
        match self.local.spdp.on_host.take()? {
            Some(queued) => Some(Announcements::New(queued)),
            None => Some(Announcements::Full(self.all_announcements())),
        }
    }

    /// All announcements for a same-host peer that begins to read now.
    pub fn all_announcements(&self) -> Vec<Announcement> {
        let own = Announcement::Participant(self.local.spdp.data.encode());
        let encoded = self
            .local
            .endpoints
            .locals
            .iter()
            .filter(|data| self.local.config.is_announced_on_host(data));
        let endpoints = encoded.map(|data| Announcement::Endpoint(data.encode()));
        core::iter::once(own).chain(endpoints).collect()
    }
}

impl RemoteParticipants {
    /// Handles the first or a changed announcement of a same-host peer itself.
    fn handle_same_host_participant(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        payload: &[u8],
    ) -> bool {
        let Ok(mut data) = ParticipantData::parse_within(payload, &local.config.limits.data) else {
            local.stats.malformed.tally();
            return false;
        };
        zones::add_to_participant(&mut data, None, None, &local.config.network);
        if data.prefix != prefix {
            local.stats.impersonation.tally();
            return false;
        }
        if !local.config.is_in_domain(&data) {
            local.stats.other_domain.tally();
            return false;
        }
        if self.peers.is_same_host_peer(prefix) {
            if self.peers.data(prefix).is_some_and(|known| **known == data) {
                self.leases.renew(now, prefix);
            } else {
                self.update_participant(local, now, Arc::new(data), SourceCheck::Unknown);
            }
            return true;
        }
        if self.peers.contains(prefix) {
            self.become_same_host_peer(local, now, prefix, Arc::new(data));
            return true;
        }
        if !self.has_participant_place(local, now, &data, SourceCheck::SameHost) {
            return false;
        }
        self.unvalidated.take(prefix);
        let span = data.lease.min(local.config.limits.lease_max);
        self.leases.grant(now, prefix, span);
        self.add_same_host_peer(local, now, Arc::new(data));
        true
    }

    /// Turns a network peer into a same-host peer. Its endpoints are kept until it
    /// has announced all of them.
    fn become_same_host_peer(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
        data: Arc<ParticipantData>,
    ) {
        local.builtin.unmatch_peer(now, prefix);
        if let Some(peer) = self.peers.find_mut(prefix) {
            peer.is_same_host_peer = true;
            peer.is_relayed = false;
        }
        self.update_participant(local, now, data, SourceCheck::SameHost);
    }

    /// Matches TypeLookup with a same-host peer.
    pub(super) fn match_type_lookup(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        prefix: GuidPrefix,
    ) {
        let Some(peer) = self.peers.find_mut(prefix) else {
            return;
        };
        if !peer.is_same_host_peer || core::mem::replace(&mut peer.type_lookup_matched, true) {
            return;
        }
        let service = spdp::TYPE_REQUEST_READER | spdp::TYPE_REPLY_WRITER;
        if peer.data.builtin_endpoints & service == service {
            let (data, route) = (peer.data.clone(), peer.metatraffic.clone());
            local.builtin.types.requests.match_peer(now, &data, &route);
            local.builtin.types.replies.match_peer(now, &data, &route);
            self.share_with_peer(local, prefix);
        }
    }
}
