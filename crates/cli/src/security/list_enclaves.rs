//! `pteros security list_enclaves`.

use super::root;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::Keystore;
use std::path::PathBuf;

/// Arguments of `security list_enclaves`.
#[derive(Debug, Args)]
pub struct ListEnclaves {
    /// Folder of the keystore [default: ROS_SECURITY_KEYSTORE]
    #[arg(value_name = "ROOT")]
    root: Option<PathBuf>,
}

impl ListEnclaves {
    /// Prints a name a line.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let keystore = Keystore::open(&root(self.root)?)?;
        Ok(shared.console.names(&keystore.enclaves()?, false)?)
    }
}
