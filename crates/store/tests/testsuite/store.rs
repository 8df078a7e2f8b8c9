//! A store as a publisher uses it: restored samples, refusals, and reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pteros_store::{
    Depth, Loss, Origin, Retention, Safety, Store, StoreError, StoreSpec, StoredSample, clear,
    list, read,
};

const TIMEOUT: Duration = Duration::from_secs(20);

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn spec(test: &str, depth: Depth) -> StoreSpec {
    StoreSpec {
        folder: folder(test),
        name: "0/talker:/chatter".into(),
        topic: "rt/chatter".into(),
        type_name: "std_msgs::msg::dds_::String_".into(),
        retention: Retention {
            depth,
            ..Retention::default()
        },
        safety: Safety::Disk,
        file_bytes_max: u64::MAX,
    }
}

fn sample(sequence: i64, bytes: usize) -> StoredSample {
    StoredSample {
        origin: Origin {
            writer: [3; 16],
            sequence,
        },
        source_nanos: Some(sequence * 10),
        key_hash: None,
        disposed: false,
        ended_nanos: 0,
        payload: Bytes::from(vec![sequence as u8; bytes]),
    }
}

fn open(spec: &StoreSpec) -> (Store, Vec<i64>) {
    let (store, samples) = Store::open(spec.clone(), 0, Box::new(|_| {})).unwrap();
    (store, numbers(&samples))
}

fn refusal(spec: &StoreSpec) -> StoreError {
    Store::open(spec.clone(), 0, Box::new(|_| {}))
        .map(drop)
        .unwrap_err()
}

fn numbers(samples: &[StoredSample]) -> Vec<i64> {
    samples.iter().map(|s| s.origin.sequence).collect()
}

#[test]
fn stored_samples_are_restored_in_order_up_to_the_depth() {
    let spec = spec("depth", Depth::KeepLast(3));
    let (store, none) = open(&spec);
    assert!(none.is_empty());
    for n in 1..=7 {
        store.put(sample(n, 100));
    }
    assert!(store.wait_until_stored(TIMEOUT));
    assert_eq!(store.counts().kept, 3);
    store.put(sample(8, 100));
    drop(store);
    let (store, samples) = Store::open(spec.clone(), 0, Box::new(|_| {})).unwrap();
    assert_eq!(numbers(&samples), [6, 7, 8]);
    assert_eq!(samples[2], sample(8, 100));
    drop(store);
    let lower = StoreSpec {
        retention: Retention {
            depth: Depth::KeepLast(1),
            ..spec.retention
        },
        ..spec
    };
    assert_eq!(open(&lower).1, [8]);
    assert_eq!(open(&lower).1, [8]);
}

#[test]
fn a_store_in_use_is_refused_by_name_and_free_again_after_closing() {
    let spec = spec("locked", Depth::KeepLast(1));
    let (store, _) = open(&spec);
    let error = refusal(&spec);
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("0%talker:%chatter.redb") && text.contains("option `store`"));
    assert!(matches!(
        clear(&store.path()),
        Err(StoreError::Locked { .. })
    ));
    store.close();
    let _ = open(&spec);
}

#[test]
fn a_store_of_another_topic_type_or_later_version_is_refused() {
    let spec = spec("other", Depth::KeepLast(1));
    drop(open(&spec));
    let other = StoreSpec {
        type_name: "std_msgs::msg::dds_::Int8_".into(),
        ..spec.clone()
    };
    let text = refusal(&other).to_string();
    assert!(text.contains("String_") && text.contains("Int8_"), "{text}");
    let database = redb::Database::open(spec.path()).unwrap();
    let change = database.begin_write().unwrap();
    let table = redb::TableDefinition::<&str, u32>::new("numbers");
    change
        .open_table(table)
        .unwrap()
        .insert("format", 7)
        .unwrap();
    change.commit().unwrap();
    drop(database);
    let error = refusal(&spec);
    assert!(
        matches!(error, StoreError::Newer { found: 7, .. }),
        "{error}"
    );
    let transient = StoreSpec {
        safety: Safety::Process,
        ..spec
    };
    // Not damaged, so not moved aside either.
    assert!(matches!(refusal(&transient), StoreError::Newer { .. }));
}

#[test]
fn a_folder_that_cannot_be_created_is_named_with_a_remedy() {
    let restore = folder("unwritable");
    fs::create_dir_all(&restore).unwrap();
    fs::write(restore.join("file"), "").unwrap();
    let spec = StoreSpec {
        folder: restore.join("file"),
        ..spec("unwritable-spec", Depth::KeepLast(1))
    };
    let text = refusal(&spec).to_string();
    assert!(
        text.contains("unwritable/file") && text.contains("PTEROS_STORE_DIR"),
        "{text}"
    );
}

#[test]
fn a_damaged_persistent_store_is_an_error_and_stays_as_it_is() {
    let spec = spec("damaged", Depth::KeepLast(9));
    fs::create_dir_all(&spec.folder).unwrap();
    fs::write(spec.path(), vec![b'x'; 10_000]).unwrap();
    let error = refusal(&spec);
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(fs::read(spec.path()).unwrap(), vec![b'x'; 10_000]);
    let listed = list(&spec.folder).unwrap();
    assert!(listed[0].contents.is_err());
    clear(&spec.path()).unwrap();
    assert!(list(&spec.folder).unwrap().is_empty());
}

#[test]
fn a_damaged_transient_store_is_moved_aside_and_started_empty() {
    let spec = StoreSpec {
        safety: Safety::Process,
        ..spec("aside", Depth::KeepLast(9))
    };
    fs::create_dir_all(&spec.folder).unwrap();
    fs::write(spec.path(), "not a store").unwrap();
    let (store, none) = open(&spec);
    assert!(none.is_empty());
    store.put(sample(1, 10));
    drop(store);
    assert_eq!(open(&spec).1, [1]);
    let aside = spec.path().with_extension("damaged-1");
    assert_eq!(fs::read_to_string(aside).unwrap(), "not a store");
}

#[test]
fn no_changed_byte_of_the_file_restores_a_wrong_sample() {
    let spec = spec("flipped", Depth::KeepAll);
    let (store, _) = open(&spec);
    for n in 1..=40 {
        store.put(sample(n, 700));
        assert!(store.wait_until_stored(TIMEOUT));
    }
    drop(store);
    let whole: Vec<_> = (1..=40).map(|n| sample(n, 700)).collect();
    let good = fs::read(spec.path()).unwrap();
    let used = good.iter().rposition(|byte| *byte != 0).unwrap();
    let (mut errors, mut intact) = (0, 0);
    for at in (0..64).chain((64..used).step_by(used / 150)) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        fs::write(spec.path(), &bad).unwrap();
        match Store::open(spec.clone(), 0, Box::new(|_| {})) {
            Ok((_, samples)) => {
                // A commit that is in doubt may be undone, never mixed up.
                assert!(whole.starts_with(&samples), "byte {at}");
                intact += 1;
            }
            Err(StoreError::Corrupt { .. } | StoreError::Io { .. }) => errors += 1,
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
    assert!(
        errors > 20 && intact > 0,
        "{errors} errors, {intact} intact"
    );
    fs::write(spec.path(), &good[..good.len() / 2]).unwrap();
    assert!(matches!(refusal(&spec), StoreError::Corrupt { .. }));
    fs::write(spec.path(), &good).unwrap();
    assert_eq!(read(&spec.path()).unwrap().samples, whole);
}

#[test]
fn a_full_keep_all_store_reports_and_keeps_its_samples() {
    let mut spec = spec("full", Depth::KeepAll);
    spec.retention.samples_max = 2;
    let losses: Arc<Mutex<Vec<Loss>>> = Arc::default();
    let told = losses.clone();
    let (store, _) = Store::open(
        spec.clone(),
        0,
        Box::new(move |loss| told.lock().unwrap().push(loss)),
    )
    .unwrap();
    for n in 1..=4 {
        store.put(sample(n, 10));
    }
    assert!(!store.wait_until_stored(TIMEOUT));
    assert_eq!(store.counts().not_stored, 2);
    drop(store);
    let losses = losses.lock().unwrap();
    let last = losses.last().unwrap();
    assert_eq!(last.total, 2);
    assert!(
        last.reason.contains("its limit is 2 samples"),
        "{}",
        last.reason
    );
    assert_eq!(open(&spec).1, [1, 2]);
    spec.retention.samples_max = 1;
    let error = refusal(&spec);
    assert!(
        matches!(error, StoreError::Full { samples: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_full_disk_is_reported_once_and_stored_samples_stay() {
    let spec = spec("disk-full", Depth::KeepAll);
    let (store, _) = open(&spec);
    store.put(sample(1, 1000));
    drop(store);
    let length = fs::metadata(spec.path()).unwrap().len();
    let tight = StoreSpec {
        file_bytes_max: length,
        ..spec.clone()
    };
    let losses: Arc<Mutex<Vec<Loss>>> = Arc::default();
    let told = losses.clone();
    let (store, _) = Store::open(
        tight,
        0,
        Box::new(move |loss| told.lock().unwrap().push(loss)),
    )
    .unwrap();
    store.put(sample(2, 8 << 20));
    assert!(!store.wait_until_stored(Duration::from_millis(2_500)));
    assert_eq!(store.counts().waiting, 1);
    drop(store);
    let losses = losses.lock().unwrap();
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert!(
        losses[0].reason.contains("free space on the disk"),
        "{losses:?}"
    );
    assert_eq!(open(&spec).1, [1]);
}

/// More than may wait, while the storing thread can't keep up with a loop.
#[test]
fn a_slow_disk_is_reported_once_per_batch() {
    let spec = spec("behind", Depth::KeepAll);
    drop(open(&spec));
    let length = fs::metadata(spec.path()).unwrap().len();
    let losses: Arc<Mutex<Vec<Loss>>> = Arc::default();
    let told = losses.clone();
    let tight = StoreSpec {
        file_bytes_max: length,
        ..spec
    };
    let on_loss = move |loss| told.lock().unwrap().push(loss);
    let (store, _) = Store::open(tight, 0, Box::new(on_loss)).unwrap();
    for n in 1..=100 {
        store.put(sample(n, 8 << 20));
    }
    let lost = store.counts().not_stored;
    assert!(lost > 20, "{lost}");
    // One report of the disk, and one for each retry meanwhile.
    let told = losses.lock().unwrap().len();
    assert!(told < 10, "{told} words for {lost} samples");
}

#[test]
fn a_keep_last_store_stays_within_its_bytes_and_its_file_near_them() {
    let mut spec = spec("bytes", Depth::KeepLast(1_000));
    spec.retention.bytes_max = 1 << 20;
    let (store, _) = open(&spec);
    for n in 1..=200 {
        store.put(sample(n, 100_000));
        if n % 10 == 0 {
            assert!(store.wait_until_stored(TIMEOUT));
        }
    }
    assert!(store.counts().bytes <= 1 << 20);
    drop(store);
    assert_eq!(open(&spec).1, (191..=200).collect::<Vec<_>>());
    let file = fs::metadata(spec.path()).unwrap().len();
    assert!(file < 16 << 20, "the file has {file} bytes");
}

#[test]
fn a_disposed_instance_is_restored_until_its_clean_up_delay_is_over() {
    let mut spec = spec("clean-up", Depth::KeepAll);
    spec.retention.cleanup_nanos = 1_000;
    let (store, _) = open(&spec);
    let of = |n, key, disposed, ended_nanos| StoredSample {
        key_hash: Some([key; 16]),
        disposed,
        ended_nanos,
        ..sample(n, 10)
    };
    store.put(of(1, 1, false, 0));
    store.put(of(2, 2, false, 0));
    store.put(of(3, 1, true, 5_000));
    drop(store);
    let at = |wall| {
        let (_, samples) = Store::open(spec.clone(), wall, Box::new(|_| {})).unwrap();
        numbers(&samples)
    };
    assert_eq!(at(5_999), [1, 2, 3]);
    assert_eq!(at(6_000), [2]);
    assert_eq!(at(0), [2]);
}
