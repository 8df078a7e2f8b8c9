//! `pteros security create_keystore`.

use super::{Days, Domain, Rtps, now, options, told};
use crate::shared::Shared;
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
    days: Days,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    rtps: Rtps,
}

impl CreateKeystore {
    /// Makes the authorities and the signed governance.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let options = Options {
            rtps: self.rtps.protection(),
            ..options(self.days, self.domain)?
        };
        Keystore::create(&self.root, &options, now()?)?;
        told(shared, "keystore", &self.root)
    }
}
