//! What stands between a participant's protocol and its sockets: protects what
//! goes out as the governance asks for, and hands on of what comes in only what
//! is as protected as that and from whom it says. Bytes in, bytes out: no socket,
//! clock or thread; shared by all threads that send.
//!
//! ```text
//!  protocol                      Shield                       network
//!  HEADER INFO_DST DATA  -- seal: DATA's payload, then DATA,
//!                            then all of the message -->  HEADER SRTPS_PREFIX ...
//!  HEADER INFO_DST DATA  <-- open: the other way round,
//!                            or nothing --                HEADER SRTPS_PREFIX ...
//! ```
//! Keys are made here and given to whoever carries them to the peer
//! ([`Shield::participant_keys`], [`Shield::endpoint_keys`]); the peers' are told
//! here. What has no key is not sent, and what comes without is dropped: the
//! reliable protocol sends it again.

mod datagram;
mod keys;
mod open;
mod own;
mod peers;
mod protection;
mod refusals;
mod seal;
mod submessage;

use std::collections::BTreeMap;

use parking_lot::{Mutex, RwLock};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};

use self::own::OwnEndpoint;
use self::peers::{Incoming, Keys, Peer, Remote};
use self::protection::{EndpointProtection, secured_endpoints, transformation};
use self::refusals::Refusals;
use crate::attributes::SecurityInfo;
use crate::crypto::{KeyMaterial, Layer, Opener, Receiver, Sealer};
use crate::governance::{DomainRule, Protection};
use crate::key::RandomnessFailed;

pub use self::keys::KeysError;
pub use self::open::Workspace;
pub use self::refusals::Refusal;
pub use self::seal::{Sealed, Unsealed};

/// The protection of one participant's messages; see the [module](self).
///
/// Peers are as many as were told by [`Shield::authenticated`] and
/// [`Shield::allow_plain`]; nothing that arrives makes it remember more, but for
/// at most 1024 refusals that were told.
#[derive(Debug)]
pub struct Shield {
    own: GuidPrefix,
    /// Of whole messages.
    message: Protection,
    discovery_is_open: bool,
    /// Who has messages as they are in memory cannot prove whose they are.
    permits_memory: bool,
    state: RwLock<State>,
    refusals: Refusals,
}

/// What changes when endpoints and peers come and go.
#[derive(Debug)]
struct State {
    /// Of whole messages.
    participant: Sealer,
    own: BTreeMap<EntityId, OwnEndpoint>,
    peers: BTreeMap<GuidPrefix, Peer>,
}

impl Shield {
    /// For the participant `own` of a domain with this rule: fresh keys for it
    /// and for its secured built-in endpoints.
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
                .insert(entity, OwnEndpoint::new(entity, protection)?);
        }
        Ok(Self {
            own,
            message: rule.rtps,
            discovery_is_open: !rule.discovery.is_on(),
            permits_memory: !proves_origin(rule),
            state: RwLock::new(state),
            refusals: Refusals::default(),
        })
    }

    /// This participant made sure who the other one is: from now on keys are
    /// exchanged with it. Everything else of it stays shut until its keys came.
    /// `vendor` is whose implementation it is, as the handshake has it; `kx` is
    /// [`SharedSecret::key_exchange_material`](crate::auth::SharedSecret::key_exchange_material).
    /// One that was known before begins anew.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn authenticated(
        &self,
        remote: GuidPrefix,
        vendor: VendorId,
        kx: KeyMaterial,
    ) -> Result<(), RandomnessFailed> {
        let opener = Opener::new(kx.clone(), false);
        let keys = Keys {
            // Without a window: Cyclone DDS's writer and reader of keys have a
            // session each, at the same time. What comes again has a number that
            // has been, and says nothing new.
            exchange: Some(Incoming::new(EntityId::PARTICIPANT, opener, false)),
            ..Keys::default()
        };
        self.insert(remote, vendor, Some(Sealer::new(kx)?), keys)
    }

    /// This participant has no identity and the governance lets it in without:
    /// what is not protected may come from it.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn allow_plain(&self, remote: GuidPrefix) -> Result<(), RandomnessFailed> {
        self.insert(remote, VendorId::default(), None, Keys::default())
    }

    fn insert(
        &self,
        remote: GuidPrefix,
        vendor: VendorId,
        kx: Option<Sealer>,
        keys: Keys,
    ) -> Result<(), RandomnessFailed> {
        self.forget(remote);
        let mut state = self.state.write();
        let participant = state.participant.material();
        let own_keys = match self.message.authenticates_origin() {
            true => participant.for_another_receiver()?,
            false => participant.clone(),
        };
        let peer = Peer {
            kx,
            vendor,
            shares_memory: false,
            own_keys: Receiver::new(own_keys),
            endpoints: BTreeMap::new(),
            keys: Mutex::new(keys),
        };
        state.peers.insert(remote, peer);
        Ok(())
    }

    /// Whether the governance lets messages go through shared memory at all: not
    /// where it asks for proof of their origin.
    pub fn permits_memory(&self) -> bool {
        self.permits_memory
    }

    /// Memory may be shared with this participant, where messages lie as they
    /// are: it has authenticated as the identity that we have ourselves, so it
    /// has our permissions, too. False, and nothing is done, if it has not
    /// authenticated or the governance is against it.
    pub fn share_memory(&self, remote: GuidPrefix) -> bool {
        let mut state = self.state.write();
        let peer = state.peers.get_mut(&remote);
        match peer.filter(|peer| peer.kx.is_some() && self.permits_memory) {
            None => false,
            Some(peer) => {
                peer.shares_memory = true;
                true
            }
        }
    }

    /// Whether [`Self::share_memory`] was said of it.
    pub fn shares_memory(&self, remote: GuidPrefix) -> bool {
        let state = self.state.read();
        let peer = state.peers.get(&remote);
        peer.is_some_and(|peer| peer.shares_memory)
    }

    /// A code that proves a statement to the one participant that memory is shared
    /// with, made with what the handshake agreed on; nothing for others.
    pub fn memory_code(&self, remote: GuidPrefix, statement: &[u8]) -> Option<[u8; 16]> {
        let state = self.state.read();
        let peer = state.peers.get(&remote)?;
        let exchange = peer.kx.as_ref().filter(|_| peer.shares_memory)?;
        Some(exchange.material().code(MEMORY_LABEL, statement))
    }

    /// A participant is gone, or may no longer be talked to: nothing but what
    /// anybody may send is let through of it from now on.
    pub fn forget(&self, remote: GuidPrefix) {
        let mut state = self.state.write();
        state.peers.remove(&remote);
        for own in state.own.values_mut() {
            own.receivers.retain(|guid, _| guid.prefix != remote);
        }
        drop(state);
        self.refusals.forget(remote);
    }

    /// An endpoint of ours, before it sends anything: what is not known here is
    /// not sent. Secured built-in ones are known from the start.
    ///
    /// # Errors
    /// Without randomness there are no keys.
    pub fn add_endpoint(&self, own: EntityId, info: SecurityInfo) -> Result<(), RandomnessFailed> {
        let endpoint = OwnEndpoint::new(own, EndpointProtection::of(info))?;
        self.state.write().own.insert(own, endpoint);
        Ok(())
    }

    /// It is gone, and with it whatever it matched.
    pub fn remove_endpoint(&self, own: EntityId) {
        let mut state = self.state.write();
        state.own.remove(&own);
        for peer in state.peers.values_mut() {
            let remotes: Vec<_> = peer.endpoints.keys().copied().collect();
            for remote in remotes {
                peer.unpair(own, remote);
            }
        }
    }

    /// An endpoint of ours and a peer's match, and both may: what the peer's
    /// sends is let through as far as it is protected. False, and nothing is
    /// done, if either is unknown here.
    pub fn pair(&self, own: EntityId, remote: Guid) -> bool {
        self.state.write().pair(own, remote)
    }

    /// They match no longer, though both stay.
    pub fn unpair(&self, own: EntityId, remote: Guid) {
        let mut state = self.state.write();
        if let Some(local) = state.own.get_mut(&own) {
            local.receivers.remove(&remote);
        }
        if let Some(peer) = state.peers.get_mut(&remote.prefix) {
            peer.unpair(own, remote.entity);
        }
    }

    /// A peer's endpoint is gone, or may no longer be talked to.
    pub fn forget_endpoint(&self, remote: Guid) {
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

    /// Whether all keys that this pair needs of the remote participant are there.
    pub fn is_open(&self, own: EntityId, remote: Guid) -> bool {
        let state = self.state.read();
        let (Some(local), Some(peer)) = (state.own.get(&own), state.peers.get(&remote.prefix))
        else {
            return false;
        };
        let has_message_keys = !self.message.is_on() || peer.keys.lock().participant.is_some();
        has_message_keys && peer.has_keys(remote.entity, own, local.protection)
    }

    /// Bytes by which one fragment in a datagram of its own grows, codes for
    /// single receivers aside: what it is to be cut smaller by to fit a frame.
    pub fn overhead_bytes(&self) -> usize {
        let layers = [Layer::Payload, Layer::Submessage];
        let layers = layers.map(|layer| Sealer::overhead_bytes(layer, 0));
        let message = match self.message.is_on() {
            true => Sealer::overhead_bytes(Layer::Message, 0)
                .saturating_add(submessage::INFO_SOURCE_BYTES),
            false => 0,
        };
        layers.into_iter().fold(message, usize::saturating_add)
    }

    /// What was refused since the last call: each participant and reason once.
    pub fn take_refusals(&self) -> Vec<(GuidPrefix, Refusal)> {
        self.refusals.news()
    }

    /// How much was refused for this reason, submessages or whole messages.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refusals.count(refusal)
    }
}

fn proves_origin(rule: &DomainRule) -> bool {
    let mut kinds = rule.topics.iter().map(|topic| topic.metadata);
    rule.rtps.authenticates_origin() || kinds.any(Protection::authenticates_origin)
}

/// Keeps codes for shared memory apart from session keys.
const MEMORY_LABEL: &[u8] = b"pteros shared memory";

impl State {
    /// Begins new sessions of all keys that are worn out.
    fn renew(&mut self) {
        let own = self.own.values_mut();
        let own = own.flat_map(|own| own.submessage.iter_mut().chain(&mut own.payload));
        let exchanges = self.peers.values_mut().filter_map(|peer| peer.kx.as_mut());
        let all = own.chain(exchanges).chain([&mut self.participant]);
        all.for_each(Sealer::renew);
    }

    fn pair(&mut self, own: EntityId, remote: Guid) -> bool {
        let (Some(local), Some(peer)) = (self.own.get(&own), self.peers.get_mut(&remote.prefix))
        else {
            return false;
        };
        // Nobody may take part in what is protected who did not authenticate.
        if peer.kx.is_none() && !local.protection.is_none() {
            return false;
        }
        let protection = local.protection.of_sender(remote.entity);
        let entry = peer.endpoints.entry(remote.entity);
        let endpoint = entry.or_insert_with(|| Remote {
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
    use crate::document::Source;
    use crate::governance::Governance;

    #[test]
    fn keys_that_are_worn_out_are_renewed_and_nobody_notices() {
        let text = "<dds><domain_access_rules><domain_rule><domains><id>0</id></domains>\
            <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\
            <enable_join_access_control>true</enable_join_access_control>\
            <discovery_protection_kind>ENCRYPT</discovery_protection_kind>\
            <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>\
            <rtps_protection_kind>SIGN</rtps_protection_kind><topic_access_rules/>\
            </domain_rule></domain_access_rules></dds>";
        let source = Source {
            file: "governance.xml",
            text,
            first_line: 1,
        };
        let governance = Governance::read(source).unwrap();
        let rule = governance.rule(0).unwrap();
        let (ours, theirs) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let (alice, bob) = (
            Shield::new(ours, rule).unwrap(),
            Shield::new(theirs, rule).unwrap(),
        );
        let kx = KeyMaterial::generate(transformation(true), false).unwrap();
        let vendor = VendorId::PTEROS;
        alice.authenticated(theirs, vendor, kx.clone()).unwrap();
        bob.authenticated(ours, vendor, kx).unwrap();
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
        let (mut workspace, mut clean) = (Workspace::default(), [0; 512]);
        let mut sealed = Sealed::default();
        for wears_out in [false, true, false, true, true] {
            if wears_out {
                let mut state = alice.state.write();
                state.participant.wear_out();
                let own = state.own.get_mut(&publications).unwrap();
                own.submessage.as_mut().unwrap().wear_out();
            }
            alice.seal(&[&heartbeat[..]], &mut sealed).unwrap();
            let datagram = sealed.datagrams().next().unwrap();
            let length = bob.open(datagram, &mut workspace, &mut clean);
            assert_eq!(clean.get(..length.unwrap()), Some(&heartbeat[..]));
        }
    }
}
