//! Build fingerprint of Pteros: a component library may only be loaded by a program
//! of the same compiler and the same Pteros (`src/component`).
//!
//! Writes nothing and fetches nothing; the sources are only read.
#![allow(clippy::disallowed_methods, reason = "reads cargo's variables")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates whose types cross the library boundary, besides this one. A published
/// package has no sibling folders; the crates' versions identify them then.
const CRATES: [&str; 8] = [
    "interfaces",
    "msg",
    "net",
    "pteros",
    "rcl",
    "runtime",
    "rtps",
    "shm",
];

fn main() -> Result<(), Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let folders = match own.parent() {
        Some(crates) if crates.join("runtime/src").is_dir() => CRATES
            .iter()
            .map(|name| crates.join(name).join("src"))
            .collect(),
        _ => vec![own.join("src")],
    };
    let mut hash = Hash::new();
    for folder in &folders {
        println!("cargo::rerun-if-changed={}", folder.display());
        hash.folder(folder)?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = Command::new(env::var("RUSTC")?).arg("--version").output()?;
    let compiler = String::from_utf8(compiler.stdout)?;
    println!(
        "cargo::rustc-env=PTEROS_FINGERPRINT=pteros {}, {}, {}, sources {:016x}",
        env::var("CARGO_PKG_VERSION")?,
        compiler.trim(),
        env::var("TARGET")?,
        hash.value
    );
    Ok(())
}

/// FNV-1a with 64 bits. It distinguishes builds and is not cryptographic.
struct Hash {
    value: u64,
}

impl Hash {
    fn new() -> Self {
        Self {
            value: 0xcbf2_9ce4_8422_2325,
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.value = (self.value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Every file below, in the order of names.
    fn folder(&mut self, folder: &Path) -> Result<(), Box<dyn Error>> {
        let entries: Result<Vec<_>, _> = fs::read_dir(folder)?.collect();
        let mut paths: Vec<_> = entries?.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in paths {
            self.bytes(path.file_name().unwrap_or_default().as_encoded_bytes());
            if path.is_dir() {
                self.folder(&path)?
            } else {
                self.bytes(&fs::read(&path)?)
            }
        }
        Ok(())
    }
}
