//! Lets the container find the library that it shares with the components in
//! its own folder, in cargo's folders or in `lib` beside that, and the standard
//! library where the compiler has it.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script asks cargo by environment variables"
)]

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
