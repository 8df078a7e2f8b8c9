//! `pteros security`: keystores in SROS 2's layout, with its verbs and
//! arguments, and verbs that it lacks.

mod check;
mod create_enclave;
mod create_keystore;
mod create_permission;
mod generate_artifacts;
mod generate_policy;
mod init;
mod list_enclaves;
mod revoke;
mod sign;

use crate::shared::Shared;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use pteros_security::date::UnixTime;
use pteros_security::governance::Protection;
use pteros_security::keystore::Options;
use pteros_security::policy::{Policy, PolicyEnclave};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Verbs of `security`.
#[derive(Debug, Subcommand)]
pub enum SecurityVerb {
    /// Make a keystore with an enclave for all nodes, and say how to use it
    Init(init::Init),
    /// Say what is wrong with a keystore, and what is weak in it
    Check(check::Check),
    /// Make a keystore: two authorities and the signed governance
    #[command(name = "create_keystore", alias = "create-keystore")]
    CreateKeystore(create_keystore::CreateKeystore),
    /// Make an enclave: its key, certificate and permissions
    #[command(name = "create_enclave", alias = "create-enclave")]
    CreateEnclave(create_enclave::CreateEnclave),
    /// Replace the permissions of an enclave by what a policy says
    #[command(name = "create_permission", alias = "create-permission")]
    CreatePermission(create_permission::CreatePermission),
    /// Write what the nodes of the graph do as a policy
    #[command(name = "generate_policy", alias = "generate-policy")]
    GeneratePolicy(generate_policy::GeneratePolicy),
    /// Make enclaves and permissions for names and policies, and the keystore if need be
    #[command(name = "generate_artifacts", alias = "generate-artifacts")]
    GenerateArtifacts(generate_artifacts::GenerateArtifacts),
    /// List the enclaves of a keystore
    #[command(name = "list_enclaves", alias = "list-enclaves")]
    ListEnclaves(list_enclaves::ListEnclaves),
    /// Sign governance and permissions anew after they were edited
    Sign(sign::Sign),
    /// Take the certificate of an enclave back
    Revoke(revoke::Revoke),
}

impl SecurityVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Init(verb) => verb.run(shared),
            Self::Check(verb) => verb.run(shared),
            Self::CreateKeystore(verb) => verb.run(shared),
            Self::CreateEnclave(verb) => verb.run(shared),
            Self::CreatePermission(verb) => verb.run(shared),
            Self::GeneratePolicy(verb) => verb.run(shared),
            Self::GenerateArtifacts(verb) => verb.run(shared),
            Self::ListEnclaves(verb) => verb.run(shared),
            Self::Sign(verb) => verb.run(shared),
            Self::Revoke(verb) => verb.run(shared),
        }
    }
}

/// For how long new things hold.
#[derive(Clone, Copy, Debug, Args)]
pub struct Days {
    /// Days until what is made expires; never later than what it depends on
    #[arg(long, default_value_t = 3650, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

/// The domain that documents are for.
#[derive(Clone, Copy, Debug, Args)]
pub struct Domain {
    /// Domain that the documents name [default: ROS_DOMAIN_ID, else 0]
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(0..=232))]
    domain_id: Option<u32>,
}

impl Domain {
    fn id(self) -> Result<u32> {
        let variable = std::env::var("ROS_DOMAIN_ID").unwrap_or_default();
        match (self.domain_id, variable.trim()) {
            (Some(id), _) => Ok(id),
            (None, "") => Ok(0),
            (None, text) => match text.parse() {
                Ok(id @ 0..=232) => Ok(id),
                _ => bail!(
                    "ROS_DOMAIN_ID '{text}' is no number from 0 to 232; unset it, or give --domain-id"
                ),
            },
        }
    }
}

/// How whole messages are protected.
#[derive(Clone, Copy, Debug, Args)]
pub struct Rtps {
    /// Protection of whole messages; SIGN is SROS 2's, and leaves names of nodes readable
    #[arg(long, default_value = "ENCRYPT", value_name = "KIND")]
    rtps: RtpsKind,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RtpsKind {
    /// Nobody can read or change a message.
    #[value(name = "ENCRYPT")]
    Encrypt,
    /// Nobody can change one.
    #[value(name = "SIGN")]
    Sign,
}

impl Rtps {
    fn protection(self) -> Protection {
        match self.rtps {
            RtpsKind::Encrypt => Protection::Encrypt,
            RtpsKind::Sign => Protection::Sign,
        }
    }
}

fn options(days: Days, domain: Domain) -> Result<Options> {
    Ok(Options {
        days: days.days,
        domain: domain.id()?,
        ..Options::default()
    })
}

fn now() -> Result<UnixTime> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("the clock is before 1970; set it, since certificates are dated")?;
    Ok(UnixTime(i64::try_from(since.as_secs())?))
}

/// The keystore that was named, or that ROS_SECURITY_KEYSTORE names.
fn root(given: Option<PathBuf>) -> Result<PathBuf> {
    let known = std::env::var_os("ROS_SECURITY_KEYSTORE").filter(|value| !value.is_empty());
    match given.or(known.map(PathBuf::from)) {
        Some(root) => Ok(root),
        None => bail!("no keystore: name its folder, or set ROS_SECURITY_KEYSTORE"),
    }
}

/// What a policy says of one enclave.
fn policy_of(path: &Path, enclave: &str) -> Result<PolicyEnclave> {
    let policy = Policy::read(path)?;
    match policy.enclave(enclave) {
        Some(found) => Ok(found.clone()),
        None => {
            let known: Vec<&str> = policy.enclaves.iter().map(|e| e.path.as_str()).collect();
            bail!(
                "{}: says nothing of enclave '{enclave}'; it has: {}",
                path.display(),
                known.join(", ")
            )
        }
    }
}

/// A path as an answer: what was made.
fn told(shared: &Shared, what: &str, path: &Path) -> Result<()> {
    if shared.console.json {
        let answer = serde_json::json!({ what: path.display().to_string() });
        return Ok(shared.console.json(&answer)?);
    }
    Ok(shared.console.line(format!("{what}: {}", path.display()))?)
}
