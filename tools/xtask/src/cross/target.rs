//! The targets of `cargo xtask cross`, and how far each is tried.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::machine::{AARCH64, ARMV7, MACOS, Machine, S390X, WINDOWS, X86_64_MUSL};

/// A processor, a system and a C library.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// The processor. Its name is that of the command line, too.
    pub machine: Machine,
    pub toolchain: Toolchain,
    /// Whether numbers have another byte order than this machine's. Such processes share
    /// no memory with those of this machine.
    pub is_big_endian: bool,
}

/// Where compiler, linker and standard library come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// Debian has all of it: the prefix of its cross compiler, and the emulator of user
    /// programs.
    Debian {
        compiler: &'static str,
        emulator: &'static str,
    },
    /// Debian's musl, and a standard library from its sources. Programs need no emulator.
    Musl,
    /// No linker: the crates without input and output are type-checked, with a standard
    /// library from its sources.
    CheckOnly,
}

/// All targets, the most used first.
pub const TARGETS: [Target; 6] = [
    Target {
        machine: AARCH64,
        toolchain: Toolchain::Debian {
            compiler: "aarch64-linux-gnu",
            emulator: "qemu-aarch64",
        },
        is_big_endian: false,
    },
    Target {
        machine: ARMV7,
        toolchain: Toolchain::Debian {
            compiler: "arm-linux-gnueabihf",
            emulator: "qemu-arm",
        },
        is_big_endian: false,
    },
    Target {
        machine: S390X,
        toolchain: Toolchain::Debian {
            compiler: "s390x-linux-gnu",
            emulator: "qemu-s390x",
        },
        is_big_endian: true,
    },
    Target {
        machine: X86_64_MUSL,
        toolchain: Toolchain::Musl,
        is_big_endian: false,
    },
    Target {
        machine: MACOS,
        toolchain: Toolchain::CheckOnly,
        is_big_endian: false,
    },
    Target {
        machine: WINDOWS,
        toolchain: Toolchain::CheckOnly,
        is_big_endian: false,
    },
];

/// The crates whose unit tests run: the protocol, and what touches the kernel.
const TESTED_PACKAGES: [&str; 6] = [
    "pteros-msg",
    "pteros-rtps",
    "pteros-dcps",
    "pteros-store",
    "pteros-shm",
    "pteros-net",
];
/// The crates that need nothing of Linux.
const PORTABLE_PACKAGES: [&str; 5] = [
    "pteros-msg",
    "pteros-rtps",
    "pteros-dcps",
    "pteros-store",
    "pteros-interfaces",
];
/// Where the library for unwinding lies that Debian's musl has not: that of gcc, which
/// needs no C library of its own.
const MUSL_UNWIND: &str = "/usr/lib/pteros-musl";

/// The targets of these names, or the first one.
pub fn select(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().take(1).collect());
    }
    names.iter().map(|name| find(name)).collect()
}

fn find(name: &str) -> Result<&'static Target> {
    let found = TARGETS
        .iter()
        .find(|target| target.machine.name == name || target.machine.triple == name);
    let Some(target) = found else {
        let known: Vec<_> = TARGETS.iter().map(|target| target.machine.name).collect();
        bail!("no target \"{name}\"; there are {}", known.join(", "));
    };
    Ok(target)
}

impl Target {
    /// The target of a machine.
    ///
    /// # Errors
    /// There is none.
    pub fn of(machine: &Machine) -> Result<&'static Self> {
        let found = TARGETS.iter().find(|target| target.machine == *machine);
        found.with_context(|| format!("cargo xtask cross has no target {}", machine.name))
    }

    /// The line for binfmt_misc that hands programs of the target, which is a 64-bit
    /// little-endian one, to the emulator. The kernel opens the emulator at once (`F`), so
    /// that it need not be in the root of the program.
    pub fn binfmt_rule(&self, emulator: &Path) -> String {
        let [low, high] = self.machine.elf.to_le_bytes();
        let escape = |bytes: &[u8]| -> String {
            bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
        };
        // The beginning of an ELF file: identification, type, machine. Both types of
        // programs differ in the lowest bit; the ABI of the system is not compared.
        let identification = [b"\x7fELF\x02\x01\x01", [0_u8; 9].as_slice()].concat();
        let magic = [&identification[..], &[2, 0, low, high]].concat();
        let mut mask = [0xff; 20];
        mask[7] = 0;
        mask[16] = 0xfe;
        let (magic, mask) = (escape(&magic), escape(&mask));
        format!(":pteros:M::{magic}:{mask}:{}:F", emulator.display())
    }

    /// The crates that are compiled for it.
    pub fn packages(&self) -> &'static [&'static str] {
        match self.toolchain {
            Toolchain::CheckOnly => &PORTABLE_PACKAGES,
            Toolchain::Debian { .. } | Toolchain::Musl => &TESTED_PACKAGES,
        }
    }

    /// What runs a program of the target in the root; nothing for this machine's.
    pub fn runner(&self) -> Vec<String> {
        match self.toolchain {
            Toolchain::Debian { compiler, emulator } => {
                vec![
                    emulator.to_owned(),
                    "-L".to_owned(),
                    format!("/usr/{compiler}"),
                ]
            }
            Toolchain::Musl | Toolchain::CheckOnly => Vec::new(),
        }
    }

    /// A script of the root that installs what it needs beside the packages of every
    /// target.
    pub fn install_script(&self) -> String {
        let install = "apt-get update -qq && apt-get install -qq -y --no-install-recommends";
        let debian = self.machine.debian;
        match self.toolchain {
            Toolchain::Debian { compiler, .. } => format!(
                "dpkg --add-architecture {debian} && {install} libstd-rust-dev:{debian} \
                 gcc-{compiler} g++-{compiler} libc6-dev-{debian}-cross && apt-get clean"
            ),
            Toolchain::Musl => format!(
                "{install} rust-src musl-tools && apt-get clean && mkdir -p {MUSL_UNWIND} && \
                 ln -sf $(gcc -print-file-name=libgcc_eh.a) {MUSL_UNWIND}/libunwind.a"
            ),
            Toolchain::CheckOnly => format!("{install} rust-src && apt-get clean"),
        }
    }

    /// Words for cargo.
    pub fn options(&self) -> &'static [&'static str] {
        match self.toolchain {
            Toolchain::Debian { .. } => &[],
            Toolchain::Musl | Toolchain::CheckOnly => &["-Zbuild-std"],
        }
    }

    /// Variables for cargo and for the crates that compile C.
    pub fn variables(&self) -> Vec<String> {
        let triple = self.machine.triple.replace('-', "_");
        let upper = triple.to_uppercase();
        match self.toolchain {
            Toolchain::Debian { compiler, .. } => vec![
                format!("CARGO_TARGET_{upper}_LINKER={compiler}-gcc"),
                format!("CARGO_TARGET_{upper}_RUNNER={}", self.runner().join(" ")),
                format!("CC_{triple}={compiler}-gcc"),
                format!("CXX_{triple}={compiler}-g++"),
            ],
            Toolchain::Musl => vec![
                format!("CARGO_TARGET_{upper}_LINKER=musl-gcc"),
                format!("CARGO_TARGET_{upper}_RUSTFLAGS=-Clink-self-contained=no -L{MUSL_UNWIND}"),
                format!("CC_{triple}=musl-gcc"),
                STABLE_AS_NIGHTLY.to_owned(),
            ],
            Toolchain::CheckOnly => vec![STABLE_AS_NIGHTLY.to_owned()],
        }
    }
}

/// Cargo builds the standard library only with an unstable option.
const STABLE_AS_NIGHTLY: &str = "RUSTC_BOOTSTRAP=1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_by_both_names_and_others_are_refused_with_the_list() {
        let names = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            select(&given).map(|found| found.iter().map(|t| t.machine.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["aarch64"]);
        let both = ["s390x", "aarch64-unknown-linux-gnu"];
        assert_eq!(names(&both).unwrap(), ["s390x", "aarch64"]);
        assert_eq!(
            names(&["arm64"]).unwrap_err().to_string(),
            "no target \"arm64\"; there are aarch64, armv7, s390x, musl, macos, windows"
        );
    }

    #[test]
    fn the_kernel_hands_programs_of_the_target_to_the_emulator() {
        let rule = Target::of(&AARCH64).unwrap().binfmt_rule(Path::new("/e"));
        let parts: Vec<&str> = rule.split(':').collect();
        let ["", "pteros", "M", "", magic, mask, "/e", "F"] = parts[..] else {
            panic!("{rule}");
        };
        assert_eq!(magic.matches("\\x").count(), 20);
        assert_eq!(mask.matches("\\x").count(), 20);
        assert!(
            magic.starts_with(r"\x7f\x45\x4c\x46\x02\x01\x01\x00"),
            "{rule}"
        );
        assert!(magic.ends_with(r"\x02\x00\xb7\x00"), "{rule}");
        assert!(mask.ends_with(r"\xfe\xff\xff\xff"), "{rule}");
        let refused = Target::of(&crate::machine::X86_64).unwrap_err();
        assert!(
            refused.to_string().contains("no target x86_64"),
            "{refused}"
        );
    }

    #[test]
    fn cargo_gets_linker_and_emulator_of_the_target() {
        let variables = find("armv7").unwrap().variables();
        assert_eq!(
            variables[..2],
            [
                "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc",
                "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER=qemu-arm -L /usr/arm-linux-gnueabihf"
            ]
        );
    }
}
