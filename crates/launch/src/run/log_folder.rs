//! Log folder of a launch: a folder in `ROS_LOG_DIR`, else `ROS_HOME/log`, else
//! `~/.ros/log`. Its name has time, host and process id, as ROS 2's launch names
//! it. The link `latest` points to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pteros::local_time::LocalTime;

use crate::ros_log_folder::ros_log_folder;

/// The log folder of one launch. It is not created yet.
#[derive(Clone, Debug)]
pub struct LogFolder {
    path: PathBuf,
}

impl LogFolder {
    /// The path for this environment, the current time, host name and process id.
    pub fn new(environment: &BTreeMap<String, String>, host: &str, process: u32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = i128::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(0);
        let stamp = stamp(LocalTime::of(nanos));
        Self {
            path: ros_log_folder(environment).join(format!("{stamp}-{host}-{process}")),
        }
    }

    /// A log folder with this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The folder, whether it exists or not.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder and replaces the link `latest` beside it. A `latest` that
    /// is not a link stays.
    ///
    /// # Errors
    /// Those of the operating system, with the folder's path.
    pub fn create(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.path).map_err(|error| {
            let said = format!(
                "make the log folder {}: {error}; set ROS_LOG_DIR to one that can be written",
                self.path.display()
            );
            io::Error::new(error.kind(), said)
        })?;
        if let Some(parent) = self.path.parent() {
            let link = parent.join("latest");
            let is_link = link.symlink_metadata().map(|data| data.is_symlink());
            if is_link.unwrap_or(true) {
                // Two launches may do this at the same time. Either one is the
                // latest.
                let _ = std::fs::remove_file(&link);
                let _ = std::os::unix::fs::symlink(&self.path, &link);
            }
        }
        Ok(())
    }
}

/// A time as `2026-01-31-23-59-59-000000`.
fn stamp(time: LocalTime) -> String {
    let micros = time.nanos / 1000;
    format!("{}-{micros:06}", time.text("-", "-", "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::local_time::TimeZone;

    #[test]
    fn log_folders_are_named_by_time() {
        let zone = TimeZone::of_variable("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let shown = |micros: i128| stamp(zone.at(micros * 1000));
        assert_eq!(shown(0), "1970-01-01-01-00-00-000000");
        // date -u -d @1709210096 : a leap day.
        assert_eq!(shown(1_709_210_096_000_123), "2024-02-29-13-34-56-000123");
    }

    #[test]
    fn the_environment_determines_the_log_folder() {
        let folder = |variables: &[(&str, &str)]| {
            let variables = variables.iter();
            let variables = variables.map(|(name, value)| ((*name).into(), (*value).into()));
            ros_log_folder(&variables.collect())
        };
        let home = ("HOME", "/h");
        assert_eq!(folder(&[home]), Path::new("/h/.ros/log"));
        assert_eq!(folder(&[home, ("ROS_HOME", "~/r")]), Path::new("/h/r/log"));
        let both = [home, ("ROS_HOME", "/r"), ("ROS_LOG_DIR", "/l")];
        assert_eq!(folder(&both), Path::new("/l"));
    }
}
