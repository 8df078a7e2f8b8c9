//! One poll of the shared-memory transport: accepts connections, advances
//! handshakes, reads the connections' sockets, and establishes and closes
//! connections.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::connection::{Connection, ReceiveHalf};
use crate::error::{DisconnectReason, PeerName};
use crate::handshake::{self, HandshakeProgress, LocalSide, PeerResources, PendingHandshake};
use crate::packet::{self, Nonce, Packet};
use crate::transport::{ConnectionEntry, ConnectionEvent, ConnectionTable, SharedMemoryTransport};

/// epoll token of the listener. Connections and handshakes have higher ones.
pub(crate) const LISTENER_TOKEN: u64 = 0;
/// Connections accepted per poll, and events taken per `epoll_wait`.
const EVENTS_PER_WAIT: usize = 64;
/// Calls of `epoll_wait` per poll, so that a peer that keeps its socket busy cannot
/// keep this thread.
const WAITS_PER_POLL: usize = 4;
/// Pause before a connect is retried after the kernel's queue was full.
const RETRY_NS: u64 = 10_000_000;

impl ConnectionTable {
    /// Whether there is a connection to `peer` or a handshake with it.
    pub(crate) fn has_connection(&self, peer: PeerName) -> bool {
        self.entries.values().any(|entry| match entry {
            ConnectionEntry::Pending(pending) => pending.peer == Some(peer),
            ConnectionEntry::Connection(connection) => {
                connection.peer == peer && connection.is_connected()
            }
        })
    }

    /// Two numbers that another process cannot know without reading them
    /// (splitmix64). splitmix64: Steele, Lea, Flood, OOPSLA 2014.
    pub(crate) fn nonce(&mut self) -> Nonce {
        let mut number = || {
            self.rng_state = self.rng_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.rng_state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        [number(), number()]
    }
}

impl SharedMemoryTransport {
    pub(crate) fn local_side(&self) -> LocalSide<'_> {
        LocalSide {
            name: self.name,
            context: &self.context,
            ring_bytes: self.options.ring_bytes,
            peer_authenticator: self.options.peer_authenticator.as_deref(),
        }
    }

    /// Checks the limits for one more connection or handshake.
    pub(crate) fn check_connection_limits(
        &self,
        control: &ConnectionTable,
    ) -> Result<(), DisconnectReason> {
        let (mut pending, mut connections, mut held) = (0, 0, 0);
        for entry in control.entries.values() {
            match entry {
                ConnectionEntry::Pending(_) => pending += 1,
                ConnectionEntry::Connection(connection) => {
                    connections += 1;
                    held += if connection.is_connected() {
                        0
                    } else {
                        connection.loaned().1
                    };
                }
            }
        }
        if pending >= self.options.pending_max
            || connections + pending >= self.options.connections_max
        {
            return Err(DisconnectReason::TooManyConnections);
        }
        if held > self.pool.limit_bytes() / 2 {
            return Err(DisconnectReason::MemoryHeld);
        }
        Ok(())
    }

    pub(crate) fn add_handshake(
        &self,
        control: &mut ConnectionTable,
        mut pending: PendingHandshake,
        now: u64,
    ) -> Result<(), DisconnectReason> {
        if pending.is_connecting() {
            pending.retry = Some(now.saturating_add(RETRY_NS));
        }
        control.token += 1;
        let token = control.token;
        self.watch(&pending.socket, token)
            .ok_or(DisconnectReason::SystemCall("watch a socket"))?;
        let entry = ConnectionEntry::Pending(Box::new(pending));
        control.entries.insert(token, entry);
        Ok(())
    }

    fn watch(&self, socket: &OwnedFd, token: u64) -> Option<()> {
        let data = EventData::new_u64(token);
        epoll::add(&self.epoll, socket, data, EventFlags::IN).ok()
    }

    /// Marks a connection as failed. The next poll closes it.
    pub(crate) fn fail(&self, connection: &Connection, reason: DisconnectReason) {
        connection.fail(reason);
        // A socket is always writable, so the poll is called at once.
        let (data, always) = (EventData::new_u64(connection.token), EventFlags::OUT);
        let socket = &connection.resources.socket;
        if epoll::modify(&self.epoll, socket, data, always).is_err() {
            let _ = epoll::add(&self.epoll, socket, data, always);
        }
    }

    pub(crate) fn poll_sockets(
        &self,
        control: &mut ConnectionTable,
        now: u64,
        reported: &mut Vec<ConnectionEvent>,
    ) {
        for _ in 0..WAITS_PER_POLL {
            let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let spare = rustix::buffer::spare_capacity(&mut events);
            if epoll::wait(&self.epoll, spare, Some(&at_once)).is_err() || events.is_empty() {
                return;
            }
            // Closed connections first: the process that connects may be one that
            // has just disconnected.
            let accepts = events.iter().any(|e| e.data.u64() == LISTENER_TOKEN);
            for token in events.iter().map(|e| e.data.u64()) {
                match control.entries.get(&token) {
                    Some(ConnectionEntry::Connection(connection)) => {
                        let connection = Arc::clone(connection);
                        self.poll_connection(control, &connection, reported);
                    }
                    Some(ConnectionEntry::Pending(_)) => {
                        self.poll_handshake(control, token, reported)
                    }
                    None => {}
                }
            }
            if accepts {
                self.accept_connections(control, now);
            }
        }
    }

    fn accept_connections(&self, control: &mut ConnectionTable, now: u64) {
        for _ in 0..EVENTS_PER_WAIT {
            let Some(incoming) = handshake::accept(self.listener.as_fd()) else {
                return;
            };
            let added = incoming.and_then(|socket| {
                let pending = self.check_connection_limits(control).and_then(|()| {
                    let deadline = now.saturating_add(self.options.handshake_ns);
                    let copy = socket.try_clone();
                    let copy = copy.map_err(|_| DisconnectReason::SystemCall("keep a socket"))?;
                    PendingHandshake::incoming(copy, &self.local_side(), control.nonce(), deadline)
                });
                let added = pending.and_then(|pending| self.add_handshake(control, pending, now));
                added.inspect_err(|reason| packet::refuse(socket.as_fd(), *reason))
            });
            if added.is_err() {
                self.counters.handshakes_failed.add();
            }
        }
    }

    fn poll_handshake(
        &self,
        control: &mut ConnectionTable,
        token: u64,
        reported: &mut Vec<ConnectionEvent>,
    ) {
        let Some(ConnectionEntry::Pending(pending)) = control.entries.get_mut(&token) else {
            return;
        };
        let outgoing = pending.is_outgoing();
        if pending.is_connecting() {
            // Not connected yet, and the event means only that.
            return;
        }
        match pending.poll(&self.local_side()) {
            HandshakeProgress::Wait => {}
            HandshakeProgress::Requested(peer) => {
                if let Err(reason) = self.reply(control, token, peer) {
                    self.drop_handshake(control, token, reason, true);
                    self.counters.handshakes_failed.add();
                }
            }
            HandshakeProgress::Established(peer, theirs) => {
                if let Err(reason) = self.establish(control, token, peer, *theirs, reported)
                    && outgoing
                {
                    reported.push(ConnectionEvent::Refused { peer, reason });
                }
            }
            HandshakeProgress::Failed(reason) => {
                let peer = pending.peer.filter(|_| outgoing);
                reported.extend(peer.map(|peer| ConnectionEvent::Refused { peer, reason }));
                self.drop_handshake(control, token, reason, false);
                self.counters.handshakes_failed.add();
            }
        }
    }

    fn drop_handshake(
        &self,
        control: &mut ConnectionTable,
        token: u64,
        reason: DisconnectReason,
        tell: bool,
    ) {
        if let Some(ConnectionEntry::Pending(pending)) = control.entries.remove(&token)
            && tell
        {
            packet::refuse(pending.socket.as_fd(), reason);
        }
    }

    /// Replies to `peer`, which sent its hello on `token`, unless there is a
    /// connection already. If both sides connect at once, the handshake of the
    /// smaller name continues.
    fn reply(
        &self,
        control: &mut ConnectionTable,
        token: u64,
        peer: PeerName,
    ) -> Result<(), DisconnectReason> {
        let other = control.entries.iter().find_map(|(other, entry)| {
            let same = *other != token
                && match entry {
                    ConnectionEntry::Pending(pending) => pending.peer == Some(peer),
                    ConnectionEntry::Connection(connection) => {
                        connection.peer == peer && connection.is_connected()
                    }
                };
            same.then_some(*other)
        });
        if let Some(other) = other {
            let ours = matches!(control.entries.get(&other),
                Some(ConnectionEntry::Pending(p)) if p.is_outgoing());
            if !ours || self.name < peer {
                return Err(DisconnectReason::AlreadyConnected);
            }
            self.drop_handshake(control, other, DisconnectReason::AlreadyConnected, false);
        }
        let ours = self.local_side();
        match control.entries.get_mut(&token) {
            Some(ConnectionEntry::Pending(pending)) => pending.reply(&ours),
            _ => Err(DisconnectReason::ProtocolViolation(
                "a reply without a request",
            )),
        }
    }

    fn establish(
        &self,
        control: &mut ConnectionTable,
        token: u64,
        peer: PeerName,
        theirs: PeerResources,
        reported: &mut Vec<ConnectionEvent>,
    ) -> Result<(), DisconnectReason> {
        let Some(ConnectionEntry::Pending(pending)) = control.entries.remove(&token) else {
            return Ok(());
        };
        let resources = pending.into_resources(theirs);
        if let Some(life) = &resources.process {
            // One-shot: the poll of the connection then finds that the process has
            // exited.
            let once = EventFlags::IN | EventFlags::ONESHOT;
            let _ = epoll::add(&self.epoll, life, EventData::new_u64(token), once);
        }
        let mut slots = self.connections.write();
        let Some(number) = slots.allocate_number(self.options.connections_max) else {
            packet::refuse(
                resources.socket.as_fd(),
                DisconnectReason::TooManyConnections,
            );
            self.counters.handshakes_failed.add();
            return Err(DisconnectReason::TooManyConnections);
        };
        let connection = Connection::new(number, peer, token, resources);
        slots.insert(Arc::clone(&connection));
        drop(slots);
        self.receive_halves
            .lock()
            .list
            .push(ReceiveHalf::new(Arc::clone(&connection)));
        control
            .entries
            .insert(token, ConnectionEntry::Connection(connection));
        self.counters.connections_made.add();
        reported.push(ConnectionEvent::Connected {
            peer,
            connection: number,
        });
        Ok(())
    }

    fn poll_connection(
        &self,
        control: &mut ConnectionTable,
        connection: &Arc<Connection>,
        reported: &mut Vec<ConnectionEvent>,
    ) {
        let mut receive_halves = self.receive_halves.lock();
        let at = receive_halves
            .list
            .iter()
            .position(|i| i.connection.number == connection.number);
        let Some(at) = at else {
            drop(receive_halves);
            return self.poll_lingering(control, connection);
        };
        let half = &mut receive_halves.list[at];
        let mut reason = connection.reason();
        if reason.is_none() {
            if let Err(broken) = half.take_packets() {
                reason = Some(broken);
            } else if let Some(ending) = half.close_reason {
                if ending == DisconnectReason::ProcessEnded {
                    // The peer no longer reads the chunks on loan.
                    connection.end_loans();
                }
                if half.has_record() {
                    // `receive` reads the remaining messages first, then calls
                    // `fail`. Until then the socket would only report again that it
                    // is closed.
                    let _ = epoll::delete(&self.epoll, &connection.resources.socket);
                    return;
                }
                reason = Some(ending);
            }
        }
        let Some(reason) = reason else {
            return;
        };
        drop(receive_halves);
        connection.fail(reason);
        if matches!(
            reason,
            DisconnectReason::ProtocolViolation(_) | DisconnectReason::UnusableDescriptor(_)
        ) {
            self.counters.protocol_violations.add();
        }
        reported.push(ConnectionEvent::Disconnected {
            peer: connection.peer,
            connection: connection.number,
            reason,
        });
        self.close(control, connection, reason);
    }

    /// Closes a connection: stops reading it, sends the bye packet, and removes it
    /// once the peer holds no more chunks.
    pub(crate) fn close(
        &self,
        control: &mut ConnectionTable,
        connection: &Arc<Connection>,
        reason: DisconnectReason,
    ) {
        // Before this half of the socket may close.
        if reason != DisconnectReason::ProcessEnded {
            let _ = packet::send(connection.resources.socket.as_fd(), &Packet::Bye, &[]);
        }
        self.receive_halves
            .lock()
            .list
            .retain(|half| half.connection.number != connection.number);
        connection.reclaim();
        let lingers = matches!(
            reason,
            DisconnectReason::ClosedByPeer | DisconnectReason::ClosedLocally
        ) && connection.loaned().0 > 0;
        let data = EventData::new_u64(connection.token);
        let socket = &connection.resources.socket;
        let watched = lingers
            && (epoll::modify(&self.epoll, socket, data, EventFlags::IN).is_ok()
                || self.watch(socket, connection.token).is_some());
        if !watched {
            self.remove(control, connection);
        }
    }

    /// A closed connection lingers until the peer's half of the socket closes: then
    /// the peer has returned all chunks, or has exited.
    fn poll_lingering(&self, control: &mut ConnectionTable, connection: &Arc<Connection>) {
        for _ in 0..EVENTS_PER_WAIT {
            match packet::receive(connection.resources.socket.as_fd()) {
                packet::Incoming::Nothing => return,
                packet::Incoming::Closed => return self.remove(control, connection),
                _ => {}
            }
        }
    }

    fn remove(&self, control: &mut ConnectionTable, connection: &Arc<Connection>) {
        connection.end_loans();
        let _ = epoll::delete(&self.epoll, &connection.resources.socket);
        control.entries.remove(&connection.token);
        self.connections.write().remove(connection.number);
    }

    /// Retries connects and times out handshakes. Returns the next deadline.
    pub(crate) fn expire_handshakes(
        &self,
        control: &mut ConnectionTable,
        now: u64,
        reported: &mut Vec<ConnectionEvent>,
    ) -> Option<u64> {
        let ours = self.local_side();
        let mut over = Vec::new();
        let mut next = None;
        for (token, entry) in &mut control.entries {
            let ConnectionEntry::Pending(pending) = entry else {
                continue;
            };
            if now >= pending.deadline {
                over.push((
                    *token,
                    pending.peer,
                    pending.is_outgoing(),
                    DisconnectReason::TimedOut,
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
            self.drop_handshake(control, token, reason, true);
            self.counters.handshakes_failed.add();
            let peer = peer.filter(|_| outgoing);
            reported.extend(peer.map(|peer| ConnectionEvent::Refused { peer, reason }));
        }
        next
    }
}

impl Drop for SharedMemoryTransport {
    fn drop(&mut self) {
        for connection in self
            .connections
            .get_mut()
            .iter()
            .filter(|connection| connection.is_connected())
        {
            let _ = packet::send(connection.resources.socket.as_fd(), &Packet::Bye, &[]);
        }
    }
}
