//! A Debian with Rust, cross compilers and emulators, in a folder of the build folder.
//!
//! rustup's toolchains need a network that serves them. Debian's mirrors carry the same
//! compiler with the standard library of every architecture, and the emulators. The
//! root is made once, by mmdebstrap, and each target adds its packages once. Programs
//! run in it by chroot within a mount namespace of their own, so nothing stays mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use pteros_peers::network::is_root;

use super::target::Target;
use crate::checkout::root;
use crate::peers::target_folder;

/// Debian's release: the oldest one whose rustc is at least that of `rust-version`.
const SUITE: &str = "sid";
/// For every target: the compiler, the emulators, and what crates with C need.
const PACKAGES: &str = "ca-certificates,cargo,cmake,g++,gcc,make,perl,qemu-user,rustc";
/// Where the checkout and cargo's build folder are within the root.
const SOURCES: &str = "/src";
const TARGET: &str = "/target";
/// What is built in the root, within the build folder.
const BUILT: &str = "cross/built";
/// Where programs are within the root.
pub const PATH_INSIDE: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Binds the folders, and runs the command in the root. Arguments: root, checkout, build
/// folder, registry, then variables and command for `env`.
const ENTER: &str = r#"
root=$1; sources=$2; target=$3; registry=$4; shift 4
mount --rbind "$sources" "$root/src"
mount --bind "$target" "$root/target"
mount --bind "$registry" "$root/cargo/registry"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
for folder in dev proc sys; do mount --rbind "/$folder" "$root/$folder"; done
exec chroot "$root" /usr/bin/env -i "$@"
"#;

/// The root, and cargo's build folder, which has the root and what is built in it.
pub struct ForeignRoot {
    target: PathBuf,
    folder: PathBuf,
    built: PathBuf,
}

impl ForeignRoot {
    /// The root that an earlier [`ForeignRoot::open`] has made.
    pub fn existing() -> Result<Self> {
        let target = target_folder()?;
        Ok(Self {
            built: target.join(BUILT),
            folder: target.join("cross/root"),
            target,
        })
    }

    /// Makes the root if there is none, and adds what the targets need. Minutes at first.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn open(targets: &[&Target]) -> Result<Self> {
        ensure!(
            is_root(),
            "entering a foreign root needs root; that of a container will do"
        );
        let own = Self::existing()?;
        own.make()?;
        for target in targets {
            own.add(target)?;
        }
        Ok(own)
    }

    fn make(&self) -> Result<()> {
        let done = self.folder.join("made-for-pteros");
        if done.exists() {
            return Ok(());
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).context("remove the root of an interrupted run")?;
        }
        fs::create_dir_all(&self.built).context("create the folder of builds")?;
        eprintln!("making a Debian root for cross builds: once, minutes, 2 GB");
        make_debian(&["--variant=apt"], PACKAGES, SUITE, &self.folder)?;
        for place in [SOURCES, TARGET, "/cargo/registry"] {
            fs::create_dir_all(self.outside(place)).context("create the places of folders")?;
        }
        fs::write(done, "")?;
        Ok(())
    }

    /// Installs the packages of a target.
    fn add(&self, target: &Target) -> Result<()> {
        let done = self.folder.join(format!("has-{}", target.machine.name));
        if done.exists() {
            return Ok(());
        }
        eprintln!("adding {} to the root: once, minutes", target.machine.name);
        let mut install = self.command(&[], &["sh", "-c", &target.install_script()])?;
        run_logged(&mut install, &self.log())
            .with_context(|| format!("install what {} needs", target.machine.name))?;
        fs::write(done, "")?;
        Ok(())
    }

    /// A command in the root, at the checkout, with these variables and no others.
    pub fn command(&self, variables: &[String], words: &[&str]) -> Result<Command> {
        let registry = cargo_home()?.join("registry");
        fs::create_dir_all(&registry).context("create cargo's registry folder")?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--", "sh", "-euc", ENTER, "sh"])
            .arg(&self.folder)
            .arg(root().canonicalize()?)
            .arg(&self.target)
            .arg(registry)
            .arg(format!("--chdir={SOURCES}"))
            .args(["HOME=/tmp", "CARGO_HOME=/cargo", "LANG=C"])
            .arg(format!("PATH={PATH_INSIDE}"))
            .arg("DEBIAN_FRONTEND=noninteractive")
            .arg(format!("CARGO_TARGET_DIR={TARGET}/{BUILT}"))
            // What `progress::run_build` reads.
            .args([
                "CARGO_TERM_PROGRESS_WHEN=always",
                "CARGO_TERM_PROGRESS_WIDTH=200",
            ])
            .args(passed_on())
            .args(variables)
            .args(words)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// A program that cargo has built for a target, by its emulator if it needs one.
    pub fn program(
        &self,
        target: &Target,
        name: &str,
        variables: &[String],
        words: &[&str],
    ) -> Result<Command> {
        let path = format!("{TARGET}/{BUILT}/{}/debug/{name}", target.machine.triple);
        let runner = target.runner();
        let mut emulated: Vec<&str> = runner.iter().map(String::as_str).collect();
        emulated.push(&path);
        emulated.extend(words);
        self.command(variables, &emulated)
    }

    /// The place within the root of a file of the build folder.
    pub fn inside(&self, path: &Path) -> Result<PathBuf> {
        let path = path
            .strip_prefix(&self.target)
            .context("a file elsewhere")?;
        Ok(Path::new(TARGET).join(path))
    }

    /// The place of a file of the root.
    pub fn outside(&self, place: &str) -> PathBuf {
        self.folder.join(place.trim_start_matches('/'))
    }

    fn log(&self) -> PathBuf {
        self.folder.with_file_name("log")
    }
}

/// Makes a root of Debian from the mirror that mmdebstrap chooses.
pub fn make_debian(options: &[&str], packages: &str, suite: &str, folder: &Path) -> Result<()> {
    let mut make = Command::new("mmdebstrap");
    make.arg("--format=directory")
        .args(options)
        .arg(format!("--include={packages}"))
        // A mirror may be a snapshot.
        .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
        .arg("--aptopt=APT::Install-Recommends \"false\"")
        // Without it, dpkg waits for the disk after every file.
        .arg("--dpkgopt=force-unsafe-io")
        .arg(suite)
        .arg(folder);
    run_logged(&mut make, &folder.with_file_name("log")).context(
        "make the root; it needs mmdebstrap (apt-get install mmdebstrap) and a mirror of Debian",
    )
}

/// The variables of the caller that hold inside, too.
fn passed_on() -> Vec<String> {
    let names = [
        "CARGO_BUILD_JOBS",
        "CARGO_TERM_COLOR",
        "RUST_BACKTRACE",
        "http_proxy",
        "https_proxy",
    ];
    let given = names.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(format!("{name}={value}"))
    });
    given.collect()
}

/// Cargo's folder: what it has downloaded is used inside.
fn cargo_home() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("CARGO_HOME") {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set; set CARGO_HOME")?;
    Ok(Path::new(&home).join(".cargo"))
}

/// Runs a command that says much. Its output goes to a file; a failure shows the end.
fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("run {program}; is it installed?"))?;
    let said = [output.stdout, output.stderr].concat();
    fs::write(log, &said).with_context(|| format!("write {}", log.display()))?;
    let said = String::from_utf8_lossy(&said);
    let end: Vec<&str> = said.lines().rev().take(5).collect();
    ensure!(
        output.status.success(),
        "{program} failed ({}): {}; see {}",
        output.status,
        end.into_iter().rev().collect::<Vec<_>>().join(" / "),
        log.display()
    );
    Ok(())
}
