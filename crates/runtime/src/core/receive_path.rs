//! The receive path: from datagrams and shared-memory messages to protocol machines.
//!
//! Submessages of discovery go to the participant, all others to the protocol machines of
//! matched readers or of the addressed writer. It owns the counters of what it drops. It
//! never reads a socket.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::IpAddress;

use crate::core::discovery::Discovery;
use crate::core::shared_parts::SharedParts;
use crate::lock::{Mutex, rank};
use crate::send::SendPath;

/// Totals of received datagrams.
#[derive(Default)]
pub(crate) struct ReceiveCounters {
    pub(crate) received: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) foreign_sources: AtomicU64,
    pub(crate) rate_limited: AtomicU64,
    /// The address with most of them, and its count.
    pub(crate) most_limited: Mutex<(IpAddress, u64), rank::MostLimited>,
}

/// See the module documentation. Thread-safe.
pub struct ReceivePath {
    pub(crate) prefix: GuidPrefix,
    pub(crate) send: Arc<SendPath>,
    pub(crate) counters: ReceiveCounters,
    pub(crate) discovery: Discovery,
}

impl ReceivePath {
    pub(crate) fn new(parts: &SharedParts, discovery: Discovery) -> Self {
        Self {
            prefix: parts.prefix,
            send: parts.send.clone(),
            counters: ReceiveCounters::default(),
            discovery,
        }
    }
}
