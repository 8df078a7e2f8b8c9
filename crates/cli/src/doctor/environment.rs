//! Environment variables: effective, unsupported and misspelt ones.

use super::finding::{Finding, Findings};
use crate::suggest::close_names;
use pteros::config::{Config, VARIABLES, WireChoice};
use std::ffi::OsStr;

/// Variables that other parts than a context read.
const OTHER_VARIABLES: &[&str] = &[
    "AMENT_PREFIX_PATH",
    "PTEROS_BUILT_IN_NODES",
    "PTEROS_COMPONENT_PATH",
    "PTEROS_CONTAINER",
    "PTEROS_INTERFACE_PATH",
    "PTEROS_PREFIX",
    "PTEROS_RMW_OPTIONAL_FEATURES",
    "PTEROS_ROS2",
];

/// Variables that Pteros sets for its own processes. They need no note.
const SET_BY_PTEROS: &[&str] = &[
    "PTEROS_COMMAND",
    "PTEROS_FINGERPRINT",
    "PTEROS_LAB_NETWORK",
    "PTEROS_LAUNCH",
    "PTEROS_PEERS",
    "PTEROS_PRIVATE_NETWORK",
    "PTEROS_PYTHON",
];

/// How variables of the tests begin. They need no note.
const PREFIXES_OF_TESTS: &[&str] = &["PTEROS_INTEROP_", "PTEROS_ROS2_", "PTEROS_TEST_"];

/// Variables of ROS 2's setup files that have no effect and need no note.
const IGNORED_SILENTLY: &[&str] = &[
    "ROS_DISTRO",
    "ROS_VERSION",
    "ROS_PYTHON_VERSION",
    "ROS_OS_OVERRIDE",
    "ROS2CLI_DISABLE_DAEMON",
];

/// Variables of ROS 2 or ROS 1 that have no effect here, with the replacement.
const UNSUPPORTED_VARIABLES: &[(&str, &str)] = &[
    (
        "CYCLONEDDS_URI",
        "Pteros reads no XML; use PTEROS_INTERFACES, ROS_STATIC_PEERS and the PTEROS_ variables of docs/reference/environment.md",
    ),
    (
        "FASTRTPS_DEFAULT_PROFILES_FILE",
        "Pteros reads no XML; set QoS in the program, or by parameters (docs/tutorials/parameters.md)",
    ),
    (
        "FASTDDS_DEFAULT_PROFILES_FILE",
        "Pteros reads no XML; set QoS in the program, or by parameters (docs/tutorials/parameters.md)",
    ),
    (
        "RMW_FASTRTPS_USE_QOS_FROM_XML",
        "Pteros reads no XML; set QoS in the program, or by parameters (docs/tutorials/parameters.md)",
    ),
    (
        "RMW_FASTRTPS_PUBLICATION_MODE",
        "make a publisher asynchronous with PublisherOptions::asynchronous",
    ),
    (
        "FASTDDS_BUILTIN_TRANSPORTS",
        "use PTEROS_SHARED_MEMORY=on or off",
    ),
    ("FASTDDS_STATISTICS", "use pteros topic hz, bw and delay"),
    (
        "ROS_DISABLE_LOANED_MESSAGES",
        "a program without loaned messages does not call Publisher::borrow_loaned_message",
    ),
    (
        "RCUTILS_CONSOLE_STDOUT_LINE_BUFFERED",
        "ROS 2 has removed it too; lines are always flushed",
    ),
    ("RCL_ASSERT_RMW_ID_MATCHES", "there is only one middleware"),
    (
        "RCL_LOGGING_IMPLEMENTATION",
        "there is only one; see docs/how_to/logging.md",
    ),
    (
        "ROS_MASTER_URI",
        "that is ROS 1; there is no master, peers discover each other",
    ),
    (
        "ROS_IP",
        "that is ROS 1; choose interfaces with PTEROS_INTERFACES",
    ),
    (
        "ROS_HOSTNAME",
        "that is ROS 1; choose interfaces with PTEROS_INTERFACES",
    ),
    (
        "ROS_NAMESPACE",
        "that is ROS 1; use --ros-args -r __ns:=/robot",
    ),
];

const KNOWN_PREFIXES: &[&str] = &[
    "ROS_",
    "ROS2",
    "RMW_",
    "RCL_",
    "RCUTILS_",
    "PTEROS_",
    "CYCLONEDDS_",
    "FASTRTPS_",
    "FASTDDS_",
    "ZENOH_",
];

/// Variables that list folders.
const FOLDER_LISTS: [&str; 3] = [
    "AMENT_PREFIX_PATH",
    "PTEROS_PREFIX",
    "PTEROS_INTERFACE_PATH",
];

/// Checks all environment variables of the process.
pub fn check() -> Vec<Finding> {
    let mut found = Findings::new("environment");
    match Config::from_environment() {
        Ok(config) => {
            for warning in &config.warnings {
                found.warn(warning.to_string(), "change or unset the variable");
            }
            if let Err(error) = config.zenoh() {
                let text = format!("{}={:?}: {}", error.variable, error.value, error.reason);
                match config.wire {
                    Some(WireChoice::Zenoh) => found.error(text, error.hint),
                    _ => found.warn(text, error.hint),
                }
            }
            if config.wire == Some(WireChoice::Zenoh) && cfg!(not(feature = "zenoh")) {
                found.error(
                    "RMW_IMPLEMENTATION=rmw_zenoh_cpp: this program is built without Zenoh",
                    "build it with: cargo build --release -p pteros-cli --features zenoh; or \
                     unset the variable to use RTPS",
                );
            }
        }
        Err(error) => found.error(
            format!("{}={:?}: {}", error.variable, error.value, error.reason),
            error.hint,
        ),
    }
    let mut names: Vec<String> = std::env::vars_os()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, _)| name.into_string().ok())
        .collect();
    names.sort();
    check_names(&names, &mut found);
    for name in FOLDER_LISTS {
        let value = std::env::var_os(name).unwrap_or_default();
        check_folders(name, &value, &mut found);
    }
    found.into_list()
}

/// Warns of each entry of a list of folders that is none: what is looked for there is
/// found nowhere, and its error names the package alone.
fn check_folders(name: &str, value: &OsStr, found: &mut Findings) {
    for folder in std::env::split_paths(value) {
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            found.warn(
                format!("{name} names {}, which is no folder", folder.display()),
                "correct the entry, or remove it",
            );
        }
    }
}

fn check_names(names: &[String], found: &mut Findings) {
    let mut in_force = Vec::new();
    for name in names {
        let is_read =
            VARIABLES.contains(&name.as_str()) || OTHER_VARIABLES.contains(&name.as_str());
        if is_read && KNOWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            in_force.push(name.as_str());
        }
        if is_read
            || IGNORED_SILENTLY.contains(&name.as_str())
            || SET_BY_PTEROS.contains(&name.as_str())
            || PREFIXES_OF_TESTS
                .iter()
                .any(|prefix| name.starts_with(prefix))
        {
            continue;
        }
        if let Some((_, instead)) = UNSUPPORTED_VARIABLES
            .iter()
            .find(|(ignored, _)| ignored == name)
        {
            found.note_with(format!("{name} has no effect"), *instead);
            continue;
        }
        let known = VARIABLES.iter().chain(OTHER_VARIABLES).copied();
        let ours = KNOWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let similar = close_names(name, known.filter(|known| known.contains('_')));
        match similar.first() {
            Some(meant) if ours || (name.len() > 8 && is_misspelling(name, meant)) => found.warn(
                format!("{name} is not a variable of ROS 2 or Pteros"),
                format!("did you mean {meant}? Rename or unset it"),
            ),
            None if ours => {
                found.note_with(format!("{name} is unknown"), "unset it if nothing uses it");
            }
            _ => {}
        }
    }
    match in_force.as_slice() {
        [] => found.ok("nothing is set: domain 0, discovery in the whole subnet"),
        set => found.ok(format!("set: {}", set.join(", "))),
    }
}

/// Matches `DOMAIN_ID` and `ROSDOMAIN_ID` with `ROS_DOMAIN_ID`, but not `HOME_DIR`
/// with `HOME`.
fn is_misspelling(name: &str, meant: &str) -> bool {
    let letters = |text: &str| text.replace('_', "").to_uppercase();
    let (name, meant) = (letters(name), letters(meant));
    name == meant || meant.strip_prefix("ROS") == Some(&name)
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingSeverity;
    use super::*;

    #[test]
    fn folders_that_are_not_there_are_named() {
        let mut found = Findings::new("environment");
        check_folders(
            "PTEROS_PREFIX",
            OsStr::new("/:/nowhere/at/all:"),
            &mut found,
        );
        let texts: Vec<String> = found.into_list().into_iter().map(|f| f.text).collect();
        assert_eq!(
            texts,
            ["PTEROS_PREFIX names /nowhere/at/all, which is no folder"]
        );
    }

    fn findings(names: &[&str]) -> Vec<(FindingSeverity, String)> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut found = Findings::new("environment");
        check_names(&names, &mut found);
        let list = found.into_list().into_iter();
        list.map(|f| (f.severity, f.text + " / " + &f.fix.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn misspelt_variables_are_reported_and_valid_ones_are_not() {
        for name in [
            "ROS_DOMAINID",
            "ROS_DOMIAN_ID",
            "ROSDOMAIN_ID",
            "PTEROS_BUSY_POLL",
            "RMW_IMPLEMENTATON",
        ] {
            let found = findings(&[name]);
            assert_eq!(found[0].0, FindingSeverity::Warning, "{name} {found:?}");
        }
        assert!(
            findings(&["ROS_DOMAINID"])[0]
                .1
                .contains("did you mean ROS_DOMAIN_ID?")
        );
        for name in [
            "ROS_DOMAIN_ID",
            "ROS_DISTRO",
            "HOME",
            "PATH",
            "LANG",
            "XDG_RUNTIME_DIR",
            "GIT_SSL_CAINFO",
            "PTEROS_INTERFACE_PATH",
            "PTEROS_PREFIX",
            "PTEROS_PYTHON",
            "PTEROS_PEERS",
            "PTEROS_ROS2_KILTED",
            "PTEROS_INTEROP_SECURED",
        ] {
            let found = findings(&[name]);
            assert!(
                found
                    .iter()
                    .all(|(weight, _)| *weight == FindingSeverity::Ok),
                "{name} {found:?}"
            );
        }
        let found = findings(&["CYCLONEDDS_URI"]);
        assert_eq!(found[0].0, FindingSeverity::Note);
        assert!(found[0].1.contains("has no effect / Pteros reads no XML"));
    }
}
