//! A hub's turn: what comes in at the door and on the links' sockets, and how
//! links begin and end.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::error::{Name, Reason};
use crate::handshake::{self, Ours, Pending, Step, Theirs};
use crate::hub::{Control, Entry, Hub, LinkEvent};
use crate::link::{Inbox, Link};
use crate::packet::{self, Nonce, Packet};

/// epoll's name for the listener; links and handshakes have higher ones.
pub(crate) const LISTENER: u64 = 0;
/// Connections accepted per turn, and events taken per look.
const PER_TURN: usize = 64;
/// Looks per turn, so that a peer that keeps its socket busy does not keep us.
const LOOKS_PER_TURN: usize = 4;
/// How long until a connection that found no room is tried again.
const RETRY_NS: u64 = 10_000_000;

impl Control {
    /// Whether there is a link to `peer` or one is asked for.
    pub(crate) fn knows(&self, peer: Name) -> bool {
        self.entries.values().any(|entry| match entry {
            Entry::Pending(pending) => pending.peer == Some(peer),
            Entry::Link(link) => link.peer == peer && link.is_up(),
        })
    }

    /// Two numbers that another process cannot know without reading them.
    /// splitmix64: Steele, Lea, Flood, OOPSLA 2014.
    pub(crate) fn nonce(&mut self) -> Nonce {
        let mut number = || {
            self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.chance;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        [number(), number()]
    }
}

impl Hub {
    pub(crate) fn ours(&self) -> Ours<'_> {
        Ours {
            name: self.name,
            context: &self.context,
            ring_bytes: self.options.ring_bytes,
            warrant: self.options.warrant.as_deref(),
        }
    }

    /// Whether one more link or handshake may be.
    pub(crate) fn room_for_one_more(&self, control: &Control) -> Result<(), Reason> {
        let (mut pending, mut links, mut held) = (0, 0, 0);
        for entry in control.entries.values() {
            match entry {
                Entry::Pending(_) => pending += 1,
                Entry::Link(link) => {
                    links += 1;
                    held += if link.is_up() { 0 } else { link.lent().1 };
                }
            }
        }
        if pending >= self.options.pending_max || links + pending >= self.options.links_max {
            return Err(Reason::TooManyLinks);
        }
        if held > self.pool.limit_bytes() / 2 {
            return Err(Reason::MemoryHeld);
        }
        Ok(())
    }

    pub(crate) fn add_pending(
        &self,
        control: &mut Control,
        mut pending: Pending,
        now: u64,
    ) -> Result<(), Reason> {
        if pending.is_connecting() {
            pending.retry = Some(now.saturating_add(RETRY_NS));
        }
        control.token += 1;
        let token = control.token;
        self.watch(&pending.socket, token)
            .ok_or(Reason::System("watch a socket"))?;
        let entry = Entry::Pending(Box::new(pending));
        control.entries.insert(token, entry);
        Ok(())
    }

    fn watch(&self, socket: &OwnedFd, token: u64) -> Option<()> {
        let data = EventData::new_u64(token);
        epoll::add(&self.epoll, socket, data, EventFlags::IN).ok()
    }

    /// Marks a link as down and has the next turn end it.
    pub(crate) fn fail(&self, link: &Link, reason: Reason) {
        link.fail(reason);
        // A socket can always be written; so the turn is called at once.
        let (data, always) = (EventData::new_u64(link.token), EventFlags::OUT);
        let socket = &link.ends.socket;
        if epoll::modify(&self.epoll, socket, data, always).is_err() {
            let _ = epoll::add(&self.epoll, socket, data, always);
        }
    }

    pub(crate) fn look_at_sockets(
        &self,
        control: &mut Control,
        now: u64,
        told: &mut Vec<LinkEvent>,
    ) {
        for _ in 0..LOOKS_PER_TURN {
            let mut events = Vec::with_capacity(PER_TURN);
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let spare = rustix::buffer::spare_capacity(&mut events);
            if epoll::wait(&self.epoll, spare, Some(&at_once)).is_err() || events.is_empty() {
                return;
            }
            // Ends first: who knocks may be who has just left.
            let door = events.iter().any(|e| e.data.u64() == LISTENER);
            for token in events.iter().map(|e| e.data.u64()) {
                match control.entries.get(&token) {
                    Some(Entry::Link(link)) => {
                        let link = Arc::clone(link);
                        self.look_at_link(control, &link, told);
                    }
                    Some(Entry::Pending(_)) => self.look_at_pending(control, token, told),
                    None => {}
                }
            }
            if door {
                self.look_at_door(control, now);
            }
        }
    }

    fn look_at_door(&self, control: &mut Control, now: u64) {
        for _ in 0..PER_TURN {
            let Some(knock) = handshake::accept(self.listener.as_fd()) else {
                return;
            };
            let added = knock.and_then(|socket| {
                let pending = self.room_for_one_more(control).and_then(|()| {
                    let deadline = now.saturating_add(self.options.handshake_ns);
                    let copy = socket.try_clone();
                    let copy = copy.map_err(|_| Reason::System("keep a socket"))?;
                    Pending::incoming(copy, &self.ours(), control.nonce(), deadline)
                });
                let added = pending.and_then(|pending| self.add_pending(control, pending, now));
                added.inspect_err(|reason| packet::refuse(socket.as_fd(), *reason))
            });
            if added.is_err() {
                self.counters.handshakes_failed.add();
            }
        }
    }

    fn look_at_pending(&self, control: &mut Control, token: u64, told: &mut Vec<LinkEvent>) {
        let Some(Entry::Pending(pending)) = control.entries.get_mut(&token) else {
            return;
        };
        let outgoing = pending.is_outgoing();
        if pending.is_connecting() {
            // Not connected: the event says only that.
            return;
        }
        match pending.step(&self.ours()) {
            Step::Wait => {}
            Step::Asked(peer) => {
                if let Err(reason) = self.answer(control, token, peer) {
                    self.drop_pending(control, token, reason, true);
                    self.counters.handshakes_failed.add();
                }
            }
            Step::Up(peer, theirs) => {
                if let Err(reason) = self.link_up(control, token, peer, *theirs, told)
                    && outgoing
                {
                    told.push(LinkEvent::Refused { peer, reason });
                }
            }
            Step::Failed(reason) => {
                let peer = pending.peer.filter(|_| outgoing);
                told.extend(peer.map(|peer| LinkEvent::Refused { peer, reason }));
                self.drop_pending(control, token, reason, false);
                self.counters.handshakes_failed.add();
            }
        }
    }

    fn drop_pending(&self, control: &mut Control, token: u64, reason: Reason, tell: bool) {
        if let Some(Entry::Pending(pending)) = control.entries.remove(&token)
            && tell
        {
            packet::refuse(pending.socket.as_fd(), reason);
        }
    }

    /// Answers `peer`, who asked on `token`, unless there is a link already.
    /// If both ask at once, the one with the smaller name goes on.
    fn answer(&self, control: &mut Control, token: u64, peer: Name) -> Result<(), Reason> {
        let other = control.entries.iter().find_map(|(other, entry)| {
            let same = *other != token
                && match entry {
                    Entry::Pending(pending) => pending.peer == Some(peer),
                    Entry::Link(link) => link.peer == peer && link.is_up(),
                };
            same.then_some(*other)
        });
        if let Some(other) = other {
            let ours = matches!(control.entries.get(&other),
                Some(Entry::Pending(p)) if p.is_outgoing());
            if !ours || self.name < peer {
                return Err(Reason::AlreadyLinked);
            }
            self.drop_pending(control, other, Reason::AlreadyLinked, false);
        }
        let ours = self.ours();
        match control.entries.get_mut(&token) {
            Some(Entry::Pending(pending)) => pending.answer(&ours),
            _ => Err(Reason::Nonsense("nobody asked")),
        }
    }

    fn link_up(
        &self,
        control: &mut Control,
        token: u64,
        peer: Name,
        theirs: Theirs,
        told: &mut Vec<LinkEvent>,
    ) -> Result<(), Reason> {
        let Some(Entry::Pending(pending)) = control.entries.remove(&token) else {
            return Ok(());
        };
        let ends = pending.into_ends(theirs);
        if let Some(life) = &ends.life {
            // Once; then the look at the link finds that it is over.
            let once = EventFlags::IN | EventFlags::ONESHOT;
            let _ = epoll::add(&self.epoll, life, EventData::new_u64(token), once);
        }
        let mut slots = self.links.write();
        let Some(number) = slots.vacancy(self.options.links_max) else {
            packet::refuse(ends.socket.as_fd(), Reason::TooManyLinks);
            self.counters.handshakes_failed.add();
            return Err(Reason::TooManyLinks);
        };
        let link = Link::new(number, peer, token, ends);
        slots.put(Arc::clone(&link));
        drop(slots);
        self.inboxes.lock().list.push(Inbox::new(Arc::clone(&link)));
        control.entries.insert(token, Entry::Link(link));
        self.counters.linked.add();
        told.push(LinkEvent::Up { peer, link: number });
        Ok(())
    }

    fn look_at_link(&self, control: &mut Control, link: &Arc<Link>, told: &mut Vec<LinkEvent>) {
        let mut inboxes = self.inboxes.lock();
        let at = inboxes
            .list
            .iter()
            .position(|i| i.link.number == link.number);
        let Some(at) = at else {
            drop(inboxes);
            return self.look_at_lingering(control, link);
        };
        let inbox = &mut inboxes.list[at];
        let mut reason = link.reason();
        if reason.is_none() {
            if let Err(broken) = inbox.take_packets() {
                reason = Some(broken);
            } else if let Some(ending) = inbox.ending {
                if ending == Reason::Ended {
                    // Nobody reads what we lent any more.
                    link.end_loans();
                }
                if inbox.waits() {
                    // `receive` takes the rest first, then calls `fail`. Until
                    // then the socket would only say again that it is over.
                    let _ = epoll::delete(&self.epoll, &link.ends.socket);
                    return;
                }
                reason = Some(ending);
            }
        }
        let Some(reason) = reason else {
            return;
        };
        drop(inboxes);
        link.fail(reason);
        if matches!(reason, Reason::Nonsense(_) | Reason::Unfit(_)) {
            self.counters.broken.add();
        }
        told.push(LinkEvent::Down {
            peer: link.peer,
            link: link.number,
            reason,
        });
        self.finish(control, link, reason);
    }

    /// Ends a link that is down: reads no more of it, says so, and forgets it
    /// once the peer holds nothing of ours.
    pub(crate) fn finish(&self, control: &mut Control, link: &Arc<Link>, reason: Reason) {
        // Before our half of the socket may close.
        if reason != Reason::Ended {
            let _ = packet::send(link.ends.socket.as_fd(), &Packet::Bye, &[]);
            crate::fault!("bye-sent");
        }
        self.inboxes
            .lock()
            .list
            .retain(|inbox| inbox.link.number != link.number);
        link.reclaim();
        let lingers = matches!(reason, Reason::Closed | Reason::Disconnected) && link.lent().0 > 0;
        let data = EventData::new_u64(link.token);
        let socket = &link.ends.socket;
        let watched = lingers
            && (epoll::modify(&self.epoll, socket, data, EventFlags::IN).is_ok()
                || self.watch(socket, link.token).is_some());
        if !watched {
            self.forget(control, link);
        }
    }

    /// A link that is down waits for the peer's half of the socket to close:
    /// then it has given back everything, or is no more.
    fn look_at_lingering(&self, control: &mut Control, link: &Arc<Link>) {
        for _ in 0..PER_TURN {
            match packet::receive(link.ends.socket.as_fd()) {
                packet::Incoming::Nothing => return,
                packet::Incoming::End => return self.forget(control, link),
                _ => {}
            }
        }
    }

    fn forget(&self, control: &mut Control, link: &Arc<Link>) {
        link.end_loans();
        let _ = epoll::delete(&self.epoll, &link.ends.socket);
        control.entries.remove(&link.token);
        self.links.write().remove(link.number);
    }

    /// Tries again and gives up what is due; returns when the next is.
    pub(crate) fn look_at_time(
        &self,
        control: &mut Control,
        now: u64,
        told: &mut Vec<LinkEvent>,
    ) -> Option<u64> {
        let ours = self.ours();
        let mut over = Vec::new();
        let mut next = None;
        for (token, entry) in &mut control.entries {
            let Entry::Pending(pending) = entry else {
                continue;
            };
            if now >= pending.deadline {
                over.push((
                    *token,
                    pending.peer,
                    pending.is_outgoing(),
                    Reason::TimedOut,
                ));
                continue;
            }
            if pending.retry.is_some_and(|at| now >= at) {
                pending.retry = Some(now.saturating_add(RETRY_NS));
                if let Err(reason) = pending.connect(&ours) {
                    over.push((*token, pending.peer, true, reason));
                    continue;
                }
            }
            let due = pending
                .retry
                .map_or(pending.deadline, |at| at.min(pending.deadline));
            next = Some(next.map_or(due, |next: u64| next.min(due)));
        }
        for (token, peer, outgoing, reason) in over {
            self.drop_pending(control, token, reason, true);
            self.counters.handshakes_failed.add();
            let peer = peer.filter(|_| outgoing);
            told.extend(peer.map(|peer| LinkEvent::Refused { peer, reason }));
        }
        next
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        for link in self.links.get_mut().iter().filter(|link| link.is_up()) {
            let _ = packet::send(link.ends.socket.as_fd(), &Packet::Bye, &[]);
            crate::fault!("bye-sent");
        }
    }
}
