//! The instrumented copy of the workspace: its product crates have all seeded bugs of
//! `verify/seeded_bugs/table.txt`, which tests switch on one at a time.
//!
//! The copy is below the target folder and is built into the same one, so that other
//! crates than those of the workspace are built once. Its crates stand in a folder more,
//! `seeded/`, by which cargo tells them from the product's.

mod insert;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use pteros_seeded_bugs::{SeededBug, TABLE_FILE, table};

use crate::checkout::{present_files, root};
use crate::finding::Finding;
use crate::peers::target_folder;
use crate::tree_copy::TreeCopy;
use insert::{BugEdit, insert};

/// The folder of the copy that has everything but the manifest of the workspace.
const SEEDED: &str = "seeded";

/// The crate of the switches, as sources name it.
const SWITCHES: &str = concat!("pteros_seeded", "_bugs");

/// A copy of the workspace with the seeded bugs.
pub struct InstrumentedCopy {
    manifest: PathBuf,
    target: PathBuf,
}

impl InstrumentedCopy {
    /// Brings the copy to the present sources. Builds nothing.
    ///
    /// # Errors
    /// An edit of the table does not fit its source.
    pub fn make() -> Result<Self> {
        let target = target_folder()?;
        let folder = target.join("seeded_bugs");
        let mut changed = instrumented(table(), &root()).map_err(|problems| {
            anyhow::anyhow!("the seeded bugs do not fit:\n  {}", problems.join("\n  "))
        })?;
        let manifests: Vec<PathBuf> = changed
            .keys()
            .filter_map(|file| manifest_of(file))
            .collect();
        for manifest in manifests {
            let text = std::fs::read_to_string(root().join(&manifest))?;
            changed.insert(manifest.clone(), with_switches(&text, &manifest)?);
        }
        let mut copy = TreeCopy::new(&folder);
        for file in sources()?.into_iter().map(PathBuf::from) {
            let path = root().join(&file);
            if !path.is_file() {
                continue;
            }
            let bytes = match changed.get(&file) {
                Some(text) => text.clone().into_bytes(),
                None => std::fs::read(&path)?,
            };
            match file.to_str() {
                Some("Cargo.toml") => {
                    let text = in_seeded(&String::from_utf8(bytes)?);
                    copy.put(&file, text.as_bytes(), &path)?;
                }
                Some("Cargo.lock") => copy.put(&file, &bytes, &path)?,
                _ => copy.put(&Path::new(SEEDED).join(&file), &bytes, &path)?,
            }
        }
        copy.end()?;
        Ok(Self {
            manifest: folder.join("Cargo.toml"),
            target,
        })
    }

    /// Cargo's arguments that make a command build the copy.
    pub fn arguments(&self) -> [String; 4] {
        let text = |path: &Path| path.display().to_string();
        [
            "--manifest-path".into(),
            text(&self.manifest),
            "--target-dir".into(),
            text(&self.target),
        ]
    }
}

/// The sources below `root` that the table changes, with all of its edits.
fn instrumented(bugs: &[SeededBug], root: &Path) -> Result<BTreeMap<PathBuf, String>, Vec<String>> {
    let mut by_file: BTreeMap<&str, Vec<BugEdit<'_>>> = BTreeMap::new();
    for bug in bugs {
        for edit in &bug.edits {
            by_file.entry(edit.file).or_default().push((bug, edit));
        }
    }
    let mut changed = BTreeMap::new();
    let mut problems = Vec::new();
    for (file, edits) in by_file {
        let Ok(source) = std::fs::read_to_string(root.join(file)) else {
            let names = edits.iter().map(|(bug, edit)| (edit.table_line, bug.name));
            problems.extend(names.map(|(line, name)| {
                format!("{TABLE_FILE}:{line}: {name}: there is no file {file}")
            }));
            continue;
        };
        match insert(&source, &edits) {
            Ok(text) => _ = changed.insert(PathBuf::from(file), text),
            Err(why) => problems.extend(why),
        }
    }
    match problems.is_empty() {
        true => Ok(changed),
        false => Err(problems),
    }
}

/// The manifest of the crate that a source belongs to.
fn manifest_of(source: &Path) -> Option<PathBuf> {
    let folders = source.ancestors();
    let src = folders.into_iter().find(|folder| folder.ends_with("src"))?;
    Some(src.with_file_name("Cargo.toml"))
}

/// A manifest with the crate of the switches among its dependencies.
fn with_switches(manifest: &str, file: &Path) -> Result<String> {
    let section = "\n[dependencies]\n";
    let Some((before, after)) = manifest.split_once(section) else {
        bail!("{}: it has no section [dependencies]", file.display());
    };
    let path = "../../verify/seeded_bugs";
    let line = format!("pteros-seeded-bugs = {{ path = \"{path}\", features = [\"inserted\"] }}\n");
    Ok(format!("{before}{section}{line}{after}"))
}

/// The manifest of the workspace, whose crates are a folder deeper.
fn in_seeded(manifest: &str) -> String {
    ["crates", "tools", "verify", "examples"]
        .iter()
        .fold(manifest.to_owned(), |text, folder| {
            text.replace(&format!("\"{folder}/"), &format!("\"{SEEDED}/{folder}/"))
        })
}

/// What cargo builds of the checkout, and files that it includes.
fn sources() -> Result<Vec<String>> {
    let paths = [
        "Cargo.toml",
        "Cargo.lock",
        "crates",
        "tools",
        "verify",
        "examples",
    ];
    present_files(&root(), &paths.map(str::to_owned))
}

/// Checks for `cargo xtask tidy` that every edit of the table fits its source.
pub fn check_table(root: &Path) -> Vec<Finding> {
    let problems = instrumented(table(), root).err().unwrap_or_default();
    let finding = |problem: String| {
        let mut parts = problem.splitn(3, ':');
        let (path, line, text) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Finding {
            path: path.into(),
            line: line.parse().ok()?,
            message: text.trim().into(),
        })
    };
    problems.into_iter().filter_map(finding).collect()
}

/// Checks a line of a product's source: nothing there names a switch.
pub fn check_product_line(line: &str) -> Option<String> {
    line.contains(SWITCHES).then(|| {
        format!("{SWITCHES} in the product: list the bug in {TABLE_FILE}, and leave it out here")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seeded_bug_fits_the_sources() {
        let changed = instrumented(table(), &root()).unwrap();
        assert!(changed.len() > 50, "{}", changed.len());
        for (file, text) in &changed {
            syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let manifest = manifest_of(file).unwrap();
            let text = std::fs::read_to_string(root().join(&manifest)).unwrap();
            with_switches(&text, &manifest).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let bugs = pteros_seeded_bugs::parse("mutant a: b\nin none.rs\n- c\n+ d\n").unwrap();
        let problems = instrumented(&bugs, &root()).unwrap_err();
        assert_eq!(
            problems,
            ["verify/seeded_bugs/table.txt:2: a: there is no file none.rs"]
        );
    }

    #[test]
    fn the_copy_has_its_crates_in_a_folder_of_its_own() {
        let manifest = "members = [\"crates/*\", \"verify/sim\"]\na = { path = \"crates/a\" }\n";
        let expected = "members = [\"seeded/crates/*\", \"seeded/verify/sim\"]\na = { path = \"seeded/crates/a\" }\n";
        assert_eq!(in_seeded(manifest), expected);
        assert_eq!(
            manifest_of(Path::new("crates/a/src/b/c.rs")).unwrap(),
            Path::new("crates/a/Cargo.toml")
        );
    }

    #[test]
    fn a_switch_in_the_product_is_refused() {
        assert!(check_product_line("if pteros_seeded_bugs::is_on(\"a\") {").is_some());
        assert!(check_product_line("let default = 1;").is_none());
    }
}
