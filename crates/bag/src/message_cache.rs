//! Message cache of a recorder: copies received payloads into chunks, and passes full
//! chunks to the writer thread.
//!
//! A payload is copied once, and its loan is returned at once. So a slow disk delays no
//! publisher. When the writer's queue is full, messages are dropped and counted.
//!
//! In snapshot mode, full chunks enter a ring buffer instead. A new chunk replaces the
//! oldest one. A snapshot passes all chunks to the writer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use pteros::qos::QosProfile;

use crate::accounting::{PublisherAccount, TopicAccount};
use crate::byte_queue::ByteQueue;
use crate::error::BagError;
use crate::mcap::ChunkBuilder;
use crate::metadata::BagMetadata;
use crate::sync_queue::{SyncQueue, sync_file};
use crate::topic::BagTopic;
use crate::writer::{BagWriter, Split};

/// Memory of used chunks kept for reuse: four images of 4 MB. The kernel clears each
/// fresh page, which takes as long as the copy into it.
const FREE_BYTES_MAX: usize = 20 << 20;
/// Minimum number of chunks in a snapshot's ring, because a new message replaces a whole
/// chunk.
const RING_CHUNKS_MIN: usize = 16;

/// Item of the writer thread's queue.
enum WriterItem {
    Topic(BagTopic),
    /// QoS of a later publisher of a channel.
    OfferedQos(u16, QosProfile),
    /// Transient-local messages of a chunk that is not written.
    TransientLocal(ChunkBuilder),
    Chunk(ChunkBuilder),
    Split,
    Sync,
}

/// Metadata of a received message.
#[derive(Clone, Copy)]
pub(crate) struct Received {
    pub channel: u16,
    pub publisher: u128,
    pub sequence: i64,
    pub log_time: u64,
    pub publish_time: u64,
    pub is_transient_local: bool,
}

/// Cache between subscriptions and the writer thread. Thread-safe.
pub(crate) struct MessageCache {
    state: Mutex<CacheState>,
    queue: ByteQueue<WriterItem>,
    output: Mutex<WriterOutput>,
    finished: Condvar,
    /// Queue of the sync thread. Without one, the writing thread syncs.
    syncs: Option<SyncQueue>,
    chunk_bytes: usize,
}

#[derive(Default)]
struct CacheState {
    chunk: ChunkBuilder,
    channels: BTreeMap<u16, ChannelAccount>,
    is_paused: bool,
    /// After closing, messages are not counted.
    is_closed: bool,
    /// Only in snapshot mode.
    ring: Option<Ring>,
}

/// Ring buffer of the latest chunks, bounded by bytes.
struct Ring {
    chunks: VecDeque<ChunkBuilder>,
    bytes: usize,
    bytes_max: usize,
}

impl Ring {
    fn new(bytes_max: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Appends a chunk, and returns the chunks that it replaces.
    fn push(&mut self, chunk: ChunkBuilder) -> Vec<ChunkBuilder> {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
        let mut replaced = Vec::new();
        while self.bytes > self.bytes_max
            && self.chunks.len() > 1
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.bytes -= oldest.len();
            replaced.push(oldest);
        }
        replaced
    }

    fn take(&mut self) -> VecDeque<ChunkBuilder> {
        self.bytes = 0;
        std::mem::take(&mut self.chunks)
    }
}

#[derive(Default)]
struct ChannelAccount {
    received: u64,
    lost_buffer: u64,
    not_kept: u64,
    paused: u64,
    publishers: BTreeMap<u128, PublisherAccount>,
}

#[derive(Default)]
struct WriterOutput {
    written: BTreeMap<u16, u64>,
    lost: BTreeMap<u16, u64>,
    splits: Vec<Split>,
    free: Vec<ChunkBuilder>,
    /// Memory of the free chunks, at most [`FREE_BYTES_MAX`].
    free_bytes: usize,
    problem: Option<String>,
    /// Why a sync failed. Writing continues.
    sync_problem: Option<String>,
    /// Set once the thread has written everything.
    writer: Option<BagWriter>,
    is_finished: bool,
}

impl WriterOutput {
    fn pop_free(&mut self) -> Option<ChunkBuilder> {
        let chunk = self.free.pop()?;
        self.free_bytes -= chunk.capacity();
        Some(chunk)
    }
}

impl CacheState {
    fn count_not_kept(&mut self, chunk: &ChunkBuilder) {
        for (channel, count) in chunk.counts() {
            self.channels.entry(channel).or_default().not_kept += count;
        }
    }
}

/// Limits and modes of a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCacheOptions {
    pub chunk_bytes: usize,
    /// Limit of bytes that wait for the writer, or that are kept for a snapshot.
    pub cache_bytes: usize,
    pub is_paused: bool,
    pub is_snapshot: bool,
    /// Whether a thread runs [`MessageCache::sync_all`]. Otherwise the writing thread
    /// syncs.
    pub has_sync_thread: bool,
}

impl MessageCache {
    pub(crate) fn new(options: MessageCacheOptions) -> Arc<Self> {
        let chunk_bytes = if options.is_snapshot {
            let most = options.cache_bytes / RING_CHUNKS_MIN;
            options.chunk_bytes.min(most).max(1)
        } else {
            options.chunk_bytes
        };
        let ring = options.is_snapshot.then(|| Ring::new(options.cache_bytes));
        let state = CacheState {
            is_paused: options.is_paused,
            ring,
            ..CacheState::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            queue: ByteQueue::new(options.cache_bytes),
            output: Mutex::new(WriterOutput::default()),
            finished: Condvar::new(),
            syncs: options.has_sync_thread.then(SyncQueue::default),
            chunk_bytes,
        })
    }

    /// Main function of the writer thread, until [`MessageCache::close`].
    pub(crate) fn write_all(&self, mut writer: BagWriter) {
        while let Some(item) = self.queue.pop() {
            self.write_item(&mut writer, item);
        }
        if let Some(syncs) = &self.syncs {
            syncs.close();
        }
        let mut output = self.output.lock();
        output.writer = Some(writer);
        output.is_finished = true;
        self.finished.notify_all();
    }

    /// Writes the next item if no thread does. Returns false if there is none.
    pub(crate) fn write_next(&self, writer: &mut BagWriter) -> bool {
        let item = self.queue.try_pop();
        let is_there = item.is_some();
        if let Some(item) = item {
            self.write_item(writer, item);
        }
        is_there
    }

    /// Main function of the sync thread, until the writer has ended.
    pub(crate) fn sync_all(&self) {
        if let Some(syncs) = &self.syncs {
            syncs.sync_all(|error| self.fail_sync(error));
        }
    }

    fn write_item(&self, writer: &mut BagWriter, item: WriterItem) {
        match item {
            WriterItem::Topic(topic) => {
                if let Err(error) = writer.add_topic(topic) {
                    self.fail(&error);
                }
            }
            WriterItem::OfferedQos(channel, profile) => writer.add_offered_qos(channel, profile),
            WriterItem::TransientLocal(chunk) => writer.keep_transient_local(&chunk),
            WriterItem::Split => writer.split(),
            WriterItem::Chunk(chunk) => self.write_chunk(writer, chunk),
            WriterItem::Sync => match (&self.syncs, writer.current_file()) {
                (Some(syncs), Some(file)) => syncs.push(file),
                (None, Some(file)) => {
                    if let Err(error) = sync_file(&*file) {
                        self.fail_sync(&error);
                    }
                }
                (_, None) => {}
            },
        }
    }

    fn write_chunk(&self, writer: &mut BagWriter, mut chunk: ChunkBuilder) {
        // After a failure nothing more is written to the file, because a reader cannot
        // read past a torn record.
        let has_failed = self.output.lock().problem.is_some();
        let result = if has_failed {
            Err(None)
        } else {
            writer.write_chunk(&chunk).map_err(Some)
        };
        if let Err(Some(error)) = &result {
            self.fail(error);
        }
        let splits = writer.take_splits();
        let mut output = self.output.lock();
        output.splits.extend(splits);
        for (channel, count) in chunk.counts() {
            let counted = if result.is_ok() {
                output.written.entry(channel)
            } else {
                output.lost.entry(channel)
            };
            *counted.or_default() += count;
        }
        if output.free_bytes + chunk.capacity() <= FREE_BYTES_MAX {
            output.free_bytes += chunk.capacity();
            chunk.clear(FREE_BYTES_MAX);
            output.free.push(chunk);
        }
    }

    fn fail(&self, error: &BagError) {
        let mut output = self.output.lock();
        output.problem.get_or_insert_with(|| error.to_string());
    }

    fn fail_sync(&self, error: &BagError) {
        let mut output = self.output.lock();
        output.sync_problem.get_or_insert_with(|| error.to_string());
    }

    /// Why writing failed.
    pub(crate) fn problem(&self) -> Option<String> {
        self.output.lock().problem.clone()
    }

    /// Why the first failed sync failed. Complete after [`MessageCache::close`].
    pub(crate) fn sync_problem(&self) -> Option<String> {
        self.output.lock().sync_problem.clone()
    }

    pub(crate) fn take_splits(&self) -> Vec<Split> {
        std::mem::take(&mut self.output.lock().splits)
    }

    pub(crate) fn add_topic(&self, topic: BagTopic) {
        self.queue.push(0, WriterItem::Topic(topic));
    }

    pub(crate) fn add_offered_qos(&self, channel: u16, profile: QosProfile) {
        self.queue.push(0, WriterItem::OfferedQos(channel, profile));
    }

    /// Appends a message to the chunk, or counts it as lost or paused.
    pub(crate) fn receive(&self, message: Received, payload: &[u8]) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        let is_paused = state.is_paused;
        let account = state.channels.entry(message.channel).or_default();
        let publisher = account.publishers.entry(message.publisher).or_default();
        if is_paused {
            publisher.receive_paused(message.sequence);
            account.paused += 1;
            return;
        }
        publisher.receive(message.sequence);
        account.received += 1;
        let is_full = state.chunk.len() + payload.len() > self.chunk_bytes;
        if is_full && !state.chunk.is_empty() && !self.hand_over(&mut state) {
            let account = state.channels.entry(message.channel).or_default();
            account.lost_buffer += 1;
            return;
        }
        let (channel, time) = (message.channel, message.log_time);
        if message.is_transient_local {
            let publisher = Some(message.publisher);
            let chunk = &mut state.chunk;
            chunk.add_transient_local(publisher, channel, time, message.publish_time, payload);
        } else {
            let chunk = &mut state.chunk;
            chunk.add(channel, time, message.publish_time, payload);
        }
    }

    /// Passes the chunk to the writer. Returns false if the queue is full.
    fn hand_over(&self, state: &mut CacheState) -> bool {
        let bytes = state.chunk.len();
        if state.ring.is_some() {
            self.keep_for_snapshot(state);
            return true;
        }
        if !self.queue.has_room(bytes) {
            return false;
        }
        let free = self.output.lock().pop_free();
        let next = free.unwrap_or_else(|| ChunkBuilder::with_capacity(self.chunk_bytes));
        let full = std::mem::replace(&mut state.chunk, next);
        self.queue.push(bytes, WriterItem::Chunk(full));
        true
    }

    /// Moves the chunk into the ring, and counts the replaced messages.
    fn keep_for_snapshot(&self, state: &mut CacheState) {
        let next = ChunkBuilder::with_capacity(self.chunk_bytes);
        let full = std::mem::replace(&mut state.chunk, next);
        let replaced = state.ring.as_mut().map(|ring| ring.push(full));
        for chunk in replaced.unwrap_or_default() {
            state.count_not_kept(&chunk);
            let transient_local = transient_local_of(&chunk);
            if !transient_local.is_empty() && self.queue.has_room(transient_local.len()) {
                self.queue.push(
                    transient_local.len(),
                    WriterItem::TransientLocal(transient_local),
                );
            }
        }
    }

    /// Passes all chunks of the ring to the writer, whatever the length of its queue.
    /// Returns false outside snapshot mode.
    pub(crate) fn snapshot(&self) -> bool {
        let mut state = self.state.lock();
        if state.ring.is_none() {
            return false;
        }
        if !state.chunk.is_empty() {
            self.keep_for_snapshot(&mut state);
        }
        let chunks = state.ring.as_mut().map(Ring::take).unwrap_or_default();
        for chunk in chunks {
            self.queue.push(chunk.len(), WriterItem::Chunk(chunk));
        }
        true
    }

    /// Passes the current chunk to the writer, so that the file has it if the process is
    /// killed. Does nothing in snapshot mode.
    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        if !state.chunk.is_empty() && state.ring.is_none() {
            self.hand_over(&mut state);
        }
    }

    /// Requests a sync of everything passed to the writer.
    pub(crate) fn sync(&self) {
        self.queue.push(0, WriterItem::Sync);
    }

    pub(crate) fn split(&self) {
        self.flush();
        self.queue.push(0, WriterItem::Split);
    }

    pub(crate) fn set_paused(&self, is_paused: bool) {
        self.state.lock().is_paused = is_paused;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state.lock().is_paused
    }

    /// The accounts until now, by channel.
    pub(crate) fn accounts(&self) -> BTreeMap<u16, TopicAccount> {
        let state = self.state.lock();
        let output = self.output.lock();
        let accounts = state.channels.iter().map(|(channel, counted)| {
            let publishers = counted.publishers.iter();
            let account = TopicAccount {
                received: counted.received,
                written: output.written.get(channel).copied().unwrap_or(0),
                lost_buffer: counted.lost_buffer,
                lost_writer: output.lost.get(channel).copied().unwrap_or(0),
                not_kept: counted.not_kept,
                paused: counted.paused,
                publishers: publishers
                    .map(|(gid, account)| (format!("{gid:032x}"), *account))
                    .collect(),
                ..TopicAccount::default()
            };
            (*channel, account)
        });
        accounts.collect()
    }

    /// Closes the cache. Writes everything that is queued, here if the caller has the
    /// writer. Blocks until all is written and no sync runs.
    pub(crate) fn close(&self, writer: Option<BagWriter>) -> Option<BagWriter> {
        {
            let mut state = self.state.lock();
            state.is_closed = true;
            let bytes = state.chunk.len();
            let last = std::mem::take(&mut state.chunk);
            let ring = state.ring.take();
            if let Some(mut ring) = ring {
                for chunk in ring.take().iter().chain([&last]) {
                    state.count_not_kept(chunk);
                }
            } else if !last.is_empty() {
                // The last chunk has space: nothing follows it.
                self.queue.push(bytes, WriterItem::Chunk(last));
            }
        }
        self.queue.close();
        if let Some(writer) = writer {
            self.write_all(writer);
        }
        let mut output = self.output.lock();
        while !output.is_finished {
            self.finished.wait(&mut output);
        }
        let writer = output.writer.take();
        drop(output);
        // The system reports unwritten bytes to one sync only. That may be the running
        // one, and the last sync of the file succeeds then.
        if let Some(syncs) = &self.syncs {
            syncs.wait_until_idle();
        }
        writer
    }

    /// Ends the threads of a recorder that failed to start.
    pub(crate) fn stop(&self) {
        self.state.lock().is_closed = true;
        self.queue.close();
    }

    /// Ends the bag of a writer with the accounts.
    pub(crate) fn finish(
        writer: BagWriter,
        accounts: &BTreeMap<String, TopicAccount>,
    ) -> Result<BagMetadata, BagError> {
        writer.finish(accounts)
    }
}

/// Copies the transient-local messages of a chunk.
fn transient_local_of(chunk: &ChunkBuilder) -> ChunkBuilder {
    let mut transient_local = ChunkBuilder::default();
    for message in chunk.transient_local() {
        let payload = chunk.records().get(message.payload.clone());
        let (channel, time) = (message.channel, message.publish_time);
        let payload = payload.unwrap_or_default();
        transient_local.add_transient_local(message.publisher, channel, time, time, payload);
    }
    transient_local
}

#[cfg(test)]
mod sync_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::BagOptions;
    use pteros_test_support::folder::Folder;

    pub(super) fn message(sequence: i64) -> Received {
        Received {
            channel: 1,
            publisher: 7,
            sequence,
            log_time: 1000 + u64::try_from(sequence).unwrap(),
            publish_time: 1000,
            is_transient_local: false,
        }
    }

    fn cache(chunk_bytes: usize, cache_bytes: usize, is_snapshot: bool) -> Arc<MessageCache> {
        MessageCache::new(MessageCacheOptions {
            chunk_bytes,
            cache_bytes,
            is_paused: false,
            is_snapshot,
            has_sync_thread: false,
        })
    }

    pub(super) fn topic() -> BagTopic {
        BagTopic {
            name: "/t".into(),
            type_name: "std_msgs/msg/String".into(),
            serialization_format: "cdr".into(),
            ..BagTopic::default()
        }
    }

    #[test]
    fn a_snapshot_has_the_latest_messages_and_the_others_are_counted() {
        let folder = Folder::absent("snapshot");
        let cache = cache(1 << 20, 16_000, true);
        cache.add_topic(topic());
        for sequence in 1..=500 {
            cache.receive(message(sequence), &[0; 200]);
        }
        assert!(cache.snapshot());
        for sequence in 501..=520 {
            cache.receive(message(sequence), &[0; 200]);
        }
        let writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
        cache.queue.close();
        cache.write_all(writer);
        let writer = cache.close(None).unwrap();
        let account = cache.accounts().remove(&1).unwrap();
        writer.finish(&BTreeMap::new()).unwrap();
        assert_eq!((account.received, account.lost()), (520, 0));
        assert_eq!(account.written + account.not_kept, 520);
        assert!((50..=80).contains(&account.written), "{account}");
        let mut reader = crate::BagReader::open(&folder).unwrap();
        let last = reader.messages(Default::default()).last().unwrap();
        assert_eq!(last.log_time, 1500);
    }

    #[test]
    fn messages_of_a_pause_are_neither_received_nor_lost() {
        let cache = cache(1 << 20, 1 << 20, false);
        for sequence in 1..=30 {
            cache.set_paused((11..=20).contains(&sequence));
            cache.receive(message(sequence), &[0; 20]);
        }
        let mut account = cache.accounts().remove(&1).unwrap();
        account.settle(0, 0);
        assert_eq!((account.received, account.paused), (20, 10));
        assert_eq!(account.lost(), 0, "{account}");
        assert_eq!(TopicAccount::read(&account.to_string()).paused, 10);
    }

    /// The writer is behind: messages after the split are not part of the state before
    /// it.
    #[test]
    fn a_file_begins_with_the_latched_messages_before_the_split() {
        let folder = Folder::absent("transient_local");
        let cache = cache(1 << 20, 1 << 20, false);
        let qos = pteros::QosProfile::default().keep_last(1).transient_local();
        cache.add_topic(BagTopic {
            offered_qos: vec![qos],
            ..topic()
        });
        let transient_local = |sequence| Received {
            is_transient_local: true,
            ..message(sequence)
        };
        cache.receive(transient_local(1), &[1; 9]);
        cache.split();
        cache.receive(transient_local(2), &[2; 9]);
        cache.flush();
        let writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
        cache.queue.close();
        cache.write_all(writer);
        cache.close(None).unwrap().finish(&BTreeMap::new()).unwrap();
        let mut reader = crate::BagReader::open(&folder).unwrap();
        let messages = reader.messages(Default::default());
        let found: Vec<_> = messages.map(|one| (one.file, one.payload[0])).collect();
        assert_eq!(found, [(0, 1), (1, 1), (1, 2)]);
    }

    #[test]
    fn memory_of_large_messages_is_used_again_and_has_a_limit() {
        let folder = Folder::absent("memory");
        let cache = cache(1000, 100 << 20, false);
        cache.add_topic(topic());
        let mut writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
        let image = vec![0; 4 << 20];
        for sequence in 1..=6 {
            cache.receive(message(sequence), &image);
        }
        while cache.write_next(&mut writer) {}
        let kept = cache.output.lock().free_bytes;
        assert!((8 << 20..=FREE_BYTES_MAX).contains(&kept), "{kept}");
        cache.receive(message(7), &image);
        let left = cache.output.lock().free_bytes;
        assert!(left + (4 << 20) <= kept, "{left} of {kept} are left");
    }

    /// The writer thread runs only after everything was received, as with the slowest
    /// disk.
    #[test]
    fn a_full_buffer_drops_and_counts_and_nothing_else_is_lost() {
        let folder = Folder::absent("full");
        let cache = cache(1000, 5000, false);
        cache.add_topic(topic());
        for sequence in 1..=100 {
            cache.receive(message(sequence), &[0; 200]);
        }
        let before = cache.accounts().remove(&1).unwrap();
        assert_eq!((before.received, before.written), (100, 0));
        assert!(before.lost_buffer > 50, "{before}");
        let writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
        cache.queue.close();
        cache.write_all(writer);
        let writer = cache.output.lock().writer.take().unwrap();
        let account = cache.accounts().remove(&1).unwrap();
        let metadata = MessageCache::finish(writer, &BTreeMap::new()).unwrap();
        // The chunk being filled when the queue closed is left.
        let left = u64::try_from(cache.state.lock().chunk.len() / 231).unwrap();
        assert_eq!(
            account.received,
            account.written + account.lost_buffer + left
        );
        assert_eq!(metadata.message_count, account.written);
    }
}
