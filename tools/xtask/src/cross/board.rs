//! A board's system, without the board: a Debian of a target whose programs the kernel
//! hands to the emulator, so that they can start themselves and each other.
//!
//! The files are unpacked, not installed, which needs no program of the target. A user
//! namespace has a binfmt_misc of its own (Linux 6.7), so nothing is registered for this
//! machine, and root of the namespace is this user.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::foreign_root::{ForeignRoot, PATH_INSIDE, make_debian};
use super::target::{Target, Toolchain};
use crate::peers::target_folder;

/// The release of the boards, as Raspberry Pi OS 12. Its glibc is newer than that of
/// packages, and older than that of the root they are built in.
const SUITE: &str = "bookworm";
/// A shell, and the Python that imports the wheel.
const PACKAGES: &str = "bash,coreutils,libc6,libgcc-s1,python3";

/// Registers the emulator, binds the folders, and runs the command in the root. Cargo's
/// build folder has the same path within. Arguments: rule, root, build folder, then
/// variables and command for `env`.
const ENTER: &str = r#"
rule=$1; root=$2; target=$3; shift 3
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf %s "$rule" > /proc/sys/fs/binfmt_misc/register
mount --rbind "$target" "$root$target"
for folder in dev proc sys; do mount --rbind "/$folder" "$root/$folder"; done
exec chroot "$root" /usr/bin/env -i "$@"
"#;

/// The root of a target's system.
pub struct Board {
    folder: PathBuf,
    /// Cargo's build folder, here and within.
    target: PathBuf,
    /// What binfmt_misc reads.
    rule: String,
}

impl Board {
    /// Makes the root if there is none: seconds. The emulator is that of the root for builds.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn open(root: &ForeignRoot, target: &Target) -> Result<Self> {
        let build_folder = target_folder()?;
        let folder = build_folder.join(format!("cross/board-{}", target.machine.name));
        let done = folder.join("made-for-pteros");
        if !done.exists() {
            if folder.exists() {
                fs::remove_dir_all(&folder).context("remove the root of an interrupted run")?;
            }
            let architecture = format!("--architectures={}", target.machine.debian);
            make_debian(
                &["--variant=extract", &architecture],
                PACKAGES,
                SUITE,
                &folder,
            )?;
            fs::write(done, "")?;
        }
        let Toolchain::Debian { emulator, .. } = target.toolchain else {
            bail!("there is no Debian for {}", target.machine.name);
        };
        let emulator = root.outside("/usr/bin").join(emulator);
        Ok(Self {
            folder,
            rule: target.binfmt_rule(&emulator),
            target: build_folder,
        })
    }

    /// A command in the root, with these variables and no others. Files of cargo's build
    /// folder have the same path within.
    ///
    /// # Errors
    /// The place of the build folder cannot be made.
    pub fn command(&self, variables: &[String], words: &[&str]) -> Result<Command> {
        let within = self.target.strip_prefix("/").unwrap_or(&self.target);
        fs::create_dir_all(self.folder.join(within)).context("create the place of a folder")?;
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "--"])
            .args(["sh", "-euc", ENTER, "sh"])
            .arg(&self.rule)
            .arg(&self.folder)
            .arg(&self.target)
            .args(["HOME=/tmp", "LANG=C.UTF-8"])
            .arg(format!("PATH={PATH_INSIDE}"))
            .args(variables)
            .args(words)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// The board that an earlier [`Board::open`] has made.
    pub fn existing(target: &Target) -> Result<Self> {
        Self::open(&ForeignRoot::existing()?, target)
    }
}
