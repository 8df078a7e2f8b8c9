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

mod harness;
mod mutant_search;
mod parse;
mod policies;
mod sample;
mod statuses;
mod step;

use std::fmt;

pub use mutant_search::scenario_that_fails_with;
pub use parse::ScenarioParseError;
pub use step::{Scenario, ScenarioPath};

/// Duration of every step except a wait.
pub const STEP_MILLIS: u64 = 5;

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

/// Runs a scenario on one path.
///
/// # Errors
/// The step that was not as expected.
pub fn run_scenario(scenario: &Scenario, path: ScenarioPath) -> Result<(), Box<Failure>> {
    harness::run_scenario(scenario, path)
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
