//! `pteros security init`.

use super::{Days, Domain, Rtps, now, options};
use crate::shared::Shared;
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
    /// Enclaves beside /, which all nodes share that name none
    #[arg(short = 'e', long, num_args = 0.., value_name = "NAME")]
    enclaves: Vec<String>,
    #[command(flatten)]
    days: Days,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    rtps: Rtps,
}

impl Init {
    /// Makes a keystore and its enclaves, or what is missing of them.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let options = Options {
            rtps: self.rtps.protection(),
            ..options(self.days, self.domain)?
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
        if shared.console.json {
            let answer = json!({ "keystore": root, "enclaves": names });
            return Ok(shared.console.json(&answer)?);
        }
        Ok(shared.console.line(format!(
            "keystore with {}; nodes, ours and other stacks', use it with\n\n  export ROS_SECURITY_KEYSTORE='{root}'\n  \
             export ROS_SECURITY_ENABLE=true\n  export ROS_SECURITY_STRATEGY=Enforce\n",
            names.join(", ")
        ))?)
    }
}
