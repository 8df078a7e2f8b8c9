//! Log folder of a launch: a folder in `ROS_LOG_DIR`, else `ROS_HOME/log`, else
//! `~/.ros/log`. Its name has time, host and process id, as ROS 2's launch names
//! it. The link `latest` points to it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
        let stamp = stamp(now.unwrap_or_default().as_micros());
        Self {
            path: ros_log_folder(environment).join(format!("{stamp}-{host}-{process}")),
        }
    }

    /// A log folder with this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path.
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

/// A time as `2026-01-31-23-59-59-000000`, UTC.
fn stamp(micros: u128) -> String {
    let seconds = i64::try_from(micros / 1_000_000).unwrap_or(0);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}-{:02}-{:02}-{:02}-{:06}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        micros % 1_000_000
    )
}

/// The Gregorian date of a day since 1970: the inverse of Hinnant's
/// days_from_civil.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_folders_are_named_by_time() {
        assert_eq!(stamp(0), "1970-01-01-00-00-00-000000");
        // date -u -d @1709210096 : a leap day.
        assert_eq!(stamp(1_709_210_096_000_123), "2024-02-29-12-34-56-000123");
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
