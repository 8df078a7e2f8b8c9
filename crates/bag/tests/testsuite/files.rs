//! Bags on disk: written, read, torn at every byte, damaged and split.

use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pteros::QosProfile;
use pteros_bag::mcap::Compression;
use pteros_bag::{BagMessage, BagOptions, BagReader, BagTopic, BagWriter, MessageFilter, copy};

fn topic(name: &str) -> BagTopic {
    BagTopic {
        name: name.into(),
        type_name: "std_msgs/msg/String".into(),
        definition: "string data\n".into(),
        serialization_format: "cdr".into(),
        offered_qos: vec![QosProfile::default()],
        type_hash: "RIHS01_00".into(),
        foreign_schema: None,
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
        let folder = Folder::absent(&format!("bag-round-{compression}"));
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
    let folder = Folder::absent("bag-overwrite");
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
    let folder = Folder::absent("bag-split-size");
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

/// Log of kinds: the size of a file. No file of several messages exceeds the limit, with
/// definitions, indexes and metadata that are larger than the messages.
#[test]
fn no_file_exceeds_its_size_whatever_it_holds() {
    let long = format!("# {}\nstring data\n", "comment ".repeat(150));
    for (case, limit, topics, payload_bytes, compression) in [
        (0, 3_000, 1, 40, Compression::None),
        (1, 20_000, 1, 40, Compression::None),
        (2, 20_000, 12, 10, Compression::None),
        (3, 20_000, 12, 900, Compression::Zstd),
        (4, 50_000, 12, 3_000, Compression::Lz4),
        (5, 6_000, 3, 0, Compression::None),
    ] {
        let folder = Folder::absent(&format!("bag-limit-{case}"));
        let options = BagOptions {
            split_bytes: Some(limit),
            compression,
            ..BagOptions::default()
        };
        let mut writer = BagWriter::create(&folder, options).unwrap();
        let mut state = 7u32;
        for number in 0..topics {
            let definition = format!("{long}# {number}\n");
            let topic = BagTopic {
                definition: if case == 5 {
                    "string data\n".into()
                } else {
                    definition
                },
                ..topic(&format!("/topic{number}"))
            };
            writer.add_topic(topic).unwrap();
        }
        for n in 0..600u64 {
            let noise = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            });
            let payload: Vec<u8> = noise.take(payload_bytes).collect();
            let channel = u16::try_from(1 + n % topics).unwrap();
            writer.write(channel, n, n, &payload).unwrap();
        }
        let metadata = writer.finish(&Default::default()).unwrap();
        assert_eq!(metadata.message_count, 600);
        assert!(metadata.files.len() > 1, "{case}");
        for file in &metadata.files {
            let bytes = std::fs::metadata(folder.join(&file.path)).unwrap().len();
            assert!(
                bytes <= limit || file.message_count == 1,
                "{case}: {} has {bytes} bytes and {} messages",
                file.path,
                file.message_count
            );
        }
        let mut reader = BagReader::open(&folder).unwrap();
        assert_eq!(reader.problems(), [""; 0]);
        assert_eq!(all(&mut reader).len(), 600);
        let count = metadata.files.len();
        let least = std::fs::metadata(folder.join(&metadata.files[count / 2].path)).unwrap();
        let room = if case == 0 { 4 } else { 3 };
        assert!(
            least.len() * room > limit,
            "{case}: {} of {limit}",
            least.len()
        );
    }
}

/// The state that a file begins with leaves room for its messages.
#[test]
fn latched_messages_leave_room_in_a_small_file() {
    let folder = Folder::absent("bag-limit-latched");
    let options = BagOptions {
        split_bytes: Some(20_000),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let map = writer.add_topic(latched("/map", 1)).unwrap();
    let small = writer.add_topic(latched("/small", 1)).unwrap();
    let scan = writer.add_topic(topic("/scan")).unwrap();
    writer
        .write_transient_local(map, Some(1), 1, 1, &[1; 18_000])
        .unwrap();
    writer
        .write_transient_local(small, Some(2), 2, 2, &[2; 9_000])
        .unwrap();
    for n in 0..40 {
        writer.write(scan, 10 + n, 10 + n, &[3; 1000]).unwrap();
    }
    let metadata = writer.finish(&Default::default()).unwrap();
    for file in metadata.files.iter().skip(2) {
        let bytes = std::fs::metadata(folder.join(&file.path)).unwrap().len();
        assert!(bytes <= 20_000, "{bytes}");
        let names: Vec<String> = read_names(&folder.join(&file.path));
        assert_eq!(
            (&*names[0], &*names[1]),
            ("/small", "/scan"),
            "{}",
            file.path
        );
    }
    let scans = read_names(&folder)
        .iter()
        .filter(|name| *name == "/scan")
        .count();
    assert_eq!(scans, 40);
}

/// The topics of all messages, in order.
fn read_names(path: &Path) -> Vec<String> {
    let mut reader = BagReader::open(path).unwrap();
    let messages = all(&mut reader);
    let names = messages
        .iter()
        .map(|m| reader.topics()[m.topic].topic.name.clone());
    names.collect()
}

/// Log of kinds: a metadata.yaml that cannot be read, or is wrong. The files themselves
/// say as much.
#[test]
fn a_bag_is_read_whatever_its_metadata_is() {
    let folder = Folder::absent("bag-metadata");
    write(&folder, BagOptions::default(), 10);
    let yaml = folder.join("metadata.yaml");
    let text = std::fs::read(&yaml).unwrap();
    let replaced = |from: &str, to: &[u8]| {
        let mut out = Vec::new();
        let mut rest = &text[..];
        while let Some(at) = rest.windows(from.len()).position(|w| w == from.as_bytes()) {
            out.extend(&rest[..at]);
            out.extend(to);
            rest = &rest[at + from.len()..];
        }
        out.extend(rest);
        out
    };
    let cases: [(&str, Vec<u8>, &str); 5] = [
        (
            "a byte in a topic",
            replaced("name: /a", b"name: /a\xff"),
            "it is not UTF-8",
        ),
        (
            "a byte in a path",
            replaced("bag-metadata_0", b"bag\xfe"),
            "names it",
        ),
        ("no YAML", b"{[\xc3(".to_vec(), "it is not UTF-8"),
        (
            "another file",
            replaced("bag-metadata_0", b"renamed_0"),
            "names it",
        ),
        (
            "no number",
            replaced("message_count: 10", b"message_count: x"),
            "whole number",
        ),
    ];
    for (name, content, problem) in cases {
        std::fs::write(&yaml, content).unwrap();
        let mut reader = BagReader::open(&folder).unwrap();
        let problems = reader.problems().join("\n");
        assert!(problems.contains(problem), "{name}: {problems}");
        assert_eq!(all(&mut reader).len(), 10, "{name}");
        let new = Folder::absent("bag-metadata-recovered");
        let options = BagOptions::default();
        let copied = copy(&mut reader, MessageFilter::default(), &new, options).unwrap();
        assert_eq!(copied.message_count, 10, "{name}");
    }
    std::fs::remove_file(&yaml).unwrap();
    std::fs::create_dir(&yaml).unwrap();
    let mut reader = BagReader::open(&folder).unwrap();
    assert!(
        reader.problems()[0].contains("it is a folder"),
        "{:?}",
        reader.problems()
    );
    assert_eq!(all(&mut reader).len(), 10);
}

/// Log of kinds: FIFOs, which block who opens them, in every place of a bag.
#[test]
fn a_fifo_in_a_bag_is_named_and_blocks_nobody() {
    let folder = Folder::absent("bag-fifo");
    write(&folder, BagOptions::default(), 10);
    let fifo = |path: &Path| {
        let made = std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap();
        assert!(made.success());
    };
    let yaml = folder.join("metadata.yaml");
    std::fs::remove_file(&yaml).unwrap();
    fifo(&yaml);
    fifo(&folder.join("bag-fifo_1.mcap"));
    let mut reader = BagReader::open(&folder).unwrap();
    let problems = reader.problems().join("\n");
    assert_eq!(
        problems.matches("a FIFO, not a regular file").count(),
        2,
        "{problems}"
    );
    assert_eq!(all(&mut reader).len(), 10);
    let error = BagReader::open(&folder.join("bag-fifo_1.mcap"))
        .err()
        .unwrap();
    assert!(error.to_string().contains("is a FIFO"), "{error}");
    // Beside a database: its log and its journal.
    let database = folder.join("version1.db3");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::copy(fixtures.join("version1.db3"), &database).unwrap();
    fifo(&folder.join("version1.db3-wal"));
    fifo(&folder.join("version1.db3-journal"));
    assert_eq!(all(&mut BagReader::open(&database).unwrap()).len(), 30);
}

/// A chunk that a reader would take for a bomb is not compressed.
#[test]
fn a_large_message_of_zeros_is_read_again() {
    let folder = Folder::absent("bag-zeros");
    let options = BagOptions {
        compression: Compression::Zstd,
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let channel = writer.add_topic(topic("/a")).unwrap();
    writer.write(channel, 1, 1, &vec![0; 80 << 20]).unwrap();
    writer.write(channel, 2, 2, &[0; 100]).unwrap();
    writer.finish(&Default::default()).unwrap();
    let mut reader = BagReader::open(&folder).unwrap();
    let sizes: Vec<usize> = all(&mut reader).iter().map(|m| m.payload.len()).collect();
    assert_eq!(sizes, [80 << 20, 100]);
}

#[test]
fn files_are_split_at_the_exact_time_and_latched_messages_repeated() {
    let folder = Folder::absent("bag-split-time");
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
    writer
        .write_transient_local(map, Some(7), 1000, 1000, &payload(1))
        .unwrap();
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

/// The clock is set back while a bag is recorded: files still end after their span.
#[test]
fn files_are_split_by_time_after_the_clock_jumped_back() {
    let folder = Folder::absent("bag-split-back");
    let options = BagOptions {
        split_duration: Some(Duration::from_nanos(100)),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let scan = writer.add_topic(topic("/scan")).unwrap();
    for n in 0..5 {
        writer.write(scan, 1000 + 10 * n, 0, &payload(n)).unwrap();
    }
    writer.flush().unwrap();
    for n in 5..25 {
        writer.write(scan, 50 + 10 * n, 0, &payload(n)).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let reader = BagReader::open(&folder).unwrap();
    let files = reader.metadata().unwrap().files.iter();
    let found: Vec<_> = files.map(|file| (file.start, file.message_count)).collect();
    assert_eq!(found, [(1000, 5), (100, 10), (200, 10)]);
}

/// As many latched messages as `ros2 bag record --repeat-transient-local` asks for.
#[test]
fn the_depth_of_repeated_messages_is_by_topic() {
    let repeated = |name: &str, options: BagOptions| {
        let folder = Folder::absent(&format!("bag-{name}"));
        let mut writer = BagWriter::create(&folder, options).unwrap();
        let map = writer.add_topic(latched("/map", 3)).unwrap();
        let tf = writer.add_topic(latched("/tf_static", 3)).unwrap();
        for n in 1..=3 {
            for topic in [map, tf] {
                let written = writer.write_transient_local(topic, Some(7), n, n, &payload(n));
                written.unwrap();
            }
        }
        writer.flush().unwrap();
        writer.split();
        writer.write(map, 9, 9, &payload(9)).unwrap();
        writer.finish(&Default::default()).unwrap();
        let second = by_file(&folder).remove(1);
        let names: Vec<String> = second.into_iter().map(|(name, ..)| name).collect();
        names.join(" ")
    };
    let depths = [("/tf_static".to_owned(), 2)];
    let all = BagOptions {
        repeat_depth: Some(1),
        repeat_depths: depths.clone().into(),
        ..BagOptions::default()
    };
    assert_eq!(repeated("depths", all), "/tf_static /map /tf_static /map");
    let named = BagOptions {
        repeat_transient_local: false,
        repeat_depths: depths.into(),
        ..BagOptions::default()
    };
    assert_eq!(
        repeated("depths-named", named),
        "/tf_static /tf_static /map"
    );
}

/// The messages of a file that ends at any byte are a prefix of all messages, and are
/// no fewer than those of whole chunks. That it ends early is told, also behind the last
/// message.
#[test]
fn a_file_that_ends_anywhere_is_read_up_to_there() {
    let folder = Folder::absent("bag-torn");
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
        assert!(!reader.problems().is_empty(), "{length}");
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
    let folder = Folder::absent("bag-recover");
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
    let new = Folder::absent("bag-recovered");
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
    let folder = Folder::absent("bag-crc");
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
        let folder = Folder::absent(&format!("bag-damaged-{compression}"));
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
    let folder = Folder::absent("bag-none");
    let error = BagReader::open(&folder).err().unwrap();
    assert!(error.to_string().contains("no such bag"), "{error}");
    std::fs::create_dir_all(&folder).unwrap();
    let misspelt = folder.with_extension("s");
    let error = BagReader::open(&misspelt).err().unwrap().to_string();
    let hint = format!("no such bag (did you mean {}?); name", folder.display());
    assert!(error.contains(&hint), "{error}");
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
    let [one, two, both] = ["merge-1", "merge-2", "merge-both"].map(Folder::absent);
    write(&one, BagOptions::default(), 20);
    let mut writer = BagWriter::create(&two, BagOptions::default()).unwrap();
    let channel = writer.add_topic(topic("/c")).unwrap();
    writer.write(channel, 1055, 0, &payload(3)).unwrap();
    writer.finish(&Default::default()).unwrap();
    let parts = [&one, &two].map(|part| part.to_path_buf());
    let mut merged = BagReader::open_all(&parts, pteros::interfaces::library()).unwrap();
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

/// The second chunk begins earlier, so it is loaded first.
#[test]
fn messages_of_one_time_are_read_in_the_order_of_the_file() {
    let folder = Folder::absent("bag-one-time");
    let mut writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
    let channels = ["/a", "/b"].map(|name| writer.add_topic(topic(name)).unwrap());
    for chunk in [&[(0, 10, 1)][..], &[(1, 9, 2), (0, 10, 3)], &[(0, 10, 4)]] {
        for (topic, time, number) in chunk {
            writer
                .write(channels[*topic], *time, *time, &payload(*number))
                .unwrap();
        }
        writer.flush().unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let mut reader = BagReader::open(&folder).unwrap();
    let payloads: Vec<_> = all(&mut reader)
        .iter()
        .map(|one| one.payload.to_vec())
        .collect();
    assert_eq!(payloads, [2, 1, 3, 4].map(payload));
}

fn latched(name: &str, publishers: usize) -> BagTopic {
    BagTopic {
        offered_qos: vec![QosProfile::default().keep_last(1).transient_local(); publishers],
        ..topic(name)
    }
}

/// Topic, log time and payload of each message, by file.
fn by_file(folder: &Path) -> Vec<Vec<(String, u64, Vec<u8>)>> {
    let mut reader = BagReader::open(folder).unwrap();
    assert_eq!(reader.problems(), [""; 0]);
    let count = reader.files().count();
    let mut files = vec![Vec::new(); count];
    for message in all(&mut reader) {
        let name = reader.topics()[message.topic].topic.name.clone();
        files[message.file].push((name, message.log_time, message.payload.to_vec()));
    }
    files
}

/// All messages are in one chunk, which is cut at the time of a split.
#[test]
fn a_file_begins_with_the_state_before_its_first_message() {
    let folder = Folder::absent("bag-split-state");
    let options = BagOptions {
        split_duration: Some(Duration::from_nanos(100)),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let map = writer.add_topic(latched("/map", 2)).unwrap();
    let scan = writer.add_topic(topic("/scan")).unwrap();
    let mut at = |publisher: u128, time: u64, n: u64| {
        let publisher = Some(publisher);
        let written = writer.write_transient_local(map, publisher, time, time, &payload(n));
        written.unwrap();
    };
    at(9, 1000, 1);
    at(1, 1010, 2);
    at(9, 1150, 3);
    writer.write(scan, 1160, 1160, &payload(4)).unwrap();
    writer.write(scan, 1250, 1250, &payload(5)).unwrap();
    writer.finish(&Default::default()).unwrap();
    let map = |time, n| ("/map".to_owned(), time, payload(n));
    let scan = |time, n| ("/scan".to_owned(), time, payload(n));
    assert_eq!(
        by_file(&folder),
        [
            vec![map(1000, 1), map(1010, 2)],
            // Each publisher's, in the order in which they came.
            vec![map(1150, 1), map(1150, 2), map(1150, 3), scan(1160, 4)],
            vec![map(1250, 2), map(1250, 3), scan(1250, 5)],
        ]
    );
    // A copy does not know the publishers, and keeps as many messages.
    let copied = Folder::absent("bag-split-state-copied");
    let mut one = BagReader::open(&folder.join("bag-split-state_0.mcap")).unwrap();
    let options = BagOptions {
        split_duration: Some(Duration::from_nanos(10)),
        ..BagOptions::default()
    };
    copy(&mut one, MessageFilter::default(), &copied, options).unwrap();
    let files = by_file(&copied);
    assert_eq!(files[1], [map(1010, 1), map(1010, 2)]);
}

#[test]
fn a_copy_has_the_sources_custom_data_without_its_accounts() {
    let folder = Folder::absent("bag-accounts");
    let texts = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let options = BagOptions {
        custom_data: texts(&[("robot", "r2"), ("place", "lab")]),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let channel = writer.add_topic(topic("/a")).unwrap();
    writer.write(channel, 1000, 1000, &payload(1)).unwrap();
    let account = pteros_bag::accounting::TopicAccount {
        received: 9,
        lost_buffer: 8,
        ..Default::default()
    };
    let written = writer.finish(&[("/a".to_owned(), account)].into()).unwrap();
    assert!(written.custom_data.contains_key("pteros_loss:/a"));
    let mut reader = BagReader::open(&folder).unwrap();
    assert_eq!(reader.accounts()["/a"].lost(), 8);
    let new = Folder::absent("bag-accounts-copied");
    let options = BagOptions {
        custom_data: texts(&[("place", "field")]),
        ..BagOptions::default()
    };
    let copied = copy(&mut reader, MessageFilter::default(), &new, options).unwrap();
    let expected = texts(&[("place", "field"), ("robot", "r2")]);
    assert_eq!(copied.custom_data, expected);
    assert!(BagReader::open(&new).unwrap().accounts().is_empty());
}

/// The recorder was stopped between the last byte of the compressed file and the removal
/// of the other, or within the compressed file.
#[test]
fn a_file_that_was_being_compressed_is_read_once() {
    let [plain, packed] = ["bag-copies-plain", "bag-copies-packed"].map(Folder::absent);
    write(&plain, BagOptions::default(), 20);
    let options = BagOptions {
        compress_files: true,
        ..BagOptions::default()
    };
    write(&packed, options, 20);
    std::fs::remove_file(plain.join("metadata.yaml")).unwrap();
    let name = "bag-copies-packed_0.mcap.zstd";
    let whole = std::fs::read(packed.join(name)).unwrap();
    let copy = plain.join("bag-copies-plain_0.mcap.zstd");
    for length in [whole.len(), whole.len() / 2] {
        std::fs::write(&copy, &whole[..length]).unwrap();
        let mut reader = BagReader::open(&plain).unwrap();
        assert_eq!(all(&mut reader).len(), 20);
        let problems = reader.problems().join("\n");
        assert!(
            problems.contains("stopped while it compressed"),
            "{problems}"
        );
    }
    std::fs::rename(&copy, plain.join("bag-copies-plain_0.mcap.zstd.part")).unwrap();
    let mut reader = BagReader::open(&plain).unwrap();
    assert_eq!(all(&mut reader).len(), 20);
    assert_eq!(reader.problems().len(), 1, "{:?}", reader.problems());
}

/// Chunks without wanted topics are not read: their damage is not seen.
#[test]
fn chunks_without_wanted_topics_are_not_read() {
    let folder = Folder::absent("bag-indexed");
    let mut writer = BagWriter::create(&folder, small_chunks()).unwrap();
    let channels = ["/a", "/b"].map(|name| writer.add_topic(topic(name)).unwrap());
    for n in 0..40 {
        let channel = channels[usize::from(n >= 20)];
        writer.write(channel, 1000 + n, 0, &payload(n)).unwrap();
        if n == 19 {
            writer.flush().unwrap();
        }
    }
    writer.finish(&Default::default()).unwrap();
    let mut bytes = std::fs::read(folder.join("bag-indexed_0.mcap")).unwrap();
    let wanted = payload(9);
    let mut windows = bytes.windows(wanted.len());
    let at = windows.position(|window| window == wanted).unwrap();
    bytes[at + 20] ^= 1;
    let mut reader = BagReader::from_bytes(bytes).unwrap();
    let only = |topic: usize| MessageFilter {
        topics: Some(vec![topic]),
        ..MessageFilter::default()
    };
    assert_eq!(reader.messages(only(1)).count(), 20);
    assert_eq!(reader.problems(), [""; 0]);
    assert!(reader.messages(only(0)).count() < 20);
    assert_eq!(reader.problems().len(), 1);
}

#[test]
fn a_long_read_ends_when_it_is_interrupted() {
    let folder = Folder::absent("bag-interrupted");
    write(&folder, small_chunks(), 100);
    let mut reader = BagReader::open(&folder).unwrap();
    let is_over = Arc::<AtomicBool>::default();
    let asked = is_over.clone();
    reader.interrupt_when(move || asked.load(Ordering::Relaxed));
    let mut messages = reader.messages(MessageFilter::default());
    assert!(messages.next().is_some());
    is_over.store(true, Ordering::Relaxed);
    let left = messages.count();
    assert!(left < 10, "{left}: the rest of one chunk at most");
    let sent = pteros_bag::MessageOrder::Sent;
    assert_eq!(reader.span_by(sent), None);
    // Nothing of it is left behind.
    is_over.store(false, Ordering::Relaxed);
    assert_eq!(reader.span_by(sent), Some((900, 1890)));
    assert_eq!(all(&mut reader).len(), 100);
}
