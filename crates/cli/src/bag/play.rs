//! `pteros bag play`.

use super::selection::{TopicFlags, qos_overrides};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::Session;
use crate::value_parsers::{non_negative_seconds, positive_float, positive_seconds};
use anyhow::{Result, bail};
use clap::Args;
use pteros_bag::{BagReader, Player, PlayerOptions};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `bag play`.
#[derive(Debug, Args)]
pub struct Play {
    /// Folder of the bag, or an .mcap file
    bag_path: PathBuf,
    /// Speed; 2 is twice as fast
    #[arg(short, long, default_value_t = 1.0, value_parser = positive_float)]
    rate: f64,
    #[command(flatten)]
    topics: TopicFlags,
    /// YAML file with the QoS of publishers by topic
    #[arg(long, value_name = "FILE")]
    qos_profile_overrides_path: Option<PathBuf>,
    /// Begin again at the end, until Ctrl-C
    #[arg(short = 'l', long = "loop")]
    repeat: bool,
    /// Publish topics under other names
    #[arg(short = 'm', long, value_name = "OLD:=NEW", num_args = 1..)]
    remap: Vec<String>,
    /// Publish /clock this many times per second
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "40", value_parser = positive_float)]
    clock: Option<f64>,
    /// Wait this many seconds before each round
    #[arg(short, long, value_name = "SECONDS", default_value = "0", value_parser = non_negative_seconds)]
    delay: Duration,
    /// Play this many seconds of the bag
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    playback_duration: Option<Duration>,
    /// Play up to this time, in seconds since 1970
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds, conflicts_with = "playback_until_nsec")]
    playback_until_sec: Option<Duration>,
    /// Play up to this time, in nanoseconds since 1970
    #[arg(long, value_name = "NANOSECONDS")]
    playback_until_nsec: Option<u64>,
    /// Begin paused, until ~/resume or ~/play_next is called
    #[arg(short = 'p', long)]
    start_paused: bool,
    /// Begin this many seconds after the start, with the latest messages of transient
    /// local topics first
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = non_negative_seconds)]
    start_offset: Duration,
    /// Wait up to this many seconds until each topic has a subscription
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    wait_for_matched: Option<Duration>,
    /// Wait at the end until all messages are acknowledged, this many milliseconds at
    /// most; 0 is for ever
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    wait_for_all_acked: u64,
    /// Name of the node
    #[arg(long, value_name = "NAME", default_value = "rosbag2_player")]
    node_name: String,
}

/// Time between two looks at the player and at Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(20);

impl Play {
    /// Plays to the end, or until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let bag = BagReader::open(&self.bag_path)?;
        for problem in bag.problems() {
            cli.console.note(format!("WARNING: {problem}"));
        }
        let noted = bag.problems().len();
        let session = Session::open_with(cli, Some(&self.node_name), Ok)?;
        let player = Player::start(&session.node, bag, self.options(cli)?)?;
        for skipped in player.skipped() {
            cli.console.note(format!("WARNING: {skipped}"));
        }
        let summary = loop {
            if let Some(summary) = player.summary() {
                break summary;
            }
            if session.context.is_shut_down() {
                player.stop();
            }
            session.spin_once(POLL_PERIOD);
        };
        for problem in summary.problems.iter().skip(noted) {
            cli.console.note(format!("WARNING: {problem}"));
        }
        if cli.console.json {
            cli.console.json(&json!({
                "bag": self.bag_path.display().to_string(),
                "published": summary.published,
                "failed": summary.failed,
            }))?;
        } else {
            let failed = match summary.failed {
                0 => String::new(),
                count => format!(", {count} not published"),
            };
            cli.console
                .line(format!("{} messages published{failed}", summary.published))?;
        }
        if summary.failed > 0 {
            return Err(Failed.into());
        }
        Ok(())
    }

    fn options(&self, cli: &CliContext) -> Result<PlayerOptions> {
        let mut remap = BTreeMap::new();
        for rule in &self.remap {
            let Some((old, new)) = rule.split_once(":=") else {
                bail!("--remap {rule}: give OLD:=NEW, for example /scan:=/recorded/scan");
            };
            let full = |name: &str| format!("/{}", name.trim_start_matches('/'));
            remap.insert(full(old), full(new));
        }
        let until = self
            .playback_until_sec
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Ok(PlayerOptions {
            rate: self.rate,
            repeat: self.repeat,
            start_offset: self.start_offset,
            duration: self.playback_duration,
            until: until.or(self.playback_until_nsec),
            delay: self.delay,
            filter: self.topics.filter()?,
            remap,
            qos_overrides: qos_overrides(self.qos_profile_overrides_path.as_deref())?,
            clock_rate: self.clock,
            start_paused: self.start_paused,
            wait_for_matched: self.wait_for_matched,
            wait_for_all_acked: Some(Duration::from_millis(self.wait_for_all_acked)),
            library: cli.library()?,
        })
    }
}
