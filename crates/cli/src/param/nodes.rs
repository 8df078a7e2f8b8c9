//! The nodes that a verb of `param` is about, asked all at the same time.

use crate::node::node_names;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::suggest::did_you_mean;
use crate::values::not_negative_seconds;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use pteros::names::absolute_namespace;
use pteros::parameter::{ParameterClient, ParameterClientError};
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
    /// Wait so long for the node to be there
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = not_negative_seconds)]
    timeout: Duration,
}

/// How long a node may take to offer its services and to answer, as in ros2.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Nodes asked at once.
const ASKED_MAX: usize = 32;

/// The nodes found.
pub struct Nodes {
    session: Session,
    /// Full names, sorted.
    pub names: Vec<String>,
    /// Whether the user may have meant several: then each answer says whose it is.
    pub several: bool,
}

/// What one node said.
pub struct Said<T> {
    /// Its full name.
    pub node: String,
    /// What it said, or why nothing.
    pub answer: Result<T, ParameterClientError>,
}

impl NodeFlags {
    /// The node of that name; or, where `*` and `**` stand for parts of names, all
    /// nodes that match; or all.
    pub fn find(&self, shared: &Shared, wanted: Option<&str>) -> Result<Nodes> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let known = || {
            let mut names = node_names(&graph, self.include_hidden_nodes);
            names.dedup();
            names
        };
        let Some(wanted) = wanted else {
            let names = known();
            return Ok(Nodes {
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
            bail!(
                "node not found: '{wanted}' in domain {}{} See all of them with: pteros node list",
                session.context.domain_id(),
                did_you_mean(&wanted, known().iter().map(String::as_str))
            );
        }
        Ok(Nodes {
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
    fits(&parts(pattern), &parts(name))
}

fn fits(pattern: &[String], parts: &[String]) -> bool {
    match (pattern, parts) {
        ([], parts) => parts.is_empty(),
        ([any, rest @ ..], parts) if any == "**" => {
            (0..=parts.len()).any(|taken| fits(rest, &parts[taken..]))
        }
        ([wanted, rest @ ..], [part, others @ ..]) => {
            (wanted == "*" || wanted == part) && fits(rest, others)
        }
        (_, []) => false,
    }
}

impl Nodes {
    /// Asks every node, many at once, so that one that does not answer holds up
    /// none. In the order of names.
    pub fn ask<T: Send>(
        &self,
        question: impl Fn(&ParameterClient, Duration) -> Result<T, ParameterClientError> + Sync,
    ) -> Vec<Said<T>> {
        let (own, names) = (&self.session.node, &self.names);
        let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let until = Instant::now() + ANSWER_MAX;
        std::thread::scope(|scope| {
            for _ in 0..names.len().min(ASKED_MAX) {
                scope.spawn(|| {
                    while let Some(node) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let client = ParameterClient::new(own, node);
                        let left = until.saturating_duration_since(Instant::now());
                        let answer = question(&client, left);
                        let node = node.clone();
                        let mut answers = answers.lock().unwrap_or_else(|held| held.into_inner());
                        answers.push(Said { node, answer });
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

    /// Whether all went well; with one node its own error is the verb's.
    pub fn verdict(&self, shared: &Shared, failures: Vec<(String, String)>) -> Result<()> {
        match failures.as_slice() {
            [] => Ok(()),
            [(_, only)] if !self.several => Err(anyhow!("{only}")),
            failures => {
                for (node, error) in failures {
                    shared.console.remark(format!("{node}: {error}"));
                }
                bail!("{} of {} nodes failed", failures.len(), self.names.len())
            }
        }
    }
}

/// A node's name, and what is of that node.
type Of<T> = (String, T);

/// The answers, and the nodes without one.
pub fn parted<T>(said: Vec<Said<T>>) -> (Vec<Of<T>>, Vec<Of<String>>) {
    let (mut answers, mut failures) = (Vec::new(), Vec::new());
    for Said { node, answer } in said {
        match answer {
            Ok(answer) => answers.push((node, answer)),
            Err(error) => failures.push((node, error.to_string())),
        }
    }
    (answers, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_name_several_nodes() {
        assert!(matches("/robot/*", "/robot/arm"));
        assert!(!matches("/robot/*", "/robot/arm/joint"));
        assert!(matches("/**", "/robot/arm"));
        assert!(matches("/**/arm", "/arm"));
        assert!(!matches("/arm", "/arms"));
    }
}
