//! Flags and answers that the verbs of `security` share: keystore, domain, validity
//! period, protection.

use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros_security::date::UnixTime;
use pteros_security::governance::Protection;
use pteros_security::keystore::Options;
use pteros_security::policy::{Policy, PolicyEnclave};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Validity period of certificates and documents.
#[derive(Clone, Copy, Debug, Args)]
pub struct ValidityFlags {
    /// Days until the new certificates and documents expire; at most until the
    /// issuer's certificate expires
    #[arg(long, default_value_t = 3650, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(super) days: u32,
}

/// The domain of governance and permissions.
#[derive(Clone, Copy, Debug, Args)]
pub struct DomainFlags {
    /// Domain of the documents [default: ROS_DOMAIN_ID, else 0]
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(super) domain_id: Option<u32>,
}

impl DomainFlags {
    pub(super) fn id(self) -> Result<u32> {
        let variable = std::env::var("ROS_DOMAIN_ID").unwrap_or_default();
        match (self.domain_id, variable.trim()) {
            (Some(id), _) => Ok(id),
            (None, "") => Ok(0),
            (None, text) => match text.parse() {
                Ok(id @ 0..=232) => Ok(id),
                _ => bail!(
                    "ROS_DOMAIN_ID '{text}' is not a number from 0 to 232; unset it, or give --domain-id"
                ),
            },
        }
    }
}

/// Protection kind of RTPS messages.
#[derive(Clone, Copy, Debug, Args)]
pub struct RtpsProtectionFlags {
    /// Protection of RTPS messages; SIGN is the default of SROS 2 and leaves node
    /// names readable
    #[arg(long, default_value = "ENCRYPT", value_name = "KIND")]
    pub(super) rtps: RtpsProtectionKind,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum RtpsProtectionKind {
    /// Encrypt messages.
    #[value(name = "ENCRYPT")]
    Encrypt,
    /// Sign messages only.
    #[value(name = "SIGN")]
    Sign,
}

impl RtpsProtectionFlags {
    pub(super) fn protection(self) -> Protection {
        match self.rtps {
            RtpsProtectionKind::Encrypt => Protection::Encrypt,
            RtpsProtectionKind::Sign => Protection::Sign,
        }
    }
}

pub(super) fn keystore_options(days: ValidityFlags, domain: DomainFlags) -> Result<Options> {
    Ok(Options {
        days: days.days,
        domain: domain.id()?,
        ..Options::default()
    })
}

pub(super) fn now() -> Result<UnixTime> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("the clock is before 1970; set it, since certificates contain dates")?;
    Ok(UnixTime(i64::try_from(since.as_secs())?))
}

/// The given keystore, or that of ROS_SECURITY_KEYSTORE.
pub(super) fn keystore_root(given: Option<PathBuf>) -> Result<PathBuf> {
    let known = std::env::var_os("ROS_SECURITY_KEYSTORE").filter(|value| !value.is_empty());
    match given.or(known.map(PathBuf::from)) {
        Some(root) => Ok(root),
        None => bail!("no keystore: name its folder, or set ROS_SECURITY_KEYSTORE"),
    }
}

/// The rules of a policy for one enclave.
pub(super) fn enclave_policy(path: &Path, enclave: &str) -> Result<PolicyEnclave> {
    let policy = Policy::read(path)?;
    match policy.enclave(enclave) {
        Some(found) => Ok(found.clone()),
        None => {
            let known: Vec<&str> = policy.enclaves.iter().map(|e| e.path.as_str()).collect();
            bail!(
                "{}: no rules for enclave '{enclave}'; it has: {}",
                path.display(),
                known.join(", ")
            )
        }
    }
}

/// Prints the path of a created file.
pub(super) fn print_created(cli: &CliContext, what: &str, path: &Path) -> Result<()> {
    if cli.console.json {
        let output = serde_json::json!({ what: path.display().to_string() });
        return Ok(cli.console.json(&output)?);
    }
    Ok(cli.console.line(format!("{what}: {}", path.display()))?)
}
