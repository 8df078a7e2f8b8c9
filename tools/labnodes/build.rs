//! Sets the library search path of the components: the container's directory,
//! cargo's directories, `lib` next to them, and the compiler's directory of the
//! standard library.
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
