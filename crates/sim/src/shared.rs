//! Links of shared memory between simulated processes of one host: in order and
//! without loss, as long as they last and the ring has room. With
//! [`Fault::Links`](crate::plan::Fault::Links) they are refused, run full and end
//! now and then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Weak;

use bytes::Bytes;
use pteros_rmw::links::{
    Chunk, Exhausted, LinkCounts, LinkEvent, Links, Realm, Reason, Record, Refused,
};
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::time::Instant;

use crate::link::{Cargo, Network};
use crate::world::World;

/// Nanoseconds that a message of a link, or word of one, takes.
const DELAY: u64 = 2_000;

/// Bytes of heads and tails under way on one link; more is refused.
const RING_BYTES: usize = 32 << 10;

/// A message under way or waiting.
#[derive(Clone, Debug)]
pub struct Sent {
    link: u32,
    peer: [u8; 12],
    head: Vec<u8>,
    head_len: usize,
    body: Option<Bytes>,
}

/// The links of one socket's process.
#[derive(Debug, Default)]
pub struct LinkSide {
    /// Its participant's prefix.
    pub name: [u8; 12],
    /// Its host.
    pub host: u8,
    /// Peers' sockets, the peers' numbers of the same links, bytes under way.
    links: BTreeMap<u32, (usize, u32, usize)>,
    waiting: VecDeque<Sent>,
    news: VecDeque<LinkEvent>,
    counts: LinkCounts,
}

impl LinkSide {
    /// Whether something waits to be taken or told.
    pub fn has_mail(&self) -> bool {
        !self.waiting.is_empty() || self.is_due()
    }

    /// An end is told when all that came before it was taken.
    fn is_due(&self) -> bool {
        match self.news.front() {
            None => false,
            Some(LinkEvent::Down { .. }) => self.waiting.is_empty(),
            Some(_) => true,
        }
    }

    /// Takes in what arrives.
    pub fn arrive(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Record(sent) => self.waiting.push_back(sent),
            Cargo::News(event) => self.news.push_back(event),
            Cargo::Datagram(_) => {}
        }
    }
}

impl Network {
    fn linked(&mut self, number: usize, link: u32) -> Option<&mut (usize, u32, usize)> {
        self.sockets[number].shared.links.get_mut(&link)
    }

    fn ask_for_link(&mut self, now: u64, number: usize, peer: [u8; 12]) -> Result<(), Reason> {
        let side = &self.sockets[number].shared;
        let (name, host) = (side.name, side.host);
        let there = self.sockets.iter().position(|socket| {
            socket.open && socket.shared.name == peer && socket.shared.host == host
        });
        let Some(there) = there else {
            return Err(Reason::Unreachable);
        };
        if side.links.values().any(|(other, ..)| *other == there) {
            return Ok(());
        }
        if self.link_fault() {
            let refused = LinkEvent::Refused {
                peer,
                reason: Reason::TimedOut,
            };
            self.tell(now, number, refused);
            return Ok(());
        }
        self.links_made += 2;
        let (ours, theirs) = (self.links_made, self.links_made + 1);
        let sides = [(number, ours, there, theirs), (there, theirs, number, ours)];
        for (at, link, other, other_link) in sides {
            let entry = (other, other_link, 0);
            self.sockets[at].shared.links.insert(link, entry);
            let peer = self.sockets[other].shared.name;
            self.tell(now, at, LinkEvent::Up { peer, link });
        }
        debug_assert_ne!(name, peer);
        Ok(())
    }

    fn tell(&mut self, now: u64, number: usize, event: LinkEvent) {
        self.push_cargo(now + DELAY, number, Cargo::News(event));
    }

    fn send_record(
        &mut self,
        now: u64,
        number: usize,
        link: u32,
        datagram: &Datagram<'_>,
    ) -> Result<(), Refused> {
        let name = self.sockets[number].shared.name;
        let [head, _, tail] = datagram.parts;
        let bytes = head.len() + tail.len();
        let Some((to, to_link, held)) = self.linked(number, link).map(|entry| *entry) else {
            return Err(Refused::Down);
        };
        if held + bytes > RING_BYTES || self.link_fault() {
            return Err(Refused::Full);
        }
        if self.link_fault() {
            // Closed, and asked for again, or given up by one who found nonsense
            // in it, and by some never asked for again.
            let ours = match self.coin() {
                true => Reason::Closed,
                false => Reason::Nonsense("the simulator said so"),
            };
            self.end_link(now, number, link, (Some(ours), Reason::Closed));
            return Err(Refused::Down);
        }
        if let Some(entry) = self.linked(number, link) {
            entry.2 += bytes;
        }
        self.traffic.records += 1;
        self.trace.bytes(head);
        let sent = Sent {
            link: to_link,
            peer: name,
            head: [head, tail].concat(),
            head_len: head.len(),
            body: (!datagram.body.is_empty()).then(|| datagram.body.clone()),
        };
        self.push_cargo(now + DELAY, to, Cargo::Record(sent));
        Ok(())
    }

    fn take_record(&mut self, number: usize) -> Option<Sent> {
        let side = &mut self.sockets[number].shared;
        let sent = side.waiting.pop_front()?;
        side.counts.received += 1;
        if let Some((other, other_link, _)) = side.links.get(&sent.link).copied()
            && let Some(entry) = self.linked(other, other_link)
        {
            entry.2 = entry.2.saturating_sub(sent.head.len());
        }
        Some(sent)
    }

    /// Ends one link; the other side is told, and this one if there is a reason
    /// for it.
    fn end_link(
        &mut self,
        now: u64,
        number: usize,
        link: u32,
        (ours, theirs): (Option<Reason>, Reason),
    ) {
        let Some((other, other_link, _)) = self.sockets[number].shared.links.remove(&link) else {
            return;
        };
        self.sockets[other].shared.links.remove(&other_link);
        let sides = [
            (number, link, other, ours),
            (other, other_link, number, Some(theirs)),
        ];
        for (at, link, peer, reason) in sides {
            let peer = self.sockets[peer].shared.name;
            if let Some(reason) = reason {
                self.tell(now, at, LinkEvent::Down { peer, link, reason });
            }
        }
    }

    /// A process has ended: so have its links.
    pub fn end_links(&mut self, now: u64, number: usize) {
        let links: Vec<u32> = self.sockets[number].shared.links.keys().copied().collect();
        for link in links {
            self.end_link(now, number, link, (None, Reason::Ended));
        }
        let side = &mut self.sockets[number].shared;
        side.waiting.clear();
        side.news.clear();
    }
}

/// One participant's links as the engine sees them.
pub struct SimLinks {
    /// The world it lives in.
    pub world: Weak<World>,
    /// Its socket.
    pub number: usize,
    /// Its host.
    pub host: u8,
}

impl SimLinks {
    fn with<T>(&self, none: T, act: impl FnOnce(u64, &mut Network) -> T) -> T {
        let Some(world) = self.world.upgrade() else {
            return none;
        };
        let now = world.now();
        let mut network = world.network();
        act(now, &mut network)
    }
}

impl Links for SimLinks {
    fn realm(&self) -> Realm {
        Realm {
            version: 1,
            host: self.host.into(),
            network: 1,
            user: 0,
        }
    }

    fn connect(&self, peer: GuidPrefix, _now: Instant) -> Result<(), Reason> {
        let ask = |now, network: &mut Network| network.ask_for_link(now, self.number, peer.0);
        self.with(Ok(()), ask)
    }

    fn disconnect(&self, peer: GuidPrefix) {
        self.with((), |now, network| {
            let links = &network.sockets[self.number].shared.links;
            let to_peer =
                |(other, ..): &(usize, u32, usize)| network.sockets[*other].shared.name == peer.0;
            let link = links.iter().find(|(_, entry)| to_peer(entry));
            if let Some(link) = link.map(|(link, _)| *link) {
                network.end_link(now, self.number, link, (None, Reason::Closed));
            }
        });
    }

    fn is_due(&self) -> bool {
        self.with(false, |_, network| {
            network.sockets[self.number].shared.is_due()
        })
    }

    fn turn(&self, _now: Instant, events: &mut dyn FnMut(LinkEvent)) -> Option<Instant> {
        loop {
            let event = self.with(None, |_, network| {
                let side = &mut network.sockets[self.number].shared;
                side.is_due().then(|| side.news.pop_front()).flatten()
            });
            // The engine is told without the network's lock.
            events(event?);
        }
    }

    fn send(&self, link: u32, datagram: &Datagram<'_>) -> Result<(), Refused> {
        self.with(Err(Refused::Down), |now, network| {
            let sent = network.send_record(now, self.number, link, datagram);
            let counts = &mut network.sockets[self.number].shared.counts;
            match sent {
                Ok(()) => counts.sent += 1,
                Err(Refused::Full) => counts.refused_full += 1,
                Err(_) => counts.refused_down += 1,
            }
            sent
        })
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<Record> {
        let take = |_, network: &mut Network| network.take_record(self.number);
        let sent = self.with(None, take)?;
        head.clear();
        head.extend_from_slice(&sent.head);
        Some(Record {
            link: sent.link,
            peer: sent.peer,
            head_len: sent.head_len,
            tail_len: sent.head.len() - sent.head_len,
            body: sent.body,
        })
    }

    fn chunk(&self, len: usize) -> Result<Chunk, Exhausted> {
        Ok(Chunk::Plain(vec![0; len]))
    }

    fn before_sleep(&self) -> bool {
        self.with(true, |_, network| {
            network.sockets[self.number].shared.waiting.is_empty()
        })
    }

    fn awake(&self) {}

    fn counts(&self) -> LinkCounts {
        self.with(LinkCounts::default(), |_, network| {
            network.sockets[self.number].shared.counts
        })
    }
}
