//! `pteros topic pub`.

use super::mismatch::MismatchReporter;
use super::publish_mode::PublishMode;
use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::interface::type_names::find_message_type;
use crate::misspelt::not_subscribed;
use crate::pace::Pace;
use crate::python_repr;
use crate::qos_flags::QosFlags;
use crate::remote_types::TYPE_TIMEOUT;
use crate::session::{DiscoveryFlags, Session};
use crate::sim_time::{SimTimeFlag, SimulatedPace};
use crate::topic::message_template::MessageTemplate;
use crate::value_parsers::{count, positive_float, positive_seconds};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::NamedQosExt;
use pteros::error::PublishError;
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::dynamic::DynamicType;
use pteros::qos::{DurabilityPolicy, QosProfile};
use pteros::store::default_name;
use pteros::{Publisher, PublisherOptions};
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant};

/// Arguments of `topic pub`.
#[derive(Debug, Args)]
#[command(
    after_help = "A header given as 'auto' and a time given as 'now' get the time of each publication:\n  pteros topic pub /pose geometry_msgs/msg/PoseStamped '{header: auto, pose: {position: {x: 1.0}}}'"
)]
pub struct Publish {
    /// Messages per second
    #[arg(short = 'r', long, value_name = "HZ", default_value = "1", value_parser = positive_float)]
    rate: f64,
    /// Print only every N-th message; 0 prints none
    #[arg(short = 'p', long, value_name = "N", default_value = "1", value_parser = count::<u64>)]
    print: u64,
    /// Publish one message and exit
    #[arg(short = '1', long, conflicts_with = "times")]
    once: bool,
    /// Publish this many messages and exit; 0 for no limit
    #[arg(short = 't', long, value_name = "N", default_value = "0", value_parser = count::<u64>)]
    times: u64,
    /// Wait for this many matching subscriptions first
    /// [default: 1 with --once or --times, else 0]
    #[arg(short = 'w', long, value_name = "N", value_parser = count::<usize>)]
    wait_matching_subscriptions: Option<usize>,
    /// Timeout of the wait for subscriptions in seconds
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    max_wait_time_secs: Option<Duration>,
    /// Stay this many seconds after the last message, for late joiners
    /// [default: until it is acknowledged, at most 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    keep_alive: Option<Duration>,
    /// Name of the publishing node [default: a hidden name]
    #[arg(short = 'n', long, value_name = "NAME")]
    node_name: Option<String>,
    /// Name of the store of a transient or persistent publisher [default: from domain, node and
    /// topic]
    #[arg(long, value_name = "NAME")]
    store: Option<String>,
    /// Accepted for compatibility with ros2: the graph is watched all the time
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    spin_time: Option<Duration>,
    #[command(flatten)]
    sim_time: SimTimeFlag,
    /// Read the values from standard input
    #[arg(long, conflicts_with = "values")]
    stdin: bool,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
    /// Type of the messages (e.g. std_msgs/msg/String)
    message_type: String,
    /// The message's fields in YAML (e.g. 'data: Hello'); the others keep their defaults
    #[arg(
        default_value = "{}",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    values: String,
    // Last, since its help heading applies to all following flags.
    #[command(flatten)]
    qos: QosFlags,
    #[command(flatten)]
    mode: PublishMode,
}

impl Publish {
    /// Publishes until the flags end it, or until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let (message_type, session) = match self.local_type(cli) {
            Ok(message_type) => (message_type, None),
            Err(unknown) => {
                let session = self.open(cli)?;
                let announced = self.announced_type(&session)?;
                (announced.ok_or(unknown)?, Some(session))
            }
        };
        let mut template = MessageTemplate::from_yaml(&message_type, &self.yaml()?)?;
        let qos = self.qos.profile("default")?;
        let times = self.times();
        if self.required_subscriptions() == 0 && self.max_wait_time_secs.is_some() {
            bail!(
                "--max-wait-time-secs needs a wait: add --wait-matching-subscriptions N, --once or --times N"
            );
        }
        let session = match session {
            Some(session) => session,
            None => self.open(cli)?,
        };
        let clock = self.sim_time.clock(&session);
        let mut clock_warner = clock.warner();
        let topic = session.topic(&self.topic_name)?;
        let name = self.store_name(&qos, &session, &topic)?;
        let options = PublisherOptions::of_type(
            &message_type,
            self.topic_name.as_str().qos(session.qos(qos)),
        )
        .store(name);
        let options = self.mode.publisher(options);
        let publisher = session.node.create_publisher::<DynamicMessage>(options)?;
        let graph = session.context.graph();
        let mut mismatches = MismatchReporter::new(&graph, &topic);
        let mut spelling = SpellingCheck::new(&topic);
        self.wait_for_subscriptions(cli, &session, &publisher, |matched| {
            mismatches.report(cli.console);
            spelling.check(cli, &session, matched);
        })?;
        if times != 0 && session.context.is_shut_down() {
            return Err(Interrupted::now().into());
        }
        if !cli.console.json {
            let console = cli.console;
            console.progress(console.line("publisher: beginning loop"))?;
        }
        let period = Duration::try_from_secs_f64(1.0 / self.rate)
            .with_context(|| format!("--rate {}: the period is too long for a clock", self.rate))?;
        let mut pace = Pace::new(period, Instant::now());
        let mut simulated_pace = if clock.is_simulated() {
            Some(SimulatedPace::new(&session, period)?)
        } else {
            None
        };
        let mut refusal_notes = RefusalNotes::default();
        let mut count = 0;
        while !session.context.is_shut_down() {
            if let Some(pace) = &mut simulated_pace
                && !pace.wait(&session, || clock_warner.check(cli))
            {
                break;
            }
            count += 1;
            let message = template.stamped(clock.stamp())?;
            if self.print != 0 && count % self.print == 0 {
                let written = if cli.console.json {
                    let sent: serde_json::Value = serde_json::from_str(&message.to_json())?;
                    let output = json!({ "count": count, "topic": topic, "message": sent });
                    cli.console.json_line(&output)
                } else {
                    let text = python_repr::message(message);
                    cli.console.line(format!("publishing #{count}: {text}\n"))
                };
                cli.console.progress(written)?;
            }
            publish_when_accepted(cli, &session, &publisher, message, &mut refusal_notes)?;
            if times != 0 && count >= times {
                match self.keep_alive {
                    Some(time) => spin_until(&session, Instant::now() + time),
                    None => {
                        while publisher.unsent_count() > 0 && !session.context.is_shut_down() {
                            session.spin_once(Duration::from_millis(20));
                        }
                        publisher.wait_for_all_acked(ACK_TIMEOUT);
                    }
                }
                break;
            }
            mismatches.report(cli.console);
            spelling.check(cli, &session, publisher.matched_count());
            if simulated_pace.is_none() {
                spin_until(&session, pace.next());
                pace.take(Instant::now());
            }
        }
        if count < times {
            return Err(Interrupted::now().into());
        }
        Ok(())
    }

    fn open(&self, cli: &CliContext) -> Result<Session> {
        let name = self.node_name.as_deref();
        Session::open_with(cli, name, |options| {
            self.mode.context(self.sim_time.apply(options))
        })
    }

    fn local_type(&self, cli: &CliContext) -> Result<DynamicType> {
        let library = cli.library()?;
        let name = find_message_type(&library, &self.message_type)?;
        Ok(DynamicType::new(&library.describe(&name)?)?)
    }

    /// The type as an endpoint of the topic describes it; `None` if none has it.
    fn announced_type(&self, session: &Session) -> Result<Option<DynamicType>> {
        let topic = session.topic(&self.topic_name)?;
        let graph = session.discover(&DiscoveryFlags::default());
        let endpoints = graph.publishers(&topic).into_iter();
        let mut endpoints = endpoints.chain(graph.subscriptions(&topic));
        let wanted = &self.message_type;
        let is_wanted = |name: &str| name == wanted || name.replacen("/msg/", "/", 1) == *wanted;
        if !endpoints.any(|endpoint| is_wanted(&endpoint.topic_type)) {
            return Ok(None);
        }
        let found = session
            .node
            .fetch_topic_type(&topic, TYPE_TIMEOUT)
            .with_context(|| {
                format!(
                    "type '{wanted}' is not defined here, and no endpoint of {topic} describes it"
                )
            })?;
        Ok(Some(found).filter(|found| is_wanted(found.name())))
    }

    fn yaml(&self) -> Result<String> {
        if !self.stdin {
            return Ok(self.values.clone());
        }
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading the values from standard input")?;
        Ok(text)
    }

    /// Waits for subscriptions, and reports it every second. Calls `report` with their
    /// number meanwhile.
    fn wait_for_subscriptions(
        &self,
        cli: &CliContext,
        session: &Session,
        publisher: &Publisher<DynamicMessage>,
        mut report: impl FnMut(usize),
    ) -> Result<()> {
        let wanted = self.required_subscriptions();
        let started = Instant::now();
        let mut say_next = started;
        while publisher.matched_count() < wanted && !session.context.is_shut_down() {
            let now = Instant::now();
            if now >= say_next {
                cli.console.note(format!(
                    "Waiting for at least {wanted} matching subscription(s)..."
                ));
                say_next += Duration::from_secs(1);
            }
            if let Some(limit) = self.max_wait_time_secs
                && now.duration_since(started) >= limit
            {
                bail!(
                    "timed out after {} s waiting for subscriptions to {}: expected {wanted}, found {}; to find the reason: pteros topic why {}",
                    limit.as_secs_f64(),
                    publisher.topic(),
                    publisher.matched_count(),
                    publisher.topic()
                );
            }
            session.spin_once(Duration::from_millis(20));
            report(publisher.matched_count());
        }
        Ok(())
    }

    /// The name of the hidden node changes with every process, and the store's name
    /// must not.
    fn store_name(&self, qos: &QosProfile, session: &Session, topic: &str) -> Result<String> {
        let stores = matches!(
            qos.durability,
            DurabilityPolicy::Transient | DurabilityPolicy::Persistent
        );
        if let Some(name) = &self.store {
            if !stores {
                bail!(
                    "--store {name}: nothing is stored; add --qos-durability transient or persistent"
                );
            }
            return Ok(name.clone());
        }
        let node = match &self.node_name {
            Some(_) => session.node.fully_qualified_name(),
            None => "/topic_pub".into(),
        };
        Ok(default_name(session.context.domain_id(), &node, topic))
    }

    /// Number of messages to publish; 0 for no limit.
    fn times(&self) -> u64 {
        if self.once { 1 } else { self.times }
    }

    /// Number of subscriptions to wait for.
    fn required_subscriptions(&self) -> usize {
        self.wait_matching_subscriptions
            .unwrap_or(usize::from(self.times() != 0))
    }
}

/// How long to wait for the acknowledgement of the last message without
/// `--keep-alive`.
const ACK_TIMEOUT: Duration = Duration::from_millis(100);

/// Publishes; waits for a KEEP_ALL subscription without space as long as it is there. A
/// dead one costs its participant lease.
fn publish_when_accepted(
    cli: &CliContext,
    session: &Session,
    publisher: &Publisher<DynamicMessage>,
    message: &DynamicMessage,
    notes: &mut RefusalNotes,
) -> Result<()> {
    let mut is_first = true;
    loop {
        match publisher.publish(message) {
            Err(error @ PublishError::TimedOut { .. }) if !session.context.is_shut_down() => {
                is_first = false;
                if notes.is_due(Instant::now()) {
                    cli.console.note(format!("{error}; trying again"));
                }
            }
            outcome => {
                if is_first {
                    notes.end_episode();
                }
                return Ok(outcome.map(|_| ())?);
            }
        }
    }
}

/// Looks once, after the time of discovery, whether the topic is misspelt: whether nobody
/// subscribes to it, and somebody to a topic with a close name.
struct SpellingCheck<'t> {
    topic: &'t str,
    at: Option<Instant>,
}

impl<'t> SpellingCheck<'t> {
    /// Discovery on a loaded host takes no longer.
    const DELAY: Duration = Duration::from_millis(900);

    fn new(topic: &'t str) -> Self {
        Self {
            topic,
            at: Some(Instant::now() + Self::DELAY),
        }
    }

    fn check(&mut self, cli: &CliContext, session: &Session, matched: usize) {
        if self.at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.at = None;
        if matched > 0 {
            return;
        }
        let graph = session.context.graph();
        let mut topics = session.topics(&graph);
        topics.retain(|topic| !graph.subscriptions(&topic.name).is_empty());
        if topics.iter().any(|topic| topic.name == self.topic) {
            return;
        }
        let names = topics.iter().map(|topic| topic.name.as_str());
        if let Some(warning) = not_subscribed(self.topic, names) {
            cli.console.note(warning);
        }
    }
}

/// When to say that a publisher has no space: once, and again while that lasts. An
/// episode lasts while each message is refused at first.
#[derive(Default)]
struct RefusalNotes {
    next_at: Option<Instant>,
}

impl RefusalNotes {
    /// How long an episode lasts before a second note: longer than the lease of a
    /// participant, after which a dead subscription is gone.
    const PERIOD: Duration = Duration::from_secs(25);

    /// Whether to say now that a message is refused.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.next_at.is_none_or(|at| now >= at);
        if is_due {
            self.next_at = Some(now + Self::PERIOD);
        }
        is_due
    }

    /// Notes a message that was accepted at once.
    fn end_episode(&mut self) {
        self.next_at = None;
    }
}

/// Serves the network until the given instant or Ctrl-C.
fn spin_until(session: &Session, end: Instant) {
    while !session.context.is_shut_down() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        session.spin_once(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_space_is_told_once_and_again_after_a_lease() {
        let lease = pteros::ContextOptions::default()
            .participant_lease
            .unwrap_or(Duration::from_secs(20));
        let begin = Instant::now();
        let mut notes = RefusalNotes::default();
        let mut told = |from: Duration, until: Duration| {
            let tries = (from.as_millis()..until.as_millis()).step_by(100);
            let at = |millis: u128| begin + Duration::from_millis(u64::try_from(millis).unwrap());
            tries.filter(|millis| notes.is_due(at(*millis))).count()
        };
        // A killed subscription: refused for a lease, and a little longer.
        let end = lease + Duration::from_secs(2);
        assert_eq!(told(Duration::ZERO, end), 1);
        assert_eq!(told(end, 2 * RefusalNotes::PERIOD), 1);
        assert_eq!(told(2 * RefusalNotes::PERIOD, 3 * RefusalNotes::PERIOD), 1);
        // The next episode is reported at once.
        notes.end_episode();
        assert!(notes.is_due(begin + 3 * RefusalNotes::PERIOD + Duration::from_millis(1)));
    }
}
