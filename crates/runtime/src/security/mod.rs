//! DDS Security of a context (DDS Security 1.1): own identity, authenticated peers
//! and their permissions.
//!
//! `pteros-security` makes decisions and proofs, `pteros-rtps` transports them; this
//! module connects both. A participant that announces an identity is unauthenticated
//! until its authentication handshake has succeeded and its permissions allow it in the
//! domain. Before that it receives only the handshake. All other traffic passes the
//! crypto transform (`Core::crypto_transform`), which protects outgoing and verifies
//! incoming datagrams.

mod access_control;
mod authentication_handshake;
mod credentials;
mod key_exchange;
mod revalidation;

pub(crate) use credentials::Credentials;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::participant::Participant;
use pteros_rtps::time::Instant;
use pteros_security::auth::Handshakes;
use pteros_security::certificate::Certificate;
use pteros_security::crypto_transform::CryptoTransform;
use pteros_security::enclave_watch::EnclaveWatch;
use pteros_security::permissions::access_control::AccessControl;

use crate::lock::{Mutex, RwLock, rank};
use crate::log_limiter::LogLimiter;
use crate::platform::Platform;
use crate::scheduler::Scheduler;
use crate::send::SendPath;

/// The identity of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityOptions {
    /// The folder of the enclave.
    pub enclave: std::path::PathBuf,
}

/// Security of one context. Thread-safe.
///
/// The core passes it the events of unauthenticated participants and calls it before each
/// match. It sends through the participant, and never accesses an endpoint.
pub(crate) struct Security {
    prefix: GuidPrefix,
    parts: SecurityParts,
    /// The permissions of this context.
    permissions: RwLock<Arc<AccessControl>, rank::Permissions>,
    crypto_transform: Arc<CryptoTransform>,
    state: Mutex<SecurityState, rank::SecurityState>,
    messages: AtomicI64,
    /// Whether unvalidated participants are known.
    has_unvalidated: AtomicBool,
}

/// A local endpoint and a remote one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct EndpointPair {
    own: Guid,
    remote: Guid,
}

struct SecurityState {
    handshakes: Handshakes,
    peers: BTreeMap<GuidPrefix, AdmittedPeer>,
    /// Problems already reported per participant, so that each is reported once.
    reported: BTreeMap<GuidPrefix, String>,
    /// Limits the lines about them.
    refusal_log: LogLimiter,
    /// Rejected participants, with the time until which no handshake is started.
    refused: BTreeMap<GuidPrefix, Instant>,
    /// Protected goodbyes for lost participants that may not have noticed.
    goodbyes: BTreeMap<GuidPrefix, Vec<u8>>,
    /// When certificates and permissions are checked again.
    next_check: Instant,
    /// The files that they come from.
    watch: EnclaveWatch,
    /// Matches that wait for keys. At most one per match.
    pending: BTreeMap<EndpointPair, PendingMatch>,
    /// Denied matches, with the reason.
    denied: BTreeMap<EndpointPair, String>,
    /// Local endpoints whose permission was revoked, with the reason.
    revoked_endpoints: BTreeMap<Guid, String>,
}

/// A match that waits for keys.
struct PendingMatch {
    remote: Arc<EndpointData>,
    route: Route,
    vendor: VendorId,
}

/// A match whose keys have arrived.
pub(crate) struct ReadyMatch {
    pub(crate) own: Guid,
    pub(crate) remote: Arc<EndpointData>,
    pub(crate) route: Route,
    pub(crate) vendor: VendorId,
}

/// The parts of a context that security uses.
pub(crate) struct SecurityParts {
    pub(crate) domain_id: u32,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) participant: Arc<Mutex<Participant, rank::Participant>>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) send: Arc<SendPath>,
}

/// An authenticated participant.
struct AdmittedPeer {
    subject: String,
    /// Its certificate, followed by those up to the certificate authority.
    chain: Vec<Certificate>,
    /// Its permissions.
    access: AccessControl,
}

/// Remembered rejections, and as many lost participants. Above the limit all are dropped
/// and reported again.
const REMEMBERED_MAX: usize = 64;

impl Security {
    /// The certificate subjects of authenticated participants.
    pub(crate) fn authenticated(&self) -> Vec<(GuidPrefix, String)> {
        let state = self.state.lock();
        let peers = state.peers.iter();
        peers
            .map(|(prefix, peer)| (*prefix, peer.subject.clone()))
            .collect()
    }

    /// Whether two other participants, both authenticated, run in different
    /// enclaves. Then they share no memory.
    pub(crate) fn are_in_different_enclaves(&self, one: GuidPrefix, other: GuidPrefix) -> bool {
        let state = self.state.lock();
        let subject = |prefix| state.peers.get(prefix).map(|peer| &peer.subject);
        match (subject(&one), subject(&other)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        }
    }

    /// Sets the number of participants known by announcements only.
    pub(crate) fn set_unvalidated_count(&self, count: usize) {
        self.has_unvalidated.store(count > 0, Ordering::Relaxed);
    }

    fn access(&self) -> Arc<AccessControl> {
        self.permissions.read().clone()
    }

    fn next_message(&self) -> i64 {
        self.messages.fetch_add(1, Ordering::Relaxed)
    }
}

impl SecurityState {
    /// Reports why a participant is refused, once.
    fn report(&mut self, now: Instant, prefix: GuidPrefix, why: String) {
        if self.reported.get(&prefix) == Some(&why) {
            return;
        }
        if self.refusal_log.admits(now) {
            tracing::warn!("participant {prefix} is refused: {why}");
        }
        if self.reported.len() >= REMEMBERED_MAX {
            self.reported.clear();
        }
        self.reported.insert(prefix, why);
    }
}
