//! SPDP writer of a participant (RTPS 2.5 §8.5.3.2, SPDPbuiltinParticipantWriter): our own
//! announcement, where it goes, and the datagrams that carry it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::{ParticipantData, ProductVersion};
use crate::discovery::question::Question;
use crate::discovery::spdp::{self, AnnouncementScope, Announcer};
use crate::id::{EntityId, GuidPrefix, ProtocolVersion, VendorId};
use crate::locator::{IpAddress, Locator};
use crate::outbox::Outbox;
use crate::seq::{SampleIdentity, SequenceNumber};
use crate::stats::Tally;
use crate::time::{Duration, Instant};

use super::discovery_servers::DiscoveryServers;
use super::peer::Peers;
use super::same_host_announcement::{Announcement, AnnouncementQueue};
use super::{ParticipantConfig, ParticipantStats};

/// The largest discovery datagram. IP fragments an announcement that exceeds the
/// MTU, as with Fast DDS.
const DATAGRAM_BYTES: usize = 63_000;

/// Announces one participant.
pub struct SpdpWriter {
    /// Our announcement.
    pub(super) data: ParticipantData,
    pub(super) announcer: Announcer,
    pub(super) announce_to: Arc<[Locator]>,
    /// Bound UDP ports of this host, if known.
    bound_ports: Option<Vec<u16>>,
    /// Announcements to the participants of this host.
    pub(super) on_host: AnnouncementQueue,
    /// The discovery servers, whose parameters our announcement has.
    servers: Option<DiscoveryServers>,
}

impl SpdpWriter {
    pub(super) fn new(now: Instant, config: &ParticipantConfig) -> Self {
        let data = announcement(config);
        let mut own = Self {
            announcer: Announcer::new(now, &data, announce_period(config)),
            announce_to: Arc::from(config.announce_to.as_slice()),
            bound_ports: None,
            on_host: AnnouncementQueue::new(config.announces_on_host),
            servers: config.discovery_servers.clone(),
            data,
        };
        if own.servers.is_some() {
            own.announcer.replace(&own.announced());
        }
        own
    }

    /// Delays the first announcement, when a peer is about to learn of us without
    /// it.
    pub fn delay_first_announcement(&mut self, at: Instant) {
        self.announcer.start_at(at);
    }

    /// Whether an announcement is due.
    pub fn is_announcement_due(&self, now: Instant) -> bool {
        self.announcer.next_timeout() <= now
    }

    /// Sets the bound UDP ports of this host; `None` if unknown.
    ///
    /// Announcements skip the unbound ports and our own until the next call. A
    /// process that binds one later announces itself, and is answered.
    pub fn set_bound_ports(&mut self, ports: Option<Vec<u16>>) {
        self.bound_ports = ports;
    }

    /// Builds our announcement again, for the participants of this host and those that
    /// the owner tells. The next periodic one follows [`Announcer::update`].
    pub(super) fn rebuild(&mut self, config: &ParticipantConfig) {
        self.data = announcement(config);
        let data = &self.data;
        self.on_host
            .push(|| Announcement::Participant(data.encode()));
    }

    /// Announces our announcement anew at once, with a startup burst.
    pub(super) fn restart(&mut self, now: Instant) {
        let data = self.announced();
        self.announcer.restart(now, &data);
    }

    /// Announces our changed announcement.
    pub(super) fn update(&mut self, now: Instant) {
        let data = self.announced();
        self.announcer.update(now, &data);
    }

    /// Our announcement as others receive it. Discovery servers accept participants of
    /// Fast DDS only. Other Pteros participants know us by our GUID prefix.
    fn announced(&self) -> ParticipantData {
        let mut data = self.data.clone();
        if let Some(servers) = &self.servers {
            data.vendor = VendorId::FAST_DDS;
            data.properties.extend(servers.properties());
        }
        data
    }

    /// The identity of a change of ours, which discovery servers require.
    fn identity(&self, sequence: SequenceNumber) -> Option<SampleIdentity> {
        let writer = self.data.prefix.with(EntityId::SPDP_WRITER);
        let identity = SampleIdentity { writer, sequence };
        self.servers.as_ref().map(|_| identity)
    }

    /// Sends the periodic announcement, when due, to the configured locators and to
    /// those participants that do not listen there.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        peers: &Peers,
        stats: &mut ParticipantStats,
        out: &mut Outbox,
    ) {
        if out.is_full() {
            return;
        }
        let is_remote_host = |at: &Locator| at.is_unicast() && !at.is_loopback();
        let peer_counts = peers.peer_counts(self.announce_to.iter().any(is_remote_host));
        let Some(scope) = self.announcer.take_due(now, peer_counts) else {
            return;
        };
        stats.announcements_sent.tally();
        if scope == AnnouncementScope::NetworkPeers {
            for (prefix, peer) in peers.network_peers() {
                self.write_announcement(&peer.metatraffic.locators, Some(prefix), None, out);
            }
            return;
        }
        let targets = self.locators(peers);
        if scope == AnnouncementScope::UnknownPeers {
            let strange = targets.iter().filter(|at| !peers.has_peer_at(at));
            self.announce_at(&strange.copied().collect(), out);
            return;
        }
        self.announce_at(&targets, out);
        for (prefix, route) in peers.not_listening_at(&targets) {
            self.write_announcement(&route.locators, Some(prefix), None, out);
        }
    }

    fn announce_at(&self, locators: &Arc<[Locator]>, out: &mut Outbox) {
        if !locators.is_empty() {
            self.write_announcement(locators, None, None, out);
        }
    }

    /// The announcement locators that may have unknown participants: without those
    /// of same-host peers and unbound ports.
    fn locators(&self, peers: &Peers) -> Arc<[Locator]> {
        let is_pointless = |at: &Locator| {
            at.is_loopback() && (peers.has_same_host_peer_at(at.port) || self.is_unbound(at.port))
        };
        if !self.announce_to.iter().any(is_pointless) {
            return self.announce_to.clone();
        }
        let locators = self.announce_to.iter().filter(|at| !is_pointless(at));
        locators.copied().collect()
    }

    /// Whether a port of this host is unbound, or only we are bound to it.
    fn is_unbound(&self, port: u32) -> bool {
        let Some(bound) = &self.bound_ports else {
            return false;
        };
        let is_ours = |at: &Locator| at.port == port;
        !bound.iter().any(|at| u32::from(*at) == port)
            || self.data.metatraffic_unicast.iter().any(is_ours)
    }

    /// Whether announcements go to this address.
    pub(super) fn is_static_peer(&self, ip: IpAddress) -> bool {
        let targets = self.announce_to.iter().filter(|at| at.is_unicast());
        let mut ips = targets.filter_map(|at| at.to_udp());
        ips.any(|(target, _)| target == ip)
    }

    pub(super) fn write_announcement(
        &self,
        to: &Arc<[Locator]>,
        destination: Option<GuidPrefix>,
        question: Option<Question>,
        out: &mut Outbox,
    ) {
        let (payload, sequence) = self.announcer.change();
        let mut message = out.begin(self.data.prefix, to, DATAGRAM_BYTES);
        if let Some(prefix) = destination {
            message.info_destination(prefix);
        }
        let mut head = spdp::data_head(sequence);
        head.inline_qos.related_sample_identity = self.identity(sequence);
        message.data(&head, payload);
        if let Some(question) = question {
            question.write(&mut message);
        }
        message.finish();
    }

    pub(super) fn write_question(
        &self,
        to: &Arc<[Locator]>,
        prefix: GuidPrefix,
        question: &Question,
        out: &mut Outbox,
    ) {
        let mut message = out.begin(self.data.prefix, to, DATAGRAM_BYTES);
        message.info_destination(prefix);
        question.write(&mut message);
        message.finish();
    }

    /// Sends the SPDP dispose to everyone who may know us.
    pub(super) fn transmit_dispose(&mut self, peers: &Peers, out: &mut Outbox) {
        let locators = core::iter::once((None, self.locators(peers)));
        if self.servers.is_some() {
            // Their reliable readers wait for a number that is left out.
            let all = locators.chain(disposed_at(peers));
            self.write_dispose(all, out);
            return;
        }
        self.write_dispose(locators, out);
        self.transmit_dispose_to_peers(peers, out);
    }

    /// Sends the SPDP dispose to the discovered participants.
    pub(super) fn transmit_dispose_to_peers(&mut self, peers: &Peers, out: &mut Outbox) {
        self.write_dispose(disposed_at(peers), out);
    }

    pub(super) fn write_dispose(
        &mut self,
        to: impl IntoIterator<Item = (Option<GuidPrefix>, Arc<[Locator]>)>,
        out: &mut Outbox,
    ) {
        let guid = self.data.prefix.with(EntityId::PARTICIPANT);
        let sequence = self.announcer.next_dispose_number();
        let mut head = spdp::dispose_head(sequence, guid);
        head.inline_qos.related_sample_identity = self.identity(sequence);
        let payload = ParticipantData::encode_key(self.data.prefix);
        for (destination, to) in to.into_iter().filter(|(_, to)| !to.is_empty()) {
            let mut message = out.begin(self.data.prefix, &to, DATAGRAM_BYTES);
            if let Some(prefix) = destination {
                message.info_destination(prefix);
            }
            message.data(&head, &payload);
            message.finish();
        }
    }
}

/// The discovered participants, and where an SPDP dispose reaches each.
fn disposed_at(peers: &Peers) -> impl Iterator<Item = (Option<GuidPrefix>, Arc<[Locator]>)> + '_ {
    let peers = peers.network_peers();
    peers.map(|(prefix, peer)| (Some(prefix), peer.metatraffic.locators.clone()))
}

/// At least four announcements per lease, so that single losses do not end it.
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
