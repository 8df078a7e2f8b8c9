//! The built-in definitions explain what they are, and units where a number has one.

use pteros_interfaces::DEFINITIONS;

/// Packages whose every definition begins with what it is.
const EXPLAINED: [&str; 22] = [
    "action_msgs",
    "action_tutorials_interfaces",
    "actionlib_msgs",
    "builtin_interfaces",
    "composition_interfaces",
    "diagnostic_msgs",
    "geometry_msgs",
    "lifecycle_msgs",
    "map_msgs",
    "nav_msgs",
    "rcl_interfaces",
    "rmw_dds_common",
    "rosbag2_interfaces",
    "rosgraph_msgs",
    "sensor_msgs",
    "shape_msgs",
    "statistics_msgs",
    "std_srvs",
    "stereo_msgs",
    "tf2_msgs",
    "trajectory_msgs",
    "turtlesim",
];

#[test]
fn every_definition_of_the_standard_packages_says_what_it_is() {
    let mut count = 0;
    for (name, text) in DEFINITIONS {
        let package = name.split('/').next().unwrap_or_default();
        if EXPLAINED.contains(&package) {
            assert!(text.starts_with("# "), "{name} begins with {text:.60}");
            count += 1;
        }
    }
    assert!(count > 130, "only {count} definitions");
}

#[test]
fn measured_quantities_have_a_unit() {
    let text_of = |wanted: &str| {
        let found = DEFINITIONS.iter().find(|(name, _)| *name == wanted);
        found.map_or("", |(_, text)| text)
    };
    for (name, field, unit) in [
        ("sensor_msgs/msg/LaserScan", "float32 range_max", "m."),
        (
            "sensor_msgs/msg/Imu",
            "geometry_msgs/Vector3 angular_velocity",
            "rad/s",
        ),
        ("sensor_msgs/msg/BatteryState", "float32 current", "A;"),
        ("sensor_msgs/msg/NavSatFix", "float64 latitude", "Degrees"),
        ("geometry_msgs/msg/Twist", "Vector3 linear", "m/s"),
        ("nav_msgs/msg/MapMetaData", "float32 resolution", "m."),
    ] {
        let line = text_of(name).lines().find(|line| line.starts_with(field));
        let comment = line.and_then(|line| line.split_once('#'));
        let comment = comment.unwrap_or_default().1;
        assert!(comment.contains(unit), "{name}: {field}: {comment:?}");
    }
}
