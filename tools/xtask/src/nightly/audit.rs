//! Audit of the dependencies: licences, duplicates, yanked and outdated versions.
//!
//! Licences and duplicates come from `cargo metadata`, the rest from the registry's
//! index by `cargo info`. The index does not say whether a crate is maintained:
//! `cargo deny check advisories` does, and runs if cargo-deny is installed.

use std::collections::BTreeMap;
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
    /// A crate of this workspace asks for it.
    is_direct: bool,
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
    let mut unknown = 0;
    for dependency in dependencies
        .iter()
        .filter(|dependency| dependency.is_direct)
    {
        match look_up(dependency)? {
            LookUp::Unknown => unknown += 1,
            LookUp::Yanked => outcome.finds.push(format!(
                "{} {} was yanked from the registry",
                dependency.name, dependency.version
            )),
            LookUp::Outdated(latest) => {
                println!(
                    "{} {}: latest is {latest}",
                    dependency.name, dependency.version
                );
            }
            LookUp::Current => {}
        }
    }
    if unknown > 0 {
        println!("{unknown} crates could not be looked up; is the registry reachable?");
    }
    check_advisories(&mut outcome);
    clock.stop(&mut outcome)?;
    Ok(outcome)
}

/// The packages of the registry in cargo's metadata.
fn dependencies(metadata: &Value) -> Vec<Dependency> {
    let empty = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&empty);
    let is_ours = |package: &&Value| package["source"].is_null();
    let mut direct = Vec::new();
    for package in packages.iter().filter(is_ours) {
        let named = package["dependencies"].as_array().unwrap_or(&empty);
        direct.extend(named.iter().filter_map(|one| one["name"].as_str()));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut found: Vec<Dependency> = packages
        .iter()
        .filter(|package| !is_ours(package))
        .map(|package| Dependency {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: text(&package["license"]),
            is_direct: direct.iter().any(|name| package["name"] == **name),
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

/// What the registry says of a version.
#[derive(Debug, PartialEq, Eq)]
enum LookUp {
    Current,
    Outdated(String),
    Yanked,
    /// It was not reachable.
    Unknown,
}

fn look_up(dependency: &Dependency) -> Result<LookUp> {
    let output = Command::new("cargo")
        .args(["info", "--registry", "crates-io", "--color", "never"])
        .arg(format!("{}@{}", dependency.name, dependency.version))
        // Beside a manifest it would answer from the lock file.
        .current_dir(std::env::temp_dir())
        .output()
        .context("run cargo info")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(read_look_up(
        output.status.success(),
        &text(&output.stdout),
        &text(&output.stderr),
    ))
}

/// Reads the answer of `cargo info`, which does not find a yanked version.
fn read_look_up(succeeded: bool, answer: &str, errors: &str) -> LookUp {
    if !succeeded {
        let is_missing = errors.contains("could not find") || errors.contains("yanked");
        return if is_missing {
            LookUp::Yanked
        } else {
            LookUp::Unknown
        };
    }
    let version = answer.lines().find(|line| line.starts_with("version:"));
    let latest = version.and_then(|line| line.split_once("(latest "));
    match latest {
        Some((_, latest)) => LookUp::Outdated(latest.trim_end_matches(')').into()),
        None => LookUp::Current,
    }
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
        assert!(found[0].is_direct && !found[1].is_direct);
        assert_eq!(
            offline_finds(&found),
            [
                "hash 3.0.0 has the licence \"GPL-3.0\"",
                "hash is built in versions 1.0.0, 2.0.0, 3.0.0"
            ]
        );
    }

    #[test]
    fn the_registrys_answer_is_read() {
        let read = |answer: &str| read_look_up(true, answer, "");
        assert_eq!(read("bytes\nversion: 1.12.0\n"), LookUp::Current);
        assert_eq!(
            read("version: 0.4.7 (latest 0.4.13)\n"),
            LookUp::Outdated("0.4.13".into())
        );
        let missing = "error: could not find `a@1` in registry";
        assert_eq!(read_look_up(false, "", missing), LookUp::Yanked);
        assert_eq!(read_look_up(false, "", "error: timeout"), LookUp::Unknown);
    }
}
