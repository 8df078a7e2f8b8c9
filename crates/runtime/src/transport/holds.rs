//! Transport holds: back-pressure of a KEEP_ALL reader towards writers on further transports.
//!
//! Part of a reader. A held writer's samples remain in its transport until the reader's
//! machine has space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_rtps::id::Guid;

use super::SampleTransport;
use crate::lock::{Mutex, rank};

struct HeldWriter {
    transport: Arc<dyn SampleTransport>,
    writer: Guid,
}

/// See the module documentation. Thread-safe.
#[derive(Default)]
pub(crate) struct TransportHolds {
    is_used: AtomicBool,
    held: Mutex<Vec<HeldWriter>, rank::TransportHolds>,
}

impl TransportHolds {
    /// Holds a writer's samples back.
    pub(crate) fn hold(&self, transport: &Arc<dyn SampleTransport>, writer: Guid) {
        let mut held = self.held.lock();
        if held.iter().all(|known| known.writer != writer) {
            transport.hold(writer, true);
            let transport = transport.clone();
            held.push(HeldWriter { transport, writer });
        }
        self.is_used.store(true, Ordering::Release);
    }

    /// Releases all held writers if `has_space` returns true. One load when none is held.
    pub(crate) fn release_if(&self, has_space: impl FnOnce() -> bool) {
        if !self.is_used.load(Ordering::Acquire) || !has_space() {
            return;
        }
        let mut held = self.held.lock();
        self.is_used.store(false, Ordering::Release);
        for of in held.drain(..) {
            of.transport.hold(of.writer, false);
        }
    }

    /// Releases a writer that is no longer matched with this reader.
    pub(crate) fn forget(&self, writer: Guid) {
        self.held.lock().retain(|known| {
            let stays = known.writer != writer;
            if !stays {
                known.transport.hold(writer, false);
            }
            stays
        });
    }
}
