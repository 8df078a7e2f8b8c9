//! `pteros security revoke`.

use super::keystore_flags::{ValidityFlags, now};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::{Keystore, Options};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `security revoke`.
#[derive(Debug, Args)]
pub struct Revoke {
    /// Folder of the keystore
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Name of the enclave with the compromised key
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    days: ValidityFlags,
}

impl Revoke {
    /// Writes the revocation list and copies it into every enclave of the keystore.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let keystore = Keystore::open(&self.root)?;
        let options = Options {
            days: self.days.days,
            ..Options::default()
        };
        let certificate = keystore.revoke(&self.name, &options, now()?)?;
        let serial = certificate.serial();
        if cli.console.json {
            let output = json!({ "enclave": self.name, "serial": serial });
            return Ok(cli.console.json(&output)?);
        }
        cli.console.line(format!(
            "revoked: {} with serial {serial}; copy crl.pem to every robot, and create a new key \
             with create_enclave",
            self.name
        ))?;
        Ok(())
    }
}
