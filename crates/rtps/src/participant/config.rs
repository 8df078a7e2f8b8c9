//! Configuration of a [`Participant`](super::Participant), its limits and
//! counters.

use alloc::string::String;
use alloc::vec::Vec;

use crate::discovery::data::DataLimits;
use crate::id::GuidPrefix;
use crate::locator::{Locator, Reach};
use crate::time::Duration;

use super::secured::SecurityConfig;

/// What a participant announces and how it looks for others.
#[derive(Clone, PartialEq, Debug)]
pub struct ParticipantConfig {
    /// Our identity; must be new for each start of the process.
    pub prefix: GuidPrefix,
    /// DDS domain, 0 to 232. Announcements of other domains are ignored.
    pub domain_id: u32,
    /// Our addresses and how far we may talk; picks the route to each peer.
    pub reach: Reach,
    /// Where our built-in endpoints are reached.
    pub metatraffic_unicast: Vec<Locator>,
    /// Where our user endpoints are reached.
    pub default_unicast: Vec<Locator>,
    /// The group we joined for discovery; empty when we have none.
    pub metatraffic_multicast: Vec<Locator>,
    /// Where announcements go: the multicast group, and initial peers.
    pub announce_to: Vec<Locator>,
    /// How long peers keep us without hearing anything.
    pub lease: Duration,
    /// The pause between announcements after the initial burst; a quarter of
    /// the lease if that is shorter.
    pub announce_period: Duration,
    /// USER_DATA, for ROS 2 `enclave=/;`.
    pub user_data: Vec<u8>,
    /// A name for people, for ROS 2 the enclave.
    pub entity_name: Option<String>,
    /// PID_PROPERTY_LIST, sent as it is.
    pub properties: Vec<(String, String)>,
    /// Whether somebody carries our [`Notice`](super::Notice)s to neighbours.
    pub posts_notices: bool,
    /// Topics whose endpoints neighbours are not told of.
    pub unposted_topics: Vec<String>,
    /// Whether others have to prove who they are. `user_data`, `entity_name` and
    /// `properties` are told to everybody in any case.
    pub security: Option<SecurityConfig>,
    /// Bounds of what peers can make us keep.
    pub limits: ParticipantLimits,
}

impl ParticipantConfig {
    /// A configuration with defaults for everything but the identity.
    pub fn new(prefix: GuidPrefix, domain_id: u32) -> Self {
        Self {
            prefix,
            domain_id,
            reach: Reach::default(),
            metatraffic_unicast: Vec::new(),
            default_unicast: Vec::new(),
            metatraffic_multicast: Vec::new(),
            announce_to: Vec::new(),
            // Fast DDS in ROS 2 uses 20 s, Cyclone 10 s.
            lease: Duration::from_secs(20),
            // Fast DDS's period; six announcements per lease survive bad loss.
            announce_period: Duration::from_secs(3),
            user_data: Vec::new(),
            entity_name: None,
            properties: Vec::new(),
            posts_notices: false,
            unposted_topics: Vec::new(),
            security: None,
            limits: ParticipantLimits::default(),
        }
    }
}

/// Bounds of what remote participants can make us keep or send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParticipantLimits {
    /// Remote participants that have answered. When full, newcomers are refused
    /// and counted; a living one is never evicted.
    pub participants: usize,
    /// Remote participants that only claim to exist. When full, one from the
    /// source address with the most claims makes room.
    pub candidates: usize,
    /// Endpoints of one remote participant; more are ignored and counted.
    pub endpoints_per_participant: usize,
    /// Remote endpoints in all; more are ignored and counted.
    pub endpoints: usize,
    /// Bytes sent to a candidate per byte received from it.
    pub amplification: usize,
    /// How long a candidate is kept without a new announcement.
    pub candidate_age: Duration,
    /// What is kept of one announcement.
    pub data: DataLimits,
    /// The longest lease granted, whatever a peer asks for, so that dead peers
    /// with endless leases cannot fill the table for ever.
    pub lease_max: Duration,
}

impl Default for ParticipantLimits {
    fn default() -> Self {
        Self {
            participants: 512,
            candidates: 64,
            endpoints_per_participant: 1024,
            endpoints: 8192,
            amplification: 3,
            candidate_age: Duration::from_secs(5),
            data: DataLimits::default(),
            lease_max: Duration::from_secs(3600),
        }
    }
}

/// Counters since the start; they only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ParticipantStats {
    /// Announcements sent, one per period and one per answer.
    pub announcements_sent: u64,
    /// Announcements read.
    pub announcements_received: u64,
    /// Discovery data that could not be read.
    pub malformed: u64,
    /// Announcements of another domain id or tag.
    pub other_domain: u64,
    /// Data that speaks for a participant other than its sender.
    pub impersonation: u64,
    /// Candidates dropped because the table was full.
    pub candidates_evicted: u64,
    /// Candidates that never answered.
    pub candidates_expired: u64,
    /// Answers withheld because the candidate's byte budget was spent.
    pub answers_withheld: u64,
    /// Announcements without an address that can be used from here.
    pub unreachable: u64,
    /// Participants refused because the table was full.
    pub participants_refused: u64,
    /// Announcements without an identity, where one is needed.
    pub unauthenticated: u64,
    /// Endpoints ignored because a table was full.
    pub endpoints_refused: u64,
}
