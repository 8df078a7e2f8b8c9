//! Where programs of this package find the libraries that they share with
//! components: in their own folder, in cargo's `deps`, and the standard library
//! where the compiler has it. `cargo run` needs none of this.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script asks cargo by environment variables"
)]

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler)
        .args(["--print", "target-libdir"])
        .output()
        .expect("the compiler runs");
    let standard = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    for folder in ["$ORIGIN", "$ORIGIN/deps", &standard] {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
