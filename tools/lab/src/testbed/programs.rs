//! Programs of other stacks, built on demand: C and C++ with Debian's packages,
//! iceoryx2, Zenoh and hiroz as cargo projects outside of the workspace, rclcpp with the
//! ROS 2 that is found ([`ros2`]). A program that
//! cannot be built is reported and left out of the comparison.
//!
//! The sources are the repository's `verify/interop/host`. A binary embeds them, see
//! [`unpack`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::implementation::{RCLCPP, RCLPY, ROS1, ROSBAG2, WHEEL};
use super::{ros2, wheel};
use pteros_peers::peer_build::{PeerBuild, compiler, is_on_path, run_quietly};

/// A program, whether built or not.
#[derive(Debug)]
pub struct Program {
    /// The stack, as in [`super::Implementation::stack`].
    pub stack: &'static str,
    /// The program's file name.
    pub name: &'static str,
    /// Its path, or why it was not built.
    pub outcome: Result<PathBuf>,
}

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../verify/interop/", $path)))),*]
    };
}

/// The ROS 1 master, a program of the package python3-rosmaster.
pub const ROS1_MASTER: &str = "rosmaster";

/// The ROS 1 side of the bridge.
pub const ROS1_BRIDGE: &str = "ros1-bridge";

/// Paths below `interop` and the texts of all sources.
const SOURCES: &[(&str, &str)] = embedded![
    "peer.h",
    "array.idl",
    "chatter.idl",
    "cyclone/secured.h",
    "fastdds/secured.hpp",
    "host/host.h",
    "host/host.rs",
    "host/payload.idl",
    "host/floor.c",
    "host/cyclone.c",
    "host/fastdds.cpp",
    "host/roscpp.cpp",
    "host/bridge.cpp",
    "host/rclcpp/CMakeLists.txt",
    "host/rclcpp/rclcpp.cpp",
    "host/rclpy/host.py",
    "host/iceoryx2/Cargo.toml",
    "host/iceoryx2/Cargo.lock",
    "host/iceoryx2/src/main.rs",
    "host/zenoh/Cargo.toml",
    "host/zenoh/Cargo.lock",
    "host/zenoh/src/main.rs",
    "host/zenoh/src/ros.rs",
    "host/hiroz/Cargo.toml",
    "host/hiroz/Cargo.lock",
    "host/hiroz/src/main.rs",
];

/// Writes the embedded sources below `folder`. Unchanged files keep their time, so
/// that nothing is built again.
///
/// # Errors
/// A file cannot be written.
pub fn unpack(folder: &Path) -> Result<()> {
    for (path, text) in SOURCES {
        let file = folder.join(path);
        if fs::read_to_string(&file).is_ok_and(|there| there == *text) {
            continue;
        }
        let parent = file.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

/// Builds the missing or outdated programs of the `selected` stacks, or of all.
/// Stops once `is_over` returns true.
pub fn prepare(work: &PeerBuild, selected: &[String], is_over: &dyn Fn() -> bool) -> Vec<Program> {
    type Build = fn(&PeerBuild) -> Result<PathBuf>;
    let list: [(&str, &str, Build); 12] = [
        ("floor", "floor", build_floor),
        ("cyclone", "cyclone-host", build_cyclone),
        ("fastdds", "fastdds-host", build_fastdds),
        ("iceoryx2", "iceoryx2-host", |work| {
            build_cargo(work, "iceoryx2", &[])
        }),
        ("zenoh", "zenoh-host", |work| {
            build_cargo(work, "zenoh", &["src/ros.rs"])
        }),
        ("hiroz", "hiroz-host", |work| {
            build_cargo(work, "hiroz", &[])
        }),
        (ROS1, "roscpp-host", |work| {
            build_roscpp(work, "roscpp-host", "host/roscpp.cpp")
        }),
        (ROS1, ROS1_BRIDGE, |work| {
            build_roscpp(work, ROS1_BRIDGE, "host/bridge.cpp")
        }),
        (RCLCPP, ros2::RCLCPP_PROGRAM, ros2::build_rclcpp),
        (RCLPY, ros2::RCLPY_PROGRAM, ros2::build_rclpy),
        (ROSBAG2, ros2::ROSBAG2_PROGRAM, ros2::build_rosbag2),
        (WHEEL, wheel::PROGRAM, wheel::build),
    ];
    let is_wanted = |stack: &str| selected.is_empty() || selected.iter().any(|name| name == stack);
    list.into_iter()
        .filter(|(stack, ..)| is_wanted(stack))
        .take_while(|_| !is_over())
        .map(|(stack, name, build)| Program {
            stack,
            name,
            outcome: build(work),
        })
        .collect()
}

fn build_floor(work: &PeerBuild) -> Result<PathBuf> {
    let program = work.programs.join("floor");
    if work.is_fresh(&program, &["host/floor.c", "peer.h"]) {
        return Ok(program);
    }
    work.ensure_installed("cc", "/usr/bin/cc", &["gcc", "libc6-dev"])?;
    let mut cc = compiler("cc", "gnu11", &program);
    run_quietly(cc.arg(work.sources.join("host/floor.c")).arg("-lpthread"))?;
    Ok(program)
}

fn build_cyclone(work: &PeerBuild) -> Result<PathBuf> {
    let program = work.programs.join("cyclone-host");
    let sources = [
        "host/cyclone.c",
        "cyclone/secured.h",
        "host/host.h",
        "peer.h",
        "array.idl",
        "chatter.idl",
    ];
    if work.is_fresh(&program, &sources) {
        return Ok(program);
    }
    work.ensure_cyclone()?;
    let generated = work.empty_folder("cyclone-host")?;
    let mut cc = compiler("cc", "gnu11", &program);
    cc.arg("-I").arg(&generated);
    cc.arg(work.sources.join("host/cyclone.c"));
    for name in ["array", "chatter"] {
        let mut idlc = Command::new("idlc");
        idlc.args(["-t", "-o"]).arg(&generated);
        run_quietly(idlc.arg(work.sources.join(format!("{name}.idl"))))?;
        cc.arg(generated.join(format!("{name}.c")));
    }
    run_quietly(cc.args(["-lddsc", "-lpthread"]))?;
    Ok(program)
}

fn build_fastdds(work: &PeerBuild) -> Result<PathBuf> {
    let program = work.programs.join("fastdds-host");
    let sources = [
        "host/fastdds.cpp",
        "fastdds/secured.hpp",
        "host/host.h",
        "host/payload.idl",
        "peer.h",
        "array.idl",
        "chatter.idl",
    ];
    if work.is_fresh(&program, &sources) {
        return Ok(program);
    }
    work.ensure_fastdds()?;
    let generated = work.empty_folder("fastdds-host")?;
    let mut cxx = compiler("g++", "c++17", &program);
    cxx.arg("-I").arg(&generated);
    cxx.arg(work.sources.join("host/fastdds.cpp"));
    for (name, folder) in [("array", ""), ("chatter", ""), ("payload", "host")] {
        // It writes next to its input, whatever -d says about includes.
        let idl = generated.join(format!("{name}.idl"));
        fs::copy(work.sources.join(folder).join(format!("{name}.idl")), &idl)
            .with_context(|| format!("copy {name}.idl"))?;
        let mut generator = Command::new("fastddsgen");
        generator.args(["-replace", "-d"]).arg(&generated).arg(&idl);
        run_quietly(generator.current_dir(&generated))?;
        cxx.arg(generated.join(format!("{name}.cxx")));
        cxx.arg(generated.join(format!("{name}PubSubTypes.cxx")));
    }
    run_quietly(cxx.args(["-lfastrtps", "-lfastcdr", "-lpthread"]))?;
    Ok(program)
}

fn build_roscpp(work: &PeerBuild, name: &str, source: &str) -> Result<PathBuf> {
    let program = work.programs.join(name);
    let sources = [source, "host/host.h", "peer.h"];
    if is_on_path(ROS1_MASTER) && work.is_fresh(&program, &sources) {
        return Ok(program);
    }
    let packages = [
        "libroscpp-dev",
        "libstd-msgs-dev",
        "python3-rosmaster",
        "g++",
    ];
    work.ensure_installed(ROS1_MASTER, "/usr/include/ros/ros.h", &packages)?;
    work.ensure_installed("g++", "/usr/include/std_msgs/String.h", &packages)?;
    let mut cxx = compiler("g++", "c++17", &program);
    cxx.arg(work.sources.join(source));
    let libraries = [
        "roscpp",
        "rosconsole",
        "roscpp_serialization",
        "rostime",
        "cpp_common",
    ];
    let boost = ["boost_thread", "boost_chrono", "boost_system", "pthread"];
    cxx.args(
        libraries
            .iter()
            .chain(&boost)
            .map(|name| format!("-l{name}")),
    );
    run_quietly(&mut cxx)?;
    Ok(program)
}

/// Builds the cargo project `host/NAME`, with these files beside its main one. Its crates
/// come from the registry as in its lock file, if installing is allowed.
fn build_cargo(work: &PeerBuild, name: &str, further: &[&str]) -> Result<PathBuf> {
    let program = work.programs.join(format!("{name}-host"));
    let file = |path: &&str| format!("host/{name}/{path}");
    let files = ["src/main.rs", "Cargo.toml", "Cargo.lock"];
    let files: Vec<String> = files.iter().chain(further).map(file).collect();
    let sources: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .chain(["host/host.rs"])
        .collect();
    if work.is_fresh(&program, &sources) {
        return Ok(program);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    if !work.may_install || !(is_on_path("cargo") || Path::new(&cargo).exists()) {
        bail!("is built by cargo from the crate registry, with --install-peers");
    }
    eprintln!("building {name}, which takes minutes the first time");
    let target = work.target.join("cargo");
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--locked", "--quiet"]);
    build.current_dir(work.sources.join("host").join(name));
    run_quietly(build.env("CARGO_TARGET_DIR", &target))
        .with_context(|| format!("needs {name} from the crate registry"))?;
    let built = target.join("release").join(format!("{name}-host"));
    fs::copy(&built, &program).with_context(|| format!("copy {}", built.display()))?;
    Ok(program)
}
