//! `pteros store show`.

use super::folder_flags::StoreFolderFlags;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::log::escape_row;
use pteros::store::{StoredSample, read};
use serde_json::{Value, json};

/// Arguments of `store show`.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    folder: StoreFolderFlags,
    /// Name of the store as `store list` shows it, or path of its file
    name: String,
}

impl Show {
    /// Prints the properties of the store, then its samples, oldest first.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let path = self.folder.store(&self.name)?;
        let contents = read(&path)?;
        if cli.console.json {
            return Ok(cli.console.json(&json!({
                "name": contents.name,
                "file": path.display().to_string(),
                "topic": contents.topic,
                "type": contents.type_name,
                "samples": contents.samples.iter().map(sample_json).collect::<Vec<_>>(),
            }))?);
        }
        let mut text = format!(
            "Name: {}\nFile: {}\nTopic: {}\nType: {}\nSamples: {}\n",
            escape_row(&contents.name),
            path.display(),
            escape_row(&contents.topic),
            escape_row(&contents.type_name),
            contents.samples.len()
        );
        for sample in &contents.samples {
            text += &format!("  {}\n", sample_text(sample));
        }
        Ok(cli.console.text(&text)?)
    }
}

fn sample_text(sample: &StoredSample) -> String {
    let stamp = match sample.source_nanos {
        Some(nanos) => format!(
            "{}.{:09}",
            nanos.div_euclid(1_000_000_000),
            nanos.rem_euclid(1_000_000_000)
        ),
        None => "without time".into(),
    };
    let what = if sample.disposed {
        "disposed"
    } else {
        "published"
    };
    let writer = hexadecimal(&sample.origin.writer);
    let mut text = format!(
        "{what} at {stamp}, {} bytes, number {} of {writer}",
        sample.payload.len(),
        sample.origin.sequence
    );
    if let Some(key) = &sample.key_hash {
        text += &format!(", instance {}", hexadecimal(key));
    }
    text
}

fn sample_json(sample: &StoredSample) -> Value {
    json!({
        "source_time_ns": sample.source_nanos,
        "bytes": sample.payload.len(),
        "disposed": sample.disposed,
        "original_gid": hexadecimal(&sample.origin.writer),
        "original_number": sample.origin.sequence,
        "instance": sample.key_hash.as_ref().map(|key| hexadecimal(key)),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
