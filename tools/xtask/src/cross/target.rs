//! The targets of `cargo xtask cross`, and how far each is tried.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::machine::{AARCH64, ARMV7, Machine, S390X};

/// A processor and a C library.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// The processor. Its name is that of the command line, too.
    pub machine: Machine,
    /// The prefix of Debian's cross compiler.
    pub compiler: &'static str,
    /// Its emulator of user programs.
    pub emulator: &'static str,
    pub extent: Extent,
}

/// What is tried with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The unit tests of [`TESTED_PACKAGES`].
    Tests,
    /// The tests, the command, and pairs of a talker and a listener with this machine.
    Command,
}

/// All targets, the most used first.
pub const TARGETS: [Target; 3] = [
    Target {
        machine: AARCH64,
        compiler: "aarch64-linux-gnu",
        emulator: "qemu-aarch64",
        extent: Extent::Command,
    },
    Target {
        machine: ARMV7,
        compiler: "arm-linux-gnueabihf",
        emulator: "qemu-arm",
        extent: Extent::Tests,
    },
    Target {
        machine: S390X,
        compiler: "s390x-linux-gnu",
        emulator: "qemu-s390x",
        extent: Extent::Tests,
    },
];

/// The crates whose unit tests run: the protocol, and what touches the kernel.
pub const TESTED_PACKAGES: [&str; 5] = [
    "pteros-msg",
    "pteros-rtps",
    "pteros-dcps",
    "pteros-shm",
    "pteros-net",
];

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

    /// Debian's packages for it, beside those of every target.
    pub fn packages(&self) -> [String; 4] {
        let (debian, compiler) = (self.machine.debian, self.compiler);
        [
            format!("libstd-rust-dev:{debian}"),
            format!("gcc-{compiler}"),
            format!("g++-{compiler}"),
            format!("libc6-dev-{debian}-cross"),
        ]
    }

    /// Variables for cargo and for the crates that compile C.
    pub fn variables(&self) -> Vec<String> {
        let in_name = |triple: &str| triple.replace('-', "_");
        let upper = in_name(self.machine.triple).to_uppercase();
        let (compiler, emulator) = (self.compiler, self.emulator);
        vec![
            format!("CARGO_TARGET_{upper}_LINKER={compiler}-gcc"),
            format!("CARGO_TARGET_{upper}_RUNNER={emulator} -L /usr/{compiler}"),
            format!("CC_{}={compiler}-gcc", in_name(self.machine.triple)),
            format!("CXX_{}={compiler}-g++", in_name(self.machine.triple)),
        ]
    }
}

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
            "no target \"arm64\"; there are aarch64, armv7, s390x"
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
