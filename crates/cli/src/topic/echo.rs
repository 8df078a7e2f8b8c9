//! `pteros topic echo`.

use super::info::offers;
use super::known::{known_topic, only_type};
use super::mismatch::Mismatches;
use super::python_filter::as_content_filter;
use crate::interface::named::{full_or_as_written, known_message};
use crate::outcome::Interrupted;
use crate::python_repr;
use crate::qos_flags::QosFlags;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::told;
use crate::values::count;
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use clap::Args;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, Value, YamlOptions};
use pteros::qos::{DurabilityPolicy, QosProfile, ReliabilityPolicy};
use pteros::{Change, Graph, InstanceEnd, Sample, SampleInfo, SubscriptionOptions};
use serde_json::json;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Arguments of `topic echo`.
#[derive(Debug, Args)]
pub struct Echo {
    #[command(flatten)]
    pub flags: EchoFlags,
    /// Name of the topic (e.g. /chatter)
    pub topic_name: String,
    /// Its type (e.g. std_msgs/msg/String) [default: what the graph says]
    pub message_type: Option<String>,
    // Last, since its heading would take in what follows.
    #[command(flatten)]
    pub qos: QosFlags,
}

/// What `topic echo` and `service echo` have in common.
#[derive(Debug, Args)]
pub struct EchoFlags {
    /// Print the first message and exit
    #[arg(long)]
    once: bool,
    /// Stop after this many seconds; with --once it is an error if nothing came
    #[arg(long, value_name = "SECONDS", value_parser = crate::values::positive_seconds)]
    timeout: Option<Duration>,
    /// Print one field only (e.g. pose.pose.position, or ranges[0])
    #[arg(long)]
    field: Option<String>,
    /// Print all fields in one line, separated by commas
    #[arg(long)]
    csv: bool,
    /// Print everything, however long
    #[arg(short = 'f', long)]
    full_length: bool,
    /// Print at most this many elements of arrays and characters of strings
    #[arg(short = 'l', long, value_name = "N", default_value = "128", value_parser = count::<usize>)]
    truncate_length: usize,
    /// Leave out the contents of arrays
    #[arg(long)]
    no_arr: bool,
    /// Leave out the contents of strings
    #[arg(long)]
    no_str: bool,
    /// Print each array in one line
    #[arg(long, conflicts_with = "csv")]
    flow_style: bool,
    /// Do not report lost messages
    #[arg(long)]
    no_lost_messages: bool,
    /// Print the serialized bytes; the type's definition need not be known
    #[arg(long, conflicts_with_all = ["csv", "field", "flow_style"])]
    raw: bool,
    /// Print time stamps and numbers of each message too
    #[arg(short = 'i', long)]
    include_message_info: bool,
    /// Hear only messages for which this holds, filtered at the publisher where it can: DDS's
    /// SQL over fields (e.g. "pose.position.x > %0 AND header.frame_id = 'map'")
    #[arg(long, value_name = "EXPRESSION")]
    content_filter: Option<String>,
    /// The same in ros2's words, comparisons of fields of the message m (e.g.
    /// "m.pose.position.x > 1.5 and m.header.frame_id == 'map'")
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "content_filter")]
    filter: Option<String>,
    /// The value of %0, then of %1 …, in the filter; strings in quotes (e.g. "'map'")
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
    /// Prints messages until Ctrl-C or as the flags say.
    pub fn run(self, shared: &Shared) -> Result<()> {
        if self
            .flags
            .field
            .as_deref()
            .is_some_and(|field| field.trim_matches('.').is_empty())
        {
            bail!("--field is empty: name a field, such as data or header.stamp.sec");
        }
        let filter = match (&self.flags.content_filter, &self.flags.filter) {
            (None, Some(python)) => Some(as_content_filter(python)?),
            (filter, _) => filter.clone(),
        };
        let session = Session::open(shared, self.flags.node_name.as_deref())?;
        let topic = session.topic(&self.topic_name)?;
        let graph = session.discover(&self.flags.discovery);
        let type_name = self.type_name(shared, &session, &graph, &topic)?;
        let qos = self.choose_qos(shared, &graph, &topic)?;
        let message_type = if self.flags.raw && filter.is_none() {
            None
        } else {
            Some(self.message_type(shared, (&session, &graph), &topic, &type_name)?)
        };
        let hash = graph
            .publishers(&topic)
            .iter()
            .find_map(|info| info.type_hash);
        let (sender, samples) = channel();
        let forward = move |change: Change<Bytes>| {
            // The receiver lives as long as the subscription.
            let _ = sender.send(change);
        };
        let mut options = SubscriptionOptions::new(session.qos(qos)).on_change(forward);
        if let Some(reader) = message_type.as_ref().and_then(DynamicType::key_reader) {
            options = options.key_reader(reader);
        }
        if let (Some(expression), Some(ty)) = (&filter, &message_type) {
            options = options.message_type(ty);
            options = options.content_filter(expression, self.flags.filter_parameter.clone());
        }
        // Some types have a name of their own in DDS.
        let dds_name = message_type.as_ref().and_then(DynamicType::dds_name);
        let type_name = dds_name.unwrap_or(&type_name);
        let node = &session.node;
        let subscription =
            node.create_raw_subscription(&self.topic_name, type_name, hash, options)?;

        let end = self.flags.timeout.map(|timeout| Instant::now() + timeout);
        let mut printer = Printer::new(&self, shared, message_type.filter(|_| !self.flags.raw));
        let mut mismatches = Mismatches::new(&graph, &topic);
        while !session.context.is_shut_down() {
            let now = Instant::now();
            let left = end.map_or(TURN, |end| end.saturating_duration_since(now).min(TURN));
            session.spin_once(left);
            mismatches.report(shared.console);
            printer.report_lost(subscription.counts().lost);
            while let Ok(change) = samples.try_recv() {
                match change {
                    Change::End(end) => printer.print_end(&end)?,
                    Change::Sample(sample) => {
                        printer.print(&sample)?;
                        if self.flags.once {
                            return Ok(());
                        }
                    }
                }
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
        if self.flags.once && session.context.is_shut_down() {
            return Err(Interrupted.into());
        }
        if let (true, Some(timeout)) = (self.flags.once, self.flags.timeout) {
            bail!(
                "no message on {topic} within {} s; to see what stands between: pteros topic why {topic}",
                timeout.as_secs_f64()
            );
        }
        Ok(())
    }

    fn type_name(
        &self,
        shared: &Shared,
        session: &Session,
        graph: &Graph,
        topic: &str,
    ) -> Result<String> {
        match &self.message_type {
            // Raw bytes need no definition, so any name is good.
            Some(name) if self.flags.raw => Ok(name.clone()),
            Some(name) => {
                let library = shared.library()?;
                // Of introspection: such types are in no file of their own.
                match name.ends_with("_Event") && library.describe(name).is_ok() {
                    true => Ok(name.clone()),
                    false => known_message(&library, name),
                }
            }
            None => {
                let known = known_topic(session, graph, topic).with_context(|| {
                    format!("cannot tell the type of '{topic}'; to wait for it, give the type too")
                })?;
                only_type(&known, "append the one you mean to the command")
            }
        }
    }

    /// By its definition, or else as the topic's endpoints tell it.
    fn message_type(
        &self,
        shared: &Shared,
        (session, graph): (&Session, &Graph),
        topic: &str,
        type_name: &str,
    ) -> Result<DynamicType> {
        let library = shared.library()?;
        let known = full_or_as_written(&library, type_name);
        let problem = match library.describe(&known) {
            Ok(description) => return Ok(DynamicType::new(&description)?),
            Err(problem) => problem,
        };
        told::of_topic(session, graph, topic).map_err(|silence| {
            anyhow::Error::from(problem).context(format!(
                "topic '{topic}' is of type {type_name}, whose definition is not known here, and {silence}: {}, or use --raw",
                crate::shared::MORE_INTERFACES
            ))
        })
    }

    /// As ros2: sensor_data, made reliable or transient local if every
    /// publisher is, so that all of them match and most is received.
    fn choose_qos(&self, shared: &Shared, graph: &Graph, topic: &str) -> Result<QosProfile> {
        let mut qos = self.qos.profile("sensor_data")?;
        let offers = offers(graph, topic);
        if self.qos.overrides_anything() || offers.is_empty() {
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
                shared.console.remark(format!(
                    "Some, but not all, publishers are offering {policy}. Falling back to {fallback} as it will connect to all publishers"
                ));
            }
        }
        Ok(qos)
    }
}

/// The longest sleep between looks at the clock and at Ctrl-C.
const TURN: Duration = Duration::from_millis(100);

struct Printer<'a> {
    echo: &'a Echo,
    shared: &'a Shared,
    message_type: Option<DynamicType>,
    options: YamlOptions,
    received: u64,
    lost: u64,
}

impl<'a> Printer<'a> {
    fn new(echo: &'a Echo, shared: &'a Shared, message_type: Option<DynamicType>) -> Self {
        let options = YamlOptions {
            flow_style: echo.flags.flow_style,
            no_arr: echo.flags.no_arr,
            no_str: echo.flags.no_str,
            truncate_length: (!echo.flags.full_length).then_some(echo.flags.truncate_length),
        };
        Self {
            echo,
            shared,
            message_type,
            options,
            received: 0,
            lost: 0,
        }
    }

    fn print(&mut self, sample: &Sample<Bytes>) -> Result<()> {
        self.received += 1;
        let value = match &self.message_type {
            None => None,
            Some(ty) => {
                let message = match DynamicMessage::from_payload(ty, sample) {
                    Ok(message) => message,
                    Err(error) => {
                        // The publisher's mistake; the next message may be fine.
                        self.shared.console.remark(format!(
                            "a message of {} bytes does not decode as {}: {error}",
                            sample.len(),
                            ty.name()
                        ));
                        return Ok(());
                    }
                };
                Some(match &self.echo.flags.field {
                    Some(path) => message
                        .get(path.trim_matches('.'))
                        .context("--field")?
                        .into_owned(),
                    None => Value::Message(message),
                })
            }
        };
        if self.echo.flags.clear {
            self.shared.console.text("\x1b[H\x1b[2J")?;
        }
        let info = Info::new(sample.info(), self.received);
        if self.shared.console.json {
            return self.print_json(sample, value.as_ref(), &info);
        }
        self.shared
            .console
            .text(&self.text(sample, value.as_ref(), &info))?;
        Ok(())
    }

    /// Says that an instance of a type with a key has ended: as a comment, so
    /// that what reads the messages is not disturbed.
    fn print_end(&self, end: &InstanceEnd<Bytes>) -> Result<()> {
        let Some(ty) = &self.message_type else {
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
        let console = &self.shared.console;
        if console.json {
            let line = json!({ "instance": key, "state": state });
            return Ok(console.json_line(&line)?);
        }
        let key = serde_json::Value::Object(key);
        if self.echo.flags.csv || self.echo.flags.field.is_some() {
            console.remark(format!("instance {key}: {state}"));
            return Ok(());
        }
        Ok(console.text(&format!("# instance {key}: {state}\n---\n"))?)
    }

    fn text(&self, bytes: &[u8], value: Option<&Value>, info: &Info) -> String {
        let with_info = self.echo.flags.include_message_info;
        match value {
            Some(Value::Message(message)) if self.echo.flags.csv => {
                let fields = message.to_csv(&self.options);
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
                let body = other.map_or_else(|| python_repr::bytes(bytes), python_repr::printed);
                format!("{head}{body}\n---\n")
            }
        }
    }

    fn print_json(&self, bytes: &[u8], value: Option<&Value>, info: &Info) -> Result<()> {
        let message = match value {
            None => json!({ "raw": hex(bytes) }),
            Some(value) => serde_json::from_str(&value.to_json())?,
        };
        let answer = if self.echo.flags.include_message_info {
            json!({ "info": info.json(), "message": message })
        } else {
            message
        };
        Ok(self.shared.console.json_line(&answer)?)
    }

    /// Says how many messages were lost since the last call.
    fn report_lost(&mut self, lost: u64) {
        let change = lost.saturating_sub(self.lost);
        self.lost = lost;
        if change > 0 && !self.echo.flags.no_lost_messages {
            self.shared.console.remark(format!(
                "A message was lost!!!\n\ttotal count change:{change}\n\ttotal count: {lost}---"
            ));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What ros2 calls the message info; times in nanoseconds since 1970.
struct Info {
    source: u128,
    received: u128,
    publication: i64,
    reception: u64,
}

impl Info {
    fn new(info: &SampleInfo, reception: u64) -> Self {
        let nanoseconds = |time: SystemTime| {
            time.duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos()
        };
        Self {
            source: info.source_time.map_or(0, nanoseconds),
            received: nanoseconds(info.reception_time),
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
