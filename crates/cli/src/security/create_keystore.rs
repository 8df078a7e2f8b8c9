//! `pteros security create_keystore`.

use super::keystore_flags::{
    DomainFlags, RtpsProtectionFlags, ValidityFlags, keystore_options, now, print_created,
};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::{Keystore, Options};
use std::path::PathBuf;

/// Arguments of `security create_keystore`.
#[derive(Debug, Args)]
pub struct CreateKeystore {
    /// Folder of the keystore
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    #[command(flatten)]
    days: ValidityFlags,
    #[command(flatten)]
    domain: DomainFlags,
    #[command(flatten)]
    rtps: RtpsProtectionFlags,
}

impl CreateKeystore {
    /// Creates the certificate authorities and the signed governance.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let options = Options {
            rtps: self.rtps.protection(),
            ..keystore_options(self.days, self.domain)?
        };
        Keystore::create(&self.root, &options, now()?)?;
        print_created(cli, "keystore", &self.root)
    }
}
