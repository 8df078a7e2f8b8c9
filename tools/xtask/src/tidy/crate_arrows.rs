//! Crate arrows: which crate may use which, from one table. The map of ARCHITECTURE
//! must agree with it: a crate uses only crates in rows above its own.

use std::path::{Path, PathBuf};

use crate::checkout::CRATE_FOLDERS;
use crate::finding::Finding;

/// The page with the map of the crates.
pub const MAP_DOCUMENT: &str = "ARCHITECTURE.md";
/// First cells of the map's head.
const MAP_HEAD: &str = "| crate | purpose |";

/// Crates, and those that each may use.
fn arrows() -> Vec<(&'static str, Vec<&'static str>)> {
    let lines = include_str!("crate_arrows.txt").lines();
    let rows = lines.filter_map(|line| line.split_once(':').filter(|_| !line.starts_with('#')));
    rows.map(|(name, used)| (name, used.split_whitespace().collect()))
        .collect()
}

/// Checks the dependencies of one manifest against the table.
pub fn check_manifest(manifest: &str, add: &mut impl FnMut(usize, String)) {
    let arrows = arrows();
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
            if !arrows.iter().any(|(known, _)| *known == name) {
                add(
                    index + 1,
                    format!(
                        "{name}: list the crates that it may use in tools/xtask/src/tidy/crate_arrows.txt"
                    ),
                );
            }
        }
        if section != "[dependencies]" && section != "[build-dependencies]" {
            continue;
        }
        let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = arrows.iter().any(|(known, _)| *known == used);
        let own = arrows.iter().find(|(known, _)| *known == name);
        let is_allowed = own.is_some_and(|(_, allowed)| allowed.contains(&used));
        if is_ours && !is_allowed {
            add(
                index + 1,
                format!(
                    "{name} may not use {used}: dependencies follow the layers (ARCHITECTURE.md)"
                ),
            );
        }
    }
}

/// The package's name in a manifest.
pub fn package_name(manifest: &str) -> Option<&str> {
    let package = manifest.split("[package]").nth(1)?;
    let mut lines = package.lines().take_while(|line| !line.starts_with('['));
    let value = lines.find_map(|line| line.strip_prefix("name = "))?;
    Some(value.trim_matches('"'))
}

/// Checks the map: every crate of the product, the tools and the verification has a
/// row, and no crate may use one of its own row or below. `packages` are folders, relative to the root, and names.
pub fn check_map(architecture: &str, packages: &[(PathBuf, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line: usize, message: String| {
        findings.push(Finding {
            path: MAP_DOCUMENT.into(),
            line,
            message,
        });
    };
    let rows = map_rows(architecture);
    // The place in the map of a package.
    let place = |name: &str| {
        let (folder, _) = packages.iter().find(|(_, package)| package == name)?;
        let folder = folder.file_name()?.to_str()?;
        rows.iter().position(|(row, _)| *row == folder)
    };
    for (folder, name) in packages {
        let is_crate = folder
            .parent()
            .is_some_and(|parent| CRATE_FOLDERS.iter().any(|top| parent == Path::new(top)));
        if is_crate && place(name).is_none() {
            add(
                1,
                format!("{}: no row in the map of the crates", folder.display()),
            );
        }
    }
    for (name, allowed) in arrows() {
        let Some(own) = place(name) else {
            continue;
        };
        for used in allowed {
            if place(used).is_some_and(|used| used >= own) {
                add(
                    rows[own].1,
                    format!(
                        "{name} may use {used}, whose row is not above: order the rows by layer"
                    ),
                );
            }
        }
    }
    findings
}

/// Folders of the map's rows, and their lines.
fn map_rows(architecture: &str) -> Vec<(&str, usize)> {
    let lines = architecture.lines().enumerate();
    let table = lines
        .skip_while(|(_, line)| !line.starts_with(MAP_HEAD))
        .skip(2);
    let rows = table.take_while(|(_, line)| line.starts_with("| `"));
    let cells = rows.filter_map(|(index, line)| Some((line.split('`').nth(1)?, index + 1)));
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(manifest: &str) -> Vec<String> {
        let mut found = Vec::new();
        check_manifest(manifest, &mut |line, message| {
            found.push(format!("{line} {message}"))
        });
        found
    }

    #[test]
    fn dependencies_follow_the_layers() {
        let manifest = "[package]\nname = \"pteros-rtps\"\n[dependencies]\npteros-net.workspace = \
                        true\npteros-msg = { workspace = true }\n[dev-dependencies]\n\
                        pteros-runtime.workspace = true\n";
        assert_eq!(
            messages(manifest),
            [
                "4 pteros-rtps may not use pteros-net: dependencies follow the layers (ARCHITECTURE.md)"
            ]
        );
        assert_eq!(messages("[package]\nname = \"pteros-new\"\n").len(), 1);
    }

    #[test]
    fn the_map_has_every_crate_below_the_crates_it_uses() {
        let package = |folder: &str, name: &str| (PathBuf::from(folder), name.to_owned());
        let packages = [
            package("crates/msg", "pteros-msg"),
            package("crates/rtps", "pteros-rtps"),
            package("examples/x", "x"),
        ];
        let map = |rows: &str| format!("# A\n\n{MAP_HEAD}\n|---|---|\n{rows}\ntext\n");
        let lines = |rows: &str| -> Vec<String> {
            let found = check_map(&map(rows), &packages).into_iter();
            found.map(|f| format!("{} {}", f.line, f.message)).collect()
        };
        assert_eq!(lines("| `msg` | a |\n| `rtps` | b |"), [""; 0]);
        let reversed = lines("| `rtps` | b |\n| `msg` | a |");
        assert_eq!(reversed.len(), 1);
        assert!(reversed[0].starts_with("5 pteros-rtps may use pteros-msg"));
        assert_eq!(
            lines("| `msg` | a |"),
            ["1 crates/rtps: no row in the map of the crates"]
        );
    }
}
