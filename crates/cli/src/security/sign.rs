//! `pteros security sign`.

use super::{now, root, told};
use crate::shared::Shared;
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
    /// Reads governance.xml and each permissions.xml, and signs them.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let root = root(self.root)?;
        Keystore::open(&root)?.sign(now()?)?;
        told(shared, "signed", &root)
    }
}
