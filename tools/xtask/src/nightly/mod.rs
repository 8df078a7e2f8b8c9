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

use anyhow::{Context, Result, bail};

use crate::checkout::root;
use part::{Outcome, PARTS, Part};
use state::{Occasion, State};

const USAGE: &str = "usage: cargo xtask nightly [--hours N] [--part NAME …] [--start SEED]";

/// A night, hours.
const HOURS_DEFAULT: f64 = 8.0;

/// Runs the command. Returns whether nothing was found.
pub fn run(arguments: &[String]) -> Result<bool> {
    let Request {
        hours,
        parts,
        start,
    } = parse_arguments(arguments)?;
    let night = Duration::from_secs_f64(hours * 3_600.0);
    let on = occasion()?;
    let mut results = Vec::new();
    for part in parts {
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

/// The parsed arguments.
struct Request {
    hours: f64,
    parts: Vec<&'static Part>,
    /// The first seed of the simulator, instead of the next one.
    start: Option<u64>,
}

fn parse_arguments(arguments: &[String]) -> Result<Request> {
    let mut hours = HOURS_DEFAULT;
    let mut parts = Vec::new();
    let mut start = None;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--hours" => {
                let number = rest.next().context(USAGE)?;
                let parsed = number.parse::<f64>().ok();
                hours = parsed
                    .filter(|hours| *hours > 0.0 && *hours <= 1_000.0)
                    .with_context(|| {
                        format!("--hours {number}: give a number above 0, up to 1000, as 8 or 0.05")
                    })?;
            }
            "--part" => {
                let name = rest.next().context(USAGE)?;
                let part = PARTS.iter().find(|part| part.name == name);
                let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
                let part =
                    part.with_context(|| format!("--part {name}: there are {}", names.join(", ")))?;
                parts.push(part);
            }
            "--start" => {
                let number = rest.next().context(USAGE)?;
                let parsed = number.parse::<u64>();
                start = Some(parsed.with_context(|| {
                    format!("--start {number}: give the first seed, a whole number")
                })?);
            }
            _ => bail!("{word}: not an option\n{USAGE}"),
        }
    }
    if parts.is_empty() {
        parts = PARTS.iter().collect();
    }
    Ok(Request {
        hours,
        parts,
        start,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(f64, Vec<&'static str>, Option<u64>)> {
        let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
        let request = parse_arguments(&words)?;
        let parts = request.parts.iter().map(|part| part.name).collect();
        Ok((request.hours, parts, request.start))
    }

    #[test]
    fn arguments_are_parsed_or_refused_by_name() {
        assert_eq!(read("").unwrap().1.len(), PARTS.len());
        assert_eq!(
            read("--hours 0.05 --part sim --part audit").unwrap(),
            (0.05, vec!["sim", "audit"], None)
        );
        assert_eq!(
            read("--part sim --start 8000000").unwrap(),
            (8.0, vec!["sim"], Some(8_000_000))
        );
        for (line, named) in [
            ("--hours", "usage"),
            ("--hours soon", "soon"),
            ("--hours 0", "above 0"),
            ("--hours -1", "above 0"),
            ("--hours NaN", "NaN"),
            ("--hours 1e9", "1000"),
            ("--part", "usage"),
            ("--part sum", "sim"),
            ("--start", "usage"),
            ("--start -1", "-1"),
            ("--fast", "--fast"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
