//! `pteros store list`.

use super::folder_flags::{StoreFolderFlags, store_file_name};
use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;
use pteros::store::{StoreListing, StoredSample, list};
use serde_json::{Value, json};

/// Arguments of `store list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    folder: StoreFolderFlags,
}

impl List {
    /// Prints one line per store, an error for each that cannot be read. Fails if there
    /// was one.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let stores = list(&self.folder.path()?)?;
        if cli.console.json {
            let all: Result<Vec<Value>> = stores.iter().map(entry).collect();
            cli.console.json(&json!(all?))?;
            return all_are_readable(&stores);
        }
        for store in &stores {
            let text = match &store.contents {
                Ok(contents) => format!(
                    "{}: {} [{}], {} samples, {} bytes",
                    contents.name,
                    contents.topic,
                    contents.type_name,
                    contents.samples.len(),
                    bytes(&contents.samples)
                ),
                Err(error) => format!("{}: {error}", store_file_name(&store.path)?),
            };
            cli.console.row(text)?;
        }
        all_are_readable(&stores)
    }
}

fn all_are_readable(stores: &[StoreListing]) -> Result<()> {
    let unreadable = stores.iter().filter(|store| store.contents.is_err());
    match unreadable.count() {
        0 => Ok(()),
        count => bail!(
            "{count} of {} stores cannot be read; remove one with `pteros store clear`",
            stores.len()
        ),
    }
}

fn entry(store: &StoreListing) -> Result<Value> {
    let mut value = json!({
        "file": store.path.display().to_string(),
        "file_bytes": store.file_bytes,
    });
    match &store.contents {
        Ok(contents) => {
            value["name"] = json!(contents.name);
            value["topic"] = json!(contents.topic);
            value["type"] = json!(contents.type_name);
            value["samples"] = json!(contents.samples.len());
            value["bytes"] = json!(bytes(&contents.samples));
        }
        Err(error) => value["error"] = json!(error.to_string()),
    }
    Ok(value)
}

fn bytes(samples: &[StoredSample]) -> usize {
    samples.iter().map(|sample| sample.payload.len()).sum()
}
