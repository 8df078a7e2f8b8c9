//! `pteros lifecycle get`.

use super::lookup::{find_managed_node, interrupted, managed_nodes};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::{DiscoveryFlags, Session};
use crate::value_parsers::positive_seconds;
use anyhow::Result;
use clap::Args;
use pteros::interfaces::lifecycle_msgs::msg::State;
use pteros::interfaces::lifecycle_msgs::srv::{GetState, GetStateRequest, GetStateResponse};
use pteros::log::escape_line;
use pteros::{
    Client,
    service::{CallError, ResponseFuture},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Period between two checks for Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// Arguments of `lifecycle get`.
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Consider hidden nodes as well
    #[arg(long)]
    include_hidden_nodes: bool,
    /// Timeout for the response of a node
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    timeout: Duration,
    /// Full name of the node (e.g. /talker) [default: all managed nodes]
    node_name: Option<String>,
}

/// A request for the state of a node.
struct StateQuery {
    node: String,
    client: Client<GetState>,
    call: Option<ResponseFuture<GetStateResponse>>,
    response: Option<Result<State, CallError>>,
}

impl Get {
    /// Prints the state of one node, or of all nodes, which are queried
    /// concurrently.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let nodes = match &self.node_name {
            Some(name) => vec![find_managed_node(
                &session,
                &graph,
                name,
                self.include_hidden_nodes,
            )?],
            None => managed_nodes(&graph, self.include_hidden_nodes),
        };
        let states = query_all(&session, nodes, self.timeout)?;
        let console = cli.console;
        let mut rows = Vec::new();
        let mut failed = false;
        for query in states {
            let StateQuery {
                node,
                client,
                response,
                ..
            } = query;
            let response = response.unwrap_or_else(|| Err(client.timed_out(self.timeout)));
            let (one, json) = (self.node_name.is_some(), console.json);
            match response {
                Err(error) if one => return Err(interrupted(error)),
                Err(error) if json => {
                    rows.push(json!({ "name": node, "error": error.to_string() }))
                }
                Err(error) => {
                    failed = true;
                    console.note(format!(
                        "Exception while calling service of node '{node}': {error}"
                    ));
                }
                Ok(State { id, label }) if json => {
                    rows.push(json!({ "name": node, "state": { "id": id, "label": label } }));
                }
                Ok(State { id, label }) if one => {
                    console.line(escape_line(&format!("{label} [{id}]")))?
                }
                Ok(State { id, label }) => {
                    console.line(escape_line(&format!("{node}: {label} [{id}]")))?
                }
            }
        }
        if console.json {
            let response = match self.node_name {
                Some(_) => rows.pop().unwrap_or_default(),
                None => Value::from(rows),
            };
            console.json(&response)?;
        }
        if failed { Err(Failed.into()) } else { Ok(()) }
    }
}

fn query_all(session: &Session, nodes: Vec<String>, timeout: Duration) -> Result<Vec<StateQuery>> {
    let mut queries = Vec::new();
    for node in nodes {
        let client = session
            .node
            .create_client::<GetState>(format!("{node}/get_state"))?;
        queries.push(StateQuery {
            node,
            client,
            call: None,
            response: None,
        });
    }
    let end = Instant::now() + timeout;
    while queries.iter().any(|one| one.response.is_none()) && Instant::now() < end {
        session.check_interrupted()?;
        for one in &mut queries {
            if one.response.is_some() {
                continue;
            }
            match &mut one.call {
                None if one.client.service_is_ready() => {
                    one.call = Some(one.client.call_async(&GetStateRequest {})?);
                }
                None => {}
                Some(call) => {
                    let state =
                        |sample: pteros::Sample<GetStateResponse>| sample.current_state.clone();
                    one.response = call.take().map(|response| response.map(state));
                }
            }
        }
        session.spin_once(POLL_PERIOD.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(queries)
}
