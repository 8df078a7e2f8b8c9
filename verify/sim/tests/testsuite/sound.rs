//! Runs a seed and demands that it keeps all invariants.

use pteros_sim::harness::options::Options;
use pteros_sim::harness::{RunOutcome, Workload, run};

/// Runs `seed`. Panics with the violations and the replay command if there are any.
pub fn assert_sound<W: Workload>(workload: &W, seed: u64, options: &Options) -> RunOutcome {
    let outcome = run(workload, seed, options);
    assert!(
        outcome.violations.is_empty(),
        "{:#?}\nreplay: {}",
        outcome.violations,
        options.replay_command(&workload.selection(), seed)
    );
    outcome
}
