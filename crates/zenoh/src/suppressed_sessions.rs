//! Suppressed sessions: sessions whose contexts RTPS reaches as well.
//!
//! The id of a Pteros session holds the GUID prefix of its context. So a peer with both
//! transports recognizes the context. RTPS takes precedence, because it has shared memory and
//! acknowledgements. The session's tokens are kept here until RTPS loses the participant.
//!
//! A new session of Pteros is suppressed for a short time, because RTPS discovers at
//! about the same time. So a pair does not switch transports after it has started to
//! communicate.

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::transport::RtpsReach;

use crate::gid::Gid;
use crate::session_id::SessionId;

/// How long a new session waits for RTPS to reach it over the network. Below the wait of
/// early data for its token, so that no data is lost.
const NETWORK_WAIT: Duration = Duration::from_millis(1_500);
/// The same where RTPS reaches only processes of this host, which discover each other as
/// soon as they start.
const HOST_WAIT: Duration = Duration::from_millis(300);

/// See the module documentation. Sans-IO. The caller limits sessions and tokens.
pub struct SuppressedSessions {
    /// Wait of a new session; `None` without RTPS.
    wait: Option<Duration>,
    /// Sessions that RTPS reaches, with or without tokens here. As many as RTPS has
    /// participants.
    on_rtps: BTreeSet<SessionId>,
    sessions: BTreeMap<SessionId, SuppressedSession>,
    /// Tokens of all suppressed sessions.
    tokens: usize,
    /// The session of each endpoint.
    gids: BTreeMap<Gid, SessionId>,
    /// Suppressed subscriptions per key.
    readers: BTreeMap<String, usize>,
}

struct SuppressedSession {
    /// End of the wait; `None` once RTPS reaches it.
    until: Option<Instant>,
    tokens: BTreeMap<String, SuppressedToken>,
}

/// A token of a suppressed session.
pub struct SuppressedToken {
    /// The gid of an endpoint; `None` for a node.
    pub gid: Option<Gid>,
    /// The key to which a subscription subscribes.
    pub reads: Option<String>,
}

impl SuppressedSessions {
    /// No sessions yet. Without RTPS none is ever suppressed.
    pub fn new(reach: RtpsReach) -> Self {
        Self {
            wait: match reach {
                RtpsReach::Network => Some(NETWORK_WAIT),
                RtpsReach::Host { .. } => Some(HOST_WAIT),
                RtpsReach::Off => None,
            },
            on_rtps: BTreeSet::new(),
            sessions: BTreeMap::new(),
            tokens: 0,
            gids: BTreeMap::new(),
            readers: BTreeMap::new(),
        }
    }

    /// Whether to suppress a session without announced tokens: RTPS reaches it, or may
    /// soon.
    pub fn claims(&self, id: SessionId) -> bool {
        self.wait.is_some() && id.is_of_pteros()
    }

    /// Keeps a token of a suppressed session.
    pub fn add(&mut self, now: Instant, id: SessionId, key: &str, token: SuppressedToken) {
        self.tokens += 1;
        if let Some(gid) = token.gid {
            self.gids.insert(gid, id);
        }
        if let Some(key) = &token.reads {
            *self.readers.entry(key.clone()).or_default() += 1;
        }
        let wait = self.wait.filter(|_| !self.on_rtps.contains(&id));
        let session = self
            .sessions
            .entry(id)
            .or_insert_with(|| SuppressedSession {
                until: wait.map(|wait| now.after(wait)),
                tokens: BTreeMap::new(),
            });
        session.tokens.insert(key.into(), token);
    }

    /// Removes an undeclared token if it is kept here.
    pub fn remove(&mut self, id: SessionId, key: &str) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let Some(token) = session.tokens.remove(key) else {
            return;
        };
        if session.tokens.is_empty() {
            self.sessions.remove(&id);
        }
        self.forget(&token);
    }

    /// RTPS reaches a session from now on.
    pub fn begin(&mut self, id: SessionId) {
        if self.wait.is_none() {
            return;
        }
        self.on_rtps.insert(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.until = None;
        }
    }

    /// RTPS no longer reaches a session. Returns its tokens.
    pub fn end(&mut self, id: SessionId) -> Vec<String> {
        self.on_rtps.remove(&id);
        let session = self.sessions.remove(&id);
        let tokens = session.map(|session| session.tokens).unwrap_or_default();
        for token in tokens.values() {
            self.forget(token);
        }
        tokens.into_keys().collect()
    }

    /// Takes the tokens of the sessions that RTPS has not reached in time.
    pub fn take_expired(&mut self, now: Instant) -> Vec<String> {
        let is_expired =
            |session: &SuppressedSession| session.until.is_some_and(|until| until <= now);
        let expired = self
            .sessions
            .iter()
            .filter(|(_, session)| is_expired(session));
        let expired: Vec<SessionId> = expired.map(|(id, _)| *id).collect();
        expired.into_iter().flat_map(|id| self.end(id)).collect()
    }

    /// When the next wait ends.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.sessions
            .values()
            .filter_map(|session| session.until)
            .min()
    }

    /// Whether RTPS delivers the data of a gid.
    pub fn is_on_rtps(&self, gid: Gid) -> bool {
        let owner = self.gids.get(&gid);
        owner.is_some_and(|id| self.on_rtps.contains(id))
    }

    /// Whether a suppressed session subscribes to a key.
    pub fn reads(&self, key: &str) -> bool {
        self.readers.contains_key(key)
    }

    /// Whether a token is kept.
    pub fn has(&self, id: SessionId, key: &str) -> bool {
        let session = self.sessions.get(&id);
        session.is_some_and(|session| session.tokens.contains_key(key))
    }

    /// Number of suppressed sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Number of tokens of all sessions.
    pub fn token_count(&self) -> usize {
        self.tokens
    }

    /// Number of tokens of one session.
    pub fn token_count_of(&self, id: SessionId) -> usize {
        self.sessions
            .get(&id)
            .map_or(0, |session| session.tokens.len())
    }

    fn forget(&mut self, token: &SuppressedToken) {
        self.tokens -= 1;
        if let Some(gid) = token.gid {
            self.gids.remove(&gid);
        }
        let Some(key) = &token.reads else { return };
        if let Some(count) = self.readers.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.readers.remove(key);
            }
        }
    }
}
