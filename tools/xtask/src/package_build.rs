//! Builds and starts the programs of packages: with cargo's profile for packages, linked
//! by zig against an older glibc than this machine's (`cargo zigbuild`).
//!
//! Those for another processor are built in the Debian root of `cargo xtask cross`, and
//! run by the emulator in the root of a board (`cross::Board`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;
use crate::cross::{self, Board, ForeignRoot, PATH_INSIDE, Target};
use crate::machine::Machine;
use crate::peers::target_folder;
use crate::progress;

/// A version of glibc.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Glibc(pub u32, pub u32);

impl std::fmt::Display for Glibc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Oldest glibc that packages run with: Debian 10, RHEL 8.
pub const GLIBC_MIN: Glibc = Glibc(2, 28);
/// What links against an older glibc than the host's.
const TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];
/// Variables of the caller that would change what a program of a package does.
const REMOVED: [&str; 3] = [
    "AMENT_PREFIX_PATH",
    "PTEROS_ROS2",
    "ZENOH_SESSION_CONFIG_URI",
];

/// Options of the tasks that make packages.
#[derive(clap::Args)]
pub struct Options {
    /// The processor: x86_64 or aarch64, by default this machine's. Another one needs what
    /// `cargo xtask cross` needs
    #[arg(long, value_name = "MACHINE")]
    target: Option<String>,
    /// Cargo's profile; `dev` is quick, for trials
    #[arg(long, value_name = "NAME", default_value = "dist")]
    profile: String,
}

impl Options {
    /// The build of the tests: this machine's, quick.
    pub fn for_tests() -> Self {
        Self {
            target: None,
            profile: "dev".to_owned(),
        }
    }
}

/// What links.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Linker {
    /// For this machine's glibc.
    Host,
    /// For [`GLIBC_MIN`].
    Zig,
}

/// Builds for one machine.
pub struct PackageBuild {
    pub machine: &'static Machine,
    profile: String,
    linker: Linker,
    foreign: Option<Foreign>,
}

/// Where another processor's programs are built, and where they run.
struct Foreign {
    target: &'static Target,
    root: ForeignRoot,
    board: Board,
}

impl PackageBuild {
    /// Makes what another processor needs: minutes, once.
    ///
    /// # Errors
    /// No packages are made for the machine, or this one cannot make them.
    pub fn open(options: &Options, linker: Linker) -> Result<Self> {
        let machine = match &options.target {
            Some(name) => Machine::packaged(name)?,
            None => Machine::own()?,
        };
        let is_own = machine.name == std::env::consts::ARCH;
        ensure!(
            is_own || linker == Linker::Zig,
            "{}: zig links programs for another processor; leave out --host-glibc, or add \
             --manylinux",
            machine.name
        );
        let foreign = if is_own {
            None
        } else {
            let target = Target::of(machine)?;
            let root = ForeignRoot::open(&[target])?;
            let board = Board::open(&root, target)?;
            Some(Foreign {
                target,
                root,
                board,
            })
        };
        Ok(Self {
            machine,
            profile: options.profile.clone(),
            linker,
            foreign,
        })
    }

    /// Builds one package of the workspace, with the features of its own.
    pub fn build(&self, package: &str, features: &str) -> Result<()> {
        let triple = self.triple_of_linker();
        let mut words = match self.linker {
            Linker::Host => vec!["build"],
            Linker::Zig => vec!["zigbuild", "--target", &triple],
        };
        words.extend(["--locked", "--profile", &self.profile]);
        words.extend(["--package", package, "--features", features]);
        let mut cargo = match &self.foreign {
            Some(foreign) => {
                let zig = install_zig()?;
                let tools = zig.variables(&foreign.root.inside(&zig.folder)?, PATH_INSIDE);
                let folder = foreign.root.inside(&foreign_builds()?)?;
                let folder = ("CARGO_TARGET_DIR", folder.display().to_string());
                let variables: Vec<String> =
                    tools.into_iter().chain([folder]).map(assignment).collect();
                let words = [&["cargo"], &words[..]].concat();
                foreign.root.command(&variables, &words)?
            }
            None => {
                let mut cargo = Command::new("cargo");
                cargo.args(words).current_dir(root());
                if self.linker == Linker::Zig {
                    let zig = install_zig().context("install zig; `--host-glibc` does without")?;
                    let path = std::env::var("PATH").unwrap_or_default();
                    cargo.envs(zig.variables(&zig.folder, &path));
                }
                cargo
            }
        };
        let status = progress::run_build(&mut cargo).context("run cargo")?;
        ensure!(
            status.success(),
            "the build of {package} with features {features:?} failed ({status})"
        );
        Ok(())
    }

    /// A program or library that [`PackageBuild::build`] has made.
    pub fn built(&self, name: &str) -> Result<PathBuf> {
        let mut folder = match self.foreign {
            Some(_) => foreign_builds()?,
            None => target_folder()?,
        };
        if self.linker == Linker::Zig {
            folder.push(self.machine.triple);
        }
        folder.push(match self.profile.as_str() {
            "dev" => "debug",
            name => name,
        });
        Ok(folder.join(name))
    }

    pub fn is_emulated(&self) -> bool {
        self.foreign.is_some()
    }

    /// A command that runs a program of a package, which lies in the build folder, or one
    /// of the system's.
    pub fn program(
        &self,
        program: &Path,
        variables: &[(&str, &str)],
        words: &[&str],
    ) -> Result<Command> {
        if let Some(foreign) = &self.foreign {
            let name = program.to_string_lossy();
            let words = [&[&*name], words].concat();
            let variables: Vec<String> = variables.iter().copied().map(assignment).collect();
            return foreign.board.command(&variables, &words);
        }
        let mut command = Command::new(program);
        for name in REMOVED {
            command.env_remove(name);
        }
        command.args(words).envs(variables.iter().copied());
        Ok(command)
    }

    /// For another processor: lets a talker and a listener of the packed command meet
    /// those of this machine. Returns how many pairs there are, none for this machine's.
    pub fn check_pairs(&self, command: &Path) -> Result<usize> {
        match &self.foreign {
            Some(foreign) => cross::run_pairs(foreign.target, Some(command)),
            None => Ok(0),
        }
    }

    /// Fails if the file is for another machine, or needs a newer glibc than packages may.
    /// Returns the glibc that it needs.
    pub fn check_file(&self, file: &Path) -> Result<Glibc> {
        let shown = file.display();
        let bytes = fs::read(file).with_context(|| format!("read {shown}"))?;
        ensure!(
            self.machine.runs(&bytes),
            "{shown} is no ELF file for {}",
            self.machine.name
        );
        let symbols = Command::new("objdump").arg("-T").arg(file).output();
        let symbols = symbols.context("run objdump; is it installed?")?.stdout;
        let needed = newest_glibc(&String::from_utf8_lossy(&symbols));
        let needed = needed.with_context(|| format!("{shown} needs no glibc symbol"))?;
        if let Some(newest) = self.glibc_max().filter(|newest| needed > *newest) {
            bail!("{shown} needs glibc {needed}, more than {newest}");
        }
        Ok(needed)
    }

    /// The newest glibc that the programs may need.
    pub fn glibc_max(&self) -> Option<Glibc> {
        (self.linker == Linker::Zig).then_some(GLIBC_MIN)
    }

    fn triple_of_linker(&self) -> String {
        format!("{}.{GLIBC_MIN}", self.machine.triple)
    }
}

/// What zig links for other processors. It is not what `cargo xtask cross` builds, and cargo
/// does not see another linker.
fn foreign_builds() -> Result<PathBuf> {
    Ok(target_folder()?.join("cross/packages"))
}

/// As `env` takes it.
fn assignment((name, value): (&str, impl std::fmt::Display)) -> String {
    format!("{name}={value}")
}

/// The newest version of glibc's symbols in a list of symbols.
fn newest_glibc(symbols: &str) -> Option<Glibc> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
        let mut numbers = rest[..end.unwrap_or(rest.len())].split('.');
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(Glibc(major.parse().ok()?, minor.parse().ok()?))
    });
    versions.max()
}

/// Programs that an environment of Python has: none of them needs Python.
struct Zig {
    folder: PathBuf,
    /// The path of `zig` within.
    program: PathBuf,
}

impl Zig {
    /// What makes cargo find both, where the folder is at that place.
    fn variables(&self, folder: &Path, path: &str) -> [(&'static str, String); 2] {
        let programs = folder.join("bin");
        let zig = folder.join(&self.program);
        [
            ("PATH", format!("{}:{path}", programs.display())),
            ("CARGO_ZIGBUILD_ZIG_PATH", zig.display().to_string()),
        ]
    }
}

/// Installs zig into the build folder, once, which needs a network.
fn install_zig() -> Result<Zig> {
    let folder = target_folder()?.join("dist-tools");
    if !folder.join("bin/cargo-zigbuild").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let pip = folder.join("bin/pip");
        run(Command::new(pip).args(["install", "--quiet"]).args(TOOLS))?;
    }
    let libraries = folder.join("lib");
    let mut versions = fs::read_dir(&libraries).context("list the folder of zig")?;
    let program = versions.find_map(|version| {
        let version = version.ok()?.file_name();
        let program = Path::new("lib")
            .join(version)
            .join("site-packages/ziglang/zig");
        folder.join(&program).is_file().then_some(program)
    });
    let program = program.with_context(|| format!("there is no zig in {}", libraries.display()))?;
    Ok(Zig { folder, program })
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("run {program}; is it installed?"))?;
    ensure!(status.success(), "{program} failed ({status})");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_version_counts_as_numbers_do() {
        let symbols = "0 DF *UND* 0 (GLIBC_2.2.5) read\n0 DF *UND* 0 GLIBC_2.28 fcntl64\n\
                       0 w D *UND* 0 (GLIBC_2.4) x";
        assert_eq!(newest_glibc(symbols), Some(Glibc(2, 28)));
        assert_eq!(newest_glibc("0 DF .text pteros"), None);
    }

    #[test]
    fn a_build_lies_where_cargo_puts_it_and_zig_gets_the_oldest_glibc() {
        let build = |profile: &str, linker| PackageBuild {
            machine: &crate::machine::AARCH64,
            profile: profile.to_owned(),
            linker,
            foreign: None,
        };
        let target = target_folder().unwrap();
        let zig = build("dist", Linker::Zig);
        assert_eq!(zig.triple_of_linker(), "aarch64-unknown-linux-gnu.2.28");
        assert_eq!(
            zig.built("pteros").unwrap(),
            target.join("aarch64-unknown-linux-gnu/dist/pteros")
        );
        let host = build("dev", Linker::Host);
        assert_eq!(host.built("pteros").unwrap(), target.join("debug/pteros"));
    }

    #[test]
    fn another_processor_is_not_linked_for_this_machines_glibc() {
        let other = match std::env::consts::ARCH {
            "aarch64" => "x86_64",
            _ => "arm64",
        };
        let options = Options {
            target: Some(other.to_owned()),
            profile: "dist".to_owned(),
        };
        let refused = PackageBuild::open(&options, Linker::Host).err().unwrap();
        assert!(
            refused.to_string().contains("leave out --host-glibc"),
            "{refused}"
        );
    }
}
