//! `pteros security create_zenoh_config`.

use super::keystore_flags::{DomainFlags, ValidityFlags, keystore_options, keystore_root, now};
use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros_security::diagnostic::Diagnostic;
use pteros_security::keystore::Keystore;
use pteros_security::policy::PolicyEnclave;
use pteros_security::zenoh::{ZenohOptions, zenoh_files};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `security create_zenoh_config`.
#[derive(Debug, Args)]
pub struct CreateZenohConfig {
    /// Folder of the keystore [default: ROS_SECURITY_KEYSTORE]
    #[arg(value_name = "ROOT")]
    root: Option<PathBuf>,
    /// Enclaves whose sessions routers let in [default: all]
    #[arg(short = 'e', long, num_args = 1.., value_name = "NAME")]
    enclaves: Vec<String>,
    /// Enclave of routers; created if it is missing
    #[arg(short = 'r', long, num_args = 1.., value_name = "NAME", default_value = "/zenohd")]
    router: Vec<String>,
    /// Endpoints of routers to which sessions connect
    #[arg(long, num_args = 1.., value_name = "ENDPOINT", default_value = "tls/localhost:7447", value_parser = tls_endpoint)]
    connect: Vec<String>,
    /// Endpoints at which routers listen
    #[arg(long, num_args = 1.., value_name = "ENDPOINT", default_value = "tls/[::]:7447", value_parser = tls_endpoint)]
    listen: Vec<String>,
    /// Folder of the keystore on the hosts that use the files [default: ROOT]
    #[arg(long, value_name = "PATH")]
    keystore_path: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    days: ValidityFlags,
    #[command(flatten)]
    domain: DomainFlags,
}

impl CreateZenohConfig {
    /// Writes all files, or none if one would be replaced without being told. It creates
    /// the enclaves of routers before that, once all names are known to be right.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let root = keystore_root(self.root)?;
        let keystore = Keystore::open(&root)?;
        let now = now()?;
        let known = keystore.enclaves()?;
        let options = keystore_options(self.days, self.domain)?;
        for name in &self.enclaves {
            keystore.existing_enclave(name)?;
        }
        for name in self.router.iter().filter(|name| !known.contains(name)) {
            // Its permissions allow nothing: a router publishes nothing of its own.
            let nothing = PolicyEnclave {
                path: name.clone(),
                profiles: Vec::new(),
            };
            keystore.create_enclave(name, Some(&nothing), &options, now)?;
            cli.console
                .note(format!("note: enclave '{name}' of routers created"));
        }
        let absolute = std::fs::canonicalize(&root);
        let absolute = absolute.with_context(|| format!("finding {}", root.display()))?;
        let options = ZenohOptions {
            domain: options.domain,
            routers: self.router,
            sessions: self.enclaves,
            listen: self.listen,
            connect: self.connect,
            keystore_path: self.keystore_path.unwrap_or(absolute),
        };
        let made = zenoh_files(&keystore, &options, now).map_err(all_faults)?;
        let existing = made.existing();
        if !self.overwrite && !existing.is_empty() {
            let paths: Vec<String> = existing.iter().map(|at| at.display().to_string()).collect();
            bail!(
                "{}: exists with another content; give --overwrite to replace it",
                paths.join(", ")
            );
        }
        made.write()?;
        for warning in &made.warnings {
            cli.console.note(format!("note: {warning}"));
        }
        let paths = made
            .files
            .iter()
            .map(|(path, _)| path.display().to_string());
        if cli.console.json {
            let paths: Vec<String> = paths.collect();
            return Ok(cli.console.json(&json!({ "files": paths }))?);
        }
        for path in paths {
            cli.console.line(format!("written: {path}"))?;
        }
        Ok(())
    }
}

fn all_faults(faults: Vec<Diagnostic>) -> anyhow::Error {
    let texts: Vec<String> = faults.iter().map(Diagnostic::to_string).collect();
    anyhow::Error::msg(texts.join("\n"))
}

/// An endpoint of TLS: other transports would show the data to the network.
fn tls_endpoint(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("tls/");
    let port = address.and_then(|address| address.rsplit_once(':'));
    match port {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.into()),
        _ => Err("write tls/HOST:PORT, as tls/192.168.1.1:7447".into()),
    }
}
