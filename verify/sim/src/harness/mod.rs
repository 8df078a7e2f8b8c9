//! The harness: runs a seed of any workload in simulated time.
//!
//! A [`Workload`] opens a [`World`] from a seed. The harness switches the fault
//! points on and applies the world's steps one after the other. It lets simulated
//! time pass and checks the invariants after each step. A panic is a violation. [`shrink`](shrink::shrink) and [`search`](crate::mutants::search) run
//! seeds through it, and so does the command line.

pub mod options;
pub mod shrink;

use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::options::Options;
use crate::fault_points::{self, ALWAYS};
use crate::simulation::event_loop::EventLoop;

/// A workload for seeds: graphs of endpoints, whole nodes, a scenario.
pub trait Workload: Sync {
    fn name(&self) -> String;

    /// The option that selects it on the command line, after a space. Empty for the
    /// default.
    fn selection(&self) -> String;

    /// Opens the world that a seed stands for. Seeded bugs are still off.
    fn open(&self, seed: u64, options: &Options) -> Box<dyn World>;
}

/// Checks invariants. Returns the violations, each with its invariant's name first.
pub type Check<'w> = Box<dyn Fn() -> Vec<String> + 'w>;

/// An opened world.
pub trait World {
    /// Its clock, network and processes.
    fn event_loop(&self) -> &EventLoop;

    /// Tolerated faults that strike besides the mutant, with their chance in 1/10000.
    fn tolerated_faults(&self) -> &[(&'static str, u32)] {
        &[]
    }

    /// Applies a step, numbered from 0. Returns the simulated nanoseconds in which
    /// its effects happen, or `None` after the last step.
    fn apply(&mut self, step: usize) -> Option<u64>;

    /// The checks after a step. No further one runs once one has failed.
    fn checks(&self, step: usize) -> Vec<Check<'_>>;

    /// Counts of messages, requests and matches.
    fn counts(&self) -> Counts;
}

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages published.
    pub published: u64,
    /// Messages taken.
    pub taken: u64,
    /// Messages of coherent sets taken by readers with coherent access.
    pub in_sets: u64,
    /// Requests of clients.
    pub asked: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Matches that writers reported.
    pub matches: u64,
    /// Datagrams delivered.
    pub datagrams: u64,
    /// Records sent through shared memory.
    pub records: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.published += other.published;
        self.taken += other.taken;
        self.in_sets += other.in_sets;
        self.asked += other.asked;
        self.answered += other.answered;
        self.matches += other.matches;
        self.datagrams += other.datagrams;
        self.records += other.records;
    }
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    pub seed: u64,
    /// Hash of everything that was sent and taken (I16).
    pub hash: u64,
    /// Violated invariants.
    pub violations: Vec<String>,
    /// Simulated nanoseconds.
    pub simulated: u64,
    /// Counters.
    pub counts: Counts,
    /// Trace lines, if requested.
    pub lines: Vec<String>,
}

/// Runs a seed of a workload. The same seed and options give the same outcome. A
/// panic is a violation.
pub fn run(workload: &dyn Workload, seed: u64, options: &Options) -> RunOutcome {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        run_world(&mut *workload.open(seed, options), seed, options)
    }));
    fault_points::disarm();
    caught.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        let violation = format!("panic: {}", text.unwrap_or("without a message"));
        RunOutcome {
            seed,
            violations: vec![violation],
            ..RunOutcome::default()
        }
    })
}

/// Runs an opened world, with the seeded bugs of the world and the caller.
pub(crate) fn run_world(world: &mut dyn World, seed: u64, options: &Options) -> RunOutcome {
    let mutant = options.mutant.map(|name| (name, ALWAYS));
    let faults: Vec<_> = world
        .tolerated_faults()
        .iter()
        .copied()
        .chain(mutant)
        .collect();
    pteros_seeded_bugs::arm(seed, &faults);
    let start = world.event_loop().now();
    let mut step = 0;
    while let Some(span) = world.apply(step) {
        let event_loop = world.event_loop();
        if span > 0 {
            event_loop.run_until(event_loop.now() + span);
        }
        for check in world.checks(step) {
            if event_loop.has_failed() {
                break;
            }
            event_loop.report(check());
        }
        step += 1;
    }
    fault_points::disarm();
    let event_loop = world.event_loop();
    let network = event_loop.network();
    RunOutcome {
        seed,
        hash: network.trace.hash(),
        violations: event_loop.violations().lock().clone(),
        simulated: event_loop.now() - start,
        counts: Counts {
            datagrams: network.traffic.delivered,
            records: network.traffic.records,
            ..world.counts()
        },
        lines: network.trace.lines().map(str::to_owned).collect(),
    }
}
