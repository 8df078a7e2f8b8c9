//! ROS graph cache: nodes, and the endpoints that belong to them.
//!
//! DDS discovery reports participants and endpoints. The topic `ros_discovery_info`
//! assigns endpoints to the nodes of a participant (rmw_dds_common). Each participant
//! sends its whole list on every change. The own list is sent with a short delay after
//! the first change, so that the start of a node costs one message. Gids identify
//! endpoints.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pteros_interfaces::rmw_dds_common::msg::{Gid, NodeEntitiesInfo, ParticipantEntitiesInfo};
use pteros_msg::cdr::DecodeError;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::memory_budget::{MemoryAccount, RecordCharge};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::Duration;

use crate::lock::{Mutex, rank};
use crate::names::node_path;
pub use crate::node_key::NodeKey;
use crate::node_list::{GidLayout, NODES_MAX, NodeList, NodeRecord, decode_nodes};
use crate::transport::RemoteEndpointRecord;
use crate::transport::transports::Transports;
use crate::user_data::user_data_value;

/// DDS name of the topic, outside of ROS's name space.
pub const DISCOVERY_TOPIC: &str = "ros_discovery_info";

/// How long changes are collected before they are announced.
pub(crate) const ANNOUNCE_DELAY: Duration = Duration::from_millis(1);

/// A node, local or remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Name without namespace.
    pub name: String,
    /// `/` or `/some/namespace`.
    pub namespace: String,
    /// The participant that contains it.
    pub participant: GuidPrefix,
    /// The enclave of the participant, if it announced one.
    pub enclave: Option<String>,
    /// The endpoints of its subscriptions, services included.
    pub readers: Vec<Guid>,
    /// The endpoints of its publishers, services included.
    pub writers: Vec<Guid>,
}

/// An endpoint, local or remote.
#[derive(Clone, Debug)]
pub struct GraphEndpoint {
    /// Everything it announced.
    pub data: Arc<EndpointData>,
    /// Whether it belongs to this context.
    pub local: bool,
}

/// The graph cache. Thread-safe; calls return copies.
///
/// Remote endpoints are stored in the transports, not here.
pub struct Graph {
    pub(crate) own_prefix: GuidPrefix,
    enclave: String,
    transports: Arc<Transports>,
    state: Mutex<GraphState, rank::GraphState>,
    revision: AtomicU64,
}

#[derive(Default)]
struct GraphState {
    next_key: u64,
    own_nodes: Vec<(NodeKey, NodeRecord)>,
    participants: HashMap<GuidPrefix, Arc<ParticipantData>>,
    /// Former participants, at most [`DEPARTED_MAX`]; the oldest is dropped.
    departed: VecDeque<(GuidPrefix, VendorId)>,
    nodes: HashMap<GuidPrefix, Vec<NodeRecord>>,
    /// Layout of the node lists of each participant of other vendors, at most
    /// [`NODES_MAX`].
    gid_layouts: HashMap<GuidPrefix, ListLayout>,
    /// The charge of each participant's node list to its receive memory.
    node_charges: HashMap<GuidPrefix, RecordCharge>,
    /// A list without memory was logged.
    told_no_memory: bool,
    own_endpoints: HashMap<Guid, Arc<EndpointData>>,
}

/// Known layout of a participant's node lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListLayout {
    /// A reader without a type hash waits for its first list.
    Awaited,
    Known(GidLayout),
}

/// Outcome of a received node list.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListOutcome {
    /// The graph has changed.
    pub(crate) is_accepted: bool,
    /// The sender's readers waited for its layout.
    pub(crate) releases_readers: bool,
}

/// Former participants whose vendor is remembered, 1 kB.
const DEPARTED_MAX: usize = 64;

impl GraphState {
    fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.nodes.remove(&prefix);
        self.gid_layouts.remove(&prefix);
        self.node_charges.remove(&prefix);
        if let Some(data) = self.participants.remove(&prefix) {
            self.departed.retain(|(departed, _)| *departed != prefix);
            if self.departed.len() >= DEPARTED_MAX {
                self.departed.pop_front();
            }
            self.departed.push_back((prefix, data.vendor));
        }
    }

    fn vendor_of(&self, prefix: GuidPrefix) -> Option<VendorId> {
        if let Some(data) = self.participants.get(&prefix) {
            return Some(data.vendor);
        }
        let departed = self.departed.iter().find(|(one, _)| *one == prefix);
        departed.map(|(_, vendor)| *vendor)
    }
}

impl Graph {
    pub(crate) fn new(
        own_prefix: GuidPrefix,
        transports: Arc<Transports>,
        enclave: String,
    ) -> Self {
        Self {
            own_prefix,
            enclave,
            transports,
            state: Mutex::default(),
            revision: AtomicU64::new(1),
        }
    }

    /// Revision number, which grows with every change of the graph.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn note_change(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    /// All nodes, local ones first.
    pub fn nodes(&self) -> Vec<GraphNode> {
        let state = self.state.lock();
        let own = state
            .own_nodes
            .iter()
            .map(|(_, node)| node.to_graph(self.own_prefix, Some(self.enclave.clone())));
        let others = state.nodes.iter().flat_map(|(prefix, nodes)| {
            let enclave = state.participants.get(prefix).and_then(|p| enclave_of(p));
            nodes
                .iter()
                .map(move |node| node.to_graph(*prefix, enclave.clone()))
        });
        own.chain(others).collect()
    }

    /// All endpoints except the graph's own, local ones first.
    pub fn endpoints(&self) -> Vec<GraphEndpoint> {
        self.endpoints_if(|_, _| true)
    }

    /// The endpoints that `wanted` accepts, local ones first, without the graph's
    /// own.
    ///
    /// `wanted` gets the GUID and the DDS topic name. Cheaper than filtering
    /// [`Graph::endpoints`], since remote data is only assembled for accepted ones.
    pub fn endpoints_if(&self, wanted: impl Fn(Guid, &str) -> bool) -> Vec<GraphEndpoint> {
        let wanted = |guid, topic: &str| topic != DISCOVERY_TOPIC && wanted(guid, topic);
        let mut found: Vec<_> = {
            let state = self.state.lock();
            let own = state.own_endpoints.values();
            own.filter(|data| wanted(data.guid, &data.topic))
                .map(|data| GraphEndpoint {
                    data: data.clone(),
                    local: true,
                })
                .collect()
        };
        for transport in self.transports.iter() {
            transport.for_each_endpoint(&mut |known| {
                if wanted(known.guid(), known.topic()) {
                    found.push(remote_endpoint(known));
                }
            });
        }
        found
    }

    /// All endpoints on a DDS topic name, local ones first.
    pub fn endpoints_on(&self, topic: &str) -> Vec<GraphEndpoint> {
        let mut found: Vec<_> = {
            let state = self.state.lock();
            let own = state.own_endpoints.values();
            own.filter(|data| data.topic == topic)
                .map(|data| GraphEndpoint {
                    data: data.clone(),
                    local: true,
                })
                .collect()
        };
        for transport in self.transports.iter() {
            transport.for_each_endpoint_on(topic, &mut |known| found.push(remote_endpoint(known)));
        }
        found
    }

    /// Number of writers, or of readers, on a DDS topic name, local ones included.
    ///
    /// Does not allocate.
    pub fn count_endpoints(&self, topic: &str, counts_writers: bool) -> usize {
        let is_counted = |guid: Guid| guid.entity.is_writer() == counts_writers;
        let mut count = {
            let state = self.state.lock();
            let own = state.own_endpoints.values();
            own.filter(|data| data.topic == topic && is_counted(data.guid))
                .count()
        };
        for transport in self.transports.iter() {
            transport.for_each_endpoint_on(topic, &mut |known| {
                count += usize::from(is_counted(known.guid()));
            });
        }
        count
    }

    /// Whether an endpoint exists, local or remote.
    pub fn has_endpoint(&self, guid: Guid) -> bool {
        self.state.lock().own_endpoints.contains_key(&guid)
            || self.with_remote(guid, |_| ()).is_some()
    }

    /// USER_DATA of a remote endpoint.
    pub(crate) fn user_data_of(&self, guid: Guid) -> Option<Vec<u8>> {
        self.with_remote(guid, |known| known.user_data())
    }

    fn with_remote<T>(
        &self,
        guid: Guid,
        read: impl Fn(&dyn RemoteEndpointRecord) -> T,
    ) -> Option<T> {
        let mut found = None;
        let mut transports = self.transports.iter();
        transports
            .any(|transport| transport.with_endpoint(guid, &mut |known| found = Some(read(known))));
        found
    }

    /// Calls `see` with the DDS topic and type name of every endpoint except the
    /// graph's own.
    ///
    /// Nothing is copied. `see` must not call the graph.
    pub fn for_each_topic(&self, mut see: impl FnMut(&str, &str)) {
        let mut see = |topic: &str, ty: &str| {
            if topic != DISCOVERY_TOPIC {
                see(topic, ty);
            }
        };
        for data in self.state.lock().own_endpoints.values() {
            see(&data.topic, &data.type_name);
        }
        for transport in self.transports.iter() {
            transport.for_each_endpoint(&mut |known| see(known.topic(), known.type_name()));
        }
    }

    /// All writers of publisher groups, with their group.
    pub(crate) fn grouped_writers(&self) -> Vec<(Guid, Guid)> {
        let of = |group: Option<Guid>, guid: Guid| {
            let group = group.filter(|_| guid.entity.is_writer())?;
            Some((group, guid))
        };
        let state = self.state.lock();
        let own = state.own_endpoints.values();
        let mut found: Vec<_> = own.filter_map(|data| of(data.group, data.guid)).collect();
        drop(state);
        for transport in self.transports.iter() {
            transport.for_each_endpoint(&mut |known| found.extend(of(known.group(), known.guid())));
        }
        found
    }

    /// The remote participants.
    pub fn participants(&self) -> Vec<Arc<ParticipantData>> {
        self.state.lock().participants.values().cloned().collect()
    }

    /// One remote participant.
    pub fn participant(&self, prefix: GuidPrefix) -> Option<Arc<ParticipantData>> {
        self.state.lock().participants.get(&prefix).cloned()
    }

    /// Vendor of a remote participant, or of a former one, whose sample may still be
    /// queued in a reader.
    pub(crate) fn vendor_of(&self, prefix: GuidPrefix) -> Option<VendorId> {
        self.state.lock().vendor_of(prefix)
    }

    pub(crate) fn handle_participant_event(&self, event: &ParticipantEvent) {
        let mut state = self.state.lock();
        match event {
            ParticipantEvent::ParticipantDiscovered(data)
            | ParticipantEvent::ParticipantChanged(data) => {
                state.participants.insert(data.prefix, data.clone());
            }
            ParticipantEvent::ParticipantLost { prefix, .. } => {
                state.remove_participant(*prefix);
            }
            ParticipantEvent::EndpointDiscovered(_)
            | ParticipantEvent::EndpointChanged { .. }
            | ParticipantEvent::EndpointLost(_)
            | ParticipantEvent::SourceRefused { .. }
            | ParticipantEvent::ParticipantSilent { .. }
            | ParticipantEvent::ParticipantReturned { .. }
            | ParticipantEvent::TypeObjectsReceived => {}
            _ => return,
        }
        drop(state);
        self.note_change();
    }

    pub(crate) fn note_own_endpoint(&self, data: &Arc<EndpointData>) {
        let mut state = self.state.lock();
        state.own_endpoints.insert(data.guid, data.clone());
        drop(state);
        self.note_change();
    }

    /// Updates the announced data of a local endpoint, if a node has it.
    pub(crate) fn change_own_endpoint(&self, data: &Arc<EndpointData>) {
        let is_known = self.state.lock().own_endpoints.contains_key(&data.guid);
        if is_known {
            self.note_own_endpoint(data);
        }
    }

    /// Adds a local node. Returns the owner of another node with the same name.
    pub(crate) fn add_node(&self, name: &str, namespace: &str) -> (NodeKey, Option<&'static str>) {
        let mut state = self.state.lock();
        state.next_key += 1;
        let key = NodeKey::new(state.next_key);
        let node = NodeRecord {
            name: name.into(),
            namespace: namespace.into(),
            ..NodeRecord::default()
        };
        let duplicate = state.duplicate_owner(&node);
        state.own_nodes.push((key, node));
        (key, duplicate)
    }

    /// Removes a local node.
    pub(crate) fn remove_node(&self, key: NodeKey) {
        self.state.lock().own_nodes.retain(|(k, _)| *k != key);
    }

    /// Assigns an endpoint to a local node.
    pub(crate) fn attach_endpoint(&self, key: NodeKey, guid: Guid) {
        self.with_node(key, |node| {
            let list = if guid.entity.is_writer() {
                &mut node.writers
            } else {
                &mut node.readers
            };
            list.push(guid);
        });
    }

    /// Namespace and name of a local node.
    pub(crate) fn node_name(&self, key: NodeKey) -> Option<(String, String)> {
        self.with_node(key, |node| (node.namespace.clone(), node.name.clone()))
    }

    /// Removes an endpoint, and from its node.
    pub(crate) fn detach_endpoint(&self, key: NodeKey, guid: Guid) {
        self.state.lock().own_endpoints.remove(&guid);
        self.with_node(key, |node| {
            node.readers.retain(|g| *g != guid);
            node.writers.retain(|g| *g != guid);
        });
    }

    fn with_node<R>(&self, key: NodeKey, access: impl FnOnce(&mut NodeRecord) -> R) -> Option<R> {
        let mut state = self.state.lock();
        let mut nodes = state.own_nodes.iter_mut();
        let (_, node) = nodes.find(|(known, _)| *known == key)?;
        Some(access(node))
    }

    /// The local node list.
    pub(crate) fn node_list(&self) -> ParticipantEntitiesInfo {
        let state = self.state.lock();
        let gid = |guid: &Guid| Gid {
            data: guid.to_bytes(),
        };
        let participant = self.own_prefix.with(pteros_rtps::id::EntityId::PARTICIPANT);
        ParticipantEntitiesInfo {
            gid: gid(&participant),
            node_entities_info_seq: state
                .own_nodes
                .iter()
                .map(|(_, node)| NodeEntitiesInfo {
                    node_namespace: node.namespace.clone(),
                    node_name: node.name.clone(),
                    reader_gid_seq: node.readers.iter().map(gid).collect(),
                    writer_gid_seq: node.writers.iter().map(gid).collect(),
                })
                .collect(),
        }
    }

    /// Layout of node lists for a reader: the one in which its participant writes its
    /// own. `None` until the first of those arrives.
    ///
    /// A type hash identifies today's type. Distributions without hashes, and bridges
    /// that serve several, show only their layout.
    pub(crate) fn layout_for(&self, reader: &EndpointData, vendor: VendorId) -> Option<GidLayout> {
        let has_hash = user_data_value(&reader.qos.user_data, "typehash").is_some();
        if has_hash || vendor == VendorId::PTEROS {
            return Some(GidLayout::Bytes16);
        }
        let mut state = self.state.lock();
        match state.note_layout(reader.guid.prefix, ListLayout::Awaited) {
            Some(ListLayout::Known(layout)) => Some(layout),
            _ => None,
        }
    }

    /// Handles a remote node list. No participant may announce for another one.
    ///
    /// # Errors
    /// It is no node list.
    pub(crate) fn handle_node_list(
        &self,
        sender: GuidPrefix,
        payload: &[u8],
        account: &Arc<MemoryAccount>,
    ) -> Result<ListOutcome, DecodeError> {
        let mut outcome = ListOutcome::default();
        let (info, layout) = decode_nodes(payload)?;
        let mut state = self.state.lock();
        // The readers of Pteros need no layout.
        if state.vendor_of(sender) != Some(VendorId::PTEROS) {
            let before = state.note_layout(sender, ListLayout::Known(layout));
            outcome.releases_readers = before == Some(ListLayout::Awaited);
        }
        drop(state);
        if info.participant != sender {
            let claimed = info.participant;
            tracing::debug!(%claimed, %sender, "node list of another participant ignored");
            return Ok(outcome);
        }
        let Some(charge) = account.reserve_record(info.memory_bytes()) else {
            self.tell_no_memory(sender);
            return Ok(outcome);
        };
        self.store_node_list(info, charge);
        outcome.is_accepted = true;
        Ok(outcome)
    }

    /// Stores a node list that a further transport reports.
    pub(crate) fn note_nodes(&self, participant: GuidPrefix, list: &ParticipantEntitiesInfo) {
        let guids = |gids: &[Gid]| gids.iter().map(|gid| Guid::from_bytes(gid.data)).collect();
        let nodes = list.node_entities_info_seq.iter().take(NODES_MAX);
        let nodes = nodes.map(|node| NodeRecord {
            name: node.node_name.clone(),
            namespace: node.node_namespace.clone(),
            readers: guids(&node.reader_gid_seq),
            writers: guids(&node.writer_gid_seq),
        });
        let list = NodeList {
            participant,
            nodes: nodes.collect(),
        };
        self.store_node_list(list, RecordCharge::default());
    }

    fn tell_no_memory(&self, sender: GuidPrefix) {
        if !std::mem::replace(&mut self.state.lock().told_no_memory, true) {
            tracing::warn!(
                "the node list of participant {sender} is refused: what discovery stores of it \
                 takes an eighth of its receive memory; raise limits.participant_memory_bytes \
                 if it has so many nodes (not logged again)"
            );
        }
    }

    fn store_node_list(&self, info: NodeList, charge: RecordCharge) {
        let mut state = self.state.lock();
        // Nodes of a participant that is not discovered yet are kept, because data may
        // overtake the announcement. Bounded like participants.
        if state.nodes.len() >= NODES_MAX && !state.nodes.contains_key(&info.participant) {
            return;
        }
        state.node_charges.insert(info.participant, charge);
        let before = state.nodes.insert(info.participant, info.nodes);
        let duplicates = state.new_duplicate_names(info.participant, &before.unwrap_or_default());
        drop(state);
        for path in duplicates {
            warn_duplicate_name(&path, "another process");
        }
        self.note_change();
    }
}

impl GraphState {
    /// Notes the layout of a participant, and returns the previous one. The first list
    /// decides, so a later message cannot set a wrong layout.
    fn note_layout(&mut self, of: GuidPrefix, layout: ListLayout) -> Option<ListLayout> {
        let before = self.gid_layouts.get(&of).copied();
        let has_place = before.is_some() || self.gid_layouts.len() < NODES_MAX;
        if has_place && !matches!(before, Some(ListLayout::Known(_))) {
            self.gid_layouts.insert(of, layout);
        }
        before
    }

    /// Names of a participant's nodes, except the `before` ones, that local nodes have as
    /// well.
    fn new_duplicate_names(&self, participant: GuidPrefix, before: &[NodeRecord]) -> Vec<String> {
        let theirs = self.nodes.get(&participant).into_iter().flatten();
        theirs
            .filter(|node| !before.iter().any(|old| old.is_named_as(node)))
            .filter(|node| self.own_nodes.iter().any(|(_, own)| own.is_named_as(node)))
            .map(|node| node_path(&node.namespace, &node.name))
            .collect()
    }

    /// Owner of another node with the same name.
    fn duplicate_owner(&self, node: &NodeRecord) -> Option<&'static str> {
        if self.own_nodes.iter().any(|(_, own)| own.is_named_as(node)) {
            return Some("this process");
        }
        let mut others = self.nodes.values().flatten();
        others
            .any(|other| other.is_named_as(node))
            .then_some("another process")
    }
}

fn remote_endpoint(known: &dyn RemoteEndpointRecord) -> GraphEndpoint {
    GraphEndpoint {
        data: Arc::new(known.to_data()),
        local: false,
    }
}

/// Both sides warn. The nodes work, but tools cannot distinguish them.
pub(crate) fn warn_duplicate_name(path: &str, whose: &str) {
    tracing::warn!(
        "node \"{path}\": {whose} has a node of this name too; start one of them with \
         --ros-args -r __node:=another_name"
    );
}

impl NodeRecord {
    fn to_graph(&self, participant: GuidPrefix, enclave: Option<String>) -> GraphNode {
        GraphNode {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            participant,
            enclave,
            readers: self.readers.clone(),
            writers: self.writers.clone(),
        }
    }
}

/// The enclave in a participant's USER_DATA `enclave=/path;`. Fast DDS adds a
/// NUL.
pub fn enclave_of(participant: &ParticipantData) -> Option<String> {
    user_data_value(&participant.user_data, "enclave")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of a former Cyclone DDS client must still be read with its header;
    /// otherwise the header would become the request.
    #[test]
    fn the_vendor_of_a_participant_outlives_it() {
        let mut state = GraphState::default();
        let prefix = |n: u8| GuidPrefix([n; 12]);
        let enter = |state: &mut GraphState, n: u8| {
            let mut data = ParticipantData::new(prefix(n));
            data.vendor = VendorId::CYCLONE;
            state.participants.insert(prefix(n), Arc::new(data));
        };
        for n in 0..70 {
            assert_eq!(state.vendor_of(prefix(n)), None);
            enter(&mut state, n);
            assert_eq!(state.vendor_of(prefix(n)), Some(VendorId::CYCLONE));
            // A participant that joins and leaves twice has one entry.
            state.remove_participant(prefix(n));
            enter(&mut state, n);
            state.remove_participant(prefix(n));
            assert!(state.participants.is_empty());
            assert_eq!(state.vendor_of(prefix(n)), Some(VendorId::CYCLONE));
        }
        assert_eq!(state.departed.len(), DEPARTED_MAX);
        assert_eq!(state.vendor_of(prefix(5)), None);
        assert_eq!(state.vendor_of(prefix(6)), Some(VendorId::CYCLONE));
    }
}
