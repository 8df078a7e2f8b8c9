//! Interface packages of the Cargo workspace around the current folder: the folder
//! `interfaces` of a Cargo package, which its `build.rs` reads, under the package's name.

use std::path::PathBuf;

use pteros_container::ComponentIndex;
use pteros_launch::packages::PackageOrigin;

/// Names and folders, by name. The name has underscores for dashes, as the generated
/// types have. Blocks for the disk.
pub fn own_packages() -> Vec<(String, PathBuf)> {
    let packages = crate::launch::packages(&ComponentIndex::from_environment());
    let cargo = packages.names().into_iter().filter_map(|name| {
        let found = packages.find(&name).ok()?;
        let folder = found.share.join("interfaces");
        let is_own = found.origin == PackageOrigin::Cargo && folder.is_dir();
        is_own.then(|| (name.replace('-', "_"), folder))
    });
    cargo.collect()
}
