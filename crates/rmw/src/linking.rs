//! Which peers are linked by shared memory, and why others are not.
//!
//! When an endpoint matches one of a peer in our [`Realm`](crate::links::Realm), the
//! participant with the smaller prefix asks for a link. Once it is up, all
//! user endpoints of that peer are reached by it; discovery stays with the
//! sockets. When it ends, they are reached by sockets again.
//!
//! A topic that everybody of a host publishes and subscribes to matches all
//! with all. So beyond the first [`LINKS_AHEAD`] peers, a link is asked for by
//! who has something to send, with its first message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::fault;
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_rtps::locator::Locator;
use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::deadline::Machine;
use crate::links::{LinkCounts, LinkEvent, LinkTotals, Links, OFF, PROPERTY, Realm, Reason};
use crate::sample::Path;
use crate::writer::WriterEndpoint;

/// So long after a link came up, sockets are emptied before it is looked at: what
/// a peer sent by socket before it had the link is not overtaken. On one host a
/// datagram is in the receiver's socket before its sender goes on.
const YOUNG: Duration = Duration::from_millis(100);

/// Peers that are linked before there is anything to send to them.
const LINKS_AHEAD: usize = 16;

/// Until a link that the other side closed is asked for again.
const AGAIN: Duration = Duration::from_secs(1);

/// The links of a context, if it has any.
pub(crate) struct Linking {
    /// Or why there are none.
    pub(crate) links: Result<Arc<dyn Links>, String>,
    peers: Mutex<BTreeMap<GuidPrefix, Standing>>,
    /// Nanoseconds until which some link is young.
    young_until: AtomicU64,
}

/// How we stand to a peer with which some endpoint matched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// We have asked it.
    Asked,
    /// Whoever has something to send asks the other, or has.
    Unasked,
    Linked(u32),
    Apart(String),
    /// It will be asked for again then.
    Later(Instant),
}

/// How samples travel between this context and another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPath {
    /// The path.
    pub path: Path,
    /// Why it is not shared memory, where it might be.
    pub reason: Option<String>,
}

impl Linking {
    pub(crate) fn new(links: Result<Arc<dyn Links>, String>) -> Self {
        Self {
            links,
            peers: Mutex::default(),
            young_until: AtomicU64::new(0),
        }
    }

    /// What the participant tells others of it.
    pub(crate) fn property(&self) -> (String, String) {
        let value = match &self.links {
            Ok(links) => links.realm().to_string(),
            Err(_) => OFF.into(),
        };
        (PROPERTY.into(), value)
    }

    /// The links, if there are any.
    pub(crate) fn get(&self) -> Option<&dyn Links> {
        self.links.as_deref().ok()
    }

    /// Whether datagrams sent before a link came up may still wait in a socket.
    pub(crate) fn is_young(&self, now: Instant) -> bool {
        now.as_nanos() < self.young_until.load(Ordering::Relaxed)
    }
}

impl Core {
    /// An endpoint matched with one of this peer: a link is asked for, unless
    /// there is one or cannot be any.
    pub(crate) fn seek_link(&self, now: Instant, peer: GuidPrefix, vendor: VendorId) {
        let Some(links) = self.linking.get() else {
            return;
        };
        let asks = {
            let peers = self.linking.peers.lock();
            match peers.get(&peer) {
                Some(Standing::Asked | Standing::Unasked | Standing::Linked(_)) => return,
                _ => self.prefix < peer && sought(&peers) < LINKS_AHEAD,
            }
        };
        let announced = {
            let participant = self.participant.lock();
            let data = participant.participant(peer);
            data.and_then(|data| property(data).map(str::to_owned))
        };
        let announced = announced.as_deref().filter(|_| vendor == VendorId::PTEROS);
        let reason = self.no_memory_for(peer);
        let standing = match reason.or_else(|| links.realm().apart_from(announced)) {
            Some(reason) => Standing::Apart(reason),
            None if asks => self.ask(links, now, peer),
            None => Standing::Unasked,
        };
        self.linking.peers.lock().insert(peer, standing);
    }

    fn ask(&self, links: &dyn Links, now: Instant, peer: GuidPrefix) -> Standing {
        match links.connect(peer, now) {
            Ok(()) => {
                self.schedule(Machine::Links, Some(now));
                Standing::Asked
            }
            Err(reason) => Standing::Apart(reason.to_string()),
        }
    }

    /// Whether this peer is asked for a link when there is something to send.
    pub(crate) fn is_unasked(&self, peer: GuidPrefix) -> bool {
        let peers = self.linking.peers.lock();
        peers.get(&peer) == Some(&Standing::Unasked)
    }

    /// A writer begins to send: those of its readers' processes that were not
    /// asked for a link are. This message still goes by socket.
    pub(crate) fn seek_links_of(&self, writer: &WriterEndpoint) {
        let (Some(links), true) = (self.linking.get(), writer.take_seeking()) else {
            return;
        };
        let readers: BTreeSet<GuidPrefix> = {
            let participant = self.participant.lock();
            let verdicts = participant.verdicts(writer.guid());
            verdicts.map(|(reader, _)| reader.prefix).collect()
        };
        let now = self.env.now();
        for peer in readers {
            if self.is_unasked(peer) {
                let standing = self.ask(links, now, peer);
                let mut peers = self.linking.peers.lock();
                // It may have come up meanwhile.
                if let Some(unasked) = peers.get_mut(&peer)
                    && *unasked == Standing::Unasked
                {
                    *unasked = standing;
                }
            }
        }
    }

    /// A participant is known now; its link may have come up before.
    pub(crate) fn use_link(&self, peer: GuidPrefix) {
        let peers = self.linking.peers.lock();
        let Some(Standing::Linked(link)) = peers.get(&peer).cloned() else {
            return;
        };
        drop(peers);
        let locator = Locator::shared_memory(link, peer);
        self.participant.lock().set_link(peer, Some(locator));
    }

    /// A participant is gone.
    pub(crate) fn end_link(&self, peer: GuidPrefix) {
        if let Some(links) = self.linking.get()
            && self.linking.peers.lock().remove(&peer).is_some()
        {
            links.disconnect(peer);
        }
    }

    /// Does what is due for the links and carries out what has happened to them.
    pub(crate) fn turn_links(&self, now: Instant) {
        let Some(links) = self.linking.get() else {
            return;
        };
        let mut events = Vec::new();
        let next = links.turn(now, &mut |event| events.push(event));
        let is_quiet = events.is_empty();
        for event in events {
            self.apply_link(now, event);
        }
        let again = self.ask_again(now);
        self.schedule(Machine::Links, next.into_iter().chain(again).min());
        if !is_quiet {
            self.serve_participant(now);
        }
    }

    fn apply_link(&self, now: Instant, event: LinkEvent) {
        match event {
            LinkEvent::Up { peer, link } => {
                let peer = GuidPrefix(peer);
                tracing::debug!(peer = %peer, link, "linked by shared memory");
                let until = now.after(YOUNG).as_nanos();
                self.linking.young_until.fetch_max(until, Ordering::Relaxed);
                let mut peers = self.linking.peers.lock();
                peers.insert(peer, Standing::Linked(link));
                drop(peers);
                self.use_link(peer);
            }
            LinkEvent::Down { peer, link, reason } => {
                let peer = GuidPrefix(peer);
                tracing::debug!(peer = %peer, link, %reason, "link ended");
                let mut peers = self.linking.peers.lock();
                if peers.get(&peer) == Some(&Standing::Linked(link)) {
                    let asks = reason == Reason::Closed && self.prefix < peer;
                    let standing = match asks {
                        true => Standing::Later(now.after(AGAIN)),
                        false => Standing::Apart(reason.to_string()),
                    };
                    peers.insert(peer, standing);
                }
                drop(peers);
                if !fault!("end-of-link-ignored") {
                    self.participant.lock().set_link(peer, None);
                }
            }
            LinkEvent::Refused { peer, reason } => {
                let mut peers = self.linking.peers.lock();
                let standing = peers.get_mut(&GuidPrefix(peer));
                if let Some(standing) = standing.filter(|s| **s == Standing::Asked) {
                    *standing = match reason {
                        Reason::TimedOut => Standing::Later(now.after(AGAIN)),
                        _ => Standing::Apart(reason.to_string()),
                    };
                }
            }
            LinkEvent::Room => self.note_progress(),
            // A later kind of event, which does nothing to a path.
            _ => {}
        }
    }

    /// Asks again for links that were closed; returns when the next is due.
    fn ask_again(&self, now: Instant) -> Option<Instant> {
        let links = self.linking.get()?;
        let mut due = Vec::new();
        let mut next = None;
        self.linking.peers.lock().retain(|peer, standing| {
            let Standing::Later(at) = standing else {
                return true;
            };
            if *at > now {
                next = Some(next.map_or(*at, |next: Instant| next.min(*at)));
                return true;
            }
            due.push(*peer);
            false
        });
        for peer in due {
            if self.participant.lock().participant(peer).is_some() {
                let standing = self.ask(links, now, peer);
                self.linking.peers.lock().insert(peer, standing);
                next = Some(now);
            }
        }
        next
    }

    /// How samples travel between this context and a participant, itself
    /// included, and why not by shared memory.
    pub fn path_to(&self, peer: GuidPrefix) -> PeerPath {
        if peer == self.prefix {
            return PeerPath {
                path: Path::IntraProcess,
                reason: None,
            };
        }
        let reason = match &self.linking.links {
            Err(reason) => Some(reason.clone()),
            Ok(_) => match self.linking.peers.lock().get(&peer) {
                Some(Standing::Linked(_)) => None,
                Some(Standing::Apart(reason)) => Some(reason.clone()),
                Some(Standing::Later(_)) => Some(Reason::Closed.to_string()),
                Some(Standing::Asked) => Some("the link is being made".into()),
                Some(Standing::Unasked) => Some("the first message will ask for a link".into()),
                None => Some("no endpoints match".into()),
            },
        };
        PeerPath {
            path: match reason {
                None => Path::SharedMemory,
                Some(_) => Path::Network,
            },
            reason,
        }
    }

    /// Why two other participants are not linked, as far as what they announce
    /// tells; `None` where they should be.
    pub fn apart(&self, one: GuidPrefix, other: GuidPrefix) -> Option<String> {
        let security = self.security.as_ref();
        if security.is_some_and(|security| security.are_of_two_enclaves(one, other)) {
            return Some("they run with different enclaves".into());
        }
        let participant = self.participant.lock();
        let announced = |prefix| participant.participant(prefix).and_then(|d| property(d));
        let Some(realm) = announced(one).and_then(Realm::parse) else {
            let off = announced(one) == Some(OFF);
            let reason = if off { "switched off" } else { "not offered" };
            return Some(format!("{reason} at the publisher's end"));
        };
        realm.apart_from(announced(other))
    }

    /// What a peer says of its links; `None` unless it is a neighbour. Our own as
    /// they are now.
    pub fn link_totals(&self, peer: GuidPrefix) -> Option<LinkTotals> {
        if peer == self.prefix {
            return self.link_counts().as_ref().map(LinkTotals::from);
        }
        let totals = self.transport.board()?.totals(peer.0)?;
        Some(LinkTotals::of_words(totals))
    }

    /// What links have carried and refused; `None` where there are none.
    pub fn link_counts(&self) -> Option<LinkCounts> {
        self.linking.get().map(|links| links.counts())
    }
}

/// How many of them are linked or about to be.
fn sought(peers: &BTreeMap<GuidPrefix, Standing>) -> usize {
    let sought = |s: &&Standing| matches!(s, Standing::Asked | Standing::Linked(_));
    peers.values().filter(sought).count()
}

/// What a participant announces of shared memory.
fn property(data: &ParticipantData) -> Option<&str> {
    let mut properties = data.properties.iter();
    properties
        .find(|(name, _)| name == PROPERTY)
        .map(|(_, value)| value.as_str())
}
