//! Tests of failing syncs: the recording continues, and its end reports them.
#![allow(
    clippy::disallowed_methods,
    reason = "the writer and the sync are two threads"
)]

use pteros_test_support::folder::Folder;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::tests::{message, topic};
use super::*;
use crate::BagReader;
use crate::file_store::{BagFile, FileStore, FileSystem};
use crate::writer::BagOptions;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The first sync of a bag, which fails.
#[derive(Debug)]
struct FirstSync {
    /// If set, the sync ends only after the writer of this cache.
    cache: Weak<MessageCache>,
    begun: Sender<()>,
    is_over: AtomicBool,
}

impl FirstSync {
    fn fail(&self) -> io::Result<()> {
        let _ = self.begun.send(());
        if let Some(cache) = self.cache.upgrade() {
            let mut output = cache.output.lock();
            while !output.is_finished {
                let waited = cache.finished.wait_for(&mut output, TIMEOUT);
                if waited.timed_out() {
                    return Err(io::Error::other("the writer does not end"));
                }
            }
        }
        Err(io::Error::other("the device is gone"))
    }
}

#[derive(Debug)]
struct Store(Arc<FirstSync>);

#[derive(Debug)]
struct StoredFile {
    file: Arc<dyn BagFile>,
    first_sync: Arc<FirstSync>,
}

impl FileStore for Store {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn BagFile>> {
        Ok(Arc::new(StoredFile {
            file: FileSystem.create(path)?,
            first_sync: self.0.clone(),
        }))
    }
}

impl BagFile for StoredFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        if self.first_sync.is_over.swap(true, Ordering::Relaxed) {
            return self.file.sync();
        }
        self.first_sync.fail()
    }
}

fn cache(has_sync_thread: bool) -> Arc<MessageCache> {
    MessageCache::new(MessageCacheOptions {
        chunk_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        is_paused: false,
        is_snapshot: false,
        has_sync_thread,
    })
}

fn writer(folder: &Path, cache: Weak<MessageCache>, begun: Sender<()>) -> BagWriter {
    let store = Store(Arc::new(FirstSync {
        cache,
        begun,
        is_over: AtomicBool::new(false),
    }));
    let options = BagOptions {
        store: Arc::new(store),
        ..BagOptions::default()
    };
    BagWriter::create(folder, options).unwrap()
}

/// Receives messages in a chunk of their own.
fn receive(cache: &MessageCache, sequences: RangeInclusive<i64>) {
    for sequence in sequences {
        cache.receive(message(sequence), &[0; 20]);
    }
    cache.flush();
}

/// All 20 messages are in the bag, and the failed sync is reported.
fn check(folder: &Path, cache: &MessageCache, writer: BagWriter) {
    let problem = cache.sync_problem().expect("the sync is reported");
    assert!(problem.contains("the device is gone"), "{problem}");
    assert_eq!(cache.problem(), None);
    let account = cache.accounts().remove(&1).unwrap();
    assert_eq!((account.written, account.lost()), (20, 0), "{account}");
    let metadata = MessageCache::finish(writer, &BTreeMap::new()).unwrap();
    assert_eq!(metadata.message_count, 20);
    let mut reader = BagReader::open(folder).unwrap();
    assert!(reader.is_complete());
    assert_eq!(reader.messages(Default::default()).count(), 20);
}

#[test]
fn a_recording_goes_on_after_a_sync_that_failed() {
    let folder = Folder::absent("failed-sync");
    let cache = cache(false);
    let (begun, has_begun) = channel();
    let mut writer = writer(&folder, Weak::new(), begun);
    cache.add_topic(topic());
    receive(&cache, 1..=10);
    cache.sync();
    while cache.write_next(&mut writer) {}
    assert_eq!(has_begun.try_recv(), Ok(()));
    receive(&cache, 11..=20);
    let writer = cache.close(Some(writer)).unwrap();
    check(&folder, &cache, writer);
}

/// The sync fails only after the writer has ended, and later syncs succeed.
#[test]
fn the_end_of_a_recording_waits_for_the_sync_that_runs() {
    let folder = Folder::absent("last-sync");
    let cache = cache(true);
    let (begun, has_begun) = channel();
    let writer = writer(&folder, Arc::downgrade(&cache), begun);
    let (writes, syncs) = (cache.clone(), cache.clone());
    let writes = std::thread::spawn(move || writes.write_all(writer));
    let syncs = std::thread::spawn(move || syncs.sync_all());
    cache.add_topic(topic());
    receive(&cache, 1..=10);
    cache.sync();
    let begun = has_begun.recv_timeout(TIMEOUT);
    receive(&cache, 11..=20);
    let writer = cache.close(None).unwrap();
    assert_eq!(begun, Ok(()));
    check(&folder, &cache, writer);
    writes.join().unwrap();
    syncs.join().unwrap();
}
