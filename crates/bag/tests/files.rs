//! Bags on disk: written, read, torn at every byte, damaged and split.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pteros::QosProfile;
use pteros_bag::mcap::Compression;
use pteros_bag::{BagMessage, BagOptions, BagReader, BagTopic, BagWriter, MessageFilter, copy};

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bag-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn topic(name: &str) -> BagTopic {
    BagTopic {
        name: name.into(),
        type_name: "std_msgs/msg/String".into(),
        definition: "string data\n".into(),
        serialization_format: "cdr".into(),
        offered_qos: vec![QosProfile::default()],
        type_hash: "RIHS01_00".into(),
    }
}

fn payload(n: u64) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend((0..40 + n % 7).map(|at| (at * n) as u8));
    bytes
}

/// Writes `count` messages on two topics, one every 10 ns.
fn write(folder: &Path, options: BagOptions, count: u64) {
    let mut writer = BagWriter::create(folder, options).unwrap();
    let channels = ["/a", "/b"].map(|name| writer.add_topic(topic(name)).unwrap());
    for n in 0..count {
        let channel = channels[usize::try_from(n % 2).unwrap()];
        writer
            .write(channel, 1000 + 10 * n, 900 + 10 * n, &payload(n))
            .unwrap();
    }
    writer.finish(&Default::default()).unwrap();
}

fn all(reader: &mut BagReader) -> Vec<BagMessage> {
    reader.messages(MessageFilter::default()).collect()
}

fn small_chunks() -> BagOptions {
    BagOptions {
        chunk_bytes: 400,
        ..BagOptions::default()
    }
}

#[test]
fn messages_are_read_as_they_were_written_with_every_compression() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let folder = folder(&format!("round-{compression}"));
        let options = BagOptions {
            compression,
            ..small_chunks()
        };
        write(&folder, options, 100);
        let mut reader = BagReader::open(&folder).unwrap();
        assert_eq!(reader.problems(), [""; 0]);
        assert!(reader.is_complete());
        assert_eq!(
            (reader.message_count(), reader.span()),
            (100, Some((1000, 1990)))
        );
        assert_eq!(reader.topics()[1].topic, topic("/b"));
        let read = all(&mut reader);
        assert_eq!(read.len(), 100);
        for (n, message) in (0..).zip(&read) {
            assert_eq!(message.topic as u64, n % 2);
            assert_eq!(
                (message.log_time, message.publish_time),
                (1000 + 10 * n, 900 + 10 * n)
            );
            assert_eq!(message.payload, payload(n));
        }
        let filter = MessageFilter {
            topics: Some(vec![1]),
            from: Some(1500),
            until: Some(1600),
            ..MessageFilter::default()
        };
        let times = reader.messages(filter).map(|message| message.log_time);
        assert_eq!(times.collect::<Vec<_>>(), [1510, 1530, 1550, 1570, 1590]);
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder("overwrite");
    write(&folder, BagOptions::default(), 1);
    let error = BagWriter::create(&folder, BagOptions::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("exists already"), "{error}");
    let error = BagReader::open(&folder).unwrap().reindex().unwrap_err();
    assert!(
        error.to_string().contains("metadata.yaml exists already"),
        "{error}"
    );
}

#[test]
fn files_are_split_by_size_and_no_file_is_larger() {
    let folder = folder("split-size");
    let options = BagOptions {
        split_bytes: Some(4000),
        ..BagOptions::default()
    };
    write(&folder, options, 300);
    let mut reader = BagReader::open(&folder).unwrap();
    let files: Vec<PathBuf> = reader.files().map(Path::to_path_buf).collect();
    assert!(files.len() > 5, "{}", files.len());
    assert!(files[1].ends_with("bag-split-size_1.mcap"), "{files:?}");
    assert_eq!(all(&mut reader).len(), 300);
    let metadata = reader.metadata().unwrap();
    assert_eq!(
        metadata
            .files
            .iter()
            .map(|file| file.message_count)
            .sum::<u64>(),
        300
    );
}

#[test]
fn files_are_split_at_the_exact_time_and_latched_messages_repeated() {
    let folder = folder("split-time");
    let options = BagOptions {
        split_duration: Some(Duration::from_nanos(100)),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let latched = BagTopic {
        offered_qos: vec![QosProfile::default().keep_last(1).transient_local()],
        ..topic("/map")
    };
    let map = writer.add_topic(latched).unwrap();
    let scan = writer.add_topic(topic("/scan")).unwrap();
    writer.write(map, 1000, 1000, &payload(1)).unwrap();
    writer.keep_latched(map, 7, 1000, &payload(1));
    for n in 1..30 {
        writer.write(scan, 1000 + 10 * n, 0, &payload(n)).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let reader = BagReader::open(&folder).unwrap();
    let counts: Vec<u64> = reader
        .metadata()
        .unwrap()
        .files
        .iter()
        .map(|f| f.message_count)
        .collect();
    assert_eq!(counts, [10, 11, 11]);
    for file in reader.files() {
        let mut one = BagReader::open(file).unwrap();
        let first = all(&mut one).remove(0);
        assert_eq!(one.topics()[first.topic].topic.name, "/map");
        assert_eq!(first.payload, payload(1));
    }
}

/// The messages of a file that ends at any byte are a prefix of all messages, and are
/// no fewer than those of whole chunks.
#[test]
fn a_file_that_ends_anywhere_is_read_up_to_there() {
    let folder = folder("torn");
    write(&folder, small_chunks(), 40);
    let whole = std::fs::read(folder.join("bag-torn_0.mcap")).unwrap();
    let expected = all(&mut BagReader::from_bytes(whole.clone()).unwrap());
    assert_eq!(expected.len(), 40);
    let mut most = 0;
    for length in 8..whole.len() {
        let mut reader = BagReader::from_bytes(whole[..length].to_vec()).unwrap();
        let read = all(&mut reader);
        assert_eq!(read[..], expected[..read.len()], "{length}");
        assert!(
            read.len() >= most,
            "{length}: {} messages after {most}",
            read.len()
        );
        assert_eq!(reader.message_count(), read.len() as u64);
        most = read.len();
    }
    assert_eq!(most, 40);
    for length in 0..8 {
        let error = BagReader::from_bytes(whole[..length].to_vec())
            .err()
            .unwrap();
        assert!(error.to_string().contains("is no bag"), "{error}");
    }
}

#[test]
fn a_torn_bag_is_reindexed_and_recovered() {
    let folder = folder("recover");
    write(&folder, small_chunks(), 40);
    let file = folder.join("bag-recover_0.mcap");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    std::fs::remove_file(folder.join("metadata.yaml")).unwrap();
    let mut torn = BagReader::open(&folder).unwrap();
    let count = torn.message_count();
    assert!(count > 5 && count < 40, "{count}");
    let problems = torn.problems().join("\n");
    assert!(problems.contains("pteros bag reindex"), "{problems}");
    assert!(problems.contains("ends within a record"), "{problems}");
    let new = self::folder("recovered");
    copy(
        &mut torn,
        MessageFilter::default(),
        &new,
        BagOptions::default(),
    )
    .unwrap();
    let mut recovered = BagReader::open(&new).unwrap();
    assert!(recovered.is_complete());
    assert_eq!(all(&mut recovered).len() as u64, count);
    assert_eq!(torn.reindex().unwrap().message_count, count);
    assert_eq!(
        BagReader::open(&folder)
            .unwrap()
            .metadata()
            .unwrap()
            .message_count,
        count
    );
}

#[test]
fn a_wrong_checksum_leaves_out_one_chunk() {
    let folder = folder("crc");
    write(&folder, small_chunks(), 40);
    let mut bytes = std::fs::read(folder.join("bag-crc_0.mcap")).unwrap();
    let wanted = payload(9);
    let at = bytes
        .windows(wanted.len())
        .position(|w| w == wanted)
        .unwrap();
    bytes[at + 20] ^= 1;
    let mut reader = BagReader::from_bytes(bytes).unwrap();
    let read = all(&mut reader);
    assert!(read.len() < 40 && read.len() >= 30, "{}", read.len());
    assert!(!read.iter().any(|message| message.log_time == 1090));
    let problems = reader.problems().join("\n");
    assert!(
        problems.contains("checksum of a chunk is wrong"),
        "{problems}"
    );
}

/// Bytes of all records are changed at random: no panic, and no more memory than the
/// limits say.
#[test]
fn damaged_files_are_read_without_a_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let folder = folder(&format!("damaged-{compression}"));
        let options = BagOptions {
            compression,
            ..small_chunks()
        };
        write(&folder, options, 30);
        let name = format!("bag-damaged-{compression}_0.mcap");
        let whole = std::fs::read(folder.join(name)).unwrap();
        for _ in 0..300 {
            let mut bad = whole.clone();
            for _ in 0..1 + random() % 4 {
                let at = 8 + usize::try_from(random()).unwrap() % (bad.len() - 8);
                bad[at] = match random() % 3 {
                    0 => 0xff,
                    1 => 0,
                    _ => random() as u8,
                };
            }
            if random() % 4 == 0 {
                bad.truncate(usize::try_from(random()).unwrap() % bad.len());
            }
            if let Ok(mut reader) = BagReader::from_bytes(bad) {
                let _ = all(&mut reader).len();
                let _ = reader.describe();
            }
        }
    }
}

#[test]
fn what_is_no_bag_is_named_with_the_way_out() {
    let folder = folder("none");
    let error = BagReader::open(&folder).err().unwrap();
    assert!(error.to_string().contains("no such bag"), "{error}");
    std::fs::create_dir_all(&folder).unwrap();
    let error = BagReader::open(&folder).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("without .mcap, .db3 or .bag files"),
        "{error}"
    );
    let sqlite = folder.join("old.db3");
    std::fs::write(&sqlite, b"SQLite format 3\0").unwrap();
    let error = BagReader::open(&sqlite).err().unwrap();
    assert!(error.to_string().contains("old.db3"), "{error}");
    let old = folder.join("old.bag");
    std::fs::write(&old, b"#ROSBAG V1.2\n").unwrap();
    let error = BagReader::open(&old).err().unwrap();
    assert!(error.to_string().contains("rosbag fix"), "{error}");
}

#[test]
fn bags_are_merged_in_the_order_of_time() {
    let [one, two, both] = ["merge-1", "merge-2", "merge-both"].map(folder);
    write(&one, BagOptions::default(), 20);
    let mut writer = BagWriter::create(&two, BagOptions::default()).unwrap();
    let channel = writer.add_topic(topic("/c")).unwrap();
    writer.write(channel, 1055, 0, &payload(3)).unwrap();
    writer.finish(&Default::default()).unwrap();
    let mut merged = BagReader::open_all(&[one, two], pteros::interfaces::library()).unwrap();
    let metadata = copy(
        &mut merged,
        MessageFilter::default(),
        &both,
        BagOptions::default(),
    );
    assert_eq!(metadata.unwrap().message_count, 21);
    let mut reader = BagReader::open(&both).unwrap();
    let read = all(&mut reader);
    assert!(read.is_sorted_by_key(|message| message.log_time));
    assert_eq!(reader.topics()[read[6].topic].topic.name, "/c");
}
