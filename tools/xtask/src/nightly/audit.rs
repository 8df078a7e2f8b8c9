//! Audit of the dependencies: licences, duplicates, yanked and outdated versions.
//!
//! Licences and duplicates come from `cargo metadata`. `cargo update --dry-run` asks the
//! registry's index for every crate of `Cargo.lock` and changes nothing. Its answers
//! stay in cargo's cache, where each version says whether it was yanked.
//!
//! The index does not say whether a crate is maintained:
//! `cargo deny check advisories` does, and runs if cargo-deny is installed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::part::{Clock, Outcome};
use crate::checkout::root;

/// Licences that permit what ours, Apache-2.0, permits.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unlicense",
    "0BSD",
    "CC0-1.0",
    "Unicode-3.0",
    "BSL-1.0",
    "MIT-0",
    // Of webpki-roots alone: the certificates of public authorities, which are data.
    "CDLA-Permissive-2.0",
    // Of libbz2-rs-sys alone: keep the notice, as with BSD.
    "bzip2-1.0.6",
    // Of jpeg-encoder alone: the documentation says that the Independent JPEG Group's work is
    // in it (docs/how_to/robot_without_ros.md).
    "IJG",
    // Of option-ext alone: it binds that crate's files, which are not changed.
    "MPL-2.0",
];

/// Versions of one crate that are no find: two major versions are often needed.
const VERSIONS_MAX: usize = 2;
/// Crates of which the `zenoh` crate brings more, which is behind a feature that is off.
const VERSIONS_BY_ZENOH: &[(&str, usize)] = &[("getrandom", 3), ("hashbrown", 5)];

/// A dependency from the registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    version: String,
    licence: String,
}

/// Audits `Cargo.lock`.
pub fn run() -> Result<Outcome> {
    let clock = Clock::start()?;
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .context("run cargo metadata")?;
    let dependencies = dependencies(&serde_json::from_slice(&output.stdout)?);
    let mut outcome = Outcome {
        executions: dependencies.len() as u64,
        finds: offline_finds(&dependencies),
        ..Outcome::default()
    };
    look_for_yanked(&dependencies, &mut outcome)?;
    check_advisories(&mut outcome);
    clock.stop(&mut outcome)?;
    Ok(outcome)
}

/// Looks up every version in the registry's index, and prints which are outdated.
fn look_for_yanked(dependencies: &[Dependency], outcome: &mut Outcome) -> Result<()> {
    let update = Command::new("cargo")
        .args(["update", "--dry-run", "--verbose", "--color", "never"])
        .current_dir(root())
        .output()
        .context("run cargo update --dry-run")?;
    let said = String::from_utf8_lossy(&update.stderr);
    if !update.status.success() {
        let why = said.lines().last().unwrap_or_default();
        println!("no version was looked up: cargo update --dry-run: {why}");
        return Ok(());
    }
    let is_outdated = |line: &&str| line.contains(" -> v") || line.contains("(available: ");
    said.lines()
        .filter(is_outdated)
        .for_each(|line| println!("{}", line.trim()));
    let folders = index_folders()?;
    let mut unknown = 0;
    for Dependency { name, version, .. } in dependencies {
        let path = index_path(name);
        let cached = folders
            .iter()
            .find_map(|folder| std::fs::read(folder.join(&path)).ok());
        match is_yanked(&cached.unwrap_or_default(), version) {
            None => unknown += 1,
            Some(false) => {}
            Some(true) => outcome
                .finds
                .push(format!("{name} {version} was yanked from the registry")),
        }
    }
    let looked_up = dependencies.len() - unknown;
    println!("{looked_up} versions were looked up, {unknown} are not in cargo's index");
    Ok(())
}

/// The folders where cargo keeps what the indices of registries answered.
fn index_folders() -> Result<Vec<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let user = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let home = home.or_else(user).context("no CARGO_HOME and no HOME")?;
    let registries = home.join("registry/index");
    let entries =
        std::fs::read_dir(&registries).with_context(|| format!("list {}", registries.display()))?;
    entries
        .map(|entry| Ok(entry?.path().join(".cache")))
        .collect()
}

/// Where the index has a crate (The Cargo Book, registry index).
fn index_path(name: &str) -> String {
    let name = name.to_lowercase();
    let part = |range| name.get(range).unwrap_or_default();
    match name.len() {
        0..=2 => format!("{}/{name}", name.len()),
        3 => format!("3/{}/{name}", part(0..1)),
        _ => format!("{}/{}/{name}", part(0..2), part(2..4)),
    }
}

/// Whether a version was yanked, by the cached answer of the index: a line of JSON for
/// each version, between zero bytes. `None` if it has no such version.
fn is_yanked(cached: &[u8], version: &str) -> Option<bool> {
    let mut lines = cached.split(|byte| matches!(byte, 0 | b'\n'));
    lines.find_map(|line| {
        let entry: Value = serde_json::from_slice(line).ok()?;
        let is_it = entry["vers"] == version;
        is_it.then(|| entry["yanked"] == true)
    })
}

/// The packages of the registry in cargo's metadata.
fn dependencies(metadata: &Value) -> Vec<Dependency> {
    let empty = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&empty);
    let is_ours = |package: &&Value| package["source"].is_null();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut found: Vec<Dependency> = packages
        .iter()
        .filter(|package| !is_ours(package))
        .map(|package| Dependency {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: text(&package["license"]),
        })
        .collect();
    found.sort();
    found
}

fn offline_finds(dependencies: &[Dependency]) -> Vec<String> {
    let mut finds = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Dependency {
        name,
        version,
        licence,
        ..
    } in dependencies
    {
        if !is_permitted(licence) {
            finds.push(format!("{name} {version} has the licence {licence:?}"));
        }
        versions.entry(name).or_default().push(version);
    }
    for (name, versions) in versions {
        let by_zenoh = VERSIONS_BY_ZENOH.iter().find(|(of, _)| *of == name);
        if versions.len() > by_zenoh.map_or(VERSIONS_MAX, |(_, most)| *most) {
            finds.push(format!(
                "{name} is built in versions {}",
                versions.join(", ")
            ));
        }
    }
    finds
}

/// Whether a licence expression (SPDX) leaves a choice that is permitted: every part
/// of an AND, one of an OR. `/` is an old form of OR.
fn is_permitted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let inner = expression.trim();
    if let Some((left, right)) = split_outside(inner, " AND ") {
        return is_permitted(left) && is_permitted(right);
    }
    if let Some((left, right)) = split_outside(inner, " OR ") {
        return is_permitted(left) || is_permitted(right);
    }
    match inner
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(within) => is_permitted(within),
        None => LICENCES.contains(&inner),
    }
}

/// Splits at a word outside of parentheses.
fn split_outside<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    text.match_indices(word).find_map(|(at, _)| {
        let (left, right) = (&text[..at], &text[at + word.len()..]);
        let is_outside = left.matches('(').count() == left.matches(')').count();
        is_outside.then_some((left, right))
    })
}

/// Unmaintained crates and known vulnerabilities, if the tool is there.
fn check_advisories(outcome: &mut Outcome) {
    let deny = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command
            .arg("deny")
            .args(arguments)
            .current_dir(root())
            .output()
    };
    if !deny(&["--version"]).is_ok_and(|output| output.status.success()) {
        println!("no advisories: cargo-deny is not installed; cargo install cargo-deny");
        return;
    }
    if deny(&["check", "advisories"]).is_ok_and(|output| !output.status.success()) {
        outcome
            .finds
            .push("cargo deny check advisories fails".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_expression_needs_a_permitted_choice() {
        for permitted in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(is_permitted(permitted), "{permitted}");
        }
        for refused in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND SSPL-1.0",
        ] {
            assert!(!is_permitted(refused), "{refused}");
        }
    }

    #[test]
    fn packages_are_read_from_the_metadata_and_judged() {
        let package = |name: &str, version: &str, licence: &str| {
            serde_json::json!({"name": name, "version": version, "license": licence,
                "source": "registry", "dependencies": []})
        };
        let metadata = serde_json::json!({"packages": [
            {"name": "ours", "version": "0.1.0", "source": null,
                "dependencies": [{"name": "bytes"}]},
            package("bytes", "1.0.0", "MIT"),
            package("hash", "1.0.0", "MIT"),
            package("hash", "2.0.0", "MIT"),
            package("hash", "3.0.0", "GPL-3.0"),
        ]});
        let found = dependencies(&metadata);
        assert_eq!(found.len(), 4);
        assert_eq!(
            offline_finds(&found),
            [
                "hash 3.0.0 has the licence \"GPL-3.0\"",
                "hash is built in versions 1.0.0, 2.0.0, 3.0.0"
            ]
        );
    }

    #[test]
    fn the_indexs_cached_answer_tells_yanked_versions() {
        let cached = b"\x03\x02\0\0\0etag: x\x001.0.0\0{\"name\":\"hash\",\"vers\":\"1.0.0\",\
            \"yanked\":false}\x001.0.1\0{\"name\":\"hash\",\"vers\":\"1.0.1\",\"yanked\":true}\0";
        assert_eq!(is_yanked(cached, "1.0.0"), Some(false));
        assert_eq!(is_yanked(cached, "1.0.1"), Some(true));
        assert_eq!(is_yanked(cached, "1.0"), None);
        assert_eq!(is_yanked(b"", "1.0.0"), None);
    }

    #[test]
    fn the_index_has_a_folder_for_the_first_letters() {
        assert_eq!(index_path("a"), "1/a");
        assert_eq!(index_path("cc"), "2/cc");
        assert_eq!(index_path("md5"), "3/m/md5");
        assert_eq!(index_path("Inflector"), "in/fl/inflector");
    }
}
