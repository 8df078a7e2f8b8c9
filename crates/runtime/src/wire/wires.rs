//! The wires of a context: RTPS, and those that were added.
//!
//! The graph and the wiring ask all of them at once. It never holds a lock.

use std::sync::Arc;

use super::rtps::RtpsWire;
use super::{OpenWire, SampleWire, Wire, WireScheduler, WireSetup};
use crate::error::OpenError;
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;

/// Wires beside RTPS that a context may have.
pub const WIRES_MAX: usize = 4;

/// Opens the wires of a context. `setup` is what each gets, with its own scheduler.
pub(crate) fn open_wires(
    wires: &[OpenWire],
    is_secured: bool,
    scheduler: &Arc<Scheduler>,
    setup: impl Fn(WireScheduler) -> WireSetup,
) -> Result<Vec<Arc<dyn SampleWire>>, OpenError> {
    if wires.len() > WIRES_MAX {
        return Err(OpenError::TooManyWires {
            given: wires.len(),
            max: WIRES_MAX,
        });
    }
    let open = |(index, wire): (usize, &OpenWire)| {
        let name = wire.name();
        let scheduler = WireScheduler::new(scheduler.clone(), TimeoutOwner::Wire(index));
        let opened = wire.open(setup(scheduler));
        let opened = opened.map_err(|reason| OpenError::Wire { name, reason })?;
        if is_secured && !opened.is_protected() {
            return Err(OpenError::UnprotectedWire { name });
        }
        Ok(opened)
    };
    wires.iter().enumerate().map(open).collect()
}

/// See the module documentation. Thread-safe.
pub(crate) struct Wires {
    pub(crate) rtps: RtpsWire,
    added: Vec<Arc<dyn SampleWire>>,
}

impl Wires {
    pub(crate) fn new(rtps: RtpsWire, added: Vec<Arc<dyn SampleWire>>) -> Self {
        Self { rtps, added }
    }

    /// All of them, RTPS first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Wire> {
        let rtps: &dyn Wire = &self.rtps;
        let added = self.added.iter().map(|wire| {
            let wire: &dyn Wire = &**wire;
            wire
        });
        std::iter::once(rtps).chain(added)
    }

    /// The wires beside RTPS, which carry samples themselves.
    pub(crate) fn added(&self) -> &[Arc<dyn SampleWire>] {
        &self.added
    }
}
