//! Prefault and chunk reuse: keeps a fast publisher of large messages in mapped, cached
//! memory.
//!
//! The first use of memory causes page faults, which cost more than writing it. Memory
//! written long ago has left the caches. Therefore a KEEP_ALL publisher, which may block
//! anyway, waits briefly for a returned chunk before it takes fresh memory. The wait is
//! no longer than fresh memory would cost. A transient-local publisher keeps its samples,
//! so no chunk is returned. It prefaults the memory of the next message after each send.

use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use pteros_rtps::time::Duration;

use crate::core::Core;
use crate::core::publish_path::PublishPath;
use crate::endpoints::writer::WriterEndpoint;
use crate::shm_transport::{Chunk, ShmTransport};

/// Smaller messages are not worth it.
const LARGE_BYTES: usize = 64 << 10;

/// Messages in flight that keep both ends busy.
const IN_FLIGHT_MIN: usize = 4;

/// A publisher must keep this many large messages before memory for another is
/// prefaulted.
const KEPT_MIN: usize = 2;

/// The cost of faulting in and writing fresh memory, in bytes per nanosecond.
const BYTES_PER_NANOSECOND: usize = 4;

impl PublishPath {
    /// Prefaults memory for one more message of this size, for a publisher that
    /// keeps them all. The next message then has no page faults.
    pub(crate) fn prefault_next(&self, writer: &WriterEndpoint, bytes: usize) {
        if bytes < LARGE_BYTES || !keeps_memory(&writer.data.qos) || writer.connected_count() == 0 {
            return;
        }
        let Some(shm) = self.send.shm() else {
            return;
        };
        if writer.state.lock().machine.cached_samples() >= KEPT_MIN {
            shm.prefault(bytes);
        }
    }
}

impl Core {
    /// A chunk that was used before, for a publisher with chunks in flight that readers
    /// return in time.
    pub(crate) fn prefaulted_chunk(
        &self,
        shm: &dyn ShmTransport,
        writer: &WriterEndpoint,
        bytes: usize,
    ) -> Option<Chunk> {
        if bytes < LARGE_BYTES || !reuses_memory(&writer.data.qos) {
            return None;
        }
        if writer.state.lock().machine.cached_samples() < IN_FLIGHT_MIN {
            return None;
        }
        let mut chunk = shm.prefaulted_chunk(bytes);
        if chunk.is_none() {
            let nanos = i64::try_from(bytes / BYTES_PER_NANOSECOND).unwrap_or(i64::MAX);
            let until = self.platform.now().after(Duration::from_nanos(nanos));
            self.driver.wait_until(until, || {
                chunk = chunk.take().or_else(|| shm.prefaulted_chunk(bytes));
                chunk.is_some()
            });
        }
        chunk
    }
}

/// Whether each message takes fresh memory, because earlier ones are kept.
fn keeps_memory(qos: &EndpointQos) -> bool {
    qos.history == History::KeepAll && qos.durability != Durability::Volatile
}

/// Whether acknowledgements return memory, and the publisher may block for them.
fn reuses_memory(qos: &EndpointQos) -> bool {
    qos.history == History::KeepAll
        && qos.reliability == Reliability::Reliable
        && qos.durability == Durability::Volatile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_keep_all_volatile_writer_waits_for_used_memory() {
        let waits = EndpointQos {
            history: History::KeepAll,
            reliability: Reliability::Reliable,
            durability: Durability::Volatile,
            ..EndpointQos::default()
        };
        assert!(reuses_memory(&waits));
        let keeps = |durability| EndpointQos {
            durability,
            ..waits.clone()
        };
        // Samples for late joiners are kept: their memory is not returned.
        assert!(!reuses_memory(&keeps(Durability::TransientLocal)));
        assert!(!reuses_memory(&keeps(Durability::Transient)));
        assert!(keeps_memory(&keeps(Durability::TransientLocal)) && !keeps_memory(&waits));
        let overwrites = EndpointQos {
            history: History::KeepLast(10),
            ..waits.clone()
        };
        assert!(!reuses_memory(&overwrites));
        let never_waits = EndpointQos {
            reliability: Reliability::BestEffort,
            ..waits.clone()
        };
        assert!(!reuses_memory(&never_waits));
    }
}
