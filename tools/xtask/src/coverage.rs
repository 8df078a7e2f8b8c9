//! Checks `docs/spec-coverage.md`: every path and every test that it names exists,
//! and every row names a test or states a gap.
//!
//! It starts at the first heading and reads code spans with a slash.
//! `rtps/wire/gap.rs` is below `crates/rtps/src/` (or `crates/rtps/`, or the root).
//! `tests/x.rs` is a module of the crate's `tests/testsuite/`, or a program.
//! `…/x.rs::a_test` is a test in it, and `…/x.txt::a_scenario` a simulated scenario.
//! `::another` is a further one in the last file of the same line.

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkout::CRATE_FOLDERS;
use crate::finding::Finding;
use crate::test_programs::TESTSUITE;

/// Path of the document.
pub const COVERAGE_DOCUMENT: &str = "docs/spec-coverage.md";

/// The errors of the document in `text`.
pub fn check(root: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let begin = text.lines().take_while(|line| !line.starts_with("## "));
    let begin = begin.count();
    for (index, line) in text.lines().enumerate().skip(begin) {
        let mut add = |message: String| {
            findings.push(Finding {
                path: COVERAGE_DOCUMENT.into(),
                line: index + 1,
                message,
            });
        };
        let mut tests = 0;
        let mut file: Option<PathBuf> = None;
        for span in line.split('`').skip(1).step_by(2) {
            let (path, test) = match span.split_once("::") {
                Some((path, test)) => (path, Some(test)),
                None => (span, None),
            };
            if path.contains('/') {
                file = find(root, path);
                if file.is_none() {
                    add(format!(
                        "{path}: no such file or folder, below a crate or here"
                    ));
                }
            } else if !path.is_empty() {
                // Not a path: `EndpointEvent`.
                continue;
            }
            if let (Some(test), Some(file)) = (test, &file) {
                tests += 1;
                if !is_test(file, test) {
                    add(format!("{span}: no such test; name the one that shows it"));
                }
            }
        }
        if is_row(line) && tests == 0 && !line.contains("| gap") {
            add("neither a test nor \"gap\" in the last column".into());
        }
    }
    findings
}

/// Whether the line is a table row, and neither heading nor separator.
fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| clause |")
}

/// The file or folder of a shortened path.
pub fn find(root: &Path, path: &str) -> Option<PathBuf> {
    let module = path.replacen("tests/", &format!("tests/{TESTSUITE}/"), 1);
    find_exactly(root, path).or_else(|| find_exactly(root, &module))
}

/// The same without the modules of integration tests.
fn find_exactly(root: &Path, path: &str) -> Option<PathBuf> {
    let (krate, rest) = path.split_once('/')?;
    let mut places = Vec::from([root.join(path)]);
    for folder in CRATE_FOLDERS {
        let krate = root.join(folder).join(krate);
        places.extend([krate.join("src").join(rest), krate.join(rest)]);
    }
    places.into_iter().find(|place| place.exists())
}

/// Whether `file` contains that scenario, or that function as a test or a test
/// case, or whether the `mod.rs` or `main.rs` beside it does.
fn is_test(file: &Path, name: &str) -> bool {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let text = read(file);
    if file.extension().is_some_and(|extension| extension == "txt") {
        let scenario = |line: &str| line.split([':', ' ']).next() == Some(name);
        return text.lines().any(scenario);
    }
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(|line| line.contains(&head)) else {
        return false;
    };
    // Attributes may stand between `#[test]` and the function.
    let before = lines[..at].iter().rev();
    let attributes = before.take_while(|line| {
        let line = line.trim();
        !line.is_empty() && line != "}" && !line.ends_with('{')
    });
    if attributes.into_iter().any(|line| line.trim() == "#[test]") {
        return true;
    }
    let item = format!("{name},");
    if lines.iter().any(|line| line.trim() == item) {
        return true;
    }
    let plays = |c: char| !(c.is_alphanumeric() || c == '_');
    let mut beside = ["mod.rs", "main.rs"]
        .map(|main| file.with_file_name(main))
        .into_iter();
    beside.any(|main| main != file && read(&main).split(plays).any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_references_are_found_and_valid_ones_are_not() {
        let root = crate::checkout::root();
        let document = fs::read_to_string(root.join(COVERAGE_DOCUMENT)).unwrap();
        let rows = document.lines().filter(|line| is_row(line)).count();
        assert!(rows > 100, "only {rows} rows were read");
        assert_eq!(check(&root, &document), []);

        let messages = |row: &str| -> Vec<String> {
            let text = format!("`before/the/heading.rs`\n## Part\n{row}\n");
            let found = check(&root, &text).into_iter();
            found.map(|finding| finding.message).collect()
        };
        let good = [
            "| 8.3 | | `rtps/wire/gap.rs` | `rtps/tests/testsuite/byte_tables.rs::gap` `::header` |",
            "| 8.3 | | — | gap: not there |",
            "| 2.2 | | | `pteros/tests/testsuite/conformance/samples.rs::keep_last_keeps_the_last` |",
            "| 2.2 | | | `sim/tests/scenarios/partition.txt::two_wildcards_never_match` |",
            "| 2.2 | | | `examples/shapes/tests/vendors.rs::old_shapes_expire` |",
            "Told as `EndpointEvent`.",
        ];
        for row in good {
            assert_eq!(messages(row), [""; 0], "{row}");
        }
        let bad = [
            ("| 8.3 | | `rtps/wire/gap.rs` | |", "neither a test"),
            ("| 8.3 | | `rtps/wire/hole.rs` | gap |", "no such file"),
            (
                "`rtps/tests/testsuite/byte_tables.rs::hole`",
                "no such test",
            ),
            (
                "`rtps/tests/testsuite/byte_tables.rs::gap` `::hole`",
                "no such test",
            ),
            // These are functions, but not of a test.
            ("`rtps/wire/gap.rs::parse`", "no such test"),
            (
                "`pteros/tests/testsuite/conformance/back_pressure.rs::keep_all`",
                "no such test",
            ),
        ];
        for (row, message) in bad {
            let found = messages(row);
            assert_eq!(found.len(), 1, "{row}: {found:?}");
            assert!(found[0].contains(message), "{row}: {found:?}");
        }
    }
}
