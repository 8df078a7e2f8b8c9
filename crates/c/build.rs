//! Name of the shared library, as programs that link to it record it. `cargo xtask
//! c-library` links the installed one, whose symbols have versions.
#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells the target by the environment"
)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpteros.so.0");
    }
}
