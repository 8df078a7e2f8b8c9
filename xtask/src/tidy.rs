//! `cargo xtask tidy`: reads the sources for what rustfmt and clippy do not
//! see. Every rule is a line-based check over rustfmt's layout, fast enough to
//! run as a test too, and every finding says what to do.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::coverage;

/// Lines of a file before its tests.
const FILE_LINES_MAX: usize = 900;
/// Lines of one function.
const FUNCTION_LINES_MAX: usize = 120;

/// Files that may hold `unsafe`. The last but one is a test's allocator that
/// counts, the last a program over another stack, whose API to lend memory is
/// unsafe.
const UNSAFE_FILES: &[&str] = &[
    "crates/msg/src/plain.rs",
    "crates/net/src/sys.rs",
    "crates/shm/src/chunk.rs",
    "crates/shm/src/memory.rs",
    "crates/component/src/loader.rs",
    "crates/pteros/tests/walk/allocations.rs",
    "interop/host/iceoryx2/src/main.rs",
];

/// Files (or folders of leaf crates) that may lift clippy's ban on clocks,
/// threads, sleeping, chance and the environment (clippy.toml).
const DOORS: &[&str] = &[
    "crates/rmw/src/config.rs",
    "crates/rmw/src/udp.rs",
    "crates/rmw/src/helper.rs",
    "crates/pteros/src/executor/multi.rs",
    "crates/pteros/src/executor/isolated.rs",
    "crates/pteros/build.rs",
    "crates/component/src/container/crew.rs",
    "crates/component/src/index.rs",
    "crates/component/src/program.rs",
    "crates/components/build.rs",
    "crates/labnodes/",
    "crates/launch/src/run/",
    "crates/msg/src/folder.rs",
    "crates/msg/src/build.rs",
    "crates/net/src/clock.rs",
    "crates/net/src/poll.rs",
    "crates/pteros/examples/",
    "crates/shm/examples/",
    "crates/store/src/thread.rs",
    "crates/testbed/",
    "crates/lab/",
    "crates/cli/",
    "crates/security/examples/shield_cost.rs",
    "crates/sim/src/main.rs",
    "crates/sim/src/relay.rs",
    "xtask/",
    "interop/",
    "examples/",
];

/// Which crates a crate may use, tests aside. Lower ones come first; the
/// leaves (cli, sim, xtask) may use everything above them in this table.
const ARROWS: &[(&str, &[&str])] = &[
    ("pteros-msg", &[]),
    ("pteros-interfaces", &["pteros-msg"]),
    ("pteros-rtps", &["pteros-msg"]),
    ("pteros-net", &[]),
    ("pteros-shm", &[]),
    ("pteros-store", &[]),
    // rtps for ids and times.
    ("pteros-security", &["pteros-rtps"]),
    (
        "pteros-rmw",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-net",
            "pteros-shm",
            "pteros-store",
            "pteros-security",
        ],
    ),
    // rtps for its values only: ids and names of policies.
    (
        "pteros",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-rmw",
        ],
    ),
    ("pteros-dylib", &["pteros"]),
    ("pteros-component", &["pteros"]),
    (
        "pteros-components",
        &["pteros", "pteros-dylib", "pteros-component"],
    ),
    // For the tests of the box.
    ("misbehaving", &["pteros", "pteros-dylib"]),
    // net for its poll and Ctrl-C.
    (
        "pteros-launch",
        &["pteros", "pteros-component", "pteros-net"],
    ),
    // Knows nothing of Pteros, so that xtask builds without it.
    ("pteros-testbed", &[]),
    // net for Ctrl-C and what it asks of the scheduler, security for keystores.
    (
        "pteros-lab",
        &[
            "pteros-rtps",
            "pteros",
            "pteros-net",
            "pteros-security",
            "pteros-testbed",
        ],
    ),
    // What a container loads of it.
    (
        "pteros-lab-nodes",
        &["pteros", "pteros-dylib", "pteros-lab"],
    ),
    // net for what the doctor asks of the network alone.
    (
        "pteros-cli",
        &[
            "pteros",
            "pteros-component",
            "pteros-launch",
            "pteros-lab",
            "pteros-net",
            "pteros-security",
            "pteros-testbed",
        ],
    ),
    (
        "pteros-sim",
        &[
            "pteros-msg",
            "pteros-rtps",
            "pteros-rmw",
            "pteros",
            "pteros-component",
        ],
    ),
    (
        "pteros-fuzz",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-security",
        ],
    ),
    // Programs over other stacks.
    ("iceoryx2-host", &[]),
    ("zenoh-host", &[]),
    (
        "xtask",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-net",
            "pteros-rmw",
            "pteros",
            "pteros-testbed",
        ],
    ),
];

/// Words that mark unfinished work. Split, so that this file is clean.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X:"),
    concat!("//! Place", "holder"),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("/work", "space/"),
];

/// One thing to mend.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path from the repository's root.
    pub path: String,
    /// Line from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs the command; the text is what to tell the user.
pub fn run(arguments: &[String]) -> Result<String> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask tidy");
    }
    let (files, findings) = check(&root())?;
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(format!("{files} files are tidy")),
        count => bail!("{count} things to mend"),
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Checks every text file below `root`: how many there are, what is wrong.
fn check(root: &Path) -> Result<(usize, Vec<Finding>)> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    let mut findings = Vec::new();
    let mut files = 0;
    for path in paths {
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        files += 1;
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        findings.extend(check_file(&name, &text));
        if name == coverage::DOCUMENT {
            findings.extend(coverage::check(root, &text));
        }
    }
    Ok((files, findings))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        let skipped = name == ".git"
            || name == "shared"
            || name == "__pycache__"
            || (name.starts_with("target") && kind.is_dir())
            // What fuzzing begins with and finds; git does not have them.
            || (["corpus", "artifacts"].contains(&name.as_str()) && kind.is_dir())
            || name.ends_with(".lock");
        if skipped || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), paths)?;
        } else {
            paths.push(entry.path());
        }
    }
    Ok(())
}

/// What is wrong with one file. `path` is relative to the root, with slashes.
fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line: usize, message: String| {
        findings.push(Finding {
            path: path.into(),
            line,
            message,
        });
    };
    for (index, line) in text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| line.contains(**word)) {
            add(index + 1, format!("{word}: finish it or leave it out"));
        }
        if let Some(start) = MACHINE_PATHS.iter().find(|start| names_path(line, start)) {
            add(
                index + 1,
                format!("{start}…: no path of one machine; make it relative or a setting"),
            );
        }
    }
    if path.ends_with("Cargo.toml") && !path.starts_with("examples/") {
        arrows(text, &mut add);
    }
    if path.ends_with(".rs") {
        rust(path, text, &mut add);
    }
    findings
}

/// Whether `start` begins a path in `line`, not continues one.
fn names_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}".contains(c))
    })
}

fn rust(path: &str, text: &str, add: &mut impl FnMut(usize, String)) {
    if !text.trim_start().starts_with("//!") {
        add(
            1,
            "no //! header: say in 3 to 15 lines what the file is and never does".into(),
        );
    }
    let generated = path.contains("/generated/");
    let lines: Vec<&str> = text.lines().collect();
    let tests_from = lines
        .iter()
        .position(|line| line.starts_with("#[cfg(test)]"))
        .unwrap_or(lines.len());
    let is_test_file = path.contains("/tests/") || path.ends_with("tests.rs");
    if tests_from > FILE_LINES_MAX && !generated && !is_test_file {
        add(
            FILE_LINES_MAX,
            format!(
                "{tests_from} lines before tests, over {FILE_LINES_MAX}: find the second thing"
            ),
        );
    }
    for (index, line) in lines.iter().enumerate() {
        let code = code_of(line);
        if !UNSAFE_FILES.contains(&path) && is_unsafe(code) {
            add(
                index + 1,
                format!("unsafe is at home in {} only", UNSAFE_FILES.join(" and ")),
            );
        }
        if (is_test_file || index >= tests_from) && code.contains(concat!("thread::", "sleep")) {
            add(
                index + 1,
                "a test that sleeps: advance fake time or wait for the event".into(),
            );
        }
        let lifts = code.contains(concat!("clippy::disallowed", "_methods"));
        if lifts && !is_test_file && !DOORS.iter().any(|door| path.starts_with(door)) {
            add(
                index + 1,
                "lifts the ban list: take the value as an argument, or make the file a door in \
                 xtask/src/tidy.rs"
                    .into(),
            );
        }
    }
    if !generated {
        for (line, length) in long_functions(&lines) {
            add(
                line,
                format!(
                    "a function of {length} lines, over {FUNCTION_LINES_MAX}: let it decide, \
                         its helpers compute"
                ),
            );
        }
    }
}

/// The line without its comment. A `//` in a string ends it early, which these
/// checks can live with.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn is_unsafe(code: &str) -> bool {
    let code = code.trim_start();
    [
        "unsafe {",
        "unsafe fn ",
        "unsafe impl ",
        "unsafe extern ",
        "unsafe trait ",
    ]
    .iter()
    .any(|form| code.contains(form) && !code.contains(&format!("\"{form}")))
}

/// First lines (from 1) and lengths of functions that are too long. rustfmt
/// closes a function with a brace at the indent of its first line.
fn long_functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        let starts = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "const fn ",
        ];
        if !starts.iter().any(|start| trimmed.starts_with(start)) {
            continue;
        }
        let end = format!("{indent}}}");
        let length = lines[first..]
            .iter()
            .position(|l| *l == end || l.starts_with(&format!("{indent}}} ")))
            .map_or(0, |last| last + 1);
        // A one-line body, or a declaration in a trait, has no such brace of
        // its own; the next function's would be taken for it.
        let own = !trimmed.ends_with('}') && !ends_as_declaration(&lines[first..], indent);
        if own && length > FUNCTION_LINES_MAX {
            found.push((first + 1, length));
        }
    }
    found
}

fn ends_as_declaration(lines: &[&str], indent: &str) -> bool {
    for line in lines {
        if line.ends_with('{') && line.starts_with(indent) {
            return false;
        }
        if line.ends_with(';') {
            return true;
        }
    }
    true
}

/// Checks the arrows of one manifest against [`ARROWS`].
fn arrows(manifest: &str, add: &mut impl FnMut(usize, String)) {
    let mut section = "";
    let mut name = "";
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        if section == "[package]"
            && let Some(value) = line.strip_prefix("name = ")
        {
            name = value.trim_matches('"');
            if !ARROWS.iter().any(|(known, _)| *known == name) {
                add(
                    index + 1,
                    format!("{name}: say in xtask/src/tidy.rs which crates it may use"),
                );
            }
        }
        if section != "[dependencies]" && section != "[build-dependencies]" {
            continue;
        }
        let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = ARROWS.iter().any(|(known, _)| *known == used);
        let allowed = ARROWS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(&[] as &[&str], |(_, allowed)| allowed);
        if is_ours && !allowed.contains(&used) {
            add(
                index + 1,
                format!("{name} may not use {used}: arrows point one way (ARCHITECTURE.md)"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let found = check_file(path, text).into_iter();
        found.map(|f| format!("{} {}", f.line, f.message)).collect()
    }

    #[test]
    fn the_sources_are_tidy() {
        let (files, findings) = check(&root()).unwrap();
        assert!(files > 50, "only {files} files were found");
        let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(list.is_empty(), "\n{}\n", list.join("\n"));
    }

    #[test]
    fn each_rule_finds_its_offence() {
        let path = "crates/rmw/src/x.rs";
        let head = "//! X.\n";
        let todo = format!("{head}fn f() {{ {}) }}\n", UNFINISHED[0]);
        assert_eq!(messages(path, &todo).len(), 1);
        let machine = format!("{head}const A: &str = \"{}me\";\n", MACHINE_PATHS[0]);
        assert!(messages(path, &machine)[0].starts_with("2 "));
        assert!(messages(path, "fn f() {}\n")[0].contains("no //! header"));
        let block = format!("{head}fn f() {{\n    {}g() }}\n}}\n", "unsafe { ");
        assert!(messages(path, &block)[0].contains("unsafe is at home"));
        let lift = format!("{head}#![allow(clippy::disallowed{})]\n", "_methods");
        assert!(messages(path, &lift)[0].contains("lifts the ban list"));
        assert_eq!(messages("crates/cli/src/x.rs", &lift), [""; 0]);
        let nap = format!(
            "{head}#[cfg(test)]\nmod tests {{ thread::{}(d) }}\n",
            "sleep"
        );
        assert!(messages(path, &nap)[0].contains("a test that sleeps"));
        let long = format!("{head}{}", "fn f();\n".repeat(FILE_LINES_MAX));
        assert!(messages(path, &long)[0].contains("lines before tests"));
        assert_eq!(messages(path, &format!("{head}fn f() {{}}\n")), [""; 0]);
    }

    #[test]
    fn long_functions_are_measured_to_their_own_brace() {
        let body = "        step();\n".repeat(FUNCTION_LINES_MAX);
        let text = format!(
            "impl A {{\n    pub fn long(\n        &self,\n    ) -> u8 {{\n{body}    }}\n}}\n"
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(long_functions(&lines), [(2, FUNCTION_LINES_MAX + 4)]);
        let text = format!(
            "trait A {{\n    fn short(&self);\n\n{}}}\n",
            "    // note\n".repeat(200)
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(long_functions(&lines), []);
    }

    #[test]
    fn arrows_point_one_way() {
        let manifest = "[package]\nname = \"pteros-rtps\"\n[dependencies]\npteros-net.workspace = \
                        true\npteros-msg = { workspace = true }\n[dev-dependencies]\n\
                        pteros-rmw.workspace = true\n";
        assert_eq!(
            messages("crates/rtps/Cargo.toml", manifest),
            ["4 pteros-rtps may not use pteros-net: arrows point one way (ARCHITECTURE.md)"]
        );
        let unknown = "[package]\nname = \"pteros-new\"\n";
        assert_eq!(messages("crates/new/Cargo.toml", unknown).len(), 1);
    }
}
