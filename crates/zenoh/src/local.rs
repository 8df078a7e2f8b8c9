//! Local nodes and endpoints of the context, as this session announces them.
//!
//! The runtime announces an endpoint twice: first with its data, then with its node. The
//! liveliness token needs both, so the second call declares it. The declarer's thread
//! runs all declarations; no call here waits for Zenoh.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_runtime::transport::NodeName;
use pteros_runtime::user_data::user_data_value;
use zenoh::liveliness::LivelinessToken;
use zenoh::{Session, Wait};

use crate::declarer::{Declarer, failure};
use crate::gid::Gid;
use crate::inbox::Inbox;
use crate::key::{HASH_UNKNOWN, Place, Role};
use crate::links::{Link, LinkSpec};
use crate::own_access::OwnAccess;
use crate::qos_text;
use crate::session_id::SessionId;
use crate::token::{EndpointPart, Token, TokenKind};

/// USER_DATA key that the two endpoints of a server have in common.
const SERVICE_ID: &str = "serviceid";

/// See the module documentation. The transport locks it.
pub struct Local {
    session: Session,
    declarer: Arc<Declarer>,
    id: SessionId,
    domain: u32,
    enclave: String,
    inbox: Arc<Inbox>,
    sample_bytes_max: usize,
    nodes: Vec<LocalNode>,
    next_node: u64,
    announced: BTreeMap<Guid, Arc<EndpointData>>,
    service_hashes: BTreeMap<Guid, String>,
    /// Content filters of subscriptions that are not attached yet.
    filters: BTreeMap<Guid, Option<Arc<ContentFilter>>>,
    links: BTreeMap<Guid, Arc<Link>>,
    /// By server id: the reader of requests.
    servers: BTreeMap<String, Guid>,
    /// By writer of replies: its server id.
    replies: BTreeMap<Guid, String>,
    gids: BTreeSet<Gid>,
    access: Option<OwnAccess>,
}

struct LocalNode {
    namespace: String,
    name: String,
    id: u64,
    /// The token is declared until it is dropped.
    _token: Arc<OnceLock<LivelinessToken>>,
}

/// An attached endpoint, as the matcher and the runtime see it.
pub struct Attached {
    /// Its data with the hash of its key, for the matcher.
    pub matched: Arc<EndpointData>,
    /// Whether the transport keeps samples of it for late joiners.
    pub keeps_samples: bool,
}

impl Local {
    /// No nodes or endpoints yet.
    pub fn new(
        session: Session,
        declarer: Arc<Declarer>,
        id: SessionId,
        domain: u32,
        enclave: String,
        inbox: Arc<Inbox>,
        sample_bytes_max: usize,
    ) -> Self {
        Self {
            session,
            declarer,
            id,
            domain,
            enclave,
            inbox,
            sample_bytes_max,
            nodes: Vec::new(),
            next_node: 0,
            announced: BTreeMap::new(),
            service_hashes: BTreeMap::new(),
            filters: BTreeMap::new(),
            links: BTreeMap::new(),
            servers: BTreeMap::new(),
            replies: BTreeMap::new(),
            gids: BTreeSet::new(),
            access: None,
        }
    }

    /// Adds the session's access rules. Warns if they deny the nodes of its enclave.
    pub fn with_access(mut self, access: Option<OwnAccess>) -> Self {
        let (domain, enclave) = (self.domain, &self.enclave);
        let nodes = Token::nodes_of(domain, self.id, enclave);
        let may_announce = |access: &OwnAccess| access.may_announce(&nodes);
        if !access.as_ref().is_none_or(may_announce) {
            tracing::warn!(
                "Zenoh's access control does not let this session have nodes of the enclave \
                 \"{enclave}\" in the domain {domain}: nobody finds them; start it with the --enclave \
                 and ROS_DOMAIN_ID that the file of ZENOH_SESSION_CONFIG_URI is for"
            );
        }
        self.access = access;
        self
    }

    /// The reason why access control denies this endpoint to the session.
    pub fn why_not(&self, endpoint: &EndpointData) -> Option<String> {
        let access = self.access.as_ref()?;
        access.why_not(&Place::of(endpoint)?, self.domain, &self.enclave)
    }

    /// Notes the data of an endpoint. Returns the data for the matcher if the endpoint is
    /// attached already.
    pub fn announce(&mut self, endpoint: &Arc<EndpointData>) -> Option<Arc<EndpointData>> {
        let before = self.announced.insert(endpoint.guid, endpoint.clone());
        let is_attached = before.is_some_and(|_| self.is_attached(endpoint));
        is_attached.then(|| self.matched(endpoint))
    }

    /// Notes the hash of a service.
    pub fn note_service_hash(&mut self, endpoint: Guid, hash: String) {
        self.service_hashes.insert(endpoint, hash);
    }

    /// Notes the content filter of a subscription.
    pub fn note_filter(&mut self, endpoint: Guid, filter: Option<Arc<ContentFilter>>) {
        if let Some(link) = self.links.get(&endpoint) {
            link.set_filter(filter);
        } else {
            self.filters.insert(endpoint, filter);
        }
    }

    /// Declares an endpoint of a node.
    pub fn attach(&mut self, endpoint: Guid, node: &NodeName<'_>) -> Option<Attached> {
        let data = self.announced.get(&endpoint)?.clone();
        let place = Place::of(&data)?;
        let node_id = self.node_id(node);
        match (place.role, user_data_value(&data.qos.user_data, SERVICE_ID)) {
            (Role::Server, Some(pair)) => drop(self.servers.insert(pair, endpoint)),
            (Role::Replies, Some(pair)) => drop(self.replies.insert(endpoint, pair)),
            _ => {}
        }
        let matched = self.matched(&data);
        let kind = match place.role {
            Role::Publisher => TokenKind::Publisher,
            Role::Subscription => TokenKind::Subscription,
            Role::Client => TokenKind::Client,
            Role::Server => TokenKind::Server,
            Role::Replies => {
                return Some(Attached {
                    matched,
                    keeps_samples: false,
                });
            }
        };
        let hash = hash_of(&matched);
        let token = Token {
            domain: self.domain,
            session: self.id,
            node_id,
            entity_id: u32::from_be_bytes(endpoint.entity.to_bytes()).into(),
            kind,
            enclave: self.enclave.clone(),
            namespace: node.namespace.into(),
            node: node.name.into(),
            endpoint: Some(EndpointPart {
                name: place.name.clone(),
                type_name: place.type_name.clone(),
                hash: hash.clone(),
                qos: qos_text::to_text(&data.qos),
            }),
        };
        let spec = LinkSpec {
            key: place.key(self.domain, &hash),
            data,
            place,
            token: token.to_key(),
            sample_bytes_max: self.sample_bytes_max,
            filter: self.filters.remove(&endpoint).flatten(),
        };
        let name = spec.place.name.clone();
        let link = match Link::new(spec) {
            Ok(link) => Arc::new(link),
            Err(error) => {
                tracing::warn!("{kind:?} \"{name}\": declare on Zenoh: {error}");
                return None;
            }
        };
        self.gids.insert(link.gid);
        self.links.insert(endpoint, link.clone());
        let keeps_samples = link.keeps_samples();
        let (session, inbox) = (self.session.clone(), self.inbox.clone());
        let declarer = self.declarer.clone();
        self.declarer.push(move || {
            let declared = link.declare(&session, &inbox, &declarer);
            if let Some(error) = failure(&session, declared) {
                tracing::warn!("{kind:?} \"{name}\": declare on Zenoh: {error}");
            }
        });
        Some(Attached {
            matched,
            keeps_samples,
        })
    }

    /// Undeclares an endpoint.
    pub fn withdraw(&mut self, endpoint: Guid) {
        self.announced.remove(&endpoint);
        self.service_hashes.remove(&endpoint);
        self.filters.remove(&endpoint);
        self.replies.remove(&endpoint);
        self.servers.retain(|_, server| *server != endpoint);
        if let Some(link) = self.links.remove(&endpoint) {
            self.gids.remove(&link.gid);
            self.declarer.push(move || drop(link));
        }
    }

    /// Declares and undeclares nodes, so that the announced ones equal the list.
    pub fn announce_nodes(&mut self, list: &ParticipantEntitiesInfo) {
        let mut missing: BTreeMap<(String, String), usize> = BTreeMap::new();
        for node in &list.node_entities_info_seq {
            let path = (node.node_namespace.clone(), node.node_name.clone());
            *missing.entry(path).or_default() += 1;
        }
        let nodes = std::mem::take(&mut self.nodes).into_iter();
        let (stay, gone) = nodes.partition(|node| {
            let path = (node.namespace.clone(), node.name.clone());
            match missing.get_mut(&path) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    true
                }
                _ => false,
            }
        });
        self.nodes = stay;
        let gone: Vec<LocalNode> = gone;
        if !gone.is_empty() {
            self.declarer.push(move || drop(gone));
        }
        for ((namespace, name), count) in &missing {
            for _ in 0..*count {
                self.add_node(&NodeName { namespace, name });
            }
        }
    }

    /// The link of an endpoint.
    pub fn link(&self, endpoint: Guid) -> Option<Arc<Link>> {
        self.links.get(&endpoint).cloned()
    }

    /// Whether a gid is one of this session's.
    pub fn is_own(&self, gid: Gid) -> bool {
        self.gids.contains(&gid)
    }

    /// Drops all nodes and endpoints after the session has closed.
    pub fn clear(&mut self) {
        self.links.clear();
        self.gids.clear();
        self.nodes.clear();
        self.announced.clear();
        self.servers.clear();
        self.replies.clear();
    }

    /// The server of a writer of replies. The runtime marks both endpoints of a server
    /// with one id, so two servers of one name differ.
    pub fn server_of(&self, replies: Guid) -> Option<Arc<Link>> {
        let server = self.servers.get(self.replies.get(&replies)?)?;
        self.link(*server)
    }

    fn is_attached(&self, endpoint: &EndpointData) -> bool {
        let is_replies = Place::of(endpoint).is_some_and(|place| place.role == Role::Replies);
        is_replies || self.links.contains_key(&endpoint.guid)
    }

    /// The endpoint with the hash of its key; for a service, the service's hash.
    fn matched(&self, data: &Arc<EndpointData>) -> Arc<EndpointData> {
        let hash = self.service_hashes.get(&data.guid).cloned();
        let hash = hash.unwrap_or_else(|| hash_of(data));
        let mut matched = EndpointData::clone(data);
        matched.qos.user_data = format!("typehash={hash};").into_bytes();
        Arc::new(matched)
    }

    fn node_id(&mut self, node: &NodeName<'_>) -> u64 {
        let is_it =
            |known: &&LocalNode| known.namespace == node.namespace && known.name == node.name;
        match self.nodes.iter().find(is_it) {
            Some(known) => known.id,
            None => self.add_node(node),
        }
    }

    fn add_node(&mut self, node: &NodeName<'_>) -> u64 {
        let id = self.next_node;
        self.next_node += 1;
        let token = Token {
            domain: self.domain,
            session: self.id,
            node_id: id,
            entity_id: id,
            kind: TokenKind::Node,
            enclave: self.enclave.clone(),
            namespace: node.namespace.into(),
            node: node.name.into(),
            endpoint: None,
        };
        let own = Arc::new(OnceLock::new());
        let (session, key) = (self.session.clone(), token.to_key());
        let (declared, name) = (own.clone(), node.name.to_owned());
        self.declarer.push(move || {
            let token = session.liveliness().declare_token(key).wait();
            // Set once: one job declares each node.
            let token = token.map(|token| drop(declared.set(token)));
            if let Some(error) = failure(&session, token) {
                tracing::warn!("node \"{name}\": declare on Zenoh: {error}");
            }
        });
        self.nodes.push(LocalNode {
            namespace: node.namespace.into(),
            name: node.name.into(),
            id,
            _token: own,
        });
        id
    }
}

fn hash_of(data: &EndpointData) -> String {
    let hash = user_data_value(&data.qos.user_data, "typehash");
    hash.unwrap_or_else(|| HASH_UNKNOWN.into())
}
