//! One run: a phase with faults, then healing, then everything that must be
//! true afterwards.

use std::sync::Arc;

use fastrand::Rng;

use crate::plan::{Options, Plan};
use crate::trace::Trace;
use crate::world::World;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// The hash of its trace.
    pub hash: u64,
    /// Broken invariants.
    pub violations: Vec<String>,
    /// Nanoseconds that passed in it.
    pub simulated: u64,
    /// Messages published and taken.
    pub messages: (u64, u64),
    /// Datagrams delivered.
    pub datagrams: u64,
    /// Messages sent by links of shared memory.
    pub records: u64,
    /// Messages of coherent sets taken by readers that asked for sets.
    pub in_sets: u64,
    /// Calls of services made and answered.
    pub calls: (u64, u64),
    /// Matches told to writers.
    pub matches: u64,
    /// What happened, if it was asked for.
    pub lines: Vec<String>,
}

impl Outcome {
    /// One of which nothing is known but what is wrong.
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

/// Runs a seed. Same seed and options, same outcome.
pub fn run(seed: u64, options: &Options) -> Outcome {
    let mut random = Rng::with_seed(seed);
    let plan = Plan::new(&mut random, options);
    let trace = Trace::new(options.readable);
    let seeds = (random.u64(..), random.u64(..));
    arm(seed, &plan, options);
    let world = World::new(plan, seeds, trace);
    let start = world.now();
    world.open();
    phases(&world);
    disarm();
    let cast = world.cast.lock();
    let network = world.network();
    Outcome {
        seed,
        hash: network.trace.hash(),
        violations: cast.violations.clone(),
        simulated: world.now() - start,
        messages: (cast.writers.iter().map(|w| w.written).sum(), cast.taken),
        datagrams: network.traffic.delivered,
        records: network.traffic.records,
        in_sets: cast.in_sets,
        calls: world.call_counts(),
        matches: cast.matches,
        lines: network.trace.lines().map(str::to_owned).collect(),
    }
}

/// Switches on what the seed and the caller want of the engine's fault points.
#[cfg(feature = "faults")]
fn arm(seed: u64, plan: &Plan, options: &Options) {
    let mut faults = Vec::new();
    if plan.has(crate::plan::Fault::Mishap) {
        faults.extend(plan.mishaps.iter().copied());
    }
    faults.extend(options.bug.map(|bug| (bug, 10_000)));
    pteros_rtps::fault::arm(seed, &faults);
}

#[cfg(feature = "faults")]
fn disarm() {
    pteros_rtps::fault::disarm();
}

/// Without fault points there is nothing to switch.
#[cfg(not(feature = "faults"))]
fn arm(_seed: u64, _plan: &Plan, _options: &Options) {}

#[cfg(not(feature = "faults"))]
fn disarm() {}

/// As [`run`]; a panic is a violation too, told with its message.
pub fn run_guarded(seed: u64, options: &Options) -> Outcome {
    let caught = std::panic::catch_unwind(|| run(seed, options));
    disarm();
    caught.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Outcome::failed(
            seed,
            format!("panic: {}", text.unwrap_or("without a message")),
        )
    })
}

fn phases(world: &Arc<World>) {
    let lease = u64::try_from(world.plan.lease.as_nanos()).unwrap_or(u64::MAX);
    world.run_until(world.now() + world.plan.fault_span);
    world.heal();
    world.run_until(world.now() + world.plan.repair_span());
    world.check_repaired();
    // Announcements come every quarter of a lease, at most every 3 s.
    let announce = (lease / 4).min(3 * SECOND);
    world.run_until(world.now() + 2 * announce + 2 * SECOND);
    world.check_amplification();
    world.check_met();
    world.run_until(world.now() + lease + SECOND);
    world.check_rest();
    world.check_sets();
    world.check_services();
    world.check_expectations();
    world.check_quiet();
    world.check_late_joiners();
    world.check_first_replies();
}
