//! Simulated shared-memory connections between processes of one host.
//!
//! They deliver in order and without loss while they last and the ring has room.
//! With [`Fault::SharedMemory`](crate::harness::options::Fault::SharedMemory) they
//! are refused, run full, and end now and then.

use pteros_rtps::outbox::Datagram;
use pteros_runtime::shm_transport::{ConnectionEvent, DisconnectReason, SendRefusal};

use super::Network;
use super::shared_memory::{InFlightContent, RecordInFlight};

/// Latency of a record or of a connection event in nanoseconds.
const DELAY: u64 = 2_000;

/// Ring capacity: bytes of heads and tails in flight on one connection. A send
/// beyond it is refused.
const RING_BYTES: usize = 32 << 10;

impl Network {
    fn connection_mut(
        &mut self,
        number: usize,
        connection: u32,
    ) -> Option<&mut (usize, u32, usize)> {
        self.sockets[number].shared.connections.get_mut(&connection)
    }

    /// Connects a process to another one of its host, or refuses it.
    pub fn request_connection(
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

    /// Sends a datagram on a connection.
    pub fn send_record(
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

    /// Takes the oldest record that has arrived.
    pub fn take_record(&mut self, number: usize) -> Option<RecordInFlight> {
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
    pub fn end_connection(
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
