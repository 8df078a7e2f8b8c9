//! A few seeds of the workloads with attackers and disks, for the quick test command;
//! `nodes.rs` runs more. And parts of the simulator itself.

use std::time::Duration;

use crate::sound::assert_sound;
use pteros_sim::harness::options::Options;
use pteros_sim::harness::run;
use pteros_sim::world::nodes::NodeWorkload;
use pteros_sim::world::nodes::flow::Flow;
use pteros_sim::world::scenario::{ScenarioPath, read};

fn run_seeds(workload: NodeWorkload, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        assert_sound(&workload, seed, &Options::default());
    }
}

#[test]
fn a_newcomer_joins_secured_participants_among_intruders() {
    run_seeds(NodeWorkload::SECURED, 101..104);
}

#[test]
fn one_late_message_of_a_hundred_is_allowed_and_two_are_not() {
    let ms = Duration::from_millis;
    for (slow, is_late) in [(1, false), (2, true)] {
        let mut flow = Flow::default();
        for _ in 0..100 {
            let number = flow.note_published(ms(0));
            let took = if number < slow { 50 } else { 1 };
            assert!(flow.note_taken(number, ms(took)));
        }
        assert!(!flow.note_taken(100, ms(0)));
        let counts = flow.take_counts(ms(1));
        assert_eq!(counts.violation("a test").is_some(), is_late);
    }
    let mut flow = Flow::default();
    flow.note_published(ms(0));
    assert!(flow.take_counts(ms(0)).violation("a test").is_some());
    flow.note_published(ms(7));
    flow.note_taken(1, ms(8));
    assert!(flow.take_counts(ms(0)).violation("a test").is_none());
}

#[test]
fn samples_use_shared_memory_where_a_scenario_enables_it() {
    let line = "samples_travel: w+r(reliable); w.write 1 2 3; r.take 1 2 3";
    let scenario = &read(line).unwrap()[0];
    assert_eq!(
        scenario.paths,
        [
            ScenarioPath::Local,
            ScenarioPath::Network,
            ScenarioPath::SharedMemory
        ]
    );
    for (path, by_links) in [
        (ScenarioPath::Network, false),
        (ScenarioPath::SharedMemory, true),
    ] {
        let outcome = run(&scenario.on(path), 1, &Options::default());
        assert!(outcome.violations.is_empty());
        let records = outcome.counts.records;
        assert_eq!(records >= 3, by_links, "{records} by links on {path:?}");
    }
}
