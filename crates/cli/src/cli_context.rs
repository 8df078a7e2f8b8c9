//! Context of a verb: console, interface definitions and the `--ros-args` of the
//! command line.

use crate::console::Console;
use crate::interface::own_packages;
use anyhow::{Context as _, Result, bail};
use pteros::args::Arguments;
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::package_folders::PackageFolders;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The values of the global flags.
#[derive(Clone, Debug)]
pub struct CliContext {
    /// Console output and its format.
    pub console: Console,
    /// `--interfaces`, in the order given.
    pub interface_folders: Vec<PathBuf>,
    /// The arguments after `--ros-args`.
    pub arguments: Arguments,
    /// Topics are named as DDS names them (`topic --dds-names`).
    pub dds_names: bool,
    /// Hidden topics or services are listed (`--include-hidden-topics`,
    /// `--include-hidden-services`).
    pub include_hidden: bool,
}

/// Folders of interface packages, separated by colons.
const INTERFACE_PATH: &str = "PTEROS_INTERFACE_PATH";

/// The hint of every "unknown type" error.
pub const MORE_INTERFACES: &str = "those of a Cargo package are known in its folder and the one above; add more with --interfaces DIR or PTEROS_INTERFACE_PATH, or source a workspace so that AMENT_PREFIX_PATH names it";

impl CliContext {
    /// The interface definitions: built-in ones, those of AMENT_PREFIX_PATH, of the Cargo
    /// workspace around the current folder and of PTEROS_INTERFACE_PATH, then the given
    /// folders. Later ones take precedence.
    pub fn library(&self) -> Result<InterfaceLibrary> {
        let mut library = pteros::interfaces::library().clone();
        library
            .load_ament_prefix_path()
            .context("reading the interfaces of AMENT_PREFIX_PATH")?;
        for (package, folder) in own_packages() {
            library
                .load_package(&folder, &package)
                .context("reading the interfaces of the Cargo workspace")?;
        }
        let listed = std::env::var_os(INTERFACE_PATH).unwrap_or_default();
        let mut packages = BTreeMap::new();
        for folder in std::env::split_paths(&listed) {
            if folder.as_os_str().is_empty() {
                continue;
            }
            let found = PackageFolders::of(&folder).all();
            if found.is_empty() {
                bail!(nothing_found(INTERFACE_PATH, &folder));
            }
            for (package, folder) in found {
                // The first of a path list wins.
                packages.entry(package).or_insert(folder);
            }
        }
        for (package, folder) in packages {
            library
                .load_package(&folder, &package)
                .context(INTERFACE_PATH)?;
        }
        for folder in &self.interface_folders {
            if library.load_folder(folder).context("--interfaces")? == 0 {
                bail!(nothing_found("--interfaces", folder));
            }
        }
        Ok(library)
    }
}

fn nothing_found(source: &str, folder: &Path) -> String {
    format!(
        "{source} {}: no interface found; give a folder that holds package/msg/Name.msg at any depth, or one package's own folder with msg, srv or action in it",
        folder.display()
    )
}
