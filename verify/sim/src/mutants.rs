//! Mutation testing of the simulator.
//!
//! It switches on one mutant of the engine after the other, and records which seed
//! and which invariant detected it. A mutant that no seed detects shows a gap in
//! the checks.

use std::fmt;
use std::time::Duration;

use crate::fault_points::Mutant;
use crate::harness::options::{Fault, Options};
use crate::harness::{RunOutcome, Workload, run};
use crate::world::graph::Graphs;
use crate::world::nodes::NodeWorkload;
use crate::world::scenario::{self, SEED};

/// Result for one mutant.
#[derive(Clone, Debug)]
pub struct MutantResult {
    pub mutant: Mutant,
    /// The run that detected it, and the number of runs until then.
    pub caught: Option<(RunOutcome, u64)>,
    /// Simulated time until then.
    pub simulated: Duration,
}

impl MutantResult {
    /// The invariant that detected it, for example `I6`.
    pub fn invariant(&self) -> &str {
        let violation = self.caught.as_ref().and_then(|(o, _)| o.violations.first());
        let invariant = violation.and_then(|v| v.split([' ', ':']).find(|word| is_invariant(word)));
        invariant.unwrap_or("panic")
    }
}

/// Whether a word is the name of an invariant: a capital letter and a number.
fn is_invariant(word: &str) -> bool {
    let digits = word.strip_prefix(|c: char| c.is_ascii_uppercase());
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for MutantResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simulated = self.simulated.as_secs_f64();
        match &self.caught {
            Some((outcome, runs)) => write!(
                f,
                "caught  {:<30} by {:<4} at seed {:<4} after {runs:>3} runs, {simulated:>6.0} simulated s",
                self.mutant.name,
                self.invariant(),
                outcome.seed,
            ),
            None => write!(
                f,
                "MISSED  {:<30} {simulated:>6.0} simulated s: {}",
                self.mutant.name, self.mutant.what
            ),
        }
    }
}

/// The fault that a mutant needs to show.
fn fault_for(mutant: &str) -> Option<Fault> {
    match mutant {
        "source-not-judged" | "jump-believed-at-once" | "unsent-acknowledged" => {
            Some(Fault::Forgery)
        }
        "contradiction-ignored"
        | "best-effort-jump-is-final"
        | "dispose-is-final"
        | "contradicting-sedp-ignored"
        | "forged-count-is-restart" => Some(Fault::SpoofedForgery),
        "silent-path-kept"
        | "silent-path-asked-once"
        | "path-question-not-answered"
        | "any-datagram-proves-a-path"
        | "new-address-not-asked"
        | "moved-path-not-routed"
        | "changed-address-not-announced"
        | "interface-change-not-followed"
        | "stalled-reader-not-reported"
        | "end-of-stall-not-reported" => Some(Fault::Networks),
        _ => None,
    }
}

/// The faults that hide a mutant. Single claims far from the truth are made only while no
/// match ends.
fn faults_against(mutant: &str) -> &'static [Fault] {
    match mutant {
        "jump-believed-at-once" | "unsent-acknowledged" => &Fault::ENDS_MATCHES,
        _ => &[],
    }
}

/// Runs one mutant with up to `seeds` seeds from `start` on, and then the scenarios,
/// which reach what random graphs seldom reach.
pub fn search(mutant: Mutant, start: u64, seeds: u64, base: &Options) -> MutantResult {
    let nodes = mutant.workload.and_then(NodeWorkload::named);
    let workload: &dyn Workload = match &nodes {
        Some(nodes) => nodes,
        None => &Graphs,
    };
    let mut base = base.clone();
    base.forced.extend(fault_for(mutant.name));
    base.without.extend(faults_against(mutant.name));
    let base = &base;
    let options = Options {
        mutant: Some(mutant.name),
        ..base.clone()
    };
    let mut simulated = 0;
    let mut caught = None;
    for seed in (start..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let outcome = run(workload, seed, &options);
        simulated += outcome.simulated;
        // A seed that also fails without the mutant proves nothing.
        if !outcome.violations.is_empty() && run(workload, seed, base).violations.is_empty() {
            caught = Some((outcome, seed - start + 1));
            break;
        }
    }
    if caught.is_none() {
        caught = scenario_that_detects(mutant).map(|outcome| (outcome, seeds));
    }
    MutantResult {
        mutant,
        caught,
        simulated: Duration::from_nanos(simulated),
    }
}

/// The outcome of the first scenario that fails with a mutant. Without it all
/// scenarios hold.
pub fn scenario_that_detects(mutant: Mutant) -> Option<RunOutcome> {
    let options = Options {
        mutant: Some(mutant.name),
        ..Options::default()
    };
    scenario::all().ok()?.iter().find_map(|scenario| {
        let outcome = run(scenario, SEED, &options);
        let violation = outcome.violations.first()?;
        let name = scenario.name();
        Some(RunOutcome {
            // No seed of graphs replays it.
            seed: 0,
            violations: vec![format!("S1 scenario {name} fails: {violation}")],
            ..outcome
        })
    })
}
