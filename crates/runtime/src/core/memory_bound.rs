//! Memory bounds of a context: memory held for its peers, compared with the limits.
//!
//! Sums over its endpoints; the simulator checks the result after every step
//! (invariant).

use crate::core::Core;
use crate::endpoints::Endpoints;
use crate::transport::rtps::RtpsTransport;
use pteros_rtps::participant::ReceiveMemoryUse;

impl RtpsTransport {
    /// The receive memory that remote participants fill, and its limits. Counts all
    /// participants: for diagnostics. Locks the participant.
    pub fn receive_memory_use(&self) -> ReceiveMemoryUse {
        self.participant.lock().receive_memory_use()
    }
}

impl Endpoints {
    /// Bytes of payload that they may hold at most, with the present endpoints and
    /// matches.
    pub fn worst_case_bytes(&self) -> usize {
        let table = self.read();
        let writers = table.writers.values();
        let writers = writers.map(|w| w.state.lock().machine.worst_case_bytes());
        let readers = table.readers.values();
        let readers = readers.map(|r| r.machine.lock().worst_case_bytes());
        writers.chain(readers).fold(0, usize::saturating_add)
    }
}

impl Core {
    /// Bytes of payload that its protocol machines hold.
    pub fn memory_bytes(&self) -> usize {
        let table = self.discovery().endpoints.read();
        let writers = table.writers.values();
        let writers = writers.map(|w| w.state.lock().machine.memory_bytes());
        let readers = table.readers.values();
        let readers = readers.map(|r| r.machine.lock().memory_bytes());
        writers.chain(readers).fold(0, usize::saturating_add)
    }

    /// The queue or table that has outgrown its limit. `None`, unless there is a
    /// bug.
    pub fn exceeded_limit(&self) -> Option<String> {
        let table = self.discovery().endpoints.read();
        for writer in table.writers.values() {
            let exceeded = writer.state.lock().machine.exceeded_limit();
            if let Some((what, held, max)) = exceeded {
                return Some(format!(
                    "writer {}: {held} {what}, limit {max}",
                    writer.guid()
                ));
            }
        }
        for reader in table.readers.values() {
            let exceeded = reader.machine.lock().exceeded_limit();
            let exceeded = exceeded.or_else(|| reader.exceeded_limit());
            if let Some((what, held, max)) = exceeded {
                let guid = reader.data.guid;
                return Some(format!("reader {guid}: {held} {what}, limit {max}"));
            }
        }
        drop(table);
        let used = self.discovery().transports.rtps.receive_memory_use();
        let largest = used.largest.map_or(0, |of| of.reserved);
        for (held, limit, whose) in [
            (used.reserved, used.limit, "all participants"),
            (largest, used.participant_limit, "a participant"),
        ] {
            // Discovery records and samples may use an eighth each in addition to samples
            // that fill the limit.
            let max = limit.saturating_add(limit / 4);
            if held > max {
                return Some(format!(
                    "{held} bytes of receive memory for {whose}, limit {max}"
                ));
            }
        }
        self.discovery().transports.iter().find_map(|transport| {
            let (what, held, max) = transport.exceeded_limit()?;
            Some(format!(
                "transport {}: {held} {what}, limit {max}",
                transport.name()
            ))
        })
    }
}
