//! Tests the tester: switches on one bug of the engine after the other, and
//! says which seed noticed it by which invariant. What no seed notices is a
//! hole in the simulator.

use std::fmt;
use std::time::Duration;

use crate::faults::{BUGS, NODE_BUGS};
use crate::nodes;
use crate::plan::Options;
use crate::run::{Outcome, run_guarded};
use crate::scenario::failing_with;

/// What became of one bug.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The bug's name.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The run that noticed it, with the number of runs it took.
    pub caught: Option<(Outcome, u64)>,
    /// Simulated time until then.
    pub simulated: Duration,
}

impl Verdict {
    /// The invariant that noticed it, `I6`.
    pub fn rule(&self) -> &str {
        let violation = self.caught.as_ref().and_then(|(o, _)| o.violations.first());
        let rule = violation.and_then(|v| v.split([' ', ':']).find(|word| is_rule(word)));
        rule.unwrap_or("panic")
    }
}

/// Whether a word names an invariant: a capital letter and a number.
fn is_rule(word: &str) -> bool {
    let digits = word.strip_prefix(|c: char| c.is_ascii_uppercase());
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simulated = self.simulated.as_secs_f64();
        match &self.caught {
            Some((outcome, runs)) => write!(
                f,
                "caught  {:<30} by {:<4} at seed {:<4} after {runs:>3} runs, {simulated:>6.0} simulated s",
                self.name,
                self.rule(),
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

/// Tries one bug with up to `seeds` seeds from `start` on.
pub fn hunt(bug: (&'static str, &'static str), start: u64, seeds: u64, base: &Options) -> Verdict {
    let of_nodes = NODE_BUGS.iter().find(|(name, ..)| *name == bug.0);
    if let Some((.., act)) = of_nodes {
        let play = |seed, bug| nodes::play(*act, seed, bug, false).into();
        return hunt_by(bug, start, seeds, play);
    }
    let options = Options {
        bug: Some(bug.0),
        ..base.clone()
    };
    hunt_by(bug, start, seeds, |seed, bug| match bug {
        Some(_) => run_guarded(seed, &options),
        None => run_guarded(seed, base),
    })
}

/// Tries a bug with what `play` does of a seed, with the bug and without.
fn hunt_by(
    bug: (&'static str, &'static str),
    start: u64,
    seeds: u64,
    play: impl Fn(u64, Option<&'static str>) -> Outcome,
) -> Verdict {
    let mut simulated = 0;
    let mut caught = None;
    for seed in (start..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let outcome = play(seed, Some(bug.0));
        simulated += outcome.simulated;
        // A seed that fails without the bug too says nothing about it.
        if !outcome.violations.is_empty() && play(seed, None).violations.is_empty() {
            caught = Some((outcome, seed - start + 1));
            break;
        }
    }
    if caught.is_none()
        && let Some(violation) = failing_with(bug.0)
    {
        let outcome = Outcome::failed(0, violation);
        caught = Some((outcome, seeds));
    }
    Verdict {
        name: bug.0,
        what: bug.1,
        caught,
        simulated: Duration::from_nanos(simulated),
    }
}

/// The bugs whose name contains `part`.
pub fn bugs_named(part: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_nodes = NODE_BUGS.iter().map(|(name, what, _)| (*name, *what));
    BUGS.iter()
        .copied()
        .chain(of_nodes)
        .filter(move |(name, _)| name.contains(part))
}
