//! `pteros component unload`.

use super::lookup::{call, find_container};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::interfaces::composition_interfaces::srv::{UnloadNode, UnloadNodeRequest};
use serde_json::{Value, json};

/// Arguments of `component unload`.
#[derive(Debug, Args)]
pub struct Unload {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Print only the numbers of the unloaded components
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Full name of the container (e.g. /ComponentManager)
    container_node_name: String,
    /// Numbers of the components, as component list shows them
    #[arg(required = true, value_name = "COMPONENT_UID")]
    component_uid: Vec<u64>,
}

impl Unload {
    /// Unloads each component. A failure does not stop the others.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let name = find_container(&session, &graph, &self.container_node_name)?;
        let (console, mut rows, mut failed) = (cli.console, Vec::new(), false);
        for unique_id in self.component_uid {
            let request = UnloadNodeRequest { unique_id };
            let response = call::<UnloadNode>(&session, &name, "unload_node", &request)?;
            let (success, why) = (response.success, &response.error_message);
            failed |= !success;
            if console.json {
                rows.push(json!({ "unique_id": unique_id, "success": success, "error": why }));
            } else if success && self.quiet {
                console.row(unique_id.to_string())?;
            } else if success {
                console.row(format!(
                    "Unloaded component {unique_id} from '{name}' container node"
                ))?;
            } else {
                console.note(format!(
                    "Failed to unload component {unique_id} from '{name}' container node: {why}"
                ));
            }
        }
        if console.json {
            console.json(&Value::from(rows))?;
        }
        if failed { Err(Failed.into()) } else { Ok(()) }
    }
}
