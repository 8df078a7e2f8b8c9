//! Names of processors and systems: Rust's, Debian's, and that of packages.

use anyhow::{Context, Result};

/// A processor with Linux and glibc, if the name says no other system.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// In the names of archives.
    pub name: &'static str,
    /// Rust's target.
    pub triple: &'static str,
    /// Debian's architecture; empty for other systems.
    pub debian: &'static str,
    /// Its number in ELF files (`e_machine`); 0 for systems without these.
    pub elf: u16,
}

pub const X86_64: Machine = Machine {
    name: "x86_64",
    triple: "x86_64-unknown-linux-gnu",
    debian: "amd64",
    elf: 62,
};
pub const AARCH64: Machine = Machine {
    name: "aarch64",
    triple: "aarch64-unknown-linux-gnu",
    debian: "arm64",
    elf: 183,
};
pub const ARMV7: Machine = Machine {
    name: "armv7",
    triple: "armv7-unknown-linux-gnueabihf",
    debian: "armhf",
    elf: 40,
};
pub const S390X: Machine = Machine {
    name: "s390x",
    triple: "s390x-unknown-linux-gnu",
    debian: "s390x",
    elf: 22,
};
pub const X86_64_MUSL: Machine = Machine {
    name: "musl",
    triple: "x86_64-unknown-linux-musl",
    ..X86_64
};
pub const MACOS: Machine = Machine {
    name: "macos",
    triple: "aarch64-apple-darwin",
    debian: "",
    elf: 0,
};
pub const WINDOWS: Machine = Machine {
    name: "windows",
    triple: "x86_64-pc-windows-msvc",
    ..MACOS
};

/// Those that packages are made for.
const PACKAGED: [&Machine; 2] = [&X86_64, &AARCH64];

impl Machine {
    /// The machine that this program runs on.
    ///
    /// # Errors
    /// One without packages.
    pub fn own() -> Result<&'static Self> {
        Self::packaged(std::env::consts::ARCH)
    }

    /// The machine of this name, which may be Rust's or Debian's.
    ///
    /// # Errors
    /// One without packages.
    pub fn packaged(name: &str) -> Result<&'static Self> {
        let is_named =
            |machine: &&Self| [machine.name, machine.triple, machine.debian].contains(&name);
        let found = PACKAGED.into_iter().find(is_named);
        found.with_context(|| {
            let names = PACKAGED.map(|machine| machine.name).join(" and ");
            format!("no packages are made for {name}; they are for {names}")
        })
    }

    /// Whether the file is an ELF file for this machine, which is little-endian.
    pub fn runs(&self, file: &[u8]) -> bool {
        file.starts_with(b"\x7fELF") && file.get(18..20) == Some(&self.elf.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_for_machines_by_any_of_their_names_or_refused() {
        for name in ["aarch64", "arm64", "aarch64-unknown-linux-gnu"] {
            assert_eq!(Machine::packaged(name).unwrap(), &AARCH64);
        }
        assert_eq!(Machine::packaged("x86_64").unwrap().debian, "amd64");
        let refused = Machine::packaged("s390x").unwrap_err().to_string();
        assert!(
            refused.contains("s390x; they are for x86_64 and aarch64"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_runs_on_the_machine_in_its_header() {
        let mut file = [0; 20];
        file[..4].copy_from_slice(b"\x7fELF");
        file[18] = 183;
        assert!(AARCH64.runs(&file) && !X86_64.runs(&file));
        assert!(!AARCH64.runs(&file[..18]) && !AARCH64.runs(b"#!/bin/sh"));
    }
}
