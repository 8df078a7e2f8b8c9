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
//! The parts own their state: [`spdp_writer`] our announcement, [`builtin_topics`] SEDP,
//! WLP, TypeLookup and security, [`endpoints`] all endpoints with their matches, [`peer`]
//! the discovered participants. `Participant` owns the parts, and decides what a message
//! about a participant means for each of them.

mod announce;
mod authenticating;
mod builtin_topics;
mod challenges;
mod config;
mod endpoints;
mod event;
mod identity;
mod interned_qos;
mod local_endpoints;
mod locator_validation;
mod matching;
mod path_evidence;
mod paths;
mod peer;
mod receive_memory;
mod refused_writer_table;
mod refused_writers;
mod remote_endpoints;
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
mod tombstone;
mod unvalidated_participant;

pub use config::{ParticipantConfig, ParticipantLimits, ParticipantStats, SecurityConfig};
pub use endpoints::Endpoints;
pub use event::{LostReason, ParticipantEvent, Table, TableFill, TableHolder};
pub use path_evidence::{LocalLinks, PathInfo, PathReason, PathState};
pub use receive_memory::{MemoryHolder, ReceiveMemoryUse};
pub use refused_writer_table::RefusedWriter;
pub use remote_endpoints::RemoteEndpoint;
pub use same_host_announcement::{Announcement, Announcements};
pub use secure_discovery::SecureDiscovery;
pub use spdp_writer::SpdpWriter;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::builtin_topic::earliest;
use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::lease::Leases;
use crate::discovery::spdp;
use crate::discovery::type_lookup::{RemoteType, TypeLookup};
use crate::id::{EntityId, Guid, GuidPrefix, VendorId};
use crate::locator::{Locator, Route};
use crate::outbox::Outbox;
use crate::qos::Liveliness;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::Submessage;

use crate::stats::Tally;
use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::TypeObjects;

use builtin_topics::BuiltinTopics;
use challenges::Challenges;
use endpoints::MatchReport;
use locator_validation::UnvalidatedLocators;
use path_evidence::Paths;
use peer::Peers;
use receive_memory::ReceiveMemory;
use retransmission_windows::RetransmissionWindows;
use sweeps::Sweeps;
use table_quota::TableStates;
use tombstone::Tombstones;
use unvalidated_participant::UnvalidatedParticipants;

/// Coalesced discovery datagrams to one peer have at most this many bytes on a
/// network ...
const COALESCED_BYTES_MAX: usize = 1_400;
/// ... and this many within a host.
const COALESCED_BYTES_SAME_HOST_MAX: usize = 16 << 10;

/// Discovery of one participant, sans-IO. See the module for how to drive it.
pub struct Participant {
    config: ParticipantConfig,
    spdp: SpdpWriter,
    builtin: BuiltinTopics,
    unvalidated: UnvalidatedParticipants,
    unvalidated_locators: UnvalidatedLocators,
    peers: Peers,
    paths: Paths,
    challenges: Challenges,
    sweeps: Sweeps,
    leases: Leases,
    tombstones: Tombstones,
    endpoints: Endpoints,
    table_states: TableStates,
    receive_memory: ReceiveMemory,
    retransmission_windows: RetransmissionWindows,
    events: VecDeque<ParticipantEvent>,
    stats: ParticipantStats,
    /// The last `now` passed in.
    clock: Instant,
}

impl Participant {
    /// A participant that announces itself at once. It sends nothing by itself.
    pub fn new(now: Instant, config: ParticipantConfig) -> Self {
        let spdp = SpdpWriter::new(now, &config);
        Self {
            builtin: BuiltinTopics::new(now, &config, &spdp.data),
            spdp,
            unvalidated: UnvalidatedParticipants::default(),
            unvalidated_locators: UnvalidatedLocators::default(),
            peers: Peers::default(),
            paths: Paths::default(),
            challenges: Challenges::default(),
            sweeps: Sweeps::default(),
            leases: Leases::default(),
            tombstones: Tombstones::default(),
            endpoints: Endpoints::default(),
            table_states: TableStates::default(),
            receive_memory: ReceiveMemory::new(&config.limits),
            retransmission_windows: RetransmissionWindows::default(),
            events: VecDeque::new(),
            stats: ParticipantStats::default(),
            clock: now,
            config,
        }
    }

    /// Our GUID prefix.
    pub fn prefix(&self) -> GuidPrefix {
        self.config.prefix
    }

    /// Our announcement.
    pub fn data(&self) -> &ParticipantData {
        &self.spdp.data
    }

    /// Counters since the start.
    pub fn stats(&self) -> &ParticipantStats {
        &self.stats
    }

    // Input: network and time.

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
        self.clock = now;
        if source.prefix == self.config.prefix {
            return;
        }
        let accepted = self.judge_source(now, from, source, message);
        if accepted {
            self.renew_lease(source.prefix, now);
        }
        if let Submessage::Data(data) = message
            && data.writer == EntityId::SPDP_WRITER
        {
            self.handle_spdp(now, from, source, data);
        }
        if self.proves_reception(source, message) {
            self.promote(now, from, source.prefix);
            if let Some(secured) = &mut self.builtin.secured {
                secured.note_reachable(from, source.prefix, &self.config.network);
            }
            self.note_locator_validated(from, source.prefix);
        }
        if !accepted {
            return;
        }
        self.note_path(now, from, source, message);
        if self.handle_secured(now, source, message) {
            return;
        }
        if self.builtin.sedp.handle(now, source, message) {
            // First: a change of this message is the first one that is read again.
            while let Some(reset) = self.builtin.sedp.poll_reset() {
                self.handle_sedp_reset(now, reset);
            }
            while let Some(change) = self.builtin.sedp.poll_change(&self.config.limits.data) {
                self.handle_sedp_change(now, change);
            }
            self.end_probation(now, source.prefix);
            self.end_sweeps(source.prefix);
        } else if self.builtin.wlp.handle(now, source, message) {
            self.builtin.report_assertions(&mut self.events);
        } else if TypeLookup::is_type_lookup(message) {
            if self.builtin.secured.is_some() {
                return;
            }
            self.match_type_lookup(now, source.prefix);
            if self.builtin.types.handle(now, source, message)
                && self.builtin.types.take_new_objects()
            {
                self.events.push_back(ParticipantEvent::TypeObjectsReceived);
            }
        }
    }

    /// What announces us.
    pub fn spdp_writer(&self) -> &SpdpWriter {
        &self.spdp
    }

    /// What announces us, to change when and where.
    pub fn spdp_writer_mut(&mut self) -> &mut SpdpWriter {
        &mut self.spdp
    }

    /// Whether a discovered participant has proven `address` (locator validation).
    pub fn has_proven(&self, prefix: GuidPrefix, address: [u8; 4]) -> bool {
        let peer = self.peers.find(prefix);
        peer.is_some_and(|peer| peer.has_proven(address, &self.config.network))
    }

    /// Renews the lease of a participant after any datagram. Cheap: call it for
    /// every datagram.
    pub fn renew_lease(&mut self, prefix: GuidPrefix, now: Instant) {
        self.leases.renew(now, prefix);
    }

    /// Handles all timers that are due. Early and repeated calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.lose_silent_peers(now);
        self.handle_other_timeouts(now);
    }

    /// Removes the participants whose lease has expired, and believes the claims about
    /// those that did not answer.
    pub fn lose_silent_peers(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        for prefix in self.leases.take_expired(now) {
            self.tombstones.add(now, prefix);
            self.remove_participant(prefix, LostReason::LeaseExpired);
        }
        self.end_challenges(now);
        for prefix in self.peers.take_silent_suspects(now, &self.leases) {
            self.remove_participant(prefix, LostReason::AddressTakenOver);
        }
    }

    /// Handles the timers that are due, except for [`lose_silent_peers`].
    ///
    /// [`lose_silent_peers`]: Self::lose_silent_peers
    pub fn handle_other_timeouts(&mut self, now: Instant) {
        self.clock = now;
        self.confirm_sweeps(now);
        self.tombstones.expire(now);
        self.builtin
            .sedp
            .retain_disposed(!self.tombstones.is_empty());
        let silent = self.unvalidated.expire(now, &self.config.limits);
        self.stats.unvalidated_expired.tally_by(silent as u64);
        self.report_silent_participant(now);
        self.unvalidated_locators.expire(now, &self.config.limits);
        self.builtin.wlp.handle_timeout(now);
        self.spdp.on_host.push_assertions(&mut self.builtin.wlp);
        for channel in self
            .builtin
            .wlp
            .channels()
            .chain(self.builtin.sedp.channels())
        {
            channel.handle_timeout(now);
        }
        while let Some(reset) = self.builtin.sedp.poll_reset() {
            self.handle_sedp_reset(now, reset);
        }
        if let Some(secured) = &mut self.builtin.secured {
            secured.handle_timeout(now);
        }
        self.builtin.types.requests.handle_timeout(now);
        self.builtin.types.replies.handle_timeout(now);
        self.take_path_turn(now);
    }

    /// Whether [`lose_silent_peers`](Self::lose_silent_peers) finds a participant that was
    /// not heard in time. Handle what has arrived first. Renewed leases do not count, and
    /// probes that are due neither.
    pub fn may_lose_peers(&self, now: Instant) -> bool {
        self.leases.has_expired(now)
            || self.peers.has_silent_suspect(now, &self.leases)
            || self.challenges.has_silent(now)
    }

    /// Whether a participant is discovered, and its plain messages count from this address.
    /// Its dispose from elsewhere ends nothing.
    pub fn is_disposable_from(&self, prefix: GuidPrefix, from: Locator) -> bool {
        let network = &self.config.network;
        let foreign = self.peers.foreign_source(prefix, Some(from), network);
        self.has_participant(prefix)
            && foreign.is_none()
            && !self.builtin.ignores_plain_announcements(prefix)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) at the latest.
    pub fn next_timeout(&self) -> Option<Instant> {
        [
            Some(self.spdp.announcer.next_timeout()),
            self.unvalidated.next_timeout(&self.config.limits),
            self.unvalidated_locators.next_timeout(&self.config.limits),
            self.leases.next_timeout(),
            self.peers.next_timeout(),
            self.paths.next_timeout(),
            self.challenges.next_timeout(),
            self.sweeps.next_timeout(),
            self.tombstones.next_timeout(),
            self.builtin.next_timeout(),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // Commands of the application.

    /// Adds and announces a local writer, and matches it with known readers. For a
    /// writer added before, announces its new QoS or user data.
    pub fn add_writer(&mut self, now: Instant, data: impl Into<Arc<EndpointData>>) {
        let data = data.into();
        debug_assert!(
            data.guid.entity.is_writer(),
            "{} is not the GUID of a writer",
            data.guid
        );
        self.add_endpoint(now, data);
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
        self.add_endpoint(now, data);
    }

    fn add_endpoint(&mut self, now: Instant, data: Arc<EndpointData>) {
        debug_assert_eq!(data.guid.prefix, self.config.prefix);
        let old = self.endpoints.locals.insert(data.clone());
        if old.is_some_and(|old| old.topic != data.topic) {
            self.endpoints.unmatch_local(data.guid, &mut self.events);
        }
        self.builtin.sedp.publish(now, &data);
        if self.config.is_announced_on_host(&data) {
            self.spdp
                .on_host
                .push(|| Announcement::Endpoint(data.encode()));
        }
        let shortest = self.endpoints.shortest_automatic_lease();
        self.builtin.wlp.set_automatic_lease(now, shortest);
        let mut report = MatchReport {
            peers: &self.peers,
            network: &self.config.network,
            paths: &mut self.paths,
            events: &mut self.events,
        };
        self.endpoints.match_local(&data, &mut report);
    }

    /// Answers TypeLookup requests for this type from now on. Call it before the
    /// first endpoint of the type is added, or requests may come too early.
    pub fn offer_type(&mut self, objects: &TypeObjects) {
        self.builtin.types.register(objects);
    }

    /// As [`offer_type`](Self::offer_type), but the TypeObjects are built at the
    /// first request. `information` is the announced TypeInformation.
    pub fn offer_type_lazily(
        &mut self,
        information: &'static [u8],
        description: fn() -> &'static TypeDescription,
    ) {
        self.builtin.types.register_lazily(information, description);
    }

    /// The type of a remote endpoint. Missing TypeObjects are requested.
    ///
    /// Call it again after [`ParticipantEvent::TypeObjectsReceived`], at the latest
    /// after half a second. `None`: no such endpoint.
    pub fn remote_type(&mut self, now: Instant, remote: Guid) -> Option<RemoteType> {
        self.match_type_lookup(now, remote.prefix);
        let endpoint = self.endpoints.remotes.find(remote)?.data();
        let peer = self.peers.data(remote.prefix)?;
        let service = spdp::TYPE_REQUEST_READER | spdp::TYPE_REPLY_WRITER;
        let serves = peer.builtin_endpoints & service == service;
        Some(self.builtin.types.describe(now, &endpoint, serves))
    }

    /// Removes a local writer or reader, with an `Unmatched` event for each of its
    /// matches. Unknown ones are ignored.
    pub fn remove_endpoint(&mut self, now: Instant, guid: Guid) {
        let Some(data) = self.endpoints.locals.remove(guid) else {
            return;
        };
        self.builtin.sedp.retract(now, &data);
        self.spdp
            .on_host
            .push(|| Announcement::EndpointRemoved(guid));
        self.endpoints.unmatch_local(guid, &mut self.events);
        let shortest = self.endpoints.shortest_automatic_lease();
        self.builtin.wlp.set_automatic_lease(now, shortest);
    }

    /// Sets or removes the shared-memory connection to a participant.
    ///
    /// All its user endpoints are then reached by it; discovery stays on UDP. Each
    /// endpoint emits [`ParticipantEvent::EndpointChanged`]. Unknown participants
    /// are ignored.
    pub fn set_shared_memory_route(&mut self, prefix: GuidPrefix, connection: Option<Locator>) {
        if self
            .peers
            .set_shared_memory(prefix, connection.map(Route::by_shared_memory))
            && let Some(peer) = self.peers.find(prefix)
        {
            let network = &self.config.network;
            self.endpoints
                .report_routes(peer, true, network, &mut self.events);
        }
    }

    /// Announces other USER_DATA from now on.
    pub fn update_user_data(&mut self, now: Instant, user_data: Vec<u8>) {
        if self.config.user_data == user_data {
            return;
        }
        self.config.user_data = user_data;
        self.spdp.rebuild(&self.config);
        self.spdp.announcer.update(now, &self.spdp.data);
        if let Some(secured) = &mut self.builtin.secured {
            secured.announce(now, &self.spdp.data);
        }
    }

    /// Asserts the liveliness of the writers with MANUAL_BY_PARTICIPANT. Other
    /// kinds need no call here.
    pub fn assert_liveliness(&mut self, now: Instant, kind: Liveliness) {
        self.builtin.wlp.assert(now, kind);
        self.spdp.on_host.push_assertions(&mut self.builtin.wlp);
    }

    // Output: events and datagrams.

    /// The next event. Drain after each call of `handle_*`.
    pub fn poll_event(&mut self) -> Option<ParticipantEvent> {
        self.events.pop_front()
    }

    /// Puts datagrams into `out`; true if there are more.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.spdp
            .poll_transmit(now, &self.peers, &mut self.stats, out);
        self.transmit_participant_probes(now, out);
        self.transmit_probes(now, out);
        let more = self.builtin.poll_transmit(now, out);
        let is_full = out.is_full();
        // Fast DDS drops everything behind a submessage that it has no key for yet.
        // With Cyclone DDS, too, secure discovery takes half a second longer then.
        let of_ours = |to| {
            self.peers
                .find(to)
                .filter(|p| p.data.vendor == VendorId::PTEROS)
        };
        out.coalesce(|to| match of_ours(to) {
            Some(peer) if peer.metatraffic.is_same_host() => COALESCED_BYTES_SAME_HOST_MAX,
            Some(_) => COALESCED_BYTES_MAX,
            None => 0,
        });
        more || is_full
    }

    /// Disposes of all endpoints and the participant itself, so that peers need not
    /// wait for the lease. Best effort. Do not use the participant afterwards.
    pub fn shut_down(&mut self, now: Instant, out: &mut Outbox) {
        let locals: Vec<_> = self.endpoints.locals.iter().cloned().collect();
        for data in locals {
            self.builtin.sedp.retract(now, &data);
        }
        for channel in self.builtin.sedp.channels() {
            channel.poll_transmit(now, out);
        }
        if let Some(secured) = &mut self.builtin.secured {
            secured.send_dispose(now, out);
        }
        self.spdp.transmit_dispose(&self.peers, out);
    }

    // State, for diagnostics.

    /// Whether a participant is discovered.
    pub fn has_participant(&self, prefix: GuidPrefix) -> bool {
        self.peers.data(prefix).is_some()
    }

    /// The discovered participants.
    pub fn participants(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        self.peers.iter()
    }

    /// Its endpoints and those of others, with their matches.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The first exceeded limit: name, count and limit. `None` unless there is a
    /// bug.
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.config.limits;
        [
            ("participants", self.peers.len(), limits.participants),
            (
                "unvalidated participants",
                self.unvalidated.len(),
                limits.unvalidated_participants.max(1),
            ),
            ("endpoints", self.endpoints.remotes.len(), limits.endpoints),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }

    /// The announcement of a discovered participant.
    pub fn participant(&self, prefix: GuidPrefix) -> Option<&Arc<ParticipantData>> {
        self.peers.data(prefix)
    }

    /// The participants that have announced themselves for some seconds and answer
    /// nothing: they do not receive what we send, or do not understand it. Nothing is
    /// exchanged with them.
    pub fn silent_participants(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        let silent = self.unvalidated.silent(self.clock);
        silent
            .map(|newcomer| &newcomer.data)
            .filter(|data| !self.peers.contains(data.prefix))
    }

    /// The number of participants that announced themselves but have not answered.
    pub fn unvalidated_count(&self) -> usize {
        self.unvalidated.len()
    }
}
