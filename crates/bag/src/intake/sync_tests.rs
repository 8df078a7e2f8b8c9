//! Syncs that fail: the recording goes on, and its end reports them.
#![allow(
    clippy::disallowed_methods,
    reason = "the writer and the sync are two threads"
)]

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::tests::{folder, message, topic};
use super::*;
use crate::BagReader;
use crate::file_store::{BagFile, FileStore, FileSystem};
use crate::writer::BagOptions;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The first sync of a bag. It fails.
#[derive(Debug)]
struct FirstSync {
    /// The sync ends only after the writer of this intake, if it is there.
    intake: Weak<Intake>,
    begun: Sender<()>,
    is_over: AtomicBool,
}

impl FirstSync {
    fn fail(&self) -> io::Result<()> {
        let _ = self.begun.send(());
        if let Some(intake) = self.intake.upgrade() {
            let mut output = intake.output.lock();
            while !output.is_finished {
                let waited = intake.finished.wait_for(&mut output, TIMEOUT);
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

fn intake(has_sync_thread: bool) -> Arc<Intake> {
    Intake::new(IntakeOptions {
        chunk_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        is_paused: false,
        is_snapshot: false,
        has_sync_thread,
    })
}

fn writer(folder: &Path, intake: Weak<Intake>, begun: Sender<()>) -> BagWriter {
    let store = Store(Arc::new(FirstSync {
        intake,
        begun,
        is_over: AtomicBool::new(false),
    }));
    let options = BagOptions {
        store: Arc::new(store),
        ..BagOptions::default()
    };
    BagWriter::create(folder, options).unwrap()
}

/// Receives messages, in a chunk of their own.
fn receive(intake: &Intake, sequences: RangeInclusive<i64>) {
    for sequence in sequences {
        intake.receive(message(sequence), &[0; 20]);
    }
    intake.flush();
}

/// All of the 20 messages are in the bag, and the sync is reported.
fn check(folder: &Path, intake: &Intake, writer: BagWriter) {
    let problem = intake.sync_problem().expect("the sync is reported");
    assert!(problem.contains("the device is gone"), "{problem}");
    assert_eq!(intake.problem(), None);
    let account = intake.accounts().remove(&1).unwrap();
    assert_eq!((account.written, account.lost()), (20, 0), "{account}");
    let metadata = Intake::finish(writer, &BTreeMap::new()).unwrap();
    assert_eq!(metadata.message_count, 20);
    let mut reader = BagReader::open(folder).unwrap();
    assert!(reader.is_complete());
    assert_eq!(reader.messages(Default::default()).count(), 20);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_recording_goes_on_after_a_sync_that_failed() {
    let folder = folder("failed-sync");
    let intake = intake(false);
    let (begun, has_begun) = channel();
    let mut writer = writer(&folder, Weak::new(), begun);
    intake.add_topic(topic());
    receive(&intake, 1..=10);
    intake.sync();
    while intake.write_next(&mut writer) {}
    assert_eq!(has_begun.try_recv(), Ok(()));
    receive(&intake, 11..=20);
    let writer = intake.close(Some(writer)).unwrap();
    check(&folder, &intake, writer);
}

/// The sync has its error only after the writer has ended, and no later one has it.
#[test]
fn the_end_of_a_recording_waits_for_the_sync_that_runs() {
    let folder = folder("last-sync");
    let intake = intake(true);
    let (begun, has_begun) = channel();
    let writer = writer(&folder, Arc::downgrade(&intake), begun);
    let (writes, syncs) = (intake.clone(), intake.clone());
    let writes = std::thread::spawn(move || writes.write_all(writer));
    let syncs = std::thread::spawn(move || syncs.sync_all());
    intake.add_topic(topic());
    receive(&intake, 1..=10);
    intake.sync();
    let begun = has_begun.recv_timeout(TIMEOUT);
    receive(&intake, 11..=20);
    let writer = intake.close(None).unwrap();
    assert_eq!(begun, Ok(()));
    check(&folder, &intake, writer);
    writes.join().unwrap();
    syncs.join().unwrap();
}
