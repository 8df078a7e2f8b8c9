//! `pteros doctor --report`: system information for a bug report.

use super::host::read_kernel_file;
use super::stacks;
use crate::node::list::node_names;
use crate::pkg::manifest::PackageManifest;
use crate::session::Session;
use crate::topic::lookup::shown_topics;
use pteros::config::{Config, VARIABLES};
use pteros::msg::package_manifest::toml_values;
use pteros::{Graph, graph::NodeInfo};
use pteros_container::ComponentIndex;
use pteros_net::interfaces;
use serde_json::{Map, Value, json};
use std::path::Path;

/// All sections as one JSON document; the installed packages only if asked.
pub fn facts(session: &Session, graph: &Graph, with_packages: bool) -> Value {
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
    let mut facts = json!({
        "platform": platform(),
        "pteros": { "version": env!("CARGO_PKG_VERSION"), "domain": session.context.domain_id() },
        "environment": environment(),
        "network": network(),
        "participants": participants(graph),
        "nodes": node_names(graph, false),
        "topics": topics,
        "services": services,
    });
    if let (true, Some(sections)) = (with_packages, facts.as_object_mut()) {
        sections.insert("packages".into(), packages());
    }
    facts
}

/// The installed packages with the versions of their manifests.
fn packages() -> Value {
    let packages = crate::launch::packages(&ComponentIndex::from_environment());
    let names = packages.names().into_iter();
    let rows = names.filter_map(|name| {
        let package = packages.find(&name).ok()?;
        let version = manifest_version(&package.share);
        Some(json!({ "name": name, "version": version }))
    });
    rows.collect()
}

/// The version in a package's `package.xml`, else in its `Cargo.toml`.
fn manifest_version(folder: &Path) -> Option<String> {
    if let Ok(manifest) = PackageManifest::read(&folder.join("package.xml")) {
        return manifest
            .values("version")
            .into_iter()
            .flatten()
            .next()
            .map(Into::into);
    }
    let text = read_kernel_file(folder.join("Cargo.toml"))?;
    toml_values(&text, "[package]", "version")
        .into_iter()
        .next()
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
