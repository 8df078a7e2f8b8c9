//! `pteros component load`.

use super::load_flags::LoadFlags;
use super::lookup::{call, find_container};
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::{Result, bail};
use clap::Args;
use pteros::interfaces::composition_interfaces::srv::LoadNode;
use serde_json::json;

/// Arguments of `component load`.
#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Print only the number and the name of the component
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Full name of the container (e.g. /ComponentManager)
    container_node_name: String,
    #[command(flatten)]
    flags: LoadFlags,
}

impl Load {
    /// Loads one component and prints its number.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let name = find_container(&session, &graph, &self.container_node_name)?;
        let response = call::<LoadNode>(&session, &name, "load_node", &self.flags.request())?;
        if !response.success {
            let class = self.flags.class();
            bail!(
                "Failed to load component '{class}': {}",
                response.error_message
            );
        }
        let (id, node) = (response.unique_id, &response.full_node_name);
        let console = cli.console;
        if console.json {
            let row = json!({ "container": name, "unique_id": id, "name": node });
            return Ok(console.json(&row)?);
        }
        let text = if self.quiet {
            format!("{id}  {node}")
        } else {
            format!("Loaded component {id} into '{name}' container node as '{node}'")
        };
        Ok(console.row(text)?)
    }
}
