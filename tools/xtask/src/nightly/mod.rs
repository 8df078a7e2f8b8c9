//! `cargo xtask nightly [--hours N] [--part NAME …] [--start SEED]`: every search for
//! defects as one command, for a night or for minutes.
//!
//! Each part gets its share of the time, and is left out with a sentence if a tool
//! is missing. What was done is added to `docs/measurements/assurance.md`. The
//! command fails if something was found.

mod audit;
mod part;
mod state;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;

use crate::checkout::root;
use part::{Outcome, PARTS, Part};
use state::{Occasion, State};

#[derive(clap::Args)]
pub struct Arguments {
    /// Hours for all parts together
    #[arg(long, value_name = "N", default_value_t = 8.0, value_parser = hours)]
    hours: f64,
    /// Only this part; may be repeated
    #[arg(long = "part", value_name = "NAME", value_parser = PossibleValuesParser::new(PARTS.iter().map(|part| part.name)))]
    parts: Vec<String>,
    /// The first seed of the simulator, instead of the next one
    #[arg(long, value_name = "SEED")]
    start: Option<u64>,
}

fn hours(number: &str) -> Result<f64, String> {
    let parsed = number.parse::<f64>().ok();
    let parsed = parsed.filter(|hours| *hours > 0.0 && *hours <= 1_000.0);
    parsed.ok_or_else(|| "give a number above 0, up to 1000, as 8 or 0.05".into())
}

/// Runs the command. Returns whether nothing was found.
pub fn run(arguments: Arguments) -> Result<bool> {
    let Arguments {
        hours,
        parts,
        start,
    } = arguments;
    let is_named = |part: &Part| parts.iter().any(|name| name == part.name);
    let chosen = PARTS
        .iter()
        .filter(|part| parts.is_empty() || is_named(part));
    let night = Duration::from_secs_f64(hours * 3_600.0);
    let on = occasion()?;
    let mut results = Vec::new();
    for part in chosen {
        println!("\n=== {}: {} ===", part.name, part.does);
        let next_seed = State::load()?.next_seed(part.name);
        let outcome = part.run(night, start.unwrap_or(next_seed))?;
        println!("=== {}: {} ===", part.name, outcome.result());
        // After each part: an interrupted night keeps what it has done.
        let mut state = State::load()?;
        state.add(part, &outcome, &on, start.is_some());
        state.save()?;
        results.push((part, outcome));
    }
    print_summary(&results);
    Ok(results.iter().all(|(_, outcome)| outcome.finds.is_empty()))
}

fn print_summary(results: &[(&Part, Outcome)]) {
    println!();
    for (part, outcome) in results {
        let Outcome {
            seconds,
            executions,
            seeds,
            ..
        } = outcome;
        println!(
            "{:6} {seconds:8.0} s {executions:12} executions {seeds:9} seeds  {}",
            part.name,
            outcome.result()
        );
        for find in &outcome.finds {
            println!("       {find}");
        }
    }
    println!("added to docs/measurements/assurance.md; commit it");
}

/// Today, and the commit of this checkout.
pub fn occasion() -> Result<Occasion> {
    let commit = output("git", &["rev-parse", "--short=9", "HEAD"])?;
    let changes = output("git", &["status", "--porcelain", "--untracked-files=no"])?;
    // A night writes these two itself.
    let changed = changes
        .lines()
        .any(|line| !line.contains("docs/measurements/assurance."));
    Ok(Occasion {
        date: output("date", &["-u", "+%Y-%m-%d"])?,
        commit: commit + if changed { "+" } else { "" },
    })
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .with_context(|| format!("run {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_string())
}
