//! Mutation testing of the simulator.
//!
//! It switches on one mutant of the engine after the other, and records which seed
//! and which invariant detected it. A mutant that no seed detects shows a gap in
//! the checks.

use std::fmt;
use std::time::Duration;

use crate::faults::{MUTANTS, NODE_MUTANTS};
use crate::nodes;
use crate::plan::Options;
use crate::run::{RunOutcome, run_guarded};
use crate::scenario::scenario_that_fails_with;

/// A mutant of the engine or of a node.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub what: &'static str,
}

/// Result for one mutant.
#[derive(Clone, Debug)]
pub struct MutantResult {
    /// The mutant's name.
    pub name: &'static str,
    /// Its effect.
    pub what: &'static str,
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
                self.name,
                self.invariant(),
                outcome.seed,
            ),
            None => write!(
                f,
                "MISSED  {:<30} {simulated:>6.0} simulated s: {}",
                self.name, self.what
            ),
        }
    }
}

/// Runs one mutant with up to `seeds` seeds from `start` on.
pub fn search(mutant: Mutant, start: u64, seeds: u64, base: &Options) -> MutantResult {
    let of_nodes = NODE_MUTANTS.iter().find(|(name, ..)| *name == mutant.name);
    if let Some((.., workload)) = of_nodes {
        let run = |seed, mutant| nodes::run(*workload, seed, mutant, false).into();
        return search_by(mutant, start, seeds, run);
    }
    let options = Options {
        mutant: Some(mutant.name),
        ..base.clone()
    };
    search_by(mutant, start, seeds, |seed, mutant| match mutant {
        Some(_) => run_guarded(seed, &options),
        None => run_guarded(seed, base),
    })
}

/// Runs a mutant with `run`, which executes a seed with or without the mutant.
fn search_by(
    mutant: Mutant,
    start: u64,
    seeds: u64,
    run: impl Fn(u64, Option<&'static str>) -> RunOutcome,
) -> MutantResult {
    let mut simulated = 0;
    let mut caught = None;
    for seed in (start..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let outcome = run(seed, Some(mutant.name));
        simulated += outcome.simulated;
        // A seed that also fails without the mutant proves nothing.
        if !outcome.violations.is_empty() && run(seed, None).violations.is_empty() {
            caught = Some((outcome, seed - start + 1));
            break;
        }
    }
    if caught.is_none()
        && let Some(violation) = scenario_that_fails_with(mutant.name)
    {
        let outcome = RunOutcome::failed(0, violation);
        caught = Some((outcome, seeds));
    }
    MutantResult {
        name: mutant.name,
        what: mutant.what,
        caught,
        simulated: Duration::from_nanos(simulated),
    }
}

/// The mutants whose name contains `part`.
pub fn mutants_named(part: &str) -> impl Iterator<Item = Mutant> {
    let of_nodes = NODE_MUTANTS.iter().map(|(name, what, _)| (*name, *what));
    MUTANTS
        .iter()
        .copied()
        .chain(of_nodes)
        .map(|(name, what)| Mutant { name, what })
        .filter(move |mutant| mutant.name.contains(part))
}
