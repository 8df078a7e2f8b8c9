//! `pteros topic type`.

use super::known::known_topic;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `topic type`.
#[derive(Debug, Args)]
pub struct TypeOf {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Accepted for the sake of ros2 scripts: hidden topics are found anyway
    #[arg(long)]
    include_hidden_topics: bool,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
}

impl TypeOf {
    /// Prints the types of the topic, a line each.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let name = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.discovery);
        let topic = known_topic(&session, &graph, &name)?;
        if shared.console.json {
            let answer = json!({ "name": topic.name, "types": topic.types });
            return Ok(shared.console.json(&answer)?);
        }
        for name in topic.types {
            shared.console.line(name)?;
        }
        Ok(())
    }
}
