//! `pteros security create_permission`.

use super::keystore_flags::{
    DomainFlags, ValidityFlags, enclave_policy, keystore_options, now, print_created,
};
use crate::cli_context::CliContext;
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
    /// Policy with the allowed actions of its nodes
    #[arg(value_name = "POLICY_FILE_PATH")]
    policy: PathBuf,
    #[command(flatten)]
    days: ValidityFlags,
    #[command(flatten)]
    domain: DomainFlags,
}

impl CreatePermission {
    /// Writes and signs the permissions.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let policy = enclave_policy(&self.policy, &self.name)?;
        let keystore = Keystore::open(&self.root)?;
        let options = keystore_options(self.days, self.domain)?;
        let folder = keystore.create_permission(&self.name, &policy, &options, now()?)?;
        print_created(cli, "permissions", &folder.join("permissions.p7s"))
    }
}
