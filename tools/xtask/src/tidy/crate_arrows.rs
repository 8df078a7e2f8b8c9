//! Crate arrows: which crate may use which, from one table. The map of ARCHITECTURE
//! must agree with it: a crate uses only crates in rows above its own.

use std::path::{Path, PathBuf};

use crate::checkout::CRATE_FOLDERS;
use crate::finding::Finding;

/// The page with the map of the crates.
pub const MAP_DOCUMENT: &str = "ARCHITECTURE.md";
/// First cells of the map's head.
const MAP_HEAD: &str = "| crate | purpose |";

/// Crates that a crate may use, except in tests. Lower layers come first. The
/// leaves (cli, sim, xtask) may use all crates above them in this table.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("pteros-msg", &[]),
    ("pteros-interfaces", &["pteros-msg"]),
    ("pteros-rtps", &["pteros-msg"]),
    ("pteros-dcps", &["pteros-msg", "pteros-rtps"]),
    ("pteros-net", &[]),
    ("pteros-shm", &[]),
    // Verification alone uses it, and the instrumented copy of the product.
    ("pteros-seeded-bugs", &[]),
    ("pteros-store", &[]),
    ("pteros-pattern", &[]),
    // rtps for ids and times.
    ("pteros-security", &["pteros-rtps"]),
    (
        "pteros-runtime",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-dcps",
            "pteros-net",
            "pteros-shm",
            "pteros-store",
            "pteros-security",
        ],
    ),
    // A transport of the runtime, built on request.
    (
        "pteros-zenoh",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-net",
            "pteros-runtime",
        ],
    ),
    // The untyped core of the client libraries.
    (
        "pteros-rcl",
        &["pteros-msg", "pteros-interfaces", "pteros-runtime"],
    ),
    // rtps only for its values: ids and policy names. dcps for QoS, samples and events.
    (
        "pteros",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-dcps",
            "pteros-runtime",
            "pteros-rcl",
            "pteros-zenoh",
        ],
    ),
    ("pteros-dylib", &["pteros"]),
    // Structs of C and C++, for the plug-in and the C API.
    ("pteros-typesupport", &["pteros-msg", "pteros-runtime"]),
    // The C ABI of rmw, a leaf over the runtime.
    (
        "pteros-rmw",
        &[
            "pteros-msg",
            "pteros-runtime",
            "pteros-rcl",
            "pteros-typesupport",
            "pteros-zenoh",
        ],
    ),
    // The C API, a leaf over the Rust client library, as Python.
    (
        "pteros-c",
        &[
            "pteros-msg",
            "pteros-runtime",
            "pteros",
            "pteros-typesupport",
        ],
    ),
    // The extension module of Python, a leaf over the client library core. pteros for
    // contexts, launch for Python launch files, net for Ctrl-C.
    (
        "pteros-python",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-net",
            "pteros-runtime",
            "pteros-rcl",
            "pteros",
            "pteros-container",
            "pteros-launch",
        ],
    ),
    ("pteros-container", &["pteros"]),
    ("pteros-bag", &["pteros", "pteros-pattern"]),
    (
        "pteros-bag-components",
        &["pteros", "pteros-bag", "pteros-dylib"],
    ),
    // net for its poll and for Ctrl-C.
    (
        "pteros-launch",
        &["pteros", "pteros-container", "pteros-net", "pteros-pattern"],
    ),
    // Independent of Pteros, so that xtask builds without it.
    ("pteros-peers", &[]),
    // net for Ctrl-C and scheduler settings, security for keystores, bag for its
    // benchmark.
    (
        "pteros-lab",
        &[
            "pteros-rtps",
            "pteros",
            "pteros-bag",
            "pteros-net",
            "pteros-security",
            "pteros-peers",
        ],
    ),
    // net for the network checks of the doctor.
    (
        "pteros-cli",
        &[
            "pteros",
            "pteros-pattern",
            "pteros-bag",
            "pteros-container",
            "pteros-launch",
            "pteros-net",
            "pteros-security",
            "pteros-typesupport",
            "pteros-zenoh",
        ],
    ),
    (
        "pteros-sim",
        &[
            "pteros-msg",
            "pteros-rtps",
            "pteros-dcps",
            "pteros-security",
            "pteros-runtime",
            "pteros",
            "pteros-bag",
            "pteros-container",
            "pteros-seeded-bugs",
        ],
    ),
    // In tests only, of these crates too.
    (
        "pteros-test-support",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-security",
            "pteros",
            "pteros-bag",
        ],
    ),
    ("pteros-fuzz", &["pteros-test-support"]),
    // Reads files of other repositories with the launch system.
    (
        "pteros-corpus",
        &["pteros", "pteros-container", "pteros-launch"],
    ),
    // Renders docs/, a separate workspace.
    ("pteros-book", &[]),
    // Programs over other stacks.
    ("iceoryx2-host", &[]),
    ("hiroz-host", &[]),
    ("zenoh-host", &[]),
    ("rust-peers", &[]),
    (
        "xtask",
        &[
            "pteros-msg",
            "pteros-interfaces",
            "pteros-rtps",
            "pteros-net",
            "pteros-runtime",
            "pteros",
            "pteros-peers",
            "pteros-seeded-bugs",
            "pteros-test-support",
        ],
    ),
];

/// Checks the dependencies of one manifest against [`ALLOWED_DEPENDENCIES`].
pub fn check_manifest(manifest: &str, add: &mut impl FnMut(usize, String)) {
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
            if !ALLOWED_DEPENDENCIES.iter().any(|(known, _)| *known == name) {
                add(
                    index + 1,
                    format!("{name}: list the crates that it may use in tools/xtask/src/tidy.rs"),
                );
            }
        }
        if section != "[dependencies]" && section != "[build-dependencies]" {
            continue;
        }
        let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = ALLOWED_DEPENDENCIES.iter().any(|(known, _)| *known == used);
        let allowed = ALLOWED_DEPENDENCIES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(&[] as &[&str], |(_, allowed)| allowed);
        if is_ours && !allowed.contains(&used) {
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
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        let Some(own) = place(name) else {
            continue;
        };
        for used in *allowed {
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
