//! The shared-memory transport that a simulated participant uses.

use std::sync::Weak;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::time::Instant;
use pteros_runtime::shm_transport::{
    Chunk, ConnectionCounts, ConnectionEvent, DisconnectReason, PoolExhausted, ReceivedMessage,
    SendRefusal, ShmScope, ShmTransport,
};

use super::event_loop::EventLoop;
use crate::network::Network;

/// The shared-memory transport of one participant as the engine sees it.
pub struct SimSharedMemory {
    /// The world of the process.
    pub world: Weak<EventLoop>,
    /// Its socket.
    pub number: usize,
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
            byte_order: pteros_msg::cdr::Endian::Little,
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
