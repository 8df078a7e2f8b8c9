//! Peers: maps liveliness tokens to participants, nodes and endpoints of the runtime.
//!
//! One session is one participant. A publisher or subscription is one endpoint. A service
//! server or client is two, one for requests and one for replies. Sans-IO; the transport locks
//! it. A token is dropped and counted if it is malformed, of another domain, or above a
//! limit.
//!
//! A session whose context RTPS reaches is suppressed: its tokens are kept in
//! [`crate::suppressed_sessions`] and announce nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_interfaces::rmw_dds_common::msg::{
    Gid as NodeGid, NodeEntitiesInfo, ParticipantEntitiesInfo,
};
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::matching::MatchOutcome;
use pteros_rtps::participant::{LostReason, ParticipantEvent};
use pteros_rtps::qos::{EndpointQos, Liveliness};
use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::limits::Limits;
use pteros_runtime::transport::matcher::EndpointMatcher;
use pteros_runtime::transport::{RtpsReach, TransportEvent};
use pteros_runtime::user_data::user_data_value;

use crate::bridge_path::user_data_of_node;
use crate::gid::Gid;
use crate::key::{key_of, reply_names, request_names, topic_names};
use crate::qos_text;
use crate::session_id::SessionId;
use crate::suppressed_sessions::{SuppressedSessions, SuppressedToken};
use crate::token::{EndpointPart, Token, TokenKind};

/// Nodes of one session. Further ones are dropped and counted.
const NODES_MAX: usize = 1_024;

/// Remote sessions with their nodes and endpoints, and the matcher.
pub struct Peers {
    own: SessionId,
    domain: u32,
    limits: Limits,
    matcher: EndpointMatcher,
    sessions: BTreeMap<SessionId, Session>,
    /// Announced endpoints of all sessions.
    endpoints: usize,
    /// By token key.
    tokens: BTreeMap<String, Known>,
    by_gid: BTreeMap<Gid, Remote>,
    /// Maps the gids that hiroz would use to the gids of the same endpoints' tokens.
    of_hiroz: BTreeMap<Gid, Gid>,
    /// By key of the service: the sessions of its servers, and their writers of replies.
    servers: BTreeMap<String, Vec<(SessionId, Guid)>>,
    changed: BTreeSet<SessionId>,
    suppressed: SuppressedSessions,
    refused: u64,
}

/// Endpoints of one gid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// A publisher, a subscription, or the request endpoint of a client or server.
    pub main: Guid,
    /// The reply endpoint of a client or server.
    pub replies: Option<Guid>,
}

struct Session {
    nodes: BTreeMap<NodePath, NodeState>,
    /// Accepted tokens.
    tokens: usize,
    /// Announced endpoints.
    endpoints: usize,
    /// Entity key of the next endpoint. It decreases, because a context numbers its own
    /// endpoints upwards.
    next_key: u32,
}

type NodePath = (String, String);

#[derive(Default)]
struct NodeState {
    /// Tokens of the node itself: several, if nodes share the name.
    declared: usize,
    endpoints: Vec<Guid>,
}

/// An accepted token.
struct Known {
    session: SessionId,
    node: NodePath,
    /// Gid and endpoints; `None` for a node.
    remote: Option<(Gid, Remote)>,
    /// Gid that hiroz would use.
    hiroz_gid: Gid,
    /// Key of the service, for a server.
    service: Option<String>,
}

impl Peers {
    /// No peers yet. `rtps`: which contexts RTPS reaches beside this transport.
    pub fn new(own: SessionId, domain: u32, limits: Limits, rtps: RtpsReach) -> Self {
        Self {
            own,
            domain,
            limits,
            matcher: EndpointMatcher::with_rule(limits, evaluate),
            sessions: BTreeMap::new(),
            endpoints: 0,
            tokens: BTreeMap::new(),
            by_gid: BTreeMap::new(),
            of_hiroz: BTreeMap::new(),
            servers: BTreeMap::new(),
            changed: BTreeSet::new(),
            suppressed: SuppressedSessions::new(rtps),
            refused: 0,
        }
    }

    /// Matcher of local and remote endpoints.
    pub fn matcher(&self) -> &EndpointMatcher {
        &self.matcher
    }

    /// Mutable matcher, to add and remove local endpoints.
    pub fn matcher_mut(&mut self) -> &mut EndpointMatcher {
        &mut self.matcher
    }

    /// Total of dropped tokens: malformed, of another domain, or above a limit.
    pub fn refused_count(&self) -> u64 {
        self.refused.saturating_add(self.matcher.refused_count())
    }

    /// The endpoints of a gid, given in either form.
    pub fn remote(&self, gid: Gid) -> Option<Remote> {
        self.by_gid.get(&self.gid_of_token(gid)).copied()
    }

    /// Whether a gid is in the form of hiroz.
    pub fn is_of_hiroz(&self, gid: Gid) -> bool {
        self.of_hiroz.contains_key(&gid)
    }

    /// Converts hiroz's form of a gid to the token's form. Another gid is unchanged.
    pub fn gid_of_token(&self, gid: Gid) -> Gid {
        self.of_hiroz.get(&gid).copied().unwrap_or(gid)
    }

    /// The endpoints of a token.
    pub fn remote_of_token(&self, key: &str) -> Option<Remote> {
        let known = self.tokens.get(key)?;
        known.remote.map(|(_, remote)| remote)
    }

    /// Whether a token is of a publisher whose endpoint is announced.
    pub fn is_publisher(&self, key: &str) -> bool {
        let remote = self.remote_of_token(key);
        remote.is_some_and(|remote| remote.replies.is_none() && remote.main.entity.is_writer())
    }

    /// The writer of replies of a server with this key in a session. If Zenoh does not report
    /// the session, that of any server with the key. A session that announces none has no
    /// reply to give.
    pub fn replier(&self, session: Option<SessionId>, key: &str) -> Option<Guid> {
        let servers = self.servers.get(key)?;
        let is_it = |of: SessionId| session.is_none_or(|session| session == of);
        let its = servers.iter().find(|(of, _)| is_it(*of));
        its.map(|(_, replies)| *replies)
    }

    /// Whether RTPS delivers the data of a gid.
    pub fn is_on_rtps(&self, gid: Gid) -> bool {
        self.suppressed.is_on_rtps(gid)
    }

    /// Whether a suppressed session subscribes to a key.
    pub fn is_read_by_suppressed(&self, key: &str) -> bool {
        self.suppressed.reads(key)
    }

    /// Suppresses the session of a participant that RTPS reaches, or announces it when
    /// RTPS no longer does. Returns the gids of the newly announced endpoints.
    pub fn note_rtps_participant(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        is_reached: bool,
    ) -> Vec<Gid> {
        let id = SessionId::of_context(prefix);
        if !is_reached {
            let tokens = self.suppressed.end(id);
            return self.go_on_with(&tokens);
        }
        self.suppressed.begin(id);
        let of_it = |(key, known): (&String, &Known)| (known.session == id).then(|| key.clone());
        let keys: Vec<String> = self.tokens.iter().filter_map(of_it).collect();
        for key in &keys {
            self.remove(key);
        }
        // Removing the last token has ended the session, so all tokens are suppressed.
        for key in &keys {
            self.add(now, key);
        }
        Vec::new()
    }

    /// Announces the sessions that RTPS has not reached in time. Returns the gids of
    /// their endpoints.
    pub fn expire(&mut self, now: Instant) -> Vec<Gid> {
        let tokens = self.suppressed.take_expired(now);
        self.go_on_with(&tokens)
    }

    /// When to call [`Peers::expire`].
    pub fn next_expiry(&self) -> Option<Instant> {
        self.suppressed.next_expiry()
    }

    fn go_on_with(&mut self, tokens: &[String]) -> Vec<Gid> {
        let announced = tokens.iter().filter_map(|key| {
            let (token, qos) = self.accept(key)?;
            self.announce(token, &qos, key)
        });
        announced.collect()
    }

    /// Handles a declared token. Returns its gid if it is a new endpoint.
    pub fn add(&mut self, now: Instant, key: &str) -> Option<Gid> {
        let (token, qos) = self.accept(key)?;
        let id = token.session;
        if self.sessions.contains_key(&id) || !self.suppressed.claims(id) {
            return self.announce(token, &qos, key);
        }
        let endpoint = token.endpoint.as_ref();
        let subscribes = endpoint.filter(|_| token.kind == TokenKind::Subscription);
        let suppressed = SuppressedToken {
            gid: endpoint.map(|_| Gid::of_token(key)),
            reads: subscribes.map(|of| key_of(self.domain, &of.name, &of.type_name, &of.hash)),
        };
        let gid = suppressed.gid;
        self.suppressed.add(now, id, key, suppressed);
        gid
    }

    /// Parses a new token and the QoS of its endpoint. Counts refused tokens.
    fn accept(&mut self, key: &str) -> Option<(Token, EndpointQos)> {
        let token = match Token::parse(key) {
            Ok(token) => token,
            Err(error) => {
                self.refused += 1;
                tracing::debug!("liveliness token {:?}: {error}", shortened(key));
                return None;
            }
        };
        let is_known = self.tokens.contains_key(key) || self.suppressed.has(token.session, key);
        if token.session == self.own || is_known {
            return None;
        }
        let qos = match &token.endpoint {
            None => Some(EndpointQos::default()),
            Some(part) => endpoint_qos(&token, part),
        };
        let is_ours = token.domain == self.domain && self.has_room(&token);
        let accepted = qos.filter(|_| is_ours).map(|qos| (token, qos));
        self.refused += u64::from(accepted.is_none());
        accepted
    }

    fn announce(&mut self, token: Token, qos: &EndpointQos, key: &str) -> Option<Gid> {
        let id = token.session;
        if !self.sessions.contains_key(&id) && !self.add_session(&token) {
            return None;
        }
        let node = (token.namespace.clone(), token.node.clone());
        let remote = match &token.endpoint {
            None => None,
            Some(endpoint) => match self.add_endpoints(&token, endpoint, qos) {
                Some(remote) => Some((Gid::of_token(key), remote)),
                None => {
                    self.refused += 1;
                    self.drop_if_empty(id);
                    return None;
                }
            },
        };
        let session = self.sessions.get_mut(&id)?;
        session.tokens += 1;
        let state = session.nodes.entry(node.clone()).or_default();
        match remote {
            None => state.declared += 1,
            Some((gid, remote)) => {
                state.endpoints.push(remote.main);
                state.endpoints.extend(remote.replies);
                self.by_gid.insert(gid, remote);
            }
        }
        self.changed.insert(id);
        let hiroz_gid = Gid::of_hiroz(id, token.entity_id);
        if let Some((gid, _)) = remote.filter(|_| !id.is_of_pteros()) {
            self.of_hiroz.insert(hiroz_gid, gid);
        }
        let is_server = token.kind == TokenKind::Server;
        let part = token.endpoint.filter(|_| is_server);
        let service = part.map(|of| key_of(self.domain, &of.name, &of.type_name, &of.hash));
        let replies = remote.and_then(|(_, remote)| remote.replies);
        if let (Some(service), Some(replies)) = (&service, replies) {
            let servers = self.servers.entry(service.clone()).or_default();
            servers.push((id, replies));
        }
        let known = Known {
            session: id,
            node,
            remote,
            hiroz_gid,
            service,
        };
        self.tokens.insert(key.into(), known);
        remote.map(|(gid, _)| gid)
    }

    /// Handles an undeclared token.
    pub fn remove(&mut self, key: &str) {
        let Some(known) = self.tokens.remove(key) else {
            if let Ok(token) = Token::parse(key) {
                self.suppressed.remove(token.session, key);
            }
            return;
        };
        if let Some((gid, remote)) = known.remote {
            self.by_gid.remove(&gid);
            if self.of_hiroz.get(&known.hiroz_gid) == Some(&gid) {
                self.of_hiroz.remove(&known.hiroz_gid);
            }
            for guid in [Some(remote.main), remote.replies].into_iter().flatten() {
                self.matcher.remove_remote(guid);
            }
        }
        let replies = known.remote.and_then(|(_, remote)| remote.replies);
        if let (Some(service), Some(replies)) = (&known.service, replies)
            && let Some(servers) = self.servers.get_mut(service)
        {
            servers.retain(|(_, of)| *of != replies);
            if servers.is_empty() {
                self.servers.remove(service);
            }
        }
        let Some(session) = self.sessions.get_mut(&known.session) else {
            return;
        };
        session.tokens -= 1;
        if let Some(node) = session.nodes.get_mut(&known.node) {
            match known.remote {
                None => node.declared -= 1,
                Some((_, remote)) => {
                    let before = node.endpoints.len();
                    node.endpoints
                        .retain(|guid| *guid != remote.main && Some(*guid) != remote.replies);
                    let gone = before - node.endpoints.len();
                    session.endpoints -= gone;
                    self.endpoints -= gone;
                }
            }
            if node.declared == 0 && node.endpoints.is_empty() {
                session.nodes.remove(&known.node);
            }
        }
        self.changed.insert(known.session);
        self.drop_if_empty(known.session);
    }

    /// Appends the discovery events since the last call.
    pub fn take_discovery(&mut self, events: &mut Vec<TransportEvent>) {
        while let Some(event) = self.matcher.poll_event() {
            events.push(TransportEvent::Discovery(with_own_liveliness(event)));
        }
    }

    /// Appends the node list of each session that has changed since the last call.
    ///
    /// Building a list costs the whole session. Call it once for many tokens, after
    /// [`Peers::take_discovery`].
    pub fn take_node_lists(&mut self, events: &mut Vec<TransportEvent>) {
        for id in std::mem::take(&mut self.changed) {
            if let Some(session) = self.sessions.get(&id) {
                let participant = id.prefix();
                let nodes = node_list(participant, session);
                events.push(TransportEvent::Nodes { participant, nodes });
            }
        }
    }

    /// Whether [`Peers::take_discovery`] or [`Peers::take_node_lists`] would append
    /// events.
    pub fn has_events(&self) -> bool {
        self.matcher.has_events() || !self.changed.is_empty()
    }

    /// Whether the tables have space for a token. A session gets at most as much as is free,
    /// so that a peer with several sessions, or with tokens of such, leaves space for others.
    fn has_room(&self, token: &Token) -> bool {
        let of_each = self.limits.endpoints_per_participant.saturating_mul(2);
        let tokens = self.tokens.len() + self.suppressed.token_count();
        let free = self.limits.endpoints.saturating_mul(2);
        let free = free.saturating_sub(tokens);
        let Some(session) = self.sessions.get(&token.session) else {
            let kept = self.suppressed.token_count_of(token.session);
            let is_new = kept == 0;
            let sessions = self.sessions.len() + self.suppressed.session_count();
            return kept < of_each.min(free)
                && (!is_new || sessions < self.limits.remote_participants);
        };
        let node = (token.namespace.clone(), token.node.clone());
        let is_known = session.nodes.contains_key(&node);
        let endpoints = self.limits.endpoints.saturating_sub(self.endpoints);
        let endpoints = endpoints.min(self.limits.endpoints_per_participant);
        (is_known || session.nodes.len() < NODES_MAX)
            && (token.endpoint.is_none() || session.endpoints < endpoints)
            && session.tokens < of_each.min(free)
    }

    fn add_session(&mut self, token: &Token) -> bool {
        let mut data = ParticipantData::new(token.session.prefix());
        if !token.session.is_of_pteros() {
            data.vendor = VendorId::default();
            data.product = None;
        }
        data.domain_id = Some(self.domain);
        data.lease = Duration::INFINITE;
        data.user_data = format!("enclave={};", token.enclave).into_bytes();
        if !self.matcher.add_participant(data) {
            return false;
        }
        let session = Session {
            nodes: BTreeMap::new(),
            tokens: 0,
            endpoints: 0,
            next_key: 0x00ff_fffe,
        };
        self.sessions.insert(token.session, session);
        true
    }

    fn drop_if_empty(&mut self, id: SessionId) {
        let session = self.sessions.get(&id);
        if session.is_some_and(|session| session.tokens == 0) {
            self.sessions.remove(&id);
            self.matcher
                .remove_participant(id.prefix(), LostReason::Disposed);
        }
    }

    fn add_endpoints(
        &mut self,
        token: &Token,
        part: &EndpointPart,
        qos: &EndpointQos,
    ) -> Option<Remote> {
        let (name, ty) = (part.name.as_str(), part.type_name.as_str());
        let is_writer = matches!(token.kind, TokenKind::Publisher | TokenKind::Client);
        let is_service = matches!(token.kind, TokenKind::Server | TokenKind::Client);
        let names = if is_service {
            request_names(name, ty)
        } else {
            topic_names(name, ty)
        };
        let main = self.add_endpoint(token, is_writer, &names, qos, true)?;
        if !is_service {
            return Some(Remote {
                main,
                replies: None,
            });
        }
        let names = reply_names(name, ty);
        let Some(replies) = self.add_endpoint(token, !is_writer, &names, qos, false) else {
            self.matcher.remove_remote(main);
            if let Some(session) = self.sessions.get_mut(&token.session) {
                session.endpoints -= 1;
                self.endpoints -= 1;
            }
            return None;
        };
        Some(Remote {
            main,
            replies: Some(replies),
        })
    }

    fn add_endpoint(
        &mut self,
        token: &Token,
        is_writer: bool,
        (topic, type_name): &(String, String),
        qos: &EndpointQos,
        is_main: bool,
    ) -> Option<Guid> {
        let kind = if is_writer {
            EntityId::KIND_WRITER_NO_KEY
        } else {
            EntityId::KIND_READER_NO_KEY
        };
        let session = self.sessions.get_mut(&token.session)?;
        let prefix = token.session.prefix();
        // A context of Pteros uses the entity ids of its endpoints.
        let announced = u32::try_from(token.entity_id).ok();
        let announced = announced.map(|id| prefix.with(EntityId::from_bytes(id.to_be_bytes())));
        let announced = announced.filter(|guid| {
            let is_free = self.matcher.remote(*guid).is_none();
            is_main && token.session.is_of_pteros() && guid.entity.kind == kind && is_free
        });
        let guid = match announced {
            Some(guid) => guid,
            None => loop {
                let [_, a, b, c] = session.next_key.to_be_bytes();
                session.next_key = session.next_key.checked_sub(1)?;
                let guid = prefix.with(EntityId::new([a, b, c], kind));
                if self.matcher.remote(guid).is_none() {
                    break guid;
                }
            },
        };
        let data = EndpointData::new(guid, topic, type_name, qos.clone());
        if !self.matcher.add_remote(data) {
            return None;
        }
        session.endpoints += 1;
        self.endpoints += 1;
        Some(guid)
    }
}

/// QoS of an endpoint, with its type hash and, for a bridge, its path. `None` if
/// malformed.
fn endpoint_qos(token: &Token, part: &EndpointPart) -> Option<EndpointQos> {
    let is_writer = matches!(token.kind, TokenKind::Publisher | TokenKind::Client);
    let mut qos = qos_text::parse(&part.qos, is_writer)?;
    let path = user_data_of_node(&token.node);
    qos.user_data = format!("typehash={};{path}", part.hash).into_bytes();
    Some(qos)
}

/// Endpoints with the same key match, whatever their QoS. Another type or hash means
/// another key.
fn evaluate(writer: &EndpointData, reader: &EndpointData) -> MatchOutcome {
    let hash = |data: &EndpointData| user_data_value(&data.qos.user_data, "typehash");
    if writer.type_name == reader.type_name && hash(writer) == hash(reader) {
        MatchOutcome::Matched
    } else {
        MatchOutcome::InconsistentType
    }
}

/// The token of a writer signals its end. Nothing asserts its liveliness meanwhile, so
/// the lease is infinite.
fn with_own_liveliness(event: ParticipantEvent) -> ParticipantEvent {
    let ParticipantEvent::Matched {
        local,
        mut remote,
        route,
        vendor,
    } = event
    else {
        return event;
    };
    if remote.qos.liveliness != Liveliness::Automatic {
        let mut data = EndpointData::clone(&remote);
        data.qos.liveliness = Liveliness::Automatic;
        data.qos.lease_duration = Duration::INFINITE;
        remote = Arc::new(data);
    }
    ParticipantEvent::Matched {
        local,
        remote,
        route,
        vendor,
    }
}

fn node_list(participant: GuidPrefix, session: &Session) -> ParticipantEntitiesInfo {
    let gid = |guid: &Guid| NodeGid {
        data: guid.to_bytes(),
    };
    let of_kind = |state: &NodeState, is_writer: bool| {
        let endpoints = state.endpoints.iter();
        let wanted = endpoints.filter(|guid| guid.entity.is_writer() == is_writer);
        wanted.map(gid).collect::<Vec<_>>()
    };
    let nodes = session.nodes.iter().map(|((namespace, name), state)| {
        let reader_gid_seq = of_kind(state, false);
        let writer_gid_seq = of_kind(state, true);
        NodeEntitiesInfo {
            node_namespace: namespace.clone(),
            node_name: name.clone(),
            reader_gid_seq,
            writer_gid_seq,
        }
    });
    ParticipantEntitiesInfo {
        gid: gid(&participant.with(EntityId::PARTICIPANT)),
        node_entities_info_seq: nodes.collect(),
    }
}

/// Start of a peer's text, for a log line.
fn shortened(text: &str) -> &str {
    let end = text.floor_char_boundary(120);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use pteros_rtps::qos::{Durability, History, Reliability};

    use super::*;

    const OTHER: &str = "aac3178e146ba6f1fc6e6a4085e77f21";
    const NOW: Instant = Instant::ZERO;
    const STRING: &str = "std_msgs::msg::dds_::String_/RIHS01_ab/";

    fn peers() -> Peers {
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        Peers::new(own, 0, Limits::default(), RtpsReach::Off)
    }

    fn token(session: &str, number: usize, kind: &str, rest: &str) -> String {
        format!("@ros2_lv/0/{session}/0/{number}/{kind}/%/%/talker{rest}")
    }

    fn publisher(session: &str, number: usize) -> String {
        token(
            session,
            number,
            "MP",
            &format!("/%chatter/{STRING}2::,7:,:,:3,1,0"),
        )
    }

    fn events(peers: &mut Peers) -> Vec<TransportEvent> {
        let mut events = Vec::new();
        peers.take_discovery(&mut events);
        peers.take_node_lists(&mut events);
        assert!(!peers.has_events());
        events
    }

    fn reader(hash: &str) -> Arc<EndpointData> {
        let guid = GuidPrefix([7; 12]).with(EntityId::new([0, 0, 1], EntityId::KIND_READER_NO_KEY));
        let qos = EndpointQos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal,
            user_data: format!("typehash={hash};").into_bytes(),
            ..EndpointQos::default()
        };
        let ty = "std_msgs::msg::dds_::String_";
        Arc::new(EndpointData::new(guid, "rt/chatter", ty, qos))
    }

    #[test]
    fn a_publisher_of_hiroz_is_known_by_its_own_gid() {
        let mut peers = peers();
        let gid = peers.add(NOW, &publisher(OTHER, 1)).unwrap();
        let second = peers.add(NOW, &publisher(OTHER, 2)).unwrap();
        let of = |number| Gid::of_hiroz(OTHER.parse().unwrap(), number);
        assert_eq!(peers.gid_of_token(of(1)), gid);
        assert!(peers.is_of_hiroz(of(1)) && !peers.is_of_hiroz(gid));
        assert_eq!(peers.remote(of(1)), peers.remote(gid));
        assert_eq!(peers.remote(of(2)), peers.remote(second));
        assert_eq!(peers.remote(of(3)), None);
        peers.remove(&publisher(OTHER, 1));
        assert_eq!(peers.remote(of(1)), None);
        assert!(peers.remote(of(2)).is_some());
        assert_eq!(peers.of_hiroz.len(), 1);
        // Sessions of Pteros have one form only.
        let ours = SessionId::of_context(GuidPrefix([9; 12]));
        peers.add(NOW, &publisher(&ours.to_string(), 1));
        assert_eq!(peers.remote(Gid::of_hiroz(ours, 1)), None);
    }

    #[test]
    fn a_session_is_a_participant_with_nodes_and_endpoints() {
        let mut peers = peers();
        assert_eq!(peers.add(NOW, &token(OTHER, 0, "NN", "")), None);
        let gid = peers.add(NOW, &publisher(OTHER, 1)).unwrap();
        assert_eq!(gid, Gid::of_token(&publisher(OTHER, 1)));
        let found = events(&mut peers);
        let prefix = OTHER.parse::<SessionId>().unwrap().prefix();
        let writer = peers.remote(gid).unwrap().main;
        assert_eq!(writer.prefix, prefix);
        let [discovery @ .., TransportEvent::Nodes { participant, nodes }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(discovery.len(), 2);
        assert_eq!(*participant, prefix);
        assert_eq!(nodes.node_entities_info_seq.len(), 1);
        let node = &nodes.node_entities_info_seq[0];
        assert_eq!(
            (node.node_namespace.as_str(), node.node_name.as_str()),
            ("/", "talker")
        );
        assert_eq!(node.writer_gid_seq[0].data, writer.to_bytes());
        let data = peers.matcher().remote(writer).unwrap();
        assert_eq!(data.topic, "rt/chatter");
        assert_eq!(data.qos.history, History::KeepLast(7));
        assert_eq!(data.qos.user_data, b"typehash=RIHS01_ab;");
        // The same token as history and as a live sample: the second one has no effect.
        assert_eq!(peers.add(NOW, &publisher(OTHER, 1)), None);
        assert_eq!(events(&mut peers), []);
        peers.remove(&publisher(OTHER, 1));
        peers.remove(&token(OTHER, 0, "NN", ""));
        assert!(matches!(
            events(&mut peers)[..],
            [
                TransportEvent::Discovery(ParticipantEvent::EndpointLost(_)),
                TransportEvent::Discovery(ParticipantEvent::ParticipantLost { .. })
            ]
        ));
        assert_eq!(peers.remote(gid), None);
        assert_eq!(peers.refused_count(), 0);
        assert!(peers.sessions.is_empty() && peers.tokens.is_empty());
    }

    #[test]
    fn qos_matches_always_and_a_type_hash_must_be_equal() {
        let mut peers = peers();
        peers.matcher_mut().add_local(&reader("RIHS01_ab"));
        peers.add(NOW, &publisher(OTHER, 1));
        let matched = events(&mut peers)
            .into_iter()
            .find_map(|event| match event {
                TransportEvent::Discovery(ParticipantEvent::Matched { remote, .. }) => Some(remote),
                _ => None,
            });
        // No assertions of manual liveliness exist on this transport.
        let qos = &matched.unwrap().qos;
        assert_eq!(qos.liveliness, Liveliness::Automatic);
        assert!(qos.lease_duration.is_infinite());
        peers.matcher_mut().add_local(&reader("RIHS01_cd"));
        assert!(events(&mut peers).iter().any(|event| matches!(
            event,
            TransportEvent::Discovery(ParticipantEvent::InconsistentTopic { .. })
        )));
    }

    #[test]
    fn a_service_has_an_endpoint_of_requests_and_one_of_replies() {
        let mut peers = peers();
        let service = "/%add/example_interfaces::srv::dds_::AddTwoInts_/RIHS01_ef/::,10:,:,:,,";
        let server = peers.add(NOW, &token(OTHER, 1, "SS", service)).unwrap();
        let client = peers.add(NOW, &token(OTHER, 2, "SC", service)).unwrap();
        let (server, client) = (peers.remote(server).unwrap(), peers.remote(client).unwrap());
        let topic = |guid: Guid| peers.matcher().remote(guid).unwrap().topic.clone();
        assert!(server.main.entity.is_reader() && client.main.entity.is_writer());
        assert_eq!(topic(server.main), "rq/addRequest");
        assert_eq!(topic(client.main), "rq/addRequest");
        let (replier, heard) = (server.replies.unwrap(), client.replies.unwrap());
        assert!(replier.entity.is_writer() && heard.entity.is_reader());
        assert_eq!(topic(replier), "rr/addReply");
        let session: SessionId = OTHER.parse().unwrap();
        let add = "0/add/example_interfaces::srv::dds_::AddTwoInts_/RIHS01_ef";
        assert_eq!(peers.replier(Some(session), add), Some(replier));
        let unknown = SessionId::from_le_bytes([9; 16]);
        assert_eq!(peers.replier(Some(unknown), add), None);
        assert_eq!(peers.replier(None, add), Some(replier));
        assert_eq!(peers.replier(None, "0/other"), None);
        // Another service of the same name and session.
        let other = service.replace("AddTwoInts", "Trigger");
        let other = peers.add(NOW, &token(OTHER, 3, "SS", &other)).unwrap();
        let other = peers.remote(other).unwrap().replies;
        let trigger = add.replace("AddTwoInts", "Trigger");
        assert_eq!(peers.replier(Some(session), &trigger), other);
        assert_eq!(peers.replier(Some(session), add), Some(replier));
        peers.remove(&token(OTHER, 1, "SS", service));
        assert_eq!(peers.replier(Some(session), add), None);
        assert_eq!(peers.servers.len(), 1);
    }

    #[test]
    fn a_session_of_pteros_keeps_the_guids_of_its_context() {
        let mut peers = peers();
        let prefix = GuidPrefix([9; 12]);
        let entity = EntityId::new([0, 0, 5], EntityId::KIND_WRITER_NO_KEY);
        let number = u32::from_be_bytes(entity.to_bytes());
        let session = SessionId::of_context(prefix).to_string();
        let gid = peers.add(NOW, &publisher(&session, usize::try_from(number).unwrap()));
        assert_eq!(
            peers.remote(gid.unwrap()).unwrap().main,
            prefix.with(entity)
        );
    }

    #[test]
    fn many_tokens_of_a_session_make_one_node_list() {
        let mut peers = peers();
        let mut found = Vec::new();
        for number in 0..100 {
            peers.add(NOW, &publisher(OTHER, number));
            peers.take_discovery(&mut found);
        }
        let is_list = |event: &&TransportEvent| matches!(event, TransportEvent::Nodes { .. });
        assert_eq!(found.iter().filter(is_list).count(), 0);
        peers.take_node_lists(&mut found);
        assert_eq!(found.iter().filter(is_list).count(), 1);
        assert!(!peers.has_events());
    }

    #[test]
    fn own_foreign_and_malformed_tokens_announce_nothing() {
        let mut peers = peers();
        let own = SessionId::of_context(GuidPrefix([7; 12])).to_string();
        peers.add(NOW, &publisher(&own, 1));
        assert_eq!(peers.refused_count(), 0);
        let bad = [
            "@ros2_lv/0/x".to_owned(),
            token(OTHER, 1, "XX", ""),
            token(OTHER, 1, "MP", ""),
            token(OTHER, 1, "MP", &format!("/%chatter/{STRING}:::::")),
            publisher(OTHER, 1).replacen("/0/", "/3/", 1),
        ];
        for (refused, token) in (1..).zip(&bad) {
            peers.add(NOW, token);
            assert_eq!(peers.refused_count(), refused, "{token}");
        }
        for token in &bad {
            peers.remove(token);
        }
        assert_eq!(events(&mut peers).len(), 0, "nobody was announced");
        assert!(peers.sessions.is_empty());
    }

    #[test]
    fn no_session_announces_more_than_its_limits() {
        let limits = Limits {
            endpoints_per_participant: 4,
            remote_participants: 2,
            ..Limits::default()
        };
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let mut peers = Peers::new(own, 0, limits, RtpsReach::Off);
        for number in 0..100 {
            peers.add(NOW, &publisher(OTHER, number));
        }
        assert_eq!(peers.matcher().remotes().count(), 4);
        for session in 1..=50 {
            peers.add(NOW, &publisher(&format!("{session:x}"), 1));
        }
        assert_eq!(peers.sessions.len(), 2);
        assert_eq!(peers.refused_count(), 96 + 49);
        for number in 0..100 {
            peers.remove(&publisher(OTHER, number));
        }
        assert_eq!(peers.sessions.len(), 1);
        peers.add(NOW, &publisher("abc", 1));
        assert_eq!(peers.sessions.len(), 2, "there is room again");
    }

    #[test]
    fn sessions_that_share_all_space_leave_some_for_others() {
        for (kind, rest) in [
            ("MP", format!("/%chatter/{STRING}2::,7:,:,:3,1,0")),
            ("SS", "/%add/srv::Add_/RIHS01_ef/::,10:,:,:,,".to_owned()),
            ("NN", String::new()),
        ] {
            let limits = Limits {
                endpoints_per_participant: 70,
                endpoints: 300,
                ..Limits::default()
            };
            let own = SessionId::of_context(GuidPrefix([7; 12]));
            let mut peers = Peers::new(own, 0, limits, RtpsReach::Off);
            for number in 0..2_000 {
                let session = format!("{:x}", 100 + number % 9);
                peers.add(NOW, &token(&session, number, kind, &rest));
            }
            let before = peers.tokens.len();
            for number in 0..5 {
                peers.add(NOW, &publisher("abc", number));
            }
            assert_eq!(peers.tokens.len(), before + 5, "{kind}");
            // What has gone is free again.
            for number in 0..2_000 {
                let session = format!("{:x}", 100 + number % 9);
                peers.remove(&token(&session, number, kind, &rest));
            }
            assert_eq!((peers.tokens.len(), peers.endpoints), (5, 5), "{kind}");
        }
    }

    /// A context with both transports, its publisher's token, and peers whose contexts have
    /// RTPS.
    fn both() -> (Peers, GuidPrefix, String) {
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let prefix = GuidPrefix([9; 12]);
        let mut peers = Peers::new(own, 0, Limits::default(), RtpsReach::Network);
        peers.matcher_mut().add_local(&reader("RIHS01_ab"));
        let session = SessionId::of_context(prefix).to_string();
        (peers, prefix, publisher(&session, 1))
    }

    fn after(millis: i64) -> Instant {
        NOW.after(Duration::from_millis(millis))
    }

    #[test]
    fn a_session_that_rtps_reaches_in_time_announces_nothing() {
        let (mut peers, prefix, token) = both();
        let gid = peers.add(NOW, &token).unwrap();
        assert!(peers.next_expiry().is_some() && !peers.is_on_rtps(gid));
        peers.note_rtps_participant(after(100), prefix, true);
        assert!(peers.is_on_rtps(gid) && peers.next_expiry().is_none());
        assert_eq!(peers.expire(after(60_000)), []);
        assert_eq!(events(&mut peers), []);
        assert_eq!(peers.remote(gid), None);
        // Other sessions are unaffected.
        assert!(peers.add(NOW, &publisher(OTHER, 1)).is_some());
        assert!(!events(&mut peers).is_empty());
        // RTPS loses the participant, then the session ends.
        assert_eq!(
            peers.note_rtps_participant(after(70_000), prefix, false),
            [gid]
        );
        assert!(!peers.is_on_rtps(gid));
        let is_match = |event: &TransportEvent| {
            matches!(
                event,
                TransportEvent::Discovery(ParticipantEvent::Matched { .. })
            )
        };
        assert_eq!(
            events(&mut peers)
                .iter()
                .filter(|event| is_match(event))
                .count(),
            1
        );
        peers.remove(&token);
        assert!(!events(&mut peers).is_empty());
        assert_eq!(peers.tokens.len(), 1);
    }

    #[test]
    fn a_session_that_rtps_does_not_reach_is_announced_after_a_while() {
        let (mut peers, prefix, token) = both();
        let gid = peers.add(NOW, &token).unwrap();
        let expiry = peers.next_expiry().unwrap();
        assert_eq!(peers.expire(NOW), []);
        assert_eq!(peers.expire(expiry), [gid]);
        assert!(peers.remote(gid).is_some());
        // Its further tokens do not wait any more.
        let second = token.replacen("/0/1/", "/0/2/", 1);
        assert!(peers.add(expiry, &second).is_some());
        events(&mut peers);
        // RTPS reaches it late: the announced endpoints end first.
        peers.note_rtps_participant(after(9_000), prefix, true);
        assert!(peers.is_on_rtps(gid) && peers.remote(gid).is_none());
        let ended = events(&mut peers);
        let ends = |event: &&TransportEvent| {
            matches!(
                event,
                TransportEvent::Discovery(
                    ParticipantEvent::Unmatched { .. }
                        | ParticipantEvent::EndpointLost(_)
                        | ParticipantEvent::ParticipantLost { .. }
                )
            )
        };
        assert_eq!(ended.iter().filter(ends).count(), ended.len());
        assert_eq!(ended.len(), 2 + 2 + 1);
        peers.remove(&token);
        peers.remove(&second);
        assert!(
            peers
                .note_rtps_participant(after(9_500), prefix, false)
                .is_empty()
        );
        assert_eq!(peers.suppressed.token_count(), 0);
    }

    #[test]
    fn a_suppressed_session_has_the_same_limits() {
        let limits = Limits {
            endpoints_per_participant: 4,
            remote_participants: 2,
            ..Limits::default()
        };
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let mut peers = Peers::new(own, 0, limits, RtpsReach::Network);
        for last in 1..=50 {
            let session = SessionId::of_context(GuidPrefix([last; 12])).to_string();
            for number in 0..20 {
                peers.add(NOW, &publisher(&session, number));
            }
        }
        assert_eq!(peers.suppressed.token_count(), 2 * 8);
        // One of the sessions is the own one.
        assert_eq!(peers.refused_count(), 49 * 20 - 16);
    }

    #[test]
    fn subscriptions_of_suppressed_sessions_are_known_by_key() {
        let (mut peers, prefix, token) = both();
        let token = token.replacen("/MP/", "/MS/", 1);
        let key = "0/chatter/std_msgs::msg::dds_::String_/RIHS01_ab";
        assert!(!peers.is_read_by_suppressed(key));
        peers.add(NOW, &token);
        assert!(peers.is_read_by_suppressed(key));
        peers.note_rtps_participant(NOW, prefix, false);
        assert!(!peers.is_read_by_suppressed(key));
        peers.remove(&token);
        assert!(peers.tokens.is_empty());
    }
}
