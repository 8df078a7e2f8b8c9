//! `cargo xtask lines`: lines of the tracked sources, by crate and kind.
//!
//! Inline tests are what stands below the `#[cfg(test)]` of a module, and whole files of
//! `src` that are named as tests. Blank lines and comments count.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::checkout::{CRATE_FOLDERS, root, tracked_files};

/// Endings of files that are sources.
const SOURCES: [&str; 14] = [
    ".rs", ".py", ".c", ".h", ".cpp", ".hpp", ".sh", ".idl", ".js", ".mjs", ".css", ".html",
    ".xml", ".toml",
];

/// What a line is. Everything but the last two is written by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Product,
    InlineTests,
    Tests,
    Tools,
    Verification,
    Examples,
    Generated,
    Vendored,
}

use Kind::*;

const KINDS: [(Kind, &str); 8] = [
    (Product, "product"),
    (InlineTests, "inline tests"),
    (Tests, "tests"),
    (Tools, "tools"),
    (Verification, "verification"),
    (Examples, "examples"),
    (Generated, "generated"),
    (Vendored, "vendored"),
];

/// Lines of each kind.
type Row = BTreeMap<Kind, usize>;

/// Runs the command. Returns the table.
pub fn run() -> Result<String> {
    let root = root();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for path in tracked_files(&root, &[])? {
        if SOURCES.iter().any(|ending| path.ends_with(ending)) {
            let file = root.join(&path);
            let bytes = std::fs::read(&file).with_context(|| format!("read {path}"))?;
            let text = String::from_utf8_lossy(&bytes);
            count(&path, &text, rows.entry(owner(&path)).or_default());
        }
    }
    Ok(table(&rows))
}

/// The crate of a file, or its first folder.
fn owner(path: &str) -> String {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or(path);
    match parts.next() {
        Some(second)
            if CRATE_FOLDERS.contains(&first)
                && Path::new(path) != Path::new(first).join(second) =>
        {
            format!("{first}/{second}")
        }
        Some(_) => first.to_owned(),
        None => "(root)".to_owned(),
    }
}

fn count(path: &str, text: &str, row: &mut Row) {
    let lines = text.lines().count();
    let mut add = |kind: Kind, lines: usize| *row.entry(kind).or_default() += lines;
    let is_named_as_tests = path.contains("/tests/") || path.ends_with("tests.rs");
    let folder = path.split('/').next().unwrap_or_default();
    if path.contains("/generated/") {
        add(Generated, lines);
    } else if path.contains("/vendor/") {
        add(Vendored, lines);
    } else if path.contains("/examples/") || folder == "examples" {
        add(Examples, lines);
    } else if folder == "verify" {
        add(Verification, lines);
    } else if folder != "crates" {
        add(Tools, lines);
    } else if path.starts_with("crates/test_support/") {
        add(Tests, lines);
    } else if is_named_as_tests {
        let is_inline = path.split('/').nth(2) == Some("src");
        add(if is_inline { InlineTests } else { Tests }, lines);
    } else {
        let product = if path.ends_with(".rs") {
            lines_before_tests(text)
        } else {
            lines
        };
        add(Product, product);
        add(InlineTests, lines - product);
    }
}

/// Lines before the first module of tests that stands in the file itself.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: &usize| {
        let rest = lines.get(at + 1..).unwrap_or_default();
        let item = rest.iter().find(|line| !line.starts_with("#["));
        lines[*at].starts_with("#[cfg(test)]")
            && item.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    (0..lines.len()).find(begins).unwrap_or(lines.len())
}

fn table(rows: &BTreeMap<String, Row>) -> String {
    let width = rows.keys().map(String::len).max().unwrap_or(0).max(16);
    let mut out = format!("{:width$}", "");
    for (_, name) in KINDS {
        out += &format!("{name:>14}");
    }
    let mut sum = Row::new();
    let mut print = |name: &str, row: &Row| {
        out += &format!("\n{name:width$}");
        for (kind, _) in KINDS {
            out += &format!("{:>14}", row.get(&kind).copied().unwrap_or(0));
        }
    };
    for (name, row) in rows {
        print(name, row);
        for (kind, lines) in row {
            *sum.entry(*kind).or_default() += lines;
        }
    }
    print("all", &sum);
    let by_hand: usize = sum
        .iter()
        .filter(|(kind, _)| ![Generated, Vendored].contains(kind))
        .map(|(_, lines)| lines)
        .sum();
    out + &format!("\nwritten by hand: {by_hand}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(path: &str, text: &str) -> Vec<(Kind, usize)> {
        let mut row = Row::new();
        count(path, text, &mut row);
        row.into_iter().filter(|(_, lines)| *lines > 0).collect()
    }

    #[test]
    fn lines_are_of_the_kind_that_their_place_says() {
        let text = "a\n#[cfg(test)]\nmod tests {\n}\n";
        let split = [(Product, 1), (InlineTests, 3)];
        let declared = "#[cfg(test)]\nmod tests;\nmod b;\n";
        assert_eq!(kinds("crates/msg/src/a.rs", declared), [(Product, 3)]);
        assert_eq!(kinds("crates/msg/src/lib.rs", text), split);
        assert_eq!(
            kinds("crates/msg/src/cdr/tests.rs", text),
            [(InlineTests, 4)]
        );
        assert_eq!(kinds("crates/msg/tests/x.rs", text), [(Tests, 4)]);
        assert_eq!(kinds("crates/msg/examples/x.rs", text), [(Examples, 4)]);
        let helper = "crates/test_support/src/peer.rs";
        assert_eq!(kinds(helper, text), [(Tests, 4)]);
        assert_eq!(kinds("tools/xtask/src/tests.rs", text), [(Tools, 4)]);
        assert_eq!(kinds("verify/sim/src/lib.rs", text), [(Verification, 4)]);
        assert_eq!(kinds("crates/a/src/generated/b.rs", text), [(Generated, 4)]);
        assert_eq!(kinds("crates/python/python/a.py", text), [(Product, 4)]);
        assert_eq!(kinds("crates/view/page/a.js", text), [(Product, 4)]);
        assert_eq!(kinds("crates/view/tests/page/a.mjs", text), [(Tests, 4)]);
        let vendored = "crates/view/page/vendor/three/a.js";
        assert_eq!(kinds(vendored, text), [(Vendored, 4)]);
    }

    #[test]
    fn a_file_belongs_to_its_crate_or_first_folder() {
        assert_eq!(owner("crates/msg/src/lib.rs"), "crates/msg");
        assert_eq!(owner("examples/robot/src/main.rs"), "examples");
        assert_eq!(owner("Cargo.toml"), "(root)");
    }
}
