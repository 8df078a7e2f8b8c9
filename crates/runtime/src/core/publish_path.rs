//! The publish path: from a written sample to datagrams, without waiting.
//!
//! It owns what only writers use: delivery within the process and the flow controllers.
//! It fills a writer's output under the writer's lock and sends it without. It never
//! waits for history space, and never polls: [`Core::publish`](crate::Core::publish)
//! does.

use std::sync::Arc;

use crate::core::shared_parts::SharedParts;
use crate::endpoints::intra_process::IntraProcess;
use crate::platform::Platform;
use crate::scheduler::Scheduler;
use crate::send::SendPath;
use crate::send::flow_controller::FlowController;
use crate::send::flow_controllers::FlowControllers;

/// See the module documentation. Thread-safe.
pub struct PublishPath {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) send: Arc<SendPath>,
    pub(crate) intra_process: IntraProcess,
    pub(crate) flow_controllers: FlowControllers,
}

impl PublishPath {
    pub(crate) fn new(parts: &SharedParts, controllers: &[FlowController]) -> Self {
        let (platform, scheduler) = (&parts.platform, &parts.scheduler);
        Self {
            platform: platform.clone(),
            scheduler: scheduler.clone(),
            send: parts.send.clone(),
            intra_process: IntraProcess {
                platform: platform.clone(),
                scheduler: scheduler.clone(),
            },
            flow_controllers: FlowControllers::new(controllers, scheduler.clone()),
        }
    }
}
