//! `cargo xtask --help`: the tasks, grouped by what they are for.

/// A task, its arguments and what it does.
pub struct Task {
    /// The first word of the command line.
    pub name: &'static str,
    arguments: &'static str,
    purpose: &'static str,
}

const fn task(name: &'static str, arguments: &'static str, purpose: &'static str) -> Task {
    Task {
        name,
        arguments,
        purpose,
    }
}

/// Headings, and the tasks below each.
pub const GROUPS: [(&str, &[Task]); 5] = [
    (
        "Test",
        &[
            task(
                "test",
                "[--all [--no-peers]]",
                "quick tests of every crate; every test with --all",
            ),
            task(
                "peers",
                "[--check]",
                "build the other stacks; test them against each other",
            ),
            task(
                "ros2",
                "[--rmw NAME] [--valgrind] [--only PART] [SUITE …]",
                "ROS 2's own suites on the plug-in",
            ),
            task(
                "ros2 --wheel",
                "[--only PART] [SUITE …]",
                "ROS 2's own Python suites on the wheel",
            ),
            task(
                "ros2 --soak",
                "[--minutes N]",
                "programs of ROS 2 for half an hour, with guests",
            ),
            task(
                "namespace",
                "[--no-multicast] -- COMMAND",
                "run a command in a private network",
            ),
        ],
    ),
    (
        "Search for defects",
        &[
            task(
                "sim",
                "[--seeds N] [--start S] [--minutes M] [--nodes KIND] [--scenarios PART] [--mutants]",
                "simulated graphs with fault injection",
            ),
            task(
                "fuzz",
                "[--seconds N] [TARGET …]",
                "coverage-guided fuzzing",
            ),
            task("loom", "", "lock-free code in every interleaving"),
            task(
                "flood",
                "[--seconds N] [--kinds KIND,...] [--dev]",
                "hostile packets at two processes",
            ),
            task(
                "mutants",
                "[--sample N] [--seed S] [--crate NAME …] [--jobs N] [--minutes M] [--resume]",
                "changes that no test notices",
            ),
            task(
                "nightly",
                "[--hours N] [--part NAME …] [--start SEED]",
                "all searches, for hours",
            ),
            task(
                "corpus",
                "[--json] [--refused] [--markdown FILE] [--outcomes FILE] DIR…",
                "files of other repositories, and which are refused",
            ),
        ],
    ),
    (
        "Measure",
        &[
            task(
                "bench",
                "host|wire|loss|composition|robot|executor|security|python|ros2|bag|zenoh [--quick]",
                "benchmarks beside other stacks",
            ),
            task(
                "bench build",
                "",
                "the cold build of the README's first command",
            ),
        ],
    ),
    (
        "Check and write",
        &[
            task(
                "tidy",
                "[--cycles [CRATE FOLDER]]",
                "house rules; import cycles",
            ),
            task(
                "prose",
                "[--lines N] [PATH …]",
                "long sentences, metaphors, names with several meanings",
            ),
            task("generate", "[--check]", "Rust types of ROS 2's interfaces"),
            task("book", "", "docs/ as HTML, into target/book"),
            task(
                "picture",
                "[PROGRAM|--figures]",
                "the pictures of the front page",
            ),
        ],
    ),
    (
        "Package",
        &[
            task(
                "dist",
                "[--host-glibc | --crates]",
                "archive, Debian package, checksums",
            ),
            task(
                "wheel",
                "[--debug | --manylinux] [--zenoh] [--out DIR]",
                "the Python wheel, into target/wheel",
            ),
        ],
    ),
];

/// The help text.
pub fn text() -> String {
    let mut text = String::from("usage: cargo xtask TASK [ARGUMENTS]\n");
    for (heading, tasks) in GROUPS {
        text += &format!("\n{heading}\n");
        for task in tasks {
            text += &format!("  {:<14}{}\n", task.name, task.purpose);
            if !task.arguments.is_empty() {
                text += &format!("  {:<14}{}\n", "", task.arguments);
            }
        }
    }
    text + "\nCONTRIBUTING.md says what each needs and how long it takes.\n"
}

/// What to say of an unknown task.
pub fn unknown(name: &str) -> String {
    let names = GROUPS.iter().flat_map(|(_, tasks)| tasks.iter());
    let hint = pteros_msg::suggest::did_you_mean(name, names.map(|task| task.name));
    format!("no task {name:?}{hint} cargo xtask --help lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_task_is_answered_with_the_closest() {
        assert!(unknown("tset").contains("did you mean test?"));
        assert!(unknown("zzz").ends_with("lists them"));
        assert!(text().lines().all(|line| line.len() < 120));
    }
}
