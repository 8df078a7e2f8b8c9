//! Scenarios: one line that says who is there, what they do and what of it is
//! seen, played on whole contexts in simulated time.
//!
//! ```text
//! missed_deadlines_are_counted: w+r(deadline=100ms); w.write 1; +350ms; r? deadline_missed=3
//! ```
//! A line is a name, a path if it is not to be played on all, a colon, and steps
//! separated by `;`. Each step takes [`BEAT_MILLIS`], in which what it causes happens; only `+350ms` takes as long
//! as it says. What is sent at one instant comes in that order, unless a link
//! has jitter.
//! Contexts are called `a` to `f`, writers `w` or `w2`, readers `r` or `r2`,
//! publisher groups `g` or `g2`. `[local]` is played where all of them are one; on
//! `[net]` they are apart, once with a host for each and once linked by shared
//! memory, unless the line troubles datagrams; `[udp]` leaves the links out.
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
//! r! matched=1/1 matched=1/0        exactly these events since the last look; `nothing`
//! begin g / end g                   a coherent set
//! delete w / crash a / leave a / start a / wall a -1h
//! cut a>b / lose a-b 30% / delay a>b 20ms / jitter a>b 5ms / repeat a-b 50% / heal
//! ```
//! Which policies there are says `policies.rs`, which statuses and events
//! `seen.rs`.

mod hunt;
mod parse;
mod policies;
mod sample;
mod seen;
mod stage;
mod step;

use std::fmt;

pub use hunt::failing_with;
pub use parse::Mistake;
pub use step::{Scenario, Way};

/// What every step takes but a wait.
pub const BEAT_MILLIS: u64 = 5;

/// Reads a file of scenarios: one a line, `#` before comments.
///
/// # Errors
/// The first line that is none, and where it goes wrong.
pub fn read(text: &str) -> Result<Vec<Scenario>, Mistake> {
    let mut all: Vec<Scenario> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let scenario = parse::scenario(index + 1, line)?;
        if let Some(other) = all.iter().find(|other| other.name == scenario.name) {
            return Err(Mistake {
                line: index + 1,
                column: 1,
                reason: format!("{:?} is the name of line {}", scenario.name, other.line),
            });
        }
        all.push(scenario);
    }
    Ok(all)
}

/// Plays a scenario on one path.
///
/// # Errors
/// What was not as the line says.
pub fn play(scenario: &Scenario, way: Way) -> Result<(), Box<Failure>> {
    stage::play(scenario, way)
}

/// A step that went otherwise than its line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario's name and path.
    pub scenario: String,
    /// Its line in its file.
    pub line: usize,
    /// The whole line.
    pub text: String,
    /// Where in it the step begins, from 1.
    pub column: usize,
    /// Which step, from 1.
    pub step: usize,
    /// What was expected and what is.
    pub reason: String,
    /// Everything that was seen, with its time.
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
