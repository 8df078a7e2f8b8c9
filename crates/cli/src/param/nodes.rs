//! The target nodes of a `param` verb. All of them are called concurrently.

use crate::cli_context::CliContext;
use crate::node::node_names;
use crate::session::{DiscoveryFlags, Session};
use crate::suggest::did_you_mean;
use crate::value_parsers::non_negative_seconds;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use pteros::names::absolute_namespace;
use pteros::parameter::ParameterClient;
use pteros::service::CallError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Flags of every verb that names a node.
#[derive(Clone, Debug, Args)]
pub struct NodeFlags {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Consider hidden nodes as well
    #[arg(long)]
    include_hidden_nodes: bool,
    /// How long to wait for the node to appear
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = non_negative_seconds)]
    timeout: Duration,
}

/// How long a node may take until its services are there and respond, as in ros2.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest number of concurrent calls.
const CONCURRENT_CALLS_MAX: usize = 32;

pub struct TargetNodes {
    session: Session,
    /// Full names, sorted.
    pub names: Vec<String>,
    /// Whether the name may match several nodes. Each line of the output then names
    /// its node.
    pub several: bool,
}

pub struct NodeResponse<T> {
    /// Its full name.
    pub node: String,
    /// The response, or the error.
    pub response: Result<T, CallError>,
}

impl NodeFlags {
    /// The node of that name, all nodes that match a pattern with `*` and `**`, or
    /// all nodes.
    pub fn find(&self, cli: &CliContext, wanted: Option<&str>) -> Result<TargetNodes> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let known = || {
            let mut names = node_names(&graph, self.include_hidden_nodes);
            names.dedup();
            names
        };
        let Some(wanted) = wanted else {
            let names = known();
            return Ok(TargetNodes {
                session,
                names,
                several: true,
            });
        };
        let wanted = absolute_namespace(wanted);
        let several = wanted.contains('*');
        let fitting = || {
            let mut names = known();
            names.retain(|name| matches(&wanted, name));
            names
        };
        graph.wait_until(self.timeout, || !fitting().is_empty());
        let names = fitting();
        if names.is_empty() {
            session.check_interrupted()?;
            bail!(
                "node not found: '{wanted}' in domain {}{} See all of them with: pteros node list",
                session.context.domain_id(),
                did_you_mean(&wanted, known().iter().map(String::as_str))
            );
        }
        Ok(TargetNodes {
            session,
            names,
            several,
        })
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        let text = text.trim_matches('/');
        text.split('/').map(str::to_owned).collect()
    };
    parts_match(&parts(pattern), &parts(name))
}

fn parts_match(pattern: &[String], parts: &[String]) -> bool {
    match (pattern, parts) {
        ([], parts) => parts.is_empty(),
        ([any, rest @ ..], parts) if any == "**" => {
            (0..=parts.len()).any(|taken| parts_match(rest, &parts[taken..]))
        }
        ([wanted, rest @ ..], [part, others @ ..]) => {
            (wanted == "*" || wanted == part) && parts_match(rest, others)
        }
        (_, []) => false,
    }
}

impl TargetNodes {
    /// Calls every node concurrently, so that a slow one does not delay the others.
    /// Returns the responses in the order of names.
    pub fn call_all<T: Send>(
        &self,
        call: impl Fn(&ParameterClient, Duration) -> Result<T, CallError> + Sync,
    ) -> Vec<NodeResponse<T>> {
        let (own, names) = (&self.session.node, &self.names);
        let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let until = Instant::now() + RESPONSE_TIMEOUT;
        std::thread::scope(|scope| {
            for _ in 0..names.len().min(CONCURRENT_CALLS_MAX) {
                scope.spawn(|| {
                    while let Some(node) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let client = ParameterClient::new(own, node);
                        let left = until.saturating_duration_since(Instant::now());
                        let response = call(&client, left);
                        let node = node.clone();
                        let mut answers = answers.lock().unwrap_or_else(|held| held.into_inner());
                        answers.push(NodeResponse { node, response });
                    }
                });
            }
        });
        let mut answers = answers
            .into_inner()
            .unwrap_or_else(|held| held.into_inner());
        answers.sort_by(|one, other| one.node.cmp(&other.node));
        answers
    }

    /// Reports failures. With a single node its error is the error of the verb.
    pub fn report_failures(&self, cli: &CliContext, failures: Vec<NodeFailure>) -> Result<()> {
        if !failures.is_empty() {
            self.session.check_interrupted()?;
        }
        match failures.as_slice() {
            [] => Ok(()),
            [only] if !self.several => Err(anyhow!("{}", only.error)),
            failures => {
                for NodeFailure { node, error } in failures {
                    cli.console.note(format!("{node}: {error}"));
                }
                bail!("{} of {} nodes failed", failures.len(), self.names.len())
            }
        }
    }
}

/// A value of one node.
#[derive(Debug)]
pub struct PerNode<T> {
    /// Name of the node.
    pub node: String,
    pub value: T,
}

/// The error of one node.
#[derive(Debug)]
pub struct NodeFailure {
    /// Name of the node.
    pub node: String,
    pub error: String,
}

/// Splits the responses into successes and failures.
pub fn split_responses<T>(responses: Vec<NodeResponse<T>>) -> (Vec<PerNode<T>>, Vec<NodeFailure>) {
    let (mut answers, mut failures) = (Vec::new(), Vec::new());
    for NodeResponse { node, response } in responses {
        match response {
            Ok(value) => answers.push(PerNode { node, value }),
            Err(error) => failures.push(NodeFailure {
                node,
                error: error.to_string(),
            }),
        }
    }
    (answers, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_several_nodes() {
        assert!(matches("/robot/*", "/robot/arm"));
        assert!(!matches("/robot/*", "/robot/arm/joint"));
        assert!(matches("/**", "/robot/arm"));
        assert!(matches("/**/arm", "/arm"));
        assert!(!matches("/arm", "/arms"));
    }
}
