//! Context of a verb: console, interface definitions and the `--ros-args` of the
//! command line.

use crate::console::Console;
use anyhow::{Context as _, Result, bail};
use pteros::args::Arguments;
use pteros::msg::library::InterfaceLibrary;
use std::path::PathBuf;

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
pub const MORE_INTERFACES: &str = "add more with --interfaces DIR or PTEROS_INTERFACE_PATH, or source a workspace so that AMENT_PREFIX_PATH names it";

impl CliContext {
    /// The interface definitions: built-in ones, those of AMENT_PREFIX_PATH and of
    /// PTEROS_INTERFACE_PATH, then the given folders. Later ones take precedence.
    pub fn library(&self) -> Result<InterfaceLibrary> {
        let mut library = pteros::interfaces::library().clone();
        library
            .load_ament_prefix_path()
            .context("reading the interfaces of AMENT_PREFIX_PATH")?;
        let listed = std::env::var_os(INTERFACE_PATH).unwrap_or_default();
        let listed: Vec<PathBuf> = std::env::split_paths(&listed).collect();
        // The first of a path list wins.
        let listed = listed.iter().rev().map(|folder| (INTERFACE_PATH, folder));
        let given = self.interface_folders.iter();
        for (source, folder) in listed.chain(given.map(|folder| ("--interfaces", folder))) {
            if folder.as_os_str().is_empty() {
                continue;
            }
            let count = library
                .load_folder(folder)
                .with_context(|| format!("{source} {}", folder.display()))?;
            if count == 0 {
                bail!(
                    "{source} {}: no interface found; give a folder that holds package/msg/Name.msg, or one package's own folder with msg, srv or action in it",
                    folder.display()
                );
            }
        }
        Ok(library)
    }
}
