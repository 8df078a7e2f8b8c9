//! `pteros action type`.

use super::known::known_action;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `action type`.
#[derive(Debug, Args)]
pub struct TypeOf {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Name of the action (e.g. /fibonacci)
    action_name: String,
}

impl TypeOf {
    /// Prints the types of the action, a line each.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let name = session.topic(&self.action_name)?;
        let graph = session.discover(&self.discovery);
        let action = known_action(&session, &graph, &name)?;
        if shared.console.json {
            let answer = json!({ "name": action.name, "types": action.types });
            return Ok(shared.console.json(&answer)?);
        }
        for name in action.types {
            shared.console.line(name)?;
        }
        Ok(())
    }
}
