//! Simulated processes: the running context of each, or an external context that a
//! caller opens over the simulated clock and network.
//!
//! External contexts are those of tests of `pteros` and of whole nodes.

use std::sync::{Arc, Weak};

use pteros_runtime::graph::NodeKey;
use pteros_runtime::platform::UndrivenContext;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::{Core, DriverState};

pub struct RunningProcess {
    /// Its context.
    pub core: Arc<Core>,
    /// State of its driver. `None` while it is polled.
    pub state: Option<DriverState>,
    /// The ready queue of its endpoints.
    pub queue: Arc<ReadyQueue>,
    pub nodes: Vec<(NodeKey, String)>,
}

/// A process of the plan. It may die and start again as another incarnation.
#[derive(Default)]
pub struct SimProcess {
    /// Its host, the last byte of its IP address.
    pub host: u8,
    /// The running process, if any.
    pub running: Option<RunningProcess>,
    /// A context that a caller opened instead, if any.
    pub external: Option<Weak<dyn UndrivenContext>>,
    /// Number of starts so far.
    pub incarnations: u32,
    /// The incarnation that first used the current GUID prefix.
    pub identity: u32,
    /// Paused until this time.
    pub paused_until: u64,
    /// Its thread blocks in a publish.
    pub blocked: bool,
    /// It was paused, so its events may have come late.
    pub was_paused: bool,
    /// Its open socket.
    pub socket: Option<usize>,
    /// Time and number of the timer wake-ups at the present instant.
    pub timers: (u64, u32),
    /// Changes each datagram before it is sent, to look like another DDS stack.
    pub disguise: Option<fn(&mut [u8])>,
    /// Polls of its driver in all.
    pub polls_total: u64,
}

/// The unique part of a process's GUID. It stands at both ends of the prefix,
/// because service clients are identified by a part of it.
pub fn unique(process: usize, incarnation: u32) -> [u8; 10] {
    let [a, b, c, d] = incarnation.to_le_bytes();
    let process = process as u8 + 1;
    [process, a, b, c, d, process, a, b, c, d]
}

impl SimProcess {
    /// When the external context has something to do even if nothing arrives.
    pub fn external_due(&self) -> Option<u64> {
        let external = self.external.as_ref().filter(|_| !self.blocked)?;
        let core = external.upgrade()?;
        let at = core.next_deadline().as_nanos().max(self.paused_until);
        (at < u64::MAX).then_some(at)
    }
}
