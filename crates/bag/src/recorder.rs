//! Recorder: subscribes to topics of the graph and writes them as a bag.
//!
//! Subscriptions are serialized: no message is decoded. A writer thread compresses and
//! writes. The thread that spins the node calls [`Recorder::poll`] regularly, which
//! subscribes to new topics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pteros::clock::Clock;
use pteros::event_handler::EndpointEvent;
use pteros::graph::EndpointInfo;
use pteros::interfaces::rosbag2_interfaces::msg;
use pteros::msg::library::InterfaceLibrary;
use pteros::qos::{DurabilityPolicy, QosProfile, ReliabilityPolicy};
use pteros::subscription::{DeliveryPath, SerializedMessage, SerializedType};
use pteros::{
    Graph, NamedQosExt, Node, Publisher, Sample, SampleInfo, Subscription, SubscriptionOptions,
};

use crate::accounting::TopicAccount;
use crate::compression_queue::{CompressionQueue, FileCompression};
use crate::definitions::definition_text;
use crate::error::BagError;
use crate::loss_report::LossReport;
use crate::message_cache::{MessageCache, MessageCacheOptions, Received};
use crate::metadata::BagMetadata;
use crate::recorder_services::Services;
use crate::saturating_instant::saturating_add;
use crate::topic::BagTopic;
use crate::topic_filter::TopicFilter;
use crate::unpublished_events::UnpublishedEvents;
use crate::writer::{BagOptions, BagWriter};

/// History depth of a subscription, until the executor takes the messages.
const DEPTH: usize = 1000;
/// Longest time for which a message stays in memory before it is written to the file, and
/// between two syncs of the file.
const FLUSH_PERIOD: Duration = Duration::from_secs(1);
/// Latency budget of a context that only records
/// ([`SharedMemoryOptions`](pteros::shared_memory::SharedMemoryOptions::latency_budget)).
/// With it, publishers do not wake the recorder for each message.
pub const RECORDER_LATENCY_BUDGET: Duration = Duration::from_millis(5);
/// Longest plausible wait in shared memory. For an older message, the source timestamp
/// has another meaning or the message was sent again.
const SHARED_MEMORY_WAIT_MAX: Duration = Duration::from_secs(1);
/// Recorded QoS profiles per topic.
const OFFERED_MAX: usize = 100;
/// Timeout for a publisher's description of its type.
const TYPE_TIMEOUT: Duration = Duration::from_millis(500);
/// Topics with a note, and topics that cannot be subscribed to. Further ones get no note.
const NOTED_MAX: usize = 1000;
/// Topic of the recorder itself, which is not recorded.
const SPLIT_TOPIC: &str = "events/write_split";

/// Topics to record, and recording options.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// Selected topics.
    pub filter: TopicFilter,
    /// Compression, splits and other options of the bag.
    pub bag: BagOptions,
    /// Limit of message bytes that wait for the writer. Further messages are dropped and
    /// counted.
    pub cache_bytes: usize,
    /// Starts paused, until `~/resume`.
    pub start_paused: bool,
    /// Includes topics that only have subscriptions.
    pub include_unpublished: bool,
    /// Excludes topics without other subscriptions.
    pub ignore_leaf_topics: bool,
    /// Discovers topics only once.
    pub no_discovery: bool,
    /// Time between two checks for new topics.
    pub polling_interval: Duration,
    /// QoS of subscriptions by topic. Other subscriptions use the QoS that fits the
    /// publishers.
    pub qos_overrides: BTreeMap<String, QosProfile>,
    /// Definitions of types. Publishers describe types that it lacks.
    pub library: InterfaceLibrary,
    /// Uses `/clock` for log times. Nothing is recorded before its first message.
    pub use_sim_time: bool,
    /// Keeps the latest messages in memory, up to `cache_bytes`, and writes them when
    /// `~/snapshot` is called.
    pub is_snapshot: bool,
    /// Thread that writes the file.
    pub writer_thread: WriterThread,
    /// Compressing threads, if the writer has its own thread.
    pub file_compression: FileCompression,
}

/// Thread that writes the file of a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterThread {
    /// A dedicated thread, and another one that syncs. A slow disk blocks nothing else.
    #[default]
    Own,
    /// The thread that calls [`Recorder::write_next`], for programs and simulations that
    /// schedule disk access themselves.
    Caller,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            filter: TopicFilter::default(),
            bag: BagOptions::default(),
            cache_bytes: 100 << 20,
            start_paused: false,
            include_unpublished: false,
            ignore_leaf_topics: false,
            no_discovery: false,
            polling_interval: Duration::from_millis(100),
            qos_overrides: BTreeMap::new(),
            library: pteros::interfaces::library().clone(),
            use_sim_time: false,
            is_snapshot: false,
            writer_thread: WriterThread::Own,
            file_compression: FileCompression::default(),
        }
    }
}

/// Totals of a finished recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordingSummary {
    /// Content of the bag's `metadata.yaml`.
    pub metadata: BagMetadata,
    /// Loss accounts of the recorded topics, by name.
    pub accounts: BTreeMap<String, TopicAccount>,
    /// Selected topics that could not be subscribed to, with the reason; at most 1000.
    pub unrecorded: BTreeMap<String, String>,
    /// Events of the recorder's own topics that could not be published.
    pub unpublished_events: u64,
    /// Why messages were not written, or may be lost at a power cut.
    pub problem: Option<String>,
}

impl RecordingSummary {
    /// Messages in the bag, including repeated transient-local ones. After a problem, the
    /// messages known to be written, without repeated ones.
    pub fn messages(&self) -> u64 {
        let written = self.accounts.values().map(|account| account.written).sum();
        self.metadata.message_count.max(written)
    }

    /// Lost messages of all topics.
    pub fn lost(&self) -> u64 {
        self.accounts.values().map(TopicAccount::lost).sum()
    }
}

struct Recorded {
    input: TopicInput,
    subscription: Subscription<SerializedMessage>,
    /// Recorded QoS profiles of its publishers.
    profiles: Vec<QosProfile>,
}

/// Receives the messages of a topic.
#[derive(Clone)]
struct TopicInput {
    cache: Arc<MessageCache>,
    /// Source of log times, if they are simulated.
    clock: Option<Clock>,
    channel: u16,
    is_transient_local: bool,
}

impl TopicInput {
    fn receive(&self, sample: &Sample<SerializedMessage>) {
        let info = sample.info();
        let log_time = match &self.clock {
            None => nanos(arrival(info)),
            Some(clock) => match u64::try_from(clock.now().as_nanos()) {
                Ok(now) if now > 0 => now,
                _ => return,
            },
        };
        let message = Received {
            channel: self.channel,
            publisher: u128::from_be_bytes(info.publisher_gid.to_bytes()),
            sequence: info.sequence,
            log_time,
            publish_time: info.source_timestamp.map_or(log_time, nanos),
            is_transient_local: self.is_transient_local,
        };
        self.cache.receive(message, sample);
    }
}

/// Records topics until [`Recorder::finish`].
///
/// It offers `~/pause`, `~/resume`, `~/is_paused` and `~/split_bagfile`, and `~/snapshot`
/// in snapshot mode. Like rosbag2's recorder, it publishes `events/write_split` and
/// `events/rosbag2_messages_lost`.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros_bag::{Recorder, RecorderOptions, TopicFilter};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("recorder")?;
/// let executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&node)?;
/// let options = RecorderOptions { filter: TopicFilter::all(), ..Default::default() };
/// let mut recorder = Recorder::start(&node, "my_bag".as_ref(), options)?;
/// while !context.is_shut_down() {
///     for note in recorder.poll(std::time::Instant::now()) {
///         println!("{note}");
///     }
///     executor.spin_once(std::time::Duration::from_millis(50));
/// }
/// println!("{} messages lost", recorder.finish()?.lost());
/// # Ok(())
/// # }
/// ```
///
/// Dropping it ends the bag as well, without reporting losses. Errors are logged then.
pub struct Recorder {
    node: Node,
    graph: Graph,
    options: RecorderOptions,
    cache: Arc<MessageCache>,
    /// The writer, if no thread has it.
    writer: Option<BagWriter>,
    recorded: BTreeMap<String, Recorded>,
    /// Topics with a note.
    noted: BTreeSet<String>,
    /// Channels of the topics known to the writer, subscribed or not.
    channels: BTreeMap<String, u16>,
    /// Topics that cannot be subscribed to, with the reason.
    unrecorded: BTreeMap<String, String>,
    unpublished: UnpublishedEvents,
    /// Whether a failed sync was noted.
    is_sync_noted: bool,
    is_finished: bool,
    revision: Option<u64>,
    next_look: Option<Instant>,
    next_flush: Option<Instant>,
    splits: Publisher<msg::WriteSplitEvent>,
    loss_report: LossReport,
    _services: Services,
}

impl Recorder {
    /// Creates the bag, its writer thread and the node's services.
    ///
    /// # Errors
    /// The folder exists, the filter selects nothing, or an endpoint of the node cannot
    /// be created.
    pub fn start(node: &Node, folder: &Path, options: RecorderOptions) -> Result<Self, BagError> {
        if options.filter.is_empty() {
            return Err(BagError::Invalid(
                "no topics to record; name topics, or record all of them with -a".into(),
            ));
        }
        if options.is_snapshot && options.cache_bytes == 0 {
            return Err(BagError::Invalid(
                "a snapshot needs memory for its messages; give a --max-cache-size above 0".into(),
            ));
        }
        let mut writer = BagWriter::create(folder, options.bag.clone())?;
        let cache = MessageCache::new(MessageCacheOptions {
            chunk_bytes: writer.chunk_bytes(),
            cache_bytes: options.cache_bytes.max(1),
            is_paused: options.start_paused,
            is_snapshot: options.is_snapshot,
            has_sync_thread: options.writer_thread == WriterThread::Own,
        });
        let writer = match options.writer_thread {
            WriterThread::Caller => Some(writer),
            WriterThread::Own => {
                let (writes, syncs) = (cache.clone(), cache.clone());
                let context = node.context();
                if options.bag.compress_files {
                    let queue = CompressionQueue::start(context, options.file_compression)
                        .map_err(BagError::io("starting the threads of", folder))?;
                    writer.compress_with(queue);
                }
                context
                    .spawn_thread("bag_writer", move || writes.write_all(writer))
                    .and_then(|()| context.spawn_thread("bag_sync", move || syncs.sync_all()))
                    .map_err(|error| {
                        cache.stop();
                        BagError::io("starting the threads of", folder)(error)
                    })?;
                None
            }
        };
        let create = || {
            Ok::<_, BagError>((
                node.create_publisher(SPLIT_TOPIC.keep_last(10))?,
                LossReport::new(node)?,
                Services::new(node, &cache, options.is_snapshot)?,
            ))
        };
        let (splits, loss_report, services) = match create() {
            Ok(created) => created,
            Err(error) => {
                cache.close(writer);
                return Err(error);
            }
        };
        Ok(Self {
            node: node.clone(),
            graph: node.context().graph(),
            options,
            cache,
            writer,
            recorded: BTreeMap::new(),
            noted: BTreeSet::new(),
            channels: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            unpublished: UnpublishedEvents::default(),
            is_sync_noted: false,
            is_finished: false,
            revision: None,
            next_look: None,
            next_flush: None,
            splits,
            loss_report,
            _services: services,
        })
    }

    /// Subscribes to new topics, flushes and syncs data older than a second, and
    /// publishes splits. Returns notes for the user. Blocks for up to half a second while
    /// a publisher describes a type.
    ///
    /// No problem ends the recording. A topic that cannot be subscribed to is noted once,
    /// and retried when the graph changes. An event that cannot be published is noted
    /// once and counted. A failed sync is noted once. The [summary](RecordingSummary) has
    /// all of them.
    pub fn poll(&mut self, now: Instant) -> Vec<String> {
        let mut notes = Vec::new();
        if self.next_flush.is_none_or(|due| now >= due) {
            self.cache.flush();
            self.cache.sync();
            self.next_flush = Some(saturating_add(now, FLUSH_PERIOD));
        }
        if !self.is_sync_noted
            && let Some(problem) = self.cache.sync_problem()
        {
            notes.push(format!("WARNING: {problem}; recording goes on"));
            self.is_sync_noted = true;
        }
        for split in self.cache.take_splits() {
            let published = self.splits.publish(&msg::WriteSplitEvent {
                closed_file: split.closed.display().to_string(),
                opened_file: split.opened.display().to_string(),
                node_name: self.node.fully_qualified_name(),
            });
            if let Err(error) = published {
                notes.extend(self.unpublished.count(self.splits.topic(), &error));
            }
        }
        self.note_incompatible(&mut notes);
        if self.loss_report.is_due(now) {
            let accounts = self.accounts();
            if let Err(error) = self.loss_report.publish(&accounts) {
                notes.extend(self.unpublished.count(self.loss_report.topic(), &error));
            }
        }
        if self.next_look.is_none_or(|due| now >= due) {
            self.next_look = Some(saturating_add(now, self.options.polling_interval));
            let revision = self.graph.revision();
            if self.revision != Some(revision) {
                self.look_for_publishers();
                if !self.has_everything() {
                    self.look_for_topics(&mut notes);
                }
                self.revision = Some(revision);
            }
        }
        notes
    }

    /// Records the QoS of later publishers. A profile is recorded as often as publishers
    /// with it existed at one time, so a restarted publisher adds nothing.
    fn look_for_publishers(&mut self) {
        for (name, recorded) in &mut self.recorded {
            let mut known = recorded.profiles.clone();
            for publisher in self.graph.publishers(name) {
                if let Some(at) = known.iter().position(|known| *known == publisher.qos) {
                    known.swap_remove(at);
                } else if recorded.profiles.len() < OFFERED_MAX {
                    recorded.profiles.push(publisher.qos.clone());
                    let channel = recorded.input.channel;
                    self.cache.add_offered_qos(channel, publisher.qos);
                }
            }
        }
    }

    /// Whether a topic has no note yet, and the limit allows one.
    fn is_first_note_of(&mut self, topic: &str) -> bool {
        self.noted.len() < NOTED_MAX && self.noted.insert(topic.to_owned())
    }

    /// Checks the graph again at the next [`poll`](Self::poll), even without discovery.
    pub fn look_again(&mut self) {
        self.revision = None;
        self.next_look = None;
    }

    fn has_everything(&self) -> bool {
        if self.options.no_discovery && self.revision.is_some() {
            return true;
        }
        let filter = &self.options.filter;
        let is_recorded = |topic: &String| self.recorded.contains_key(topic);
        filter.is_a_list()
            && filter.services.is_empty()
            && filter.actions.is_empty()
            && filter.topics.iter().all(is_recorded)
    }

    /// Names of the recorded topics.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.recorded.keys().map(String::as_str)
    }

    /// Why messages can no longer be written. A failed sync is not included:
    /// [`RecordingSummary::problem`] reports it.
    pub fn problem(&self) -> Option<String> {
        self.cache.problem()
    }

    /// The accounts until now, by topic.
    pub fn accounts(&self) -> BTreeMap<String, TopicAccount> {
        let mut by_channel = self.cache.accounts();
        let topics = self.recorded.iter().map(|(name, recorded)| {
            let mut account = by_channel
                .remove(&recorded.input.channel)
                .unwrap_or_default();
            let counts = recorded.subscription.counts();
            account.settle(counts.lost, counts.overwritten);
            (name.clone(), account)
        });
        topics.collect()
    }

    fn look_for_topics(&mut self, notes: &mut Vec<String>) {
        let own = [self.splits.topic(), self.loss_report.topic()].map(str::to_owned);
        for topic in self.graph.topics() {
            if self.recorded.contains_key(&topic.name) || own.contains(&topic.name) {
                continue;
            }
            let is_chosen = |ty: &String| self.options.filter.chooses(&topic.name, ty);
            if !topic.types.iter().any(is_chosen) {
                continue;
            }
            let [type_name] = topic.types.as_slice() else {
                if self.is_first_note_of(&topic.name) {
                    notes.push(format!(
                        "WARNING: topic [{}] has several types ({}) and is not recorded; give each type a topic of its own",
                        topic.name,
                        topic.types.join(", ")
                    ));
                }
                continue;
            };
            let publishers = self.graph.publishers(&topic.name);
            if publishers.is_empty() && !self.options.include_unpublished {
                continue;
            }
            if self.options.ignore_leaf_topics && self.graph.subscriptions(&topic.name).is_empty() {
                continue;
            }
            match self.subscribe(&topic.name, type_name, &publishers, notes) {
                Ok(()) => {
                    self.unrecorded.remove(&topic.name);
                }
                Err(error) => self.note_unrecorded(&topic.name, &error, notes),
            }
        }
    }

    fn note_unrecorded(&mut self, topic: &str, error: &BagError, notes: &mut Vec<String>) {
        if self.unrecorded.len() >= NOTED_MAX && !self.unrecorded.contains_key(topic) {
            return;
        }
        let reason = error.to_string();
        if self.unrecorded.insert(topic.to_owned(), reason).is_none() {
            notes.push(format!(
                "WARNING: topic [{topic}] is not recorded, and the others are: {error}"
            ));
        }
    }

    fn subscribe(
        &mut self,
        name: &str,
        type_name: &str,
        publishers: &[EndpointInfo],
        notes: &mut Vec<String>,
    ) -> Result<(), BagError> {
        let hash = publishers.iter().find_map(|publisher| publisher.type_hash);
        let definition = self.definition(name, type_name, publishers);
        if definition.is_empty() {
            notes.push(format!(
                "WARNING: topic [{name}]: nobody describes its type {type_name}; it is recorded all the same, but viewers cannot decode it. Give its package with --interfaces DIR"
            ));
        }
        let qos = match self.options.qos_overrides.get(name) {
            Some(profile) => profile.clone(),
            None => fitting_qos(publishers),
        };
        let topic = BagTopic {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            definition,
            serialization_format: "cdr".into(),
            offered_qos: publishers
                .iter()
                .map(|publisher| publisher.qos.clone())
                .collect(),
            type_hash: hash.map(|hash| hash.to_string()).unwrap_or_default(),
            foreign_schema: None,
        };
        let is_mixed = |is_strong: &dyn Fn(&QosProfile) -> bool| {
            let strong = publishers
                .iter()
                .filter(|publisher| is_strong(&publisher.qos))
                .count();
            strong > 0 && strong < publishers.len()
        };
        if is_mixed(&|qos| qos.reliability == ReliabilityPolicy::Reliable) {
            notes.push(format!(
                "WARNING: topic [{name}]: some publishers are reliable and some best effort; it is recorded best effort"
            ));
        }
        let (channel, is_new) = match self.channels.get(name) {
            Some(channel) => (*channel, false),
            None => (self.next_channel()?, true),
        };
        let input = TopicInput {
            cache: self.cache.clone(),
            clock: self.options.use_sim_time.then(|| self.node.clock()),
            channel,
            is_transient_local: self.options.bag.repeats(&topic),
        };
        let support = SerializedType::new(type_name, hash).any_version();
        let options = SubscriptionOptions::of_type(&support, name.qos(qos));
        // Registered first, so that the writer knows it before its messages.
        if is_new {
            self.channels.insert(name.to_owned(), channel);
            self.cache.add_topic(topic);
        }
        let receiver = input.clone();
        let subscription =
            self.node
                .create_subscription::<SerializedMessage>(options, move |sample| {
                    receiver.receive(&sample);
                })?;
        notes.push(format!("Subscribed to topic '{name}'"));
        self.recorded.insert(
            name.to_owned(),
            Recorded {
                input,
                subscription,
                profiles: publishers
                    .iter()
                    .map(|publisher| publisher.qos.clone())
                    .collect(),
            },
        );
        Ok(())
    }

    fn next_channel(&self) -> Result<u16, BagError> {
        u16::try_from(self.channels.len() + 1)
            .map_err(|_| BagError::Invalid("a bag has at most 65535 topics; record fewer".into()))
    }

    /// Definition of a type: from the library if that has the announced type, else from a
    /// publisher. Empty if unknown.
    fn definition(&self, topic: &str, type_name: &str, publishers: &[EndpointInfo]) -> String {
        let library = &self.options.library;
        let hashes: Vec<_> = publishers.iter().filter_map(|p| p.type_hash).collect();
        if let Ok(known) = library.describe(type_name)
            && hashes
                .first()
                .is_none_or(|hash| pteros::msg::hash::rihs01(&known) == *hash)
        {
            return definition_text(&known, library);
        }
        match self.graph.announced_type(topic, TYPE_TIMEOUT) {
            Ok(ty) => definition_text(&ty.description(), library),
            Err(error) => {
                tracing::debug!("type of {topic}: {error}");
                String::new()
            }
        }
    }

    /// Notes later publishers whose QoS does not match the subscription.
    fn note_incompatible(&mut self, notes: &mut Vec<String>) {
        for (name, recorded) in &self.recorded {
            while let Some(event) = recorded.subscription.take_event() {
                if matches!(event, EndpointEvent::IncompatibleQos { .. })
                    && self.noted.len() < NOTED_MAX
                    && self.noted.insert(name.clone())
                {
                    notes.push(format!(
                        "WARNING: topic [{name}]: a publisher's QoS does not fit the recorder's, and its messages are missing; see pteros topic why {name}, or give --qos-profile-overrides-path"
                    ));
                }
            }
        }
    }

    /// Writes the messages kept for a snapshot. Returns false outside snapshot mode. Does
    /// not wait for the disk.
    pub fn snapshot(&self) -> bool {
        self.cache.snapshot()
    }

    /// Writes the next queued part, with [`WriterThread::Caller`]. Returns false if none
    /// is queued, or if a thread writes. Blocks in the file system. Messages that could
    /// not be written are [counted](Self::accounts), with the [reason](Self::problem).
    pub fn write_next(&mut self) -> bool {
        let writer = self.writer.as_mut();
        writer.is_some_and(|writer| self.cache.write_next(writer))
    }

    /// Whether arriving messages are discarded, after `~/pause` or
    /// [`set_paused`](Self::set_paused).
    pub fn is_paused(&self) -> bool {
        self.cache.is_paused()
    }

    /// Starts a new file with the next chunk.
    pub fn split(&self) {
        self.cache.split();
    }

    /// Pauses or resumes. Messages that arrive while paused are not recorded.
    pub fn set_paused(&self, is_paused: bool) {
        self.cache.set_paused(is_paused);
    }

    /// Unsubscribes, writes the remaining messages and ends the bag. Blocks in the file
    /// system.
    ///
    /// # Errors
    /// The bag cannot be ended. Its messages are kept, and `pteros bag recover` completes
    /// it.
    pub fn finish(mut self) -> Result<RecordingSummary, BagError> {
        self.end()
    }

    fn end(&mut self) -> Result<RecordingSummary, BagError> {
        self.is_finished = true;
        // Samples that have arrived are recorded, although no thread spins now.
        for recorded in self.recorded.values() {
            while let Some(sample) = recorded.subscription.take() {
                recorded.input.receive(&sample);
            }
        }
        let writer = self.cache.close(self.writer.take());
        let accounts = self.accounts();
        let problem = self.cache.problem();
        let metadata = match (writer, &problem) {
            (Some(writer), None) => MessageCache::finish(writer, &accounts)?,
            _ => BagMetadata::default(),
        };
        // After a failed sync, messages are lost only at a power cut.
        let problems = problem.into_iter().chain(self.cache.sync_problem());
        let problem = problems.reduce(|one, other| format!("{one}; {other}"));
        Ok(RecordingSummary {
            metadata,
            accounts,
            unrecorded: std::mem::take(&mut self.unrecorded),
            unpublished_events: self.unpublished.total(),
            problem,
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let problem = match self.end() {
            Ok(summary) => summary.problem,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            tracing::warn!("a dropped recorder: {problem}");
        }
    }
}

/// Strongest QoS that matches all publishers: reliable or transient local only if all
/// publishers are.
fn fitting_qos(publishers: &[EndpointInfo]) -> QosProfile {
    let mut qos = QosProfile::default().keep_last(DEPTH);
    let all = |fits: &dyn Fn(&QosProfile) -> bool| publishers.iter().all(|p| fits(&p.qos));
    if !all(&|qos| qos.reliability == ReliabilityPolicy::Reliable) {
        qos = qos.best_effort();
    }
    if !publishers.is_empty() && all(&|qos| qos.durability != DurabilityPolicy::Volatile) {
        qos = qos.transient_local();
    }
    qos
}

/// Reception time of a message. In shared memory a message is available as soon as it is
/// published, on the same clock, however late it is taken.
fn arrival(info: &SampleInfo) -> SystemTime {
    let taken = info.received_timestamp;
    let in_memory = info.delivery_path == DeliveryPath::SharedMemory;
    let published = info.source_timestamp.filter(|source| {
        let waited = taken.duration_since(*source);
        in_memory && waited.is_ok_and(|waited| waited <= SHARED_MEMORY_WAIT_MAX)
    });
    published.unwrap_or(taken)
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::graph::Guid;

    #[test]
    fn a_message_in_shared_memory_came_when_it_was_published() {
        let taken = UNIX_EPOCH + Duration::from_secs(100);
        let came = |delivery_path, source_timestamp| {
            arrival(&SampleInfo {
                source_timestamp,
                received_timestamp: taken,
                sequence: 1,
                publisher_gid: Guid::UNKNOWN,
                delivery_path,
                instance: None,
            })
        };
        let published = taken.checked_sub(Duration::from_millis(4));
        assert_eq!(
            came(DeliveryPath::SharedMemory, published),
            published.unwrap()
        );
        // Delayed in transport, or from another clock.
        assert_eq!(came(DeliveryPath::Network, published), taken);
        assert_eq!(came(DeliveryPath::SharedMemory, None), taken);
        for odd in [
            taken.checked_sub(Duration::from_secs(9)),
            taken.checked_add(FLUSH_PERIOD),
        ] {
            assert_eq!(came(DeliveryPath::SharedMemory, odd), taken);
        }
    }
}
