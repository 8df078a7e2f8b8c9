//! Simulated shared-memory transport between processes of one host.
//!
//! Connections deliver in order and without loss while they last and the ring has
//! room. With [`Fault::SharedMemory`](crate::plan::Fault::SharedMemory) they are
//! refused, run full, and end now and then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Weak;

use bytes::Bytes;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::time::Instant;
use pteros_runtime::shm_transport::{
    Chunk, ConnectionCounts, ConnectionEvent, DisconnectReason, PoolExhausted, ReceivedMessage,
    SendRefusal, ShmScope, ShmTransport,
};

use crate::network::{InFlightContent, Network};
use crate::world::SimWorld;

/// Latency of a record or of a connection event in nanoseconds.
const DELAY: u64 = 2_000;

/// Ring capacity: bytes of heads and tails in flight on one connection. A send
/// beyond it is refused.
const RING_BYTES: usize = 32 << 10;

/// A record in flight or in a ring.
#[derive(Clone, Debug)]
pub struct RecordInFlight {
    connection: u32,
    peer: [u8; 12],
    head: Vec<u8>,
    head_len: usize,
    body: Option<Bytes>,
}

/// The shared-memory connections of one process.
#[derive(Debug, Default)]
pub struct ConnectionTable {
    /// GUID prefix of its participant.
    pub name: [u8; 12],
    /// Its host.
    pub host: u8,
    /// By id: the peer's socket, the peer's id of the connection, bytes in flight.
    connections: BTreeMap<u32, (usize, u32, usize)>,
    waiting: VecDeque<RecordInFlight>,
    events: VecDeque<ConnectionEvent>,
    counts: ConnectionCounts,
}

impl ConnectionTable {
    /// Whether a record or an event waits.
    pub fn has_input(&self) -> bool {
        !self.waiting.is_empty() || self.is_due()
    }

    /// Whether an event is due. The end of a connection is due after all records
    /// that came before it were taken.
    fn is_due(&self) -> bool {
        match self.events.front() {
            None => false,
            Some(ConnectionEvent::Disconnected { .. }) => self.waiting.is_empty(),
            Some(_) => true,
        }
    }

    /// Handles what arrives.
    pub fn handle_arrival(&mut self, content: InFlightContent) {
        match content {
            InFlightContent::Record(sent) => self.waiting.push_back(sent),
            InFlightContent::ConnectionEvent(event) => self.events.push_back(event),
            InFlightContent::Datagram(_) => {}
        }
    }
}

impl Network {
    fn connection_mut(
        &mut self,
        number: usize,
        connection: u32,
    ) -> Option<&mut (usize, u32, usize)> {
        self.sockets[number].shared.connections.get_mut(&connection)
    }

    fn request_connection(
        &mut self,
        now: u64,
        number: usize,
        peer: [u8; 12],
    ) -> Result<(), DisconnectReason> {
        let side = &self.sockets[number].shared;
        let (name, host) = (side.name, side.host);
        let there = self.sockets.iter().position(|socket| {
            socket.open && socket.shared.name == peer && socket.shared.host == host
        });
        let Some(there) = there else {
            return Err(DisconnectReason::Unreachable);
        };
        if side.connections.values().any(|(other, ..)| *other == there) {
            return Ok(());
        }
        if self.draw_connection_fault() {
            let refused = ConnectionEvent::Refused {
                peer,
                reason: DisconnectReason::TimedOut,
            };
            self.push_event(now, number, refused);
            return Ok(());
        }
        self.connections_made += 2;
        let (ours, theirs) = (self.connections_made, self.connections_made + 1);
        let sides = [(number, ours, there, theirs), (there, theirs, number, ours)];
        for (at, connection, other, other_connection) in sides {
            let entry = (other, other_connection, 0);
            self.sockets[at]
                .shared
                .connections
                .insert(connection, entry);
            let peer = self.sockets[other].shared.name;
            self.push_event(now, at, ConnectionEvent::Connected { peer, connection });
        }
        debug_assert_ne!(name, peer);
        Ok(())
    }

    fn push_event(&mut self, now: u64, number: usize, event: ConnectionEvent) {
        self.push_in_order(now + DELAY, number, InFlightContent::ConnectionEvent(event));
    }

    fn send_record(
        &mut self,
        now: u64,
        number: usize,
        connection: u32,
        datagram: &Datagram<'_>,
    ) -> Result<(), SendRefusal> {
        let name = self.sockets[number].shared.name;
        let [head, _, tail] = datagram.parts;
        let bytes = head.len() + tail.len();
        let Some((to, to_connection, held)) =
            self.connection_mut(number, connection).map(|entry| *entry)
        else {
            return Err(SendRefusal::Disconnected);
        };
        if held + bytes > RING_BYTES || self.draw_connection_fault() {
            return Err(SendRefusal::RingFull);
        }
        if self.draw_connection_fault() {
            // Either closed and requested again, or given up after a protocol
            // violation, which some never request again.
            let ours = if self.draw_bool() {
                DisconnectReason::ClosedByPeer
            } else {
                DisconnectReason::ProtocolViolation("injected by the simulator")
            };
            self.end_connection(
                now,
                number,
                connection,
                Some(ours),
                DisconnectReason::ClosedByPeer,
            );
            return Err(SendRefusal::Disconnected);
        }
        if let Some(entry) = self.connection_mut(number, connection) {
            entry.2 += bytes;
        }
        self.traffic.records += 1;
        self.trace.bytes(head);
        let sent = RecordInFlight {
            connection: to_connection,
            peer: name,
            head: [head, tail].concat(),
            head_len: head.len(),
            body: (!datagram.body.is_empty()).then(|| datagram.body.clone()),
        };
        self.push_in_order(now + DELAY, to, InFlightContent::Record(sent));
        Ok(())
    }

    fn take_record(&mut self, number: usize) -> Option<RecordInFlight> {
        let side = &mut self.sockets[number].shared;
        let sent = side.waiting.pop_front()?;
        side.counts.received += 1;
        if let Some((other, other_connection, _)) = side.connections.get(&sent.connection).copied()
            && let Some(entry) = self.connection_mut(other, other_connection)
        {
            entry.2 = entry.2.saturating_sub(sent.head.len());
        }
        Some(sent)
    }

    /// Ends one connection. The peer gets an event, and this side if `ours` is set.
    fn end_connection(
        &mut self,
        now: u64,
        number: usize,
        connection: u32,
        ours: Option<DisconnectReason>,
        theirs: DisconnectReason,
    ) {
        let Some((other, other_connection, _)) =
            self.sockets[number].shared.connections.remove(&connection)
        else {
            return;
        };
        self.sockets[other]
            .shared
            .connections
            .remove(&other_connection);
        let sides = [
            (number, connection, other, ours),
            (other, other_connection, number, Some(theirs)),
        ];
        for (at, connection, peer, reason) in sides {
            let peer = self.sockets[peer].shared.name;
            if let Some(reason) = reason {
                self.push_event(
                    now,
                    at,
                    ConnectionEvent::Disconnected {
                        peer,
                        connection,
                        reason,
                    },
                );
            }
        }
    }

    /// Ends all connections of a process that has ended.
    pub fn end_connections(&mut self, now: u64, number: usize) {
        let connections: Vec<u32> = self.sockets[number]
            .shared
            .connections
            .keys()
            .copied()
            .collect();
        for connection in connections {
            self.end_connection(
                now,
                number,
                connection,
                None,
                DisconnectReason::ProcessEnded,
            );
        }
        let side = &mut self.sockets[number].shared;
        side.waiting.clear();
        side.events.clear();
    }
}

/// The shared-memory transport of one participant as the engine sees it.
pub struct SimSharedMemory {
    /// The world of the process.
    pub world: Weak<SimWorld>,
    /// Its socket.
    pub number: usize,
    /// Its host.
    pub host: u8,
}

impl SimSharedMemory {
    fn with<T>(&self, none: T, change: impl FnOnce(u64, &mut Network) -> T) -> T {
        let Some(world) = self.world.upgrade() else {
            return none;
        };
        let now = world.now();
        let mut network = world.network();
        change(now, &mut network)
    }
}

impl ShmTransport for SimSharedMemory {
    fn scope(&self) -> ShmScope {
        ShmScope {
            version: 1,
            host: self.host.into(),
            network: 1,
            user: 0,
        }
    }

    fn connect(&self, peer: GuidPrefix, _now: Instant) -> Result<(), DisconnectReason> {
        let ask = |now, network: &mut Network| network.request_connection(now, self.number, peer.0);
        self.with(Ok(()), ask)
    }

    fn disconnect(&self, peer: GuidPrefix) {
        self.with((), |now, network| {
            let connections = &network.sockets[self.number].shared.connections;
            let to_peer =
                |(other, ..): &(usize, u32, usize)| network.sockets[*other].shared.name == peer.0;
            let connection = connections.iter().find(|(_, entry)| to_peer(entry));
            if let Some(connection) = connection.map(|(connection, _)| *connection) {
                network.end_connection(
                    now,
                    self.number,
                    connection,
                    None,
                    DisconnectReason::ClosedByPeer,
                );
            }
        });
    }

    fn is_due(&self) -> bool {
        self.with(false, |_, network| {
            network.sockets[self.number].shared.is_due()
        })
    }

    fn poll(&self, _now: Instant, events: &mut dyn FnMut(ConnectionEvent)) -> Option<Instant> {
        loop {
            let event = self.with(None, |_, network| {
                let side = &mut network.sockets[self.number].shared;
                side.is_due().then(|| side.events.pop_front()).flatten()
            });
            // The engine handles events outside of the network's lock.
            events(event?);
        }
    }

    fn send(&self, connection: u32, datagram: &Datagram<'_>) -> Result<(), SendRefusal> {
        self.with(Err(SendRefusal::Disconnected), |now, network| {
            let sent = network.send_record(now, self.number, connection, datagram);
            let counts = &mut network.sockets[self.number].shared.counts;
            match sent {
                Ok(()) => counts.sent += 1,
                Err(SendRefusal::RingFull) => counts.refused_ring_full += 1,
                Err(_) => counts.refused_disconnected += 1,
            }
            sent
        })
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<ReceivedMessage> {
        let take = |_, network: &mut Network| network.take_record(self.number);
        let sent = self.with(None, take)?;
        head.clear();
        head.extend_from_slice(&sent.head);
        Some(ReceivedMessage {
            connection: sent.connection,
            peer: sent.peer,
            head_len: sent.head_len,
            tail_len: sent.head.len() - sent.head_len,
            body: sent.body,
        })
    }

    fn chunk(&self, len: usize) -> Result<Chunk, PoolExhausted> {
        Ok(Chunk::Plain(vec![0; len]))
    }

    fn arm_doorbell(&self) -> bool {
        self.with(true, |_, network| {
            network.sockets[self.number].shared.waiting.is_empty()
        })
    }

    fn disarm_doorbell(&self) {}

    fn counts(&self) -> ConnectionCounts {
        self.with(ConnectionCounts::default(), |_, network| {
            network.sockets[self.number].shared.counts
        })
    }
}
