//! `pteros bag play`.

use super::keyboard::{Key, Keyboard};
use super::progress::ProgressLine;
use super::selection::{StorageFlag, TopicFlags, option_file, qos_overrides};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::Session;
use crate::value_parsers::{
    LimitSeconds, limit_seconds, non_negative_seconds, positive_float, positive_seconds,
};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pteros::log::Severity;
use pteros_bag::{
    BagReader, ClockOptions, LastKnown, MessageOrder, PlayedPart, Player, PlayerOptions,
    RequestSource, StepOptions, TopicRemap,
};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Arguments of `bag play`.
#[derive(Debug, Args)]
pub struct Play {
    /// Folders of bags, or files. Several are played as one, in the order of time
    #[arg(value_name = "BAG_PATH", required_unless_present = "input")]
    bag_path: Vec<PathBuf>,
    /// More bags. A word behind a bag may name its storage, as with ros2 bag
    #[arg(short, long, value_name = "BAG", num_args = 1..=2, action = clap::ArgAction::Append)]
    input: Vec<PathBuf>,
    /// Speed; 2 is twice as fast
    #[arg(short, long, default_value_t = 1.0, value_parser = positive_float)]
    rate: f64,
    /// Begin again at the end, until Ctrl-C
    #[arg(short = 'l', long = "loop")]
    repeat: bool,
    /// Publish /clock this many times per second
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "40", value_parser = positive_float)]
    clock: Option<f64>,
    /// Publish /clock before each message of these topics
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    clock_topics: Vec<String>,
    /// Publish /clock before each message
    #[arg(long)]
    clock_topics_all: bool,
    /// Wait this many seconds before each round
    #[arg(short, long, value_name = "SECONDS", default_value = "0", value_parser = non_negative_seconds)]
    delay: Duration,
    /// Play this many seconds of the bag; a negative number is all of it
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value = "-1", value_parser = limit_seconds)]
    playback_duration: LimitSeconds,
    /// Play up to this time, in seconds since 1970; a negative number is the end. With
    /// --playback-duration, the later end counts
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value = "-1", value_parser = limit_seconds, conflicts_with = "playback_until_nsec")]
    playback_until_sec: LimitSeconds,
    /// Play up to this time, in nanoseconds since 1970; a negative number is the end
    #[arg(long, value_name = "NANOSECONDS", allow_negative_numbers = true, default_value_t = -1)]
    playback_until_nsec: i64,
    /// After a delay, of a stopped process for example, play as fast as possible until the
    /// recorded times are reached again
    #[arg(long)]
    catch_up: bool,
    /// Begin paused, until the space bar, ~/resume or ~/play_next
    #[arg(short = 'p', long)]
    start_paused: bool,
    /// Leave the keyboard alone: no space bar, no arrows
    #[arg(long)]
    disable_keyboard_controls: bool,
    /// Show the time of the bag and the played part on standard error, this many times per
    /// second: 0 is never, and -1 as often as it is looked at
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, default_value_t = 0, value_parser = clap::value_parser!(i32).range(-1..=50))]
    progress_bar_update_rate: i32,
    /// Empty lines between that line and what is printed before it, in a terminal
    #[arg(long, value_name = "LINES", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=99))]
    progress_bar_separation_lines: u16,
    /// Order and space messages by the time when they were received or sent
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    message_order: OrderFlag,
    /// Release each message when these nodes are done with the last: their outputs are
    /// the same in each run
    #[arg(long, value_name = "NODE", num_args = 1.., conflicts_with_all = ["repeat", "delay"])]
    step_with: Vec<String>,
    /// Wait this long for a node of --step-with
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds, requires = "step_with")]
    step_timeout: Duration,
    /// Wait up to this many seconds until each topic has a subscription
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    wait_for_matched: Option<Duration>,
    /// Wait at the end until all messages are acknowledged, this many milliseconds at
    /// most; 0 is for ever
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    wait_for_all_acked: u64,
    /// Without effect, as the player loans no messages: each is written into shared memory
    /// once
    #[arg(long)]
    disable_loan_message: bool,
    #[command(flatten)]
    pub shared: SharedPlayFlags,
}

/// Flags that `play` and `burst` share.
#[derive(Debug, Args)]
pub struct SharedPlayFlags {
    #[command(flatten)]
    topics: TopicFlags,
    /// Refuse a bag of another storage
    #[arg(short, long, value_name = "STORAGE", value_enum)]
    pub storage: Option<StorageFlag>,
    /// YAML file with the QoS of publishers by topic
    #[arg(long, value_name = "FILE")]
    qos_profile_overrides_path: Option<PathBuf>,
    /// Without effect, as no setting of a storage changes how bags are read: the file must
    /// only be there
    #[arg(long, value_name = "FILE")]
    storage_config_file: Option<PathBuf>,
    /// Publish topics under other names
    #[arg(short = 'm', long, value_name = "OLD:=NEW", num_args = 1..)]
    remap: Vec<String>,
    /// Publish topics whose whole name matches a regular expression under other names; $1
    /// is what its first group matched. --remap wins over it
    #[arg(long, value_name = "REGEX:=NEW", num_args = 1..)]
    topic_remap: Vec<String>,
    /// Begin this many seconds after the start, with the latest messages of transient
    /// local topics first
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = non_negative_seconds)]
    start_offset: Duration,
    /// Publish the latest earlier message of these topics first too
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    last_known: Vec<String>,
    /// Publish the latest earlier message of all topics first
    #[arg(long)]
    last_known_all: bool,
    /// Send recorded requests to their services, instead of publishing the recorded
    /// events
    #[arg(long)]
    publish_service_requests: bool,
    /// Take requests from the introspection of services or of clients
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t)]
    service_requests_source: SourceFlag,
    /// Messages to read ahead
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = crate::value_parsers::positive_count)]
    read_ahead_queue_size: usize,
    /// Log level: debug, info, warn, error or fatal
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<Severity>,
    /// Name of the node
    #[arg(long, value_name = "NAME", default_value = "rosbag2_player")]
    pub node_name: String,
}

/// rosbag2's words for the order of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OrderFlag {
    /// When the recorder received them
    #[default]
    Received,
    /// When they were published
    Sent,
}

/// rosbag2's words for the source of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum SourceFlag {
    /// Requests that services received
    #[default]
    ServiceIntrospection,
    /// Requests that clients sent
    ClientIntrospection,
}

/// Time between two looks at the player, the keyboard and Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(20);
/// How much an arrow changes the rate, as with rosbag2.
const RATE_STEP: f64 = 0.1;

impl Play {
    /// Plays to the end, or until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let is_storage = |path: &&PathBuf| {
            let words = ["mcap", "sqlite3", "rosbag1"];
            words.iter().any(|word| path.as_os_str() == *word) && !path.exists()
        };
        let more = self.input.iter().filter(|path| !is_storage(path));
        let bags: Vec<PathBuf> = self.bag_path.iter().chain(more).cloned().collect();
        let display = Display {
            has_controls: !self.disable_keyboard_controls,
            progress_rate: self.progress_bar_update_rate,
            separation_lines: self.progress_bar_separation_lines,
        };
        let options = self.options(cli)?;
        play(cli, &bags, &self.shared, options, &display)
    }

    fn options(&self, cli: &CliContext) -> Result<PlayerOptions> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let seconds = self.playback_until_sec.0.map(nanos);
        let until = seconds.or(u64::try_from(self.playback_until_nsec).ok());
        let shared = self.shared.options(cli)?;
        Ok(PlayerOptions {
            rate: self.rate,
            repeat: self.repeat,
            part: PlayedPart {
                duration: self.playback_duration.0,
                // A message at that time is played.
                until: until.map(|last| last.saturating_add(1)),
                ..shared.part
            },
            delay: self.delay,
            order: match self.message_order {
                OrderFlag::Received => MessageOrder::Received,
                OrderFlag::Sent => MessageOrder::Sent,
            },
            clock: ClockOptions {
                rate: self.clock,
                topics: self.clock_topics.iter().map(full_name).collect(),
                all_topics: self.clock_topics_all,
            },
            start_paused: self.start_paused,
            catch_up: self.catch_up,
            step: (!self.step_with.is_empty()).then(|| StepOptions {
                nodes: self.step_with.clone(),
                timeout: self.step_timeout,
            }),
            wait_for_matched: self.wait_for_matched,
            wait_for_all_acked: Some(Duration::from_millis(self.wait_for_all_acked)),
            ..shared
        })
    }
}

fn full_name(name: impl AsRef<str>) -> String {
    format!("/{}", name.as_ref().trim_start_matches('/'))
}

impl SharedPlayFlags {
    /// The options of these flags; the others as by default.
    pub fn options(&self, cli: &CliContext) -> Result<PlayerOptions> {
        if let Some(path) = &self.storage_config_file {
            option_file("--storage-config-file", path)?;
        }
        let mut remap = TopicRemap::default();
        for rule in &self.remap {
            let Some((old, new)) = rule.split_once(":=") else {
                bail!("--remap {rule}: give OLD:=NEW, for example /scan:=/recorded/scan");
            };
            remap.rename(full_name(old), full_name(new))?;
        }
        for rule in &self.topic_remap {
            let Some((expression, new)) = rule.rsplit_once(":=") else {
                bail!(
                    "--topic-remap {rule}: give REGEX:=NEW, for example '/(.*)/scan:=/recorded/$1/scan'"
                );
            };
            remap.rename_matching(expression, new)?;
        }
        let source = match self.service_requests_source {
            SourceFlag::ServiceIntrospection => RequestSource::Service,
            SourceFlag::ClientIntrospection => RequestSource::Client,
        };
        Ok(PlayerOptions {
            part: PlayedPart {
                start_offset: self.start_offset,
                ..PlayedPart::default()
            },
            filter: self.topics.filter()?,
            remap,
            qos_overrides: qos_overrides(self.qos_profile_overrides_path.as_deref())?,
            last_known: LastKnown {
                all_topics: self.last_known_all,
                topics: self.last_known.iter().map(full_name).collect(),
            },
            requests: self.publish_service_requests.then_some(source),
            read_ahead: self.read_ahead_queue_size,
            library: cli.library()?,
            ..PlayerOptions::default()
        })
    }
}

/// Keys and progress of a playback in the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Display {
    /// Whether keys of the terminal pause, step and change the rate.
    pub has_controls: bool,
    /// Lines of progress per second, see [`ProgressLine::new`].
    pub progress_rate: i32,
    /// Empty lines above the progress line.
    pub separation_lines: u16,
}

/// Plays bags as one until the end or Ctrl-C.
pub fn play(
    cli: &CliContext,
    bags: &[PathBuf],
    flags: &SharedPlayFlags,
    options: PlayerOptions,
    display: &Display,
) -> Result<()> {
    let bag = BagReader::open_all(bags, &cli.library()?)?;
    StorageFlag::check(flags.storage, &bag)?;
    for problem in bag.problems() {
        cli.console.note_row(format!("WARNING: {problem}"));
    }
    let offset = options.part.start_offset;
    if let Some((first, last)) = bag.span()
        && offset > Duration::from_nanos(last.saturating_sub(first))
    {
        cli.console.note_row(format!(
            "WARNING: --start-offset {} is past the end of the bag, after {:.3} s; only what is latched is played",
            offset.as_secs_f64(),
            Duration::from_nanos(last.saturating_sub(first)).as_secs_f64()
        ));
    }
    let session = Session::open_with(cli, Some(&flags.node_name), Ok)?;
    let player = Player::start(&session.node, bag, options)?;
    for skipped in player.skipped() {
        cli.console.note_row(format!("WARNING: {skipped}"));
    }
    let mut keyboard = if display.has_controls {
        Keyboard::open()
    } else {
        None
    };
    if keyboard.is_some() {
        cli.console.note_row(
            "SPACE pauses and resumes, the right arrow plays the next message, the arrows up and down change the rate",
        );
    }
    let mut progress = ProgressLine::new(display.progress_rate, display.separation_lines);
    let summary = loop {
        if let Some(summary) = player.summary() {
            break summary;
        }
        if session.context.is_shut_down() {
            player.stop();
        }
        while let Some(key) = keyboard.as_mut().and_then(Keyboard::poll_key) {
            progress.clear();
            cli.console.note_row(press(&player, key));
        }
        progress.show(Instant::now(), || player.progress());
        session.spin_once(POLL_PERIOD);
    };
    drop(keyboard);
    drop(progress);
    for problem in &summary.problems {
        cli.console.note_row(format!("WARNING: {problem}"));
    }
    if cli.console.json {
        let shown = bags.iter().map(|bag| bag.display().to_string());
        let shown: Vec<String> = shown.collect();
        cli.console.json(&json!({
            "bag": shown.first(),
            "bags": shown,
            "published": summary.published,
            "failed": summary.failed,
        }))?;
    } else {
        let failed = match summary.failed {
            0 => String::new(),
            count => format!(", {count} not published"),
        };
        cli.console
            .row(format!("{} messages published{failed}", summary.published))?;
    }
    if summary.failed > 0 {
        return Err(Failed.into());
    }
    Ok(())
}

/// Does what a key is for, and says what it did.
fn press(player: &Player, key: Key) -> String {
    match key {
        Key::Space => {
            let is_paused = !player.is_paused();
            player.set_paused(is_paused);
            if is_paused { "Paused" } else { "Resumed" }.to_owned()
        }
        Key::Right => {
            let played = player.play_next();
            if played {
                "Next message".to_owned()
            } else {
                "The next message can be played while paused: press SPACE first".to_owned()
            }
        }
        Key::Up | Key::Down => {
            let step = if key == Key::Up {
                RATE_STEP
            } else {
                -RATE_STEP
            };
            player.set_rate(player.rate() + step);
            format!("Rate {:.1}", player.rate())
        }
    }
}
