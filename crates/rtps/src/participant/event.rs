//! What a [`Participant`](super::Participant) tells its owner.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::id::{Guid, GuidPrefix, VendorId};
use crate::locator::Route;
use crate::qos::{Liveliness, PolicyId};

/// Why a remote participant is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostReason {
    /// It said so.
    Goodbye,
    /// Nothing was heard of it for its lease.
    LeaseExpired,
    /// Another participant took over its address, and it no longer answers.
    Replaced,
    /// Its process ended without a goodbye, which the owner saw.
    ProcessEnded,
    /// It may be here no longer: what it proved itself with has expired, or was
    /// taken back.
    Expelled,
    /// It began anew with the same GUID, and is met again as another one.
    BeganAnew,
    /// One of both had lost the other, or may do other things now: it proves anew
    /// who it is. Its endpoints are the same.
    Renewed,
}

/// News from discovery, in the order in which they happened.
///
/// A lost participant is told as `Unmatched` for every pair, then
/// `EndpointLost` for every endpoint, then `ParticipantLost`.
#[derive(Clone, PartialEq, Debug)]
pub enum ParticipantEvent {
    /// A remote participant answered and is now spoken to.
    ParticipantDiscovered(Arc<ParticipantData>),
    /// Its announcement changed (user data, locators, lease).
    ParticipantChanged(Arc<ParticipantData>),
    /// It is gone.
    ParticipantLost {
        /// Who.
        prefix: GuidPrefix,
        /// Why.
        reason: LostReason,
    },
    /// A remote writer or reader exists.
    EndpointDiscovered(Arc<EndpointData>),
    /// Its QoS, user data or locators changed. When it is still matched, its
    /// writers' and readers' proxies should take the new route.
    EndpointChanged {
        /// Its new state.
        remote: Arc<EndpointData>,
        /// Where it is reached now.
        route: Route,
    },
    /// It is gone.
    EndpointLost(Guid),
    /// Data may flow between a local and a remote endpoint.
    Matched {
        /// Ours.
        local: Guid,
        /// Theirs.
        remote: Arc<EndpointData>,
        /// Where it is reached. No locators means that none of its addresses
        /// can be used from here.
        route: Route,
        /// Whose stack it is.
        vendor: VendorId,
    },
    /// Data no longer flows.
    Unmatched {
        /// Ours.
        local: Guid,
        /// Theirs.
        remote: Guid,
    },
    /// Same topic and type, but the writer offers too little. Told once per
    /// pair and set of policies.
    IncompatibleQos {
        /// Ours.
        local: Guid,
        /// Theirs.
        remote: Arc<EndpointData>,
        /// The policies, most telling first.
        policies: Vec<PolicyId>,
    },
    /// Same topic, another type name. Told once per pair.
    InconsistentTopic {
        /// Ours.
        local: Guid,
        /// Theirs.
        remote: Arc<EndpointData>,
    },
    /// A participant that can prove who it is has answered; it is neither met nor
    /// known until it has ([`Participant::admit`](super::Participant::admit)).
    Stranger(Arc<ParticipantData>),
    /// A participant that cannot prove who it is; it is not met.
    Unauthenticated(Arc<ParticipantData>),
    /// A stranger, or somebody in its name, says something of the handshake.
    StatelessMessage {
        /// Who.
        from: GuidPrefix,
        /// With its encapsulation.
        payload: Bytes,
    },
    /// One who has proved who it is says something about keys.
    KeysMessage {
        /// Who.
        from: GuidPrefix,
        /// With its encapsulation.
        payload: Bytes,
    },
    /// Peers sent what was asked with
    /// [`Participant::foreign_type`](super::Participant::foreign_type).
    TypesLearned,
    /// A participant asserted the liveliness of its writers of this kind.
    LivelinessAsserted {
        /// Who.
        prefix: GuidPrefix,
        /// Automatic or manual by participant.
        kind: Liveliness,
    },
}
