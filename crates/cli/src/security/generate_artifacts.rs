//! `pteros security generate_artifacts`.

use super::keystore_flags::{
    DomainFlags, RtpsProtectionFlags, ValidityFlags, keystore_options, keystore_root, now,
};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_security::keystore::{Keystore, Options};
use pteros_security::policy::Policy;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `security generate_artifacts`.
#[derive(Debug, Args)]
pub struct GenerateArtifacts {
    /// Folder of the keystore [default: ROS_SECURITY_KEYSTORE]
    #[arg(short = 'k', long, value_name = "ROOT")]
    keystore_root_path: Option<PathBuf>,
    /// Names of enclaves
    #[arg(short = 'e', long, num_args = 0.., value_name = "NAME")]
    enclaves: Vec<String>,
    /// Policies; all of their enclaves are created
    #[arg(short = 'p', long, num_args = 0.., value_name = "FILE")]
    policy_files: Vec<PathBuf>,
    #[command(flatten)]
    days: ValidityFlags,
    #[command(flatten)]
    domain: DomainFlags,
    #[command(flatten)]
    rtps: RtpsProtectionFlags,
}

impl GenerateArtifacts {
    /// Creates all artifacts, after all policies have been read.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let root = keystore_root(self.keystore_root_path)?;
        let policies = self
            .policy_files
            .iter()
            .map(|file| Policy::read(file))
            .collect::<Result<Vec<_>, _>>()?;
        let options = Options {
            rtps: self.rtps.protection(),
            ..keystore_options(self.days, self.domain)?
        };
        let now = now()?;
        let keystore = match Keystore::open(&root) {
            Ok(keystore) => keystore,
            Err(_) => Keystore::create(&root, &options, now)?,
        };
        let mut made = Vec::new();
        for name in &self.enclaves {
            made.push(keystore.create_enclave(name, None, &options, now)?);
        }
        for enclave in policies.iter().flat_map(|policy| &policy.enclaves) {
            made.push(keystore.create_enclave(&enclave.path, Some(enclave), &options, now)?);
        }
        made.dedup();
        let made: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
        if cli.console.json {
            return Ok(cli.console.json(&json!({ "enclaves": made }))?);
        }
        for path in made {
            cli.console.line(format!("enclave: {path}"))?;
        }
        Ok(())
    }
}
