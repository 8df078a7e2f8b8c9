//! `pteros interface show --from NODE`: a type definition, requested from a node.

use crate::cli_context::CliContext;
use crate::remote_types;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros::msg::hash::rihs01;
use pteros::type_description::RemoteTypeDescription;
use serde_json::json;

/// Requests the type from the node and prints its definitions.
///
/// # Errors
/// See [`remote_types::from_node`].
pub fn show(cli: &CliContext, node: &str, type_name: &str, with_hash: bool) -> Result<()> {
    let session = Session::open(cli, None)?;
    let graph = session.discover(&DiscoveryFlags::default());
    let remote = remote_types::from_node(&session, &graph, node, type_name)?;
    let hash = rihs01(&remote.description);
    if cli.console.json {
        let sources = remote.sources.iter().map(|source| {
            json!({
                "name": source.type_name,
                "encoding": source.encoding,
                "definition": source.raw_file_contents,
            })
        });
        return Ok(cli.console.json(&json!({
            "name": remote.description.type_description.type_name,
            "type_hash": hash.to_string(),
            "from": node,
            "sources": sources.collect::<Vec<_>>(),
        }))?);
    }
    let mut text = text(&remote)?;
    if with_hash {
        text += &format!("# type hash: {hash}\n");
    }
    Ok(cli.console.text(&text)?)
}

/// The definition of the type, then those of the nested types with their names.
fn text(remote: &RemoteTypeDescription) -> Result<String> {
    let type_name = &remote.description.type_description.type_name;
    let has_text = |name: &str| {
        let found = remote
            .sources
            .iter()
            .find(|source| source.type_name == name);
        found.filter(|source| !source.raw_file_contents.is_empty())
    };
    let mut text = match has_text(type_name) {
        Some(source) => source.raw_file_contents.clone(),
        // Some types have no file of their own, as the request of a service.
        None => {
            let ty = DynamicType::new(&remote.description)?;
            let fields = DynamicMessage::new(&ty).to_yaml(&YamlOptions::default());
            format!("# no definition text available; its fields:\n{fields}")
        }
    };
    for ty in &remote.description.referenced {
        if let Some(source) = has_text(&ty.type_name) {
            text += &format!("\n# {}\n{}", ty.type_name, source.raw_file_contents);
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
