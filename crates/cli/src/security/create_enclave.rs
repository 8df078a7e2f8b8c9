//! `pteros security create_enclave`.

use super::keystore_flags::{DomainFlags, ValidityFlags, keystore_options, now, print_created};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::Keystore;
use std::path::PathBuf;

/// Arguments of `security create_enclave`.
#[derive(Debug, Args)]
pub struct CreateEnclave {
    /// Folder of the keystore
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Name of the enclave (e.g. /robot/arm)
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    days: ValidityFlags,
    #[command(flatten)]
    domain: DomainFlags,
}

impl CreateEnclave {
    /// Creates the missing files of the enclave and keeps existing ones.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let keystore = Keystore::open(&self.root)?;
        let options = keystore_options(self.days, self.domain)?;
        let folder = keystore.create_enclave(&self.name, None, &options, now()?)?;
        print_created(cli, "enclave", &folder)
    }
}
