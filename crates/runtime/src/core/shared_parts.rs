//! The parts that all types of a context's core share.

use std::sync::Arc;

use pteros_rtps::id::GuidPrefix;

use crate::platform::{DatagramSockets, Platform};
use crate::scheduler::Scheduler;
use crate::send::SendPath;
use crate::trace::Tracer;

/// See the module documentation. Each type keeps those that it uses.
pub(crate) struct SharedParts {
    pub(crate) prefix: GuidPrefix,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) datagrams: Arc<dyn DatagramSockets>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) send: Arc<SendPath>,
    pub(crate) tracer: Option<Arc<Tracer>>,
}
