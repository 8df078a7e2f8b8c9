//! `pteros topic type`.

use super::lookup::find_topic;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::log::escape_line;
use serde_json::json;

/// Arguments of `topic type`.
#[derive(Debug, Args)]
pub struct TypeOf {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
}

impl TypeOf {
    /// Prints the types of the topic, one per line.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open_with_standard_topics(cli)?;
        let name = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.discovery);
        let topic = find_topic(&session, &graph, &name)?;
        if cli.console.json {
            let output = json!({ "name": topic.name, "types": topic.types });
            return Ok(cli.console.json(&output)?);
        }
        for name in topic.types {
            cli.console.line(escape_line(&name))?;
        }
        Ok(())
    }
}
