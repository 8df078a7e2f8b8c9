//! The transports of a context: RTPS, and those that were added.
//!
//! The graph and the wiring ask all of them at once. It never holds a lock.

use std::sync::Arc;

use super::rtps::RtpsTransport;
use super::{OpenTransport, SampleTransport, Transport, TransportScheduler, TransportSetup};
use crate::error::OpenError;
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;

/// Transports beside RTPS that a context may have.
pub const TRANSPORTS_MAX: usize = 4;

/// Opens the transports of a context. `setup` is what each gets, with its own scheduler.
pub(crate) fn open_transports(
    transports: &[OpenTransport],
    is_secured: bool,
    scheduler: &Arc<Scheduler>,
    setup: impl Fn(TransportScheduler) -> TransportSetup,
) -> Result<Vec<Arc<dyn SampleTransport>>, OpenError> {
    if transports.len() > TRANSPORTS_MAX {
        return Err(OpenError::TooManyTransports {
            given: transports.len(),
            max: TRANSPORTS_MAX,
        });
    }
    let open = |(index, transport): (usize, &OpenTransport)| {
        let name = transport.name();
        let scheduler = TransportScheduler::new(scheduler.clone(), TimeoutOwner::Transport(index));
        let opened = transport.open(setup(scheduler));
        let opened = opened.map_err(|reason| OpenError::Transport { name, reason })?;
        if is_secured && !opened.is_protected() {
            return Err(OpenError::UnprotectedTransport { name });
        }
        Ok(opened)
    };
    transports.iter().enumerate().map(open).collect()
}

/// See the module documentation. Thread-safe.
pub struct Transports {
    pub(crate) rtps: RtpsTransport,
    added: Vec<Arc<dyn SampleTransport>>,
}

impl Transports {
    pub(crate) fn new(rtps: RtpsTransport, added: Vec<Arc<dyn SampleTransport>>) -> Self {
        Self { rtps, added }
    }

    /// All of them, RTPS first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Transport> {
        let rtps: &dyn Transport = &self.rtps;
        let added = self.added.iter().map(|transport| {
            let transport: &dyn Transport = &**transport;
            transport
        });
        std::iter::once(rtps).chain(added)
    }

    /// The transports beside RTPS, which carry samples themselves.
    pub(crate) fn added(&self) -> &[Arc<dyn SampleTransport>] {
        &self.added
    }
}
