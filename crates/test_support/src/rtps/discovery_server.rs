//! Test support: a discovery server as that of Fast DDS, on the network of a
//! [`Domain`](super::domain::Domain). It relays with its own reliable writers what clients
//! announce, and only changes that name themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::discovery::spdp;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, Route};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::{DataHead, Submessage};
use pteros_rtps::writer::{NewChange, ReaderProxyConfig, Writer, WriterConfig};

use super::domain::Domain;

/// Writer and reader of SPDP, and of SEDP's two topics.
const TOPICS: [(EntityId, EntityId); 3] = [
    (EntityId::SPDP_WRITER, EntityId::SPDP_READER),
    (
        EntityId::SEDP_PUBLICATIONS_WRITER,
        EntityId::SEDP_PUBLICATIONS_READER,
    ),
    (
        EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        EntityId::SEDP_SUBSCRIPTIONS_READER,
    ),
];

/// The step in which the server looks at what has arrived.
const STEP: Duration = Duration::from_millis(5);
const ANNOUNCE_PERIOD: Duration = Duration::from_secs(3);

fn qos() -> EndpointQos {
    EndpointQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        max_blocking_time: Duration::ZERO,
        ..EndpointQos::default()
    }
}

/// The server's address on the network, which no node of the domain has.
pub fn server_address(index: u8) -> Locator {
    Locator::udp_v4([10, 0, 0, 200 + index], 11811)
}

/// A server that can be killed (dropped) and started again with the same GUID prefix.
pub struct DiscoveryServer {
    prefix: GuidPrefix,
    address: Locator,
    topics: Vec<(Writer, Reader)>,
    /// Where each client is.
    clients: BTreeMap<GuidPrefix, Vec<Locator>>,
    /// When its clients get its announcement again: at once after a new one.
    announces_at: Instant,
    /// Changes without a sample identity, which it does not relay.
    pub nameless: usize,
}

impl DiscoveryServer {
    /// The server with this id, as `fastdds discovery -i`.
    pub fn new(now: Instant, id: u8) -> Self {
        let prefix = GuidPrefix([
            0x44, 0x53, id, 0x5f, 0x45, 0x50, 0x52, 0x4f, 0x53, 0x49, 0x4d, 0x41,
        ]);
        let topics = TOPICS.map(|(writer, reader)| {
            let reader = ReaderConfig::new(prefix.with(reader), qos());
            (
                Writer::new(WriterConfig::new(prefix.with(writer), qos())),
                Reader::new(reader),
            )
        });
        let mut server = Self {
            prefix,
            address: server_address(id),
            topics: topics.into(),
            clients: BTreeMap::new(),
            announces_at: now,
            nameless: 0,
        };
        let own = server.data();
        let key = own.guid().to_bytes();
        server.write(now, 0, ChangeKind::Alive, key, own.encode());
        server
    }

    /// Its GUID prefix.
    pub fn prefix(&self) -> GuidPrefix {
        self.prefix
    }

    /// Its announcement.
    pub fn data(&self) -> ParticipantData {
        let mut data = ParticipantData::new(self.prefix);
        data.vendor = VendorId::FAST_DDS;
        data.builtin_endpoints = spdp::OUR_ENDPOINTS;
        data.metatraffic_unicast = vec![self.address];
        data.lease = Duration::from_secs(20);
        data.domain_id = Some(0);
        data.properties = vec![
            ("PARTICIPANT_TYPE".into(), "SERVER".into()),
            ("DS_VERSION".into(), "2.0".into()),
        ];
        data
    }

    fn write(
        &mut self,
        now: Instant,
        topic: usize,
        kind: ChangeKind,
        key: [u8; 16],
        payload: Bytes,
    ) {
        let writer = &mut self.topics[topic].0;
        let identity = SampleIdentity {
            writer: writer.guid(),
            sequence: writer.next_sequence(),
        };
        let change = NewChange {
            payload,
            kind,
            key_hash: Some(key),
            related_sample_identity: Some(identity),
            ..NewChange::default()
        };
        writer.write(now, change).unwrap();
    }

    /// Relays the end of a participant, as when its lease has expired here.
    pub fn drop_client(&mut self, now: Instant, client: GuidPrefix) {
        self.forget(client);
        self.relay_end(now, client);
    }

    fn forget(&mut self, client: GuidPrefix) {
        self.clients.remove(&client);
        for ((writer, reader), ids) in self.topics.iter_mut().zip(TOPICS) {
            writer.unmatch_reader(client.with(ids.1));
            reader.unmatch_writer(client.with(ids.0));
        }
    }

    fn relay_end(&mut self, now: Instant, client: GuidPrefix) {
        let key = client.with(EntityId::PARTICIPANT).to_bytes();
        let payload = ParticipantData::encode_key(client);
        self.write(now, 0, ChangeKind::DisposedUnregistered, key, payload);
    }

    /// Matches a client that announces itself, once.
    fn meet(&mut self, now: Instant, data: &ParticipantData) {
        let is_client = data.properties.iter().any(|(name, value)| {
            name == "PARTICIPANT_TYPE" && ["CLIENT", "SUPER_CLIENT"].contains(&value.as_str())
        });
        let vendor = data.vendor;
        // As it is parsed: the GUID prefixes of the tests are not those of Pteros.
        if !is_client || vendor != VendorId::FAST_DDS || self.clients.contains_key(&data.prefix) {
            return;
        }
        self.clients
            .insert(data.prefix, data.metatraffic_unicast.clone());
        self.announces_at = now;
        let route = Route::by_socket(&data.metatraffic_unicast, false);
        for ((writer, reader), ids) in self.topics.iter_mut().zip(TOPICS) {
            reader.match_writer(
                now,
                WriterProxyConfig {
                    guid: data.prefix.with(ids.0),
                    qos: qos().into(),
                    route: route.clone(),
                    vendor,
                },
            );
            writer.match_reader(
                now,
                ReaderProxyConfig {
                    guid: data.prefix.with(ids.1),
                    qos: qos().into(),
                    route: route.clone(),
                    expects_inline_qos: false,
                    content_filter: None,
                    payload_form: None,
                    vendor,
                },
            );
        }
    }

    fn receive(&mut self, now: Instant, bytes: &[u8]) {
        let Ok(messages) = MessageReader::new(bytes, self.prefix) else {
            return;
        };
        for (source, message) in messages {
            if let Submessage::Data(data) = &message
                && data.writer == EntityId::SPDP_WRITER
                && source.vendor == VendorId::FAST_DDS
                && let Ok(data) = ParticipantData::parse(data.payload)
            {
                self.meet(now, &data);
            }
            for ((writer, reader), ids) in self.topics.iter_mut().zip(TOPICS) {
                match &message {
                    Submessage::Data(m) if m.writer == ids.0 => reader.handle_data(now, &source, m),
                    Submessage::Heartbeat(m) if m.writer == ids.0 => {
                        reader.handle_heartbeat(now, &source, m);
                    }
                    Submessage::Gap(m) if m.writer == ids.0 => reader.handle_gap(now, &source, m),
                    Submessage::AckNack(m) if m.writer == ids.0 => {
                        writer.handle_acknack(now, source.prefix, m);
                    }
                    _ => {}
                }
            }
        }
        for topic in 0..TOPICS.len() {
            while let Some(change) = self.topics[topic].1.poll_sample() {
                let identity = change.related_sample_identity;
                if identity.map(|of| (of.writer, of.sequence))
                    != Some((change.writer, change.sequence))
                {
                    self.nameless += 1;
                    continue;
                }
                let named = match topic {
                    0 => ParticipantData::parse_key(&change.payload),
                    _ => EndpointData::parse_key(&change.payload),
                };
                let key = change.key_hash.map(Guid::from_bytes).or(named);
                let key = key.expect("a key");
                if topic == 0 && change.kind != ChangeKind::Alive {
                    self.forget(key.prefix);
                }
                self.write(now, topic, change.kind, key.to_bytes(), change.payload);
            }
        }
    }

    fn announce(&self, domain: &mut Domain) {
        let (writer, reader) = TOPICS[0];
        let head = DataHead {
            reader,
            writer,
            sequence: SequenceNumber::FIRST,
            ..DataHead::default()
        };
        for to in self.clients.values().flatten() {
            let mut out = Outbox::new();
            let mut message = out.begin(self.prefix, &Arc::from([*to]), 60_000);
            message.data(&head, &self.data().encode());
            message.finish();
            for datagram in out.iter() {
                domain.transmit(self.address, *to, &datagram.parts.concat());
            }
        }
    }

    fn transmit(&mut self, domain: &mut Domain) {
        let now = domain.now;
        if self.announces_at <= now {
            self.announces_at = now + ANNOUNCE_PERIOD;
            self.announce(domain);
        }
        for (writer, reader) in &mut self.topics {
            writer.handle_timeout(now);
            reader.handle_timeout(now);
            for _ in 0..100 {
                let mut out = Outbox::new();
                let more =
                    writer.poll_transmit(now, &mut out) | reader.poll_transmit(now, &mut out);
                for datagram in out.iter() {
                    for to in datagram.to.iter() {
                        domain.transmit(self.address, *to, &datagram.parts.concat());
                    }
                }
                if !more {
                    break;
                }
            }
        }
    }
}

/// Runs the domain and these servers for a while.
pub fn run_with(domain: &mut Domain, servers: &mut [&mut DiscoveryServer], span: Duration) {
    let end = domain.now + span;
    while domain.now < end {
        domain.run_for(STEP);
        for (to, bytes) in std::mem::take(&mut domain.undelivered) {
            for server in servers.iter_mut().filter(|server| server.address == to) {
                server.receive(domain.now, &bytes);
            }
        }
        for server in servers.iter_mut() {
            server.transmit(domain);
        }
    }
}
