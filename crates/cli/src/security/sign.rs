//! `pteros security sign`.

use super::keystore_flags::{keystore_root, now, print_created};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::Keystore;
use std::path::PathBuf;

/// Arguments of `security sign`.
#[derive(Debug, Args)]
pub struct Sign {
    /// Folder of the keystore [default: ROS_SECURITY_KEYSTORE]
    #[arg(value_name = "ROOT")]
    root: Option<PathBuf>,
}

impl Sign {
    /// Signs governance.xml and all permissions.xml.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let root = keystore_root(self.root)?;
        Keystore::open(&root)?.sign(now()?)?;
        print_created(cli, "signed", &root)
    }
}
