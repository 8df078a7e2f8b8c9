//! `pteros security list_enclaves`.

use super::keystore_flags::keystore_root;
use crate::cli_context::CliContext;
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
    /// Prints the names of the enclaves, one per line.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let keystore = Keystore::open(&keystore_root(self.root)?)?;
        Ok(cli.console.names(&keystore.enclaves()?, false)?)
    }
}
