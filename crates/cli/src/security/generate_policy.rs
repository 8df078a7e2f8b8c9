//! `pteros security generate_policy`.

use super::keystore_flags::print_created;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::graph::{EndpointKind, NodeInfo};
use pteros::names::DdsTopic;
use pteros_security::policy::{Policy, PolicyAction};
use std::path::PathBuf;

/// Arguments of `security generate_policy`.
#[derive(Debug, Args)]
pub struct GeneratePolicy {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Policy file to write; existing rules are kept
    #[arg(value_name = "POLICY_FILE_PATH")]
    policy: PathBuf,
}

impl GeneratePolicy {
    /// Writes the endpoints of every node as policy rules.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut policy = if self.policy.exists() {
            Policy::read(&self.policy)?
        } else {
            Policy::default()
        };
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let mut nodes: Vec<NodeInfo> = graph.nodes().into_iter().collect();
        nodes.retain(|node| !node.name.starts_with('_'));
        nodes.sort_by_key(NodeInfo::fully_qualified_name);
        if nodes.is_empty() {
            bail!(
                "no nodes in domain {}: start the nodes that the policy is for",
                session.context.domain_id()
            );
        }
        for node in &nodes {
            let mut rules: Vec<(PolicyAction, String)> = graph
                .endpoints_of_node(node)
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
        print_created(cli, "policy", &self.policy)
    }
}

/// The policy rule of an endpoint. The endpoints of an action give one rule, from
/// its feedback topic.
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
        DdsTopic::ServiceRequest(name) if !name.contains("/_action/") => Some(if publishes {
            (PolicyAction::Request, name)
        } else {
            (PolicyAction::Reply, name)
        }),
        DdsTopic::ServiceRequest(_) | DdsTopic::ServiceReply(_) | DdsTopic::NonRos(_) => None,
    }
}

/// The name as SROS 2 writes it: private to the node, relative to its namespace, or
/// absolute.
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
