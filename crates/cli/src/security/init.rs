//! `pteros security init`.

use super::keystore_flags::{
    DomainFlags, RtpsProtectionFlags, ValidityFlags, keystore_options, now,
};
use crate::cli_context::CliContext;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros_security::keystore::{Keystore, Options};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `security init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Folder of the keystore
    #[arg(value_name = "ROOT", default_value = "keystore")]
    root: PathBuf,
    /// Additional enclaves; all nodes without one share /
    #[arg(short = 'e', long, num_args = 0.., value_name = "NAME")]
    enclaves: Vec<String>,
    #[command(flatten)]
    days: ValidityFlags,
    #[command(flatten)]
    domain: DomainFlags,
    #[command(flatten)]
    rtps: RtpsProtectionFlags,
}

impl Init {
    /// Creates a keystore and its enclaves. Existing parts are kept.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let options = Options {
            rtps: self.rtps.protection(),
            ..keystore_options(self.days, self.domain)?
        };
        let now = now()?;
        let keystore = match Keystore::open(&self.root) {
            Ok(keystore) => keystore,
            Err(_) => Keystore::create(&self.root, &options, now)?,
        };
        for name in std::iter::once("/").chain(self.enclaves.iter().map(String::as_str)) {
            keystore.create_enclave(name, None, &options, now)?;
        }
        let root = std::fs::canonicalize(&self.root)
            .with_context(|| format!("finding {}", self.root.display()))?;
        let root = root.display().to_string();
        let names = keystore.enclaves()?;
        if cli.console.json {
            let output = json!({ "keystore": root, "enclaves": names });
            return Ok(cli.console.json(&output)?);
        }
        Ok(cli.console.line(format!(
            "keystore with {}; Pteros and other ROS 2 nodes use it with\n\n  export ROS_SECURITY_KEYSTORE='{root}'\n  \
             export ROS_SECURITY_ENABLE=true\n  export ROS_SECURITY_STRATEGY=Enforce\n",
            names.join(", ")
        ))?)
    }
}
