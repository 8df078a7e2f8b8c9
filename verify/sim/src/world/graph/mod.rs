//! Workload "graphs": processes with random endpoints and services under random
//! faults.
//!
//! A run has three phases: fault injection, healing, and convergence checks. An
//! oracle (`model`) that is simpler than the engine checks the invariants I1 to
//! I18 and I21 to I23 throughout.

mod acknowledgements;
mod apply;
mod coherent_sets;
mod convergence_checks;
mod endpoint_checks;
mod endpoints;
mod fault_injection;
mod forgery;
mod generators;
mod message;
mod model;
mod networks;
mod plan;
mod schedule;
mod service;
mod silence;
mod world;

use std::sync::Arc;

use fastrand::Rng;

use self::plan::SeedPlan;
use self::world::GraphWorld;
use crate::harness::options::{Fault, Options};
use crate::harness::{Check, Counts, Workload, World};
use crate::network::trace::Trace;
use crate::simulation::event_loop::{Agenda, EventLoop};

const SECOND: u64 = 1_000_000_000;

/// Random graphs of processes with endpoints and services.
#[derive(Clone, Copy, Debug)]
pub struct Graphs;

impl Workload for Graphs {
    fn name(&self) -> String {
        "graphs".into()
    }

    fn selection(&self) -> String {
        String::new()
    }

    fn open(&self, seed: u64, options: &Options) -> Box<dyn World> {
        let mut random = Rng::with_seed(seed);
        let plan = SeedPlan::new(&mut random, options);
        let (of_network, of_schedule) = (random.u64(..), random.u64(..));
        let sim = EventLoop::new(&plan.hosts, of_network, Trace::new(options.readable));
        let world = Arc::new(GraphWorld::new(sim, plan, of_schedule));
        let agenda: Arc<dyn Agenda> = world.clone();
        world.sim.set_agenda(Arc::downgrade(&agenda));
        Box::new(world)
    }
}

/// A phase of a run.
struct Phase {
    begin: fn(&GraphWorld),
    nanos: fn(&SeedPlan) -> u64,
    checks: &'static [fn(&GraphWorld) -> Vec<String>],
}

const PHASES: [Phase; 4] = [
    Phase {
        begin: GraphWorld::open,
        nanos: |plan| plan.fault_span,
        checks: &[],
    },
    Phase {
        begin: GraphWorld::heal,
        nanos: SeedPlan::repair_span,
        checks: &[
            GraphWorld::check_repaired,
            GraphWorld::check_recovery,
            GraphWorld::await_flow_controlled_writers,
        ],
    },
    Phase {
        begin: |_| {},
        // Announcements are sent every quarter of a lease, at most every 3 s.
        nanos: |plan| 2 * (plan.lease_nanos() / 4).min(3 * SECOND) + 2 * SECOND,
        checks: &[GraphWorld::check_discovery],
    },
    Phase {
        begin: |_| {},
        nanos: |plan| plan.lease_nanos() + SECOND,
        checks: &[
            GraphWorld::await_flow_controlled_writers,
            GraphWorld::check_settled_state,
            GraphWorld::check_sets,
            GraphWorld::check_services,
            GraphWorld::check_expectations,
            GraphWorld::check_quiet,
            GraphWorld::check_late_joiners,
            GraphWorld::check_first_replies,
        ],
    },
];

impl World for Arc<GraphWorld> {
    fn event_loop(&self) -> &EventLoop {
        &self.sim
    }

    fn tolerated_faults(&self) -> &[(&'static str, u32)] {
        if self.plan.has(Fault::FaultPoints) {
            &self.plan.tolerated_faults
        } else {
            &[]
        }
    }

    fn apply(&mut self, step: usize) -> Option<u64> {
        let phase = PHASES.get(step)?;
        (phase.begin)(self);
        Some((phase.nanos)(&self.plan))
    }

    fn checks(&self, step: usize) -> Vec<Check<'_>> {
        let checks = PHASES.get(step).map_or(&[][..], |phase| phase.checks);
        let counted = |check: &fn(&GraphWorld) -> Vec<String>| -> Check<'_> {
            let check = *check;
            Box::new(move || {
                let mut wrong = check(self);
                wrong.retain(|text| self.model.lock().is_counted(text));
                wrong
            })
        };
        checks.iter().map(counted).collect()
    }

    fn counts(&self) -> Counts {
        let model = self.model.lock();
        let (asked, answered) = self.call_counts();
        Counts {
            published: model.writers.iter().map(|w| w.written).sum(),
            taken: model.taken,
            in_sets: model.in_sets,
            matches: model.matches,
            asked,
            answered,
            ..Counts::default()
        }
    }
}
