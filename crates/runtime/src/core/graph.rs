//! The graph of a context: announces the local nodes in `ros_discovery_info`, and
//! passes on the node lists of remote participants.

use std::sync::Arc;

use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_msg::cdr::{Representation, payload_len, to_payload};
use pteros_msg::message::Message;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use pteros_rtps::time::Instant;
use pteros_rtps::user_data::{ANY_TYPE_HASH, type_hash_entry};
use pteros_rtps::writer::PayloadForm;

use crate::core::Core;
use crate::core::discovery::Discovery;
use crate::core::matching::EndpointSpec;
use crate::endpoints::reader::{DeliveryForm, ReaderEndpoint};
use crate::endpoints::writer::WriterEndpoint;
use crate::graph::Graph;
use crate::graph::{ANNOUNCE_DELAY, DISCOVERY_TOPIC, NodeKey, warn_duplicate_name};
use crate::names::node_path;
use crate::node_list::GidLayout;
use crate::outbound::OutboundMessage;
use crate::sample::{SampleBody, SharedValue};
use crate::scheduler::timeout_queue::TimeoutOwner;

impl Graph {
    /// Whether this writer of node lists may match a reader now, and in which form.
    /// `None` while the layout of the reader's participant is unknown, and if the reader
    /// is matched.
    pub(crate) fn node_list_form(
        &self,
        writer: &WriterEndpoint,
        reader: &EndpointData,
        vendor: VendorId,
    ) -> Option<Option<PayloadForm>> {
        if writer.is_matched_with(reader.guid) {
            return None;
        }
        let layout = self.layout_for(reader, vendor);
        if layout.is_none() {
            tracing::debug!(
                reader = %reader.guid,
                "no type hash: node lists go to it after the first one of its participant"
            );
        }
        layout.map(GidLayout::payload_form)
    }
}

impl Discovery {
    /// Handles the node lists of remote peers.
    pub(crate) fn handle_graph_samples(&self, reader: &ReaderEndpoint) {
        let mut any = false;
        let mut senders = Vec::new();
        while let Some(item) = self.taking.take(reader) {
            let SampleBody::Serialized(payload) = item.body else {
                continue;
            };
            let sender = item.meta.publisher.prefix;
            // Messages sent before it became a same-host peer may arrive after the
            // records of its log.
            let (is_same_host_peer, account) = {
                let participant = self.participant().lock();
                let account = participant.memory_account(sender);
                (participant.is_same_host_peer(sender), account)
            };
            if is_same_host_peer {
                continue;
            }
            match self.graph.handle_node_list(sender, &payload, &account) {
                Ok(outcome) => {
                    any |= outcome.is_accepted;
                    senders.extend(outcome.releases_readers.then_some(sender));
                }
                Err(error) => self
                    .taking
                    .note_undecodable(reader, item.meta.publisher, &error),
            }
        }
        if !senders.is_empty() {
            self.match_graph_readers(&senders);
        }
        if any {
            self.scheduler.wake_waiters();
        }
    }

    /// Matches the node-list readers that waited for the layout of these participants.
    fn match_graph_readers(&self, participants: &[GuidPrefix]) {
        let Some(writer) = self.graph_writer.get() else {
            return;
        };
        let mut participant = self.participant().lock();
        for prefix in participants {
            participant.report_matches_again(writer.guid(), *prefix);
        }
        drop(participant);
        self.serve_participant(self.platform.now());
    }

    pub(crate) fn graph_changed(&self) {
        self.graph.note_change();
        self.scheduler.wake_waiters();
        let at = self.platform.now().after(ANNOUNCE_DELAY);
        self.scheduler.schedule(TimeoutOwner::Graph, Some(at));
    }

    /// Publishes the local node list.
    pub(crate) fn announce_graph(&self, now: Instant) {
        let list = {
            // So an older list never replaces a newer one, and never follows the
            // endpoints of a node that it lacks.
            let _order = self.endpoints.begin_match();
            let list = self.graph.node_list();
            let payload = to_payload(&list, Representation::Xcdr1);
            self.same_host.append_node_list(now, &payload);
            for transport in self.transports.added() {
                transport.announce_nodes(now, &list);
            }
            list
        };
        let Some(writer) = self.graph_writer.get() else {
            return;
        };
        if writer.take_wants_connections() {
            self.shm_connections.connect_on_demand(now, writer.guid());
        }
        let mut message = NodeListMessage(list);
        let source = self.platform.wall_clock();
        let outcome = self.publishing.overwrite(writer, &mut message, source);
        if let Err(error) = outcome {
            tracing::debug!(%error, "announce nodes");
        }
    }

    /// Adds a node of this context to the graph.
    pub fn add_node(&self, name: &str, namespace: &str) -> NodeKey {
        let (key, duplicate) = self.graph.add_node(name, namespace);
        if let Some(tracer) = &self.tracer {
            tracer.name_node(key, &node_path(namespace, name));
        }
        if let Some(whose) = duplicate {
            warn_duplicate_name(&node_path(namespace, name), whose);
        }
        self.graph_changed();
        key
    }

    /// Removes a node from the graph of all peers.
    pub fn remove_node(&self, key: NodeKey) {
        self.graph.remove_node(key);
        self.graph_changed();
    }

    /// Assigns an endpoint to a node.
    pub fn attach_endpoint(&self, key: NodeKey, data: &Arc<EndpointData>) {
        self.graph.note_own_endpoint(data);
        if let Some(tracer) = &self.tracer {
            tracer.name_owner(data.guid.entity, key);
        }
        self.graph.attach_endpoint(key, data.guid);
        self.attach_endpoint_on_transports(key, data.guid);
        self.graph_changed();
    }

    /// Removes an endpoint from a node.
    pub fn detach_endpoint(&self, key: NodeKey, guid: Guid) {
        self.graph.detach_endpoint(key, guid);
        self.graph_changed();
    }
}

impl Core {
    /// Creates the endpoints of `ros_discovery_info`.
    pub(crate) fn create_graph_endpoints(&self) {
        let hash = ParticipantEntitiesInfo::TYPE_HASH;
        let qos = EndpointQos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal,
            history: History::KeepLast(1),
            user_data: type_hash_entry(hash),
            ..EndpointQos::default()
        };
        let spec = |qos: EndpointQos| EndpointSpec {
            topic: DISCOVERY_TOPIC.into(),
            type_name: ParticipantEntitiesInfo::dds_type_name(),
            qos,
            ..EndpointSpec::default()
        };
        let reader_qos = EndpointQos {
            history: History::KeepAll,
            // This reader accepts the layouts of all distributions.
            user_data: [&qos.user_data, ANY_TYPE_HASH.as_bytes()].concat(),
            ..qos.clone()
        };
        let form = DeliveryForm::Bytes;
        let reader = self.create_reader(spec(reader_qos), form, true);
        let writer = self.create_writer(spec(qos));
        if let (Ok(writer), Ok(reader)) = (writer, reader) {
            reader.mark_as_graph_reader();
            let _ = self.discovery().graph_writer.set(writer);
        }
    }
}

struct NodeListMessage(ParticipantEntitiesInfo);

impl OutboundMessage for NodeListMessage {
    fn message_type(&self) -> std::any::TypeId {
        std::any::TypeId::of::<ParticipantEntitiesInfo>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> bytes::Bytes {
        to_payload(&self.0, Representation::Xcdr1).into()
    }

    fn serialized_len(&mut self) -> usize {
        payload_len(&self.0, Representation::Xcdr1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_rtps::id::EntityId;

    use crate::CoreOptions;
    use crate::platform::SystemPlatform;
    use crate::user_data::user_data_value;

    /// Humble hangs with lists of 16-byte gids. A bridge for Jazzy announces no hash
    /// either, and reads only 16-byte gids.
    #[test]
    fn node_lists_go_out_in_the_layout_in_which_the_receiver_writes_its_own() {
        let options = CoreOptions {
            domain_id: 185,
            local_only: true,
            multicast: false,
            ..CoreOptions::default()
        };
        let core = Core::open(Arc::new(SystemPlatform::new()), options).expect("open");
        let graph = &core.discovery().graph;
        let reader = |n: u8, user_data: &[u8]| {
            let guid =
                GuidPrefix([n; 12]).with(EntityId::new([0, 0, 1], EntityId::KIND_READER_NO_KEY));
            let qos = EndpointQos {
                user_data: user_data.to_vec(),
                ..EndpointQos::default()
            };
            EndpointData::new(guid, DISCOVERY_TOPIC, "ParticipantEntitiesInfo_", qos)
        };
        let list = |n: u8, layout: GidLayout| {
            let info = ParticipantEntitiesInfo {
                gid: pteros_interfaces::rmw_dds_common::msg::Gid { data: [n; 16] },
                ..ParticipantEntitiesInfo::default()
            };
            let payload = bytes::Bytes::from(to_payload(&info, Representation::Xcdr1));
            layout
                .payload_form()
                .map_or(payload.clone(), |form| form.0(&payload))
        };
        let layout_for = |reader: &EndpointData| graph.layout_for(reader, VendorId::FAST_DDS);
        let hashed = reader(1, b"typehash=RIHS01_ab;");
        assert_eq!(layout_for(&hashed), Some(GidLayout::Bytes16));
        let own = graph.layout_for(&reader(1, b";"), VendorId::PTEROS);
        assert_eq!(own, Some(GidLayout::Bytes16));
        for (n, layout) in [(2, GidLayout::Bytes24), (3, GidLayout::Bytes16)] {
            let handle = |n: u8, layout| {
                let (sender, payload) = (GuidPrefix([n; 12]), list(n, layout));
                let account = core.discovery().participant().lock().memory_account(sender);
                graph.handle_node_list(sender, &payload, &account)
            };
            assert_eq!(layout_for(&reader(n, b"")), None);
            assert!(handle(n, layout).unwrap().releases_readers);
            assert_eq!(layout_for(&reader(n, b"")), Some(layout));
            // The first list decides, also one received before the reader is discovered.
            for later in [GidLayout::Bytes16, GidLayout::Bytes24] {
                assert!(!handle(n, later).unwrap().releases_readers);
            }
            assert_eq!(layout_for(&reader(n, b"")), Some(layout));
            handle(n + 10, layout).unwrap();
            assert_eq!(layout_for(&reader(n + 10, b"")), Some(layout));
        }
    }

    /// rmw_cyclonedds and rmw_fastrtps print a warning for an endpoint without it.
    #[test]
    fn every_endpoint_is_announced_with_user_data() {
        let options = CoreOptions {
            domain_id: 188,
            local_only: true,
            multicast: false,
            ..CoreOptions::default()
        };
        let core = Core::open(Arc::new(SystemPlatform::new()), options).expect("open");
        let spec = EndpointSpec {
            topic: "rt/unknown_type".into(),
            type_name: "Unknown".into(),
            ..EndpointSpec::default()
        };
        let reader = core.create_reader(spec.clone(), DeliveryForm::Bytes, true);
        let writer = core.create_writer(spec);
        assert!(reader.is_ok() && writer.is_ok());
        let table = core.discovery().endpoints.read();
        let writers = table.writers.values().map(|writer| &writer.data);
        let readers = table.readers.values().map(|reader| &reader.data);
        let announced: Vec<&Arc<EndpointData>> = writers.chain(readers).collect();
        assert_eq!(announced.len(), 4);
        let hash = ParticipantEntitiesInfo::TYPE_HASH.to_string();
        for data in announced {
            assert!(!data.qos.user_data.is_empty(), "{}", data.topic);
            if data.topic == DISCOVERY_TOPIC {
                let announced = user_data_value(&data.qos.user_data, "typehash");
                assert_eq!(announced.as_deref(), Some(hash.as_str()));
            }
        }
    }
}
