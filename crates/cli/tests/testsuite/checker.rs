//! Checks of the book, shared by the tests of the command and of the lab: command
//! lines of `sh` blocks parse, and docs/reference/commands.md has every option.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::support::{Answer, finish, pteros};
use std::path::{Path, PathBuf};

pub fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of the user part, and README.
fn pages() -> Vec<PathBuf> {
    let mut all = vec![docs().join("../README.md")];
    for folder in ["start", "tutorials", "how_to", "reference"] {
        let entries = std::fs::read_dir(docs().join(folder)).expect("a folder of the book");
        let paths = entries.flatten().map(|entry| entry.path());
        all.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    all
}

/// Lines of `sh` blocks. A backslash at the end joins the next line.
fn shell_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_shell = None;
    let mut begun = String::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(info) = line.strip_prefix("```") {
            is_shell = match is_shell {
                None => Some(info == "sh"),
                Some(_) => None,
            };
        } else if is_shell == Some(true) {
            if let Some(part) = line.strip_suffix('\\') {
                begun += part;
            } else {
                lines.push(std::mem::take(&mut begun) + line);
            }
        }
    }
    lines
}

/// Words as a shell splits them, without redirections and other programs.
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_quoted = false;
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                is_quoted = true;
            }
            (None, ' ') => {
                let is_end = !is_quoted
                    && (word.starts_with(['#', '|', '>', '&', ';'])
                        || ["--", "--ros-args"].contains(&word.as_str()));
                if is_end {
                    return all;
                }
                if is_quoted || !word.is_empty() {
                    all.push(std::mem::take(&mut word));
                }
                is_quoted = false;
            }
            (None, _) => word.push(letter),
        }
    }
    all
}

/// The arguments of a line that calls `pteros`, as its first command or after
/// `trace record --`.
pub fn arguments(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let is_variable = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let mut words = words.into_iter().skip_while(is_variable);
    let program = words.next()?;
    let is_ours = program == "pteros" || program.ends_with("/pteros");
    is_ours.then(|| words.collect())
}

fn is_name(word: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    !word.is_empty() && word.chars().all(is_letter)
}

/// Answer of the program to these words and `--help`.
fn help(words: &[String]) -> Answer {
    let mut command = pteros();
    command.args(words).arg("--help");
    finish(command)
}

/// Checks that the command lines of the book whose first word `is_checked` selects
/// parse. `skipped` leading words are not for the program. Returns their number.
pub fn check_lines(is_checked: impl Fn(&str) -> bool, skipped: usize) -> usize {
    let mut count = 0;
    for page in pages() {
        for line in shell_lines(&read(&page)) {
            let Some(mut arguments) = arguments(&line) else {
                continue;
            };
            let noun = arguments.first().cloned().unwrap_or_default();
            if !is_checked(&noun) {
                continue;
            }
            // The arguments after `run PACKAGE PROGRAM` are for that program.
            if noun == "run" {
                arguments.truncate(3);
                arguments.insert(1, "--help".into());
            }
            let answer = help(arguments.get(skipped..).unwrap_or_default());
            assert_eq!(
                answer.code,
                Some(0),
                "{}: {line}\n{}",
                page.display(),
                answer.err
            );
            count += 1;
        }
    }
    count
}

/// Nouns or verbs that a help text lists.
pub fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = lines.take_while(|line| !line.is_empty());
    let rows = rows.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = rows.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Long options of a help text, except those of all verbs.
fn options(help: &str) -> Vec<String> {
    let rows = help
        .lines()
        .filter(|line| line.trim_start().starts_with('-'));
    let words = rows.flat_map(|line| line.split_whitespace().take(2));
    let options = words.filter_map(|word| {
        let end = |letter: char| !letter.is_ascii_lowercase() && letter != '-' && letter != '_';
        let name = word.strip_prefix("--")?.split(end).next()?;
        Some(format!("--{name}"))
    });
    let everywhere = ["--json", "--interfaces", "--help", "--version"];
    options
        .filter(|option| !everywhere.contains(&option.as_str()))
        .collect()
}

/// Checks that the reference has every option of these verbs. `skipped` leading
/// words of each are not for the program.
pub fn check_reference(verbs: &[Vec<String>], skipped: usize) {
    let page = read(&docs().join("reference/commands.md"));
    let part = |heading: &str| {
        let heading = format!("# {heading}\n");
        let start = page.find(&heading);
        let start = start.unwrap_or_else(|| panic!("no section {heading}"));
        let text = &page[start + heading.len()..];
        text.split("\n#").next().unwrap_or(text).to_owned()
    };
    let section = |title: &str| part(&format!("`pteros {title}`"));
    let shared = part("Discovery options") + &part("QoS options");
    for words in verbs {
        let title = words.join(" ");
        // Options of the noun apply to all its verbs.
        let noun = words.first().map_or("", String::as_str);
        let text = section(noun) + &section(&title) + &shared;
        for option in options(&help(&words[skipped..]).ok()) {
            let is_there = text.contains(&format!("`{option}`"))
                || text.contains(&format!("`{option} "))
                || text.contains(&format!(", {option}"));
            assert!(
                is_there,
                "`pteros {title}` has {option}, which its section lacks"
            );
        }
    }
}

/// The noun and its verbs, as the program lists them for these words.
pub fn with_verbs(noun: &str, words: &[&str]) -> Vec<Vec<String>> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let verbs = listed(&help(&words).ok());
    let titles = verbs.into_iter().map(|verb| vec![noun.to_owned(), verb]);
    std::iter::once(vec![noun.to_owned()])
        .chain(titles)
        .collect()
}
