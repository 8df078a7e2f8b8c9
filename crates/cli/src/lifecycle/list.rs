//! `pteros lifecycle list`.

use super::lookup::{available_transitions, find_managed_node};
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use crate::value_parsers::positive_seconds;
use anyhow::Result;
use clap::Args;
use pteros::log::escape_line;
use serde_json::{Value, json};
use std::time::Duration;

/// Arguments of `lifecycle list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Consider hidden nodes as well
    #[arg(long)]
    include_hidden_nodes: bool,
    /// Show all transitions, not only those of the current state
    #[arg(short = 'a', long)]
    all: bool,
    /// Timeout for the response of the node
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    timeout: Duration,
    /// Full name of the node (e.g. /talker)
    node_name: String,
}

impl List {
    /// Prints transitions with their start and goal states.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let node = find_managed_node(&session, &graph, &self.node_name, self.include_hidden_nodes)?;
        let found = available_transitions(&session, &node, self.all, self.timeout)?;
        let console = cli.console;
        if console.json {
            let state = |state: &pteros::interfaces::lifecycle_msgs::msg::State| json!({ "id": state.id, "label": state.label });
            let rows = found.iter().map(|row| {
                json!({
                    "id": row.transition.id,
                    "label": row.transition.label,
                    "start": state(&row.start_state),
                    "goal": state(&row.goal_state),
                })
            });
            return Ok(console.json(&rows.collect::<Value>())?);
        }
        for row in found {
            console.line(format!(
                "- {} [{}]\n\tStart: {}\n\tGoal: {}",
                escape_line(&row.transition.label),
                row.transition.id,
                escape_line(&row.start_state.label),
                escape_line(&row.goal_state.label)
            ))?;
        }
        Ok(())
    }
}
