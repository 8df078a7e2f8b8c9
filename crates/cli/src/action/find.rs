//! `pteros action find`.

use super::known::actions;
use crate::interface::named::full_or_as_written;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;

/// Arguments of `action find`.
#[derive(Debug, Args)]
pub struct Find {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Only print how many actions there are
    #[arg(short = 'c', long)]
    count_actions: bool,
    /// Type to look for (e.g. example_interfaces/action/Fibonacci)
    action_type: String,
}

impl Find {
    /// Prints the actions of the type, sorted. A type that nobody uses gives an
    /// empty answer.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let library = shared.library()?;
        let full = |name: &str| full_or_as_written(&library, name);
        let wanted = full(&self.action_type);
        let session = Session::open(shared, None)?;
        let names: Vec<String> = actions(&session.discover(&self.discovery))
            .into_iter()
            .filter(|action| action.types.iter().any(|ty| full(ty) == wanted))
            .map(|action| action.name)
            .collect();
        Ok(shared.console.names(&names, self.count_actions)?)
    }
}
