//! `pteros lifecycle set`.

use super::lookup::{available_transitions, call, find_managed_node};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::{DiscoveryFlags, Session};
use crate::value_parsers::positive_seconds;
use anyhow::{Result, bail};
use clap::Args;
use pteros::interfaces::lifecycle_msgs::msg::Transition;
use pteros::interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, GetState, GetStateRequest,
};
use pteros::log::escape_line;
use serde_json::json;
use std::time::Duration;

/// Timeout of a query, as opposed to a transition.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `lifecycle set`.
#[derive(Debug, Args)]
pub struct Set {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Consider hidden nodes as well
    #[arg(long)]
    include_hidden_nodes: bool,
    /// Give up when the transition lasts longer [default: wait until Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
    /// Full name of the node (e.g. /talker)
    node_name: String,
    /// The transition: a label (e.g. configure) or a number (e.g. 1)
    transition: String,
}

impl Set {
    /// Requests the transition and waits for its end.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let node = find_managed_node(&session, &graph, &self.node_name, self.include_hidden_nodes)?;
        let question = self.timeout.unwrap_or(QUERY_TIMEOUT).min(QUERY_TIMEOUT);
        let possible: Vec<Transition> = available_transitions(&session, &node, false, question)?
            .into_iter()
            .map(|row| row.transition)
            .collect();
        let by_label = possible.iter().find(|t| t.label == self.transition);
        let found = by_label.or_else(|| {
            let mut all = possible.iter();
            all.find(|t| t.id.to_string() == self.transition)
        });
        let Some(transition) = found.cloned() else {
            let row = |t: &Transition| format!("\n- {} [{}]", escape_line(&t.label), t.id);
            let rows: String = possible.iter().map(row).collect();
            let rows = if rows.is_empty() {
                " none".into()
            } else {
                rows
            };
            bail!(
                "Unknown transition requested, '{}'; available ones are:{rows}",
                self.transition
            );
        };
        let request = ChangeStateRequest {
            transition: transition.clone(),
        };
        let timeout = self.timeout.unwrap_or(Duration::MAX);
        let success =
            call::<ChangeState>(&session, &node, "change_state", &request, timeout)?.success;
        let console = cli.console;
        let state = call::<GetState>(&session, &node, "get_state", &GetStateRequest {}, question)?;
        let state = &state.current_state;
        if console.json {
            console.json(&json!({
                "name": node,
                "transition": { "id": transition.id, "label": transition.label },
                "success": success,
                "state": { "id": state.id, "label": state.label },
            }))?;
        } else if success {
            console.line("Transitioning successful")?;
        } else {
            console.note(format!(
                "Transitioning failed: {node} is {} [{}]; see its log for the reason",
                state.label, state.id
            ));
        }
        if success { Ok(()) } else { Err(Failed.into()) }
    }
}
