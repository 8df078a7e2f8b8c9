//! Build-script support for a package with its own interfaces.
//!
//! In the `main` of `build.rs`:
//! ```no_run
//! pteros_interfaces::build::generate_package("interfaces");
//! ```
//! In `src/lib.rs`:
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
//! ```
//! Definitions lie in `interfaces/msg/*.msg`, `srv/*.srv`, `action/*.action` and
//! may use every standard package. More than that, for example other crates'
//! interfaces or those of an installed ROS 2: [`pteros_msg::build::PackageBuild`].

use pteros_msg::build::{PackageBuild, finish};
use std::path::Path;

/// Generates Rust types for the interfaces in `folder`, for a crate that depends on
/// `pteros`. A wrong definition ends the build with a message that names file, line
/// and remedy.
pub fn generate_package(folder: impl AsRef<Path>) {
    generate(folder.as_ref(), "::pteros::interfaces", "::pteros::msg");
}

/// As [`generate_package`], for a crate of interfaces alone, which depends on
/// `pteros-interfaces` and not on all of `pteros`.
pub fn generate_interfaces_only(folder: impl AsRef<Path>) {
    generate(
        folder.as_ref(),
        "::pteros_interfaces",
        "::pteros_interfaces::pteros_msg",
    );
}

fn generate(folder: &Path, interfaces_path: &str, msg_path: &str) {
    let build = PackageBuild::new()
        .msg_path(msg_path)
        .using(crate::library(), interfaces_path)
        .folder(folder);
    finish(build.and_then(|build| build.write()));
}
