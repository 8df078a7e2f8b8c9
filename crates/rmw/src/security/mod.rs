//! A context that is secured (DDS Security 1.1): who it is, who others are and
//! what they may do. `pteros-security` decides and proves, `pteros-rtps` carries;
//! here both meet.
//!
//! A newcomer that announces an identity is a stranger until its handshake has
//! succeeded and its permissions let it be here; nothing but that handshake is
//! said to it before. What it and others send passes the shield
//! (`Core::shield`), which protects it and believes nothing else.

mod covering;
mod keys;
mod opening;
mod permits;
mod recheck;
mod talk;

pub(crate) use covering::{Opening, warrant};
pub(crate) use opening::Credentials;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::{Mutex, RwLock};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::time::Instant;
use pteros_security::auth::Handshakes;
use pteros_security::certificate::Certificate;
use pteros_security::permissions::access::Access;
use pteros_security::shield::Shield;
use pteros_security::watch::Watch;

/// Which identity a context has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityOptions {
    /// The enclave's folder.
    pub enclave: std::path::PathBuf,
}

/// Security of one context.
pub(crate) struct Security {
    /// What we may do.
    access: RwLock<Arc<Access>>,
    shield: Arc<Shield>,
    state: Mutex<State>,
    messages: AtomicI64,
    /// Whether somebody is known by its announcements alone.
    has_candidates: AtomicBool,
}

struct State {
    handshakes: Handshakes,
    peers: BTreeMap<GuidPrefix, Authenticated>,
    /// Of whom what was said, so that it is said once.
    told: BTreeMap<GuidPrefix, String>,
    /// Those who are not begun with again until then.
    refused: BTreeMap<GuidPrefix, Instant>,
    /// For those who are gone, perhaps without knowing that: a goodbye that they
    /// would believe, protected.
    last_words: BTreeMap<GuidPrefix, Vec<u8>>,
    /// When certificates and permissions are looked at again.
    next_check: Instant,
    /// The files that they are from.
    watch: Watch,
    /// Matches that wait for keys. As many as there are matches, at most.
    pending: BTreeMap<(Guid, Guid), Pending>,
    /// Matches that are not allowed, and why.
    denied: BTreeMap<(Guid, Guid), String>,
    /// Endpoints of ours that were allowed when they were made, and are no longer:
    /// why.
    barred: BTreeMap<Guid, String>,
}

/// A match that waits for keys.
struct Pending {
    remote: Arc<EndpointData>,
    route: Route,
    vendor: VendorId,
}

/// One who has proved who it is.
struct Authenticated {
    subject: String,
    /// Its certificate, then those up to the authority.
    chain: Vec<Certificate>,
    /// What it may do.
    access: Access,
}

/// Participants whose refusal is remembered, and as many who are gone; beyond that all
/// are forgotten, and told of again.
const REMEMBERED_MAX: usize = 64;

impl Security {
    /// The subjects of those who have proved who they are.
    pub(crate) fn authenticated(&self) -> Vec<(GuidPrefix, String)> {
        let state = self.state.lock();
        let peers = state.peers.iter();
        peers
            .map(|(prefix, peer)| (*prefix, peer.subject.clone()))
            .collect()
    }

    /// Whether two others, both authenticated, run with different enclaves: then
    /// they share no memory.
    pub(crate) fn are_of_two_enclaves(&self, one: GuidPrefix, other: GuidPrefix) -> bool {
        let state = self.state.lock();
        let subject = |prefix| state.peers.get(prefix).map(|peer| &peer.subject);
        match (subject(&one), subject(&other)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        }
    }

    /// So many participants are known by their announcements alone.
    pub(crate) fn note_candidates(&self, count: usize) {
        self.has_candidates.store(count > 0, Ordering::Relaxed);
    }

    fn access(&self) -> Arc<Access> {
        self.access.read().clone()
    }

    fn next_message(&self) -> i64 {
        self.messages.fetch_add(1, Ordering::Relaxed)
    }
}

impl State {
    /// Says why somebody is refused, the first time.
    fn tell(&mut self, prefix: GuidPrefix, why: String) {
        if self.told.get(&prefix) == Some(&why) {
            return;
        }
        tracing::warn!("participant {prefix} is refused: {why}");
        if self.told.len() >= REMEMBERED_MAX {
            self.told.clear();
        }
        self.told.insert(prefix, why);
    }
}
