//! `pteros interface show --from NODE`: a type as a node that uses it tells it.

use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::told;
use anyhow::Result;
use pteros::ToldType;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros::msg::hash::rihs01;
use serde_json::json;

/// Asks the node, and prints the texts that it has.
///
/// # Errors
/// See [`told::by_node`].
pub fn show(shared: &Shared, node: &str, type_name: &str) -> Result<()> {
    let session = Session::open(shared, None)?;
    let graph = session.discover(&DiscoveryFlags::default());
    let told = told::by_node(&session, &graph, node, type_name)?;
    let hash = rihs01(&told.description);
    if shared.console.json {
        let sources = told.sources.iter().map(|source| {
            json!({
                "name": source.type_name,
                "encoding": source.encoding,
                "definition": source.raw_file_contents,
            })
        });
        return Ok(shared.console.json(&json!({
            "name": told.description.type_description.type_name,
            "type_hash": hash.to_string(),
            "from": node,
            "sources": sources.collect::<Vec<_>>(),
        }))?);
    }
    let text = format!("{}# type hash: {hash}\n", text(&told)?);
    Ok(shared.console.text(&text)?)
}

/// The type first, then what it refers to, each below its name.
fn text(told: &ToldType) -> Result<String> {
    let own = &told.description.type_description.type_name;
    let has_text = |name: &str| {
        let found = told.sources.iter().find(|source| source.type_name == name);
        found.filter(|source| !source.raw_file_contents.is_empty())
    };
    let mut text = match has_text(own) {
        Some(source) => source.raw_file_contents.clone(),
        // What stands in no file of its own, as a request of a service.
        None => {
            let ty = DynamicType::new(&told.description)?;
            let fields = DynamicMessage::new(&ty).to_yaml(&YamlOptions::default());
            format!("# no text is told; its fields:\n{fields}")
        }
    };
    for ty in &told.description.referenced {
        if let Some(source) = has_text(&ty.type_name) {
            text += &format!("\n# {}\n{}", ty.type_name, source.raw_file_contents);
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
