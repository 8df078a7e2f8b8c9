//! Build directory of other stacks' programs, and their build dependencies:
//! packages, compilers, code generators.
//!
//! A program is built again when a source is newer, or when it no longer starts.

use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::network;

/// Source and build directories of the peers.
#[derive(Clone, Debug)]
pub struct PeerBuild {
    /// Sources, as the repository's `interop`.
    pub sources: PathBuf,
    /// Build outputs.
    pub target: PathBuf,
    /// Built programs.
    pub programs: PathBuf,
    /// Whether missing packages may be installed.
    pub may_install: bool,
}

impl PeerBuild {
    /// Creates the directories below `target`.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub fn open(sources: PathBuf, target: PathBuf, may_install: bool) -> Result<Self> {
        let programs = target.join("bin");
        fs::create_dir_all(&programs).with_context(|| format!("make {}", programs.display()))?;
        Ok(Self {
            sources,
            target,
            programs,
            may_install,
        })
    }

    /// An empty directory for generated sources.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("empty {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        Ok(folder)
    }

    /// Whether the program is newer than its sources and still starts. A
    /// distribution upgrade may have removed its libraries.
    pub fn is_fresh(&self, program: &Path, sources: &[&str]) -> bool {
        let changed = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
        let Some(built) = changed(program) else {
            return false;
        };
        let newest = sources.iter().map(|name| changed(&self.sources.join(name)));
        // Without arguments every program prints its usage and exits with 2.
        let starts = Command::new(program)
            .output()
            .is_ok_and(|o| o.status.code() == Some(2));
        starts
            && newest
                .max()
                .flatten()
                .is_none_or(|source: SystemTime| source < built)
    }

    /// Ensures the build dependencies of programs over Cyclone DDS.
    ///
    /// # Errors
    /// What is missing and how to get it.
    pub fn ensure_cyclone(&self) -> Result<()> {
        let packages = ["cyclonedds-dev", "cyclonedds-tools", "gcc", "libc6-dev"];
        self.ensure_installed("idlc", "/usr/include/dds/dds.h", &packages)
    }

    /// Ensures the build dependencies of programs over Fast DDS.
    ///
    /// # Errors
    /// What is missing and how to get it.
    pub fn ensure_fastdds(&self) -> Result<()> {
        let header = "/usr/include/fastdds/dds/domain/DomainParticipant.hpp";
        let packages = ["libfastrtps-dev", "fastddsgen", "g++"];
        self.ensure_installed("fastddsgen", header, &packages)
    }

    /// Ensures that a tool and a file exist. Installs Debian packages if allowed.
    ///
    /// # Errors
    /// What is missing and how to get it.
    pub fn ensure_installed(&self, tool: &str, file: &str, packages: &[&str]) -> Result<()> {
        if is_on_path(tool) && Path::new(file).exists() {
            return Ok(());
        }
        self.install(packages)?;
        if !(is_on_path(tool) && Path::new(file).exists()) {
            bail!(
                "{} installed, but {tool} or {file} is still missing",
                packages.join(" ")
            );
        }
        Ok(())
    }

    /// Installs Debian packages, if allowed.
    ///
    /// # Errors
    /// The command to run by hand, or the output of apt-get.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        let by_hand = format!("apt-get install -y {}", packages.join(" "));
        let can = network::is_root() && Path::new("/usr/bin/apt-get").exists();
        if !can || !self.may_install {
            bail!("needs Debian packages; run as root: {by_hand}");
        }
        eprintln!("installing {}", packages.join(" "));
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive");
            run_quietly(command.args(arguments))
        };
        let line = [
            &["install", "-y", "-q", "--no-install-recommends"],
            packages,
        ]
        .concat();
        match apt(&line) {
            Ok(()) => return Ok(()),
            // After Ctrl-C there is no second attempt.
            Err(error) if error.is::<Signalled>() => return Err(error),
            Err(_) => {}
        }
        // The package lists may be missing or old.
        apt(&["update", "-q"]).with_context(|| format!("while preparing: {by_hand}"))?;
        apt(&line).with_context(|| by_hand.clone())
    }
}

/// Whether a program of that name is in `PATH`.
pub fn is_on_path(tool: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).exists()))
}

/// A compiler command without the sources.
pub fn compiler(name: &str, standard: &str, program: &Path) -> Command {
    let mut command = Command::new(name);
    command.arg(format!("-std={standard}")).args([
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wno-unused-function",
    ]);
    command.arg("-o").arg(program);
    command
}

/// A signal ended a program. Ctrl-C reaches all programs of a terminal.
#[derive(Clone, Debug)]
pub struct Signalled {
    /// The program.
    pub name: String,
    /// The signal's number.
    pub signal: i32,
}

impl fmt::Display for Signalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was ended by signal {}", self.name, self.signal)
    }
}

impl std::error::Error for Signalled {}

/// Runs a command to its end. On failure the error has its last lines of output.
///
/// # Errors
/// The command cannot be started, or how it ended. [`Signalled`] after a signal.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let outcome = command.output().with_context(|| format!("run {name}"))?;
    if outcome.status.success() {
        return Ok(());
    }
    if let Some(signal) = outcome.status.signal() {
        return Err(Signalled { name, signal }.into());
    }
    let said = [outcome.stdout, outcome.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.len().saturating_sub(12);
    let last = lines.get(last..).unwrap_or_default();
    bail!("{name} ended with {}: {}", outcome.status, last.join("\n"))
}
