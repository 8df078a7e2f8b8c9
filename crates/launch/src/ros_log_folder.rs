//! The folder of all log folders: `ROS_LOG_DIR`, else `ROS_HOME/log`, else
//! `~/.ros/log`, as nodes find it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The folder that holds all log folders.
pub(crate) fn ros_log_folder(environment: &BTreeMap<String, String>) -> PathBuf {
    let folder = pteros::config::log_folder(|name| environment.get(name).cloned());
    folder.unwrap_or_else(|| "/.ros/log".into())
}
