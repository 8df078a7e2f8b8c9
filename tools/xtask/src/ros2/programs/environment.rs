//! The environments in which programs run: the wheel without ROS 2, and a ROS 2 with one
//! of its middlewares.
//!
//! They are files, since the programs start in a private network, by another process.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use pteros_peers::ros2::Installation;

/// The name of the wheel's environment.
pub const WHEEL: &str = "wheel";
/// Variables of a ROS 2 that programs on the wheel must do without.
const REMOVED: [&str; 5] = [
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "RMW_IMPLEMENTATION",
];

/// A Python, and variables for it.
pub struct Environment {
    pub name: String,
    pub python: String,
    variables: Vec<(String, String)>,
}

impl Environment {
    /// That of the wheel. `modules` are folders of Python modules behind it.
    pub fn of_wheel(python: &str, packages: &Path, modules: &[PathBuf]) -> Result<Self> {
        let paths = std::iter::once(packages.to_owned()).chain(modules.iter().cloned());
        Ok(Self {
            name: WHEEL.to_owned(),
            python: python.to_owned(),
            variables: vec![
                ("PYTHONPATH".to_owned(), joined(paths)?),
                // A crash in the native module shows where Python was.
                ("PYTHONFAULTHANDLER".to_owned(), "1".to_owned()),
            ],
        })
    }

    /// That of a ROS 2, named after its middleware. `None` if it lacks the middleware.
    pub fn of_ros2(
        installation: &Installation,
        rmw: &str,
        modules: &[PathBuf],
    ) -> Result<Option<Self>> {
        let paths = installation.environment()?;
        if !Installation::has_rmw(&paths, rmw) {
            return Ok(None);
        }
        let mut variables = vec![("RMW_IMPLEMENTATION".to_owned(), rmw.to_owned())];
        for (name, value) in paths {
            let value = if name == "PYTHONPATH" {
                joined(std::env::split_paths(&value).chain(modules.iter().cloned()))?
            } else {
                value
            };
            variables.push((name.to_owned(), value));
        }
        Ok(Some(Self {
            name: rmw.to_owned(),
            python: installation.python(),
            variables,
        }))
    }

    /// Puts a prefix behind those where packages have their files.
    pub fn add_prefix(&mut self, prefix: &Path) -> Result<()> {
        let list = "AMENT_PREFIX_PATH";
        let known = self.variables.iter_mut().find(|(name, _)| name == list);
        match known {
            Some((_, value)) => {
                let paths = std::env::split_paths(value).chain([prefix.to_owned()]);
                *value = joined(paths)?;
            }
            None => self
                .variables
                .push((list.to_owned(), prefix.display().to_string())),
        }
        Ok(())
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &Path) {
        self.variables
            .push((name.to_owned(), value.display().to_string()));
    }

    pub fn is_wheel(&self) -> bool {
        self.name == WHEEL
    }

    /// Sets the variables of a command.
    pub fn apply(&self, command: &mut Command) {
        for name in REMOVED {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// Writes it into a folder.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut text = format!("{}\n", self.python);
        for (name, value) in &self.variables {
            text += &format!("{name}={value}\n");
        }
        let path = file(folder, &self.name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    /// Reads what [`Self::write`] wrote.
    pub fn read(folder: &Path, name: &str) -> Result<Self> {
        let path = file(folder, name);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let mut lines = text.lines();
        let python = lines.next().context("an environment without a Python")?;
        let variables = lines.filter_map(|line| line.split_once('='));
        Ok(Self {
            name: name.to_owned(),
            python: python.to_owned(),
            variables: variables
                .map(|(n, v)| (n.to_owned(), v.to_owned()))
                .collect(),
        })
    }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.environment"))
}

fn joined(paths: impl IntoIterator<Item = PathBuf>) -> Result<String> {
    let joined: OsString = std::env::join_paths(paths).context("join paths")?;
    let joined = joined.into_string();
    joined.map_err(|paths| anyhow::anyhow!("{}: not UTF-8", paths.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn an_environment_is_read_as_it_was_written() {
        let folder = Folder::new("programs");
        let modules = ["/a".into(), "/b".into()];
        let mut wheel = Environment::of_wheel("python3", Path::new("/wheel"), &modules).unwrap();
        wheel.add_prefix(Path::new("/one")).unwrap();
        wheel.add_prefix(Path::new("/two")).unwrap();
        wheel.write(&folder).unwrap();
        let read = Environment::read(&folder, WHEEL).unwrap();
        assert!(read.is_wheel());
        assert_eq!(
            (&read.python, &read.variables),
            (&wheel.python, &wheel.variables)
        );
        let value = |name: &str| read.variables.iter().find(|(n, _)| n == name).unwrap();
        assert_eq!(value("PYTHONPATH").1, "/wheel:/a:/b");
        assert_eq!(value("AMENT_PREFIX_PATH").1, "/one:/two");
    }
}
