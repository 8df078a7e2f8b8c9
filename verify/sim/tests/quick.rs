//! A few seeds of the workloads with attackers and disks, for the quick test command.
//! `tests/nodes.rs` runs more.

use pteros_sim::harness::options::Options;
use pteros_sim::harness::{Workload, run};
use pteros_sim::world::nodes::NodeWorkload;

fn assert_sound(workload: NodeWorkload, seeds: std::ops::Range<u64>) {
    let options = Options::default();
    for seed in seeds {
        let outcome = run(&workload, seed, &options);
        assert!(
            outcome.violations.is_empty(),
            "{:#?}\nreplay: {}",
            outcome.violations,
            options.replay_command(&workload.selection(), seed)
        );
    }
}

#[test]
fn a_newcomer_joins_secured_participants_among_intruders() {
    assert_sound(NodeWorkload::SECURED, 101..104);
}
