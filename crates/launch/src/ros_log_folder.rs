//! The folder of all log folders: `ROS_LOG_DIR`, else `ROS_HOME/log`, else
//! `~/.ros/log`, as rcl_logging finds it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The folder that holds all log folders.
pub(crate) fn ros_log_folder(environment: &BTreeMap<String, String>) -> PathBuf {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let home = || PathBuf::from(set("HOME").map_or("/", String::as_str));
    let expanded = |path: &String| match path.strip_prefix("~/") {
        Some(rest) => home().join(rest),
        None => PathBuf::from(path),
    };
    match (set("ROS_LOG_DIR"), set("ROS_HOME")) {
        (Some(folder), _) => expanded(folder),
        (None, Some(ros_home)) => expanded(ros_home).join("log"),
        (None, None) => home().join(".ros/log"),
    }
}
