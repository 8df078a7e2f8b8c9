//! `pteros router`: a Zenoh router with the defaults of rmw_zenoh_cpp.

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;

/// Arguments of `router`. Its settings are those of rmw_zenohd: the environment
/// variables ZENOH_ROUTER_CONFIG_URI and ZENOH_CONFIG_OVERRIDE.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct RouterVerb {}

const AFTER_HELP: &str = "\
It listens at port 7447 of every address. Environment variables change its settings:
  ZENOH_ROUTER_CONFIG_URI  a configuration file of Zenoh
  ZENOH_CONFIG_OVERRIDE    single settings, as 'connect/endpoints=[\"tcp/10.0.0.1:7447\"]' to join
                           another router";

/// The refusal of verbs that need Zenoh.
#[cfg(not(feature = "zenoh"))]
pub const NO_ZENOH: &str = "this program is built without Zenoh; build it with: cargo build --release -p pteros-cli --features zenoh";

#[cfg(not(feature = "zenoh"))]
impl RouterVerb {
    /// Refuses: this program has no Zenoh.
    pub fn run(self, _cli: &CliContext) -> Result<()> {
        anyhow::bail!(NO_ZENOH)
    }
}

#[cfg(feature = "zenoh")]
impl RouterVerb {
    /// Routes until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        use pteros_net::{Events, Poller, shutdown_signal};

        // Before the router starts its threads: Ctrl-C must reach this one.
        let shutdown = shutdown_signal()?;
        let settings = pteros::config::Config::from_environment()?.zenoh()?;
        let router = pteros_zenoh::Router::start(&settings).map_err(anyhow::Error::msg)?;
        if cli.console.json {
            let endpoints: serde_json::Value =
                serde_json::from_str(router.endpoints()).unwrap_or_default();
            let router = serde_json::json!({ "id": router.id(), "endpoints": endpoints });
            cli.console.json(&router)?;
        } else {
            let (id, endpoints) = (router.id(), router.endpoints());
            cli.console.line(format!(
                "Zenoh router {id} listens at {endpoints}; Ctrl-C ends it"
            ))?;
        }
        let poller = Poller::new()?;
        poller.add(shutdown, 0)?;
        let mut events = Events::with_capacity(1);
        while !shutdown.is_requested() {
            poller.wait(&mut events, None)?;
        }
        Ok(())
    }
}
