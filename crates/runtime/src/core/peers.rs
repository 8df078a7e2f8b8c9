//! Peers of this host: reads discovery logs before messages, and reports how samples
//! travel to each peer.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{IpAddress, Locator};
use pteros_rtps::participant::DiscoveryServerState;
use pteros_rtps::time::Instant;

use crate::core::discovery::Discovery;
use crate::endpoints::Endpoints;
use crate::sample::DeliveryPath;
use crate::shm_connections::PeerDelivery;
use crate::shm_transport::{ConnectionCounts, ConnectionTotals};
use crate::transport::rtps::RtpsTransport;
use crate::transport::transports::Transports;

/// Number of 16 KiB parts of a log read before its owner's next message: all of a log of
/// usual size.
const CATCH_UPS_MAX: usize = 1024;

/// A participant that announces itself but never answers, so that no data is exchanged
/// with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SilentParticipant {
    /// GUID prefix in its announcements.
    pub prefix: GuidPrefix,
    /// DDS vendor in its announcements.
    pub vendor: VendorId,
    /// The first address that it announces.
    pub address: Option<IpAddress>,
}

impl SilentParticipant {
    pub(crate) fn new(data: &ParticipantData) -> Self {
        let mut announced = data.metatraffic_unicast.iter();
        let address = announced.find_map(|at| at.to_udp());
        Self {
            prefix: data.prefix,
            vendor: data.vendor,
            address: address.map(|(ip, _)| ip),
        }
    }

    /// Logs that it never answers its announcements from this address.
    pub(crate) fn warn(&self, from: Option<Locator>) {
        let from = from.map_or_else(String::new, |from| format!(" from {from}"));
        tracing::warn!(
            "{self} announces itself{from} and never answers, so nothing is exchanged with it; \
             see whether the network carries packets in both directions (pteros doctor hello), \
             and whether it announces its endpoints (SEDP)"
        );
    }
}

impl fmt::Display for SilentParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "participant {} ({:?})", self.prefix, self.vendor)?;
        match self.address {
            Some(address) => write!(f, " of {address}"),
            None => Ok(()),
        }
    }
}

impl Transports {
    /// Path by a transport beside RTPS to a remote endpoint, or to any endpoint of a
    /// participant. RTPS takes precedence: other transports list nothing that it reaches.
    pub fn other_transport_to(&self, endpoint: Guid) -> Option<DeliveryPath> {
        let mut added = self.added().iter();
        let found = added.find(|transport| {
            if endpoint.entity != EntityId::PARTICIPANT {
                return transport.with_endpoint(endpoint, &mut |_| ());
            }
            let mut any = false;
            transport.for_each_endpoint(&mut |known| any |= known.guid().prefix == endpoint.prefix);
            any
        });
        found.map(|transport| transport.carrier().into())
    }

    /// The transports beside RTPS that cannot carry such an endpoint, each with the reason.
    pub fn transports_without(&self, endpoint: &EndpointData) -> Vec<(String, &'static str)> {
        let added = self.added().iter();
        let lacking = added.filter_map(|transport| {
            Some((transport.name().to_owned(), transport.lacks(endpoint)?))
        });
        lacking.collect()
    }
}

/// A discovery server of ROS_DISCOVERY_SERVER.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryServerStatus {
    /// Its first address, with the port.
    pub address: String,
    /// Its participant, while it answers.
    pub prefix: Option<GuidPrefix>,
    /// How long it has answered, or has not.
    pub age: Duration,
    /// The participants that it relays.
    pub relayed: usize,
}

impl DiscoveryServerStatus {
    fn new(state: DiscoveryServerState) -> Self {
        Self {
            address: state.address,
            prefix: state.prefix,
            age: state.age.to_std().unwrap_or_default(),
            relayed: state.relayed,
        }
    }

    /// The command that starts a server at this address.
    pub fn start_command(&self) -> String {
        let (host, port) = self
            .address
            .rsplit_once(':')
            .unwrap_or((&self.address, "11811"));
        let host = host.trim_matches(['[', ']']);
        format!("fastdds discovery -i 0 -l {host} -p {port}")
    }
}

impl fmt::Display for DiscoveryServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, seconds) = (&self.address, self.age.as_secs_f64());
        if self.prefix.is_none() {
            return write!(
                f,
                "no answer from discovery server {address} since {seconds:.1} s"
            );
        }
        let relayed = self.relayed;
        write!(
            f,
            "discovery server {address} answers and relays {relayed} participants"
        )
    }
}

impl RtpsTransport {
    /// The discovery servers, in the order of ROS_DISCOVERY_SERVER. For diagnostics. Locks
    /// the participant.
    pub fn discovery_servers(&self) -> Vec<DiscoveryServerStatus> {
        let servers = DiscoveryServerState::all(&self.participant.lock());
        servers
            .into_iter()
            .map(DiscoveryServerStatus::new)
            .collect()
    }

    /// Participants that have announced themselves for some seconds without answering.
    /// For diagnostics. Locks the participant.
    pub fn silent_participants(&self) -> Vec<SilentParticipant> {
        let participant = self.participant.lock();
        let silent = participant.silent_participants();
        silent.map(|data| SilentParticipant::new(data)).collect()
    }

    /// The number of participants that announced themselves and have not answered yet.
    pub fn unvalidated_participants(&self) -> usize {
        self.participant.lock().unvalidated_count()
    }
}

impl Endpoints {
    fn totals_of(&self, counts: &ConnectionCounts) -> ConnectionTotals {
        let table = self.read();
        let readers = table.readers.values();
        ConnectionTotals {
            samples_lost: readers.map(|reader| reader.told_losses()).sum(),
            ..ConnectionTotals::from(counts)
        }
    }
}

impl Discovery {
    /// Reads the logs of same-host peers.
    pub(crate) fn poll_same_host_peers(&self, now: Instant) {
        let totals = || {
            self.shm_connections
                .counts()
                .as_ref()
                .map(|counts| self.endpoints.totals_of(counts))
        };
        self.same_host.poll(now, totals);
        if self.datagrams.discovery_log().is_some() {
            self.serve_participant(now);
        }
    }

    /// Reads a peer's log up to its next message: records appended before the message
    /// already apply.
    pub(crate) fn catch_up_with_peer(&self, now: Instant, peer: GuidPrefix) {
        for _ in 0..CATCH_UPS_MAX {
            if !self.same_host.read_log_of(now, peer) {
                return;
            }
            self.serve_participant(now);
        }
    }

    /// Whether the sender of a datagram is connecting as a same-host peer. Its datagrams
    /// are ignored meanwhile, and sent again if no connection follows.
    pub(crate) fn is_connecting_peer(&self, now: Instant, peer: GuidPrefix) -> bool {
        // Most are known.
        if !self.same_host.may_connect(peer) {
            return false;
        }
        self.poll_same_host_peers(now);
        self.catch_up_with_peer(now, peer);
        self.same_host.is_connecting_to(peer)
    }

    /// Polls the shared-memory connections.
    pub(crate) fn poll_shm_connections(&self, now: Instant) {
        if let Some(shm) = self.shm_connections.get()
            && self.shm_connections.poll(shm, now)
        {
            // A peer may send from another address now.
            self.peers_changed.fetch_add(1, Ordering::Relaxed);
            self.serve_participant(now);
        }
    }

    /// How samples travel between this context and the participant of an endpoint,
    /// including this participant, and why not by shared memory.
    pub fn delivery_path_to(&self, endpoint: Guid) -> PeerDelivery {
        match self.transports.other_transport_to(endpoint) {
            Some(path) => PeerDelivery {
                path,
                reason: Some("RTPS does not reach it".into()),
            },
            None => self.shm_connections.delivery_path_to(endpoint.prefix),
        }
    }

    /// Why two other participants do not share memory, according to their announcements;
    /// `None` if they should.
    pub fn why_no_shared_memory(&self, one: GuidPrefix, other: GuidPrefix) -> Option<String> {
        let security = self.security.0.as_ref();
        if security.is_some_and(|security| security.are_in_different_enclaves(one, other)) {
            return Some("they run with different enclaves".into());
        }
        self.shm_connections.why_not_between(one, other)
    }

    /// The connection totals that a same-host peer publishes; `None` for other
    /// peers. The local ones are current.
    pub fn connection_totals(&self, peer: GuidPrefix) -> Option<ConnectionTotals> {
        if peer == self.prefix {
            let counts = self.connection_counts();
            return counts
                .as_ref()
                .map(|counts| self.endpoints.totals_of(counts));
        }
        let totals = self.datagrams.discovery_log()?.totals(peer.0)?;
        Some(ConnectionTotals::from_words(totals))
    }

    /// Messages that the connections have carried and refused; `None` without
    /// shared memory.
    pub fn connection_counts(&self) -> Option<ConnectionCounts> {
        self.shm_connections.counts()
    }
}
