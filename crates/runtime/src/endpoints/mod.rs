//! The endpoints of a context: the tables of local writers and readers, and the
//! order of matches.
//!
//! Discovery and users change the tables under [`Endpoints::begin_match`]. The
//! driver looks endpoints up for every submessage. It never runs a protocol machine
//! and never sends.

pub(crate) mod changeable_qos;
pub(crate) mod coherent_delivery;
pub mod content_filter;
pub(crate) mod durable_store;
mod durable_writer;
pub mod event;
mod filtering;
pub(crate) mod instance_end;
pub(crate) mod intra_process;
pub(crate) mod local_route;
pub(crate) mod loss_report;
pub(crate) mod mismatch;
pub mod publisher_group;
pub mod reader;
mod reader_queue_stats;
pub(crate) mod serialize_only;
pub(crate) mod stall_report;
pub mod subscription_group;
pub(crate) mod undecodable;
pub mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};

use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::writer::WriterEndpoint;
use crate::lock::{Mutex, MutexGuard, ReadGuard, RwLock, WriteGuard, rank};

/// The tables. Iterated in order, so that the output does not depend on chance.
#[derive(Default)]
pub(crate) struct EndpointTable {
    pub(crate) writers: BTreeMap<EntityId, Arc<WriterEndpoint>>,
    pub(crate) readers: BTreeMap<EntityId, Arc<ReaderEndpoint>>,
    /// Local readers that are matched with each remote writer.
    pub(crate) readers_of_writer: BTreeMap<Guid, Vec<Arc<ReaderEndpoint>>>,
}

/// See the module documentation. Thread-safe.
pub(crate) struct Endpoints {
    pub(crate) prefix: GuidPrefix,
    table: RwLock<EndpointTable, rank::EndpointTable>,
    match_order: Mutex<(), rank::MatchOrder>,
    next_key: AtomicU32,
}

impl Endpoints {
    pub(crate) fn new(prefix: GuidPrefix) -> Self {
        Self {
            prefix,
            table: RwLock::default(),
            match_order: Mutex::default(),
            next_key: AtomicU32::new(1),
        }
    }

    /// Starts a change of matches. Changes are serialized, so that a match and its end
    /// reach an endpoint in the order of discovery.
    pub(crate) fn begin_match(&self) -> MutexGuard<'_, (), rank::MatchOrder> {
        self.match_order.lock()
    }

    /// Read access to the tables.
    pub(crate) fn read(&self) -> ReadGuard<'_, EndpointTable, rank::EndpointTable> {
        self.table.read()
    }

    /// Write access to the tables.
    pub(crate) fn write(&self) -> WriteGuard<'_, EndpointTable, rank::EndpointTable> {
        self.table.write()
    }

    /// A local writer.
    pub(crate) fn writer(&self, id: EntityId) -> Option<Arc<WriterEndpoint>> {
        self.table.read().writers.get(&id).cloned()
    }

    /// A local reader.
    pub(crate) fn reader(&self, id: EntityId) -> Option<Arc<ReaderEndpoint>> {
        self.table.read().readers.get(&id).cloned()
    }

    /// All local writers.
    pub(crate) fn writers(&self) -> Vec<Arc<WriterEndpoint>> {
        self.table.read().writers.values().cloned().collect()
    }

    /// All local readers.
    pub(crate) fn readers(&self) -> Vec<Arc<ReaderEndpoint>> {
        self.table.read().readers.values().cloned().collect()
    }

    /// The GUID of a new entity of this kind.
    pub(crate) fn new_guid(&self, kind: u8) -> Guid {
        self.prefix.with(EntityId::new(self.next_key(), kind))
    }

    /// The key of a new entity.
    pub(crate) fn next_key(&self) -> [u8; 3] {
        let [_, a, b, c] = self.next_key.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        [a, b, c]
    }
}
