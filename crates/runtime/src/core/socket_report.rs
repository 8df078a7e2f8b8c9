//! The report of opening the sockets of a context, and notes about its interfaces.

use std::sync::atomic::AtomicU64;

use pteros_rtps::locator::IpAddress;
use pteros_rtps::time::Instant;

use crate::lock::{Mutex, rank};

/// Logged moves of traffic between two addresses, with their time.
type ToldMoves = Vec<(IpAddress, IpAddress, Instant)>;

/// See the module documentation.
pub(crate) struct SocketReport {
    pub(crate) advice: Vec<String>,
    /// When the interfaces were last listed, nanoseconds; 0: at the opening.
    pub(crate) interfaces_listed_at: AtomicU64,
    pub(crate) told_moves: Mutex<ToldMoves, rank::ToldMoves>,
}

impl SocketReport {
    pub(crate) fn new(advice: Vec<String>) -> Self {
        Self {
            advice,
            interfaces_listed_at: AtomicU64::new(0),
            told_moves: Mutex::default(),
        }
    }
}
