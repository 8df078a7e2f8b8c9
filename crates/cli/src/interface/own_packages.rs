//! Interface packages of the Cargo workspace around the current folder: the folder
//! `interfaces` of a Cargo package, as `build.rs` of `pteros new` reads it.

use std::path::PathBuf;

use pteros::msg::package_manifest::package_name_of;
use pteros_container::ComponentIndex;

/// Names and folders, by Cargo package. The name is that of the generated types. Blocks
/// for the disk.
pub fn own_packages() -> Vec<(String, PathBuf)> {
    let packages = crate::launch::packages(&ComponentIndex::from_environment());
    let folders = packages.cargo_packages().filter_map(|(_, folder)| {
        let folder = folder.join("interfaces");
        let is_own = folder.is_dir();
        is_own.then(|| (package_name_of(&folder), folder))
    });
    folders.collect()
}
