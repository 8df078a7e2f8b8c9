//! Client of discovery servers, as those of Fast DDS (`ROS_DISCOVERY_SERVER`): networks
//! without multicast, and large fleets.
//!
//! A client announces itself to its servers only. A server relays to each client the
//! participants and endpoints of the others; user data then goes directly between
//! participants. On the wire, SPDP is a reliable topic between client and server, with
//! the entity ids of SPDP. Each change of SPDP and SEDP names itself in
//! PID_RELATED_SAMPLE_IDENTITY, by which the server orders the changes that it relays. The
//! server sends them with its own writers. It accepts participants of Fast DDS only, so
//! our announcement names that vendor; our GUID prefix names ours.
//!
//! Trust: a server is a participant that announces itself from a configured address, with
//! the configured port, and has answered there. What it relays needs no further proof. What
//! anybody else relays is refused and counted, and so are announcements of participants
//! that are neither servers nor static peers.
//!
//! Lease: a server notices that a participant is gone, and relays its end. So a relayed
//! participant has no lease while one of its servers is there or none has come back. A
//! server that comes back relays the living again; the others have a lease from then on.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::change::CacheChange;
use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic, TopicReset, earliest};
use crate::discovery::data::ParticipantData;
use crate::discovery::sedp::SedpReset;
use crate::discovery::spdp::{self, Announcer};
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::{Locator, Route};
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::{Data, Submessage};

use super::config::ParticipantConfig;
use super::discovery_servers::{DISCOVERY_SERVERS_MAX, DiscoveryServers, PARTICIPANT_TYPE};
use super::spdp_writer::SpdpWriter;
use super::unvalidated_participant::is_of_this_host;

/// The roles of servers.
const SERVER_TYPES: [&str; 2] = ["SERVER", "BACKUP"];

/// A server that does not answer is called so often: at first quickly, since it may start
/// together with us.
const CALL_PERIOD: Duration = Duration::from_millis(500);
/// A server without an answer is reported after this time.
const SILENT_TOLD_AFTER: Duration = Duration::from_secs(5);

/// The state of one discovery server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveryServerState {
    /// Its first configured address, with the port.
    pub address: String,
    /// Its participant, while it answers.
    pub prefix: Option<GuidPrefix>,
    /// How long it has answered, or has not.
    pub age: Duration,
    /// The participants that it relays.
    pub relayed: usize,
}

struct Server {
    locators: Arc<[Locator]>,
    prefix: Option<GuidPrefix>,
    since: Instant,
    is_told: bool,
}

impl Server {
    fn address(&self) -> String {
        let first = self.locators.first().and_then(|at| at.to_udp());
        match first {
            Some((ip, port)) if ip.is_v6() => alloc::format!("[{ip}]:{port}"),
            Some((ip, port)) => alloc::format!("{ip}:{port}"),
            None => "without a usable address".into(),
        }
    }
}

/// The servers that relay a participant, one bit each of [`DISCOVERY_SERVERS_MAX`].
type Relays = u32;

/// Our side of the discovery servers.
pub(super) struct DiscoveryClient {
    /// SPDP, reliable, with servers only.
    topic: BuiltinTopic,
    servers: Vec<Server>,
    /// Of discovered participants only.
    relayed: BTreeMap<GuidPrefix, Relays>,
    next_call: Instant,
}

impl DiscoveryClient {
    pub(super) fn new(now: Instant, prefix: GuidPrefix, servers: &DiscoveryServers) -> Self {
        let mut topic = BuiltinTopic::with_reset_detection(
            prefix,
            BuiltinEndpoints {
                writer: EntityId::SPDP_WRITER,
                reader: EntityId::SPDP_READER,
                writer_bit: spdp::PARTICIPANT_ANNOUNCER,
                reader_bit: spdp::PARTICIPANT_DETECTOR,
            },
        );
        topic.name_samples();
        let servers = servers.servers.iter().take(DISCOVERY_SERVERS_MAX);
        Self {
            topic,
            servers: servers
                .map(|locators| Server {
                    locators: Arc::from(locators.as_slice()),
                    prefix: None,
                    since: now,
                    is_told: false,
                })
                .collect(),
            relayed: BTreeMap::new(),
            next_call: now,
        }
    }

    /// The built-in topic of SPDP.
    pub(super) fn topic(&mut self) -> &mut BuiltinTopic {
        &mut self.topic
    }

    /// Whether a participant is a server that has answered.
    pub(super) fn is_connected(&self, prefix: GuidPrefix) -> bool {
        self.index_of(prefix).is_some()
    }

    pub(super) fn index_of(&self, prefix: GuidPrefix) -> Option<usize> {
        let mut servers = self.servers.iter();
        servers.position(|server| server.prefix == Some(prefix))
    }

    /// The configured server that a participant says to be. A server of this host may
    /// announce other addresses of it than the configured one.
    fn index_named(&self, data: &ParticipantData, config: &ParticipantConfig) -> Option<usize> {
        let network = &config.network;
        let is_here = |at: &Locator| at.ip().is_some_and(|ip| is_of_this_host(ip, network));
        let announced = &data.metatraffic_unicast;
        let is_named = |at: &Locator| {
            let is_same = |named: &&Locator| named.port == at.port;
            let mut with_port = announced.iter().filter(is_same);
            with_port.any(|named| named.address == at.address || (is_here(at) && is_here(named)))
        };
        let mut servers = self.servers.iter();
        servers
            .position(|server| server.locators.iter().any(is_named))
            .filter(|_| is_server(data))
    }

    /// Whether an announcement comes from a configured server, by its source and content.
    pub(super) fn is_of_server(
        &self,
        data: &ParticipantData,
        from: Option<Locator>,
        config: &ParticipantConfig,
    ) -> bool {
        let network = &config.network;
        let Some(index) = self.index_named(data, config) else {
            return false;
        };
        let Some(ip) = from.and_then(|from| from.ip()) else {
            return true;
        };
        let is_from = |at: &Locator| {
            at.ip().is_some_and(|named| {
                named.may_be(ip)
                    || (is_of_this_host(named, network) && is_of_this_host(ip, network))
            })
        };
        let server = self.servers.get(index);
        server.is_some_and(|server| server.locators.iter().any(is_from))
    }

    /// Matches a participant if it is a server. Returns the participants that no server
    /// relays any more: one that restarted relays again those that live.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        data: &ParticipantData,
        route: &Route,
        config: &ParticipantConfig,
    ) -> Vec<GuidPrefix> {
        let Some(index) = self.index_named(data, config) else {
            return Vec::new();
        };
        let mut unrelayed = self.take_relays_of(index);
        // Those of a server that was lost before.
        let left = self.relayed.iter().filter(|(_, relays)| **relays == 0);
        unrelayed.extend(left.map(|(prefix, _)| *prefix));
        unrelayed.sort_unstable();
        unrelayed.dedup();
        if let Some(server) = self.servers.get_mut(index) {
            server.prefix = Some(data.prefix);
            server.since = now;
            if core::mem::take(&mut server.is_told) {
                let at = server.address();
                tracing::info!(participant = %data.prefix, "the discovery server {at} answers");
            }
        }
        self.topic.match_peer(now, data, route);
        unrelayed
    }

    /// Takes back what a server relays; the participants that no other one relays.
    fn take_relays_of(&mut self, index: usize) -> Vec<GuidPrefix> {
        let mut left = Vec::new();
        for (prefix, relays) in &mut self.relayed {
            let had = *relays & bit(index) != 0;
            *relays &= !bit(index);
            if had && *relays == 0 {
                left.push(*prefix);
            }
        }
        left
    }

    /// Forgets a participant, be it a server or a relayed one.
    pub(super) fn remove_peer(&mut self, now: Instant, prefix: GuidPrefix) {
        self.topic.unmatch_peer(prefix);
        self.relayed.remove(&prefix);
        let Some(index) = self.index_of(prefix) else {
            return;
        };
        self.take_relays_of(index);
        if let Some(server) = self.servers.get_mut(index) {
            server.prefix = None;
            server.since = now;
        }
        self.next_call = self.next_call.min(now);
    }

    /// Whether a connected server relays a participant.
    pub(super) fn is_relaying(&self, prefix: GuidPrefix) -> bool {
        self.relayed.get(&prefix).is_some_and(|relays| *relays != 0)
    }

    pub(super) fn note_relay(&mut self, prefix: GuidPrefix, server: usize) {
        *self.relayed.entry(prefix).or_default() |= bit(server);
    }

    /// Notes that a server no longer relays a participant. False if others do.
    pub(super) fn note_end(&mut self, prefix: GuidPrefix, server: usize) -> bool {
        match self.relayed.get_mut(&prefix) {
            None => false,
            Some(relays) => {
                *relays &= !bit(server);
                *relays == 0
            }
        }
    }

    /// Whether an SPDP change of a server concerns another participant.
    pub(super) fn is_relayed_change(&self, source: GuidPrefix, data: &Data) -> bool {
        self.is_connected(source) && key_of(data.payload, data.inline_qos.key_hash()) != source
    }

    /// Passes a submessage of a server to the SPDP topic; false if it is of another one.
    pub(super) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        self.is_connected(source.prefix) && self.topic.handle(now, source, message)
    }

    /// The next change of SPDP that a server relays.
    pub(super) fn poll_change(&mut self) -> Option<CacheChange> {
        self.topic.poll_change()
    }

    /// The next server that restarted with the same GUID.
    pub(super) fn poll_reset(&mut self) -> Option<SedpReset> {
        loop {
            match self.topic.poll_reset()? {
                TopicReset::Restarted(prefix) => return Some(SedpReset::Restarted(prefix)),
                TopicReset::CountsAnew(prefix) => return Some(SedpReset::CountsAnew(prefix)),
                TopicReset::Reread(_) => {}
            }
        }
    }

    /// Publishes our announcement to the servers, with the number that it has in the
    /// periodic ones.
    pub(super) fn publish(&mut self, now: Instant, prefix: GuidPrefix, announcer: &Announcer) {
        let (payload, sequence) = announcer.change();
        let key = prefix.with(EntityId::PARTICIPANT).to_bytes();
        while self.topic.next_data_head().sequence <= sequence {
            self.topic.publish(now, key, payload.clone());
        }
    }

    /// Calls the servers that do not answer.
    pub(super) fn call_servers(&mut self, now: Instant, spdp: &SpdpWriter, out: &mut Outbox) {
        if now < self.next_call || out.is_full() {
            return;
        }
        self.next_call = now + CALL_PERIOD;
        for server in self
            .servers
            .iter_mut()
            .filter(|server| server.prefix.is_none())
        {
            spdp.write_announcement(&server.locators, None, None, out);
            let is_silent = server.since + SILENT_TOLD_AFTER <= now;
            if is_silent && !core::mem::replace(&mut server.is_told, true) {
                let at = server.address();
                tracing::warn!(
                    "no answer from the discovery server {at}; start it (fastdds discovery), or correct ROS_DISCOVERY_SERVER"
                );
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let is_waiting = self.servers.iter().any(|server| server.prefix.is_none());
        earliest(
            self.topic.next_timeout(),
            is_waiting.then_some(self.next_call),
        )
    }

    /// The configured servers, in their order.
    pub(super) fn states(&self, now: Instant) -> Vec<DiscoveryServerState> {
        let servers = self.servers.iter().enumerate();
        servers
            .map(|(index, server)| DiscoveryServerState {
                address: server.address(),
                prefix: server.prefix,
                age: now.since(server.since),
                relayed: {
                    let relays = self.relayed.values();
                    relays.filter(|relays| **relays & bit(index) != 0).count()
                },
            })
            .collect()
    }
}

const fn bit(server: usize) -> Relays {
    1 << (server % DISCOVERY_SERVERS_MAX)
}

pub(super) fn is_server(data: &ParticipantData) -> bool {
    let mut all = data.properties.iter();
    all.any(|(name, value)| name == PARTICIPANT_TYPE && SERVER_TYPES.contains(&value.as_str()))
}

/// The participant that an SPDP change concerns; [`GuidPrefix::UNKNOWN`] if it names none.
pub(super) fn key_of(payload: &[u8], key_hash: Option<[u8; 16]>) -> GuidPrefix {
    let key = key_hash.map(Guid::from_bytes);
    let key = key.or_else(|| ParticipantData::parse_key(payload));
    key.map_or(GuidPrefix::UNKNOWN, |guid| guid.prefix)
}
