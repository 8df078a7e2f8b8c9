//! Every type hash that ROS 2 Jazzy computed is reproduced, at run time from the
//! definitions and in the constants of the generated types.

use pteros_interfaces::{TYPES, library, nav_msgs, std_msgs, test_msgs};
use pteros_msg::Message;
use pteros_msg::hash::TypeHash;
use pteros_msg::library::split_full_name;
use pteros_msg::typeobject::{TypeObjects, is_announced};
use std::collections::BTreeMap;

/// Packages that ROS 2 uses in its own tests and tutorials; not shipped as types.
const TEST_ONLY: &[(&str, &str)] = &[
    (
        "action_tutorials_interfaces/action/Fibonacci",
        include_str!("../definitions/action_tutorials_interfaces/action/Fibonacci.action"),
    ),
    (
        "actionlib_msgs/msg/GoalID",
        include_str!("../definitions/actionlib_msgs/msg/GoalID.msg"),
    ),
    (
        "actionlib_msgs/msg/GoalStatus",
        include_str!("../definitions/actionlib_msgs/msg/GoalStatus.msg"),
    ),
    (
        "actionlib_msgs/msg/GoalStatusArray",
        include_str!("../definitions/actionlib_msgs/msg/GoalStatusArray.msg"),
    ),
    (
        "logging_demo/srv/ConfigLogger",
        include_str!("../definitions/logging_demo/srv/ConfigLogger.srv"),
    ),
    (
        "ros2cli_test_interfaces/action/ShortVariedMultiNested",
        include_str!("../definitions/ros2cli_test_interfaces/action/ShortVariedMultiNested.action"),
    ),
    (
        "ros2cli_test_interfaces/msg/ShortVaried",
        include_str!("../definitions/ros2cli_test_interfaces/msg/ShortVaried.msg"),
    ),
    (
        "ros2cli_test_interfaces/msg/ShortVariedMultiNested",
        include_str!("../definitions/ros2cli_test_interfaces/msg/ShortVariedMultiNested.msg"),
    ),
    (
        "ros2cli_test_interfaces/msg/ShortVariedNested",
        include_str!("../definitions/ros2cli_test_interfaces/msg/ShortVariedNested.msg"),
    ),
    (
        "ros2cli_test_interfaces/srv/ShortVariedMultiNested",
        include_str!("../definitions/ros2cli_test_interfaces/srv/ShortVariedMultiNested.srv"),
    ),
];

fn known_hashes() -> BTreeMap<&'static str, TypeHash> {
    include_str!("../type_hashes.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, hash) = line.split_once(' ').expect("name and hash");
            (name, hash.parse().expect("a hash"))
        })
        .collect()
}

#[test]
fn definitions_reproduce_every_known_hash_at_run_time() {
    let mut library = library().clone();
    library.insert_definitions(TEST_ONLY);
    let known = known_hashes();
    assert!(known.len() >= 419);
    for (name, hash) in known {
        assert_eq!(library.type_hash(name), Ok(hash), "{name}");
    }
}

#[test]
fn generated_constants_reproduce_every_known_hash() {
    let mut known = known_hashes();
    for (name, hash) in TYPES {
        if let Some(expected) = known.remove(name) {
            assert_eq!(*hash, expected, "{name}");
        }
    }
    known.retain(|name, _| {
        let package = name.split('/').next();
        !TEST_ONLY
            .iter()
            .any(|(full, _)| full.split('/').next() == package)
    });
    assert!(known.is_empty(), "not generated: {known:?}");
}

#[test]
fn type_information_is_a_build_time_constant() {
    fn check<M: Message>(announced: bool) {
        let description = M::type_description();
        let made = if is_announced(description) {
            TypeObjects::new(description).unwrap().information()
        } else {
            Vec::new()
        };
        assert_eq!(M::TYPE_INFORMATION, made, "{}", M::TYPE_NAME);
        assert_eq!(!made.is_empty(), announced, "{}", M::TYPE_NAME);
    }
    check::<std_msgs::msg::String>(true);
    check::<nav_msgs::msg::Odometry>(true);
    check::<test_msgs::srv::ArraysResponse>(false);
    check::<std_msgs::msg::UInt8MultiArray>(false);
}

#[test]
fn every_generated_type_is_described_as_it_was_hashed() {
    let mut count = 0;
    for (name, hash) in TYPES {
        assert_eq!(library().type_hash(name), Ok(*hash), "{name}");
        assert!(split_full_name(name).is_some(), "{name}");
        count += 1;
    }
    let derived: usize = library()
        .names()
        .map(|name| library().derived_names(name).unwrap().len())
        .sum();
    assert_eq!(count, derived);
}
