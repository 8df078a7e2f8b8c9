//! Participants of this host that are known without a datagram: each posts
//! what it has to tell where the others can read it, and the owner carries
//! [`Notice`]s over.
//!
//! What a neighbour tells is what SPDP, SEDP and WLP would tell, in the same
//! words, but nobody keeps a copy for each reader: no reliable channel, no
//! acknowledgement, no announcement. One record per endpoint is all that a
//! neighbour costs. Its lease goes on as with others; the owner renews it with
//! [`Participant::note_alive`]. The TypeLookup service is spoken with it once
//! somebody asks.
//!
//! The owner vouches for who posts: a notice is believed of its neighbour only,
//! and kept within the same limits as what comes over the network.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::spdp;
use crate::id::{Guid, GuidPrefix};
use crate::qos::Liveliness;
use crate::stats::Tally;
use crate::time::{Duration, Instant};

use super::candidate::Proof;
use super::{LostReason, Participant, ParticipantEvent, RemoteEndpoint};

/// One thing a participant tells its neighbours.
///
/// ```text
/// 0      1
/// +------+----------------------------------------------+
/// | kind | payload: as of SPDP or SEDP, with its        |
/// |      | encapsulation; a GUID; or a liveliness kind  |
/// +------+----------------------------------------------+
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// What the participant announces of itself; comes first.
    Participant(Bytes),
    /// One of its writers or readers exists, or changed.
    Endpoint(Bytes),
    /// One of its endpoints is gone.
    Gone(Guid),
    /// Its writers of this kind are alive: automatic or manual by participant.
    Alive(Liveliness),
}

const PARTICIPANT: u8 = 1;
const ENDPOINT: u8 = 2;
const GONE: u8 = 3;
const ALIVE_AUTOMATIC: u8 = 4;
const ALIVE_MANUAL: u8 = 5;

impl Notice {
    /// As it is posted. Allocates.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, payload): (u8, &[u8]) = match self {
            Self::Participant(payload) => (PARTICIPANT, payload),
            Self::Endpoint(payload) => (ENDPOINT, payload),
            Self::Gone(guid) => {
                let mut out = Vec::from([GONE]);
                out.extend_from_slice(&guid.to_bytes());
                return out;
            }
            Self::Alive(Liveliness::ManualByParticipant) => (ALIVE_MANUAL, &[]),
            Self::Alive(_) => (ALIVE_AUTOMATIC, &[]),
        };
        let mut out = Vec::with_capacity(payload.len().saturating_add(1));
        out.push(kind);
        out.extend_from_slice(payload);
        out
    }

    /// Reads a posted notice; `None` if it is none, or of a kind to come.
    pub fn parse(posted: &[u8]) -> Option<Self> {
        let (kind, payload) = posted.split_first()?;
        Some(match *kind {
            PARTICIPANT => Self::Participant(Bytes::copy_from_slice(payload)),
            ENDPOINT => Self::Endpoint(Bytes::copy_from_slice(payload)),
            GONE => Self::Gone(Guid::from_bytes(payload.try_into().ok()?)),
            ALIVE_AUTOMATIC => Self::Alive(Liveliness::Automatic),
            ALIVE_MANUAL => Self::Alive(Liveliness::ManualByParticipant),
            _ => return None,
        })
    }
}

/// What [`Participant::take_notices`] gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notices {
    /// All there is to tell; what was posted before holds no longer.
    All(Vec<Notice>),
    /// What is new.
    News(Vec<Notice>),
}

/// Notices that wait for the owner. Beyond this many none is kept, and all
/// there is to tell is told again.
const NOTICES_MAX: usize = 1024;

/// What is to be posted.
pub(super) struct Postbox {
    is_used: bool,
    all_anew: bool,
    news: Vec<Notice>,
}

impl Postbox {
    pub(super) fn new(is_used: bool) -> Self {
        Self {
            is_used,
            all_anew: is_used,
            news: Vec::new(),
        }
    }

    pub(super) fn post(&mut self, notice: impl FnOnce() -> Notice) {
        if !self.is_used || self.all_anew {
            return;
        }
        if self.news.len() >= NOTICES_MAX {
            self.all_anew = true;
            self.news = Vec::new();
            return;
        }
        self.news.push(notice());
    }

    /// The news; `Some(None)`: everything.
    fn take(&mut self) -> Option<Option<Vec<Notice>>> {
        if core::mem::take(&mut self.all_anew) {
            return Some(None);
        }
        let news = core::mem::take(&mut self.news);
        (!news.is_empty()).then_some(Some(news))
    }
}

impl Participant {
    /// Takes what the neighbour `prefix` told. The first notice of one not
    /// known has to be [`Notice::Participant`]; others are ignored before it.
    /// False if it cannot be believed or kept, which is counted.
    pub fn handle_notice(&mut self, now: Instant, prefix: GuidPrefix, notice: &Notice) -> bool {
        if prefix == self.config.prefix {
            return false;
        }
        if let Notice::Participant(payload) = notice {
            return self.handle_neighbour(now, prefix, payload);
        }
        if !self.is_neighbour(prefix) {
            return false;
        }
        self.note_alive(prefix, now);
        match notice {
            Notice::Participant(_) => true,
            Notice::Endpoint(payload) => {
                let Ok(data) = EndpointData::parse_within(payload, &self.config.limits.data) else {
                    self.stats.malformed.tally();
                    return false;
                };
                if data.guid.prefix != prefix {
                    self.stats.impersonation.tally();
                    return false;
                }
                self.handle_endpoint(data)
            }
            Notice::Gone(guid) => {
                if guid.prefix != prefix {
                    self.stats.impersonation.tally();
                    return false;
                }
                self.end_endpoint(*guid);
                true
            }
            Notice::Alive(kind) => {
                self.events.push_back(ParticipantEvent::LivelinessAsserted {
                    prefix,
                    kind: *kind,
                });
                true
            }
        }
    }

    /// A neighbour told of itself for the first time, or anew.
    fn handle_neighbour(&mut self, now: Instant, prefix: GuidPrefix, payload: &[u8]) -> bool {
        let Ok(data) = ParticipantData::parse_within(payload, &self.config.limits.data) else {
            self.stats.malformed.tally();
            return false;
        };
        if data.prefix != prefix {
            self.stats.impersonation.tally();
            return false;
        }
        if !self.is_in_domain(&data) {
            self.stats.other_domain.tally();
            return false;
        }
        if self.is_neighbour(prefix) {
            if self.peers.data(prefix).is_some_and(|known| **known == data) {
                self.note_alive(prefix, now);
            } else {
                self.renew(now, Arc::new(data), Proof::Untold);
            }
            return true;
        }
        if self.peers.contains(prefix) {
            self.become_neighbours(now, prefix, Arc::new(data));
            return true;
        }
        if self.peers.len() >= self.config.limits.participants {
            self.stats.participants_refused.tally();
            return false;
        }
        self.candidates.take(prefix);
        self.grant_lease(now, &data);
        self.meet_neighbour(now, Arc::new(data));
        true
    }

    /// Somebody known over the network posts, too: from now on it is heard
    /// there. What it told before is kept until it has told everything.
    fn become_neighbours(&mut self, now: Instant, prefix: GuidPrefix, data: Arc<ParticipantData>) {
        self.part(prefix);
        if let Some(peer) = self.peers.find_mut(prefix) {
            peer.is_neighbour = true;
        }
        self.renew(now, data, Proof::Plausible);
    }

    /// The shortest lease of a neighbour: how often to see who lives.
    pub fn shortest_lease(&self) -> Option<Duration> {
        let neighbours = self.peers.neighbours();
        neighbours
            .map(|data| data.lease.min(self.config.limits.lease_max))
            .min()
    }

    /// The neighbour is gone: it said so, or its process ended.
    pub fn lose_neighbour(&mut self, prefix: GuidPrefix, reason: LostReason) {
        if self.is_neighbour(prefix) {
            self.lose(prefix, reason);
        }
    }

    /// The neighbour told all it has to tell just now; of its endpoints those
    /// not in `told` are gone.
    pub fn keep_endpoints(&mut self, prefix: GuidPrefix, told: &[Guid]) {
        if !self.is_neighbour(prefix) {
            return;
        }
        let known = self.remotes.of(prefix).map(RemoteEndpoint::guid);
        let gone: Vec<Guid> = known.filter(|guid| !told.contains(guid)).collect();
        for guid in gone {
            self.end_endpoint(guid);
        }
    }

    /// Whether a participant is known by its notices.
    pub fn is_neighbour(&self, prefix: GuidPrefix) -> bool {
        let peer = self.peers.find(prefix);
        peer.is_some_and(|peer| peer.is_neighbour)
    }

    /// What to tell neighbours since the last call: `None` when nothing, which
    /// it always is unless
    /// [`ParticipantConfig::posts_notices`](super::ParticipantConfig::posts_notices).
    /// First, and when more came than is kept, it is all there is to tell.
    pub fn take_notices(&mut self) -> Option<Notices> {
        match self.postbox.take()? {
            Some(news) => Some(Notices::News(news)),
            None => Some(Notices::All(self.all_notices())),
        }
    }

    /// All there is to tell a neighbour that begins to read now.
    pub fn all_notices(&self) -> Vec<Notice> {
        let own = Notice::Participant(self.data.encode());
        let posted = self.locals.iter().filter(|data| self.is_posted(data));
        let endpoints = posted.map(|data| Notice::Endpoint(data.encode()));
        core::iter::once(own).chain(endpoints).collect()
    }

    fn is_posted(&self, data: &EndpointData) -> bool {
        !self.config.unposted_topics.contains(&data.topic)
    }

    pub(super) fn post_endpoint(&mut self, data: &EndpointData) {
        if self.is_posted(data) {
            self.postbox.post(|| Notice::Endpoint(data.encode()));
        }
    }

    /// Tells neighbours what the liveliness protocol tells others.
    pub(super) fn post_assertions(&mut self) {
        while let Some(kind) = self.wlp.take_asserted() {
            self.postbox.post(|| Notice::Alive(kind));
        }
    }

    /// Speaks the TypeLookup service with a neighbour from now on.
    pub(super) fn meet_for_types(&mut self, now: Instant, prefix: GuidPrefix) {
        let Some(peer) = self.peers.find_mut(prefix) else {
            return;
        };
        if !peer.is_neighbour || core::mem::replace(&mut peer.is_met_for_types, true) {
            return;
        }
        let service = spdp::TYPE_REQUEST_READER | spdp::TYPE_REPLY_WRITER;
        if peer.data.builtin_endpoints & service == service {
            let (data, route) = (peer.data.clone(), peer.metatraffic.clone());
            self.types.requests.meet(now, &data, &route);
            self.types.replies.meet(now, &data, &route);
        }
    }
}
