//! `pteros component load`.

use super::known::{ask, container};
use super::load_flags::LoadFlags;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::{Result, bail};
use clap::Args;
use pteros::interfaces::composition_interfaces::srv::LoadNode;
use serde_json::json;

/// Arguments of `component load`.
#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Print nothing but the number of the component
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Full name of the container (e.g. /ComponentManager)
    container_node_name: String,
    #[command(flatten)]
    flags: LoadFlags,
}

impl Load {
    /// Loads one component and prints its number.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let name = container(&session, &graph, &self.container_node_name)?;
        let answer = ask::<LoadNode>(&session, &name, "load_node", &self.flags.request())?;
        if !answer.success {
            let class = self.flags.class();
            bail!(
                "Failed to load component '{class}': {}",
                answer.error_message
            );
        }
        let (id, node) = (answer.unique_id, &answer.full_node_name);
        let console = shared.console;
        if console.json {
            let row = json!({ "container": name, "unique_id": id, "name": node });
            return Ok(console.json(&row)?);
        }
        let said = match self.quiet {
            true => id.to_string(),
            false => format!("Loaded component {id} into '{name}' container node as '{node}'"),
        };
        Ok(console.line(said)?)
    }
}
