//! `pteros security`: keystores in SROS 2's layout. It has SROS 2's verbs and
//! arguments, and further verbs.

mod check;
mod create_enclave;
mod create_keystore;
mod create_permission;
mod create_zenoh_config;
mod generate_artifacts;
mod generate_policy;
mod init;
mod keystore_flags;
mod list_enclaves;
mod revoke;
mod sign;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `security`.
#[derive(Debug, Subcommand)]
pub enum SecurityVerb {
    /// Create a keystore with one enclave for all nodes, and print how to use it
    Init(init::Init),
    /// Check a keystore for errors and weaknesses
    Check(check::Check),
    /// Create a keystore: two certificate authorities and the signed governance
    #[command(name = "create_keystore", alias = "create-keystore")]
    CreateKeystore(create_keystore::CreateKeystore),
    /// Create an enclave: key, certificate and permissions (create_key in older
    /// scripts)
    #[command(name = "create_enclave", aliases = ["create-enclave", "create_key"])]
    CreateEnclave(create_enclave::CreateEnclave),
    /// Replace the permissions of an enclave by those of a policy
    #[command(name = "create_permission", alias = "create-permission")]
    CreatePermission(create_permission::CreatePermission),
    /// Write Zenoh's configuration files for the enclaves: TLS with their certificates,
    /// and access control from their permissions
    #[command(name = "create_zenoh_config", alias = "create-zenoh-config")]
    CreateZenohConfig(create_zenoh_config::CreateZenohConfig),
    /// Write a policy that allows what the nodes of the graph do
    #[command(name = "generate_policy", alias = "generate-policy")]
    GeneratePolicy(generate_policy::GeneratePolicy),
    /// Create enclaves and permissions for names and policies, and the keystore if
    /// it is missing
    #[command(name = "generate_artifacts", alias = "generate-artifacts")]
    GenerateArtifacts(generate_artifacts::GenerateArtifacts),
    /// List the enclaves of a keystore (list_keys in older scripts)
    #[command(name = "list_enclaves", aliases = ["list-enclaves", "list_keys"])]
    ListEnclaves(list_enclaves::ListEnclaves),
    /// Sign governance and permissions again after changes
    Sign(sign::Sign),
    /// Revoke the certificate of an enclave
    Revoke(revoke::Revoke),
}

impl SecurityVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Init(verb) => verb.run(cli),
            Self::Check(verb) => verb.run(cli),
            Self::CreateKeystore(verb) => verb.run(cli),
            Self::CreateEnclave(verb) => verb.run(cli),
            Self::CreatePermission(verb) => verb.run(cli),
            Self::CreateZenohConfig(verb) => verb.run(cli),
            Self::GeneratePolicy(verb) => verb.run(cli),
            Self::GenerateArtifacts(verb) => verb.run(cli),
            Self::ListEnclaves(verb) => verb.run(cli),
            Self::Sign(verb) => verb.run(cli),
            Self::Revoke(verb) => verb.run(cli),
        }
    }
}
