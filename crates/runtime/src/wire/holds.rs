//! Wire holds: back-pressure of a KEEP_ALL reader towards writers on further wires.
//!
//! Part of a reader. A held writer's samples remain in its wire until the reader's
//! machine has space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_rtps::id::Guid;

use super::SampleWire;
use crate::lock::{Mutex, rank};

struct HeldWriter {
    wire: Arc<dyn SampleWire>,
    writer: Guid,
}

/// See the module documentation. Thread-safe.
#[derive(Default)]
pub(crate) struct WireHolds {
    is_used: AtomicBool,
    held: Mutex<Vec<HeldWriter>, rank::WireHolds>,
}

impl WireHolds {
    /// Holds a writer's samples back.
    pub(crate) fn hold(&self, wire: &Arc<dyn SampleWire>, writer: Guid) {
        let mut held = self.held.lock();
        if held.iter().all(|known| known.writer != writer) {
            wire.hold(writer, true);
            let wire = wire.clone();
            held.push(HeldWriter { wire, writer });
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
            of.wire.hold(of.writer, false);
        }
    }

    /// Releases a writer that is no longer matched with this reader.
    pub(crate) fn forget(&self, writer: Guid) {
        self.held.lock().retain(|known| {
            let stays = known.writer != writer;
            if !stays {
                known.wire.hold(writer, false);
            }
            stays
        });
    }
}
