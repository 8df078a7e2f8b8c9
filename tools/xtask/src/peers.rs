//! `cargo xtask peers [--check]`: installs and builds the DDS stacks of other
//! vendors under `target/interop`, see verify/interop/README.md.
//!
//! A missing peer does not affect the others, and its reason is printed. A program
//! is rebuilt if its sources are newer.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use pteros_peers::peer_build::{PeerBuild, compiler, run_quietly};

use crate::checkout::root;

/// The peer programs, available or not.
pub struct Peers {
    /// The folder of the programs, for `PTEROS_PEERS`.
    pub folder: PathBuf,
    /// Each peer's program, or the reason why it is missing and a hint.
    pub list: Vec<(&'static str, Result<PathBuf>)>,
}

/// The virtual environment of Kilted's rclpy, beside the folder of the programs.
pub const VENV_KILTED: &str = "venv-rclpy-kilted";

/// The tested PyPI release.
const PYTHON_CYCLONE: &str = "cyclonedds==11.0.1";
/// The same of Zenoh, with the hash that makes gids.
const PYTHON_ZENOH: [&str; 2] = ["eclipse-zenoh==1.10.2", "xxhash"];

/// A peer in Python, with packages of PyPI in a virtual environment of its own.
struct PythonPeer {
    name: &'static str,
    venv: &'static str,
    packages: &'static [&'static str],
    /// A file below `verify/interop` with further packages, all that they need, and hashes.
    list: Option<&'static str>,
    /// What works if they are installed.
    import: &'static str,
    /// Its script; without one it is the Python itself.
    script: Option<&'static str>,
}

/// The tested PyPI releases of libraries that read and write bags.
const PYTHON_BAGS: [&str; 4] = [
    "mcap==1.6.0",
    "mcap-ros2-support==0.6.0",
    "rosbags==0.11.9",
    "PyYAML==6.0.4",
];

/// Further source files of the node programs.
const CYCLONE_ACTION: [&str; 3] = ["action_peer.h", "node_peer.h", "cyclone/node.h"];
const FASTDDS_ACTION: [&str; 3] = ["action_peer.h", "node_peer.h", "fastdds/node.hpp"];
const CYCLONE_PARAMETERS: [&str; 3] = ["parameter_peer.h", "node_peer.h", "cyclone/node.h"];
const FASTDDS_PARAMETERS: [&str; 3] = ["parameter_peer.h", "node_peer.h", "fastdds/node.hpp"];
/// The features of the cargo project `rust`, one for each crate.
const RUST_STACKS: [&str; 4] = ["rustdds", "dust_dds", "hiroz", "ros2-client"];
/// Further source files of the peers in Rust.
const RUST_MODULES: [&str; 3] = [
    "rust/src/dds_peer.rs",
    "rust/src/messages.rs",
    "rust/src/options.rs",
];

#[derive(clap::Args)]
pub struct Arguments {
    /// Test every pair, in both directions
    #[arg(long)]
    check: bool,
}

/// Runs the task. Fails if a peer is missing.
pub fn run(arguments: &Arguments) -> Result<()> {
    let peers = prepare()?;
    for (name, outcome) in &peers.list {
        println!("{}", line(name, outcome));
    }
    let missing = peers.list.iter().filter(|(_, outcome)| outcome.is_err());
    let missing = missing.count();
    if arguments.check {
        crate::peers_check::run_in_namespace(&peers)?;
    }
    if missing > 0 {
        bail!(
            "{missing} of {} peers are missing, see above",
            peers.list.len()
        );
    }
    Ok(())
}

/// The line that the task prints about a peer.
fn line(name: &str, outcome: &Result<PathBuf>) -> String {
    match outcome {
        Ok(path) => format!("{name:14} {}", path.display()),
        Err(why) => {
            // One line of it, for those who read the task's output.
            let why = format!("{why:#}").replace('\n', " ");
            format!("{name:14}{MISSING}{why}")
        }
    }
}

/// Stands between the name of a missing peer and the reason.
const MISSING: &str = " missing: ";

/// The name and the reason in the line of a missing peer.
pub fn missing(line: &str) -> Option<String> {
    let (name, why) = line.split_once(MISSING)?;
    Some(format!("{}: {why}", name.trim_end()))
}

/// Installs the compilers and libraries from which peers are built, and returns the
/// folder of the peers. What cannot be installed is a reason of [`prepare`]. Fails only if
/// the folder cannot be created.
pub fn install_tools() -> Result<PathBuf> {
    let work = workplace()?;
    for missing in [work.ensure_cyclone(), work.ensure_fastdds()] {
        if let Err(why) = missing {
            println!("{why:#}");
        }
    }
    Ok(work.programs)
}

/// Installs and builds missing peers. Fails only if their folder cannot be created.
pub fn prepare() -> Result<Peers> {
    let work = InteropBuilder(workplace()?);
    let list = vec![
        ("cyclone-peer", work.build_cyclone()),
        ("fastdds-peer", work.build_fastdds()),
        ("cyclone-shapes", work.build_cyclone_shapes()),
        ("fastdds-shapes", work.build_fastdds_shapes()),
        (
            "cyclone-service",
            work.build_cyclone_node("service", "add_two_ints_headed", &["service_peer.h"]),
        ),
        (
            "fastdds-service",
            work.build_fastdds_node("service", "add_two_ints", &["service_peer.h"]),
        ),
        (
            "cyclone-action",
            work.build_cyclone_node("action", "actions", &CYCLONE_ACTION),
        ),
        (
            "fastdds-action",
            work.build_fastdds_node("action", "actions", &FASTDDS_ACTION),
        ),
        (
            "cyclone-parameters",
            work.build_cyclone_node("parameters", "parameters", &CYCLONE_PARAMETERS),
        ),
        (
            "fastdds-parameters",
            work.build_fastdds_node("parameters", "parameters", &FASTDDS_PARAMETERS),
        ),
        (
            "python-peer",
            work.build_python(&PythonPeer {
                name: "python-peer",
                venv: "venv",
                packages: &[PYTHON_CYCLONE],
                list: None,
                import: "import cyclonedds.domain",
                script: Some("python/peer.py"),
            }),
        ),
        (
            "zenoh-peer",
            work.build_python(&PythonPeer {
                name: "zenoh-peer",
                venv: "venv-zenoh",
                packages: &PYTHON_ZENOH,
                list: None,
                import: "import zenoh.ext, xxhash",
                script: Some("zenoh/peer.py"),
            }),
        ),
        ("rustdds-peer", work.build_rust("rustdds")),
        ("dust_dds-peer", work.build_rust("dust_dds")),
        ("hiroz-peer", work.build_rust("hiroz")),
        ("ros2-client-peer", work.build_rust("ros2-client")),
        (
            "bag-python",
            work.build_python(&PythonPeer {
                name: "bag-python",
                venv: "venv-bag",
                packages: &PYTHON_BAGS,
                list: None,
                import: "import mcap, mcap_ros2.decoder, rosbags.highlevel, ruamel.yaml, yaml",
                script: None,
            }),
        ),
        (
            "rclpy-jazzy",
            work.build_python(&PythonPeer {
                name: "rclpy-jazzy",
                venv: "venv-rclpy-jazzy",
                packages: &[],
                list: Some("python/rclpy-jazzy.txt"),
                import: "import rclpy, rosidl_adapter.parser, test_msgs.msg",
                script: None,
            }),
        ),
        (
            "rclpy-kilted",
            work.build_python(&PythonPeer {
                name: "rclpy-kilted",
                venv: VENV_KILTED,
                packages: &[],
                list: Some("python/rclpy-kilted.txt"),
                import: "import rclpy, test_msgs.msg",
                script: None,
            }),
        ),
    ];
    Ok(Peers {
        folder: work.0.programs,
        list,
    })
}

/// The build folder of cargo.
pub fn target_folder() -> Result<PathBuf> {
    let root = root().canonicalize()?;
    Ok(std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |folder| root.join(folder)))
}

/// The folders of the peers' sources and builds.
pub fn workplace() -> Result<PeerBuild> {
    let root = root().canonicalize()?;
    PeerBuild::open(
        root.join("verify/interop"),
        target_folder()?.join("interop"),
        true,
    )
}

/// The program over a crate.
fn rust_peer(stack: &str) -> String {
    format!("{stack}-peer")
}

/// Builds the peers of the tests.
struct InteropBuilder(PeerBuild);

impl std::ops::Deref for InteropBuilder {
    type Target = PeerBuild;

    fn deref(&self) -> &PeerBuild {
        &self.0
    }
}

impl InteropBuilder {
    fn build_cyclone(&self) -> Result<PathBuf> {
        let program = self.programs.join("cyclone-peer");
        if self.is_fresh(
            &program,
            &[
                "cyclone/peer.c",
                "cyclone/secured.h",
                "peer.h",
                "chatter.idl",
                "array.idl",
            ],
        ) {
            return Ok(program);
        }
        self.ensure_cyclone()?;
        let generated = self.empty_folder("cyclone")?;
        let idlc = |options: &[&str], file: &str| {
            let mut command = Command::new("idlc");
            command
                .args(options)
                .arg("-o")
                .arg(&generated)
                .arg(self.sources.join(file));
            run_quietly(&mut command)
        };
        idlc(&[], "chatter.idl")?;
        idlc(&["-t"], "array.idl")?; // the reason is in the file
        let mut cc = compiler("cc", "gnu11", &program);
        cc.arg("-I")
            .arg(&generated)
            .arg(self.sources.join("cyclone/peer.c"));
        cc.args([generated.join("chatter.c"), generated.join("array.c")]);
        run_quietly(cc.args(["-lddsc", "-lpthread"]))?;
        Ok(program)
    }

    fn build_fastdds(&self) -> Result<PathBuf> {
        let program = self.programs.join("fastdds-peer");
        if self.is_fresh(
            &program,
            &[
                "fastdds/peer.cpp",
                "fastdds/secured.hpp",
                "peer.h",
                "chatter.idl",
                "array.idl",
            ],
        ) {
            return Ok(program);
        }
        self.ensure_fastdds()?;
        let generated = self.empty_folder("fastdds")?;
        let mut cxx = compiler("g++", "c++17", &program);
        cxx.arg("-I")
            .arg(&generated)
            .arg(self.sources.join("fastdds/peer.cpp"));
        for name in ["chatter", "array"] {
            // idlc writes beside its input, whatever -d says about includes.
            let idl = generated.join(format!("{name}.idl"));
            fs::copy(self.sources.join(format!("{name}.idl")), &idl)?;
            let mut generator = Command::new("fastddsgen");
            generator.args(["-replace", "-typeobject", "-d"]);
            generator.arg(&generated).arg(&idl);
            run_quietly(generator.current_dir(&generated))?;
            cxx.arg(generated.join(format!("{name}.cxx")));
            cxx.arg(generated.join(format!("{name}PubSubTypes.cxx")));
            cxx.arg(generated.join(format!("{name}TypeObject.cxx")));
        }
        run_quietly(cxx.args(["-lfastrtps", "-lfastcdr", "-lpthread"]))?;
        Ok(program)
    }

    fn build_cyclone_shapes(&self) -> Result<PathBuf> {
        let program = self.programs.join("cyclone-shapes");
        let sources = ["cyclone/shapes.c", "shapes_peer.h", "peer.h", "shapes.idl"];
        if self.is_fresh(&program, &sources) {
            return Ok(program);
        }
        self.ensure_cyclone()?;
        let idl = self.sources.join("shapes.idl");
        let idlc = |name: &str, options: &[&str]| {
            let generated = self.empty_folder(name)?;
            let mut command = Command::new("idlc");
            command.args(options).arg("-o").arg(&generated).arg(&idl);
            run_quietly(&mut command)?;
            Ok::<_, anyhow::Error>(generated)
        };
        let appendable = idlc("cyclone-shapes", &["-x", "appendable"])?;
        // The IDL file explains the reason.
        let as_final = idlc("cyclone-shapes-final", &["-t", "-x", "final"])?;
        let object = as_final.join("shapes.o");
        let mut cc = compiler("cc", "gnu11", &object);
        cc.args(["-c", "-DShapeType_desc=ShapeType_final_desc", "-I"]);
        run_quietly(cc.arg(&as_final).arg(as_final.join("shapes.c")))?;
        let mut cc = compiler("cc", "gnu11", &program);
        cc.arg("-I")
            .arg(&appendable)
            .arg(self.sources.join("cyclone/shapes.c"));
        cc.args([appendable.join("shapes.c"), object]);
        run_quietly(cc.args(["-lddsc", "-lpthread"]))?;
        Ok(program)
    }

    fn build_fastdds_shapes(&self) -> Result<PathBuf> {
        let program = self.programs.join("fastdds-shapes");
        let sources = [
            "fastdds/shapes.cpp",
            "shapes_peer.h",
            "peer.h",
            "shapes.idl",
        ];
        if self.is_fresh(&program, &sources) {
            return Ok(program);
        }
        self.ensure_fastdds()?;
        let generated = self.empty_folder("fastdds-shapes")?;
        let idl = generated.join("shapes.idl");
        fs::copy(self.sources.join("shapes.idl"), &idl)?;
        let mut generator = Command::new("fastddsgen");
        generator.args(["-replace", "-typeobject", "-d"]);
        generator.arg(&generated).arg(&idl);
        run_quietly(generator.current_dir(&generated))?;
        let mut cxx = compiler("g++", "c++17", &program);
        cxx.arg("-I")
            .arg(&generated)
            .arg(self.sources.join("fastdds/shapes.cpp"));
        let parts = ["shapes", "shapesPubSubTypes", "shapesTypeObject"];
        cxx.args(parts.map(|name| generated.join(format!("{name}.cxx"))));
        run_quietly(cxx.args(["-lfastrtps", "-lfastcdr", "-lpthread"]))?;
        Ok(program)
    }

    /// Builds `cyclone/NAME.c` with the types of `IDL.idl`. With HEADED defined,
    /// requests and replies begin with their request ids.
    fn build_cyclone_node(&self, name: &str, idl: &str, headers: &[&str]) -> Result<PathBuf> {
        let program = self.programs.join(format!("cyclone-{name}"));
        let (source, types) = (format!("cyclone/{name}.c"), format!("{idl}.idl"));
        if self.is_fresh(
            &program,
            &[&[&*source, &*types, "peer.h"], headers].concat(),
        ) {
            return Ok(program);
        }
        self.ensure_cyclone()?;
        let generated = self.empty_folder(&format!("cyclone-{name}"))?;
        let mut idlc = Command::new("idlc");
        // With the request id the type is not that of the service, so it is not
        // announced.
        idlc.args(["-t", "-DHEADED", "-o"])
            .arg(&generated)
            .arg(self.sources.join(types));
        run_quietly(&mut idlc)?;
        let mut cc = compiler("cc", "gnu11", &program);
        cc.arg("-I")
            .arg(&generated)
            .arg(self.sources.join(source))
            .arg(generated.join(format!("{idl}.c")));
        run_quietly(cc.args(["-lddsc", "-lpthread"]))?;
        Ok(program)
    }

    /// Builds `fastdds/NAME.cpp` with the types of `IDL.idl`.
    fn build_fastdds_node(&self, name: &str, idl: &str, headers: &[&str]) -> Result<PathBuf> {
        let program = self.programs.join(format!("fastdds-{name}"));
        let (source, types) = (format!("fastdds/{name}.cpp"), format!("{idl}.idl"));
        if self.is_fresh(
            &program,
            &[&[&*source, &*types, "peer.h"], headers].concat(),
        ) {
            return Ok(program);
        }
        self.ensure_fastdds()?;
        let generated = self.empty_folder(&format!("fastdds-{name}"))?;
        fs::copy(self.sources.join(&types), generated.join(&types))?;
        let mut generator = Command::new("fastddsgen");
        generator.args(["-replace", "-d"]);
        generator.arg(&generated).arg(generated.join(&types));
        run_quietly(generator.current_dir(&generated))?;
        let mut cxx = compiler("g++", "c++17", &program);
        cxx.arg("-I").arg(&generated).arg(self.sources.join(source));
        let parts = [format!("{idl}.cxx"), format!("{idl}PubSubTypes.cxx")];
        cxx.args(parts.map(|name| generated.join(name)));
        run_quietly(cxx.args(["-lfastrtps", "-lfastcdr", "-lpthread"]))?;
        Ok(program)
    }

    /// Builds the peer over that crate, a program of the cargo project `rust`. Crates come
    /// from the registry as in its lock file. What is not built yet is built with it: one
    /// set of features compiles what they share once, Zenoh above all. Where that fails it
    /// is built alone, so that a stack that does not build is missing alone.
    fn build_rust(&self, stack: &str) -> Result<PathBuf> {
        let program = self.programs.join(rust_peer(stack));
        if self.is_fresh_rust(stack) {
            return Ok(program);
        }
        let stale = RUST_STACKS
            .into_iter()
            .filter(|one| !self.is_fresh_rust(one));
        let stale: Vec<&str> = stale.collect();
        eprintln!("building {stack}-peer, which takes minutes the first time");
        if stale.len() == 1 || self.run_cargo(&RUST_STACKS, &stale).is_err() {
            self.run_cargo(&[stack], &[stack])
                .with_context(|| format!("{stack}-peer needs its crates from the registry"))?;
        }
        Ok(program)
    }

    fn is_fresh_rust(&self, stack: &str) -> bool {
        let name = rust_peer(stack);
        let source = format!("rust/src/{}.rs", name.replace('-', "_"));
        let sources = [&source, "rust/Cargo.toml", "rust/Cargo.lock"];
        let sources = [&sources[..], &RUST_MODULES].concat();
        self.is_fresh(&self.programs.join(name), &sources)
    }

    /// Builds the peers over some of these crates, with the features of all of them.
    fn run_cargo(&self, features: &[&str], stacks: &[&str]) -> Result<()> {
        let target = self.target.join("cargo-rust");
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--locked", "--quiet", "--features"]);
        build.arg(features.join(","));
        for stack in stacks {
            build.args(["--bin", &rust_peer(stack)]);
        }
        build.current_dir(self.sources.join("rust"));
        run_quietly(build.env("CARGO_TARGET_DIR", &target))?;
        for name in stacks.iter().map(|stack| rust_peer(stack)) {
            let built = target.join("debug").join(&name);
            fs::copy(&built, self.programs.join(&name))
                .with_context(|| format!("copy {}", built.display()))?;
        }
        Ok(())
    }

    fn build_python(&self, peer: &PythonPeer) -> Result<PathBuf> {
        let program = self.programs.join(peer.name);
        let venv = self.target.join(peer.venv);
        let python = venv.join("bin/python");
        let is_usable = || {
            let mut ask = Command::new(&python);
            python.exists() && run_quietly(ask.args(["-c", peer.import])).is_ok()
        };
        if !is_usable() {
            self.ensure_installed("python3", "/usr/bin/env", &["python3", "python3-venv"])?;
            let mut make = Command::new("python3");
            make.args(["-m", "venv", "--clear"]).arg(&venv);
            if let Err(first) = run_quietly(&mut make) {
                // On Debian ensurepip is a separate package.
                self.install(&["python3-venv"]).context(first)?;
                run_quietly(&mut make)?;
            }
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet"])
                .args(peer.packages);
            if let Some(list) = peer.list {
                pip.args(["--require-hashes", "-r"])
                    .arg(self.sources.join(list));
            }
            run_quietly(&mut pip)
                .context("it needs a Python version with a wheel on PyPI, and network access")?;
            if !is_usable() {
                bail!("{}: installed but cannot be imported", peer.name);
            }
        }
        let script = peer.script.map_or_else(String::new, |script| {
            format!(" '{}'", self.sources.join(script).display())
        });
        let text = format!("#!/bin/sh\nexec '{}'{script} \"$@\"\n", python.display());
        fs::write(&program, text)?;
        fs::set_permissions(
            &program,
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )?;
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_is_read_from_its_line() {
        let why = Err(anyhow::anyhow!("gcc ended with 1:\nno disk"));
        let said = missing(&line("x-peer", &why));
        assert_eq!(said.as_deref(), Some("x-peer: gcc ended with 1: no disk"));
        let built = line("x-peer", &Ok(PathBuf::from("bin/x-peer")));
        assert_eq!(missing(&built), None);
    }

    #[test]
    fn every_rust_peer_is_a_program_of_its_project_and_needs_its_feature() {
        let manifest = root().join("verify/interop/rust/Cargo.toml");
        let text = fs::read_to_string(manifest).unwrap();
        for stack in RUST_STACKS {
            let program = format!("name = {:?}\n", rust_peer(stack));
            assert!(text.contains(&program), "{program}");
            let feature = format!("required-features = [{stack:?}]");
            assert!(text.contains(&feature), "{feature}");
        }
    }
}
