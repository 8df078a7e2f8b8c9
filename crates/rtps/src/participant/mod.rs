//! Participant discovery and endpoint matching as a sans-IO state machine (RTPS 2.5
//! §8.5): SPDP, SEDP, WLP and TypeLookup of one participant.
//!
//! It handles the built-in topics only. User data is ignored, except that every
//! datagram renews its sender's participant lease ([`Participant::renew_lease`]).
//! It owns no user endpoint: the runtime adds endpoints, the participant announces
//! them, and returns [`ParticipantEvent`]s.
//!
//! Endpoints of the same participant are not matched here, and our own
//! announcements are ignored when they come back. The runtime delivers within the
//! process, and may use
//! [`matching::evaluate_match`](crate::matching::evaluate_match) for it.
//!
//! Drain order for the driver: `handle_*`, then [`Participant::poll_event`] until
//! `None`, then [`Participant::poll_transmit`] until `false`. One call adds events
//! for the endpoints of at most one participant.
//!
//! The parts own their state. `local_participant` is our side: `spdp_writer` has our
//! announcement, `builtin_topics` SEDP, WLP, TypeLookup and security, `endpoints` all
//! endpoints with their matches. `remote_participants` are the others, with their
//! addresses, leases and claims. `Participant` takes what the owner calls to both.

mod announce;
mod authenticating;
mod builtin_topics;
mod challenges;
mod config;
mod discovery_client;
mod discovery_servers;
mod endpoints;
mod event;
mod identity;
mod interned_qos;
mod local_endpoints;
mod local_participant;
mod locator_validation;
mod matching;
mod path_evidence;
mod paths;
mod peer;
mod receive_memory;
mod refused_writer_table;
mod refused_writers;
mod relayed_participants;
mod remote_endpoints;
mod remote_participants;
mod retransmission_windows;
mod same_host;
mod same_host_announcement;
mod secure_discovery;
mod security;
mod sedp_sweep;
mod source_judgement;
mod spdp_writer;
mod sweeps;
mod table_quota;
mod table_states;
mod tombstone;
mod unvalidated_participant;
mod zones;

pub use config::{ParticipantConfig, ParticipantLimits, ParticipantStats, SecurityConfig};
pub use discovery_client::DiscoveryServerState;
pub use discovery_servers::{DISCOVERY_SERVERS_MAX, DiscoveryServers};
pub use endpoints::Endpoints;
pub use event::{LostReason, ParticipantEvent, Table, TableFill, TableHolder};
pub use path_evidence::{LocalLinks, PathInfo, PathReason, PathState};
pub use receive_memory::{MemoryHolder, ReceiveMemoryUse};
pub use refused_writer_table::RefusedWriter;
pub use remote_endpoints::RemoteEndpoint;
pub use same_host_announcement::{Announcement, Announcements};
pub use secure_discovery::SecureDiscovery;
pub use spdp_writer::SpdpWriter;

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::builtin_topic::earliest;
use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::spdp;
use crate::discovery::type_lookup::{RemoteType, TypeLookup};
use crate::id::{EntityId, Guid, GuidPrefix, VendorId};
use crate::locator::{IpAddress, Locator, Route};
use crate::memory_budget::MemoryAccount;
use crate::outbox::Outbox;
use crate::qos::Liveliness;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::Submessage;

use crate::stats::Tally;
use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::TypeObjects;

use local_participant::LocalParticipant;
use relayed_participants::RelayedParticipants;
use remote_participants::RemoteParticipants;

/// Coalesced discovery datagrams to one peer have at most this many bytes on a
/// network ...
const COALESCED_BYTES_MAX: usize = 1_400;
/// ... and this many within a host.
const COALESCED_BYTES_SAME_HOST_MAX: usize = 16 << 10;

/// Discovery of one participant, sans-IO. See the module for how to drive it.
pub struct Participant {
    local: LocalParticipant,
    remote: RemoteParticipants,
}

impl Participant {
    /// A participant that announces itself at once. It sends nothing by itself.
    pub fn new(now: Instant, config: ParticipantConfig) -> Self {
        Self {
            remote: RemoteParticipants::new(&config.limits),
            local: LocalParticipant::new(now, config),
        }
    }

    /// Our GUID prefix.
    pub fn prefix(&self) -> GuidPrefix {
        self.local.config.prefix
    }

    /// Our announcement.
    pub fn data(&self) -> &ParticipantData {
        &self.local.spdp.data
    }

    /// Counters since the start.
    pub fn stats(&self) -> &ParticipantStats {
        &self.local.stats
    }

    /// Handles one submessage and its UDP source address, if known.
    ///
    /// Submessages of user endpoints only renew the sender's lease. Our own are
    /// ignored. Never panics on any content; work is bounded by the limits and the
    /// datagram's size.
    pub fn handle_submessage(
        &mut self,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        message: &Submessage,
    ) {
        self.local.clock = now;
        if source.prefix == self.local.config.prefix {
            return;
        }
        let accepted = self
            .remote
            .judge_source(&mut self.local, now, from, source, message);
        if accepted {
            self.renew_lease(source.prefix, now);
        }
        if let Submessage::Data(data) = message
            && data.writer == EntityId::SPDP_WRITER
        {
            self.remote
                .handle_spdp(&mut self.local, now, from, source, data);
        }
        if self.remote.proves_reception(&self.local, source, message) {
            self.remote
                .promote(&mut self.local, now, from, source.prefix);
            if let Some(secured) = &mut self.local.builtin.secured {
                secured.note_reachable(from, source.prefix, &self.local.config.network);
            }
            self.remote
                .note_locator_validated(&mut self.local, from, source.prefix);
        }
        if !accepted {
            return;
        }
        self.remote
            .note_path(&mut self.local, now, from, source, message);
        if self
            .remote
            .handle_secured(&mut self.local, now, source, message)
        {
            return;
        }
        let mut relayed = RelayedParticipants {
            remote: &mut self.remote,
            local: &mut self.local,
            now,
        };
        if relayed.handle_server(source, message) {
            return;
        }
        if self.local.builtin.sedp.handle(now, source, message) {
            // First: a change of this message was received before the reset.
            while let Some(change) = self
                .local
                .builtin
                .sedp
                .poll_change(&self.local.config.limits.data)
            {
                self.remote.handle_sedp_change(&mut self.local, now, change);
            }
            while let Some(reset) = self.local.builtin.sedp.poll_reset() {
                self.remote.handle_sedp_reset(&mut self.local, now, reset);
            }
            self.remote.end_probation(&self.local, now, source.prefix);
            self.remote.end_sweeps(&mut self.local, source.prefix);
        } else if self.local.builtin.wlp.handle(now, source, message) {
            self.local.builtin.report_assertions(&mut self.local.events);
        } else if TypeLookup::is_type_lookup(message) {
            if self.local.builtin.secured.is_some() {
                return;
            }
            self.remote
                .match_type_lookup(&mut self.local, now, source.prefix);
            if self.local.builtin.types.handle(now, source, message)
                && self.local.builtin.types.take_new_objects()
            {
                self.local
                    .events
                    .push_back(ParticipantEvent::TypeObjectsReceived);
            }
        }
    }

    /// The writer of our announcements (SPDP).
    pub fn spdp_writer(&self) -> &SpdpWriter {
        &self.local.spdp
    }

    /// What announces us, to change when and where.
    pub fn spdp_writer_mut(&mut self) -> &mut SpdpWriter {
        &mut self.local.spdp
    }

    /// Whether a discovered participant has proven `address` (locator validation).
    pub fn has_proven(&self, prefix: GuidPrefix, address: IpAddress) -> bool {
        let peer = self.remote.peers.find(prefix);
        peer.is_some_and(|peer| peer.has_proven(address, &self.local.config.network))
    }

    /// Renews the lease of a participant after any datagram. Cheap: call it for
    /// every datagram.
    pub fn renew_lease(&mut self, prefix: GuidPrefix, now: Instant) {
        self.remote.leases.renew(now, prefix);
    }

    /// Handles all timers that are due. Early and repeated calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.lose_silent_peers(now);
        self.handle_other_timeouts(now);
    }

    /// Removes the participants whose lease has expired, and believes the claims about
    /// those that did not answer.
    pub fn lose_silent_peers(&mut self, now: Instant) {
        self.local.clock = self.local.clock.max(now);
        for prefix in self.remote.leases.take_expired(now) {
            self.remote.tombstones.add(now, prefix);
            self.remote
                .remove_participant(&mut self.local, prefix, LostReason::LeaseExpired);
        }
        self.remote.end_challenges(&mut self.local, now);
        for prefix in self
            .remote
            .peers
            .take_silent_suspects(now, &self.remote.leases)
        {
            self.remote
                .remove_participant(&mut self.local, prefix, LostReason::AddressTakenOver);
        }
    }

    /// Handles the timers that are due, except for [`lose_silent_peers`].
    ///
    /// [`lose_silent_peers`]: Self::lose_silent_peers
    pub fn handle_other_timeouts(&mut self, now: Instant) {
        self.local.clock = now;
        self.remote.confirm_sweeps(&mut self.local, now);
        self.remote.tombstones.expire(now);
        self.local
            .builtin
            .sedp
            .retain_disposed(!self.remote.tombstones.is_empty());
        let silent = self
            .remote
            .unvalidated
            .expire(now, &self.local.config.limits);
        self.local.stats.unvalidated_expired.tally_by(silent as u64);
        self.remote.report_silent_participant(&mut self.local, now);
        self.remote
            .unvalidated_locators
            .expire(now, &self.local.config.limits);
        self.local.builtin.wlp.handle_timeout(now);
        self.local
            .spdp
            .on_host
            .push_assertions(&mut self.local.builtin.wlp);
        for channel in self
            .local
            .builtin
            .wlp
            .channels()
            .chain(self.local.builtin.sedp.channels())
            .chain(self.local.builtin.servers.iter_mut().map(|own| own.topic()))
        {
            channel.handle_timeout(now);
        }
        while let Some(reset) = self.local.builtin.sedp.poll_reset() {
            self.remote.handle_sedp_reset(&mut self.local, now, reset);
        }
        if let Some(secured) = &mut self.local.builtin.secured {
            secured.handle_timeout(now);
        }
        self.local.builtin.types.requests.handle_timeout(now);
        self.local.builtin.types.replies.handle_timeout(now);
        self.remote.take_path_turn(&mut self.local, now);
    }

    /// Whether [`lose_silent_peers`](Self::lose_silent_peers) finds a participant that was
    /// not heard in time. Handle what has arrived first. Renewed leases do not count, and
    /// probes that are due neither.
    pub fn may_lose_peers(&self, now: Instant) -> bool {
        self.remote.leases.has_expired(now)
            || self
                .remote
                .peers
                .has_silent_suspect(now, &self.remote.leases)
            || self.remote.challenges.has_silent(now)
    }

    /// Whether a participant is discovered, and its plain messages count from this address.
    /// Its dispose from elsewhere ends nothing.
    pub fn is_disposable_from(&self, prefix: GuidPrefix, from: Locator) -> bool {
        let network = &self.local.config.network;
        let foreign = self
            .remote
            .peers
            .foreign_source(prefix, Some(from), network);
        self.remote.peers.contains(prefix)
            && foreign.is_none()
            && !self.local.builtin.ignores_plain_announcements(prefix)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) at the latest.
    pub fn next_timeout(&self) -> Option<Instant> {
        [
            Some(self.local.spdp.announcer.next_timeout()),
            self.remote
                .unvalidated
                .next_timeout(&self.local.config.limits),
            self.remote
                .unvalidated_locators
                .next_timeout(&self.local.config.limits),
            self.remote.leases.next_timeout(),
            self.remote.peers.next_timeout(),
            self.remote.paths.next_timeout(),
            self.remote.challenges.next_timeout(),
            self.remote.sweeps.next_timeout(),
            self.remote.tombstones.next_timeout(),
            self.local.builtin.next_timeout(),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    /// Adds and announces a local writer, and matches it with known readers. For a
    /// writer added before, announces its new QoS or user data.
    pub fn add_writer(&mut self, now: Instant, data: impl Into<Arc<EndpointData>>) {
        let data = data.into();
        debug_assert!(
            data.guid.entity.is_writer(),
            "{} is not the GUID of a writer",
            data.guid
        );
        let RemoteParticipants { peers, paths, .. } = &mut self.remote;
        self.local.add_endpoint(now, data, peers, paths);
    }

    /// Adds and announces a local reader, and matches it with known writers. For a
    /// reader added before, announces its new QoS or user data.
    pub fn add_reader(&mut self, now: Instant, data: impl Into<Arc<EndpointData>>) {
        let data = data.into();
        debug_assert!(
            data.guid.entity.is_reader(),
            "{} is not the GUID of a reader",
            data.guid
        );
        let RemoteParticipants { peers, paths, .. } = &mut self.remote;
        self.local.add_endpoint(now, data, peers, paths);
    }

    /// Answers TypeLookup requests for this type from now on. Call it before the
    /// first endpoint of the type is added, or requests may come too early.
    pub fn offer_type(&mut self, objects: &TypeObjects) {
        self.local.builtin.types.register(objects);
    }

    /// As [`offer_type`](Self::offer_type), but the TypeObjects are built at the
    /// first request. `information` is the announced TypeInformation.
    pub fn offer_type_lazily(
        &mut self,
        information: &'static [u8],
        description: fn() -> &'static TypeDescription,
    ) {
        self.local
            .builtin
            .types
            .register_lazily(information, description);
    }

    /// The type of a remote endpoint. Missing TypeObjects are requested.
    ///
    /// Call it again after [`ParticipantEvent::TypeObjectsReceived`], at the latest
    /// after half a second. `None`: no such endpoint.
    pub fn remote_type(&mut self, now: Instant, remote: Guid) -> Option<RemoteType> {
        self.remote
            .match_type_lookup(&mut self.local, now, remote.prefix);
        let endpoint = self.local.endpoints.remotes.find(remote)?.data();
        let peer = self.remote.peers.data(remote.prefix)?;
        let service = spdp::TYPE_REQUEST_READER | spdp::TYPE_REPLY_WRITER;
        let serves = peer.builtin_endpoints & service == service;
        Some(self.local.builtin.types.describe(now, &endpoint, serves))
    }

    /// Removes a local writer or reader, with an `Unmatched` event for each of its
    /// matches. Unknown ones are ignored.
    pub fn remove_endpoint(&mut self, now: Instant, guid: Guid) {
        let Some(data) = self.local.endpoints.locals.remove(guid) else {
            return;
        };
        self.local.builtin.sedp.retract(now, &data);
        self.local
            .spdp
            .on_host
            .push(|| Announcement::EndpointRemoved(guid));
        self.local
            .endpoints
            .unmatch_local(guid, &mut self.local.events);
        let shortest = self.local.endpoints.shortest_automatic_lease();
        self.local.builtin.wlp.set_automatic_lease(now, shortest);
    }

    /// Sets or removes the shared-memory connection to a participant.
    ///
    /// All its user endpoints are then reached by it; discovery stays on UDP. Each
    /// endpoint emits [`ParticipantEvent::EndpointChanged`]. Unknown participants
    /// are ignored.
    pub fn set_shared_memory_route(&mut self, prefix: GuidPrefix, connection: Option<Locator>) {
        if self
            .remote
            .peers
            .set_shared_memory(prefix, connection.map(Route::by_shared_memory))
            && let Some(peer) = self.remote.peers.find(prefix)
        {
            let network = &self.local.config.network;
            self.local
                .endpoints
                .report_routes(peer, true, network, &mut self.local.events);
        }
    }

    /// Announces other USER_DATA from now on.
    pub fn update_user_data(&mut self, now: Instant, user_data: Vec<u8>) {
        if self.local.config.user_data == user_data {
            return;
        }
        self.local.config.user_data = user_data;
        self.local.spdp.rebuild(&self.local.config);
        self.local.spdp.update(now);
        if let Some(secured) = &mut self.local.builtin.secured {
            secured.announce(now, &self.local.spdp.data);
        }
    }

    /// Asserts the liveliness of the writers with MANUAL_BY_PARTICIPANT. Other
    /// kinds need no call here.
    pub fn assert_liveliness(&mut self, now: Instant, kind: Liveliness) {
        self.local.builtin.wlp.assert(now, kind);
        self.local
            .spdp
            .on_host
            .push_assertions(&mut self.local.builtin.wlp);
    }

    /// The next event. Drain after each call of `handle_*`.
    pub fn poll_event(&mut self) -> Option<ParticipantEvent> {
        self.local.events.pop_front()
    }

    /// Puts datagrams into `out`; true if there are more.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.local
            .spdp
            .poll_transmit(now, &self.remote.peers, &mut self.local.stats, out);
        if let Some(servers) = &mut self.local.builtin.servers {
            let prefix = self.local.config.prefix;
            servers.publish(now, prefix, &self.local.spdp.announcer);
            servers.call_servers(now, &self.local.spdp, out);
        }
        self.remote
            .transmit_participant_probes(&mut self.local, now, out);
        self.remote.transmit_probes(&mut self.local, now, out);
        let more = self.local.builtin.poll_transmit(now, out);
        let is_full = out.is_full();
        // Fast DDS drops everything behind a submessage that it has no key for yet.
        // With Cyclone DDS, too, secure discovery takes half a second longer then.
        let of_ours = |to| {
            self.remote
                .peers
                .find(to)
                .filter(|p| p.data.vendor == VendorId::PTEROS)
        };
        out.coalesce(|to| match of_ours(to) {
            Some(peer) if peer.metatraffic.is_same_host() => COALESCED_BYTES_SAME_HOST_MAX,
            Some(_) => COALESCED_BYTES_MAX,
            None => 0,
        });
        self.local.builtin.name_vendor(out);
        more || is_full
    }

    /// Disposes of all endpoints and the participant itself, so that peers need not
    /// wait for the lease. Best effort. Do not use the participant afterwards.
    pub fn shut_down(&mut self, now: Instant, out: &mut Outbox) {
        let locals: Vec<_> = self.local.endpoints.locals.iter().cloned().collect();
        for data in locals {
            self.local.builtin.sedp.retract(now, &data);
        }
        for channel in self.local.builtin.sedp.channels() {
            channel.poll_transmit(now, out);
        }
        if let Some(secured) = &mut self.local.builtin.secured {
            secured.send_dispose(now, out);
        }
        self.local.spdp.transmit_dispose(&self.remote.peers, out);
        self.local.builtin.name_vendor(out);
    }

    /// The discovered participants.
    pub fn participants(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        self.remote.peers.iter()
    }

    /// Its endpoints and those of others, with their matches.
    pub fn endpoints(&self) -> &Endpoints {
        &self.local.endpoints
    }

    /// The account of a discovered participant; of another one a fresh account.
    pub fn memory_account(&self, prefix: GuidPrefix) -> Arc<MemoryAccount> {
        self.remote.receive_memory.account(prefix)
    }

    /// The bytes reserved now. O(participants).
    pub fn receive_memory_use(&self) -> ReceiveMemoryUse {
        self.remote.receive_memory.in_use(&self.remote.peers)
    }

    /// The first exceeded limit: name, count and limit. `None` unless there is a
    /// bug.
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.local.config.limits;
        [
            ("participants", self.remote.peers.len(), limits.participants),
            (
                "unvalidated participants",
                self.remote.unvalidated.len(),
                limits.unvalidated_participants.max(1),
            ),
            (
                "endpoints",
                self.local.endpoints.remotes.len(),
                limits.endpoints,
            ),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }

    /// The announcement of a discovered participant.
    pub fn participant(&self, prefix: GuidPrefix) -> Option<&Arc<ParticipantData>> {
        self.remote.peers.data(prefix)
    }

    /// The participants that have announced themselves for some seconds and answer
    /// nothing: they do not receive what we send, or do not understand it. Nothing is
    /// exchanged with them.
    pub fn silent_participants(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        let silent = self.remote.unvalidated.silent(self.local.clock);
        silent
            .map(|newcomer| &newcomer.data)
            .filter(|data| !self.remote.peers.contains(data.prefix))
    }

    /// The number of participants that announced themselves but have not answered.
    pub fn unvalidated_count(&self) -> usize {
        self.remote.unvalidated.len()
    }
}
