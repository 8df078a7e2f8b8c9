//! Power cuts: a store that loses what was not synced. What was synced is read, the torn
//! bag is recovered, and no message appears that was not written.
#![allow(
    clippy::disallowed_methods,
    reason = "a test waits for other threads with a deadline"
)]

use pteros_test_support::folder::Folder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;
use pteros_bag::mcap::Compression;
use pteros_bag::{
    BagError, BagFile, BagMessage, BagOptions, BagReader, BagTopic, BagWriter, FileStore, Recorder,
    RecorderOptions, TopicFilter, copy,
};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that a disk writes at once: all of them are there, or none.
const SECTOR_BYTES: usize = 512;

/// A machine whose power is cut before a certain operation. Its files are in memory, and
/// the disk gets what was synced.
#[derive(Debug)]
struct Machine {
    files: Mutex<Vec<Arc<MachineFile>>>,
    /// Operations until the power is cut.
    left: Arc<AtomicU64>,
    /// Whether the next sync fails, with power.
    next_sync_fails: Arc<AtomicBool>,
}

#[derive(Debug)]
struct MachineFile {
    path: PathBuf,
    content: Mutex<Content>,
    left: Arc<AtomicU64>,
    next_sync_fails: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: usize,
    /// Whether the folder has the file's name durably.
    is_named: bool,
}

/// Bytes that were not synced, as a file system may leave them.
#[derive(Clone, Copy, Debug)]
enum Unsynced {
    /// Nothing: the file ends where it was synced.
    Cut,
    /// The size, but each sector only by chance; the others are zeros.
    Sectors,
    /// All of them: the system had written them by itself.
    Whole,
}

impl Machine {
    fn new(operations: u64) -> Arc<Self> {
        Arc::new(Self {
            files: Mutex::default(),
            left: Arc::new(AtomicU64::new(operations)),
            next_sync_fails: Arc::default(),
        })
    }

    /// Writes to the disk what survived.
    fn cut_power(&self, unsynced: Unsynced) {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for file in self.files.lock().unwrap().iter() {
            let content = file.content.lock().unwrap();
            let kept = match unsynced {
                Unsynced::Cut if !content.is_named => continue,
                Unsynced::Cut => content.bytes[..content.synced].to_vec(),
                Unsynced::Whole => content.bytes.clone(),
                Unsynced::Sectors => {
                    let mut kept = content.bytes.clone();
                    for (number, sector) in kept.chunks_mut(SECTOR_BYTES).enumerate() {
                        let at = number * SECTOR_BYTES;
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        if random.is_multiple_of(2) {
                            let first = content.synced.saturating_sub(at).min(sector.len());
                            sector[first..].fill(0);
                        }
                    }
                    kept
                }
            };
            std::fs::write(&file.path, kept).unwrap();
        }
    }

    fn synced_bytes(&self) -> usize {
        let files = self.files.lock().unwrap();
        let synced = files.iter().map(|file| file.content.lock().unwrap().synced);
        synced.sum()
    }
}

/// Uses up one operation; an error once there is no power.
fn use_power(left: &AtomicU64) -> io::Result<()> {
    let has_power = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    has_power
        .map(|_| ())
        .map_err(|_| io::Error::other("no power"))
}

impl FileStore for Machine {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn BagFile>> {
        use_power(&self.left)?;
        let file = Arc::new(MachineFile {
            path: path.to_owned(),
            content: Mutex::default(),
            left: self.left.clone(),
            next_sync_fails: self.next_sync_fails.clone(),
        });
        self.files.lock().unwrap().push(file.clone());
        Ok(file)
    }
}

impl BagFile for MachineFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        use_power(&self.left)?;
        self.content.lock().unwrap().bytes.extend(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        use_power(&self.left)?;
        if self.next_sync_fails.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("the device is gone"));
        }
        let mut content = self.content.lock().unwrap();
        content.synced = content.bytes.len();
        content.is_named = true;
        Ok(())
    }
}

const MESSAGES: u64 = 60;
const SYNC_EVERY: u64 = 10;

/// Writes messages with splits and syncs until the end, or until the power is cut.
/// Returns how many of them are synced, and whether it came to the end.
fn write(folder: &Path, machine: &Arc<Machine>, compression: Compression) -> (u64, bool) {
    let mut synced = 0;
    let options = BagOptions {
        compression,
        chunk_bytes: 400,
        split_bytes: Some(6_000),
        store: machine.clone(),
        ..BagOptions::default()
    };
    let mut write_all = || -> Result<(), BagError> {
        let mut writer = BagWriter::create(folder, options.clone())?;
        let channel = writer.add_topic(BagTopic {
            name: "/a".into(),
            type_name: "std_msgs/msg/String".into(),
            definition: "string data\n".into(),
            serialization_format: "cdr".into(),
            ..BagTopic::default()
        })?;
        for number in 0..MESSAGES {
            writer.write(channel, number, number, &payload(number))?;
            if number % SYNC_EVERY == SYNC_EVERY - 1 {
                writer.sync()?;
                synced = number + 1;
            }
        }
        writer.finish(&Default::default())?;
        Ok(())
    };
    let is_whole = write_all().is_ok();
    (synced, is_whole)
}

/// Different in each message, and nothing that a compressor makes small.
fn payload(number: u64) -> Vec<u8> {
    let byte = |at: u64| (((number * 131 + at * 17) * 2_654_435_761) >> 13) as u8;
    (0..200).map(byte).collect()
}

/// The numbers of the messages, each of which is whole.
fn numbers(messages: impl Iterator<Item = BagMessage>) -> Vec<u64> {
    let number = |message: BagMessage| {
        assert!(
            message.payload == payload(message.log_time),
            "it is damaged"
        );
        message.log_time
    };
    messages.map(number).collect()
}

/// The power is cut before every second operation, and each time the file system keeps
/// another part of what was not synced.
#[test]
fn what_was_synced_survives_a_power_cut_at_any_moment() {
    let (mut cuts, mut with_more) = (0, 0);
    for (compression, step) in [(Compression::None, 2), (Compression::Zstd, 9)] {
        for unsynced in [Unsynced::Cut, Unsynced::Sectors, Unsynced::Whole] {
            for operations in (0..).step_by(step) {
                let bag = Folder::absent("power-cut");
                let machine = Machine::new(operations);
                let (synced, is_over) = write(&bag, &machine, compression);
                machine.cut_power(unsynced);
                let what = format!("{compression}, {unsynced:?}, {operations} operations");
                let read = match BagReader::open(&bag) {
                    Ok(mut bag) => numbers(bag.messages(Default::default())),
                    // No file survived, or not even the start of one.
                    Err(error) => {
                        assert_eq!(synced, 0, "{what}: {error}");
                        continue;
                    }
                };
                let whole: Vec<u64> = (0..synced).collect();
                assert!(
                    read.starts_with(&whole),
                    "{what}: {synced} synced, {read:?}"
                );
                assert!(read.is_sorted_by(|a, b| a < b), "{what}: {read:?}");
                with_more += usize::from(read.len() > whole.len());
                let recovered = Folder::absent("power-recovered");
                let mut torn = BagReader::open(&bag).unwrap();
                copy(
                    &mut torn,
                    Default::default(),
                    &recovered,
                    BagOptions::default(),
                )
                .unwrap();
                let mut again = BagReader::open(&recovered).unwrap();
                assert_eq!(again.problems(), [""; 0], "{what}");
                assert!(again.is_complete(), "{what}");
                assert_eq!(numbers(again.messages(Default::default())), read, "{what}");
                cuts += 1;
                if is_over {
                    assert_eq!(read.len() as u64, MESSAGES, "{what}");
                    break;
                }
            }
        }
    }
    assert!(cuts > 100 && with_more > 30, "{cuts} cuts, {with_more}");
}

/// A recorder of `/n` on a machine, and its publisher.
struct Scene {
    executor: SingleThreadedExecutor,
    publisher: Publisher<UInt64>,
    recorder: Recorder,
    bag: Folder,
    /// All notes of the recorder.
    notes: Vec<String>,
    end: Instant,
    _nodes: [Node; 2],
}

impl Scene {
    /// Starts recording, in one of the eighty domains from `first` on.
    fn start(first: u32, machine: &Arc<Machine>, name: &str) -> Self {
        let domain = first + (std::process::id() * 7) % 80;
        let context = Context::with_options(ContextOptions::local(domain)).unwrap();
        let nodes = ["robot", "recorder"].map(|name| context.create_node(name).unwrap());
        let executor = SingleThreadedExecutor::new(&context);
        for node in &nodes {
            executor.add_node(node).unwrap();
        }
        let publisher = nodes[0].create_publisher("/n".keep_last(100)).unwrap();
        let bag = Folder::absent(&format!("power-{name}"));
        let options = RecorderOptions {
            filter: TopicFilter {
                topics: vec!["/n".into()],
                ..TopicFilter::default()
            },
            bag: BagOptions {
                store: machine.clone(),
                ..BagOptions::default()
            },
            ..RecorderOptions::default()
        };
        let mut scene = Self {
            executor,
            publisher,
            recorder: Recorder::start(&nodes[1], &bag, options).unwrap(),
            bag,
            notes: Vec::new(),
            end: Instant::now() + TIMEOUT,
            _nodes: nodes,
        };
        scene.spin_until(|scene| scene.publisher.matched_count() == 1);
        scene
    }

    #[track_caller]
    fn spin_until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        while !done(self) {
            assert!(Instant::now() < self.end, "it does not come to that");
            self.notes.extend(self.recorder.poll(Instant::now()));
            self.executor.spin_once(Duration::from_millis(5));
        }
    }

    fn publish_twenty(&self) {
        for data in 0..20 {
            self.publisher.publish(&UInt64 { data }).unwrap();
        }
    }

    fn written(&self) -> u64 {
        self.recorder.accounts()["/n"].written
    }
}

/// A recorder syncs by itself: nobody asks for it, and no file ends.
#[test]
fn a_recorder_loses_no_more_than_a_second_at_a_power_cut() {
    let machine = Machine::new(u64::MAX);
    let mut scene = Scene::start(20, &machine, "recorder");
    scene.publish_twenty();
    scene.spin_until(|scene| scene.written() == 20);
    // A sync that begins after the last message was written.
    let written = machine.synced_bytes();
    scene.spin_until(|_| {
        let files = machine.files.lock().unwrap();
        let mut files = files.iter().map(|file| file.content.lock().unwrap());
        files.all(|file| file.synced == file.bytes.len() && file.synced >= written)
    });
    machine.left.store(0, Ordering::SeqCst);
    machine.cut_power(Unsynced::Cut);
    let mut torn = BagReader::open(&scene.bag).unwrap();
    let count = torn.messages(Default::default()).count();
    assert_eq!(count, 20);
    assert!(!torn.is_complete());
    // A sync may have failed before.
    let ended = scene.recorder.finish();
    assert!(ended.is_err() || ended.is_ok_and(|summary| summary.problem.is_some()));
}

#[test]
fn a_recorder_goes_on_after_a_sync_that_failed_and_reports_it() {
    let machine = Machine::new(u64::MAX);
    machine.next_sync_fails.store(true, Ordering::SeqCst);
    let mut scene = Scene::start(120, &machine, "failed-sync");
    let is_of_sync = |note: &String| note.contains("the device is gone");
    for written in [20, 40] {
        scene.publish_twenty();
        scene.spin_until(|scene| scene.written() == written && scene.notes.iter().any(is_of_sync));
    }
    scene.notes.retain(is_of_sync);
    assert_eq!(scene.notes.len(), 1, "{:?}", scene.notes);
    assert_eq!(scene.recorder.problem(), None);
    let summary = scene.recorder.finish().unwrap();
    let problem = summary.problem.as_deref().unwrap_or_default();
    assert!(problem.contains("the device is gone"), "{problem}");
    assert_eq!((summary.metadata.message_count, summary.lost()), (40, 0));
    machine.cut_power(Unsynced::Cut);
    let mut whole = BagReader::open(&scene.bag).unwrap();
    assert!(whole.is_complete());
    assert_eq!(whole.messages(Default::default()).count(), 40);
}
