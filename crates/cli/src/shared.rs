//! What every verb is given: where to print, which interfaces are known, and
//! the `--ros-args` of the command line.

use crate::console::Console;
use anyhow::{Context as _, Result, bail};
use pteros::args::Arguments;
use pteros::msg::library::InterfaceLibrary;
use std::path::PathBuf;

/// What the global flags said.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Where to print and in which form.
    pub console: Console,
    /// `--interfaces`, in the order given.
    pub interface_folders: Vec<PathBuf>,
    /// What stood behind `--ros-args`.
    pub arguments: Arguments,
    /// Topics are named as DDS names them (`topic --dds-names`).
    pub dds_names: bool,
}

/// The way out of every "unknown type".
pub const MORE_INTERFACES: &str =
    "add more with --interfaces DIR, or source a workspace so that AMENT_PREFIX_PATH names it";

impl Shared {
    /// The interface definitions: the built-in ones, those that
    /// AMENT_PREFIX_PATH leads to, then the given folders; later ones win.
    pub fn library(&self) -> Result<InterfaceLibrary> {
        let mut library = pteros::interfaces::library().clone();
        library
            .load_ament_prefix_path()
            .context("reading the interfaces that AMENT_PREFIX_PATH leads to")?;
        for folder in &self.interface_folders {
            let count = library
                .load_folder(folder)
                .with_context(|| format!("--interfaces {}", folder.display()))?;
            if count == 0 {
                bail!(
                    "--interfaces {}: no interface was found there; give a folder that holds package/msg/Name.msg, or one package's own folder with msg, srv or action in it",
                    folder.display()
                );
            }
        }
        Ok(library)
    }
}
