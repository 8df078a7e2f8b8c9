//! `pteros service echo`: service introspection events of servers and clients.

use super::lookup::find_service;
use crate::cli_context::CliContext;
use crate::interface::type_names::find_service_type;
use crate::qos_flags::QosFlags;
use crate::session::Session;
use crate::topic::echo::{Echo as TopicEcho, EchoFlags};
use crate::topic::lookup::{TYPE_HINT, only_type};
use anyhow::Result;
use clap::Args;

/// Arguments of `service echo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Servers and clients publish these events only if their program enables introspection (Service::configure_introspection)."
)]
pub struct Echo {
    #[command(flatten)]
    flags: EchoFlags,
    /// Name of the service (e.g. /add_two_ints)
    service_name: String,
    /// Type of the service (e.g. example_interfaces/srv/AddTwoInts)
    /// [default: from the graph]
    service_type: Option<String>,
    #[command(flatten)]
    qos: QosFlags,
}

impl Echo {
    /// Prints events until Ctrl-C or until the flags end it.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let ty = match &self.service_type {
            Some(name) => find_service_type(&cli.library()?, name)?,
            None => {
                let session = Session::open(cli, None)?;
                let name = session.service(&self.service_name)?;
                let graph = session.discover(&self.flags.discovery);
                let known = find_service(&session, &graph, &name)?;
                only_type(&known, TYPE_HINT)?
            }
        };
        let echo = TopicEcho {
            flags: self.flags,
            topic_name: format!("{}/_service_event", self.service_name),
            message_type: Some(format!("{ty}_Event")),
            qos: self.qos,
        };
        echo.run(cli)
    }
}
