//! Jobs of the test runner: tests that run in one process, where they run, and what is
//! known of them. Every row of a table is a module of a crate's integration tests, or a
//! whole program.

use anyhow::Result;

use crate::test_process::{Filter, Network, Process, Surroundings, Tests};

/// Modules and programs that run alone: package, name, reason.
const ALONE: &[(&str, &str, &str)] = &[
    ("pteros", "many_processes", "starts a hundred processes"),
    (
        "pteros",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw-humble",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw-kilted",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw-lyrical",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-lab",
        "topology",
        "loses messages where it gets no processor for a while",
    ),
    (
        "pteros-store",
        "store",
        "waits for the disk, which others keep busy",
    ),
    ("robot", "drives", "drives in real time, by many processes"),
    (
        "pteros-cli",
        "zenoh_networks a_hundred_nodes",
        "starts a hundred processes",
    ),
];

/// As [`ALONE`], but side by side: they take so little that none disturbs another.
const QUIET: &[(&str, &str, &str)] = &[
    (
        "pteros-cli",
        "networks",
        "measures how long flows stop when links change",
    ),
    ("pteros", "idle", "counts wake-ups of processes"),
];

/// Modules on real time that keep a processor busy for most of their time. One processor
/// is left to those that wait.
const COMPUTING: &[(&str, &str)] = &[
    ("pteros-bag", "broken"),
    ("pteros-c", "languages"),
    ("pteros-c", "programs"),
    ("pteros-cli", "bag"),
    ("pteros-cli", "book"),
    ("pteros-launch", "pteros_launch"),
    ("pteros-python", "python"),
    ("pteros-zenoh", "forged"),
    ("xtask", "xtask"),
];

/// Modules with tests of other stacks, which wait until those are built.
const PEERS: &[(&str, &str)] = &[
    ("pteros", "interop"),
    ("pteros-cli", "bag"),
    ("pteros-cli", "bag_types"),
    ("pteros-cli", "discovery_server"),
    ("pteros-cli", "interop"),
    ("pteros-cli", "ipv6"),
    ("pteros-cli", "rclpy_of_the_index"),
    ("pteros-python", "beside_rclpy"),
    ("pteros-rmw", "rmw_pteros_cpp"),
    ("pteros-rmw-kilted", "rmw_pteros_cpp_kilted"),
    ("pteros-security", "peers"),
    ("pteros-zenoh", "peers"),
    ("pteros-zenoh", "rust_peers"),
    ("shapes", "vendors"),
];

/// Modules on simulated time, where a busy machine changes nothing. Every one of a
/// package where the name is empty.
const SIMULATED: &[(&str, &str)] = &[
    ("pteros-dcps", ""),
    ("pteros-msg", ""),
    ("pteros-rtps", ""),
    ("pteros-runtime", "flow_control"),
    ("pteros-sim", ""),
];

/// Modules and programs that take longest, the longest first: they begin first, so that
/// none is left when the others are done.
const LONGEST: &[(&str, &str)] = &[
    ("pteros-sim", "mutants"),
    ("pteros", "interop"),
    ("pteros-python", "python"),
    ("pteros-python", "launch"),
    ("pteros-cli", "zenoh_networks"),
    ("pteros-lab", "command"),
    ("pteros-zenoh", "router_kills"),
    ("pteros-sim", "nodes"),
    ("pteros-cli", "stopped_processes"),
    ("pteros-cli", "ros2_programs"),
    ("pteros", "conformance"),
    ("pteros-runtime", "flow_control"),
    ("shapes", "vendors"),
    ("pteros-sim", "seeds"),
    ("pteros", "clock_jumps"),
    ("pteros-python", "clean_root"),
    ("pteros-cli", "graph"),
    ("pteros-zenoh", "peers"),
    ("pteros-cli", "sim_time"),
    ("pteros-sim", "forgery"),
    ("pteros-zenoh", "slow_link"),
    ("pteros-sim", "networks"),
    ("pteros-rtps", "loss"),
];

/// Tests that run in one process, and where.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The tests.
    pub tests: Tests<'a>,
    /// The things that they find there.
    pub surroundings: Surroundings<'a>,
    /// Which of them.
    pub filter: Filter<'a>,
}

impl Job<'_> {
    /// Package and module, and what tells it from another job with the same tests.
    pub fn title(&self) -> String {
        let mut title = self.tests.title();
        if self.surroundings.network == Network::WithoutMulticast {
            title.push_str(" without multicast");
        }
        if self.surroundings.seeded {
            title.push_str(" with seeded bugs");
        }
        if !self.filter.part.is_empty() {
            title.push(' ');
            title.push_str(self.filter.part);
        }
        if self.filter.ignored {
            title.push_str(" (ignored ones)");
        }
        title
    }

    /// Whether a row of a table means this job.
    fn is(&self, package: &str, name: &str) -> bool {
        let Tests::Group(group) = self.tests else {
            return false;
        };
        let (name, part) = name.split_once(' ').unwrap_or((name, ""));
        group.program.package == package
            && (name.is_empty() || name == group.name)
            && (part.is_empty() || part == self.filter.part)
    }

    fn is_one_of(&self, table: &[(&str, &str)]) -> bool {
        table.iter().any(|(package, name)| self.is(package, name))
    }

    /// Whether a row of a table with reasons means it.
    fn has_reason(&self, table: &[(&str, &str, &str)]) -> bool {
        table
            .iter()
            .any(|(package, name, _)| self.is(package, name))
    }

    /// Whether nothing may run beside it.
    pub fn runs_alone(&self) -> bool {
        self.has_reason(ALONE)
    }

    /// Whether nothing may run beside it but others of this kind.
    pub fn needs_quiet(&self) -> bool {
        self.has_reason(QUIET)
    }

    /// Whether a busy machine changes nothing for it.
    pub fn is_simulated(&self) -> bool {
        self.is_one_of(SIMULATED)
    }

    /// Whether it is to keep a processor busy.
    pub fn computes(&self) -> bool {
        matches!(self.tests, Tests::Documentation(_)) || self.is_one_of(COMPUTING)
    }

    /// Whether it waits until the other stacks are built.
    pub fn needs_peers(&self) -> bool {
        self.surroundings.peers.is_some() && self.is_one_of(PEERS)
    }

    /// Its place among those that begin first.
    pub fn place(&self) -> usize {
        if matches!(self.tests, Tests::Task(..)) {
            return 0;
        }
        let row = LONGEST
            .iter()
            .position(|(package, name)| self.is(package, name));
        row.unwrap_or(LONGEST.len())
    }

    /// Runs it, and prints what it prints at once.
    pub fn run_alone(&self, names: &[String]) -> Result<Process> {
        let mut show = |line: &str| println!("{line}");
        self.tests
            .run(self.surroundings, self.filter, names, &mut show)
    }
}
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::checkout::root;

    /// The sources of a module of integration tests.
    fn sources(path: &Path, text: &mut String) {
        if path.is_dir() {
            for entry in path.read_dir().unwrap() {
                sources(&entry.unwrap().path(), text);
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            *text += &std::fs::read_to_string(path).unwrap();
        }
    }

    /// The package and the name of each module that looks for other stacks.
    fn modules_with_peers(folder: &Path, found: &mut BTreeSet<(String, String)>) {
        for package in folder.read_dir().unwrap() {
            let package = package.unwrap().path();
            let Ok(modules) = package.join("tests/testsuite").read_dir() else {
                continue;
            };
            let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
            let name = manifest
                .lines()
                .find_map(|line| line.strip_prefix("name = "));
            let name = name.unwrap().trim_matches('"').to_owned();
            for module in modules {
                let module = module.unwrap().path();
                let mut text = String::new();
                sources(&module, &mut text);
                let is_part = module.file_stem().is_none_or(|stem| stem == "main");
                if !is_part && PEER_WORDS.iter().any(|word| text.contains(word)) {
                    let module = module.file_stem().unwrap().to_string_lossy();
                    found.insert((name.clone(), module.into_owned()));
                }
            }
        }
    }

    /// How a test finds the programs of another stack.
    const PEER_WORDS: [&str; 4] = [
        "PTEROS_PEERS",
        "PTEROS_ROS2_KILTED",
        "peer::program",
        "peer::{Peer, program",
    ];

    #[test]
    fn every_module_that_looks_for_other_stacks_waits_for_them() {
        let mut found = BTreeSet::new();
        for folder in ["crates", "examples", "verify"] {
            modules_with_peers(&root().join(folder), &mut found);
        }
        // A helper of `vendors`, without tests.
        found.remove(&("shapes".to_owned(), "sets".to_owned()));
        // Their unit tests compare them with the headers of Jazzy and of Kilted.
        for (package, program) in [
            ("pteros-rmw", "rmw_pteros_cpp"),
            ("pteros-rmw-kilted", "rmw_pteros_cpp_kilted"),
        ] {
            found.insert((package.to_owned(), program.to_owned()));
        }
        let listed = PEERS
            .iter()
            .map(|&(package, name)| (package.to_owned(), name.to_owned()));
        assert_eq!(found, listed.collect());
    }
}
