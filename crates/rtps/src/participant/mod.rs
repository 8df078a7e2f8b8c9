//! A participant: finds other participants and their endpoints, and says which
//! of them match ours (RTPS 2.5 §8.5).
//!
//! It reads the built-in topics only; user data goes past it, except that every
//! datagram renews its sender's lease ([`Participant::note_alive`]). It owns no
//! user endpoint: it is told of them, announces them, and returns
//! [`ParticipantEvent`]s.
//!
//! Endpoints of the same participant are not matched here, and our own
//! announcements are ignored when they come back: delivery within the process
//! is the business of the layer above, which may use
//! [`matching::judge`](crate::matching::judge) for it.
//!
//! Drain order for the driver: `handle_*`, then [`Participant::poll_event`]
//! until `None`, then [`Participant::poll_transmit`] until `false`. One call
//! adds events for one participant's endpoints at most.

mod announce;
mod candidate;
mod claims;
mod config;
mod endpoints;
mod event;
mod kinds;
mod neighbour;
mod pairing;
mod peer;
mod remotes;
mod secured;
mod tombstone;

pub use config::{ParticipantConfig, ParticipantLimits, ParticipantStats};
pub use event::{LostReason, ParticipantEvent};
pub use neighbour::{Notice, Notices};
pub use remotes::RemoteEndpoint;
pub use secured::SecurityConfig;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::channel::earliest;
use crate::discovery::data::{EndpointData, ParticipantData, ProductVersion};
use crate::discovery::lease::Leases;
use crate::discovery::liveliness::Wlp;
use crate::discovery::sedp::Sedp;
use crate::discovery::spdp::{self, Announcer};
use crate::discovery::type_lookup::{ForeignType, TypeLookup};
use crate::id::{EntityId, Guid, GuidPrefix, ProtocolVersion, VendorId};
use crate::locator::{Locator, Route};
use crate::matching::{Pairs, Verdict};
use crate::outbox::Outbox;
use crate::qos::Liveliness;
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

use crate::stats::Tally;
use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::TypeObjects;

use candidate::Candidates;
use claims::Claims;
use endpoints::Endpoints;
use neighbour::Postbox;
use peer::Peers;
use remotes::Remotes;
use secured::Secured;
use tombstone::Tombstones;

/// What is told to a peer at a time shares datagrams: of so many bytes by a network ...
const JOINED_BYTES_MAX: usize = 1_400;
/// ... and so many within a host.
const JOINED_BYTES_NEAR_MAX: usize = 16 << 10;

/// One participant's discovery, without IO. See the module for how to drive it.
pub struct Participant {
    config: ParticipantConfig,
    /// What we announce.
    data: ParticipantData,
    announcer: Announcer,
    announce_to: Arc<[Locator]>,
    /// Ports of this host that somebody is bound to, if that is known.
    bound_ports: Option<Vec<u16>>,
    candidates: Candidates,
    claims: Claims,
    peers: Peers,
    leases: Leases,
    tombstones: Tombstones,
    sedp: Sedp,
    wlp: Wlp,
    types: TypeLookup,
    locals: Endpoints,
    remotes: Remotes,
    pairs: Pairs,
    events: VecDeque<ParticipantEvent>,
    postbox: Postbox,
    secured: Option<Box<Secured>>,
    stats: ParticipantStats,
}

impl Participant {
    /// A participant that announces itself at once. Sends nothing by itself.
    pub fn new(now: Instant, config: ParticipantConfig) -> Self {
        let data = announcement(&config);
        let secured = config.security.clone();
        Self {
            secured: secured.map(|own| Box::new(Secured::new(now, own, &data))),
            announcer: Announcer::new(now, &data, announce_period(&config)),
            announce_to: Arc::from(config.announce_to.as_slice()),
            bound_ports: None,
            candidates: Candidates::default(),
            claims: Claims::default(),
            peers: Peers::default(),
            leases: Leases::default(),
            tombstones: Tombstones::default(),
            sedp: Sedp::new(config.prefix, config.security.is_some()),
            wlp: Wlp::new(
                config.prefix,
                config.security.is_some(),
                config
                    .security
                    .as_ref()
                    .is_none_or(|own| own.open_liveliness),
            ),
            types: TypeLookup::new(config.prefix),
            locals: Endpoints::default(),
            remotes: Remotes::default(),
            pairs: Pairs::default(),
            events: VecDeque::new(),
            postbox: Postbox::new(config.posts_notices),
            stats: ParticipantStats::default(),
            data,
            config,
        }
    }

    /// Our identity.
    pub fn prefix(&self) -> GuidPrefix {
        self.config.prefix
    }

    /// What we announce of ourselves.
    pub fn data(&self) -> &ParticipantData {
        &self.data
    }

    /// Counters since the start.
    pub fn stats(&self) -> &ParticipantStats {
        &self.stats
    }

    // Network and time in.

    /// Takes one submessage and its UDP source address, if known. Submessages
    /// of user endpoints do nothing but renew the sender's lease, and those we
    /// sent ourselves nothing at all. Never panics, whatever it holds; work is
    /// bounded by the limits and the datagram's size.
    pub fn handle_submessage(
        &mut self,
        now: Instant,
        from: Option<Locator>,
        source: &Source,
        message: &Submessage,
    ) {
        if source.prefix == self.config.prefix {
            return;
        }
        self.note_alive(source.prefix, now);
        if let Submessage::Data(data) = message
            && data.writer == EntityId::SPDP_WRITER
        {
            self.handle_announcement(now, from, source, data);
        }
        if source.destination == self.config.prefix {
            self.promote(now, from, source.prefix);
            self.note_heard(from, source.prefix);
            self.note_shown(from, source.prefix);
        }
        if self.handle_secured(now, source, message) {
            return;
        }
        if self.sedp.handle(now, source, message) {
            while let Some(news) = self.sedp.poll_news(&self.config.limits.data) {
                self.handle_news(now, news);
            }
            while let Some(prefix) = self.sedp.poll_began_anew() {
                self.lose(prefix, LostReason::BeganAnew);
            }
        } else if self.wlp.handle(now, source, message) {
            self.tell_assertions();
        } else if TypeLookup::is_concerned(message) {
            if self.secured.is_some() {
                return;
            }
            self.meet_for_types(now, source.prefix);
            if self.types.handle(now, source, message) && self.types.take_news() {
                self.events.push_back(ParticipantEvent::TypesLearned);
            }
        }
    }

    /// Waits with the first announcement until then: somebody is about to be
    /// known without it.
    pub fn announce_first_at(&mut self, at: Instant) {
        self.announcer.begin_at(at);
    }

    /// A datagram of this participant arrived, with whatever content. Cheap:
    /// meant to be called for every datagram.
    pub fn note_alive(&mut self, prefix: GuidPrefix, now: Instant) {
        if !fault!("lease-not-renewed") {
            self.leases.renew(now, prefix);
        }
    }

    /// Lets time pass. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        for prefix in self.leases.take_expired(now) {
            self.tombstones.raise(now, prefix);
            self.lose(prefix, LostReason::LeaseExpired);
        }
        self.tombstones.expire(now);
        self.sedp.hold_endings(!self.tombstones.is_empty());
        for prefix in self.peers.take_silent_suspects(now, &self.leases) {
            self.lose(prefix, LostReason::Replaced);
        }
        let silent = self.candidates.expire(now, &self.config.limits);
        self.stats.candidates_expired.tally_by(silent as u64);
        self.claims.expire(now, &self.config.limits);
        self.wlp.handle_timeout(now);
        self.post_assertions();
        for channel in self.wlp.channels().chain(self.sedp.channels()) {
            channel.handle_timeout(now);
        }
        if let Some(secured) = &mut self.secured {
            secured.handle_timeout(now);
        }
        self.types.requests.handle_timeout(now);
        self.types.replies.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) at the latest.
    pub fn next_timeout(&self) -> Option<Instant> {
        [
            Some(self.announcer.next_timeout()),
            self.candidates.next_timeout(&self.config.limits),
            self.claims.next_timeout(&self.config.limits),
            self.leases.next_timeout(),
            self.peers.next_timeout(),
            self.tombstones.next_timeout(),
            self.wlp.next_timeout(),
            self.sedp.next_timeout(),
            self.wlp.next_timeout_of_channels(),
            self.secured.as_ref().and_then(|own| own.next_timeout()),
            self.types.requests.next_timeout(),
            self.types.replies.next_timeout(),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // Commands of the application.

    /// Announces a writer of ours and matches it with the readers known; or,
    /// if it was added before, tells its new QoS or user data.
    pub fn add_writer(&mut self, now: Instant, data: impl Into<Arc<EndpointData>>) {
        let data = data.into();
        debug_assert!(data.guid.entity.is_writer(), "{} is no writer", data.guid);
        self.add_endpoint(now, data);
    }

    /// Announces a reader of ours and matches it with the writers known; or,
    /// if it was added before, tells its new QoS or user data.
    pub fn add_reader(&mut self, now: Instant, data: impl Into<Arc<EndpointData>>) {
        let data = data.into();
        debug_assert!(data.guid.entity.is_reader(), "{} is no reader", data.guid);
        self.add_endpoint(now, data);
    }

    fn add_endpoint(&mut self, now: Instant, data: Arc<EndpointData>) {
        debug_assert_eq!(data.guid.prefix, self.config.prefix);
        let old = self.locals.insert(data.clone());
        if old.is_some_and(|old| old.topic != data.topic) {
            self.unpair_local(data.guid);
        }
        self.sedp.publish(now, &data);
        self.post_endpoint(&data);
        self.update_automatic_lease(now);
        self.pair_local(&data);
    }

    /// Answers peers that ask for this type, from now on and for good. Before
    /// the first endpoint of the type is added, or they might ask too early.
    pub fn offer_type(&mut self, objects: &TypeObjects) {
        self.types.offer(objects);
    }

    /// As [`offer_type`](Self::offer_type), of a type whose objects are made when
    /// somebody asks; `information` is what is announced of it.
    pub fn promise_type(
        &mut self,
        information: &'static [u8],
        description: fn() -> &'static TypeDescription,
    ) {
        self.types.promise(information, description);
    }

    /// What a remote endpoint's type is made of. What is missing is asked for:
    /// call again after [`ParticipantEvent::TypesLearned`], at the latest after
    /// half a second. `None`: no such endpoint.
    pub fn foreign_type(&mut self, now: Instant, remote: Guid) -> Option<ForeignType> {
        self.meet_for_types(now, remote.prefix);
        let endpoint = self.remotes.find(remote)?.data();
        let peer = self.peers.data(remote.prefix)?;
        let service = spdp::TYPE_REQUEST_READER | spdp::TYPE_REPLY_WRITER;
        let serves = peer.builtin_endpoints & service == service;
        Some(self.types.describe(now, &endpoint, serves))
    }

    /// Takes back a writer or reader of ours; `Unmatched` is told for each of
    /// its matches. Unknown ones are ignored.
    pub fn remove_endpoint(&mut self, now: Instant, guid: Guid) {
        let Some(data) = self.locals.remove(guid) else {
            return;
        };
        self.sedp.retract(now, &data);
        self.postbox.post(|| Notice::Gone(guid));
        self.unpair_local(guid);
        self.update_automatic_lease(now);
    }

    /// A link to a participant has come up: all its user endpoints are reached by
    /// it from now on; discovery stays where it is. `None`: the link is gone. Each
    /// endpoint is told as [`ParticipantEvent::EndpointChanged`]. Unknown
    /// participants are ignored.
    pub fn set_link(&mut self, prefix: GuidPrefix, link: Option<Locator>) {
        if self.peers.set_link(prefix, link.map(Route::by_link)) {
            self.tell_routes(prefix);
        }
    }

    /// Announces other user data from now on.
    pub fn update_user_data(&mut self, now: Instant, user_data: Vec<u8>) {
        if self.config.user_data == user_data {
            return;
        }
        self.config.user_data = user_data;
        self.data = announcement(&self.config);
        self.announcer.update(now, &self.data);
        if let Some(secured) = &mut self.secured {
            secured.announce(now, &self.data);
        }
        let data = &self.data;
        self.postbox.post(|| Notice::Participant(data.encode()));
    }

    /// The application asserts the liveliness of its writers whose liveliness
    /// is manual by participant. Other kinds need no call here.
    pub fn assert_liveliness(&mut self, now: Instant, kind: Liveliness) {
        self.wlp.assert(now, kind);
        self.post_assertions();
    }

    fn update_automatic_lease(&mut self, now: Instant) {
        let shortest: Option<Duration> = self
            .locals
            .iter()
            .filter(|e| e.guid.entity.is_writer())
            .filter(|e| e.qos.liveliness == Liveliness::Automatic)
            .map(|e| e.qos.lease_duration)
            .filter(|lease| !lease.is_infinite())
            .min();
        self.wlp.set_automatic_lease(now, shortest);
    }

    // News and datagrams out.

    /// The next event. Drain after each call of `handle_*`.
    pub fn poll_event(&mut self) -> Option<ParticipantEvent> {
        self.events.pop_front()
    }

    /// Puts datagrams into `out`; true if there are more.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.transmit_announcements(now, out);
        self.transmit_answers(now, out);
        self.transmit_probes(now, out);
        self.transmit_questions(now, out);
        let secured = self.secured.as_mut();
        let mut more = secured.is_some_and(|own| own.poll_transmit(now, out));
        for channel in self.sedp.channels().chain(self.wlp.channels()) {
            more |= channel.poll_transmit(now, out);
        }
        let requests = self.types.requests.poll_transmit(now, out);
        let replies = self.types.replies.poll_transmit(now, out);
        let is_full = out.is_full();
        // Fast DDS drops what stands behind a submessage that it has no key for yet, and
        // with Cyclone DDS, too, meeting secured takes half a second longer then.
        let of_ours = |to| {
            self.peers
                .find(to)
                .filter(|p| p.data.vendor == VendorId::PTEROS)
        };
        out.join(|to| match of_ours(to) {
            Some(peer) if peer.metatraffic.is_same_host() => JOINED_BYTES_NEAR_MAX,
            Some(_) => JOINED_BYTES_MAX,
            None => 0,
        });
        more || requests || replies || is_full
    }

    /// Says goodbye: takes back all endpoints and the participant itself, so
    /// that peers need not wait for the lease. Best effort; the participant
    /// should not be used afterwards.
    pub fn farewell(&mut self, now: Instant, out: &mut Outbox) {
        let locals: Vec<_> = self.locals.iter().cloned().collect();
        for data in locals {
            self.sedp.retract(now, &data);
        }
        for channel in self.sedp.channels() {
            channel.poll_transmit(now, out);
        }
        if let Some(secured) = &mut self.secured {
            secured.farewell(now, out);
        }
        self.transmit_goodbye(out);
    }

    // What is known, for people who ask why.

    /// The participants that are spoken to.
    pub fn participants(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        self.peers.iter()
    }

    /// The remote endpoints, matched or not.
    pub fn endpoints(&self) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        self.remotes.iter()
    }

    /// The remote endpoints on a topic, given as it stands on the wire, matched
    /// or not.
    pub fn endpoints_on(&self, topic: &str) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        [true, false]
            .into_iter()
            .flat_map(|writers| self.remotes.on_topic(topic, writers))
    }

    /// One remote endpoint.
    pub fn endpoint(&self, guid: Guid) -> Option<RemoteEndpoint<'_>> {
        self.remotes.find(guid)
    }

    /// One endpoint of ours.
    pub fn own_endpoint(&self, guid: Guid) -> Option<&Arc<EndpointData>> {
        self.locals.find(guid)
    }

    /// How a local endpoint stands to each remote one on its topic.
    pub fn verdicts(&self, local: Guid) -> impl Iterator<Item = (Guid, &Verdict)> {
        self.pairs.of_local(local)
    }

    /// When a participant was last heard; `None` if it is not spoken to.
    pub fn heard(&self, prefix: GuidPrefix) -> Option<Instant> {
        self.leases.heard(prefix)
    }

    /// The first of its limits that is exceeded, by name with count and
    /// limit; `None` always, unless there is a bug.
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.config.limits;
        [
            ("participants", self.peers.len(), limits.participants),
            (
                "candidates",
                self.candidates.len(),
                limits.candidates.max(1),
            ),
            ("endpoints", self.remotes.len(), limits.endpoints),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }

    /// What a participant that is spoken to announces of itself.
    pub fn participant(&self, prefix: GuidPrefix) -> Option<&Arc<ParticipantData>> {
        self.peers.data(prefix)
    }

    /// How many participants claim to exist but have not answered.
    pub fn candidate_count(&self) -> usize {
        self.candidates.len()
    }
}

/// At least four announcements per lease, or a little loss would end it.
fn announce_period(config: &ParticipantConfig) -> Duration {
    config.announce_period.min(config.lease.half().half())
}

/// Our announcement.
fn announcement(config: &ParticipantConfig) -> ParticipantData {
    ParticipantData {
        prefix: config.prefix,
        version: ProtocolVersion::OURS,
        vendor: VendorId::PTEROS,
        product: Some(ProductVersion::OURS),
        domain_id: Some(config.domain_id),
        domain_tag: None,
        builtin_endpoints: match config.security {
            None => spdp::OUR_ENDPOINTS,
            Some(_) => spdp::OUR_SECURED_ENDPOINTS,
        },
        builtin_qos: 0,
        metatraffic_unicast: config.metatraffic_unicast.clone(),
        metatraffic_multicast: config.metatraffic_multicast.clone(),
        default_unicast: config.default_unicast.clone(),
        default_multicast: Vec::new(),
        lease: config.lease,
        manual_liveliness_count: 0,
        user_data: config.user_data.clone(),
        entity_name: config.entity_name.clone(),
        properties: config.properties.clone(),
        expects_inline_qos: false,
        security_tokens: match &config.security {
            None => Vec::new(),
            Some(security) => security.tokens.clone(),
        },
    }
}
