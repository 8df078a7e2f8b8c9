//! Crypto transform of a participant (DDS Security 1.1 §8.5, §9.5): seals outgoing
//! datagrams as the governance requires, and opens incoming ones. It passes on only
//! data that is protected as required and authentic. Bytes in, bytes out: no
//! socket, clock or thread. All sending threads share it.
//!
//! ```text
//!  protocol                  CryptoTransform                  network
//!  HEADER INFO_DST DATA  -- seal: DATA's payload, then DATA,
//!                            then all of the message -->  HEADER SRTPS_PREFIX ...
//!  HEADER INFO_DST DATA  <-- open: the other way round,
//!                            or nothing --                HEADER SRTPS_PREFIX ...
//! ```
//! It creates our keys; the key exchange sends them to peers
//! ([`CryptoTransform::participant_keys`], [`CryptoTransform::endpoint_keys`]) and
//! stores the peers' keys here. Data without a key is neither sent nor accepted.
//! The reliable protocol repeats it (retransmission).

mod datagram;
mod drop_counts;
mod keys;
mod local_endpoint;
mod open;
mod protection;
mod remote_participant;
mod seal;
mod submessage;

use std::collections::BTreeMap;

use parking_lot::{Mutex, RwLock};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};

use self::drop_counts::DropCounts;
use self::local_endpoint::LocalEndpoint;
use self::protection::{EndpointProtection, secured_endpoints, transformation};
use self::remote_participant::{RemoteEndpoint, RemoteKeys, RemoteParticipant, SenderKeys};
use crate::attributes::SecurityInfo;
use crate::crypto::{KeyMaterial, Opener, ProtectionLayer, ReceiverKey, Sealer};
use crate::governance::{DomainRule, Protection};
use crate::key::RandomnessFailed;

pub use self::drop_counts::DropReason;
pub use self::keys::KeysError;
pub use self::open::OpenBuffers;
pub use self::seal::{SealedDatagrams, TransformError};

/// Crypto transform of one participant's messages; see the [module](self).
///
/// Its peers are those added by [`CryptoTransform::add_authenticated`] and
/// [`CryptoTransform::add_unauthenticated`]. Received data adds no state, except at
/// most 1024 reported drops.
#[derive(Debug)]
pub struct CryptoTransform {
    own: GuidPrefix,
    /// For whole messages.
    message: Protection,
    discovery_is_open: bool,
    /// Messages in shared memory are not protected, so they cannot prove their
    /// origin.
    allows_shared_memory: bool,
    state: RwLock<State>,
    drop_counts: DropCounts,
}

/// State that changes with endpoints and peers.
#[derive(Debug)]
struct State {
    /// For whole messages.
    participant: Sealer,
    own: BTreeMap<EntityId, LocalEndpoint>,
    peers: BTreeMap<GuidPrefix, RemoteParticipant>,
}

impl CryptoTransform {
    /// A transform for the participant `own` in a domain with this rule. Creates
    /// keys for it and for its secured built-in endpoints.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn new(own: GuidPrefix, rule: &DomainRule) -> Result<Self, RandomnessFailed> {
        let kind = transformation(rule.rtps.encrypts());
        let mut state = State {
            participant: Sealer::new(KeyMaterial::generate(kind, false)?)?,
            own: BTreeMap::new(),
            peers: BTreeMap::new(),
        };
        for (entity, protection) in secured_endpoints(rule) {
            let protection = EndpointProtection::of_builtin(protection);
            state
                .own
                .insert(entity, LocalEndpoint::new(entity, protection)?);
        }
        Ok(Self {
            own,
            message: rule.rtps,
            discovery_is_open: !rule.discovery.is_on(),
            allows_shared_memory: !proves_origin(rule),
            state: RwLock::new(state),
            drop_counts: DropCounts::default(),
        })
    }

    /// Adds an authenticated participant: from now on keys are exchanged with it.
    /// All its other data is dropped until its keys arrive. `vendor` is its
    /// implementation, from the handshake. `kx` is
    /// [`SharedSecret::key_exchange_material`](crate::auth::SharedSecret::key_exchange_material).
    /// A known participant is reset.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn add_authenticated(
        &self,
        remote: GuidPrefix,
        vendor: VendorId,
        key_exchange: KeyMaterial,
    ) -> Result<(), RandomnessFailed> {
        let opener = Opener::new(key_exchange.clone(), false);
        let keys = RemoteKeys {
            // Without a replay window: Cyclone DDS's writer and reader of keys each
            // have their own session at the same time. A repeated message has a
            // known sequence number and changes nothing.
            exchange: Some(SenderKeys::new(EntityId::PARTICIPANT, opener, false)),
            ..RemoteKeys::default()
        };
        self.insert(remote, vendor, Some(Sealer::new(key_exchange)?), keys)
    }

    /// Adds a participant without identity that the governance allows to join:
    /// unprotected data is accepted from it.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn add_unauthenticated(&self, remote: GuidPrefix) -> Result<(), RandomnessFailed> {
        self.insert(remote, VendorId::default(), None, RemoteKeys::default())
    }

    fn insert(
        &self,
        remote: GuidPrefix,
        vendor: VendorId,
        key_exchange: Option<Sealer>,
        keys: RemoteKeys,
    ) -> Result<(), RandomnessFailed> {
        self.remove_participant(remote);
        let mut state = self.state.write();
        let participant = state.participant.material();
        let own_keys = if self.message.authenticates_origin() {
            participant.for_another_receiver()?
        } else {
            participant.clone()
        };
        let peer = RemoteParticipant {
            key_exchange,
            vendor,
            uses_shared_memory: false,
            own_keys: ReceiverKey::new(own_keys),
            endpoints: BTreeMap::new(),
            keys: Mutex::new(keys),
        };
        state.peers.insert(remote, peer);
        Ok(())
    }

    /// Whether the governance allows shared memory at all. It does not where it
    /// requires origin authentication.
    pub fn allows_shared_memory(&self) -> bool {
        self.allows_shared_memory
    }

    /// Enables shared memory, where messages are in plaintext, with this
    /// participant. It must have authenticated with our own identity, which also
    /// gives it our permissions. Returns false, and does nothing, if it has not
    /// authenticated or the governance forbids it.
    pub fn enable_shared_memory(&self, remote: GuidPrefix) -> bool {
        let mut state = self.state.write();
        let peer = state.peers.get_mut(&remote);
        match peer.filter(|peer| peer.key_exchange.is_some() && self.allows_shared_memory) {
            None => false,
            Some(peer) => {
                peer.uses_shared_memory = true;
                true
            }
        }
    }

    /// Whether [`Self::enable_shared_memory`] succeeded for it.
    pub fn uses_shared_memory(&self, remote: GuidPrefix) -> bool {
        let state = self.state.read();
        let peer = state.peers.get(&remote);
        peer.is_some_and(|peer| peer.uses_shared_memory)
    }

    /// A MAC that proves a statement to the one participant that shared memory is
    /// enabled with. Its key is derived from the handshake. `None` for others.
    pub fn shared_memory_mac(&self, remote: GuidPrefix, statement: &[u8]) -> Option<[u8; 16]> {
        let state = self.state.read();
        let peer = state.peers.get(&remote)?;
        let exchange = peer
            .key_exchange
            .as_ref()
            .filter(|_| peer.uses_shared_memory)?;
        Some(exchange.material().mac(SHARED_MEMORY_LABEL, statement))
    }

    /// Removes a participant that is gone or no longer allowed. From now on only
    /// data that needs no authentication is accepted from it.
    pub fn remove_participant(&self, remote: GuidPrefix) {
        let mut state = self.state.write();
        state.peers.remove(&remote);
        for own in state.own.values_mut() {
            own.receivers.retain(|guid, _| guid.prefix != remote);
        }
        drop(state);
        self.drop_counts.forget(remote);
    }

    /// Adds an own endpoint, before it sends anything: data of unknown endpoints is
    /// not sent. Secured built-in endpoints are known from the start.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn add_endpoint(&self, own: EntityId, info: SecurityInfo) -> Result<(), RandomnessFailed> {
        let protection = EndpointProtection::of(info);
        let endpoint = LocalEndpoint::new(own, protection)?;
        self.state.write().own.insert(own, endpoint);
        Ok(())
    }

    /// Removes an own endpoint and its matches.
    pub fn remove_endpoint(&self, own: EntityId) {
        let mut state = self.state.write();
        state.own.remove(&own);
        for peer in state.peers.values_mut() {
            let remotes: Vec<_> = peer.endpoints.keys().copied().collect();
            for remote in remotes {
                peer.unmatch(own, remote);
            }
        }
    }

    /// Matches an own endpoint with a peer's after the access check: the peer's
    /// data is accepted if it is protected as required. Returns false, and does
    /// nothing, if either is unknown here.
    pub fn match_endpoints(&self, own: EntityId, remote: Guid) -> bool {
        self.state.write().match_endpoints(own, remote)
    }

    /// Removes a peer's endpoint that is gone or no longer allowed.
    pub fn remove_remote_endpoint(&self, remote: Guid) {
        let mut state = self.state.write();
        for own in state.own.values_mut() {
            own.receivers.remove(&remote);
        }
        if let Some(peer) = state.peers.get_mut(&remote.prefix) {
            peer.endpoints.remove(&remote.entity);
            let keys = &mut peer.keys.get_mut().endpoints;
            keys.retain(|_, (of, _)| *of != remote.entity);
        }
    }

    /// Whether all keys of the remote participant that this match needs have
    /// arrived.
    pub fn has_keys_for(&self, own: EntityId, remote: Guid) -> bool {
        let state = self.state.read();
        let (Some(local), Some(peer)) = (state.own.get(&own), state.peers.get(&remote.prefix))
        else {
            return false;
        };
        let has_message_keys = !self.message.is_on() || peer.keys.lock().participant.is_some();
        has_message_keys && peer.has_keys(remote.entity, own, local.protection)
    }

    /// Bytes by which protection enlarges a fragment in a datagram of its own,
    /// without receiver-specific MACs. Fragments must be smaller by that to fit a
    /// frame.
    pub fn overhead_bytes(&self) -> usize {
        let layers = [ProtectionLayer::Payload, ProtectionLayer::Submessage];
        let layers = layers.map(|layer| Sealer::overhead_bytes(layer, 0));
        let message = if self.message.is_on() {
            Sealer::overhead_bytes(ProtectionLayer::Message, 0)
                .saturating_add(submessage::INFO_SOURCE_BYTES)
        } else {
            0
        };
        layers.into_iter().fold(message, usize::saturating_add)
    }

    /// The drops since the last call: each participant and reason once.
    pub fn take_drops(&self) -> Vec<(GuidPrefix, DropReason)> {
        self.drop_counts.take_unreported()
    }

    /// Number of submessages or whole messages dropped for this reason.
    pub fn dropped_count(&self, reason: DropReason) -> u64 {
        self.drop_counts.count(reason)
    }
}

fn proves_origin(rule: &DomainRule) -> bool {
    let mut kinds = rule.topics.iter().map(|topic| topic.metadata);
    rule.rtps.authenticates_origin() || kinds.any(Protection::authenticates_origin)
}

/// Separates the MACs for shared memory from session keys.
const SHARED_MEMORY_LABEL: &[u8] = b"pteros shared memory";

impl State {
    /// Begins new sessions of all exhausted keys.
    fn renew_worn_keys(&mut self) {
        let own = self.own.values_mut();
        let own = own.flat_map(|own| own.submessage.iter_mut().chain(&mut own.payload));
        let exchanges = self
            .peers
            .values_mut()
            .filter_map(|peer| peer.key_exchange.as_mut());
        let all = own.chain(exchanges).chain([&mut self.participant]);
        all.for_each(Sealer::renew_session);
    }

    fn match_endpoints(&mut self, own: EntityId, remote: Guid) -> bool {
        let (Some(local), Some(peer)) = (self.own.get(&own), self.peers.get_mut(&remote.prefix))
        else {
            return false;
        };
        // An unauthenticated participant must not take part in protected topics.
        if peer.key_exchange.is_none() && !local.protection.is_none() {
            return false;
        }
        let protection = local.protection.of_sender(remote.entity);
        let entry = peer.endpoints.entry(remote.entity);
        let endpoint = entry.or_insert_with(|| RemoteEndpoint {
            protection,
            locals: Vec::new(),
        });
        endpoint.protection = protection;
        if !endpoint.locals.contains(&own) {
            endpoint.locals.push(own);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocumentSource;
    use crate::governance::Governance;

    fn governance() -> Governance {
        let text = "<dds><domain_access_rules><domain_rule><domains><id>0</id></domains>\
            <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\
            <enable_join_access_control>true</enable_join_access_control>\
            <discovery_protection_kind>ENCRYPT</discovery_protection_kind>\
            <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>\
            <rtps_protection_kind>SIGN</rtps_protection_kind><topic_access_rules/>\
            </domain_rule></domain_access_rules></dds>";
        let source = DocumentSource {
            file: "governance.xml",
            text,
            first_line: 1,
        };
        Governance::read(source).unwrap()
    }

    #[test]
    fn only_endpoints_of_known_participants_and_own_ones_are_matched() {
        let governance = governance();
        let (ours, theirs) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let transform = CryptoTransform::new(ours, governance.rule(0).unwrap()).unwrap();
        let key_exchange = KeyMaterial::generate(transformation(true), false).unwrap();
        transform
            .add_authenticated(theirs, VendorId::PTEROS, key_exchange)
            .unwrap();
        let [publications, subscriptions] =
            [0xc2, 0xc7].map(|kind| EntityId::new([0xff, 0, 3], kind));
        let unknown = EntityId::new([0, 0, 9], EntityId::KIND_WRITER_NO_KEY);
        let stranger = GuidPrefix([3; 12]);
        let matches = |own, remote| transform.match_endpoints(own, remote);
        assert!(matches(publications, theirs.with(subscriptions)));
        assert!(!matches(unknown, theirs.with(subscriptions)));
        assert!(!matches(publications, stranger.with(subscriptions)));
    }

    #[test]
    fn exhausted_keys_are_renewed_without_loss() {
        let governance = governance();
        let rule = governance.rule(0).unwrap();
        let (ours, theirs) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let (alice, bob) = (
            CryptoTransform::new(ours, rule).unwrap(),
            CryptoTransform::new(theirs, rule).unwrap(),
        );
        let key_exchange = KeyMaterial::generate(transformation(true), false).unwrap();
        let vendor = VendorId::PTEROS;
        alice
            .add_authenticated(theirs, vendor, key_exchange.clone())
            .unwrap();
        bob.add_authenticated(ours, vendor, key_exchange).unwrap();
        let keys = alice.participant_keys(theirs);
        bob.set_participant_keys(ours, &keys).unwrap();
        let [publications, subscriptions] =
            [0xc2, 0xc7].map(|kind| EntityId::new([0xff, 0, 3], kind));
        let keys = alice.endpoint_keys(publications, theirs.with(subscriptions));
        bob.set_endpoint_keys(subscriptions, ours.with(publications), &keys.unwrap())
            .unwrap();

        let mut heartbeat = b"RTPS\x02\x03\x01\x50".to_vec();
        heartbeat.extend(ours.0);
        heartbeat.extend([0x07, 1, 28, 0]);
        heartbeat.extend(subscriptions.to_bytes());
        heartbeat.extend(publications.to_bytes());
        heartbeat.extend([0; 20]);
        let (mut workspace, mut clean) = (OpenBuffers::default(), [0; 512]);
        let mut sealed = SealedDatagrams::default();
        for wears_out in [false, true, false, true, true] {
            if wears_out {
                let mut state = alice.state.write();
                state.participant.exhaust_session();
                let own = state.own.get_mut(&publications).unwrap();
                own.submessage.as_mut().unwrap().exhaust_session();
            }
            alice.seal(&[&heartbeat[..]], &mut sealed).unwrap();
            let datagram = sealed.datagrams().next().unwrap();
            let length = bob.open(datagram, &mut workspace, &mut clean);
            assert_eq!(clean.get(..length.unwrap()), Some(&heartbeat[..]));
        }
    }
}
