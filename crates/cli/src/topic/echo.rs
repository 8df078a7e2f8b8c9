//! `pteros topic echo`.

use super::info::offered_qos;
use super::lookup::{message_type, type_name};
use super::mismatch::MismatchReporter;
use super::python_filter::PythonFilter;
use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::misspelt::not_published;
use crate::python_repr;
use crate::qos_flags::QosFlags;
use crate::session::{DiscoveryFlags, Session};
use crate::value_parsers::count;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::NamedQosExt;
use pteros::log::escape_row;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, MessageField, Value, YamlOptions};
use pteros::qos::{DurabilityPolicy, QosProfile, ReliabilityPolicy};
use pteros::subscription::SerializedMessage;
use pteros::subscription::SerializedType;
use pteros::{
    Graph, Sample, SampleInfo, SubscriptionOptions,
    instance::{EndedInstance, ReceivedChange},
    wait_set::WaitSet,
};
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Arguments of `topic echo`.
#[derive(Debug, Args)]
pub struct Echo {
    #[command(flatten)]
    pub flags: EchoFlags,
    /// Name of the topic (e.g. /chatter)
    pub topic_name: String,
    /// Type of the topic (e.g. std_msgs/msg/String) [default: from the graph]
    pub message_type: Option<String>,
    // Last, since its help heading applies to all following flags.
    #[command(flatten)]
    pub qos: QosFlags,
}

/// Flags of `topic echo` and `service echo`.
#[derive(Debug, Args)]
pub struct EchoFlags {
    /// Print the first message and exit
    #[arg(long)]
    once: bool,
    /// Stop after this many seconds; with --once it is an error if no message was
    /// received
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    timeout: Option<Duration>,
    /// Print only one field (e.g. pose.pose.position, or ranges[0])
    #[arg(long)]
    field: Option<String>,
    /// Print all fields in one line, separated by commas
    #[arg(long)]
    csv: bool,
    /// Print arrays and strings in full length
    #[arg(short = 'f', long)]
    full_length: bool,
    /// Print at most this many elements of arrays and characters of strings
    /// [default: 128; with --json all of them]
    #[arg(short = 'l', long, value_name = "N", value_parser = count::<usize>)]
    truncate_length: Option<usize>,
    /// Leave out the contents of arrays, also with --json
    #[arg(long)]
    no_arr: bool,
    /// Leave out the contents of strings, also with --json
    #[arg(long)]
    no_str: bool,
    /// Print each array in one line
    #[arg(long, conflicts_with = "csv")]
    flow_style: bool,
    /// Do not report lost messages
    #[arg(long)]
    no_lost_messages: bool,
    /// Print the serialized bytes; no type definition is needed
    #[arg(long, conflicts_with_all = ["csv", "field", "flow_style"])]
    raw: bool,
    /// Print timestamps and sequence numbers of each message too
    #[arg(short = 'i', long)]
    include_message_info: bool,
    /// Content filter, applied at the publisher if possible: an SQL expression of
    /// DDS over fields (e.g. "pose.position.x > %0 AND header.frame_id = 'map'")
    #[arg(long, value_name = "EXPRESSION")]
    content_filter: Option<String>,
    /// Python expression over the message m, or over its field with --field; only
    /// messages of which it is true are printed (e.g. "len(m.ranges) > 3")
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "content_filter")]
    filter: Option<String>,
    /// Value of the filter parameter %0, then %1 …; strings in quotes (e.g.
    /// "'map'")
    #[arg(
        long,
        value_name = "VALUE",
        requires = "content_filter",
        allow_hyphen_values = true
    )]
    filter_parameter: Vec<String>,
    /// Clear the screen before each message
    #[arg(short = 'c', long)]
    clear: bool,
    /// Name of the echoing node [default: a hidden name]
    #[arg(short = 'n', long, value_name = "NAME")]
    node_name: Option<String>,
    #[command(flatten)]
    pub discovery: DiscoveryFlags,
}

impl Echo {
    /// Prints messages until Ctrl-C or until the flags end it.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if self
            .flags
            .field
            .as_deref()
            .is_some_and(|field| field.trim_matches('.').is_empty())
        {
            bail!("--field is empty: name a field, such as data or header.stamp.sec");
        }
        let filter = self.flags.content_filter.clone();
        let python = self.flags.filter.as_deref();
        let python = python.map(PythonFilter::parse).transpose()?;
        let session = Session::open(cli, self.flags.node_name.as_deref())?;
        let topic = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.flags.discovery);
        let type_name = match &self.message_type {
            // Raw output needs no definition, so any type name is accepted.
            Some(name) if self.flags.raw => name.clone(),
            named => type_name(cli, &session, &graph, &topic, named.as_deref())?,
        };
        if self.message_type.is_some() {
            let topics = session.topics(&graph);
            if topics.iter().all(|known| known.name != topic) {
                let names = topics.iter().map(|known| known.name.as_str());
                cli.console.note(not_published(&topic, names));
            }
        }
        let qos = self.choose_qos(cli, &graph, &topic)?;
        let needs_type = !self.flags.raw || filter.is_some() || python.is_some();
        let message_type = if !needs_type {
            None
        } else {
            let hint = ", or use --raw";
            Some(message_type(cli, &session, &topic, &type_name, hint)?)
        };
        let publishers = graph.publishers(&topic);
        let announced = publishers.iter().find_map(|info| info.type_hash);
        // Zenoh matches by the hash, and there may be no publisher yet.
        let defined = || cli.library().ok()?.type_hash(&type_name).ok();
        let hash = announced.or_else(defined);
        // Some types have a different name in DDS.
        let dds_name = message_type.as_ref().and_then(DynamicType::dds_name);
        let mut serialized = SerializedType::new(dds_name.unwrap_or(&type_name), hash);
        if !needs_type {
            serialized = serialized.any_version();
        }
        if let Some(reader) = message_type.as_ref().and_then(DynamicType::key_reader) {
            serialized = serialized.key_reader(reader);
        }
        if let (Some(_), Some(ty)) = (&filter, &message_type) {
            serialized = serialized.message_type(ty);
        }
        let topic_name = self.topic_name.as_str().qos(session.qos(qos));
        let mut options = SubscriptionOptions::of_type(&serialized, topic_name);
        if let (Some(expression), Some(_)) = (&filter, &message_type) {
            options = options.content_filter(expression, self.flags.filter_parameter.clone());
        }
        let subscription = session.node.create_polled_subscription(options)?;
        let mut wait_set = WaitSet::new(&session.context);
        wait_set.add(&subscription)?;

        let end = self.flags.timeout.map(|timeout| Instant::now() + timeout);
        let mut printer = Printer::new(&self, cli, message_type, python);
        let mut mismatches = MismatchReporter::new(&graph, &topic);
        while !session.context.is_shut_down() {
            let now = Instant::now();
            let left = end.map_or(POLL_PERIOD, |end| {
                end.saturating_duration_since(now).min(POLL_PERIOD)
            });
            wait_set.wait(left);
            mismatches.report(cli.console);
            printer.report_lost(subscription.counts().lost);
            // One at a time, so that a fast topic does not hide the end of the time.
            match subscription.take_change() {
                None => {}
                Some(ReceivedChange::End(end)) => printer.print_end(&end)?,
                Some(ReceivedChange::Sample(sample)) => {
                    let is_printed = printer.print(&sample)?;
                    if is_printed && self.flags.once {
                        return Ok(());
                    }
                }
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
        if self.flags.once && session.context.is_shut_down() {
            return Err(Interrupted::now().into());
        }
        if let (true, Some(timeout)) = (self.flags.once, self.flags.timeout) {
            bail!(
                "no message on {topic} within {} s; to find the reason: pteros topic why {topic}",
                timeout.as_secs_f64()
            );
        }
        Ok(())
    }

    /// The QoS that ros2 chooses: sensor_data, made reliable or transient local if
    /// every publisher is, so that the subscription matches all of them with the
    /// strongest policies.
    fn choose_qos(&self, cli: &CliContext, graph: &Graph, topic: &str) -> Result<QosProfile> {
        let mut qos = self.qos.profile("sensor_data")?;
        let offers = offered_qos(graph, topic);
        if self.qos.has_overrides() || offers.is_empty() {
            return Ok(qos);
        }
        let reliable = offers
            .iter()
            .filter(|offer| offer.reliability == ReliabilityPolicy::Reliable)
            .count();
        let transient = offers
            .iter()
            .filter(|offer| offer.durability != DurabilityPolicy::Volatile)
            .count();
        qos.reliability = if reliable == offers.len() {
            ReliabilityPolicy::Reliable
        } else {
            ReliabilityPolicy::BestEffort
        };
        qos.durability = if transient == offers.len() {
            DurabilityPolicy::TransientLocal
        } else {
            DurabilityPolicy::Volatile
        };
        for (count, policy, fallback) in [
            (reliable, "RELIABLE", "BEST_EFFORT"),
            (transient, "TRANSIENT_LOCAL", "VOLATILE"),
        ] {
            if count > 0 && count < offers.len() {
                cli.console.note(format!(
                    "Some, but not all, publishers are offering {policy}. Falling back to {fallback} as it will connect to all publishers"
                ));
            }
        }
        Ok(qos)
    }
}

/// Printed length of arrays and strings in text, as in ros2.
const TRUNCATE_LENGTH: usize = 128;
/// Largest time between two checks of the clock and of Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(100);

struct Printer<'a> {
    echo: &'a Echo,
    cli: &'a CliContext,
    message_type: Option<DynamicType>,
    python: Option<PythonFilter>,
    options: YamlOptions,
    received: u64,
    lost: u64,
}

impl<'a> Printer<'a> {
    fn new(
        echo: &'a Echo,
        cli: &'a CliContext,
        message_type: Option<DynamicType>,
        python: Option<PythonFilter>,
    ) -> Self {
        let by_default = (!cli.console.json).then_some(TRUNCATE_LENGTH);
        let truncate_length = echo.flags.truncate_length.or(by_default);
        let options = YamlOptions {
            flow_style: echo.flags.flow_style,
            no_arr: echo.flags.no_arr,
            no_str: echo.flags.no_str,
            truncate_length: truncate_length.filter(|_| !echo.flags.full_length),
        };
        Self {
            echo,
            cli,
            message_type,
            python,
            options,
            received: 0,
            lost: 0,
        }
    }

    /// Prints a message; false if the filter leaves it out, or if it cannot be
    /// decoded.
    fn print(&mut self, sample: &Sample<SerializedMessage>) -> Result<bool> {
        self.received += 1;
        let message = match &self.message_type {
            None => None,
            Some(ty) => match DynamicMessage::from_payload(ty, sample) {
                Ok(message) => Some(message),
                Err(error) => {
                    // An error of the publisher. Later messages may be valid.
                    self.cli.console.note(format!(
                        "a message of {} bytes cannot be decoded as {}: {error}",
                        sample.len(),
                        ty.name()
                    ));
                    return Ok(false);
                }
            },
        };
        let path = field_path(&self.echo.flags);
        if let (Some(filter), Some(message)) = (&mut self.python, &message) {
            let accepted = match path {
                Some(path) => filter.accepts(&*message.get(path).context("--field")?)?,
                None => filter.accepts(&Value::Message(message.clone()))?,
            };
            if !accepted {
                return Ok(false);
            }
        }
        let message = message.filter(|_| !self.echo.flags.raw);
        if self.echo.flags.clear {
            self.cli.console.styled("\x1b[H\x1b[2J")?;
        }
        let info = MessageInfo::new(sample.info(), self.received);
        if self.cli.console.json {
            self.print_json(sample, message.as_ref(), &info)?;
            return Ok(true);
        }
        let mut field = None;
        let value = match (message, self.field()) {
            (None, _) => None,
            (Some(message), None) => Some(Value::Message(message)),
            (Some(message), Some(path)) => {
                field = Some(message.field_at(path).context("--field")?);
                Some(message.get(path).context("--field")?.into_owned())
            }
        };
        let text = self.text(sample, value.as_ref(), field.as_ref(), &info);
        self.cli.console.text(&text)?;
        Ok(true)
    }

    /// Prints the end of an instance as a comment, so that programs which parse the
    /// messages ignore it.
    fn print_end(&self, end: &EndedInstance<SerializedMessage>) -> Result<()> {
        let Some(ty) = self.message_type.as_ref().filter(|_| !self.echo.flags.raw) else {
            return Ok(());
        };
        let Ok(message) = DynamicMessage::from_key_payload(ty, end.key()) else {
            return Ok(());
        };
        let mut key = serde_json::Map::new();
        for field in ty.fields().iter().filter(|field| field.is_key) {
            let value = message.get(&field.name)?;
            key.insert(field.name.clone(), serde_json::from_str(&value.to_json())?);
        }
        let state = end.state().name();
        let console = &self.cli.console;
        if console.json {
            let line = json!({ "instance": key, "state": state });
            return Ok(console.json_line(&line)?);
        }
        let key = serde_json::Value::Object(key);
        if self.echo.flags.csv || self.echo.flags.field.is_some() {
            console.note(format!("instance {key}: {state}"));
            return Ok(());
        }
        Ok(console.text(&format!("# instance {key}: {state}\n---\n"))?)
    }

    fn text(
        &self,
        bytes: &[u8],
        value: Option<&Value>,
        field: Option<&MessageField>,
        info: &MessageInfo,
    ) -> String {
        let with_info = self.echo.flags.include_message_info;
        match value {
            Some(Value::Message(message)) if self.echo.flags.csv => {
                // A line break of a text would begin another record.
                let fields = message.to_csv(&self.options);
                let fields = escape_row(&fields);
                if with_info {
                    format!("{},{fields}\n", info.csv())
                } else {
                    format!("{fields}\n")
                }
            }
            Some(Value::Message(message)) => {
                let head = if with_info {
                    info.yaml() + "---\n"
                } else {
                    String::new()
                };
                format!("{head}{}---\n", message.to_yaml(&self.options))
            }
            other => {
                let head = if with_info {
                    format!(
                        "---Got new message, message info:---\n{}---Message data:---\n",
                        info.yaml()
                    )
                } else {
                    String::new()
                };
                let shown = |value: &Value| python_repr::value(value, field);
                let body = other.map_or_else(|| python_repr::bytes(bytes), shown);
                format!("{head}{body}\n---\n")
            }
        }
    }

    /// The path of `--field`.
    fn field(&self) -> Option<&str> {
        field_path(&self.echo.flags)
    }

    fn print_json(
        &self,
        bytes: &[u8],
        message: Option<&DynamicMessage>,
        info: &MessageInfo,
    ) -> Result<()> {
        let message = match (message, self.field()) {
            (None, _) => json!({ "raw": hex(bytes) }),
            (Some(message), None) => serde_json::from_str(&message.to_json_with(&self.options))?,
            (Some(message), Some(path)) => {
                let text = message.to_json_at(path, &self.options).context("--field")?;
                serde_json::from_str(&text)?
            }
        };
        let output = if self.echo.flags.include_message_info {
            json!({ "info": info.json(), "message": message })
        } else {
            message
        };
        Ok(self.cli.console.json_line(&output)?)
    }

    /// Reports messages lost since the last call.
    fn report_lost(&mut self, lost: u64) {
        let change = lost.saturating_sub(self.lost);
        self.lost = lost;
        if change > 0 && !self.echo.flags.no_lost_messages {
            self.cli.console.note(format!(
                "A message was lost!!!\n\ttotal count change:{change}\n\ttotal count: {lost}---"
            ));
        }
    }
}

fn field_path(flags: &EchoFlags) -> Option<&str> {
    let path = flags.field.as_deref();
    path.map(|path| path.trim_matches('.'))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// ros2's message info; times in nanoseconds since 1970.
struct MessageInfo {
    source: u128,
    received: u128,
    publication: i64,
    reception: u64,
}

impl MessageInfo {
    fn new(info: &SampleInfo, reception: u64) -> Self {
        let nanoseconds = |time: SystemTime| {
            time.duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos()
        };
        Self {
            source: info.source_timestamp.map_or(0, nanoseconds),
            received: nanoseconds(info.received_timestamp),
            publication: info.sequence,
            reception,
        }
    }

    fn yaml(&self) -> String {
        format!(
            "publication_sequence_number: {}\nreceived_timestamp: {}\nreception_sequence_number: {}\nsource_timestamp: {}\n",
            self.publication, self.received, self.reception, self.source
        )
    }

    fn csv(&self) -> String {
        format!(
            "{},{},{},{}",
            self.source, self.received, self.publication, self.reception
        )
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "source_timestamp": u64::try_from(self.source).ok(),
            "received_timestamp": u64::try_from(self.received).ok(),
            "publication_sequence_number": self.publication,
            "reception_sequence_number": self.reception,
        })
    }
}
