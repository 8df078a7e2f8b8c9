//! `pteros service type`.

use super::known::known_service;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `service type`.
#[derive(Debug, Args)]
pub struct TypeOf {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Name of the service (e.g. /add_two_ints)
    service_name: String,
}

impl TypeOf {
    /// Prints the types of the service, a line each.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let name = session.service(&self.service_name)?;
        let graph = session.discover(&self.discovery);
        let service = known_service(&session, &graph, &name)?;
        if shared.console.json {
            let answer = json!({ "name": service.name, "types": service.types });
            return Ok(shared.console.json(&answer)?);
        }
        for name in service.types {
            shared.console.line(name)?;
        }
        Ok(())
    }
}
