//! Participant configuration, limits against misbehaving peers, and counters.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::discovery::data::{DataLimits, EndpointData, ParticipantData};
use crate::id::GuidPrefix;
use crate::locator::{Locator, NetworkScope, OwnAddress};
use crate::stats::Tally;
use crate::time::Duration;

use super::discovery_servers::DiscoveryServers;

/// The announcement of a participant and its discovery settings.
#[derive(Clone, PartialEq, Debug)]
pub struct ParticipantConfig {
    /// Our GUID prefix; must be new for each start of the process.
    pub prefix: GuidPrefix,
    /// DDS domain, 0 to 232. Announcements of other domains are ignored.
    pub domain_id: u32,
    /// Our addresses and the permitted range; decides the route to each peer.
    pub network: NetworkScope,
    /// Unicast locators of our built-in endpoints.
    pub metatraffic_unicast: Vec<Locator>,
    /// Unicast locators of our user endpoints.
    pub default_unicast: Vec<Locator>,
    /// The discovery multicast group; empty without one.
    pub metatraffic_multicast: Vec<Locator>,
    /// Destinations of announcements: the multicast group, and initial peers.
    pub announce_to: Vec<Locator>,
    /// The discovery servers of a client, which relay other participants; `None` without.
    pub discovery_servers: Option<DiscoveryServers>,
    /// Whether SPDP announcements are dropped: only same-host peers are discovered.
    pub ignores_announcements: bool,
    /// Participant lease: how long peers keep us without a datagram.
    pub lease: Duration,
    /// The period of announcements after the startup burst; a quarter of the lease
    /// if that is shorter.
    pub announce_period: Duration,
    /// USER_DATA, for ROS 2 `enclave=/;`.
    pub user_data: Vec<u8>,
    /// A readable name, for ROS 2 the enclave.
    pub entity_name: Option<String>,
    /// PID_PROPERTY_LIST, sent unchanged.
    pub properties: Vec<(String, String)>,
    /// Whether the owner passes our [`Announcement`](super::Announcement)s to
    /// same-host peers.
    pub announces_on_host: bool,
    /// Topics whose endpoints are not announced to same-host peers.
    pub topics_not_announced_on_host: Vec<String>,
    /// DDS Security; `None` without authentication. `user_data`, `entity_name` and
    /// `properties` are announced unprotected in any case.
    pub security: Option<SecurityConfig>,
    /// Limits of the memory and traffic that peers can cause.
    pub limits: ParticipantLimits,
}

impl ParticipantConfig {
    /// A configuration with defaults for everything but the GUID prefix and the
    /// domain.
    pub fn new(prefix: GuidPrefix, domain_id: u32) -> Self {
        Self {
            prefix,
            domain_id,
            network: NetworkScope::default(),
            metatraffic_unicast: Vec::new(),
            default_unicast: Vec::new(),
            metatraffic_multicast: Vec::new(),
            announce_to: Vec::new(),
            discovery_servers: None,
            ignores_announcements: false,
            // Fast DDS in ROS 2 uses 20 s, Cyclone 10 s.
            lease: Duration::from_secs(20),
            // Fast DDS's period; six announcements per lease survive bad loss.
            announce_period: Duration::from_secs(3),
            user_data: Vec::new(),
            entity_name: None,
            properties: Vec::new(),
            announces_on_host: false,
            topics_not_announced_on_host: Vec::new(),
            security: None,
            limits: ParticipantLimits::default(),
        }
    }
}

/// The security part of a participant's announcement, and its admission policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityConfig {
    /// Parameters of its announcement, little-endian: identity and permissions
    /// tokens, PARTICIPANT_SECURITY_INFO.
    pub tokens: Vec<(u16, Bytes)>,
    /// Whether it also admits participants without an identity (governance).
    pub allow_unauthenticated: bool,
    /// Whether some topics have unprotected liveliness.
    pub unprotected_liveliness: bool,
    /// USER_DATA in the secured announcement only.
    pub user_data: Vec<u8>,
}

/// Limits of the memory and traffic that remote participants can cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParticipantLimits {
    /// Remote participants that have answered. When full, a newcomer takes the place
    /// of the least useful one from the source address with the most, or is refused.
    pub participants: usize,
    /// Unvalidated participants, and as many that authenticate. When full, one from
    /// the source address with the most of them is evicted.
    pub unvalidated_participants: usize,
    /// Endpoints of one remote participant; more are ignored and counted.
    pub endpoints_per_participant: usize,
    /// Remote endpoints in all. When full, a new one takes the place of one from the
    /// source address with the most, or is ignored and counted.
    pub endpoints: usize,
    /// Bytes sent to an unvalidated participant per byte received from it.
    pub amplification_factor: usize,
    /// How long an unvalidated participant is kept without a new announcement.
    pub unvalidated_age: Duration,
    /// Receive memory of one remote participant, bytes: its samples and the records
    /// of its endpoints, see `memory_budget.rs`.
    pub participant_memory_bytes: usize,
    /// Receive memory of all remote participants, bytes.
    pub memory_bytes: usize,
    /// Limits of the data in one announcement.
    pub data: DataLimits,
    /// The longest lease granted, so that dead peers with endless leases cannot
    /// fill the table.
    pub lease_max: Duration,
}

impl Default for ParticipantLimits {
    fn default() -> Self {
        Self {
            participants: 512,
            unvalidated_participants: 64,
            endpoints_per_participant: 4096,
            endpoints: 8192,
            amplification_factor: 3,
            unvalidated_age: Duration::from_secs(5),
            participant_memory_bytes: 64 << 20,
            memory_bytes: 256 << 20,
            data: DataLimits::default(),
            lease_max: Duration::from_secs(3600),
        }
    }
}

/// Counters since the start; they only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ParticipantStats {
    /// Announcements sent, one per period and one per probe.
    pub announcements_sent: u64,
    /// SPDP changes that arrived, before any check; repeated ones count.
    pub announcements_received: u64,
    /// Discovery data that could not be read.
    pub malformed: u64,
    /// Announcements of another domain id or tag.
    pub other_domain: u64,
    /// Data for a participant other than its sender.
    pub impersonation: u64,
    /// Discovery messages in the name of a participant from an address that it has
    /// not proven. They were dropped.
    pub foreign_sources: u64,
    /// Participants that answered after a dispose or a restart in their name. Most
    /// often that was forged.
    pub returned: u64,
    /// Unvalidated participants dropped because the table was full.
    pub unvalidated_evicted: u64,
    /// Unvalidated participants that never answered.
    pub unvalidated_expired: u64,
    /// Probes withheld because the byte budget of the participant was spent.
    pub probes_withheld: u64,
    /// Announcements without a reachable address.
    pub unreachable: u64,
    /// Announcements from beyond a router that are not of static peers.
    pub off_link: u64,
    /// Announcements of participants that are neither discovery servers nor static peers,
    /// where there are discovery servers.
    pub not_relayed: u64,
    /// Participants refused because the table was full.
    pub participants_refused: u64,
    /// Participants that lost their place in a full table to a newcomer.
    pub participants_evicted: u64,
    /// Endpoints that lost their place in a full table to a newcomer.
    pub endpoints_evicted: u64,
    /// Authentication handshakes ended because the table was full.
    pub handshakes_evicted: u64,
    /// Announcements without an identity, where authentication is required.
    pub unauthenticated: u64,
    /// Endpoints ignored because a table was full.
    pub endpoints_refused: u64,
    /// How often traffic to a participant moved to another of its addresses.
    pub paths_changed: u64,
}

impl ParticipantConfig {
    /// Whether a source lies beyond a router and is not a static peer. Discovery ends
    /// at the router (ROS 2's range SUBNET), so that no host outside can make this
    /// host answer.
    ///
    /// An interface whose network has one or two addresses is a tunnel or a cloud's.
    /// It does not say which addresses are beyond it, so nothing is judged then. No router
    /// forwards a link-local source.
    pub(super) fn is_off_link(&self, from: &Locator) -> bool {
        let network = &self.network;
        let is_of_kind = |own: &&OwnAddress| own.ip.is_v6() == (from.kind == Locator::KIND_UDP_V6);
        let mut own = network.addresses.iter().filter(is_of_kind);
        let is_unclear = own.any(OwnAddress::is_point_to_point);
        let is_named = |named: &Locator| named.address == from.address;
        !is_unclear
            && !network.addresses.is_empty()
            && from.to_udp().is_some()
            && !from.is_loopback()
            && !from.is_link_local_v6()
            && !network.is_on_link(from)
            && !network.is_on_down_link(from)
            && !self.announce_to.iter().any(is_named)
            && !self.is_discovery_server(from)
    }

    /// Whether a discovery server has this address.
    pub(super) fn is_discovery_server(&self, at: &Locator) -> bool {
        let servers = self.discovery_servers.as_ref();
        servers.is_some_and(|servers| servers.has_address(at))
    }

    /// Whether it announced our domain, without a domain tag.
    pub(super) fn is_in_domain(&self, peer: &ParticipantData) -> bool {
        let id = peer.domain_id.unwrap_or(self.domain_id);
        let tag = peer.domain_tag.as_deref().unwrap_or_default();
        id == self.domain_id && tag.is_empty()
    }

    /// Whether participants of this host get the announcements of endpoints on a topic.
    pub(super) fn is_announced_on_host(&self, data: &EndpointData) -> bool {
        !self.topics_not_announced_on_host.contains(&data.topic)
    }
}

impl ParticipantStats {
    /// Counts a participant beyond a router, and reports the first one.
    pub(super) fn note_off_link(&mut self, peer: &ParticipantData, from: Option<Locator>) {
        if self.off_link == 0
            && let Some(from) = from
        {
            tracing::warn!(
                participant = %peer.prefix,
                "a participant at {from} is outside of this host's networks and ignored, as are later ones; name its host in ROS_STATIC_PEERS to communicate with it"
            );
        }
        self.off_link.tally();
    }
}
