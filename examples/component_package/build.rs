//! Run path of this package's programs.
//!
//! They find the libraries that they share with components in their own folder or
//! in cargo's `deps`. They find the standard library in the compiler's folder.
//! `cargo run` does not need this.
#![allow(clippy::disallowed_methods, reason = "reads cargo's variables")]

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
