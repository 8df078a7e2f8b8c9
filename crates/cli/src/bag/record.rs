//! `pteros bag record`.

use super::keyboard::{Key, Keyboard};
use super::selection::{OutputFlags, qos_overrides};
use crate::action::lookup::all_actions;
use crate::cli_context::CliContext;
use crate::console::Console;
use crate::exit_errors::Failed;
use crate::misspelt::{not_published, refuse_misspelt};
use crate::session::{DiscoveryFlags, Session};
use anyhow::{Result, bail};
use clap::Args;
use pteros::graph::TopicInfo;
use pteros::local_time::LocalTime;
use pteros::log::{Severity, escape_line};
use pteros_bag::topic_filter::NamePattern;
use pteros_bag::{
    FileCompression, RECORDER_LATENCY_BUDGET, Recorder, RecorderOptions, RecordingSummary,
    TopicFilter,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Arguments of `bag record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Folder of the new bag [default: rosbag2_ with date and time]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Topics to record
    #[arg(value_name = "TOPIC")]
    topic_names: Vec<String>,
    /// Topics to record
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    topics: Vec<String>,
    /// Services whose events to record, where introspection is on
    #[arg(long, value_name = "SERVICE", num_args = 1..)]
    services: Vec<String>,
    /// Actions to record: their feedback, their status, and the events of their services
    /// where introspection is on
    #[arg(long, value_name = "ACTION", num_args = 1..)]
    actions: Vec<String>,
    /// Record all topics of these types
    #[arg(long, value_name = "TYPE", num_args = 1..)]
    topic_types: Vec<String>,
    /// Record all topics, service events and actions
    #[arg(short, long)]
    all: bool,
    /// Record all topics
    #[arg(long)]
    all_topics: bool,
    /// Record the events of all services
    #[arg(long)]
    all_services: bool,
    /// Record all actions
    #[arg(long)]
    all_actions: bool,
    /// Record topics in whose name this regular expression is found
    #[arg(short = 'e', long, value_name = "REGEX")]
    regex: Option<String>,
    /// Record no topics in whose name this regular expression is found
    #[arg(long, value_name = "REGEX")]
    exclude_regex: Option<String>,
    /// Do not record topics of these types
    #[arg(long, value_name = "TYPE", num_args = 1..)]
    exclude_topic_types: Vec<String>,
    /// Do not record these topics
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    exclude_topics: Vec<String>,
    /// Do not record the events of these services
    #[arg(long, value_name = "SERVICE", num_args = 1..)]
    exclude_services: Vec<String>,
    /// Do not record these actions
    #[arg(long, value_name = "ACTION", num_args = 1..)]
    exclude_actions: Vec<String>,
    /// Record topics too that have only subscriptions yet
    #[arg(long)]
    include_unpublished_topics: bool,
    /// Do not record topics without a subscription
    #[arg(long)]
    ignore_leaf_topics: bool,
    /// Let -a and --regex choose hidden topics too
    #[arg(long)]
    include_hidden_topics: bool,
    /// Record only topics that are there at the start
    #[arg(long)]
    no_discovery: bool,
    /// Milliseconds between two looks for new topics
    #[arg(short, long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    polling_interval: u64,
    /// YAML file with the QoS of subscriptions by topic
    #[arg(long, value_name = "FILE")]
    qos_profile_overrides_path: Option<PathBuf>,
    #[command(flatten)]
    output_flags: OutputFlags,
    #[command(flatten)]
    file_compression: FileCompressionFlags,
    /// Bytes of messages that may wait for the disk; more are dropped and counted
    #[arg(long, value_name = "BYTES", default_value_t = 100 << 20)]
    max_cache_size: usize,
    /// Keep the latest messages in memory, --max-cache-size of them, and write them when
    /// ~/snapshot is called
    #[arg(long)]
    snapshot_mode: bool,
    /// Leave the keyboard alone: no space bar to pause
    #[arg(long)]
    disable_keyboard_controls: bool,
    /// Record the messages as they are, which is cdr
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "cdr", value_parser = ["cdr"])]
    serialization_format: String,
    /// Begin paused, until the space bar or ~/resume
    #[arg(long)]
    start_paused: bool,
    /// Take the times of messages from /clock
    #[arg(long)]
    use_sim_time: bool,
    /// Log level: debug, info, warn, error or fatal
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<Severity>,
    /// Name of the node
    #[arg(long, value_name = "NAME", default_value = "rosbag2_recorder")]
    node_name: String,
    /// Texts to store with the bag
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    custom_data: Vec<String>,
    /// Begin the files after a split with the latest messages of these transient local
    /// topics only, DEPTH of each publisher
    #[arg(long, value_name = "TOPIC[=DEPTH]", num_args = 1.., value_parser = repeated_topic)]
    repeat_transient_local: Vec<(String, usize)>,
    /// Begin them with the latest messages of all transient local topics, DEPTH of each
    /// publisher; without DEPTH, as many as it keeps, as by default
    #[arg(long, value_name = "DEPTH", num_args = 0..=1)]
    repeat_all_transient_local: Option<Option<NonZeroUsize>>,
    /// Do not begin them with any
    #[arg(long, conflicts_with_all = ["repeat_transient_local", "repeat_all_transient_local"])]
    no_repeat_transient_local: bool,
}

/// Threads of `--compression-mode file`.
#[derive(Debug, Args)]
struct FileCompressionFlags {
    /// Threads that compress complete files; 0 is one per processor
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    compression_threads: u16,
    /// Complete files that may wait for these threads. At this limit the writer waits; 0 is
    /// no limit
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    compression_queue_size: usize,
    /// Nice value of these threads, from -20 to 19
    #[arg(long, value_name = "NICE", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    compression_threads_priority: Option<i32>,
}

/// Time between two looks at the graph and at Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(50);

impl Record {
    /// Records until Ctrl-C. The exit code is 1 if a message was lost, or a topic could not
    /// be subscribed to.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let options = self.options(cli)?;
        let folder = self.output.clone().unwrap_or_else(default_folder);
        let session = Session::open_with(cli, Some(&self.node_name), |mut context| {
            context.use_sim_time |= self.use_sim_time;
            context.shared_memory.latency_budget = RECORDER_LATENCY_BUDGET;
            Ok(context)
        })?;
        self.refuse_misspelt_names(cli, &session)?;
        let mut recorder = Recorder::start(&session.node, &folder, options)?;
        cli.console
            .note_row(format!("Recording to {}; Ctrl-C ends it", folder.display()));
        let mut keyboard = if self.disable_keyboard_controls {
            None
        } else {
            Keyboard::open()
        };
        if keyboard.is_some() {
            cli.console.note_row("SPACE pauses and resumes");
        }
        let mut has_failed = false;
        while !session.context.is_shut_down() {
            for note in recorder.poll(Instant::now()) {
                cli.console.note_row(note);
            }
            if let Some(problem) = recorder.problem() {
                cli.console
                    .note_row(format!("ERROR: {problem}; recording ends"));
                has_failed = true;
                break;
            }
            while let Some(key) = keyboard.as_mut().and_then(Keyboard::poll_key) {
                if key == Key::Space {
                    let is_paused = !recorder.is_paused();
                    recorder.set_paused(is_paused);
                    cli.console
                        .note_row(if is_paused { "Paused" } else { "Resumed" });
                }
            }
            // In rounds: one callback at a time would cost as much as the message itself.
            session.spin_for(POLL_PERIOD);
        }
        drop(keyboard);
        let summary = recorder.finish()?;
        report(cli, &folder, &summary)?;
        has_failed |= summary.problem.is_some();
        if summary.lost() > 0 || has_failed || !summary.unrecorded.is_empty() {
            return Err(Failed.into());
        }
        Ok(())
    }

    /// Refuses to record if every named topic, service, action and type is unknown, and
    /// close to a known one. Others are waited for, because their nodes may start later.
    fn refuse_misspelt_names(&self, cli: &CliContext, session: &Session) -> Result<()> {
        let records_all = self.all || self.all_topics || self.all_services || self.all_actions;
        if records_all || self.regex.is_some() {
            return Ok(());
        }
        let graph = session.discover(&DiscoveryFlags::default());
        let topics = session.topics(&graph);
        let named = self.topic_names.iter().chain(&self.topics);
        let of_topics = named.map(|name| {
            let names = topics.iter().map(|known| known.name.as_str());
            refuse_misspelt("topic", &session.topic(name)?, names, "pteros topic list")
        });
        let services = graph.services();
        let of_services = self.services.iter().map(|name| {
            let names = services.iter().map(|known| known.name.as_str());
            let list = "pteros service list";
            refuse_misspelt("service", &session.service(name)?, names, list)
        });
        let actions = all_actions(&graph);
        let of_actions = self.actions.iter().map(|name| {
            let names = actions.iter().map(|known| known.name.as_str());
            refuse_misspelt("action", &session.topic(name)?, names, "pteros action list")
        });
        let library = cli.library()?;
        let of_types = self.topic_types.iter().map(|name| {
            let announced = topics.iter().flat_map(|known| &known.types);
            let names = library.names().chain(announced.map(String::as_str));
            refuse_misspelt("type", name, names, "pteros interface list")
        });
        let all = of_topics
            .chain(of_services)
            .chain(of_actions)
            .chain(of_types);
        let all: Vec<Result<()>> = all.collect();
        let is_every_name_wrong = all.iter().all(Result::is_err);
        match all.into_iter().next() {
            Some(Err(error)) if is_every_name_wrong => Err(error),
            _ => self.warn_of_missing(cli.console, session, &topics),
        }
    }

    /// Warns of each named topic that is not there yet: a misspelt one records nothing.
    fn warn_of_missing(
        &self,
        console: Console,
        session: &Session,
        known: &[TopicInfo],
    ) -> Result<()> {
        for name in self.topic_names.iter().chain(&self.topics) {
            let name = session.topic(name)?;
            if known.iter().all(|known| known.name != name) {
                let names = known.iter().map(|known| known.name.as_str());
                console.note(not_published(&name, names));
            }
        }
        Ok(())
    }

    fn options(&self, cli: &CliContext) -> Result<RecorderOptions> {
        let pattern = |text: &Option<String>| text.as_deref().map(NamePattern::new).transpose();
        let named = self.topic_names.iter().chain(&self.topics);
        let all = self.all || self.all_topics;
        let filter = TopicFilter {
            all_topics: all,
            all_services: self.all || self.all_services,
            topics: named.cloned().collect(),
            services: self.services.clone(),
            actions: self.actions.clone(),
            all_actions: self.all || self.all_actions,
            exclude_actions: self.exclude_actions.clone(),
            types: self.topic_types.clone(),
            pattern: pattern(&self.regex)?,
            exclude_topics: self.exclude_topics.clone(),
            exclude_services: self.exclude_services.clone(),
            exclude_types: self.exclude_topic_types.clone(),
            exclude_pattern: pattern(&self.exclude_regex)?,
            include_hidden: self.include_hidden_topics,
            whole_names: false,
        };
        let mut custom_data = BTreeMap::new();
        for text in &self.custom_data {
            let Some((key, value)) = text.split_once('=') else {
                bail!("--custom-data {text}: give KEY=VALUE, for example robot=r2");
            };
            custom_data.insert(key.to_owned(), value.to_owned());
        }
        let mut bag = self.output_flags.options()?;
        bag.custom_data = custom_data;
        let are_named = !self.repeat_transient_local.is_empty();
        bag.repeat_transient_local = self.repeat_all_transient_local.is_some()
            || !(are_named || self.no_repeat_transient_local);
        bag.repeat_depth = self
            .repeat_all_transient_local
            .flatten()
            .map(NonZeroUsize::get);
        bag.repeat_depths = self.repeat_transient_local.iter().cloned().collect();
        Ok(RecorderOptions {
            filter: filter.with_full_names()?,
            bag,
            cache_bytes: self.max_cache_size,
            start_paused: self.start_paused,
            include_unpublished: self.include_unpublished_topics,
            ignore_leaf_topics: self.ignore_leaf_topics,
            no_discovery: self.no_discovery,
            polling_interval: Duration::from_millis(self.polling_interval),
            qos_overrides: qos_overrides(self.qos_profile_overrides_path.as_deref())?,
            library: cli.library()?,
            use_sim_time: self.use_sim_time,
            is_snapshot: self.snapshot_mode,
            file_compression: FileCompression {
                threads: self.file_compression.compression_threads.into(),
                queue: self.file_compression.compression_queue_size,
                nice: self.file_compression.compression_threads_priority,
            },
            ..RecorderOptions::default()
        })
    }
}

/// Reads a topic and how many of its messages are repeated, 1 by default.
fn repeated_topic(text: &str) -> Result<(String, usize), String> {
    let (name, depth) = text.split_once('=').unwrap_or((text, "1"));
    let depth = match depth.parse() {
        Ok(depth) if depth > 0 => depth,
        _ => return Err("give TOPIC or TOPIC=DEPTH, for example /tf_static=10".to_owned()),
    };
    let name = format!("/{}", name.trim_start_matches('/'));
    Ok((name, depth))
}

fn default_folder() -> PathBuf {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = i128::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(0);
    PathBuf::from(format!("rosbag2_{}", folder_suffix(LocalTime::of(nanos))))
}

/// `2024_02_29-12_34_56`
fn folder_suffix(time: LocalTime) -> String {
    time.text("_", "-", "_")
}

fn report(cli: &CliContext, folder: &std::path::Path, summary: &RecordingSummary) -> Result<()> {
    if cli.console.json {
        let topics = summary.accounts.iter().map(|(name, account)| {
            json!({
                "topic": name,
                "received": account.received,
                "written": account.written,
                "not_kept": account.not_kept,
                "paused": account.paused,
                "lost": {
                    "wire": account.lost_wire,
                    "queue": account.lost_queue,
                    "buffer": account.lost_buffer,
                    "writer": account.lost_writer,
                },
            })
        });
        let topics: Vec<_> = topics.collect();
        cli.console.json(&json!({
            "bag": folder.display().to_string(),
            "messages": summary.messages(),
            "lost": summary.lost(),
            "problem": summary.problem,
            "unrecorded": summary.unrecorded,
            "unpublished_events": summary.unpublished_events,
            "topics": topics,
        }))?;
        return Ok(());
    }
    if let Some(problem) = &summary.problem {
        cli.console.note_row(format!("PROBLEM: {problem}"));
    }
    for (name, account) in &summary.accounts {
        let name = escape_line(name);
        let mut line = format!("{name}: {} messages written", account.written);
        if account.not_kept > 0 {
            line += &format!(", {} not kept for a snapshot", account.not_kept);
        }
        if account.paused > 0 {
            line += &format!(", {} while paused", account.paused);
        }
        if account.lost() > 0 {
            line += &format!(
                ", {} LOST ({} on the wire, {} in the subscription's queue, {} in the buffer, {} in the writer)",
                account.lost(),
                account.lost_wire,
                account.lost_queue,
                account.lost_buffer,
                account.lost_writer
            );
        }
        cli.console.row(line)?;
    }
    for (name, reason) in &summary.unrecorded {
        let name = escape_line(name);
        cli.console.row(format!("{name}: NOT RECORDED: {reason}"))?;
    }
    if summary.unpublished_events > 0 {
        let count = summary.unpublished_events;
        cli.console
            .row(format!("{count} events of the recorder were not published"))?;
    }
    cli.console.row(format!(
        "{}: {} messages, {} lost",
        folder.display(),
        summary.messages(),
        summary.lost()
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::local_time::TimeZone;

    #[test]
    fn a_repeated_topic_may_have_a_depth() {
        let topic = |name: &str, depth| Ok((name.to_owned(), depth));
        assert_eq!(repeated_topic("/map"), topic("/map", 1));
        assert_eq!(repeated_topic("tf_static=10"), topic("/tf_static", 10));
        for wrong in ["/map=", "/map=0", "/map=x"] {
            assert!(repeated_topic(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_default_folder_has_the_date_in_digits() {
        let zone = TimeZone::of_variable("NZST-12NZDT,M9.5.0,M4.1.0/3").unwrap();
        let time = zone.at(1_709_210_096_000_000_007);
        assert_eq!(folder_suffix(time), "2024_03_01-01_34_56");
    }
}
