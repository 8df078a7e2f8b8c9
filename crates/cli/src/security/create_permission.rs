//! `pteros security create_permission`.

use super::{Days, Domain, now, options, policy_of, told};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::Keystore;
use std::path::PathBuf;

/// Arguments of `security create_permission`.
#[derive(Debug, Args)]
pub struct CreatePermission {
    /// Folder of the keystore
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Name of the enclave
    #[arg(value_name = "NAME")]
    name: String,
    /// Policy that says what its nodes may do
    #[arg(value_name = "POLICY_FILE_PATH")]
    policy: PathBuf,
    #[command(flatten)]
    days: Days,
    #[command(flatten)]
    domain: Domain,
}

impl CreatePermission {
    /// Writes and signs the permissions.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let policy = policy_of(&self.policy, &self.name)?;
        let keystore = Keystore::open(&self.root)?;
        let options = options(self.days, self.domain)?;
        let folder = keystore.create_permission(&self.name, &policy, &options, now()?)?;
        told(shared, "permissions", &folder.join("permissions.p7s"))
    }
}
