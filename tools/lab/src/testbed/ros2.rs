//! The client libraries of ROS 2, rclcpp and rclpy, and its recorder. Each is an
//! implementation under test for each middleware plug-in that the installation has.
//!
//! The installation is the one that `PTEROS_ROS2` names, or the one that is sourced.
//! Pteros's plug-in is the one beside this program, else that of the installation.
//! Nothing is installed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pteros_peers::peer_build::run_quietly;
use pteros_peers::ros2::{Installation, NOT_FOUND};

use super::implementation::{RCLCPP, RCLPY, RMW_VARIABLE, ROSBAG2};
use super::{Implementation, PeerBuild};

/// File names of the programs.
pub const RCLCPP_PROGRAM: &str = "rclcpp-host";
/// See [`RCLCPP_PROGRAM`].
pub const RCLPY_PROGRAM: &str = "rclpy-host";
/// See [`RCLCPP_PROGRAM`].
pub const ROSBAG2_PROGRAM: &str = "rosbag2-recorder";
/// ROS 2's own command, whose lines are read as those of other programs.
const ROSBAG2_SCRIPT: &str =
    "#!/bin/sh\nexec ros2 bag record --disable-keyboard-controls \"$@\" 2>&1\n";

fn is_of_ros2(stack: &str) -> bool {
    [RCLCPP, RCLPY, ROSBAG2].contains(&stack)
}

const PLUG_IN: &str = "rmw_pteros_cpp";
/// Middlewares that the build may name. ROS 2's CMake files look for the development
/// files of one, although it is loaded at run time; those of Fast DDS need more.
const BUILT_WITH: [&str; 2] = ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"];
const SOURCES: [&str; 4] = [
    "host/rclcpp/CMakeLists.txt",
    "host/rclcpp/rclcpp.cpp",
    "host/host.h",
    "peer.h",
];

/// Builds the program over rclcpp with CMake, unless it was built with this
/// installation from the same sources.
///
/// # Errors
/// No ROS 2 is found, or the last lines of the build.
pub fn build_rclcpp(work: &PeerBuild) -> Result<PathBuf> {
    let installation = Installation::find()?.context(NOT_FOUND)?;
    let program = work.programs.join(RCLCPP_PROGRAM);
    let stamp = work.target.join("rclcpp-host.built");
    let built_with = stamp_text(work, &installation)?;
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|text| text == built_with) {
        return Ok(program);
    }
    let folder = work.empty_folder("rclcpp-host")?;
    let environment = installation.environment()?;
    let rmw = BUILT_WITH
        .iter()
        .find(|rmw| Installation::has_rmw(&environment, rmw));
    let cmake = |arguments: &[&str]| {
        let mut command = Command::new("cmake");
        command.args(arguments).current_dir(&folder);
        command.envs(rmw.map(|rmw| (RMW_VARIABLE, rmw)));
        run_quietly(command.envs(environment.iter().map(|(name, value)| (name, value))))
    };
    eprintln!("building {RCLCPP_PROGRAM}, which takes a minute");
    let source = work.sources.join("host/rclcpp");
    cmake(&[
        "-DCMAKE_BUILD_TYPE=Release",
        "-S",
        &source.to_string_lossy(),
        "-B",
        ".",
    ])?;
    cmake(&["--build", "."])?;
    // A copy over a program that runs would fail.
    let _ = fs::remove_file(&program);
    fs::copy(folder.join(RCLCPP_PROGRAM), &program).context("copy the program over rclcpp")?;
    fs::write(&stamp, built_with).with_context(|| format!("write {}", stamp.display()))?;
    Ok(program)
}

/// The prefix and all sources.
fn stamp_text(work: &PeerBuild, installation: &Installation) -> Result<String> {
    let mut text = format!("{}\n", installation.prefix().display());
    for name in SOURCES {
        let path = work.sources.join(name);
        text += &fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    }
    Ok(text)
}

/// Writes the program over rclpy: the script, with the Python of the installation.
///
/// # Errors
/// No ROS 2 is found, or the file cannot be written.
pub fn build_rclpy(work: &PeerBuild) -> Result<PathBuf> {
    let installation = Installation::find()?.context(NOT_FOUND)?;
    let environment = installation.environment()?;
    let python = installation.python();
    let mut check = Command::new(&python);
    check.args(["-c", "import rclpy, std_msgs"]);
    run_quietly(check.envs(environment.iter().map(|(name, value)| (name, value))))?;
    let script = fs::read_to_string(work.sources.join("host/rclpy/host.py"));
    let text = format!(
        "#!/usr/bin/env -S {python}\n{}",
        script.context("read host.py")?
    );
    write_script(work.programs.join(RCLPY_PROGRAM), &text)
}

/// Writes the program that executes `ros2 bag record`.
///
/// # Errors
/// No ROS 2 with rosbag2 is found, or the file cannot be written.
pub fn build_rosbag2(work: &PeerBuild) -> Result<PathBuf> {
    let installation = Installation::find()?.context(NOT_FOUND)?;
    let environment = installation.environment()?;
    let mut check = Command::new("ros2");
    check.args(["bag", "record", "--help"]);
    run_quietly(check.envs(environment.iter().map(|(name, value)| (name, value))))
        .context("the ROS 2 that was found has no ros2 bag record")?;
    write_script(work.programs.join(ROSBAG2_PROGRAM), ROSBAG2_SCRIPT)
}

fn write_script(program: PathBuf, text: &str) -> Result<PathBuf> {
    if fs::read_to_string(&program).is_ok_and(|there| there == text) {
        return Ok(program);
    }
    fs::write(&program, text).with_context(|| format!("write {}", program.display()))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, executable).context("make the script executable")?;
    Ok(program)
}

/// Gives the programs of ROS 2 the environment of the installation, and removes those
/// over a middleware that is not there, with a sentence. `folder` gets a link to the
/// plug-in.
///
/// # Errors
/// The setup file fails, or the link cannot be made.
pub fn complete(
    all: &mut Vec<Implementation>,
    folder: &Path,
    missing: &mut Vec<String>,
) -> Result<()> {
    if !all.iter().any(|c| is_of_ros2(c.stack)) {
        return Ok(());
    }
    let Some(installation) = Installation::find()? else {
        // That the program was not built has told it.
        all.retain(|c| !is_of_ros2(c.stack));
        return Ok(());
    };
    let mut environment = installation.environment()?;
    let own = std::env::current_exe().context("find this program's own path")?;
    let plug_in = own.with_file_name(format!("lib{PLUG_IN}.so"));
    if plug_in.is_file() {
        put_first(&mut environment, &link(&plug_in, &folder.join("plug-in"))?);
    }
    let is_found = |c: &Implementation| match c.rmw() {
        Some(rmw) if is_of_ros2(c.stack) => Installation::has_rmw(&environment, rmw),
        _ => true,
    };
    for implementation in all.iter().filter(|c| !is_found(c)) {
        let rmw = implementation.rmw().unwrap_or_default();
        let how = match rmw {
            PLUG_IN => "; cargo build --release -p pteros-rmw builds it beside this program",
            _ => "",
        };
        let text = format!("{rmw}: not in the ROS 2 that was found{how}");
        // Once for both libraries.
        if !missing.contains(&text) {
            missing.push(text);
        }
    }
    all.retain(is_found);
    for implementation in all.iter_mut().filter(|c| is_of_ros2(c.stack)) {
        implementation.environment.extend(environment.clone());
    }
    Ok(())
}

/// A folder with a link to the library alone: the one beside this program may hold
/// libraries of the same names as ROS 2's.
fn link(library: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let Some(name) = library.file_name() else {
        bail!("{} has no file name", library.display());
    };
    let place = folder.join(name);
    if fs::read_link(&place).is_ok_and(|there| there == library) {
        return Ok(folder.to_owned());
    }
    let _ = fs::remove_file(&place);
    symlink(library, &place).with_context(|| format!("link {}", place.display()))?;
    Ok(folder.to_owned())
}

/// Puts a folder before those of the loader's search path.
fn put_first(environment: &mut Vec<(&'static str, String)>, folder: &Path) {
    const VARIABLE: &str = "LD_LIBRARY_PATH";
    let folder = folder.to_string_lossy();
    match environment.iter_mut().find(|(name, _)| *name == VARIABLE) {
        Some((_, list)) if list.is_empty() => *list = folder.into_owned(),
        Some((_, list)) => *list = format!("{folder}:{list}"),
        None => environment.push((VARIABLE, folder.into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn the_plug_ins_folder_is_searched_first() {
        let lists = |first: Option<&str>| {
            let mut environment: Vec<(&'static str, String)> = first
                .map(|list| ("LD_LIBRARY_PATH", list.to_owned()))
                .into_iter()
                .collect();
            put_first(&mut environment, Path::new("/new"));
            environment[0].1.clone()
        };
        assert_eq!(lists(None), "/new");
        assert_eq!(lists(Some("")), "/new");
        assert_eq!(lists(Some("/a:/b")), "/new:/a:/b");
    }

    #[test]
    fn a_link_is_renewed_where_it_points_elsewhere() {
        let folder = Folder::absent("link");
        for library in ["/x/libone.so", "/y/libone.so"] {
            assert_eq!(link(Path::new(library), &folder).unwrap(), folder.path());
            let place = folder.join("libone.so");
            assert_eq!(fs::read_link(place).unwrap(), Path::new(library));
        }
    }
}
