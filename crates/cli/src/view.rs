//! `pteros view`: the graph in a browser.

use crate::bridge::{Expression, expression};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

/// Arguments of `view`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[cfg_attr(
    not(feature = "view"),
    allow(dead_code, reason = "checked, and then refused")
)]
pub struct ViewVerb {
    /// Port of the page; 0 for a free one
    #[arg(long, default_value_t = 8765)]
    port: u16,
    /// Address to listen at; 0.0.0.0 for other hosts, too. Data travel unencrypted
    #[arg(long, default_value = "127.0.0.1")]
    address: IpAddr,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// File that rviz2 has saved: displays, colours, fixed frame and view of the page
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    rviz: Option<PathBuf>,
    /// Changes that viewers may make, separated by commas [default: nothing]
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    allow: Vec<Change>,
    /// Show only topics and services with matching names; may be repeated [default: all]
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    topics: Vec<Expression>,
    /// Do not show those with matching names; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    deny: Vec<Expression>,
    /// Let pages of another site connect that know the token (e.g.
    /// https://app.foxglove.dev); may be repeated
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
}

const AFTER_HELP: &str = "\
It prints the URL of the page, which has a secret token. Foxglove and Lichtblick connect to the
same address with ws:// in place of http://.";

/// A change that viewers may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Change {
    /// Publish messages
    Publish,
    /// Set parameters
    Params,
    /// Call services
    Services,
}

#[cfg(not(feature = "view"))]
impl ViewVerb {
    /// Refuses: this program has no viewer.
    pub fn run(self, _cli: &CliContext) -> Result<()> {
        anyhow::bail!(
            "this program is built without the viewer; build it with: cargo build --release -p pteros-cli --features view"
        )
    }
}

#[cfg(feature = "view")]
mod running {
    use super::{Change, CliContext, Result, ViewVerb};
    use crate::launch::packages;
    use crate::session::Session;
    use pteros_container::ComponentIndex;
    use pteros_view::{Allowed, View, ViewOptions};
    use serde_json::json;
    use std::net::SocketAddr;
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::Duration;

    /// How often the verb looks for Ctrl-C.
    const PERIOD: Duration = Duration::from_millis(100);

    impl ViewVerb {
        /// Serves the page until Ctrl-C.
        pub fn run(self, cli: &CliContext) -> Result<()> {
            let session = Session::open(cli, None)?;
            let allows = |change| self.allow.contains(&change);
            let (shown, hidden) = (self.topics, self.deny);
            let packages = packages(&ComponentIndex::from_environment());
            let options = ViewOptions {
                address: SocketAddr::new(self.address, self.port),
                allowed: Allowed {
                    publish: allows(Change::Publish),
                    parameters: allows(Change::Params),
                    services: allows(Change::Services),
                },
                filter: Arc::new(move |name| {
                    let is_shown = shown.is_empty() || shown.iter().any(|of| of.matches(name));
                    is_shown && !hidden.iter().any(|of| of.matches(name))
                }),
                origins: self.origin,
                rviz: self.rviz,
                library: cli.library()?,
                find_package: Arc::new(move |name| Some(packages.find(name).ok()?.share)),
                ..ViewOptions::default()
            };
            let view = View::start(&session.node, options)?;
            let url = view.url();
            if cli.console.json {
                cli.console.json_line(&json!({ "url": url }))?;
            } else {
                cli.console.line(format!("{url}\nCtrl-C ends it"))?;
            }
            if !self.address.is_loopback() {
                cli.console.note(
                    "the page is reachable from other hosts, and data travel unencrypted: use it in a trusted network",
                );
            }
            if self.open {
                open(cli, &url);
            }
            while !session.context.is_shut_down() {
                session.spin_for(PERIOD);
            }
            Ok(())
        }
    }

    fn open(cli: &CliContext, url: &str) {
        let mut command = Command::new("xdg-open");
        command
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Err(error) = command.spawn() {
            cli.console
                .note(format!("xdg-open: {error}; open the address in a browser"));
        }
    }
}
