//! An installation of ROS 2: the one that is sourced, or the one that `PTEROS_ROS2`
//! names.
//!
//! The version of the package `rmw` gives the distribution, and with it the ABI of
//! middleware plug-ins.

use anyhow::{Result, bail, ensure};
use std::path::{Path, PathBuf};

/// The variable with the prefix of an installation, such as `/opt/ros/jazzy`.
pub const VARIABLE: &str = "PTEROS_ROS2";

/// Distributions by the version of their package `rmw`.
const DISTRIBUTIONS: [(&str, &str); 5] = [
    ("6.1", "humble"),
    ("7.1", "iron"),
    ("7.3", "jazzy"),
    ("7.8", "kilted"),
    ("7.10", "lyrical"),
];

/// An installation of ROS 2.
#[derive(Debug)]
pub struct Ros2Installation {
    /// The prefix that holds the package `rmw`.
    pub prefix: PathBuf,
    /// The version of the package `rmw`, such as 7.3.2.
    pub rmw_version: String,
    /// Whether its setup file was sourced into this environment.
    pub is_sourced: bool,
}

impl Ros2Installation {
    /// The installation that `PTEROS_ROS2` names, or else the sourced one.
    ///
    /// # Errors
    /// `PTEROS_ROS2` names no installation.
    pub fn find() -> Result<Option<Self>> {
        let sourced = path_list("AMENT_PREFIX_PATH");
        let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        if let Some(prefix) = named.map(PathBuf::from) {
            // A workspace that was not merged has a prefix per package.
            let places = [prefix.clone(), prefix.join("rmw")];
            let mut places = places.iter();
            let found = places.find_map(|place| Self::at(place, sourced.contains(place)));
            let has_setup = found
                .as_ref()
                .is_some_and(|found| found.setup_folder().is_some());
            let Some(found) = found.filter(|_| has_setup) else {
                bail!(
                    "{VARIABLE}={}: no installation of ROS 2 is there: it has no setup.sh or no \
                     package rmw; name a prefix such as /opt/ros/jazzy, or unset it",
                    prefix.display()
                );
            };
            return Ok(Some(found));
        }
        Ok(sourced.iter().find_map(|prefix| Self::at(prefix, true)))
    }

    fn at(prefix: &Path, is_sourced: bool) -> Option<Self> {
        let manifest = std::fs::read_to_string(prefix.join("share/rmw/package.xml")).ok()?;
        let version = manifest.split_once("<version>")?.1.split_once('<')?.0;
        Some(Self {
            prefix: prefix.to_owned(),
            rmw_version: version.trim().to_owned(),
            is_sourced,
        })
    }

    /// Major and minor version of `rmw`, which decide about the ABI.
    pub fn rmw_abi(&self) -> &str {
        let version = self.rmw_version.as_str();
        let second_point = version.match_indices('.').nth(1);
        second_point.map_or(version, |(at, _)| version.split_at(at).0)
    }

    /// The distribution, if its version of `rmw` is known.
    pub fn distribution(&self) -> Option<&'static str> {
        distribution(self.rmw_abi())
    }

    /// Its name in findings and errors.
    pub fn title(&self) -> String {
        let name = self.distribution().unwrap_or("of an unknown distribution");
        let (prefix, version) = (self.prefix.display(), &self.rmw_version);
        format!("ROS 2 {name} in {prefix} (rmw {version})")
    }

    /// The folder of its setup files. A workspace that was not merged has them in
    /// the folder above the package's prefix.
    pub fn setup_folder(&self) -> Option<PathBuf> {
        setup_folder(&self.prefix)
    }

    /// A program of a package: in this prefix, or in any prefix that is sourced.
    pub fn program(&self, package: &str, name: &str) -> Option<PathBuf> {
        let beside = self.prefix.with_file_name(package);
        let prefixes = [self.prefix.clone(), beside].into_iter();
        let mut prefixes = prefixes.chain(path_list("AMENT_PREFIX_PATH"));
        prefixes.find_map(|prefix| {
            let program = prefix.join("lib").join(package).join(name);
            program.is_file().then_some(program)
        })
    }
}

/// The distribution with an ABI of `rmw`.
pub fn distribution(rmw_abi: &str) -> Option<&'static str> {
    let found = DISTRIBUTIONS.iter().find(|(abi, _)| *abi == rmw_abi);
    found.map(|(_, name)| *name)
}

fn setup_folder(prefix: &Path) -> Option<PathBuf> {
    let folders = [Some(prefix), prefix.parent()].into_iter().flatten();
    let mut folders = folders.filter(|folder| folder.join("setup.sh").is_file());
    folders.next().map(Path::to_owned)
}

/// The folders in an environment variable.
pub fn path_list(variable: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    let folders = std::env::split_paths(&value);
    folders.filter(|f| !f.as_os_str().is_empty()).collect()
}

/// A path that scripts and other programs can use from any folder.
///
/// # Errors
/// The path holds a character that ends an entry of `LD_LIBRARY_PATH` or breaks a
/// line, or the current folder is unknown.
pub fn usable_prefix(prefix: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(prefix)?;
    let text = absolute.to_string_lossy();
    let bad = text.chars().find(|c| ":;\"'$`\\\n\r\u{fffd}".contains(*c));
    if let Some(bad) = bad {
        bail!(
            "--prefix {text:?}: setup files and LD_LIBRARY_PATH cannot hold {bad:?}; use another \
             folder"
        );
    }
    ensure!(
        absolute.parent().is_some(),
        "--prefix /: this would write to the root folder; name a folder such as /opt/pteros"
    );
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(version: &str) -> Ros2Installation {
        Ros2Installation {
            prefix: "/opt/ros/x".into(),
            rmw_version: version.into(),
            is_sourced: false,
        }
    }

    #[test]
    fn the_version_of_rmw_tells_the_distribution() {
        for (version, abi, distribution) in [
            ("7.3.2", "7.3", Some("jazzy")),
            ("6.1.12", "6.1", Some("humble")),
            ("7.30.1", "7.30", None),
            ("8", "8", None),
        ] {
            let found = installation(version);
            assert_eq!((found.rmw_abi(), found.distribution()), (abi, distribution));
        }
        let title = installation("9.1.0").title();
        assert!(title.contains("unknown distribution in /opt/ros/x (rmw 9.1.0)"));
    }

    #[test]
    fn prefixes_that_no_variable_can_hold_are_refused() {
        for bad in ["/a:b", "/a\nb", "/a'b", "/", "/a$(b)"] {
            assert!(usable_prefix(Path::new(bad)).is_err(), "{bad}");
        }
        assert!(usable_prefix(Path::new("/a b")).is_ok());
        assert!(usable_prefix(Path::new("a")).unwrap().is_absolute());
    }
}
