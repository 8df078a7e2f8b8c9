//! Context of a verb of `pteros-lab`: console and interface definitions. And the
//! ways in which a verb ends.

use super::console::Console;
use anyhow::{Context as _, Result, bail};
use pteros::msg::library::InterfaceLibrary;
use std::path::PathBuf;

/// The values of the options that all verbs have.
#[derive(Debug)]
pub struct Setting {
    pub console: Console,
    pub interface_folders: Vec<PathBuf>,
}

/// How a verb ended that has reported its results itself.
pub enum Ending {
    /// All of it was done.
    Done,
    /// The compared run is worse, or the checked file is wrong.
    Failed,
    /// Ctrl-C came first.
    Interrupted,
}

impl Setting {
    /// The interface definitions: built-in ones, those of AMENT_PREFIX_PATH, then
    /// the given folders. Later ones take precedence.
    pub fn library(&self) -> Result<InterfaceLibrary> {
        let mut library = pteros::interfaces::library().clone();
        library
            .load_ament_prefix_path()
            .context("reading the interfaces of AMENT_PREFIX_PATH")?;
        for folder in &self.interface_folders {
            let count = library
                .load_folder(folder)
                .with_context(|| format!("--interfaces {}", folder.display()))?;
            if count == 0 {
                bail!(
                    "--interfaces {}: no interface found; give a folder that holds package/msg/Name.msg, or one package's own folder with msg, srv or action in it",
                    folder.display()
                );
            }
        }
        Ok(library)
    }
}
