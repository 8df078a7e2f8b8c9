//! The page `docs/measurements/mutants.md`: what became of the last whole sample.
//! Explanations of mutants that nothing notices are written into it by hand; they
//! stay if the mutant stays unnoticed.

use std::path::PathBuf;

use anyhow::Result;

use super::judge::MutantOutcome;
use super::sites::{CRATES, Site};
use crate::checkout::root;

/// Stands where an explanation is missing.
const UNEXPLAINED: &str = "not explained";

/// A sample and what became of it.
pub struct Sample<'s> {
    /// Which one.
    pub seed: u64,
    /// `2026-11-23`, UTC.
    pub date: String,
    /// Abbreviated.
    pub commit: String,
    /// Places to mutate in all crates.
    pub places: usize,
    /// Tests that ran.
    pub tests: usize,
    /// Mutants of the sample.
    pub size: usize,
    /// Those that were judged.
    pub judged: Vec<(&'s Site, MutantOutcome)>,
}

/// The file.
pub fn path() -> PathBuf {
    root().join("docs/measurements/mutants.md")
}

/// Writes the page, with the explanations of the one before.
pub fn write(sample: &Sample) -> Result<()> {
    let before = std::fs::read_to_string(path()).unwrap_or_default();
    std::fs::write(path(), page(sample, &before))?;
    Ok(())
}

fn page(sample: &Sample, before: &str) -> String {
    let count = |crate_name: &str, is: &dyn Fn(MutantOutcome) -> bool| {
        let judged = sample.judged.iter();
        judged
            .filter(|(site, _)| crate_name.is_empty() || site.crate_name == crate_name)
            .filter(|(_, outcome)| is(*outcome))
            .count()
    };
    let (all, noticed) = (sample.judged.len(), count("", &MutantOutcome::is_noticed));
    let mut page = HEAD.to_string();
    page += &format!(
        "{} at {}, seed {}: **{noticed} of {all} noticed** ({:.1} %), drawn from {} places, with {} tests.\n\n",
        sample.date,
        sample.commit,
        sample.seed,
        100.0 * noticed as f64 / all.max(1) as f64,
        sample.places,
        sample.tests,
    );
    if all < sample.size {
        page += &format!(
            "These are {all} mutants of the sample of {}; the run ended there. Those that only some of the test programs\n\
             have run count as unnoticed.\n\n",
            sample.size
        );
    }
    page += "| crate | mutants | noticed by its tests | by another crate's | by the simulator's | unnoticed |\n";
    page += "|---|---|---|---|---|---|\n";
    for name in CRATES {
        page += &format!(
            "| {name} | {} | {} | {} | {} | {} |\n",
            count(name, &|_| true),
            count(name, &|outcome| outcome == MutantOutcome::ByItsCrate),
            count(name, &|outcome| outcome == MutantOutcome::ByAnotherCrate),
            count(name, &|outcome| outcome == MutantOutcome::BySimulator),
            count(name, &|outcome| !outcome.is_noticed()),
        );
    }
    page += "\n## Unnoticed\n";
    let unnoticed = sample
        .judged
        .iter()
        .filter(|(_, outcome)| !outcome.is_noticed());
    let mut lines: Vec<String> = unnoticed
        .map(|(site, outcome)| {
            let start = format!("- `{}`: ", site.title());
            let kept = before.lines().find_map(|line| line.strip_prefix(&start));
            let kept = kept.or_else(|| {
                let of_the_same =
                    |line: &&str| without_line(line).starts_with(&without_line(&start));
                let line = before.lines().find(of_the_same)?;
                line.split_once("`: ").map(|(_, why)| why)
            });
            let new = match outcome {
                MutantOutcome::Unreached => format!("{UNEXPLAINED}; no test comes to it"),
                _ => UNEXPLAINED.into(),
            };
            format!("{start}{}\n", kept.unwrap_or(&new))
        })
        .collect();
    lines.sort();
    page.extend(lines);
    page
}

/// A line of the list without the number of the line in the source, which changes.
fn without_line(text: &str) -> String {
    let Some((file, rest)) = text.split_once(".rs:") else {
        return text.into();
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{file}.rs{rest}")
}

/// The page until the figures.
const HEAD: &str = "\
# Generated mutants

A mutant is the engine with one operator or word changed. The tests of its crate, of another crate or of the simulator
should notice it. `cargo xtask mutants` draws a sample, writes this page, and keeps the explanations below.

Other crates are the ones of the table and `pteros`: its conformance tests, and those with threads, processes and secured
nodes. A mutant runs the tests that come to its place, the fastest first: at most 120 s of its own crate and 60 s of
others; a test of over 60 s is left out. A failure counts if it comes again, and if the same tests pass without the
mutant.

Left out of the draw are changes that no test can notice: reserved capacity, `Debug` output, conditions of log lines for
developers, comparisons with the present that differ in one nanosecond, and signs of numbers that are zero outside of
the simulator (`tools/xtask/src/mutants/sites.rs`).

";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::sites::sites_in;
    use super::*;

    #[test]
    fn explanations_stay_while_their_mutants_are_unnoticed() {
        let source = "fn f(a: u8) -> bool { a < 1 && a > 2 }";
        let sites = sites_in("shm", Path::new("a.rs"), source).unwrap();
        let sample = |outcome: MutantOutcome| Sample {
            seed: 1,
            date: "2026-11-23".into(),
            commit: "abc1234".into(),
            places: 900,
            tests: 80,
            size: 3,
            judged: sites.iter().map(|site| (site, outcome)).collect(),
        };
        let first = page(&sample(MutantOutcome::Unreached), "");
        assert!(
            first.contains("seed 1: **0 of 3 noticed** (0.0 %)"),
            "{first}"
        );
        assert!(first.contains("| shm | 3 | 0 | 0 | 0 | 3 |"), "{first}");
        assert!(!first.contains("the run ended"));
        let part = page(
            &Sample {
                size: 4,
                ..sample(MutantOutcome::Unnoticed)
            },
            "",
        );
        assert!(part.contains("3 mutants of the sample of 4"), "{part}");
        let line = "- `a.rs:1: < becomes <= in f`: ";
        assert!(first.contains(&format!("{line}not explained; no test comes to it\n")));
        let edited = first.replace(
            &format!("{line}not explained; no test comes to it"),
            &format!("{line}a log text"),
        );
        let second = page(&sample(MutantOutcome::Unnoticed), &edited);
        assert!(second.contains(&format!("{line}a log text\n")), "{second}");
        assert!(!page(&sample(MutantOutcome::ByItsCrate), &edited).contains(line));
        let moved = edited.replace("a.rs:1:", "a.rs:72:");
        assert_eq!(page(&sample(MutantOutcome::Unnoticed), &moved), second);
    }
}
