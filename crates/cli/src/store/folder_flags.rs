//! The folder of the stores, which every verb of `store` takes, and a store in it.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::config::Config;
use pteros::store::{StoreError, file_name};
use std::path::PathBuf;

/// The folder of the stores.
#[derive(Debug, Args)]
pub struct StoreFolderFlags {
    /// Folder of the stores [default: PTEROS_STORE_DIR, else store in ROS_HOME, else
    /// pteros/store in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl StoreFolderFlags {
    pub(super) fn path(&self) -> Result<PathBuf> {
        let known = match &self.folder {
            Some(folder) => Some(folder.clone()),
            None => Config::from_environment()?.store_folder,
        };
        Ok(known.ok_or(StoreError::NoFolder)?)
    }

    /// The file of a store, by name or path.
    pub(super) fn store(&self, name: &str) -> Result<PathBuf> {
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

pub(super) fn store_file_name(path: &std::path::Path) -> Result<String> {
    let name = path.file_name().context("a store without a name")?;
    Ok(name.to_string_lossy().into_owned())
}
