//! `pteros doctor --report`: system information for a bug report.

use super::host::read_kernel_file;
use super::stacks;
use crate::node::list::node_names;
use crate::session::Session;
use crate::topic::lookup::shown_topics;
use pteros::config::{Config, VARIABLES};
use pteros::{Graph, graph::NodeInfo};
use pteros_net::interfaces;
use serde_json::{Map, Value, json};

/// All sections as one JSON document.
pub fn facts(session: &Session, graph: &Graph) -> Value {
    let topics: Vec<Value> = shown_topics(session, graph, false)
        .into_iter()
        .map(|topic| {
            json!({
                "name": topic.name,
                "types": topic.types,
                "publishers": graph.publishers(&topic.name).len(),
                "subscriptions": graph.subscriptions(&topic.name).len(),
            })
        })
        .collect();
    let services: Vec<Value> = graph
        .services()
        .into_iter()
        .map(|service| json!({ "name": service.name, "types": service.types }))
        .collect();
    json!({
        "platform": platform(),
        "pteros": { "version": env!("CARGO_PKG_VERSION"), "domain": session.context.domain_id() },
        "environment": environment(),
        "network": network(),
        "participants": participants(graph),
        "nodes": node_names(graph, false),
        "topics": topics,
        "services": services,
    })
}

/// The same as text.
pub fn text(facts: &Value) -> String {
    let mut text = String::new();
    for (section, content) in facts.as_object().into_iter().flatten() {
        text += &format!("{}\n", section.to_uppercase());
        match content {
            Value::Object(fields) => {
                for (name, value) in fields {
                    text += &format!("  {name:<24} {}\n", word(value));
                }
            }
            Value::Array(rows) if rows.is_empty() => text += "  none\n",
            Value::Array(rows) => {
                for row in rows {
                    text += &format!("  {}\n", line(row));
                }
            }
            other => text += &format!("  {}\n", word(other)),
        }
        text.push('\n');
    }
    text
}

fn line(row: &Value) -> String {
    let Value::Object(fields) = row else {
        return word(row);
    };
    let field = |(name, value): (&String, &Value)| match name.as_str() {
        "name" => word(value),
        _ => format!("{name} {}", word(value)),
    };
    // Fields are sorted; the name comes first.
    let name = fields.get_key_value("name").map(field);
    let others = fields.iter().filter(|(name, _)| *name != "name").map(field);
    name.into_iter()
        .chain(others)
        .collect::<Vec<_>>()
        .join("  ")
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(word).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn platform() -> Value {
    let release = read_kernel_file("/etc/os-release").unwrap_or_default();
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned());
    let memory = read_kernel_file("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().next().unwrap_or_default();
    json!({
        "system": system,
        "kernel": read_kernel_file("/proc/sys/kernel/osrelease"),
        "real_time_kernel": read_kernel_file("/sys/kernel/realtime").as_deref() == Some("1"),
        "architecture": std::env::consts::ARCH,
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": memory.trim_start_matches("MemTotal:").trim(),
    })
}

/// The other participants with their DDS implementation and nodes.
fn participants(graph: &Graph) -> Value {
    let nodes = graph.nodes();
    let rows = graph.participants().into_iter().map(|one| {
        let own = nodes.iter().filter(|node| node.participant == one.guid);
        let own: Vec<String> = own.map(NodeInfo::fully_qualified_name).collect();
        json!({
            "name": stacks::stack_name(&one),
            "guid": one.guid.to_string(),
            "nodes": own,
        })
    });
    Value::Array(rows.collect())
}

fn environment() -> Value {
    let set = VARIABLES
        .iter()
        .filter(|name| !["HOME", "XDG_STATE_HOME"].contains(name))
        .filter_map(|name| {
            let value = std::env::var_os(name)?;
            let value = value.to_string_lossy().into_owned();
            Some(((*name).to_owned(), Value::String(value)))
        });
    let mut all: Map<String, Value> = set.collect();
    if let Ok(config) = Config::from_environment() {
        let range = config.discovery_range.to_string();
        all.insert("effective discovery range".into(), range.into());
    }
    Value::Object(all)
}

fn network() -> Value {
    let list = interfaces().unwrap_or_default();
    let rows = list.iter().map(|interface| {
        json!({
            "name": interface.name,
            "address": format!("{}/{}", interface.address, interface.prefix_length),
            "mtu": interface.mtu,
            "multicast": interface.multicast,
            "loopback": interface.loopback,
        })
    });
    Value::Array(rows.collect())
}
