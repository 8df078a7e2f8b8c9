//! Makes Rust types of Nav2's action, and tells programs of this package where the
//! libraries lie that they share with components: in their own folder, in cargo's
//! `deps`, and the standard library where the compiler has it.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script asks cargo by environment variables"
)]

use std::process::Command;

fn main() {
    pteros_interfaces::build::generate_package("interfaces/nav2_msgs");
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
