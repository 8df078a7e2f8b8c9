//! The parts of a night: what each runs, for which share of the time, and how its
//! output is counted.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::Value;

use super::audit;
use crate::checkout::root;
use crate::cross;
use crate::fuzz;
use crate::limited_command::run_limited;
use crate::machine::Machine;
use crate::seeded_bugs::InstrumentedCopy;

/// A part of a night.
pub struct Part {
    /// Its name on the command line and in the state.
    pub name: &'static str,
    /// What it does, for the page.
    pub does: &'static str,
    /// Its share of the time, percent. Building comes on top.
    share: u64,
    run: fn(&Budget) -> Result<Outcome>,
}

/// What a part may use.
pub struct Budget {
    /// Time after the build.
    pub time: Duration,
    /// The first seed to try.
    pub first_seed: u64,
}

/// What a part has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How long it ran without its build.
    pub seconds: f64,
    /// CPU time of its programs in that time, seconds.
    pub cpu_seconds: f64,
    /// Inputs, tests or packages.
    pub executions: u64,
    /// Simulated graphs.
    pub seeds: u64,
    /// Those since the last find.
    pub sound_seeds: u64,
    /// Time that passed in them, seconds.
    pub simulated_seconds: f64,
    /// One line for each find.
    pub finds: Vec<String>,
    /// Why it did not run.
    pub skipped: Option<String>,
}

impl Outcome {
    /// Nothing was done.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self {
            skipped: Some(why.into()),
            ..Self::default()
        }
    }

    /// One line.
    pub fn result(&self) -> String {
        match (&self.skipped, self.finds.len()) {
            (Some(why), _) => format!("skipped: {why}"),
            (None, 0) => "nothing found".into(),
            (None, count) => format!("{count} found"),
        }
    }
}

/// Measures how long a part runs, and the CPU time of the programs it starts. What
/// was killed with its children does not count.
pub struct Clock {
    began: Instant,
    cpu_before: f64,
}

impl Clock {
    /// Starts to measure.
    pub fn start() -> Result<Self> {
        Ok(Self {
            began: Instant::now(),
            cpu_before: cpu_seconds_of_children()?,
        })
    }

    /// Adds what was measured.
    pub fn stop(self, outcome: &mut Outcome) -> Result<()> {
        outcome.seconds += self.began.elapsed().as_secs_f64();
        outcome.cpu_seconds += cpu_seconds_of_children()? - self.cpu_before;
        Ok(())
    }
}

fn cpu_seconds_of_children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

impl Part {
    /// Runs it with its share of the time.
    pub fn run(&self, night: Duration, first_seed: u64) -> Result<Outcome> {
        let time = night.mul_f64(self.share as f64 / 100.0);
        (self.run)(&Budget { time, first_seed })
    }
}

/// All parts, in the order in which they run.
pub const PARTS: &[Part] = &[
    Part {
        name: "audit",
        does: "licences, duplicate, yanked and outdated dependencies",
        share: 1,
        run: |_| audit::run(),
    },
    Part {
        name: "loom",
        does: "lock-free parts of shared memory, every interleaving",
        share: 3,
        run: loom,
    },
    Part {
        name: "miri",
        does: "unit tests of msg and dcps, interpreted, for undefined behaviour",
        share: 8,
        run: miri,
    },
    Part {
        name: "asan",
        does: "tests of shm and runtime with AddressSanitizer",
        share: 6,
        run: |budget| sanitizer(budget, "address", &[]),
    },
    Part {
        name: "tsan",
        does: "tests of shm and runtime with ThreadSanitizer",
        share: 6,
        run: |budget| sanitizer(budget, "thread", &["-Zbuild-std"]),
    },
    Part {
        name: "cross",
        does: "unit tests and pairs of programs on other processors, emulated",
        share: 2,
        run: |_| emulated(),
    },
    Part {
        name: "fuzz",
        does: "coverage-guided fuzzing of every target",
        share: 34,
        run: fuzzing,
    },
    Part {
        name: "sim",
        does: "simulated graphs with fault injection",
        share: 26,
        run: |budget| simulation(budget, &[]),
    },
    Part {
        name: "nodes",
        does: "simulated whole nodes: actions, parameters, lifecycle, executors",
        share: 14,
        run: |budget| simulation(budget, &["--nodes", "all"]),
    },
];

fn emulated() -> Result<Outcome> {
    let clock = Clock::start()?;
    let mut outcome = match cross::run(&cross::Arguments::all()) {
        Ok(cross::Outcome::LeftOut(why)) => return Ok(Outcome::skipped(why)),
        Ok(cross::Outcome::Done { tests, .. }) => Outcome {
            executions: tests as u64,
            ..Outcome::default()
        },
        Err(why) => Outcome {
            finds: vec![format!("{why:#}")],
            ..Outcome::default()
        },
    };
    clock.stop(&mut outcome)?;
    Ok(outcome)
}

/// Runs every fuzz target for the same time.
fn fuzzing(budget: &Budget) -> Result<Outcome> {
    if let Err(why) = fuzz::check_tools() {
        return Ok(Outcome::skipped(format!("{why:#}")));
    }
    let targets = fuzz::TARGETS;
    fuzz::prepare(targets)?;
    let seconds = (budget.time.as_secs() / targets.len() as u64).max(1);
    let mut outcome = Outcome::default();
    for (name, bytes_max) in targets {
        let clock = Clock::start()?;
        let mut command = fuzz::target_command(name, *bytes_max, seconds);
        let limit = Duration::from_secs(seconds * 2 + 60);
        let output = run_limited(&mut command, limit, true)?;
        clock.stop(&mut outcome)?;
        outcome.executions += number_after(&output.text, "stat::number_of_executed_units:");
        if output.failed() {
            outcome.finds.push(format!(
                "fuzz target {name}: {}; the input is in verify/fuzz/artifacts/{name}",
                first_line_with(&output.text, &["panicked at", "ERROR:", "SUMMARY:"])
            ));
        }
    }
    Ok(outcome)
}

/// Seeds of the first run of the simulator, which measures its speed.
const SEEDS_FIRST: u64 = 20;

/// Seeds that fail before a part gives up: more of them are mostly the same defect.
const FAILING_SEEDS_MAX: usize = 5;

/// Runs new seeds until the time is over. A run ends at a seed that fails, and the next
/// begins behind it.
fn simulation(budget: &Budget, workload: &[&str]) -> Result<Outcome> {
    let simulator = build_simulator()?;
    let mut outcome = Outcome::default();
    let mut seeds = SEEDS_FIRST;
    while outcome.seconds < budget.time.as_secs_f64() {
        let start = budget.first_seed + outcome.seeds;
        let mut command = Command::new(&simulator);
        command.current_dir(root()).args(workload);
        command.args(["--start", &start.to_string(), "--seeds", &seeds.to_string()]);
        let clock = Clock::start()?;
        let output = run_limited(&mut command, budget.time * 4 + BUILD_MAX, true)?;
        clock.stop(&mut outcome)?;
        outcome.executions += simulated_runs(&output.text);
        outcome.simulated_seconds += simulated_seconds(&output.text);
        outcome.seeds += seeds;
        outcome.sound_seeds += seeds;
        if output.failed() {
            let failure = failing_seed(&output.text);
            let (seed, find) = failure.unwrap_or_else(|| {
                let why = first_line_with(&output.text, &["panicked at", "error"]);
                (start + seeds - 1, format!("seeds from {start}: {why}"))
            });
            outcome.seeds = (seed + 1).saturating_sub(budget.first_seed);
            outcome.sound_seeds = 0;
            outcome.finds.push(find);
            if outcome.finds.len() >= FAILING_SEEDS_MAX {
                break;
            }
        }
        let left = (budget.time.as_secs_f64() - outcome.seconds).max(0.0);
        let speed = outcome.seeds as f64 / outcome.seconds.max(0.001);
        seeds = ((speed * left) as u64).clamp(1, 1_000_000);
    }
    std::fs::remove_file(&simulator)?;
    Ok(outcome)
}

/// Builds the simulator, and copies it: a change of the sources, or another build, does
/// not change what a night tests.
fn build_simulator() -> Result<PathBuf> {
    let mut build = cargo(&["build", "--release", "--quiet", "-p", "pteros-sim"]);
    build.args(["--features", "faults", "--message-format=json"]);
    build.args(InstrumentedCopy::make()?.arguments());
    let built = build
        .stderr(Stdio::inherit())
        .output()
        .context("build the simulator")?;
    if !built.status.success() {
        bail!("the simulator does not build");
    }
    let built = executable(&String::from_utf8_lossy(&built.stdout))
        .context("cargo names no simulator among what it built")?;
    let folder = root().join("target/nightly");
    std::fs::create_dir_all(&folder)?;
    let copy = folder.join(format!("pteros-sim-{}", std::process::id()));
    std::fs::copy(&built, &copy).with_context(|| format!("copy {}", built.display()))?;
    Ok(copy)
}

/// The program in cargo's messages.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| {
        let program = message.get("executable")?.as_str()?;
        Some(PathBuf::from(program))
    });
    programs.next()
}

/// The seed that failed and what it violated: `graphs, seed 601 at commit … fails:` and
/// the line behind it.
fn failing_seed(text: &str) -> Option<(u64, String)> {
    let mut lines = text.lines();
    let (workload, rest) = lines.find_map(|line| {
        let (workload, rest) = line.split_once(", seed ")?;
        line.ends_with(" fails:").then_some((workload, rest))
    })?;
    let seed = rest.split(' ').next()?.parse().ok()?;
    let violation = lines.next().unwrap_or_default().trim();
    Some((seed, format!("{workload}, seed {seed}: {violation}")))
}

/// The runs in the simulator's summaries: `graph: 20 seeds, 0.11 simulated hours …`.
fn simulated_runs(text: &str) -> u64 {
    let lines = text
        .lines()
        .filter(|line| line.contains(" simulated hours "));
    let counts = lines.filter_map(|line| {
        let (before, _) = line.split_once(" seeds,")?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

/// The time that passed in the simulated graphs of these summaries.
fn simulated_seconds(text: &str) -> f64 {
    let hours = text.lines().filter_map(|line| {
        let (before, _) = line.split_once(" simulated hours ")?;
        before.rsplit(' ').next()?.parse::<f64>().ok()
    });
    hours.sum::<f64>() * 3_600.0
}

fn loom(budget: &Budget) -> Result<Outcome> {
    let mut command = cargo(&["test", "--release", "-p", "pteros-shm", "--lib"]);
    command.env("RUSTFLAGS", "--cfg loom");
    tests(&mut command, budget, "loom")
}

fn miri(budget: &Budget) -> Result<Outcome> {
    if !answers(&["+nightly", "miri", "--version"]) {
        return Ok(Outcome::skipped(
            "miri is not installed; rustup component add miri rust-src --toolchain nightly",
        ));
    }
    let mut command = nightly(&[
        "miri",
        "test",
        "-p",
        "pteros-msg",
        "-p",
        "pteros-dcps",
        "--lib",
    ]);
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    tests(&mut command, budget, "miri")
}

fn sanitizer(budget: &Budget, name: &str, flags: &[&str]) -> Result<Outcome> {
    if !answers(&["+nightly", "--version"]) {
        return Ok(Outcome::skipped(
            "there is no nightly toolchain; rustup toolchain install nightly",
        ));
    }
    // Without its own build of the standard library, ThreadSanitizer reports races
    // that are none.
    if !flags.is_empty() && !has_library_sources() {
        return Ok(Outcome::skipped(
            "the sources of the standard library are missing; rustup component add rust-src --toolchain nightly",
        ));
    }
    // Sanitizers want the target named, so that build scripts go without them.
    let triple = match Machine::own() {
        Ok(machine) => machine.triple,
        Err(why) => return Ok(Outcome::skipped(format!("{why:#}"))),
    };
    let mut command = nightly(&["test", "--target", triple]);
    command
        .args(flags)
        .args([
            "-p",
            "pteros-shm",
            "-p",
            "pteros-runtime",
            "--lib",
            "--tests",
        ])
        // Mappings come and go by system calls that ThreadSanitizer does not see. Two
        // tests at once, with a mapping at one address after the other, are a race to it.
        .env("RUST_TEST_THREADS", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={name}"))
        .env("CARGO_TARGET_DIR", root().join("target").join(name));
    tests(&mut command, budget, name)
}

fn has_library_sources() -> bool {
    let output = Command::new("rustc")
        .args(["+nightly", "--print", "sysroot"])
        .output();
    let sysroot = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    sysroot.is_ok_and(|root| {
        std::path::Path::new(&root)
            .join("lib/rustlib/src/rust/library")
            .exists()
    })
}

/// Builds tests, then runs them within the budget. Those that did not come to their
/// turn are not counted.
fn tests(command: &mut Command, budget: &Budget, name: &str) -> Result<Outcome> {
    let mut build = Command::new(command.get_program());
    build
        .args(command.get_args())
        .arg("--no-run")
        .current_dir(root());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => build.env(key, value),
            None => build.env_remove(key),
        };
    }
    // Miri interprets, so there is nothing to build but its standard library.
    if name != "miri" {
        let built = run_limited(&mut build, BUILD_MAX, true)?;
        if built.failed() {
            let why = first_line_with(&built.text, &["error"]);
            return Ok(Outcome::skipped(format!("it does not build: {why}")));
        }
    }
    let clock = Clock::start()?;
    let output = run_limited(command, budget.time.max(TESTS_MIN), true)?;
    let mut outcome = Outcome {
        executions: passed_tests(&output.text),
        ..Outcome::default()
    };
    clock.stop(&mut outcome)?;
    if output.ended_early && outcome.executions == 0 {
        return Ok(Outcome::skipped("no test ended in its time"));
    }
    if output.failed() {
        let signs = [
            "SUMMARY:",
            "Undefined Behavior",
            "panicked at",
            "FAILED",
            "error",
        ];
        let sign = first_line_with(&output.text, &signs);
        outcome.finds.push(format!("{name}: {sign}"));
    }
    Ok(outcome)
}

/// The longest build.
const BUILD_MAX: Duration = Duration::from_secs(3_600);

/// Tests run at least that long, or a short night would end them at once.
const TESTS_MIN: Duration = Duration::from_secs(20);

/// Tests that have passed: `test result: ok. 12 passed; …` of each program, or of
/// one that was ended early its lines `test … ok`.
fn passed_tests(text: &str) -> u64 {
    text.lines()
        .filter(|line| line.starts_with("test ") && line.ends_with(" ... ok"))
        .count() as u64
}

/// The first line with one of these signs, the most telling one first.
fn first_line_with(text: &str, signs: &[&str]) -> String {
    let line = |sign: &&str| text.lines().find(|line| line.contains(*sign));
    let line = signs.iter().find_map(line).unwrap_or("it failed");
    line.trim().chars().take(200).collect()
}

/// The number behind a word, summed over all lines.
fn number_after(text: &str, word: &str) -> u64 {
    let numbers = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(word));
    numbers.filter_map(|n| n.trim().parse::<u64>().ok()).sum()
}

/// Cargo of the toolchain of this checkout.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Cargo of the nightly toolchain.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = cargo(&["+nightly"]);
    command.args(arguments);
    fuzz::without_toolchain(&mut command);
    command
}

/// Whether cargo knows a command.
fn answers(arguments: &[&str]) -> bool {
    let mut command = cargo(arguments);
    fuzz::without_toolchain(&mut command);
    command.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_the_whole_night() {
        assert_eq!(PARTS.iter().map(|part| part.share).sum::<u64>(), 100);
    }

    #[test]
    fn outputs_are_counted() {
        let sim = "graphs: 20 seeds, 0.11 simulated hours in 3.0 s: 130 simulated seconds a second\n\
                   actions: 5 seeds, 0.01 simulated hours in 1.0 s: 36 simulated seconds a second\n";
        assert_eq!(simulated_runs(sim), 25);
        assert_eq!(simulated_seconds(sim).round(), 432.0);
        let failed =
            "graphs, seed 9 at commit abc1234 fails:\n  I13 s3: a request\n  I1 more\nreplay: x\n";
        let find = "graphs, seed 9: I13 s3: a request".to_string();
        assert_eq!(failing_seed(failed), Some((9, find)));
        assert_eq!(failing_seed(sim), None);
        let built = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                     {\"reason\":\"compiler-artifact\",\"executable\":\"/t/pteros-sim\"}\n";
        assert_eq!(executable(built), Some("/t/pteros-sim".into()));
        let fuzz = "stat::number_of_executed_units: 5123\nstat::average_exec_per_sec: 900\n";
        assert_eq!(number_after(fuzz, "stat::number_of_executed_units:"), 5_123);
        let tests = "test a::b ... ok\ntest a::c ... FAILED\ntest result: FAILED. 1 passed\n";
        assert_eq!(passed_tests(tests), 1);
        assert_eq!(
            first_line_with(tests, &["SUMMARY:", "FAILED"]),
            "test a::c ... FAILED"
        );
    }
}
