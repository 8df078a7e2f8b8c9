//! `pteros service echo`: the events of services and clients that tell of their
//! requests and replies.

use super::known::known_service;
use crate::interface::named::known_service_type;
use crate::qos_flags::QosFlags;
use crate::session::Session;
use crate::shared::Shared;
use crate::topic::echo::{Echo as TopicEcho, EchoFlags};
use crate::topic::known::only_type;
use anyhow::Result;
use clap::Args;

/// Arguments of `service echo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Services and clients tell of requests and replies only where their program switches it on (Service::configure_introspection)."
)]
pub struct Echo {
    #[command(flatten)]
    flags: EchoFlags,
    /// Name of the service (e.g. /add_two_ints)
    service_name: String,
    /// Its type (e.g. example_interfaces/srv/AddTwoInts) [default: what the graph says]
    service_type: Option<String>,
    #[command(flatten)]
    qos: QosFlags,
}

impl Echo {
    /// Prints events until Ctrl-C or as the flags say.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let ty = match &self.service_type {
            Some(name) => known_service_type(&shared.library()?, name)?,
            None => {
                let session = Session::open(shared, None)?;
                let name = session.service(&self.service_name)?;
                let graph = session.discover(&self.flags.discovery);
                let known = known_service(&session, &graph, &name)?;
                only_type(&known, "append the one you mean to the command")?
            }
        };
        let echo = TopicEcho {
            flags: self.flags,
            topic_name: format!("{}/_service_event", self.service_name),
            message_type: Some(format!("{ty}_Event")),
            qos: self.qos,
        };
        echo.run(shared)
    }
}
