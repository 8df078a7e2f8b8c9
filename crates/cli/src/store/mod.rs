//! `pteros store`: stored samples of transient and persistent publishers.

mod clear;
mod list;
mod show;

use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use pteros::config::Config;
use pteros::store::{StoreError, file_name};
use std::path::PathBuf;

/// Verbs of `store`.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// List the stores: topic, type, samples, bytes
    List(list::List),
    /// Show publication time and size of each sample in a store
    Show(show::Show),
    /// Remove a store with all its samples
    Clear(clear::Clear),
}

impl StoreVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Show(verb) => verb.run(cli),
            Self::Clear(verb) => verb.run(cli),
        }
    }
}

/// The folder of the stores.
#[derive(Debug, Args)]
pub struct StoreFolderFlags {
    /// Folder of the stores [default: PTEROS_STORE_DIR, else store in ROS_HOME, else
    /// pteros/store in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl StoreFolderFlags {
    fn path(&self) -> Result<PathBuf> {
        let known = match &self.folder {
            Some(folder) => Some(folder.clone()),
            None => Config::from_environment()?.store_folder,
        };
        Ok(known.ok_or(StoreError::NoFolder)?)
    }

    /// The file of a store, by name or path.
    fn store(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path()?;
        let named = folder.join(file_name(name)?);
        let candidates = [named.clone(), PathBuf::from(name)];
        match candidates.into_iter().find(|path| path.is_file()) {
            Some(path) => Ok(path),
            None => bail!(
                "no store {name:?}: {} does not exist; list the stores with: pteros store list",
                named.display()
            ),
        }
    }
}

/// File name of a store.
fn store_file_name(path: &std::path::Path) -> Result<String> {
    let name = path.file_name().context("a store without a name")?;
    Ok(name.to_string_lossy().into_owned())
}
