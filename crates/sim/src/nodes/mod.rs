//! Workloads of whole nodes: contexts of `pteros` with its executors, in simulated
//! time.
//!
//! Each process runs on a thread of the cooperative scheduler. Clients send random
//! requests while link faults are injected. After healing every request must
//! succeed.
//!
//! Each workload has an oracle. Servers record what they did, clients record what
//! was reported, and both must agree. I13: each accepted request is answered once
//! or ends with an error. I11: no call exceeds its time limit.

mod action;
mod chain;
mod component;
mod crash;
mod harness;
mod lifecycle;
mod parameter;

use std::fmt;
use std::time::Duration;

use harness::NodeHarness;

use crate::run::RunOutcome;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Goals: accepted once, with one result, cancelled when the cancellation was
    /// accepted.
    Actions,
    /// Parameters: set atomically, once, with parameter events in order.
    Parameters,
    /// Lifecycle nodes: legal transitions only, correct reports. A supervisor keeps
    /// the order of dependencies.
    Lifecycle,
    /// Components: loaded and unloaded once, listed while they run, freed.
    Components,
    /// Timers and messages through single-threaded, static and chain executors.
    /// Executors with several threads wait on condition variables, which the
    /// scheduler cannot switch.
    Executors,
    /// A process that dies and starts again: each request to it ends, and a
    /// supervisor brings its lifecycle node up again.
    Crashes,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 6] = [
        Self::Actions,
        Self::Parameters,
        Self::Lifecycle,
        Self::Components,
        Self::Executors,
        Self::Crashes,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Actions => "actions",
            Self::Parameters => "parameters",
            Self::Lifecycle => "lifecycle",
            Self::Components => "components",
            Self::Executors => "executors",
            Self::Crashes => "crashes",
        }
    }

    /// The workload of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Result of a workload.
#[derive(Clone, Debug)]
pub struct WorkloadOutcome {
    /// The workload.
    pub workload: Workload,
    /// Its seed.
    pub seed: u64,
    /// Violated invariants.
    pub violations: Vec<String>,
    /// Hash of everything that was sent.
    pub hash: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// Requests of clients, and how many of them were done.
    pub asked: (u64, u64),
    /// Trace lines, if requested.
    pub lines: Vec<String>,
}

impl From<WorkloadOutcome> for RunOutcome {
    fn from(outcome: WorkloadOutcome) -> Self {
        Self {
            seed: outcome.seed,
            hash: outcome.hash,
            violations: outcome.violations,
            simulated: u64::try_from(outcome.simulated.as_nanos()).unwrap_or(u64::MAX),
            messages: (0, 0),
            datagrams: 0,
            records: 0,
            in_sets: 0,
            calls: outcome.asked,
            matches: 0,
            lines: outcome.lines,
        }
    }
}

/// Runs a workload. The same seed gives the same outcome. `mutant` is one of
/// [`crate::faults::MUTANTS`], and `readable` records trace lines.
pub fn run(
    workload: Workload,
    seed: u64,
    mutant: Option<&'static str>,
    readable: bool,
) -> WorkloadOutcome {
    arm(seed, mutant);
    let caught = std::panic::catch_unwind(|| run_armed(workload, seed, readable));
    disarm();
    caught.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        WorkloadOutcome {
            workload,
            seed,
            violations: vec![format!("panic: {}", text.unwrap_or("without a message"))],
            hash: 0,
            simulated: Duration::ZERO,
            asked: (0, 0),
            lines: Vec::new(),
        }
    })
}

/// The command that runs it again.
pub fn replay_command(workload: Workload, seed: u64) -> String {
    format!("cargo xtask sim --nodes {workload} --seeds 1 --start {seed} --trace")
}

fn run_armed(workload: Workload, seed: u64, readable: bool) -> WorkloadOutcome {
    let harness = NodeHarness::new(seed, readable);
    match workload {
        Workload::Actions => action::run(&harness),
        Workload::Parameters => parameter::run(&harness),
        Workload::Lifecycle => lifecycle::run(&harness),
        Workload::Components => component::run(&harness),
        Workload::Executors => chain::run(&harness),
        Workload::Crashes => crash::run(&harness),
    }
    harness.end(workload, seed)
}

#[cfg(feature = "faults")]
fn arm(seed: u64, mutant: Option<&'static str>) {
    let mutants: Vec<_> = mutant.into_iter().map(|mutant| (mutant, 10_000)).collect();
    pteros_rtps::fault::arm(seed, &mutants);
}

#[cfg(feature = "faults")]
fn disarm() {
    pteros_rtps::fault::disarm();
}

/// This build has no fault points.
#[cfg(not(feature = "faults"))]
fn arm(_seed: u64, _mutant: Option<&'static str>) {}

#[cfg(not(feature = "faults"))]
fn disarm() {}
