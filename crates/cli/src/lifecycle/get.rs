//! `pteros lifecycle get`.

use super::known::{interrupted, managed_node, managed_nodes};
use crate::outcome::{Failed, Interrupted};
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::values::positive_seconds;
use anyhow::Result;
use clap::Args;
use pteros::interfaces::lifecycle_msgs::msg::State;
use pteros::interfaces::lifecycle_msgs::srv::{GetState, GetState_Request, GetState_Response};
use pteros::{Call, CallError, Client};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long one wait lasts before Ctrl-C is looked at again.
const SLICE: Duration = Duration::from_millis(50);

/// Arguments of `lifecycle get`.
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Consider hidden nodes as well
    #[arg(long)]
    include_hidden_nodes: bool,
    /// Give up on nodes that do not answer for longer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    timeout: Duration,
    /// Full name of the node (e.g. /talker) [default: all managed nodes]
    node_name: Option<String>,
}

/// A node that is asked for its state.
struct Asked {
    node: String,
    client: Client<GetState>,
    call: Option<Call<GetState_Response>>,
    answer: Option<Result<State, CallError>>,
}

impl Get {
    /// Prints the state of one node, or of all, which are asked at once.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let nodes = match &self.node_name {
            Some(name) => vec![managed_node(
                &session,
                &graph,
                name,
                self.include_hidden_nodes,
            )?],
            None => managed_nodes(&graph, self.include_hidden_nodes),
        };
        let states = ask_all(&session, nodes, self.timeout)?;
        let console = shared.console;
        let mut rows = Vec::new();
        let mut failed = false;
        for Asked { node, answer, .. } in states {
            let answer = answer.unwrap_or_else(|| {
                Err(CallError::TimedOut {
                    service: format!("{node}/get_state"),
                    waited_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
                })
            });
            let (one, json) = (self.node_name.is_some(), console.json);
            match answer {
                Err(error) if one => return Err(interrupted(error)),
                Err(error) if json => {
                    rows.push(json!({ "name": node, "error": error.to_string() }))
                }
                Err(error) => {
                    failed = true;
                    console.remark(format!(
                        "Exception while calling service of node '{node}': {error}"
                    ));
                }
                Ok(State { id, label }) if json => {
                    rows.push(json!({ "name": node, "state": { "id": id, "label": label } }));
                }
                Ok(State { id, label }) if one => console.line(format!("{label} [{id}]"))?,
                Ok(State { id, label }) => console.line(format!("{node}: {label} [{id}]"))?,
            }
        }
        if console.json {
            let answer = match self.node_name {
                Some(_) => rows.pop().unwrap_or_default(),
                None => Value::from(rows),
            };
            console.json(&answer)?;
        }
        match failed {
            true => Err(Failed.into()),
            false => Ok(()),
        }
    }
}

fn ask_all(session: &Session, nodes: Vec<String>, timeout: Duration) -> Result<Vec<Asked>> {
    let mut asked = Vec::new();
    for node in nodes {
        let client = session
            .node
            .create_client::<GetState>(&format!("{node}/get_state"))?;
        asked.push(Asked {
            node,
            client,
            call: None,
            answer: None,
        });
    }
    let end = Instant::now() + timeout;
    while asked.iter().any(|one| one.answer.is_none()) && Instant::now() < end {
        if session.context.is_shut_down() {
            return Err(Interrupted.into());
        }
        for one in &mut asked {
            if one.answer.is_some() {
                continue;
            }
            match &mut one.call {
                None if one.client.is_ready() => {
                    one.call = Some(one.client.call_async(&GetState_Request {})?);
                }
                None => {}
                Some(call) => {
                    let state =
                        |sample: pteros::Sample<GetState_Response>| sample.current_state.clone();
                    one.answer = call.take().map(|answer| answer.map(state));
                }
            }
        }
        session.spin_once(SLICE.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(asked)
}
