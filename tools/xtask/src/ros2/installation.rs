//! Where ROS 2 and its built tests are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// The variable with the prefix of an installation.
const PREFIX_VARIABLE: &str = "PTEROS_ROS2";
/// The variable with the build folder of a workspace.
const TESTS_VARIABLE: &str = "PTEROS_ROS2_TESTS";

/// An installation of ROS 2.
pub struct Installation {
    prefix: PathBuf,
    /// Its setup file was sourced before.
    is_sourced: bool,
    tests: Option<PathBuf>,
}

impl Installation {
    /// The installation that `PTEROS_ROS2` names, else the sourced one.
    ///
    /// # Errors
    /// A variable names a folder that is none.
    pub fn find() -> Result<Option<Self>> {
        let set = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
        let tests = set(TESTS_VARIABLE).map(PathBuf::from);
        if let Some(tests) = &tests {
            ensure!(
                tests.is_dir(),
                "{TESTS_VARIABLE}={}: no such folder; name the build folder of a workspace",
                tests.display()
            );
        }
        if let Some(prefix) = set(PREFIX_VARIABLE).map(PathBuf::from) {
            ensure!(
                prefix.join("setup.bash").is_file(),
                "{PREFIX_VARIABLE}={}: it has no setup.bash; name a prefix such as /opt/ros/jazzy",
                prefix.display()
            );
            return Ok(Some(Self {
                prefix,
                is_sourced: false,
                tests,
            }));
        }
        let list = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let mut prefixes = std::env::split_paths(&list);
        let found = prefixes.find(|prefix| prefix.join("share/rmw/package.xml").is_file());
        Ok(found.map(|prefix| Self {
            prefix,
            is_sourced: true,
            tests,
        }))
    }

    /// Its prefix.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The file to source; `None` if that was done.
    pub fn setup(&self) -> Option<PathBuf> {
        (!self.is_sourced).then(|| self.prefix.join("setup.bash"))
    }

    /// The build folder with built tests.
    pub fn tests(&self) -> Option<&Path> {
        self.tests.as_deref()
    }

    /// The Python that its commands run with.
    pub fn python(&self) -> String {
        let command = fs::read_to_string(self.prefix.join("bin/ros2")).unwrap_or_default();
        let first = command.lines().next().unwrap_or_default();
        let python = first.strip_prefix("#!").map(str::trim);
        let python = python.filter(|path| Path::new(path).is_file());
        python.unwrap_or("python3").to_owned()
    }
}
