//! `pteros service list`.

use super::lookup::shown_services;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

/// Arguments of `service list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show the types too
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many services there are
    #[arg(short = 'c', long)]
    count_services: bool,
    /// Include hidden services, such as those of actions
    #[arg(long)]
    include_hidden_services: bool,
}

impl List {
    /// Prints the services, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let services = shown_services(&graph, self.include_hidden_services);
        let console = cli.console;
        if console.json && !self.count_services {
            let row = |service: &pteros::TopicInfo| json!({ "name": service.name, "types": service.types });
            let rows: Vec<Value> = services.iter().map(row).collect();
            return Ok(console.json(&Value::from(rows))?);
        }
        let shown = |service: pteros::TopicInfo| {
            if self.show_types {
                format!("{} [{}]", service.name, service.types.join(", "))
            } else {
                service.name
            }
        };
        let lines: Vec<String> = services.into_iter().map(shown).collect();
        Ok(console.names(&lines, self.count_services)?)
    }
}
