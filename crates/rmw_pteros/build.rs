//! Says which distribution of ROS 2 the package is for: `cfg(distribution)` chooses the
//! file of `src/distribution`, and `RMW_ABI` has the version of rmw.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo passes the package's name in the environment"
)]

/// Package, distribution, and major and minor version of its package `rmw`.
const DISTRIBUTIONS: [(&str, &str, &str); 4] = [
    ("pteros-rmw-humble", "humble", "6.1"),
    ("pteros-rmw", "jazzy", "7.3"),
    ("pteros-rmw-kilted", "kilted", "7.8"),
    ("pteros-rmw-lyrical", "lyrical", "7.10"),
];

fn main() {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let found = DISTRIBUTIONS.iter().find(|(name, ..)| *name == package);
    let Some((_, distribution, rmw_abi)) = found else {
        panic!("{package} is for no distribution in build.rs");
    };
    let names = DISTRIBUTIONS.map(|(_, name, _)| format!("{name:?}"));
    println!(
        "cargo:rustc-check-cfg=cfg(distribution, values({}))",
        names.join(", ")
    );
    println!("cargo:rustc-cfg=distribution={distribution:?}");
    println!("cargo:rustc-env=RMW_ABI={rmw_abi}");
    // The script changes nothing else: without a line cargo runs it after every change.
    println!("cargo:rerun-if-changed=Cargo.toml");
}
