//! Packages of the crates that are meant for the registry, as `cargo publish` would
//! upload them: all members of the workspace without `publish = false`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::run_tool;

/// Checks what the registry shows of each crate, and packages all of them. They are
/// not built: their dependencies on each other are not in the registry yet.
pub(super) fn package(root: &Path) -> Result<String> {
    let metadata = run_tool(
        Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(root),
    )?;
    let metadata: Value = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut names = Vec::new();
    for package in packages
        .iter()
        .filter(|package| package["publish"].is_null())
    {
        let name = package["name"].as_str().context("a crate has no name")?;
        let lacking = lacking(package);
        ensure!(
            lacking.is_empty(),
            "crate {name} lacks {}; add it, or `publish = false`",
            lacking.join(", ")
        );
        names.push(name);
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["package", "--no-verify", "--allow-dirty", "--quiet"]);
    for name in &names {
        cargo.args(["--package", name]);
    }
    run_tool(cargo.current_dir(root))?;
    Ok(format!(
        "{} crates packaged: {}",
        names.len(),
        names.join(", ")
    ))
}

/// The fields that the registry shows and a crate has not.
fn lacking(package: &Value) -> Vec<&'static str> {
    let fields = [
        "description",
        "keywords",
        "categories",
        "readme",
        "license",
        "repository",
    ];
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    fields
        .into_iter()
        .filter(|field| is_empty(&package[*field]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crate_without_keywords_or_readme_is_named_with_both() {
        let package = json!({
            "description": "text", "keywords": [], "categories": ["os"], "readme": null,
            "license": "Apache-2.0", "repository": "https://example.org",
        });
        assert_eq!(lacking(&package), ["keywords", "readme"]);
    }
}
