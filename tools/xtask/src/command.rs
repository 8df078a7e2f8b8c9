//! The command line of `cargo xtask`: every task, and what it takes. Each module has the
//! arguments of its own task.

use clap::{Args, Parser, Subcommand};

use crate::{
    bench, c_library, cross, dist, flood, fuzz, generate, mutants, namespace, nightly, peers,
    picture, prose, ros2, test, tidy, wheel,
};

/// Tasks of the project.
#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "CONTRIBUTING.md says what each needs and how long it takes."
)]
pub struct CommandLine {
    #[command(subcommand)]
    pub task: Task,
}

/// Tests come first, then searches for defects, measurements, checks and packages. The
/// hidden ones are parts of others, in a private network.
#[derive(Subcommand)]
pub enum Task {
    /// Run the quick tests of every crate; every test with --all
    Test(test::Arguments),
    /// Build the other stacks, and test them against each other
    Peers(peers::Arguments),
    /// Run ROS 2's own suites: on the plug-in, on the wheel, under valgrind, or for long
    Ros2(ros2::Arguments),
    /// Run a command in a private network
    Namespace(namespace::Arguments),
    /// Simulate graphs with fault injection
    #[command(after_help = SIM_OPTIONS)]
    Sim(Options),
    /// Fuzz targets, guided by coverage
    Fuzz(fuzz::Arguments),
    /// Check lock-free code in every interleaving
    Loom,
    /// Send hostile packets at two processes
    Flood(flood::Arguments),
    /// Make changes that a test should notice, and list those that none does
    Mutants(mutants::Arguments),
    /// Build and test for other processors, under an emulator
    Cross(cross::Arguments),
    /// Run all searches, for hours
    Nightly(nightly::Arguments),
    /// Read the files of other repositories, and say which are refused
    #[command(after_help = CORPUS_OPTIONS)]
    Corpus(Options),
    /// Run a benchmark beside other stacks, or measure the README's first command
    #[command(after_help = bench::OPTIONS)]
    Bench(bench::Arguments),
    /// Check the house rules, or list import cycles
    Tidy(tidy::Arguments),
    /// List long sentences, metaphors, and names with several meanings
    Prose(prose::Arguments),
    /// Count the lines of the sources, by crate and kind
    Lines,
    /// Write the Rust types of ROS 2's interfaces
    Generate(generate::Arguments),
    /// Render docs/ as HTML, into target/book
    Book,
    /// Draw the pictures of the front page
    Picture(picture::Arguments),
    /// Make an archive, a Debian package and their checksums
    Dist(dist::Arguments),
    /// Build the Python wheel
    Wheel(wheel::Arguments),
    /// Build and install libpteros, the C library
    CLibrary(c_library::Arguments),
    #[command(hide = true)]
    CrossPairsInside(Options),
    #[command(hide = true)]
    FloodInside(flood::Arguments),
    #[command(hide = true)]
    FloodAttacker(flood::Attack),
    #[command(hide = true)]
    PeersCheckInside(Options),
    #[command(hide = true)]
    Ros2SoakInside(Options),
    #[command(hide = true)]
    Ros2ProgramsInside(Options),
    #[command(hide = true)]
    Ros2InTests,
}

/// Words for another program, or for a hidden task.
#[derive(Args)]
pub struct Options {
    /// Options, see below
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

const SIM_OPTIONS: &str = "Options:
  --seeds N, --start S, --minutes M     which seeds, and for how long
  --nodes KIND, --scenarios PART        whole nodes, or scenarios by a part of a name; or all
  --mutants [--only PART]               every seeded bug, and the invariant that finds it
  --mutant NAME, --with FAULT,…, --without FAULT,…, --fault-millis N
  --shrink, --trace, --hashes           of a seed that fails
  --standard                            measure the simulator's speed";

const CORPUS_OPTIONS: &str = "Options:
  DIR…             checked-out repositories; several are read together
  --json           print totals, reasons and every file as JSON
  --refused        print every file that is refused, with its first fault
  --markdown FILE  write the totals of repositories and reasons as a page
  --outcomes FILE  compare with outcomes of ROS 2's own parsers";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        let parsed = CommandLine::try_parse_from(words);
        parsed.map(|line| line.task).map_err(|why| why.to_string())
    }

    #[test]
    fn every_documented_command_is_accepted() {
        CommandLine::command().debug_assert();
        for line in [
            "test",
            "test -p pteros",
            "test --all --no-peers",
            "flood-inside --seconds 3 --rate 5 --kinds duplicates",
            "peers-check-inside",
            "ros2-soak-inside --minutes 3",
            "ros2-in-tests",
            "ros2-programs-inside --only x",
            "peers --check",
            "ros2 rcl rclcpp --only x --rmw rmw_fastrtps_cpp",
            "ros2 --valgrind rcl",
            "ros2 --wheel programs --only qos",
            "ros2 --soak --minutes 3",
            "namespace -- ls --all",
            "namespace --no-multicast -- ls",
            "sim --nodes all --seeds 3",
            "sim --mutants --only x",
            "fuzz --seconds 1 message cdr",
            "flood --seconds 3 --rate 5 --kinds duplicates,spoofed-requests --dev",
            "mutants --sample 5 --seed 7 --crate shm --crate rtps --jobs 2 --minutes 9 --resume",
            "nightly --hours 0.05 --part sim --part audit --start 8000000",
            "corpus --json --markdown page.md a b",
            "bench wire --quick --only host-",
            "bench build",
            "tidy --cycles",
            "tidy --cycles crates/rtps",
            "prose --lines 3 docs",
            "picture --figures",
            "picture target/release/pteros",
            "dist --host-glibc",
            "dist --crates",
            "wheel --manylinux --zenoh --out x",
            "flood-attacker 5 6 data",
            "ros2-soak-inside 1 a b",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (line, named) in [
            ("tset", "test"),
            ("test --no-peers", "--all"),
            ("test --all -p pteros", "--package"),
            ("loom x", "'x'"),
            ("namespace ls", "'ls'"),
            ("fuzz massage", "message"),
            ("fuzz --seconds 0", "--seconds"),
            ("flood --rate 0", "--rate"),
            ("flood --hard 1", "--hard"),
            ("flood --kinds mixed,soft", "soft"),
            ("mutants --sample", "--sample"),
            ("mutants --sample none", "none"),
            ("mutants --sample 0", "--sample"),
            ("mutants --seed x", "'x'"),
            ("mutants --jobs 0", "--jobs"),
            ("mutants --minutes x", "'x'"),
            ("mutants --crate cli", "rtps"),
            ("mutants --all", "--all"),
            ("nightly --hours soon", "soon"),
            ("nightly --hours 0", "above 0"),
            ("nightly --hours=-1", "above 0"),
            ("nightly --hours NaN", "NaN"),
            ("nightly --hours 1e9", "1000"),
            ("nightly --part sum", "sim"),
            ("nightly --start=-1", "-1"),
            ("bench them", "wire, host"),
            ("ros2 rclcp", "rclcpp"),
            ("ros2 rcl --only", "--only"),
            ("ros2 --soak rcl", "--soak"),
            ("ros2 --soak --valgrind", "--soak"),
            ("ros2 --soak --minutes 0", "--minutes"),
            ("ros2 --minutes 3", "--soak"),
            ("ros2 --wheel --soak", "--wheel"),
            ("tidy crates/rtps", "crates/rtps"),
            ("picture --figures x", "--figures"),
            ("dist --host-glibc --crates", "--crates"),
            ("wheel --debug --manylinux", "--manylinux"),
            ("generate --chek", "--check"),
        ] {
            let error = parse(line).err().unwrap_or_default();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
