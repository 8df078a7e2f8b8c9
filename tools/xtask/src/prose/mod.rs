//! `cargo xtask prose`: a report on names and prose. It prints the longest sentences,
//! sentences without a subject of their own, private metaphors, type names that several
//! files define, and commit subjects that are too long. It changes nothing and always
//! succeeds. Metaphors in names of files and types also fail `cargo xtask tidy`.

pub mod metaphors;
mod passages;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::checkout::{root, tracked_files};
use metaphors::{METAPHORS, is, type_name, words};
use passages::{Passage, is_headless, passages, sentences};

/// Words of a sentence that is not listed as long.
const WORDS_MAX: usize = 25;
/// Characters of a commit's subject.
const SUBJECT_MAX: usize = 72;
/// Commits that are looked at.
const COMMITS: &str = "100";

#[derive(clap::Args)]
pub struct Arguments {
    /// Lines per section
    #[arg(long, default_value_t = 15, value_name = "N")]
    lines: usize,
    /// Files and folders; without them all, and the commits
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { lines, paths } = arguments;
    let root = root();
    let mut report = Report::default();
    for path in tracked(&root, paths)? {
        if let Ok(text) = fs::read_to_string(root.join(&path)) {
            report.read(&path, &text);
        }
    }
    report.print(*lines);
    if paths.is_empty() {
        print_section("commit subjects", &subjects(&root)?, *lines);
    }
    Ok(())
}

/// Tracked Rust sources and Markdown pages that are written by hand.
fn tracked(root: &Path, paths: &[String]) -> Result<Vec<String>> {
    let by_hand = |path: &String| {
        (path.ends_with(".rs") || path.ends_with(".md"))
            && !path.contains("/generated/")
            // It lists the words that it looks for.
            && !path.starts_with("tools/xtask/src/prose/")
    };
    let files = tracked_files(root, paths)?;
    Ok(files.into_iter().filter(by_hand).collect())
}

/// Findings, in the order in which they are printed.
#[derive(Default)]
struct Report {
    sentences: usize,
    long: Vec<(usize, String)>,
    headless: Vec<String>,
    /// Per metaphor, files with their counts.
    metaphors: BTreeMap<&'static str, BTreeMap<String, usize>>,
    /// Per type name, the files that define it.
    types: BTreeMap<String, Vec<String>>,
}

impl Report {
    fn read(&mut self, path: &str, text: &str) {
        for Passage { line, text } in passages(path, text) {
            for sentence in sentences(&text) {
                self.sentences += 1;
                let words = sentence.split_whitespace().count();
                if words > WORDS_MAX {
                    self.long
                        .push((words, format!("{words} words, {path}:{line}: {sentence}")));
                }
                if is_headless(&sentence) {
                    self.headless.push(format!("{path}:{line}: {sentence}"));
                }
            }
        }
        for word in words(text) {
            let known = METAPHORS.iter().map(|(metaphor, _)| *metaphor);
            for metaphor in known {
                if is(&word, metaphor) {
                    let files = self.metaphors.entry(metaphor).or_default();
                    *files.entry(path.to_owned()).or_default() += 1;
                }
            }
        }
        if path.ends_with(".rs") && !path.contains("/tests/") {
            for name in text.lines().filter_map(type_name) {
                let files = self.types.entry(name.to_owned()).or_default();
                if !files.iter().any(|file| file == path) {
                    files.push(path.to_owned());
                }
            }
        }
    }

    fn print(mut self, lines_max: usize) {
        self.long
            .sort_by_key(|(words, _)| std::cmp::Reverse(*words));
        let long: Vec<String> = self.long.into_iter().map(|(_, text)| text).collect();
        let title = format!("of {} sentences, over {WORDS_MAX} words", self.sentences);
        print_section(&title, &long, lines_max);
        let title = "sentences that begin with a clause for a subject";
        print_section(title, &self.headless, lines_max);

        let mut metaphors = Vec::new();
        for (metaphor, term) in METAPHORS {
            if let Some(files) = self.metaphors.get(metaphor) {
                let count: usize = files.values().sum();
                let most = files.iter().max_by_key(|(_, count)| **count);
                let file = most.map_or("", |(file, _)| file.as_str());
                metaphors.push((
                    count,
                    format!("{metaphor} ({term}): {count}, most in {file}"),
                ));
            }
        }
        metaphors.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let metaphors: Vec<String> = metaphors.into_iter().map(|(_, text)| text).collect();
        print_section("private metaphors", &metaphors, lines_max);

        let mut types: Vec<(String, Vec<String>)> = self.types.into_iter().collect();
        types.retain(|(_, files)| files.len() > 1);
        types.sort_by_key(|(_, files)| std::cmp::Reverse(files.len()));
        let types: Vec<String> = types
            .into_iter()
            .map(|(name, files)| format!("{name}: {} files: {}", files.len(), files.join(" ")))
            .collect();
        print_section("type names that several files define", &types, lines_max);
    }
}

fn print_section(title: &str, found: &[String], lines_max: usize) {
    println!("\n{}: {title}", found.len());
    for line in found.iter().take(lines_max) {
        println!("  {line}");
    }
    if found.len() > lines_max {
        println!(
            "  … and {} more; --lines N shows them",
            found.len() - lines_max
        );
    }
}

/// Subjects of the last commits that are too long or name no area.
fn subjects(root: &Path) -> Result<Vec<String>> {
    let log = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", "-n", COMMITS])
        .current_dir(root)
        .output()
        .context("run git log")?;
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    Ok(log.lines().filter_map(subject_fault).collect())
}

fn subject_fault(line: &str) -> Option<String> {
    let (_, subject) = line.split_once(' ')?;
    let length = subject.chars().count();
    let area = subject.split_once(": ").map(|(area, _)| area);
    if length > SUBJECT_MAX {
        Some(format!("{length} characters: {line}"))
    } else if area.is_none_or(|area| area.contains(' ') || area.is_empty()) {
        Some(format!("no area before a colon: {line}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_an_area_and_at_most_72_characters() {
        assert_eq!(subject_fault("abc shm: wake loan waiters"), None);
        assert!(
            subject_fault("abc Messages go at once")
                .unwrap()
                .contains("no area")
        );
        let long = format!("abc rtps: {}", "x".repeat(80));
        assert!(subject_fault(&long).unwrap().contains("86 characters"));
    }

    #[test]
    fn a_report_finds_long_and_headless_sentences_and_metaphors() {
        let mut report = Report::default();
        let long = "word ".repeat(30);
        let text = format!("//! {long}end.\n//!\n//! Who waits hears of it.\nstruct Parcel;\n");
        report.read("crates/a/src/b.rs", &text);
        assert_eq!(report.long.len(), 1);
        assert_eq!(report.headless.len(), 1);
        assert_eq!(report.metaphors["parcel"]["crates/a/src/b.rs"], 1);
    }
}
