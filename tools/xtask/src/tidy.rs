//! `cargo xtask tidy`: checks the sources for rules that rustfmt and clippy lack.
//! Every rule is a line-based check over rustfmt's layout, fast enough to run as a
//! test. Every finding says how to fix it.

mod crate_arrows;
mod cycles;
mod errors;
mod lock_ranks;
mod modules;
mod tokens;
mod type_sizes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::checkout::root;
use crate::finding::Finding;
use crate::prose::metaphors;
use crate::{coverage, documents, seeded_bugs};

/// Largest number of lines of a file before its tests.
const FILE_LINES_MAX: usize = 900;
/// Largest number of lines of a script or style sheet of a web page.
const PAGE_FILE_LINES_MAX: usize = 600;
/// Code that lets text of the network become part of a page's document or program. The
/// words are split, so that this file passes the check.
const PAGE_BANNED: &[&str] = &[
    concat!("inner", "HTML"),
    concat!("outer", "HTML"),
    concat!("insertAdjacent", "HTML"),
    concat!("document", ".write"),
    concat!("ev", "al("),
    concat!("new Func", "tion("),
];
/// Largest number of lines of a function.
const FUNCTION_LINES_MAX: usize = 120;

/// Files, and folders, that may contain `unsafe`. The folders are the plug-in for ROS 2
/// and its tests, and the C API, whose interfaces are C ABIs, and what both use to read
/// structs of C and C++. Those of `python` call Python's C API and
/// replace signal handlers. The last but one is the counting allocator of a test.
/// The last is a program over another stack, whose loan API is unsafe.
const UNSAFE_FILES: &[&str] = &[
    "crates/msg/src/plain.rs",
    "crates/net/src/sys.rs",
    "crates/shm/src/chunk.rs",
    "crates/shm/src/memory.rs",
    "crates/container/src/loader.rs",
    "crates/typesupport/src/",
    "crates/rmw_pteros/src/",
    "crates/rmw_pteros/tests/",
    "crates/c/src/",
    "crates/python/src/ffi.rs",
    "crates/python/src/raw_message.rs",
    "crates/test_support/src/allocations.rs",
    "verify/interop/host/iceoryx2/src/main.rs",
];

/// Allow list of the platform layer: files (or folders of leaf crates) that may
/// lift clippy's ban on clocks, threads, sleeping, randomness and the environment
/// (clippy.toml).
const PLATFORM_ALLOW_LIST: &[&str] = &[
    "crates/runtime/src/config.rs",
    "crates/runtime/src/thread_buffer.rs",
    "crates/runtime/src/udp.rs",
    "crates/runtime/src/scheduler/background_io.rs",
    "crates/pteros/src/executors/multi_threaded.rs",
    "crates/pteros/src/executors/isolated.rs",
    "crates/rcl/src/guard_condition.rs",
    "crates/rcl/src/local_time.rs",
    "crates/pteros/build.rs",
    "crates/c/build.rs",
    "crates/c/tests/",
    "crates/bag/src/player/state.rs",
    "crates/bag_components/src/recorder.rs",
    "crates/container/src/container/executors.rs",
    "crates/container/src/index.rs",
    "crates/container/src/log_format.rs",
    "crates/container/src/program.rs",
    "crates/launch/src/command_output.rs",
    "crates/launch/src/run/",
    "crates/msg/src/folder.rs",
    "crates/msg/src/build.rs",
    "crates/net/src/clock.rs",
    "crates/net/src/poll.rs",
    "crates/net/src/sys.rs",
    "crates/pteros/examples/",
    "crates/python/tests/",
    "crates/rmw_pteros/build.rs",
    "crates/rmw_pteros/src/header_check.rs",
    "crates/shm/examples/",
    "crates/shm/src/memory.rs",
    "crates/store/src/thread.rs",
    "crates/zenoh/src/certificate_watch.rs",
    "crates/zenoh/src/declarer.rs",
    "crates/zenoh/src/session.rs",
    "crates/zenoh/examples/",
    "crates/test_support/src/",
    "crates/view/",
    "crates/zenoh/tests/",
    "crates/cli/",
    "crates/security/examples/crypto_transform_cost.rs",
    "verify/sim/src/main.rs",
    "verify/sim/src/simulation/threads.rs",
    "verify/interop/",
    "tools/",
    "examples/",
];

/// Words that mark unfinished work. They are split, so that this file passes the
/// check.
const UNFINISHED_MARKERS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X:"),
    concat!("//! Place", "holder"),
];

/// Start of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("/work", "space/"),
];

#[derive(clap::Args)]
pub struct Arguments {
    /// Every import cycle, of all crates or of the one in this folder
    #[arg(long, value_name = "CRATE FOLDER")]
    cycles: Option<Option<String>>,
}

/// Runs the command and returns its output.
pub fn run(arguments: &Arguments) -> Result<String> {
    let (files, findings) = match &arguments.cycles {
        None => check(&root())?,
        Some(folder) => all_cycles(&root(), folder.as_ref())?,
    };
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(format!("{files} files are tidy")),
        count => bail!("{count} findings"),
    }
}

/// Checks every text file below `root`. Returns their number and the findings.
fn check(root: &Path) -> Result<(usize, Vec<Finding>)> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    let mut findings = Vec::new();
    let mut files = 0;
    for roots in crate_roots(root, &paths).values() {
        findings.extend(cycles::check(roots, &mut reader(root)));
    }
    let manifests = paths.iter().filter(|path| path.ends_with("Cargo.toml"));
    let mut names = Vec::new();
    for manifest in manifests {
        let text = fs::read_to_string(manifest).context("read a manifest")?;
        let folder = manifest
            .parent()
            .and_then(|folder| folder.strip_prefix(root).ok());
        let name = crate_arrows::package_name(&text);
        names.extend(
            folder
                .zip(name)
                .map(|(folder, name)| (folder.to_owned(), name.to_owned())),
        );
    }
    findings.extend(seeded_bugs::check_table(root));
    let mut sizes = type_sizes::TypeSizes::default();
    for path in paths {
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        files += 1;
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        findings.extend(check_file(&name, &text));
        sizes.add(&name, &text);
        if name.ends_with(".md") {
            findings.extend(documents::check(root, &name, &text));
        }
        if name == crate_arrows::MAP_DOCUMENT {
            findings.extend(crate_arrows::check_map(&text, &names));
        }
        if name == coverage::COVERAGE_DOCUMENT {
            findings.extend(coverage::check(root, &text));
        }
    }
    findings.extend(sizes.findings());
    Ok((files, findings))
}

/// Folders of the crates and their root files, relative to `root`.
fn crate_roots(root: &Path, paths: &[PathBuf]) -> BTreeMap<String, Vec<String>> {
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        let folder = ["/src/lib.rs", "/src/main.rs"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        if let Some(folder) = folder {
            let roots = crates.entry(folder.to_owned()).or_default();
            roots.push(name.to_string());
        }
    }
    crates
}

/// Reads files relative to `root`.
fn reader(root: &Path) -> impl FnMut(&Path) -> Option<String> {
    |path| fs::read_to_string(root.join(path)).ok()
}

/// Every import cycle over the limits, in all crates or in one, with the number of
/// crates.
fn all_cycles(root: &Path, folder: Option<&String>) -> Result<(usize, Vec<Finding>)> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    let mut crates = crate_roots(root, &paths);
    if let Some(folder) = folder {
        crates.retain(|name, _| name == folder.trim_end_matches('/'));
    }
    let found = crates
        .values()
        .flat_map(|roots| cycles::check(roots, &mut reader(root)));
    Ok((crates.len(), found.collect()))
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
            // Inputs and findings of fuzzing, which are not in git.
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

/// The findings of one file. `path` is relative to the root, with slashes.
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
        if let Some(word) = UNFINISHED_MARKERS.iter().find(|word| line.contains(**word)) {
            add(index + 1, format!("{word}: finish it or leave it out"));
        }
        if let Some(start) = MACHINE_PATHS.iter().find(|start| names_path(line, start)) {
            add(
                index + 1,
                format!("{start}…: a path of one machine; make it relative or a setting"),
            );
        }
    }
    metaphors::check(path, text, &mut add);
    check_page_file(path, text, &mut add);
    if path.ends_with("Cargo.toml") && !path.starts_with("examples/") {
        crate_arrows::check_manifest(text, &mut add);
    }
    if path.ends_with(".rs") {
        check_rust_file(path, text, &mut add);
        errors::check(path, text, &mut add);
        lock_ranks::check(path, text, &mut add);
    }
    findings
}

/// The rules of scripts and style sheets of a web page, except vendored ones.
fn check_page_file(path: &str, text: &str, add: &mut impl FnMut(usize, String)) {
    let is_script = path.ends_with(".js") || path.ends_with(".mjs");
    if !(is_script || path.ends_with(".css")) || path.contains("/vendor/") {
        return;
    }
    if !(text.starts_with("// ") || text.starts_with("/* ")) {
        add(1, "no header: say what the file is".into());
    }
    if text.lines().count() > PAGE_FILE_LINES_MAX {
        add(
            1,
            format!("over {PAGE_FILE_LINES_MAX} lines: find the second thing in it"),
        );
    }
    let is_test = path.contains("/tests/");
    for (index, line) in text.lines().enumerate().filter(|_| is_script && !is_test) {
        if let Some(word) = PAGE_BANNED.iter().find(|word| line.contains(**word)) {
            add(
                index + 1,
                format!("{word}: text enters the document by textContent"),
            );
        }
    }
}

/// Whether `start` begins a path in `line`, and does not continue one.
fn names_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}".contains(c))
    })
}

fn check_rust_file(path: &str, text: &str, add: &mut impl FnMut(usize, String)) {
    if !text.trim_start().starts_with("//!") {
        add(
            1,
            "no //! header: say in 3 to 15 lines what the file is and what it never does".into(),
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
                "{tests_from} lines before tests, over {FILE_LINES_MAX}: split the file by topic"
            ),
        );
    }
    for (index, line) in lines.iter().enumerate() {
        let code = code_of(line);
        if path.starts_with("crates/") && path.contains("/src/") {
            seeded_bugs::check_product_line(line)
                .into_iter()
                .for_each(|message| add(index + 1, message));
        }
        if !may_be_unsafe(path) && is_unsafe(code) {
            add(
                index + 1,
                format!("unsafe is allowed in {} only", UNSAFE_FILES.join(" and ")),
            );
        }
        if (is_test_file || index >= tests_from) && code.contains(concat!("thread::", "sleep")) {
            add(
                index + 1,
                "a test that sleeps: advance simulated time or wait for the event".into(),
            );
        }
        let lifts = code.contains(concat!("clippy::disallowed", "_methods"));
        if lifts
            && !is_test_file
            && !PLATFORM_ALLOW_LIST
                .iter()
                .any(|door| path.starts_with(door))
        {
            add(
                index + 1,
                "lifts the ban list: take the value as an argument, or add the file to PLATFORM_ALLOW_LIST in \
                 tools/xtask/src/tidy.rs"
                    .into(),
            );
        }
    }
    if !generated {
        for (line, length) in long_functions(&lines) {
            add(
                line,
                format!(
                    "a function of {length} lines, over {FUNCTION_LINES_MAX}: move parts into \
                         helper functions"
                ),
            );
        }
    }
}

/// The line without its comment. A `//` in a string cuts the line too early, which
/// does not affect these checks.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Whether a file, or the folder that it lies in, may contain `unsafe`.
fn may_be_unsafe(path: &str) -> bool {
    let allows = |one: &str| path == one || (one.ends_with('/') && path.starts_with(one));
    UNSAFE_FILES.iter().any(|one| allows(one))
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

/// First lines (from 1) and lengths of functions that are too long. rustfmt closes
/// a function with a brace at the indentation of its first line.
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
        // A one-line body or a declaration in a trait has no such closing brace.
        // Without this check, the brace of the next function would be taken.
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
    fn each_rule_finds_its_violation() {
        let path = "crates/runtime/src/x.rs";
        let head = "//! X.\n";
        let todo = format!("{head}fn f() {{ {}) }}\n", UNFINISHED_MARKERS[0]);
        assert_eq!(messages(path, &todo).len(), 1);
        let machine = format!("{head}const A: &str = \"{}me\";\n", MACHINE_PATHS[0]);
        assert!(messages(path, &machine)[0].starts_with("2 "));
        assert!(messages(path, "fn f() {}\n")[0].contains("no //! header"));
        let block = format!("{head}fn f() {{\n    {}g() }}\n}}\n", "unsafe { ");
        assert!(messages(path, &block)[0].contains("unsafe is allowed"));
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
        let script = "crates/view/page/a.js";
        assert!(messages(script, "let a;\n")[0].contains("no header"));
        let text = format!("// A script.\nb.{} = a;\n", PAGE_BANNED[0]);
        assert!(messages(script, &text)[0].contains("textContent"));
        assert_eq!(messages("crates/view/page/vendor/a.js", &text), [""; 0]);
        let long = format!("// A script.\n{}", "f();\n".repeat(PAGE_FILE_LINES_MAX));
        assert!(messages(script, &long)[0].contains("over 600 lines"));
    }

    #[test]
    fn function_lengths_end_at_the_functions_own_brace() {
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
}
