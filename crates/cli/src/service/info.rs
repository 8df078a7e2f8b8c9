//! `pteros service info`.

use super::lookup::find_service;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use crate::topic::info::{gid_text, node_path, qos_json, qos_lines};
use anyhow::Result;
use clap::Args;
use pteros::Graph;
use pteros::graph::{EndpointInfo, with_writers};
use pteros::log::escape_line;
use pteros::msg::library::InterfaceLibrary;
use serde_json::{Value, json};

/// Arguments of `service info`.
#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show node, type, type hash, GIDs and QoS of every client and server
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Name of the service (e.g. /add_two_ints)
    service_name: String,
}

/// A client or a server: a reader and a writer of the service's two DDS topics.
struct ServiceEndpoint {
    reader: EndpointInfo,
    /// The writer of the same node. It is missing until discovery has it.
    writer: Option<EndpointInfo>,
}

/// The side of a service that an endpoint is on.
#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Info {
    /// Prints the type, and how many clients and servers there are.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let session = Session::open(cli, None)?;
        let name = session.service(&self.service_name)?;
        let graph = session.discover(&self.discovery);
        let service = find_service(&session, &graph, &name)?;
        let clients = endpoints(&graph, &name, Side::Client);
        let servers = endpoints(&graph, &name, Side::Server);
        let mismatches = mismatches(&graph, &name);
        if cli.console.json {
            let rows = |side: Side, all: &[ServiceEndpoint]| -> Value {
                all.iter().map(|one| one.json(side, &library)).collect()
            };
            return Ok(cli.console.json(&json!({
                "name": service.name,
                "types": service.types,
                "clients": rows(Side::Client, &clients),
                "servers": rows(Side::Server, &servers),
                "mismatches": mismatches,
            }))?);
        }
        let types = match service.types.as_slice() {
            [only] => only.clone(),
            several => format!("{several:?}").replace('"', "'"),
        };
        let mut text = format!("Type: {}\n", escape_line(&types));
        for (noun, side, all) in [
            ("Clients", Side::Client, &clients),
            ("Services", Side::Server, &servers),
        ] {
            text += &format!("{noun} count: {}\n", all.len());
            for one in all.iter().filter(|_| self.verbose) {
                text += &one.text(side, &library);
                text += "\n\n";
            }
        }
        cli.console.text(&text)?;
        for mismatch in mismatches {
            cli.console.note(mismatch);
        }
        Ok(())
    }
}

/// Which clients and servers may not understand each other, and why; each pair once.
fn mismatches(graph: &Graph, service: &str) -> Vec<String> {
    let pairs = graph.match_reports(&format!("rq{service}Request"));
    let texts = pairs.iter().filter_map(|pair| {
        let (client, server) = (node_path(&pair.publisher), node_path(&pair.subscription));
        let reason = pair.service_mismatch()?;
        let text = format!("client {client} and server {server}: {reason}");
        Some(escape_line(&text).into_owned())
    });
    texts.collect()
}

/// The clients or servers of a service. A client reads replies and a server reads
/// requests, so each reader is one.
fn endpoints(graph: &Graph, service: &str, side: Side) -> Vec<ServiceEndpoint> {
    let (requests, replies) = (format!("rq{service}Request"), format!("rr{service}Reply"));
    let (read, written) = match side {
        Side::Client => (replies, requests),
        Side::Server => (requests, replies),
    };
    let owner = |one: &EndpointInfo| {
        let node = (one.node_name.clone(), one.node_namespace.clone());
        (node, one.gid.prefix)
    };
    let pairs = with_writers(
        graph.subscriptions(&read),
        graph.publishers(&written),
        owner,
    );
    let pairs = pairs.into_iter();
    pairs
        .map(|(reader, writer)| ServiceEndpoint { reader, writer })
        .collect()
}

impl Side {
    /// The roles of the endpoint of the requests and of that of the responses.
    fn roles(self) -> [&'static str; 2] {
        match self {
            Self::Client => ["Request Writer", "Response Reader"],
            Self::Server => ["Request Reader", "Response Writer"],
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Client => "CLIENT",
            Self::Server => "SERVER",
        }
    }
}

impl ServiceEndpoint {
    fn service_type(&self) -> &str {
        let name = self.reader.topic_type.as_str();
        let suffixes = ["_Request", "_Response"];
        let short = suffixes.iter().find_map(|end| name.strip_suffix(end));
        short.unwrap_or(name)
    }

    /// The DDS endpoints with their roles, that of the requests first as in rclpy.
    fn parts(&self, side: Side) -> Vec<(&'static str, &EndpointInfo)> {
        let mut all = [Some(&self.reader), self.writer.as_ref()];
        if let Side::Client = side {
            all.reverse();
        }
        let roles = side.roles().into_iter().zip(all);
        roles
            .filter_map(|(role, endpoint)| Some((role, endpoint?)))
            .collect()
    }

    /// The hash of the service type. A process that announces that of the request or the
    /// response has it from the definition.
    fn type_hash(&self, library: &InterfaceLibrary) -> Option<String> {
        let announced = self.reader.type_hash?;
        let of_part = library.type_hash(&self.reader.topic_type).ok();
        let hash = if of_part == Some(announced) {
            library.type_hash(self.service_type()).unwrap_or(announced)
        } else {
            announced
        };
        Some(hash.to_string())
    }

    /// In rclpy's format.
    fn text(&self, side: Side, library: &InterfaceLibrary) -> String {
        let reader = &self.reader;
        let node = reader.node_name.as_deref();
        let namespace = reader.node_namespace.as_deref();
        let parts = self.parts(side);
        let mut lines = vec![
            format!("Node name: {}", node.unwrap_or("_NODE_NAME_UNKNOWN_")),
            format!(
                "Node namespace: {}",
                namespace.unwrap_or("_NODE_NAMESPACE_UNKNOWN_")
            ),
            format!("Service type: {}", self.service_type()),
            format!(
                "Service type hash: {}",
                self.type_hash(library).unwrap_or("INVALID".into())
            ),
            format!("Endpoint type: {}", side.word()),
            format!("Endpoint count: {}", parts.len()),
            "GIDs:".into(),
        ];
        for (role, endpoint) in &parts {
            lines.push(format!(" - {role} : {}", gid_text(endpoint)));
        }
        lines.push("QoS profiles:".into());
        for (role, endpoint) in &parts {
            lines.push(format!(" - {role} :"));
            let policies = qos_lines(endpoint);
            lines.extend(policies.iter().map(|line| format!("      {line}")));
        }
        let lines: Vec<_> = lines.iter().map(|line| escape_line(line)).collect();
        lines.join("\n")
    }

    fn json(&self, side: Side, library: &InterfaceLibrary) -> Value {
        let row = |(role, endpoint): (&str, &EndpointInfo)| json!({ "role": role, "gid": gid_text(endpoint), "qos": qos_json(endpoint) });
        json!({
            "node_name": self.reader.node_name,
            "node_namespace": self.reader.node_namespace,
            "service_type": self.service_type(),
            "type_hash": self.type_hash(library),
            "endpoints": self.parts(side).into_iter().map(row).collect::<Vec<_>>(),
        })
    }
}
