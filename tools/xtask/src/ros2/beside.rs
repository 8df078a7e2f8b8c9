//! A ROS 2 beside the checkout: an optional folder with a script that unpacks one.
//!
//! `shared/ros2/unpack`, in the folder that holds the checkout, puts a ROS 2 with built
//! tests somewhere and prints where. `PTEROS_ROS2_UNPACK` names another script. The place
//! has the prefix in `install` and the built tests in `build`. Nothing of it is copied.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pteros_peers::ros2::Installation;

use crate::checkout::root;
use crate::limited_command::run_limited;

/// The variable with the path of a script.
const VARIABLE: &str = "PTEROS_ROS2_UNPACK";
/// The script from the folder that holds the checkout.
const SCRIPT: &str = "shared/ros2/unpack";
/// Seconds where nothing is to be installed first.
const UNPACK_MAX: Duration = Duration::from_secs(300);

/// Unpacks the installation, if that was not done before.
///
/// # Errors
/// Why there is none, as the rest of a sentence.
pub fn unpack() -> Result<Installation> {
    let place = run_script(&[])?;
    Ok(Installation::at(place.join("install"), place.join("build")))
}

/// As [`unpack`], the prefix of a ROS 2 Humble, which the script brings by its name.
///
/// # Errors
/// As [`unpack`].
pub fn unpack_humble() -> Result<PathBuf> {
    Ok(run_script(&["humble"])?.join("install"))
}

/// The place that the script names.
fn run_script(arguments: &[&str]) -> Result<PathBuf> {
    let script = script().context("no folder beside the checkout brings one")?;
    let output = run_limited(Command::new(&script).args(arguments), UNPACK_MAX, false)?;
    let last = output.text.trim().lines().next_back().unwrap_or_default();
    ensure!(output.succeeded, "{} failed: {last}", script.display());
    let place = place(&output.text);
    place.with_context(|| {
        format!(
            "{} names no folder with install/setup.bash",
            script.display()
        )
    })
}

fn script() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let script = match named {
        Some(named) => PathBuf::from(named),
        None => root().parent()?.join(SCRIPT),
    };
    script.is_file().then_some(script)
}

/// The first folder of an installation in what the script printed, or above a path there.
fn place(printed: &str) -> Option<PathBuf> {
    let words = printed.split([' ', ';', '\n', '\t']);
    let paths = words.filter(|word| word.starts_with('/'));
    let mut folders = paths.flat_map(|path| Path::new(path).ancestors());
    let found = folders.find(|folder| folder.join("install/setup.bash").is_file());
    found.map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn the_place_is_found_in_what_the_script_prints() {
        let folder = Folder::absent("beside");
        let install = folder.join("install");
        std::fs::create_dir_all(&install).unwrap();
        std::fs::write(install.join("setup.bash"), "").unwrap();
        let at = folder.display();
        for printed in [
            format!("{at} is there\n"),
            format!("ROS 2: . {at}/env.sh; . {at}/install/setup.bash\n"),
        ] {
            assert_eq!(place(&printed), Some(folder.to_path_buf()), "{printed}");
        }
        assert_eq!(place("nothing at /nowhere"), None);
    }
}
