//! Names of processors: Rust's, Debian's, and that of packages.

use anyhow::{Context, Result};

/// A processor with Linux and glibc.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// In the names of archives.
    pub name: &'static str,
    /// Rust's target.
    pub triple: &'static str,
    /// Debian's architecture.
    pub debian: &'static str,
}

pub const X86_64: Machine = Machine {
    name: "x86_64",
    triple: "x86_64-unknown-linux-gnu",
    debian: "amd64",
};
pub const AARCH64: Machine = Machine {
    name: "aarch64",
    triple: "aarch64-unknown-linux-gnu",
    debian: "arm64",
};
pub const ARMV7: Machine = Machine {
    name: "armv7",
    triple: "armv7-unknown-linux-gnueabihf",
    debian: "armhf",
};
pub const S390X: Machine = Machine {
    name: "s390x",
    triple: "s390x-unknown-linux-gnu",
    debian: "s390x",
};

impl Machine {
    /// The machine that this program runs on.
    ///
    /// # Errors
    /// One without packages.
    pub fn own() -> Result<&'static Self> {
        Self::of_arch(std::env::consts::ARCH)
    }

    fn of_arch(arch: &str) -> Result<&'static Self> {
        let packaged = [&X86_64, &AARCH64];
        let found = packaged.into_iter().find(|machine| machine.name == arch);
        found.with_context(|| {
            format!("no packages are made for {arch}; run this on x86_64 or aarch64")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_for_the_machine_that_builds_or_refused() {
        assert_eq!(Machine::of_arch("x86_64").unwrap(), &X86_64);
        assert_eq!(Machine::of_arch("aarch64").unwrap().debian, "arm64");
        let refused = Machine::of_arch("s390x").unwrap_err().to_string();
        assert!(refused.contains("s390x; run this on"), "{refused}");
    }
}
