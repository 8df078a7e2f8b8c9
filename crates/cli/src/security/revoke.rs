//! `pteros security revoke`.

use super::{Days, now};
use crate::shared::Shared;
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
    /// Name of the enclave whose key got into wrong hands
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    days: Days,
}

impl Revoke {
    /// Writes the list and gives it to every enclave of the keystore.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let keystore = Keystore::open(&self.root)?;
        let options = Options {
            days: self.days.days,
            ..Options::default()
        };
        let certificate = keystore.revoke(&self.name, &options, now()?)?;
        let serial = certificate.serial();
        if shared.console.json {
            let answer = json!({ "enclave": self.name, "serial": serial });
            return Ok(shared.console.json(&answer)?);
        }
        shared.console.line(format!(
            "revoked: {} with serial {serial}; copy crl.pem to every robot, and make a new key \
             with create_enclave",
            self.name
        ))?;
        Ok(())
    }
}
