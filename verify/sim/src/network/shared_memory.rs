//! Shared-memory connections of a simulated process, and what travels on them and beside
//! them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use pteros_runtime::shm_transport::{ConnectionCounts, ConnectionEvent};

/// The content of something in flight.
#[derive(Debug)]
pub enum InFlightContent {
    Datagram(Bytes),
    /// A record of a shared-memory connection.
    Record(RecordInFlight),
    /// An event of a shared-memory connection.
    ConnectionEvent(ConnectionEvent),
    /// The process may be done with its datagrams, and gets the next one.
    ProcessorFree,
}

/// A record in flight or in a ring.
#[derive(Clone, Debug)]
pub struct RecordInFlight {
    /// The receiver's id of its connection.
    pub connection: u32,
    /// GUID prefix of the sender.
    pub peer: [u8; 12],
    /// Head and tail of the datagram.
    pub head: Vec<u8>,
    /// Length of the head.
    pub head_len: usize,
    /// The chunk between them.
    pub body: Option<Bytes>,
}

/// The shared-memory connections of one process.
#[derive(Debug, Default)]
pub struct ConnectionTable {
    /// GUID prefix of its participant.
    pub name: [u8; 12],
    pub host: u8,
    /// By id: the peer's socket, the peer's id of the connection, bytes in flight.
    pub connections: BTreeMap<u32, (usize, u32, usize)>,
    /// Records that have arrived.
    pub waiting: VecDeque<RecordInFlight>,
    /// Events that have arrived.
    pub events: VecDeque<ConnectionEvent>,
    /// Counters of the transport.
    pub counts: ConnectionCounts,
}

impl ConnectionTable {
    /// Whether a record or an event waits.
    pub fn has_input(&self) -> bool {
        !self.waiting.is_empty() || self.is_due()
    }

    /// Whether an event is due. The end of a connection is due after all records
    /// that came before it were taken.
    pub fn is_due(&self) -> bool {
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
            InFlightContent::Datagram(_) | InFlightContent::ProcessorFree => {}
        }
    }
}
