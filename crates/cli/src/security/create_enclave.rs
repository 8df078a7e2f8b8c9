//! `pteros security create_enclave`.

use super::{Days, Domain, now, options, told};
use crate::shared::Shared;
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
    days: Days,
    #[command(flatten)]
    domain: Domain,
}

impl CreateEnclave {
    /// Makes what the enclave lacks; what it has is kept.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let keystore = Keystore::open(&self.root)?;
        let options = options(self.days, self.domain)?;
        let folder = keystore.create_enclave(&self.name, None, &options, now()?)?;
        told(shared, "enclave", &folder)
    }
}
