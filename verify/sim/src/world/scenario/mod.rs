//! Scenarios: one-line tests of QoS policies, statuses and listeners. Each line
//! names the endpoints, their actions and what is expected. It runs on whole
//! contexts in simulated time.
//!
//! ```text
//! missed_deadlines_are_counted: w+r(deadline=100ms); w.write 1; +350ms; r? deadline_missed=3
//! ```
//! A line is a name, an optional path, a colon, and steps separated by `;`. Each
//! step takes [`STEP_MILLIS`], in which its effects happen. A wait as `+350ms`
//! takes its own time. Datagrams that are sent at one instant arrive in order,
//! unless a link has jitter. Contexts are called `a` to `f`, writers `w` or `w2`,
//! readers `r` or `r2`, publisher groups `g` or `g2`. `[local]` has all endpoints
//! in one context. `[net]` has several contexts, once with a host for each and once
//! with shared memory, unless the line injects link faults. `[udp]` excludes shared
//! memory.
//!
//! ```text
//! w+r(depth=3) r2@c(best_effort)    endpoints: writers at a, readers at b, unless said
//! w.write 1 2 red=3 4@-5s           messages; of an instance; stamped in the past
//! w.dispose red                     also unregister, register; assert, flush
//! r.filter x > 3                    another content filter
//! w.set partition=B deadline=0ms    other policies from now on, the rest as before
//! ... -> timed_out                  the step before it is refused with this error
//! r.take 1 2 red=3/new red:disposed all that waits, in order; `nothing`; `next`: so many
//! r? matched=1/1 deadline_missed=2  the status and the counters as they are now
//! r! matched=1/1 matched=1/0        exactly these events since the last check; `nothing`
//! begin g / end g                   a coherent set
//! delete w / crash a / leave a / start a / wall_clock a -1h
//! cut a>b / lose a-b 30% / delay a>b 20ms / jitter a>b 5ms / repeat a-b 50% / heal
//! ```
//! `policies.rs` lists the policies, `statuses.rs` the statuses and events.

mod parse;
mod policies;
mod sample;
mod statuses;
mod step;
mod world;

use std::fmt;
use std::path::Path;

use self::world::ScenarioWorld;
use crate::harness::options::Options;
use crate::harness::{Workload, World, run_world};
use crate::network::trace::Trace;

pub use parse::ScenarioParseError;
pub use step::{Scenario, ScenarioPath};

/// Duration of every step except a wait.
pub const STEP_MILLIS: u64 = 5;

/// The seed of link faults with which scenarios are written.
pub const SEED: u64 = 1;

/// Parses a file of scenarios: one per line, comments after `#`.
///
/// # Errors
/// The position and the reason of the first mistake.
pub fn read(text: &str) -> Result<Vec<Scenario>, ScenarioParseError> {
    let mut all: Vec<Scenario> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let scenario = parse::scenario(index + 1, line)?;
        if let Some(other) = all.iter().find(|other| other.name == scenario.name) {
            return Err(ScenarioParseError {
                line: index + 1,
                column: 1,
                reason: format!(
                    "{:?} is already the name of line {}",
                    scenario.name, other.line
                ),
            });
        }
        all.push(scenario);
    }
    Ok(all)
}

/// Every scenario of `tests/scenarios` on each of its paths, in the order of files
/// and lines.
///
/// # Errors
/// The file that cannot be read, and why.
pub fn all() -> Result<Vec<ScenarioRun>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let wrong = |path: &Path, why: &dyn fmt::Display| format!("{}: {why}", path.display());
    let entries = std::fs::read_dir(&folder).map_err(|error| wrong(&folder, &error))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut runs = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| wrong(&file, &error))?;
        for scenario in read(&text).map_err(|error| wrong(&file, &error))? {
            runs.extend(scenario.paths.iter().map(|path| scenario.on(*path)));
        }
    }
    Ok(runs)
}

/// A scenario on one of its paths.
#[derive(Clone, Debug)]
pub struct ScenarioRun {
    scenario: Scenario,
    path: ScenarioPath,
}

impl Scenario {
    /// The scenario on one path.
    pub fn on(&self, path: ScenarioPath) -> ScenarioRun {
        ScenarioRun {
            scenario: self.clone(),
            path,
        }
    }
}

impl ScenarioRun {
    /// Runs it, and tells what was not as expected.
    ///
    /// # Errors
    /// The step that was not as expected.
    pub fn check(&self) -> Result<(), Box<Failure>> {
        let options = Options::default();
        let mut world = self.world(SEED, &options);
        let outcome = run_world(&mut world, SEED, &options);
        match outcome.violations.first() {
            None => Ok(()),
            Some(violation) => Err(Box::new(world.failure(violation))),
        }
    }

    fn world(&self, seed: u64, options: &Options) -> ScenarioWorld {
        let trace = Trace::new(options.readable);
        ScenarioWorld::new(&self.scenario, self.path, seed, trace)
    }
}

impl Workload for ScenarioRun {
    fn name(&self) -> String {
        format!("{} [{}]", self.scenario.name, self.path.name())
    }

    fn selection(&self) -> String {
        format!(" --scenarios {}", self.scenario.name)
    }

    fn open(&self, seed: u64, options: &Options) -> Box<dyn World> {
        Box::new(self.world(seed, options))
    }
}

/// A step that was not as its line expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name and path of the scenario.
    pub scenario: String,
    /// Line in its file.
    pub line: usize,
    /// The whole line.
    pub text: String,
    /// Column at which the step begins, from 1.
    pub column: usize,
    /// Number of the step, from 1.
    pub step: usize,
    /// The expected and the actual result.
    pub reason: String,
    /// Everything observed, with its time.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenario,
            line,
            text,
            step,
            reason,
            ..
        } = self;
        writeln!(f, "line {line}, {scenario}, step {step}: {reason}")?;
        writeln!(f, "{text}\n{:>width$}", "^", width = self.column)?;
        for seen in &self.log {
            writeln!(f, "    {seen}")?;
        }
        Ok(())
    }
}
