//! Sessions that are suppressed, because RTPS reaches their contexts, too.
//!
//! A context may have both wires. Its session id holds its GUID prefix, so a peer with
//! both wires knows that the two are one. RTPS goes first: it has shared memory, and
//! acknowledgements. What the session announces is kept here until RTPS loses the
//! participant.
//!
//! A session of Pteros that has just appeared waits here for a moment, since RTPS
//! discovers at about the same time. So a pair does not begin on one wire and go on
//! with the other.

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::wire::RtpsReach;

use crate::gid::Gid;
use crate::session_id::SessionId;

/// How long a session of Pteros waits for RTPS to reach it over the network. Below the
/// time that data waits for its token, so that none is lost.
const NETWORK_WAIT: Duration = Duration::from_millis(1_500);
/// The same where RTPS reaches processes of this host alone: they know each other as
/// soon as they start.
const HOST_WAIT: Duration = Duration::from_millis(300);

/// See the module documentation. Sans-IO. The caller limits sessions and tokens.
pub struct SuppressedSessions {
    /// How long a session waits; `None` without RTPS.
    wait: Option<Duration>,
    /// Those that RTPS reaches, whether they have announced anything here or not. As many
    /// as RTPS has participants.
    on_rtps: BTreeSet<SessionId>,
    sessions: BTreeMap<SessionId, SuppressedSession>,
    /// Tokens of all of them.
    tokens: usize,
    /// By endpoint: whose it is.
    gids: BTreeMap<Gid, SessionId>,
    /// By key: subscriptions of all of them.
    readers: BTreeMap<String, usize>,
}

struct SuppressedSession {
    /// `None`: RTPS reaches it.
    until: Option<Instant>,
    tokens: BTreeMap<String, SuppressedToken>,
}

/// A token of a session that is suppressed.
pub struct SuppressedToken {
    /// The gid of an endpoint; `None` for a node.
    pub gid: Option<Gid>,
    /// Of a subscription: its key.
    pub reads: Option<String>,
}

impl SuppressedSessions {
    /// None yet. Without RTPS there are never any.
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

    /// Whether a session that announces nothing yet is suppressed: RTPS reaches it, or
    /// may do so soon.
    pub fn claims(&self, id: SessionId) -> bool {
        self.wait.is_some() && id.is_of_pteros()
    }

    /// Keeps a token of such a session.
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

    /// Removes a token that is gone, if it is kept here.
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

    /// Takes the tokens of those that RTPS has not reached in time.
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

    /// When the next one expires.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.sessions
            .values()
            .filter_map(|session| session.until)
            .min()
    }

    /// Whether RTPS delivers what comes from a gid.
    pub fn is_on_rtps(&self, gid: Gid) -> bool {
        let owner = self.gids.get(&gid);
        owner.is_some_and(|id| self.on_rtps.contains(id))
    }

    /// Whether one of them subscribes to a key.
    pub fn reads(&self, key: &str) -> bool {
        self.readers.contains_key(key)
    }

    /// Whether a token is kept.
    pub fn has(&self, id: SessionId, key: &str) -> bool {
        let session = self.sessions.get(&id);
        session.is_some_and(|session| session.tokens.contains_key(key))
    }

    /// Sessions that are suppressed.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Tokens of all of them.
    pub fn token_count(&self) -> usize {
        self.tokens
    }

    /// Tokens of one of them.
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
