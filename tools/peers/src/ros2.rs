//! Where ROS 2 and its built tests are, what a program of it needs, and which
//! middlewares it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The variable with the prefix of an installation.
pub const PREFIX_VARIABLE: &str = "PTEROS_ROS2";
/// The variable with the build folder of a workspace.
const TESTS_VARIABLE: &str = "PTEROS_ROS2_TESTS";

/// The error of commands that need a ROS 2 where none is found.
pub const NOT_FOUND: &str =
    "no ROS 2 was found: source its setup file, or name its prefix in PTEROS_ROS2";

/// Variables by which its programs and its build tools find its files.
pub const PATHS: [&str; 5] = [
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
];

/// An installation of ROS 2.
#[derive(Debug)]
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

    /// An installation that is not sourced, with its built tests.
    pub fn at(prefix: PathBuf, tests: PathBuf) -> Self {
        Self {
            prefix,
            is_sourced: false,
            tests: Some(tests),
        }
    }

    /// The folder that its setup file lies in.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Major and minor version of its package `rmw`, which decide about the ABI of
    /// middlewares.
    ///
    /// # Errors
    /// The prefix has no package `rmw`.
    pub fn rmw_abi(&self) -> Result<String> {
        let manifests = ["share/rmw/package.xml", "rmw/share/rmw/package.xml"];
        let mut manifests = manifests.iter().map(|path| self.prefix.join(path));
        let text = manifests.find_map(|path| fs::read_to_string(path).ok());
        let version = text.as_deref().and_then(|text| {
            let rest = text.split_once("<version>")?.1;
            rest.split_once('<')?.0.rsplit_once('.')
        });
        let (abi, _) =
            version.with_context(|| format!("{}: no package rmw", self.prefix.display()))?;
        Ok(abi.trim().to_owned())
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

    /// What its setup file sets of the variables with paths, or what is set if it
    /// was sourced.
    ///
    /// # Errors
    /// The setup file names no prefix.
    pub fn environment(&self) -> Result<Vec<(&'static str, String)>> {
        let Some(setup) = self.setup() else {
            let of = |name: &'static str| Some((name, std::env::var(name).ok()?));
            return Ok(PATHS.into_iter().filter_map(of).collect());
        };
        let mut command = Command::new("bash");
        command
            .args(["-c", ". \"$0\" > /dev/null; exec env -0"])
            .arg(&setup);
        for name in PATHS.iter().filter(|name| **name != "PATH") {
            command.env_remove(name);
        }
        let output = command.output().context("run bash")?;
        let found = paths_of(&String::from_utf8_lossy(&output.stdout));
        if !found.iter().any(|(name, _)| *name == "AMENT_PREFIX_PATH") {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().next_back().unwrap_or_default();
            bail!(
                "{} sets no AMENT_PREFIX_PATH: {last}; name the prefix of a ROS 2 in {PREFIX_VARIABLE}",
                setup.display()
            );
        }
        Ok(found)
    }

    /// Whether a folder of libraries in `environment` has this middleware.
    pub fn has_rmw(environment: &[(&'static str, String)], rmw: &str) -> bool {
        let file = format!("lib{rmw}.so");
        let list = environment.iter().find(|(n, _)| *n == "LD_LIBRARY_PATH");
        list.is_some_and(|(_, list)| {
            std::env::split_paths(list).any(|folder| folder.join(&file).is_file())
        })
    }
}

/// The variables of [`PATHS`] in the output of `env -0`.
fn paths_of(output: &str) -> Vec<(&'static str, String)> {
    let value = |name: &'static str| {
        let mut all = output.split('\0').filter_map(|entry| entry.split_once('='));
        let (_, value) = all.find(|(known, _)| *known == name)?;
        Some((name, value.to_owned()))
    };
    PATHS.into_iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn paths_are_taken_from_the_environment_and_nothing_else() {
        let output = "HOME=/h\0PATH=/a:/b\0PYTHONPATH=/p\nq=1\0LD_LIBRARY_PATH=";
        let expected = [
            ("LD_LIBRARY_PATH", String::new()),
            ("PATH", "/a:/b".to_owned()),
            ("PYTHONPATH", "/p\nq=1".to_owned()),
        ];
        assert_eq!(paths_of(output), expected);
    }

    #[test]
    fn a_middleware_is_found_by_its_library() {
        let folder = Folder::new("rmw");
        fs::write(folder.join("librmw_some_cpp.so"), "").unwrap();
        let list = format!("/nowhere:{}", folder.display());
        let environment = [("LD_LIBRARY_PATH", list)];
        assert!(Installation::has_rmw(&environment, "rmw_some_cpp"));
        assert!(!Installation::has_rmw(&environment, "rmw_other_cpp"));
        assert!(!Installation::has_rmw(&[], "rmw_some_cpp"));
    }
}
