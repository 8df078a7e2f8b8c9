//! Environment variables: those that count, those that mean nothing here, and those
//! that look like a slip of the pen.

use super::finding::{Finding, Findings};
use crate::suggest::close_names;
use pteros::config::{Config, VARIABLES};

/// Read elsewhere than by a context.
const ALSO_READ: &[&str] = &[
    "AMENT_PREFIX_PATH",
    "PTEROS_COMPONENT_PATH",
    "PTEROS_CONTAINER",
];

/// Set by ROS 2's setup files; nothing depends on them.
const HARMLESS: &[&str] = &[
    "ROS_DISTRO",
    "ROS_VERSION",
    "ROS_PYTHON_VERSION",
    "ROS_OS_OVERRIDE",
    "ROS2CLI_DISABLE_DAEMON",
];

/// What they mean in ROS 2, or in ROS 1, has no meaning here.
const IGNORED: &[(&str, &str)] = &[
    (
        "CYCLONEDDS_URI",
        "Pteros reads no XML; use PTEROS_INTERFACES, ROS_STATIC_PEERS and the PTEROS_ variables of docs/paths.md",
    ),
    (
        "FASTRTPS_DEFAULT_PROFILES_FILE",
        "Pteros reads no XML; set QoS in the program, or by parameters (docs/parameters.md)",
    ),
    (
        "FASTDDS_DEFAULT_PROFILES_FILE",
        "Pteros reads no XML; set QoS in the program, or by parameters (docs/parameters.md)",
    ),
    (
        "RMW_FASTRTPS_USE_QOS_FROM_XML",
        "Pteros reads no XML; set QoS in the program, or by parameters (docs/parameters.md)",
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
        "ROS_DISCOVERY_SERVER",
        "there is no server; name hosts in ROS_STATIC_PEERS",
    ),
    (
        "ROS_SUPER_CLIENT",
        "there is no server; name hosts in ROS_STATIC_PEERS",
    ),
    (
        "ROS_DISABLE_LOANED_MESSAGES",
        "a program that does not lend calls no Publisher::loan",
    ),
    (
        "ZENOH_ROUTER_CHECK_ATTEMPTS",
        "Pteros speaks RTPS and needs no router",
    ),
    (
        "ZENOH_SESSION_CONFIG_URI",
        "Pteros speaks RTPS and needs no router",
    ),
    (
        "ZENOH_CONFIG_OVERRIDE",
        "Pteros speaks RTPS and needs no router",
    ),
    (
        "RCUTILS_CONSOLE_STDOUT_LINE_BUFFERED",
        "ROS 2 dropped it as well; lines go out at once",
    ),
    ("RCL_ASSERT_RMW_ID_MATCHES", "there is one middleware"),
    (
        "RCL_LOGGING_IMPLEMENTATION",
        "there is one; docs/logging.md says what it can do",
    ),
    (
        "ROS_MASTER_URI",
        "that is ROS 1; there is no master, peers find each other",
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

const PREFIXES: &[&str] = &[
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

/// Looks at all variables of the process.
pub fn check() -> Vec<Finding> {
    let mut found = Findings::new("environment");
    match Config::from_environment() {
        Ok(config) => {
            for warning in &config.warnings {
                found.warn(warning.to_string(), "change or unset the variable");
            }
        }
        Err(error) => found.error(
            format!("{}={:?}: {}", error.variable, error.value, error.reason),
            error.way_out,
        ),
    }
    let mut names: Vec<String> = std::env::vars_os()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, _)| name.into_string().ok())
        .collect();
    names.sort();
    look(&names, &mut found);
    found.into_list()
}

fn look(names: &[String], found: &mut Findings) {
    let mut in_force = Vec::new();
    for name in names {
        let is_read = VARIABLES.contains(&name.as_str()) || ALSO_READ.contains(&name.as_str());
        if is_read && PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            in_force.push(name.as_str());
        }
        if is_read || HARMLESS.contains(&name.as_str()) || name.starts_with("PTEROS_TEST_") {
            continue;
        }
        if let Some((_, instead)) = IGNORED.iter().find(|(ignored, _)| ignored == name) {
            found.note_with(format!("{name} has no effect"), *instead);
            continue;
        }
        let known = VARIABLES.iter().chain(ALSO_READ).copied();
        let ours = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let similar = close_names(name, known.filter(|known| known.contains('_')));
        match similar.first() {
            Some(meant) if ours || (name.len() > 8 && is_near(name, meant)) => found.warn(
                format!("{name} is no variable of ROS 2's or of Pteros"),
                format!("is {meant} meant? Rename or unset it"),
            ),
            None if ours => {
                found.note_with(
                    format!("{name} is not known"),
                    "unset it if it does nothing",
                );
            }
            _ => {}
        }
    }
    match in_force.as_slice() {
        [] => found.fine("nothing is set: domain 0, the whole subnet"),
        set => found.fine(format!("set: {}", set.join(", "))),
    }
}

/// `DOMAIN_ID` and `ROSDOMAIN_ID` for `ROS_DOMAIN_ID`, but not `HOME_DIR` for `HOME`.
fn is_near(name: &str, meant: &str) -> bool {
    let letters = |text: &str| text.replace('_', "").to_uppercase();
    let (name, meant) = (letters(name), letters(meant));
    name == meant || meant.strip_prefix("ROS") == Some(&name)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Weight;
    use super::*;

    fn findings(names: &[&str]) -> Vec<(Weight, String)> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut found = Findings::new("environment");
        look(&names, &mut found);
        let list = found.into_list().into_iter();
        list.map(|f| (f.weight, f.text + " / " + &f.fix.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn slips_are_noticed_and_what_is_right_is_left_alone() {
        for name in [
            "ROS_DOMAINID",
            "ROS_DOMIAN_ID",
            "ROSDOMAIN_ID",
            "PTEROS_SPIN",
            "RMW_IMPLEMENTATON",
        ] {
            let found = findings(&[name]);
            assert_eq!(found[0].0, Weight::Warning, "{name} {found:?}");
        }
        assert!(
            findings(&["ROS_DOMAINID"])[0]
                .1
                .contains("is ROS_DOMAIN_ID meant?")
        );
        for name in [
            "ROS_DOMAIN_ID",
            "ROS_DISTRO",
            "HOME",
            "PATH",
            "LANG",
            "XDG_RUNTIME_DIR",
            "GIT_SSL_CAINFO",
        ] {
            let found = findings(&[name]);
            assert!(
                found.iter().all(|(weight, _)| *weight == Weight::Fine),
                "{name} {found:?}"
            );
        }
        let found = findings(&["CYCLONEDDS_URI"]);
        assert_eq!(found[0].0, Weight::Note);
        assert!(found[0].1.contains("has no effect / Pteros reads no XML"));
    }
}
