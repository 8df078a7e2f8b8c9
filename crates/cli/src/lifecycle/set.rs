//! `pteros lifecycle set`.

use super::known::{ask, managed_node, transitions};
use crate::outcome::Failed;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::values::positive_seconds;
use anyhow::{Result, bail};
use clap::Args;
use pteros::interfaces::lifecycle_msgs::msg::Transition;
use pteros::interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeState_Request, GetState, GetState_Request,
};
use serde_json::json;
use std::time::Duration;

/// How long a question may take, as opposed to a transition.
const QUESTION: Duration = Duration::from_secs(5);

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
    /// Asks for the transition and waits for its end.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let node = managed_node(&session, &graph, &self.node_name, self.include_hidden_nodes)?;
        let question = self.timeout.unwrap_or(QUESTION).min(QUESTION);
        let possible: Vec<Transition> = transitions(&session, &node, false, question)?
            .into_iter()
            .map(|row| row.transition)
            .collect();
        let by_label = possible.iter().find(|t| t.label == self.transition);
        let found = by_label.or_else(|| {
            let mut all = possible.iter();
            all.find(|t| t.id.to_string() == self.transition)
        });
        let Some(transition) = found.cloned() else {
            let row = |t: &Transition| format!("\n- {} [{}]", t.label, t.id);
            let rows: String = possible.iter().map(row).collect();
            let rows = match rows.is_empty() {
                true => " none".into(),
                false => rows,
            };
            bail!(
                "Unknown transition requested, '{}'; available ones are:{rows}",
                self.transition
            );
        };
        let request = ChangeState_Request {
            transition: transition.clone(),
        };
        let patience = self.timeout.unwrap_or(Duration::MAX);
        let success =
            ask::<ChangeState>(&session, &node, "change_state", &request, patience)?.success;
        let console = shared.console;
        let state = ask::<GetState>(&session, &node, "get_state", &GetState_Request {}, question)?;
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
            console.remark(format!(
                "Transitioning failed: {node} is {} [{}]; its log says why",
                state.label, state.id
            ));
        }
        match success {
            true => Ok(()),
            false => Err(Failed.into()),
        }
    }
}
