//! One run of a seed: fault injection, healing, convergence checks.

use std::sync::Arc;

use fastrand::Rng;

use crate::plan::{Options, SeedPlan};
use crate::trace::Trace;
use crate::world::{SimWorld, WorldSeeds};

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Its seed.
    pub seed: u64,
    /// The hash of its trace.
    pub hash: u64,
    /// Violated invariants.
    pub violations: Vec<String>,
    /// Simulated nanoseconds.
    pub simulated: u64,
    /// Messages published and taken.
    pub messages: (u64, u64),
    /// Datagrams delivered.
    pub datagrams: u64,
    /// Records sent through shared memory.
    pub records: u64,
    /// Messages of coherent sets taken by readers with coherent access.
    pub in_sets: u64,
    /// Service calls made and answered.
    pub calls: (u64, u64),
    /// Matches that writers reported.
    pub matches: u64,
    /// Trace lines, if requested.
    pub lines: Vec<String>,
}

impl RunOutcome {
    /// A result with a violation and nothing else.
    pub(crate) fn failed(seed: u64, violation: String) -> Self {
        Self {
            seed,
            hash: 0,
            violations: vec![violation],
            simulated: 0,
            messages: (0, 0),
            datagrams: 0,
            records: 0,
            in_sets: 0,
            calls: (0, 0),
            matches: 0,
            lines: Vec::new(),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Runs a seed. The same seed and options give the same outcome.
pub fn run(seed: u64, options: &Options) -> RunOutcome {
    let mut random = Rng::with_seed(seed);
    let plan = SeedPlan::new(&mut random, options);
    let trace = Trace::new(options.readable);
    let seeds = WorldSeeds {
        network: random.u64(..),
        schedule: random.u64(..),
    };
    arm(seed, &plan, options);
    let world = SimWorld::new(plan, seeds, trace);
    let start = world.now();
    world.open();
    phases(&world);
    disarm();
    let model = world.model.lock();
    let network = world.network();
    RunOutcome {
        seed,
        hash: network.trace.hash(),
        violations: model.violations.clone(),
        simulated: world.now() - start,
        messages: (model.writers.iter().map(|w| w.written).sum(), model.taken),
        datagrams: network.traffic.delivered,
        records: network.traffic.records,
        in_sets: model.in_sets,
        calls: world.call_counts(),
        matches: model.matches,
        lines: network.trace.lines().map(str::to_owned).collect(),
    }
}

/// Switches on the fault points that the seed and the caller select.
#[cfg(feature = "faults")]
fn arm(seed: u64, plan: &SeedPlan, options: &Options) {
    let mut faults = Vec::new();
    if plan.has(crate::plan::Fault::FaultPoints) {
        faults.extend(plan.tolerated_faults.iter().copied());
    }
    faults.extend(options.mutant.map(|mutant| (mutant, 10_000)));
    pteros_rtps::fault::arm(seed, &faults);
}

#[cfg(feature = "faults")]
fn disarm() {
    pteros_rtps::fault::disarm();
}

/// This build has no fault points.
#[cfg(not(feature = "faults"))]
fn arm(_seed: u64, _plan: &SeedPlan, _options: &Options) {}

#[cfg(not(feature = "faults"))]
fn disarm() {}

/// As [`run`], with a panic reported as a violation.
pub fn run_guarded(seed: u64, options: &Options) -> RunOutcome {
    let caught = std::panic::catch_unwind(|| run(seed, options));
    disarm();
    caught.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        RunOutcome::failed(
            seed,
            format!("panic: {}", text.unwrap_or("without a message")),
        )
    })
}

fn phases(world: &Arc<SimWorld>) {
    let lease = u64::try_from(world.plan.lease.as_nanos()).unwrap_or(u64::MAX);
    world.run_until(world.now() + world.plan.fault_span);
    world.heal();
    world.run_until(world.now() + world.plan.repair_span());
    world.check_repaired();
    // Announcements are sent every quarter of a lease, at most every 3 s.
    let announce = (lease / 4).min(3 * SECOND);
    world.run_until(world.now() + 2 * announce + 2 * SECOND);
    world.check_amplification();
    world.check_discovery();
    world.run_until(world.now() + lease + SECOND);
    world.check_settled_state();
    world.check_sets();
    world.check_services();
    world.check_expectations();
    world.check_quiet();
    world.check_late_joiners();
    world.check_first_replies();
}
