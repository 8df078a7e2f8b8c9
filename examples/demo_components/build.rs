//! Run path of the container program.
//!
//! The program finds the shared library of Pteros in its own folder, in cargo's
//! folders or in `lib` beside that. It finds the standard library in the compiler's
//! folder.
#![allow(clippy::disallowed_methods, reason = "reads cargo's variables")]

use std::env;
use std::error::Error;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let output = Command::new(env::var("RUSTC")?)
        .args(["--print", "target-libdir", "--target", &env::var("TARGET")?])
        .output()?;
    let compilers = String::from_utf8(output.stdout)?;
    for folder in [
        "$ORIGIN",
        "$ORIGIN/deps",
        "$ORIGIN/..",
        "$ORIGIN/../lib",
        compilers.trim(),
    ] {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    Ok(())
}
