//! The table of verbs, options and formats in `docs/reference/command_table.md`,
//! generated from the grammar, from the sources of the verbs and from
//! `tests/ros2_commands.txt`, which has ros2's verbs and options.
//!
//! The test compares the page with the code. `PTEROS_WRITE_DOCS=1 cargo test -p
//! pteros-cli command_table` writes it.

use crate::arguments::CommandLine;
use clap::{Arg, Command, CommandFactory};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const RELATIVE: &str = "../../docs/reference/command_table.md";
const ROS2: &str = include_str!("../tests/ros2_commands.txt");

/// Verbs of ros2 whose text is another one here, and why the page says so.
const OWN_TEXT: [(&str, &str); 12] = [
    ("doctor", "own"),
    ("doctor hello", "own"),
    ("launch", "of the programs"),
    ("run", "of the program"),
    ("pkg create", "own"),
    ("security create_keystore", "own"),
    ("security create_enclave", "own"),
    ("security create_permission", "own"),
    ("security generate_policy", "own"),
    ("security generate_artifacts", "own"),
    ("daemon start", "own"),
    ("component standalone", "of the container"),
];

/// Verbs that print with the code of another file.
const PRINTED_BY: [(&str, &str); 9] = [
    ("service echo", "topic/echo.rs"),
    ("demo", "demo/live_display.rs"),
    ("launch", "launch/show.rs"),
    ("pkg create", "new/mod.rs"),
    ("bag recover", "bag/convert.rs"),
    ("bag filter", "bag/convert.rs"),
    ("bag merge", "bag/convert.rs"),
    ("bag split", "bag/convert.rs"),
    ("bag burst", "bag/play.rs"),
];

fn manifest_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// ros2's verbs with their options.
fn ros2_verbs() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let lines = ROS2.lines().filter(|line| !line.starts_with('#'));
    let verbs = lines.filter_map(|line| line.split_once(':'));
    verbs
        .map(|(verb, options)| (verb, options.split_whitespace().collect()))
        .collect()
}

/// A verb of ours, or a noun that is one.
struct Verb {
    name: String,
    /// Long and short options, with ros2's short forms of two letters.
    options: BTreeSet<String>,
    /// Other names of the verb.
    aliases: Vec<String>,
}

fn verbs() -> Vec<Verb> {
    let mut all = Vec::new();
    let mut command = CommandLine::command();
    command.build();
    for noun in command.get_subcommands() {
        // `lab` passes its arguments on, and `man` is for packages.
        if ["help", "lab", "man"].contains(&noun.get_name()) {
            continue;
        }
        let verbs: Vec<&Command> = noun
            .get_subcommands()
            .filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
            .collect();
        if verbs.is_empty() || ["demo", "doctor"].contains(&noun.get_name()) {
            all.push(verb_of(noun, noun.get_name().to_owned()));
        }
        for verb in verbs {
            all.push(verb_of(
                verb,
                format!("{} {}", noun.get_name(), verb.get_name()),
            ));
        }
    }
    all
}

fn verb_of(command: &Command, name: String) -> Verb {
    let everywhere = ["json", "interfaces", "help", "version"];
    let arguments = command.get_arguments();
    let arguments = arguments.filter(|arg| !everywhere.contains(&arg.get_id().as_str()));
    let arguments = arguments.filter(|arg| !arg.is_positional());
    let mut options: BTreeSet<String> = arguments.flat_map(words_of).collect();
    for (of_hello, short, long) in crate::arguments::SHORT_FORMS {
        let is_of_verb = if of_hello {
            name == "doctor hello"
        } else {
            name == "doctor"
        };
        if is_of_verb && options.contains(long) {
            options.insert(short.to_owned());
        }
    }
    Verb {
        name,
        options,
        aliases: command.get_all_aliases().map(str::to_owned).collect(),
    }
}

/// All spellings of an option.
fn words_of(arg: &Arg) -> Vec<String> {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|word| format!("--{word}"));
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|word| format!("--{word}"));
    short.into_iter().chain(long).chain(aliases).collect()
}

/// The source file of a verb.
fn source(name: &str) -> PathBuf {
    let by_exception = PRINTED_BY.iter().find(|(verb, _)| *verb == name);
    if let Some((_, file)) = by_exception {
        return manifest_folder().join("src").join(file);
    }
    let file = match name.split_once(' ') {
        None => name.to_owned(),
        Some((noun, verb)) => {
            let module = match verb {
                "pub" => "publish".into(),
                "bw" => "bandwidth".into(),
                "type" => "type_of".into(),
                "hello" => "multicast_hello".into(),
                verb => verb.replace('-', "_"),
            };
            format!("{noun}/{module}")
        }
    };
    let folder = manifest_folder().join("src");
    let candidates = [
        folder.join(format!("{file}.rs")),
        folder.join(&file).join("mod.rs"),
        folder
            .join(file.split('/').next().unwrap_or(&file))
            .join("mod.rs"),
    ];
    let found = candidates.iter().find(|path| path.is_file());
    found
        .unwrap_or_else(|| panic!("no source of {name}"))
        .clone()
}

/// The JSON that a verb prints with `--json`, as its source shows.
fn json_format(name: &str) -> &'static str {
    let path = source(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let has = |part: &str| text.contains(part);
    if has(".json_line(") {
        "one line per result"
    } else if [
        "console.json(",
        ".json(&",
        ".names(",
        ".typed_names(",
        "print_created(",
        "report(",
    ]
    .iter()
    .any(|part| has(part))
    {
        "one document"
    } else {
        "errors only"
    }
}

fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(" ")
}

fn page() -> String {
    let ros2 = ros2_verbs();
    let mut text = String::from(
        "# Verbs, options and formats\n\n\
         Every verb of `pteros`, with the options that `ros2` has for the same verb, the further options, and the format of the output. \
         [Commands](commands.md) explains each option. `--json` and `--interfaces` hold for every verb. \
         A test generates this page from the code.\n\n\
         Text *as ros2* has the lines of `ros2`, so that scripts which parse them go on. With `--json`, a verb prints one document, \
         or one line per result as long as it runs. *Errors only*: the verb prints no result of its own; `--json` holds for its errors.\n\n\
         | verb | options of ros2 | further options | text | `--json` |\n|---|---|---|---|---|\n",
    );
    for verb in verbs() {
        let of_ros2 = ros2.get(verb.name.as_str());
        let known = of_ros2.cloned().unwrap_or_default();
        let (same, more): (Vec<&str>, Vec<&str>) = verb
            .options
            .iter()
            .map(String::as_str)
            .partition(|option| known.contains(option));
        let own = OWN_TEXT.iter().find(|(name, _)| *name == verb.name);
        let format = match (own, of_ros2) {
            (Some((_, word)), _) => *word,
            (None, Some(_)) => "as ros2",
            (None, None) => "own",
        };
        let json = json_format(&verb.name);
        let (same, more) = (joined(same.into_iter()), joined(more.into_iter()));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {same} | {more} | {format} | {json} |",
            verb.name
        );
    }
    text
}

#[test]
fn the_page_is_that_of_the_code() {
    let path = manifest_folder().join(RELATIVE);
    let page = page();
    if std::env::var_os("PTEROS_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let line = written
        .lines()
        .zip(page.lines())
        .find(|(is, should)| is != should);
    assert!(
        written == page,
        "{RELATIVE} differs from the code, first at {line:?}; \
         write it with: PTEROS_WRITE_DOCS=1 cargo test -p pteros-cli command_table"
    );
}

/// A script for ros2 finds each verb with each option.
#[test]
fn every_verb_and_option_of_ros2_is_there() {
    let ours = verbs();
    let mut missing = Vec::new();
    for (name, options) in ros2_verbs() {
        let found = ours.iter().find(|verb| {
            let noun = verb.name.split(' ').next().unwrap_or_default();
            let aliased = |alias: &String| format!("{noun} {alias}") == name;
            // Options before the verb hold for all verbs of a noun.
            verb.name == name || verb.aliases.iter().any(aliased) || noun == name
        });
        let Some(verb) = found else {
            missing.push(name.to_owned());
            continue;
        };
        let absent = options
            .iter()
            .filter(|option| !verb.options.contains(**option));
        missing.extend(absent.map(|option| format!("{name} {option}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
