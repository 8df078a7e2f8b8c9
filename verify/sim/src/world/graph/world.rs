//! The world of a graph: its processes with random endpoints, services and faults.
//!
//! `GraphWorld` has a method per step of a plan and per check. The folder has a
//! file per kind; what the checks know is in `model`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::model::Model;
use super::model::records::ReadySource;
use super::networks::NetworkState;
use super::plan::SeedPlan;
use super::schedule::Schedule;
use super::service::cyclone_header::rewrite_vendor_id;
use super::service::records::Services;
use crate::harness::options::Fault;
use crate::simulation::event_loop::EventLoop;

/// A simulated graph of processes with endpoints and services.
pub struct GraphWorld {
    /// Clock, network and processes.
    pub sim: Arc<EventLoop>,
    /// The plan of the seed.
    pub plan: SeedPlan,
    /// Scheduled events.
    pub schedule: Mutex<Schedule>,
    /// The oracle.
    pub model: Mutex<Model>,
    /// Service clients and servers.
    pub services: Mutex<Services>,
    /// When the flows are checked for silence again, in nanoseconds.
    pub silence_check_at: AtomicU64,
    /// The networks between hosts with several addresses.
    pub networks: Mutex<NetworkState>,
    /// Endpoints that became ready during the last call into the engine.
    pub ready_sources: Arc<Mutex<Vec<ReadySource>>>,
}

impl GraphWorld {
    /// A world in which no process runs yet. `seed` drives the schedule.
    pub fn new(sim: Arc<EventLoop>, plan: SeedPlan, seed: u64) -> Self {
        if plan.cyclone_process
            && let Some(process) = sim.processes().first_mut()
        {
            process.disguise = Some(rewrite_vendor_id);
        }
        Self {
            schedule: Mutex::new(Schedule::new(seed)),
            model: Mutex::new(Model {
                violations: sim.violations().clone(),
                lenient: plan.has(Fault::Corrupt) || plan.has(Fault::SpoofedForgery),
                forged: plan.has(Fault::SpoofedForgery),
                guid_reused: plan.has(Fault::GuidReuse),
                ..Model::default()
            }),
            services: Mutex::default(),
            networks: Mutex::default(),
            silence_check_at: AtomicU64::new(0),
            ready_sources: Arc::default(),
            plan,
            sim,
        }
    }

    /// Records a violated invariant. The run ends after this event.
    pub fn fail(&self, text: String) {
        self.model.lock().fail(text);
    }

    /// Whether a process appears as Cyclone DDS. It has services only.
    pub fn is_cyclone(&self, process: usize) -> bool {
        self.plan.cyclone_process && process == 0
    }
}
