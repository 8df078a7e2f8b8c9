//! Bag writer: a folder of MCAP files, split by size or duration, with `metadata.yaml`.
//!
//! Nothing is overwritten: the folder must not exist. [`BagWriter::write`] builds chunks
//! itself. A recorder builds them elsewhere and passes them to
//! [`BagWriter::write_chunk`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pteros::qos::QosProfile;

use crate::accounting::{LOSS_RECORD, TopicAccount, to_texts};
use crate::compression_queue::CompressionQueue;
use crate::definitions::schema_encoding;
use crate::error::BagError;
use crate::file_compression::{COMPRESSED_ENDING, compress_file};
use crate::file_store::{BagFile, FileStore, FileSystem};
use crate::mcap::{
    ChannelRecord, ChunkBuilder, Compression, CompressionLevel, McapWriter, SchemaRecord,
    parse_chunk,
};
use crate::metadata::{BagMetadata, FileMetadata, METADATA_FILE, TopicMetadata};
use crate::qos_text::write_profiles;
use crate::topic::BagTopic;
use crate::transient_local::TransientLocalMessages;

/// Default chunk size, as rosbag2's.
pub const CHUNK_BYTES: usize = 768 * 1024;

/// Spare bytes for numbers in the embedded metadata whose digits increase.
const METADATA_SPARE_BYTES: u64 = 256;

/// Bytes of a message's record and index, without its payload.
const MESSAGE_BYTES: u64 = 31 + 16;

/// Options for writing a bag.
#[derive(Clone, Debug)]
pub struct BagOptions {
    /// Compression of the chunks.
    pub compression: Compression,
    /// Compression level of Zstandard.
    pub compression_level: CompressionLevel,
    /// Chunk size before compression, bytes. A larger message has a chunk of its own.
    pub chunk_bytes: usize,
    /// Whether each chunk has a checksum.
    pub chunk_checksums: bool,
    /// Compresses each complete file with Zstandard, as `.mcap.zstd`. A recorder has
    /// threads for it; otherwise the writing thread compresses.
    pub compress_files: bool,
    /// Largest file size, bytes. A file above it holds a single message, beside repeated
    /// transient-local ones.
    pub split_bytes: Option<u64>,
    /// Largest time span of a file's messages.
    pub split_duration: Option<Duration>,
    /// Repeats the latest transient-local messages in each file after a split:
    /// `repeat_depth` per publisher, by default the publisher's history depth.
    pub repeat_transient_local: bool,
    /// Repeated messages per publisher.
    pub repeat_depth: Option<usize>,
    /// Repeated messages per publisher, by topic. These topics are repeated even without
    /// `repeat_transient_local`.
    pub repeat_depths: BTreeMap<String, usize>,
    /// Custom texts for the metadata.
    pub custom_data: BTreeMap<String, String>,
    /// ROS distribution for the metadata.
    pub ros_distro: String,
    /// Store that creates the files. With `compress_files`, the files must exist in the
    /// file system under their paths once they are synced.
    pub store: Arc<dyn FileStore>,
}

impl Default for BagOptions {
    fn default() -> Self {
        Self {
            compression: Compression::None,
            compression_level: CompressionLevel::default(),
            chunk_bytes: CHUNK_BYTES,
            chunk_checksums: true,
            compress_files: false,
            split_bytes: None,
            split_duration: None,
            repeat_transient_local: true,
            repeat_depth: None,
            repeat_depths: BTreeMap::new(),
            custom_data: BTreeMap::new(),
            ros_distro: "jazzy".into(),
            store: Arc::new(FileSystem),
        }
    }
}

impl BagOptions {
    /// Whether each file after a split repeats the latest messages of this topic.
    pub(crate) fn repeats(&self, topic: &BagTopic) -> bool {
        topic.is_transient_local()
            && (self.repeat_transient_local || self.repeat_depths.contains_key(&topic.name))
    }
}

/// A file that ended because of a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The closed file. Threads may compress it later under another name.
    pub closed: PathBuf,
    /// The new file.
    pub opened: PathBuf,
}

struct Channel {
    id: u16,
    topic: BagTopic,
    schema: SchemaRecord,
    count: u64,
}

impl Channel {
    fn metadata(&self) -> TopicMetadata {
        TopicMetadata {
            name: self.topic.name.clone(),
            type_name: self.topic.type_name.clone(),
            serialization_format: self.topic.serialization_format.clone(),
            offered_qos: self.topic.offered_qos.clone(),
            type_hash: self.topic.type_hash.clone(),
            message_count: self.count,
        }
    }

    fn record(&self) -> ChannelRecord {
        let profiles = write_profiles(&self.topic.offered_qos, "");
        ChannelRecord {
            id: self.id,
            schema_id: self.schema.id,
            topic: self.topic.name.clone(),
            message_encoding: self.topic.serialization_format.clone(),
            metadata: BTreeMap::from([
                ("offered_qos_profiles".to_owned(), profiles),
                ("topic_type_hash".to_owned(), self.topic.type_hash.clone()),
            ]),
        }
    }
}

/// Writer of a bag. Blocks in the file system.
///
/// ```
/// use pteros_bag::{BagOptions, BagReader, BagTopic, BagWriter};
///
/// # let folder = std::env::temp_dir().join(format!("bag-doc-{}", std::process::id()));
/// # let _ = std::fs::remove_dir_all(&folder);
/// let mut writer = BagWriter::create(&folder, BagOptions::default())?;
/// let topic = writer.add_topic(BagTopic {
///     name: "/chatter".into(),
///     type_name: "std_msgs/msg/String".into(),
///     definition: "string data\n".into(),
///     serialization_format: "cdr".into(),
///     ..BagTopic::default()
/// })?;
/// writer.write(topic, 5, 4, b"\0\x01\0\0\x02\0\0\0a\0")?;
/// writer.finish(&Default::default())?;
///
/// let mut reader = BagReader::open(&folder)?;
/// let message = reader.messages(Default::default()).next().unwrap();
/// assert_eq!((message.log_time, &message.payload[8..9]), (5, &b"a"[..]));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), pteros_bag::BagError>(())
/// ```
pub struct BagWriter {
    folder: PathBuf,
    options: BagOptions,
    channels: Vec<Channel>,
    file: Option<McapWriter>,
    files: Vec<FileMetadata>,
    chunk: ChunkBuilder,
    transient_local: TransientLocalMessages,
    split_asked: bool,
    /// Whether the file has messages beside the repeated ones.
    has_new: bool,
    splits: Vec<Split>,
    /// Queue of the compressing threads.
    compressor: Option<Arc<CompressionQueue>>,
}

impl BagWriter {
    /// Creates the folder and its first file.
    ///
    /// # Errors
    /// The folder exists, or cannot be created.
    pub fn create(folder: &Path, mut options: BagOptions) -> Result<Self, BagError> {
        if let Some(parent) = folder.parent() {
            let created = std::fs::create_dir_all(parent);
            created.map_err(BagError::io("creating", parent))?;
        }
        std::fs::create_dir(folder).map_err(|source| {
            if source.kind() == std::io::ErrorKind::AlreadyExists {
                BagError::Exists(folder.to_owned())
            } else {
                BagError::io("creating", folder)(source)
            }
        })?;
        if let Some(bytes) = options.split_bytes {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            options.chunk_bytes = options.chunk_bytes.min(bytes / 2).max(1);
        }
        let mut writer = Self {
            folder: folder.to_owned(),
            chunk: ChunkBuilder::default(),
            options,
            channels: Vec::new(),
            file: None,
            files: Vec::new(),
            transient_local: TransientLocalMessages::default(),
            split_asked: false,
            has_new: false,
            splits: Vec::new(),
            compressor: None,
        };
        writer.file = Some(writer.open_file()?);
        Ok(writer)
    }

    fn file_name(&self) -> String {
        let name = self
            .folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        format!("{name}_{}.mcap", self.files.len())
    }

    fn open_file(&self) -> Result<McapWriter, BagError> {
        McapWriter::create(
            &*self.options.store,
            &self.folder.join(self.file_name()),
            self.options.compression,
            self.options.compression_level,
            self.options.chunk_checksums,
        )
    }

    /// Passes complete files to compressing threads, until the writer is finished or
    /// dropped.
    pub(crate) fn compress_with(&mut self, queue: Arc<CompressionQueue>) {
        self.compressor = Some(queue);
    }

    /// Target size of chunks, bytes.
    pub fn chunk_bytes(&self) -> usize {
        self.options.chunk_bytes
    }

    /// Adds a topic. Returns its channel.
    ///
    /// # Errors
    /// The bag has 65535 topics.
    pub fn add_topic(&mut self, topic: BagTopic) -> Result<u16, BagError> {
        let id = u16::try_from(self.channels.len() + 1).map_err(|_| {
            BagError::Invalid(format!(
                "topic {}: a bag has at most 65535 topics; record fewer",
                topic.name
            ))
        })?;
        let same_type = self.channels.iter().find(|channel| {
            channel.topic.type_name == topic.type_name
                && channel.topic.definition == topic.definition
                && channel.topic.foreign_schema == topic.foreign_schema
        });
        let schema = match same_type {
            Some(channel) => channel.schema.clone(),
            None => {
                let (encoding, data) = match &topic.foreign_schema {
                    Some(foreign) => (foreign.encoding.as_str(), foreign.data.as_slice()),
                    None => (
                        schema_encoding(&topic.definition),
                        topic.definition.as_bytes(),
                    ),
                };
                SchemaRecord {
                    id,
                    name: topic.type_name.clone(),
                    encoding: encoding.into(),
                    data: data.to_vec(),
                }
            }
        };
        self.channels.push(Channel {
            id,
            topic,
            schema,
            count: 0,
        });
        Ok(id)
    }

    /// Adds the QoS of a later publisher to `metadata.yaml`, and to files that do not
    /// have the channel yet. A file describes a channel only once.
    ///
    /// A profile that would change whether a topic is transient local is ignored, because
    /// earlier messages were kept accordingly.
    pub fn add_offered_qos(&mut self, channel: u16, profile: QosProfile) {
        let known = self.channels.get_mut(usize::from(channel).wrapping_sub(1));
        if let Some(known) = known {
            let was_transient_local = known.topic.is_transient_local();
            known.topic.offered_qos.push(profile);
            if known.topic.is_transient_local() != was_transient_local {
                known.topic.offered_qos.pop();
            }
        }
    }

    /// Appends a message to the current chunk, which is written when it is full. Times
    /// are in nanoseconds since 1970.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(
        &mut self,
        channel: u16,
        log_time: u64,
        publish_time: u64,
        payload: &[u8],
    ) -> Result<(), BagError> {
        self.make_room(payload.len())?;
        self.chunk.add(channel, log_time, publish_time, payload);
        Ok(())
    }

    /// As [`write`](Self::write), for a message of a transient-local publisher. A file
    /// after a split starts with the latest ones of each publisher, up to its history
    /// depth. All topics together keep 64 MiB and drop the oldest. `None` is an unknown
    /// publisher.
    ///
    /// # Errors
    /// The file system's.
    pub fn write_transient_local(
        &mut self,
        channel: u16,
        publisher: Option<u128>,
        log_time: u64,
        publish_time: u64,
        payload: &[u8],
    ) -> Result<(), BagError> {
        self.make_room(payload.len())?;
        let chunk = &mut self.chunk;
        chunk.add_transient_local(publisher, channel, log_time, publish_time, payload);
        Ok(())
    }

    /// Writes the chunk if it has no space for `bytes`.
    fn make_room(&mut self, bytes: usize) -> Result<(), BagError> {
        let is_full = self.chunk.len() + bytes > self.options.chunk_bytes;
        if is_full && !self.chunk.is_empty() {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the current chunk.
    ///
    /// # Errors
    /// The file system's.
    pub fn flush(&mut self) -> Result<(), BagError> {
        let mut chunk = std::mem::take(&mut self.chunk);
        let written = self.write_chunk(&chunk);
        chunk.clear(2 * self.options.chunk_bytes);
        self.chunk = chunk;
        written
    }

    /// Keeps the transient-local messages of a chunk for the next file, after the chunk
    /// was written or replaced in a snapshot's ring.
    pub(crate) fn keep_transient_local(&mut self, chunk: &ChunkBuilder) {
        let options = &self.options;
        for message in chunk.transient_local() {
            let channel = self
                .channels
                .get(usize::from(message.channel).wrapping_sub(1));
            let Some(known) = channel.filter(|known| options.repeats(&known.topic)) else {
                continue;
            };
            let kept = match message.publisher {
                Some(_) => known.topic.transient_local_depth(),
                None => known.topic.transient_local_depth_of_all(),
            };
            let asked = options.repeat_depths.get(&known.topic.name).copied();
            let depth = asked.or(options.repeat_depth).unwrap_or(kept);
            let payload = chunk.records().get(message.payload.clone());
            self.transient_local.keep(
                message.channel,
                message.publisher,
                depth,
                message.publish_time,
                payload.unwrap_or_default(),
            );
        }
    }

    /// Current file, for the sync thread.
    pub(crate) fn current_file(&self) -> Option<Arc<dyn BagFile>> {
        self.file.as_ref().map(McapWriter::file)
    }

    /// Writes the current chunk and makes the current file durable, also across a power
    /// cut. Blocks until the device has stored it.
    ///
    /// # Errors
    /// The file system's.
    pub fn sync(&mut self) -> Result<(), BagError> {
        self.flush()?;
        let Some(file) = &self.file else {
            return Ok(());
        };
        let synced = file.file().sync();
        synced.map_err(BagError::io("syncing", file.path()))
    }

    /// Starts a new file with the next chunk.
    pub fn split(&mut self) {
        self.split_asked = true;
    }

    /// Takes the splits since the last call.
    pub fn take_splits(&mut self) -> Vec<Split> {
        std::mem::take(&mut self.splits)
    }

    /// Writes a chunk, to a new file if a limit requires it.
    ///
    /// # Errors
    /// The file system's. Some messages of the chunk may be in the file.
    pub fn write_chunk(&mut self, chunk: &ChunkBuilder) -> Result<(), BagError> {
        let mut rest: Option<ChunkBuilder> = None;
        loop {
            let current = rest.as_ref().unwrap_or(chunk);
            let Some((before, after)) = self.cut_at_duration(current) else {
                break;
            };
            self.put(&before)?;
            rest = Some(after);
        }
        self.put(rest.as_ref().unwrap_or(chunk))
    }

    /// Splits a chunk at the time at which a new file starts.
    fn cut_at_duration(&self, chunk: &ChunkBuilder) -> Option<(ChunkBuilder, ChunkBuilder)> {
        let span = u64::try_from(self.options.split_duration?.as_nanos()).ok()?;
        let statistics = self.file.as_ref()?.statistics();
        let begins_file = statistics.message_count == 0 || is_before(chunk, statistics.start, span);
        let start = if begins_file {
            chunk.start()
        } else {
            statistics.start
        };
        let mut border = start.checked_add(span)?;
        if chunk.start() >= border {
            // The chunk is the first of its file.
            border = chunk.start().checked_add(span)?;
        }
        if span == 0 || chunk.end() < border {
            return None;
        }
        Some(cut(chunk, |_, log_time| log_time < border))
    }

    fn is_split_due(&self, chunk: &ChunkBuilder) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        if !self.has_new {
            return false;
        }
        let statistics = file.statistics();
        let by_size = |limit| self.size_with(file, chunk) > limit;
        let by_time = |span: Duration| {
            let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            let age = chunk.start().saturating_sub(statistics.start);
            age >= span || is_before(chunk, statistics.start, span)
        };
        self.split_asked
            || self.options.split_bytes.is_some_and(by_size)
            || self.options.split_duration.is_some_and(by_time)
    }

    fn put(&mut self, chunk: &ChunkBuilder) -> Result<(), BagError> {
        if chunk.is_empty() {
            return Ok(());
        }
        if self.is_split_due(chunk) {
            self.begin_file(chunk.start())?;
        }
        let messages: u64 = chunk.counts().map(|(_, count)| count).sum();
        let is_too_large = self.options.split_bytes.zip(self.file.as_ref());
        let is_too_large =
            is_too_large.is_some_and(|(limit, file)| self.size_with(file, chunk) > limit);
        if is_too_large && messages > 1 {
            let half = usize::try_from(messages / 2).unwrap_or(1);
            let (before, after) = cut(chunk, |number, _| number < half);
            self.put(&before)?;
            return self.put(&after);
        }
        self.has_new = true;
        self.append(chunk)
    }

    /// Upper bound of a file's size after it has the chunk and is closed.
    fn size_with(&self, file: &McapWriter, chunk: &ChunkBuilder) -> u64 {
        let known = |id: u16| self.channels.get(usize::from(id).wrapping_sub(1));
        let mut size = file.size_with(chunk);
        for (id, _) in chunk.counts() {
            if let Some(channel) = known(id).filter(|_| !file.has_channel(id)) {
                size += file.channel_bytes(&channel.schema, &channel.record());
            }
        }
        let name = self.file_name();
        let mut of_file = self.metadata_of_file(file, &name, &BTreeMap::new());
        let new = chunk.counts().filter(|(id, _)| !file.has_channel(*id));
        let new = new.filter_map(|(id, _)| known(id)).map(Channel::metadata);
        of_file.topics.extend(new);
        size + of_file.to_yaml_body().len() as u64 + METADATA_SPARE_BYTES
    }

    fn append(&mut self, chunk: &ChunkBuilder) -> Result<(), BagError> {
        if self.file.is_none() {
            self.file = Some(self.open_file()?);
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        for (id, count) in chunk.counts() {
            let Some(channel) = self.channels.get_mut(usize::from(id).wrapping_sub(1)) else {
                return Err(BagError::Invalid(format!(
                    "channel {id} of a chunk is unknown; add its topic first"
                )));
            };
            if !file.has_channel(id) {
                file.add_channel(&channel.schema, &channel.record());
            }
            channel.count += count;
        }
        file.write_chunk(chunk)?;
        self.keep_transient_local(chunk);
        Ok(())
    }

    fn begin_file(&mut self, time: u64) -> Result<(), BagError> {
        self.split_asked = false;
        self.has_new = false;
        let closed = self.close_file(&BTreeMap::new())?;
        let file = self.open_file()?;
        if let Some(closed) = closed {
            self.splits.push(Split {
                closed,
                opened: file.path().to_owned(),
            });
        }
        self.file = Some(file);
        // State before the next chunk: later messages are not part of it.
        let mut repeated = ChunkBuilder::default();
        let mut room = self
            .options
            .split_bytes
            .map_or(u64::MAX, |limit| limit / 4 * 3);
        let mut latest: Vec<_> = self.transient_local.in_order().collect();
        // Without the oldest, if the limit has no space for all.
        let fits = latest.iter().rev().take_while(|(_, _, payload)| {
            let left = room.checked_sub(payload.len() as u64 + MESSAGE_BYTES);
            room = left.unwrap_or(0);
            left.is_some()
        });
        let fitting = fits.count();
        for (channel, publish_time, payload) in latest.drain(latest.len() - fitting..) {
            repeated.add(channel, time, publish_time, payload);
        }
        if repeated.is_empty() {
            return Ok(());
        }
        self.append(&repeated)
    }

    /// Ends the current file. Returns its current path.
    fn close_file(
        &mut self,
        accounts: &BTreeMap<String, TopicAccount>,
    ) -> Result<Option<PathBuf>, BagError> {
        let name = self.file_name();
        let Some(mut file) = self.file.take() else {
            return Ok(None);
        };
        let of_file = self.metadata_of_file(&file, &name, accounts);
        self.files.extend(of_file.files.iter().cloned());
        let texts = to_texts(accounts);
        if !texts.is_empty() {
            file.write_metadata(LOSS_RECORD, texts)?;
        }
        let body = of_file.to_yaml_body();
        let embedded = BTreeMap::from([("serialized_metadata".to_owned(), body)]);
        file.write_metadata("rosbag2", embedded)?;
        let path = file.path().to_owned();
        file.finish()?;
        match &self.compressor {
            _ if !self.options.compress_files => {}
            None => return compress_file(&path).map(Some),
            Some(queue) => queue.push(path.clone()),
        }
        Ok(Some(path))
    }

    /// Metadata embedded in a file: that of the bag with this file only. A list of all
    /// earlier files would grow. A file with a size limit lists only its own topics.
    fn metadata_of_file(
        &self,
        file: &McapWriter,
        name: &str,
        accounts: &BTreeMap<String, TopicAccount>,
    ) -> BagMetadata {
        let statistics = file.statistics();
        let duration = statistics.end.saturating_sub(statistics.start);
        let path = if self.options.compress_files {
            format!("{name}.{COMPRESSED_ENDING}")
        } else {
            name.to_owned()
        };
        let channels = self.channels.iter();
        let has_room = self.options.split_bytes.is_none();
        let channels = channels.filter(|channel| has_room || file.has_channel(channel.id));
        let topics = channels.map(|channel| TopicMetadata {
            message_count: statistics.by_channel.get(&channel.id).copied().unwrap_or(0),
            ..channel.metadata()
        });
        BagMetadata {
            start: statistics.start,
            duration,
            message_count: statistics.message_count,
            topics: topics.collect(),
            files: vec![FileMetadata {
                path,
                start: statistics.start,
                duration,
                message_count: statistics.message_count,
            }],
            ..self.metadata_of(accounts, Vec::new())
        }
    }

    fn metadata(&self, accounts: &BTreeMap<String, TopicAccount>) -> BagMetadata {
        let topics = self.channels.iter().map(Channel::metadata).collect();
        self.metadata_of(accounts, topics)
    }

    fn metadata_of(
        &self,
        accounts: &BTreeMap<String, TopicAccount>,
        topics: Vec<TopicMetadata>,
    ) -> BagMetadata {
        let filled = self.files.iter().filter(|file| file.message_count > 0);
        let start = filled.clone().map(|file| file.start).min().unwrap_or(0);
        let end = filled
            .map(|file| file.start + file.duration)
            .max()
            .unwrap_or(0);
        let mut custom_data = self.options.custom_data.clone();
        custom_data.extend(to_texts(accounts));
        let compressed = |word: &str| {
            let word = if self.options.compress_files {
                word
            } else {
                ""
            };
            word.to_owned()
        };
        BagMetadata {
            storage: "mcap".into(),
            start,
            duration: end.saturating_sub(start),
            message_count: self.channels.iter().map(|channel| channel.count).sum(),
            topics,
            files: self.files.clone(),
            custom_data,
            ros_distro: self.options.ros_distro.clone(),
            compression_format: compressed("zstd"),
            compression_mode: compressed("FILE"),
        }
    }

    /// Writes the remaining messages, the summary and `metadata.yaml`, with the accounts
    /// of a recorder.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(
        mut self,
        accounts: &BTreeMap<String, TopicAccount>,
    ) -> Result<BagMetadata, BagError> {
        self.flush()?;
        self.close_file(accounts)?;
        if let Some(queue) = &self.compressor {
            queue.finish()?;
        }
        let metadata = self.metadata(accounts);
        write_metadata(&*self.options.store, &self.folder, &metadata)?;
        Ok(metadata)
    }
}

/// Splits a chunk: messages for which `is_before` returns true by number and log time,
/// and the others.
fn cut(
    chunk: &ChunkBuilder,
    is_before: impl Fn(usize, u64) -> bool,
) -> (ChunkBuilder, ChunkBuilder) {
    let (mut before, mut after) = (ChunkBuilder::default(), ChunkBuilder::default());
    let mut transient_local = chunk.transient_local().iter().peekable();
    for (number, message) in parse_chunk(chunk.records())
        .messages
        .into_iter()
        .enumerate()
    {
        let transient_local =
            transient_local.next_if(|transient_local| transient_local.payload == message.payload);
        let (channel, log_time) = (message.channel, message.log_time);
        let part = if is_before(number, log_time) {
            &mut before
        } else {
            &mut after
        };
        let payload = chunk.records().get(message.payload).unwrap_or_default();
        match transient_local {
            Some(transient_local) => {
                let (publisher, time) = (transient_local.publisher, transient_local.publish_time);
                part.add_transient_local(publisher, channel, log_time, time, payload);
            }
            None => part.add(channel, log_time, message.publish_time, payload),
        }
    }
    (before, after)
}

/// Whether the clock has jumped back: a chunk precedes its file by the span of a file.
fn is_before(chunk: &ChunkBuilder, file_start: u64, span: u64) -> bool {
    file_start.saturating_sub(chunk.end()) >= span
}

impl Drop for BagWriter {
    fn drop(&mut self) {
        if let Some(queue) = &self.compressor {
            queue.close();
        }
    }
}

/// Writes `metadata.yaml`, which must not exist.
pub(crate) fn write_metadata(
    store: &dyn FileStore,
    folder: &Path,
    metadata: &BagMetadata,
) -> Result<(), BagError> {
    let path = folder.join(METADATA_FILE);
    let file = store.create(&path).map_err(|source| {
        if source.kind() == std::io::ErrorKind::AlreadyExists {
            BagError::Exists(path.clone())
        } else {
            BagError::io("creating", &path)(source)
        }
    })?;
    let written = file.append(metadata.to_yaml().as_bytes());
    written
        .and_then(|()| file.sync())
        .map_err(BagError::io("writing", &path))
}
