//! Events of a [`Participant`](super::Participant): discovery, matching, security.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::id::{Guid, GuidPrefix, VendorId};
use crate::locator::{IpAddress, Locator, Route};
use crate::qos::{Liveliness, PolicyId};

use super::path_evidence::PathReason;

/// Why a remote participant was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostReason {
    /// It announced its end (SPDP dispose).
    Disposed,
    /// Participant lease expired: no datagram came in time.
    LeaseExpired,
    /// Another participant uses its address, and it no longer answers.
    AddressTakenOver,
    /// Its process ended without a dispose, which the owner observed.
    ProcessEnded,
    /// Access revoked: its identity or permissions expired or were revoked.
    AccessRevoked,
    /// It restarted with the same GUID, and is discovered again as another one.
    Restarted,
    /// The table of participants was full, and a newcomer with a better claim took
    /// its place.
    Evicted,
    /// It repeats the authentication handshake, after one side lost the other or
    /// after changed permissions. Its endpoints are the same.
    Reauthenticating,
}

/// A table of discovery that peers fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Remote participants.
    Participants,
    /// Remote endpoints.
    Endpoints,
    /// Bytes of the records of participants, endpoints and nodes.
    Memory,
}

/// The source that holds most of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableHolder {
    /// Its address; `None` for this host, or if no address is known.
    pub address: Option<IpAddress>,
    /// Whether it is this host, for which `address` is `None`.
    pub is_this_host: bool,
    /// The number of its entries.
    pub held: usize,
}

/// How full a table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableFill {
    /// The table of participants, of endpoints, or of bytes.
    pub table: Table,
    /// Its entries.
    pub held: usize,
    /// The most that it may hold: entries, or bytes for [`Table::Memory`].
    pub limit: usize,
    /// The source with the most entries.
    pub holder: TableHolder,
}

/// Discovery events, in the order in which they happened.
///
/// A lost participant causes `Unmatched` for every pair, then `EndpointLost` for
/// every endpoint, then `ParticipantLost`.
#[derive(Clone, PartialEq, Debug)]
pub enum ParticipantEvent {
    /// A remote participant answered and is discovered.
    ParticipantDiscovered(Arc<ParticipantData>),
    /// Its announcement changed (user data, locators, lease).
    ParticipantChanged(Arc<ParticipantData>),
    /// It was lost.
    ParticipantLost {
        /// The participant.
        prefix: GuidPrefix,
        /// Cause of the loss; the events of its endpoints come first.
        reason: LostReason,
    },
    /// Datagrams in the name of a participant come from an address that it has not
    /// proven, and are dropped. Emitted once per participant, and again of another
    /// address after a minute.
    SourceRefused {
        /// The participant.
        prefix: GuidPrefix,
        /// The address.
        from: IpAddress,
    },
    /// A participant has announced itself for 5 s, but answers nothing, so it is not
    /// discovered. Emitted once, and at most one of them in a minute.
    ParticipantSilent {
        /// The participant.
        data: Arc<ParticipantData>,
        /// The source address of its announcements.
        from: Option<Locator>,
    },
    /// A participant answers after it was lost by a claim in its name.
    /// `ParticipantDiscovered` follows.
    ParticipantReturned {
        /// The participant.
        prefix: GuidPrefix,
        /// The claim: [`LostReason::Disposed`], most often forged, or
        /// [`LostReason::Restarted`].
        reason: LostReason,
    },
    /// A remote writer or reader exists.
    EndpointDiscovered(Arc<EndpointData>),
    /// Its QoS, user data or locators changed. If it is still matched, the proxies
    /// of its writers and readers should take the new route.
    EndpointChanged {
        /// Its new state.
        remote: Arc<EndpointData>,
        /// Where samples and acknowledgements for it are sent from now on.
        route: Route,
    },
    /// It was lost.
    EndpointLost(Guid),
    /// A local and a remote endpoint match.
    Matched {
        /// The local endpoint.
        local: Guid,
        /// The remote endpoint.
        remote: Arc<EndpointData>,
        /// The route to it. No locators: none of its addresses is reachable.
        route: Route,
        /// The implementation of the remote participant (PID_VENDORID).
        vendor: VendorId,
    },
    /// A local and a remote endpoint no longer match.
    Unmatched {
        /// The local endpoint.
        local: Guid,
        /// The remote endpoint.
        remote: Guid,
    },
    /// Same topic and type, but incompatible QoS. Once per pair and set of
    /// policies.
    IncompatibleQos {
        /// The local endpoint.
        local: Guid,
        /// The remote endpoint.
        remote: Arc<EndpointData>,
        /// The policies, most important first.
        policies: Vec<PolicyId>,
    },
    /// Same topic, another type name. Once per pair.
    InconsistentTopic {
        /// The local endpoint.
        local: Guid,
        /// The remote endpoint.
        remote: Arc<EndpointData>,
    },
    /// A participant with an identity has answered and must authenticate. It is not
    /// discovered until [`Participant::admit`](super::Participant::admit).
    AuthenticationNeeded(Arc<ParticipantData>),
    /// A participant lost its place among those that authenticate, because another
    /// one came and the table was full. Its handshake ends.
    AuthenticationAbandoned(GuidPrefix),
    /// A participant that announces no identity. It is refused.
    Unauthenticated(Arc<ParticipantData>),
    /// A message of the authentication handshake, from an unverified sender.
    StatelessMessage {
        /// The participant.
        from: GuidPrefix,
        /// Its payload with encapsulation.
        payload: Bytes,
    },
    /// A key exchange message of an authenticated participant.
    KeyExchangeMessage {
        /// The participant.
        from: GuidPrefix,
        /// Its payload with encapsulation.
        payload: Bytes,
    },
    /// A table became full. From now on a newcomer is refused or takes the place of
    /// another. Once, until an eighth of the table is free again. Of memory, at most
    /// once a minute: the source whose record was refused, with its bytes.
    TableFull {
        /// The table of participants, of endpoints, or of bytes.
        table: Table,
        /// The most that it may hold: entries, or bytes for [`Table::Memory`].
        limit: usize,
        /// The source that holds most of it.
        holder: TableHolder,
    },
    /// Peers sent TypeObjects requested with
    /// [`Participant::remote_type`](super::Participant::remote_type).
    TypeObjectsReceived,
    /// Traffic to a participant moved to another of its addresses. Its endpoints
    /// have changed routes, too.
    PathChanged {
        /// The participant.
        prefix: GuidPrefix,
        /// The former address.
        from: IpAddress,
        /// The address in use from now on.
        to: IpAddress,
        /// Whether the former address failed, or a preferred one works again.
        reason: PathReason,
    },
    /// A participant asserted the liveliness of its writers of this kind.
    LivelinessAsserted {
        /// The participant.
        prefix: GuidPrefix,
        /// Automatic or manual by participant.
        kind: Liveliness,
    },
}
