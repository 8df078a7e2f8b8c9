//! `pteros bag burst`: messages of a bag as fast as possible.

use super::play::{Display, SharedPlayFlags, play};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_bag::PlayerOptions;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `bag burst`.
#[derive(Debug, Args)]
pub struct Burst {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
    /// Publish this many messages; 0 is all
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 0)]
    num_messages: u64,
    /// Wait up to this many seconds until each topic has a subscription
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    wait_for_matched: Option<Duration>,
    #[command(flatten)]
    pub shared: SharedPlayFlags,
}

/// How long the last messages may take until they are acknowledged.
const ACK_TIMEOUT: Duration = Duration::from_secs(1);

impl Burst {
    /// Publishes the messages and ends.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let options = PlayerOptions {
            burst: Some(self.num_messages),
            wait_for_matched: self.wait_for_matched,
            wait_for_all_acked: Some(ACK_TIMEOUT),
            ..self.shared.options(cli)?
        };
        let bags = [self.bag_path];
        let display = Display::default();
        play(cli, &bags, &self.shared, options, &display)
    }
}
