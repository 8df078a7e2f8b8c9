//! A few seeds of the workloads with attackers and disks, for the quick test command.
//! `nodes.rs` runs more.

use crate::sound::assert_sound;
use pteros_sim::harness::options::Options;
use pteros_sim::world::nodes::NodeWorkload;

fn run_seeds(workload: NodeWorkload, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        assert_sound(&workload, seed, &Options::default());
    }
}

#[test]
fn a_newcomer_joins_secured_participants_among_intruders() {
    run_seeds(NodeWorkload::SECURED, 101..104);
}
