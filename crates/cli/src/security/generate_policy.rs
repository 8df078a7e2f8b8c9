//! `pteros security generate_policy`.

use super::told;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::names::DdsTopic;
use pteros::{EndpointKind, NodeInfo};
use pteros_security::policy::{Policy, PolicyAction};
use std::path::PathBuf;

/// Arguments of `security generate_policy`.
#[derive(Debug, Args)]
pub struct GeneratePolicy {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Policy to write; what it says already is kept
    #[arg(value_name = "POLICY_FILE_PATH")]
    policy: PathBuf,
}

impl GeneratePolicy {
    /// Writes what every node of the graph does.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let mut policy = match self.policy.exists() {
            true => Policy::read(&self.policy)?,
            false => Policy::default(),
        };
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let mut nodes: Vec<NodeInfo> = graph.nodes().into_iter().collect();
        nodes.retain(|node| !node.name.starts_with('_'));
        nodes.sort_by_key(NodeInfo::fully_qualified_name);
        if nodes.is_empty() {
            bail!(
                "no nodes in domain {}: start those that the policy is for",
                session.context.domain_id()
            );
        }
        for node in &nodes {
            let mut rules: Vec<(PolicyAction, String)> = graph
                .endpoints_of(node)
                .into_iter()
                .filter_map(|(topic, endpoint)| rule(topic, endpoint.kind))
                .collect();
            rules.sort_by(|a, b| (a.0.as_str(), &a.1).cmp(&(b.0.as_str(), &b.1)));
            let enclave = node.enclave.as_deref().unwrap_or("/");
            for (action, name) in rules {
                let name = shortened(&name, node);
                policy.allow(enclave, &node.namespace, &node.name, action, &name);
            }
        }
        std::fs::write(&self.policy, policy.to_xml())
            .with_context(|| format!("writing {}", self.policy.display()))?;
        told(shared, "policy", &self.policy)
    }
}

/// What an endpoint is for. Those of an action count once, as its feedback.
fn rule(topic: DdsTopic, kind: EndpointKind) -> Option<(PolicyAction, String)> {
    let publishes = kind == EndpointKind::Publisher;
    match topic {
        DdsTopic::Topic(name) => match name.split_once("/_action/") {
            Some((action, "feedback")) if publishes => {
                Some((PolicyAction::Execute, action.to_string()))
            }
            Some((action, "feedback")) => Some((PolicyAction::Call, action.to_string())),
            Some(_) => None,
            None if publishes => Some((PolicyAction::Publish, name)),
            None => Some((PolicyAction::Subscribe, name)),
        },
        DdsTopic::ServiceRequest(name) if !name.contains("/_action/") => Some(match publishes {
            true => (PolicyAction::Request, name),
            false => (PolicyAction::Reply, name),
        }),
        DdsTopic::ServiceRequest(_) | DdsTopic::ServiceReply(_) | DdsTopic::Foreign(_) => None,
    }
}

/// As SROS 2 writes it: private to the node, relative to its namespace, or absolute.
fn shortened(name: &str, node: &NodeInfo) -> String {
    let namespace = node.namespace.trim_end_matches('/');
    let private = format!("{}/", node.fully_qualified_name());
    if let Some(rest) = name.strip_prefix(&private) {
        return format!("~/{rest}");
    }
    let within = name.strip_prefix(&format!("{namespace}/"));
    match within {
        Some(rest) if !namespace.is_empty() || !rest.contains('/') => rest.into(),
        _ => name.into(),
    }
}
