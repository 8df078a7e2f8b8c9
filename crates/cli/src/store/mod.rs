//! `pteros store`: what transient and persistent publishers have stored.

mod clear;
mod list;
mod show;

use crate::shared::Shared;
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
    /// Show when each sample of a store was published, and how large it is
    Show(show::Show),
    /// Remove a store and all that is in it
    Clear(clear::Clear),
}

impl StoreVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Show(verb) => verb.run(shared),
            Self::Clear(verb) => verb.run(shared),
        }
    }
}

/// Where the stores are.
#[derive(Debug, Args)]
pub struct Folder {
    /// Folder of the stores [default: PTEROS_STORE_DIR, else store in ROS_HOME, else
    /// pteros/store in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Folder {
    fn path(&self) -> Result<PathBuf> {
        let known = match &self.folder {
            Some(folder) => Some(folder.clone()),
            None => Config::from_environment()?.store_folder,
        };
        Ok(known.ok_or(StoreError::NoFolder)?)
    }

    /// The file of a store by its name, or by the path of the file itself.
    fn store(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path()?;
        let named = folder.join(file_name(name)?);
        let candidates = [named.clone(), PathBuf::from(name)];
        match candidates.into_iter().find(|path| path.is_file()) {
            Some(path) => Ok(path),
            None => bail!(
                "no store {name:?}: {} is not there; `pteros store list` names those that are",
                named.display()
            ),
        }
    }
}

/// What a store's file is called without its folder.
fn short(path: &std::path::Path) -> Result<String> {
    let name = path.file_name().context("a store without a name")?;
    Ok(name.to_string_lossy().into_owned())
}
