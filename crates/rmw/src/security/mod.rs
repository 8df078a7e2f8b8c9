//! A context that is secured (DDS Security 1.1): who it is, who others are and
//! what they may do. `pteros-security` decides and proves, `pteros-rtps` carries;
//! here both meet.
//!
//! A newcomer that announces an identity is a stranger until its handshake has
//! succeeded and its permissions let it be here; nothing but that handshake is
//! said to it before. What it and others send passes the shield
//! (`Core::shield`), which protects it and believes nothing else.

mod covering;
mod opening;
mod talk;

pub(crate) use covering::Opening;
pub(crate) use opening::Credentials;

use std::collections::BTreeMap;

use parking_lot::Mutex;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::time::Instant;
use pteros_security::auth::Handshakes;

/// Which identity a context has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityOptions {
    /// The enclave's folder.
    pub enclave: std::path::PathBuf,
}

/// Security of one context.
pub(crate) struct Security {
    state: Mutex<State>,
}

struct State {
    handshakes: Handshakes,
    peers: BTreeMap<GuidPrefix, Authenticated>,
    /// Of whom what was said, so that it is said once.
    told: BTreeMap<GuidPrefix, String>,
    /// Those who are not begun with again until then.
    refused: BTreeMap<GuidPrefix, Instant>,
}

/// One who has proved who it is.
struct Authenticated {
    subject: String,
}

/// Participants whose refusal is remembered; beyond that all are forgotten, and
/// told of again.
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
