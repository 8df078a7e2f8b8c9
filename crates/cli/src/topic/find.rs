//! `pteros topic find`.

use super::lookup::shown_topics;
use crate::cli_context::CliContext;
use crate::interface::type_names::{full_or_as_written, warn_of_unknown};
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;

/// Arguments of `topic find`.
#[derive(Debug, Args)]
pub struct Find {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Only print how many topics there are
    #[arg(short = 'c', long)]
    count_topics: bool,
    /// Type to look for (e.g. std_msgs/msg/String)
    topic_type: String,
}

impl Find {
    /// Prints the topics of the type, sorted. An unused type gives an empty result.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let full = |name: &str| full_or_as_written(&library, name);
        let wanted = full(&self.topic_type);
        let session = Session::open_with_standard_topics(cli)?;
        let graph = session.discover(&self.discovery);
        let names: Vec<String> = shown_topics(&session, &graph, cli.include_hidden)
            .into_iter()
            .filter(|topic| topic.types.iter().any(|name| full(name) == wanted))
            .map(|topic| topic.name)
            .collect();
        if names.is_empty() {
            warn_of_unknown(cli.console, &library, &self.topic_type);
        }
        Ok(cli.console.names(&names, self.count_topics)?)
    }
}
