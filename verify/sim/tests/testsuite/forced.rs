//! Runs seeds of the graph workload with some faults in each.

use crate::sound::assert_sound;
use pteros_sim::harness::options::{Fault, Options};
use pteros_sim::harness::run;
use pteros_sim::world::graph::Graphs;

/// Runs each seed twice: it keeps all invariants and is deterministic.
pub fn run_seeds(forced: &[Fault], seeds: impl IntoIterator<Item = u64>) {
    let options = Options {
        forced: forced.to_vec(),
        ..Options::default()
    };
    for seed in seeds {
        let outcome = assert_sound(&Graphs, seed, &options);
        let again = run(&Graphs, seed, &options);
        assert_eq!(again.hash, outcome.hash, "seed {seed} is not deterministic");
    }
}
