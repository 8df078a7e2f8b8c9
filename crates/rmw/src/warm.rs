//! A fast publisher of large messages stays in warm memory: memory that is used
//! for the first time costs more than writing it, and what was written long ago
//! has left the caches. So one that keeps all, and may be made to wait anyway,
//! gives its readers a moment before it takes fresh memory; no longer than that
//! would cost. To one that keeps it for late joiners, too, nothing comes back: it
//! brings in the next message's memory when it has sent one.

use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use pteros_rtps::time::Duration;

use crate::core::Core;
use crate::links::{Chunk, Links};
use crate::writer::WriterEndpoint;

/// Smaller messages are not worth it.
const LARGE_BYTES: usize = 64 << 10;

/// Messages on their way that keep both ends busy.
const UNDER_WAY_MIN: usize = 4;

/// So many large messages a publisher keeps before memory is brought in for one more.
const KEPT_MIN: usize = 2;

/// What bringing in and writing fresh memory costs, in bytes per nanosecond.
const BYTES_PER_NANOSECOND: usize = 4;

impl Core {
    /// Memory that was used before, for a publisher that has some under way and
    /// whose readers give it back in time.
    pub(crate) fn warm_chunk(
        &self,
        links: &dyn Links,
        writer: &WriterEndpoint,
        bytes: usize,
    ) -> Option<Chunk> {
        if bytes < LARGE_BYTES || !gets_memory_back(&writer.data.qos) {
            return None;
        }
        if writer.state.lock().machine.kept_count() < UNDER_WAY_MIN {
            return None;
        }
        let mut found = links.warm_chunk(bytes);
        if found.is_none() {
            let nanos = i64::try_from(bytes / BYTES_PER_NANOSECOND).unwrap_or(i64::MAX);
            let until = self.env.now().after(Duration::from_nanos(nanos));
            self.wait_until(until, || {
                found = found.take().or_else(|| links.warm_chunk(bytes));
                found.is_some()
            });
        }
        found
    }

    /// Brings in memory for a message more, as large as the one that was sent, for a
    /// publisher that keeps them all: the next then waits for the kernel no more.
    pub(crate) fn warm_ahead(&self, writer: &WriterEndpoint, bytes: usize) {
        if bytes < LARGE_BYTES || !keeps_memory(&writer.data.qos) || writer.linked_count() == 0 {
            return;
        }
        let Some(links) = self.linking.get() else {
            return;
        };
        if writer.state.lock().machine.kept_count() >= KEPT_MIN {
            links.warm_ahead(bytes);
        }
    }
}

/// Whether each message takes fresh memory, as the ones before it are kept.
fn keeps_memory(qos: &EndpointQos) -> bool {
    qos.history == History::KeepAll && qos.durability != Durability::Volatile
}

/// Whether readers that acknowledge give memory back, for which the publisher may be
/// made to wait.
fn gets_memory_back(qos: &EndpointQos) -> bool {
    qos.history == History::KeepAll
        && qos.reliability == Reliability::Reliable
        && qos.durability == Durability::Volatile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_keeps_all_until_it_is_acknowledged_waits_for_used_memory() {
        let waits = EndpointQos {
            history: History::KeepAll,
            reliability: Reliability::Reliable,
            durability: Durability::Volatile,
            ..EndpointQos::default()
        };
        assert!(gets_memory_back(&waits));
        let keeps = |durability| EndpointQos {
            durability,
            ..waits.clone()
        };
        // What late joiners may want is kept: its memory does not come back.
        assert!(!gets_memory_back(&keeps(Durability::TransientLocal)));
        assert!(!gets_memory_back(&keeps(Durability::Transient)));
        assert!(keeps_memory(&keeps(Durability::TransientLocal)) && !keeps_memory(&waits));
        let overwrites = EndpointQos {
            history: History::KeepLast(10),
            ..waits.clone()
        };
        assert!(!gets_memory_back(&overwrites));
        let never_waits = EndpointQos {
            reliability: Reliability::BestEffort,
            ..waits.clone()
        };
        assert!(!gets_memory_back(&never_waits));
    }
}
