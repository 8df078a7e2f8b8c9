//! Bags of other formats: databases of rosbag2's sqlite3 storage, bags of ROS 1, and
//! compressed files. `fixtures/make.py` wrote them with SQLite and rosbags.

mod conformance;
mod definitions;

use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};

use pteros::msg::dynamic::DynamicMessage;
use pteros_bag::definitions::message_type;
use pteros_bag::{
    BagMessage, BagOptions, BagReader, BagTopic, BagWriter, MessageFilter, MessageOrder, copy,
};

/// The first message's time in every fixture.
const START: u64 = 1_700_000_000_000_000_000;

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(name)
}

fn all(reader: &mut BagReader) -> Vec<BagMessage> {
    reader.messages(MessageFilter::default()).collect()
}

/// The message as JSON, with the definition in the bag or the standard one.
fn json(reader: &BagReader, message: &BagMessage) -> String {
    let topic = &reader.topics()[message.topic].topic;
    let library = pteros::interfaces::library();
    let ty = message_type(topic, library).unwrap();
    DynamicMessage::from_payload(&ty, &message.payload)
        .unwrap()
        .to_json()
}

fn topic_of<'a>(reader: &'a BagReader, message: &BagMessage) -> &'a str {
    &reader.topics()[message.topic].topic.name
}

#[test]
fn databases_of_every_schema_version_are_read() {
    for (name, version, count) in [
        ("version1.db3", 1, 30),
        ("version3.db3", 3, 30),
        ("version4.db3", 4, 200),
    ] {
        let mut reader = BagReader::open(&fixture(name)).unwrap();
        assert_eq!(reader.problems(), [""; 0], "{name}");
        assert!(reader.is_complete());
        assert_eq!(reader.message_count(), count, "{name}");
        let last = START + (count - 1) * 1000;
        assert_eq!(reader.span(), Some((START, last)), "{name}");
        let topics = reader.topics();
        assert_eq!(topics[0].topic.name, "/even");
        assert_eq!(topics[1].topic.type_name, "std_msgs/msg/String");
        assert_eq!(topics[1].message_count, count / 2);
        assert_eq!(topics[0].topic.is_transient_local(), version > 1, "{name}");
        assert_eq!(topics[0].topic.definition.is_empty(), version < 4);
        assert_eq!(
            topics[0].topic.type_hash.starts_with("RIHS01_"),
            version == 4
        );
        let described = reader.describe();
        let distro = if version >= 3 { "humble" } else { "" };
        assert_eq!(
            (&*described.storage, &*described.ros_distro),
            ("sqlite3", distro)
        );
        let messages = all(&mut reader);
        assert_eq!(messages.len() as u64, count);
        for (number, message) in (0..).zip(&messages) {
            assert_eq!(message.log_time, START + number * 1000);
            assert_eq!(message.topic as u64, number % 2);
            let text = json(&reader, message);
            let start = format!(r#"{{"data":"message {number} m"#);
            assert!(text.starts_with(&start), "{text}");
            let size = if number % 7 == 0 { 900 } else { 20 };
            assert_eq!(message.payload.len(), 9 + size, "{name} {number}");
        }
    }
}

/// Log of kinds: a database that ends anywhere. Something says so, even where only an
/// index is missing.
#[test]
fn a_database_that_ends_early_says_so() {
    let whole = std::fs::read(fixture("version4.db3")).unwrap();
    assert!(BagReader::from_bytes(whole.clone()).unwrap().is_complete());
    let mut counts = Vec::new();
    for end in (0..whole.len()).step_by(512).chain([whole.len() - 1]) {
        match BagReader::from_bytes(whole[..end].to_vec()) {
            Err(_) => counts.push(0),
            Ok(mut reader) => {
                counts.push(all(&mut reader).len());
                assert!(
                    !reader.is_complete() && !reader.problems().is_empty(),
                    "{end}"
                );
            }
        }
    }
    assert!(counts.is_sorted(), "{counts:?}");
    assert!(counts.last() > Some(&100), "{counts:?}");
}

#[test]
fn messages_in_the_write_ahead_log_of_a_killed_recorder_are_read() {
    let mut reader = BagReader::open(&fixture("killed.db3")).unwrap();
    assert_eq!(reader.message_count(), 20);
    assert_eq!(all(&mut reader).len(), 20);
    // Without the log, the database is empty.
    let folder = Folder::absent("formats-no-log");
    std::fs::create_dir_all(&folder).unwrap();
    let alone = folder.join("killed.db3");
    std::fs::copy(fixture("killed.db3"), &alone).unwrap();
    assert!(BagReader::open(&alone).is_err());
    // A log that ends within a frame is read up to its last commit.
    let log = std::fs::read(fixture("killed.db3-wal")).unwrap();
    std::fs::write(folder.join("killed.db3-wal"), &log[..log.len() * 2 / 3]).unwrap();
    let mut torn = BagReader::open(&alone).unwrap();
    let count = torn.message_count();
    assert!((1..20).contains(&count), "{count}");
    assert_eq!(all(&mut torn).len() as u64, count);
}

#[test]
fn a_folder_of_rosbag2s_oldest_metadata_is_read() {
    let folder = Folder::absent("formats-oldest");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(fixture("version1.db3"), folder.join("old_0.db3")).unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    let text = format!(
        "rosbag2_bagfile_information:\n  version: 1\n  storage_identifier: sqlite3\n  relative_file_paths:\n    - {name}/old_0.db3\n  duration:\n    nanoseconds: 29000\n  starting_time:\n    nanoseconds_since_epoch: {START}\n  message_count: 30\n  topics_with_message_count:\n    - topic_metadata:\n        name: /even\n        type: std_msgs/msg/String\n        serialization_format: cdr\n      message_count: 15\n"
    );
    std::fs::write(folder.join("metadata.yaml"), text).unwrap();
    let mut reader = BagReader::open(&folder).unwrap();
    assert_eq!(reader.problems(), [""; 0]);
    assert_eq!(all(&mut reader).len(), 30);
    // And converted.
    let new = Folder::absent("formats-oldest-mcap");
    let written = copy(
        &mut reader,
        MessageFilter::default(),
        &new,
        BagOptions::default(),
    );
    assert_eq!(written.unwrap().message_count, 30);
    let mut converted = BagReader::open(&new).unwrap();
    assert_eq!(converted.describe().storage, "mcap");
    assert_eq!(all(&mut converted), all(&mut reader));
}

#[test]
fn bags_of_ros_1_are_read_as_ros_2s_types_with_every_compression() {
    for name in ["plain.bag", "bz2.bag", "lz4.bag"] {
        let mut reader = BagReader::open(&fixture(name)).unwrap();
        assert_eq!(reader.problems(), [""; 0], "{name}");
        assert!(reader.is_complete());
        assert_eq!(reader.message_count(), 29);
        let types: Vec<(&str, &str)> = reader
            .topics()
            .iter()
            .map(|t| (t.topic.name.as_str(), t.topic.type_name.as_str()))
            .collect();
        assert_eq!(
            types,
            [
                ("/text", "std_msgs/msg/String"),
                ("/scan", "sensor_msgs/msg/LaserScan"),
                ("/own", "my_msgs/msg/Own"),
                ("/map_name", "std_msgs/msg/String"),
            ]
        );
        let latched = reader.topics().iter().map(|t| t.topic.is_transient_local());
        assert_eq!(latched.collect::<Vec<_>>(), [false, false, false, true]);
        let known = pteros::interfaces::library();
        let hash = known.type_hash("sensor_msgs/msg/LaserScan").unwrap();
        assert_eq!(reader.topics()[1].topic.type_hash, hash.to_string());
        let messages = all(&mut reader);
        assert_eq!(messages.len(), 29, "{name}: {:?}", reader.problems());
        assert_eq!(json(&reader, &messages[0]), r#"{"data":"house"}"#);
        assert_eq!(messages[0].log_time, START);
        let fifth: Vec<&BagMessage> = messages
            .iter()
            .filter(|message| message.log_time == START + 5000)
            .collect();
        for message in fifth {
            let expected = match topic_of(&reader, message) {
                "/text" => r#"{"data":"text 5"}"#,
                "/scan" => {
                    r#"{"header":{"stamp":{"sec":5,"nanosec":5},"frame_id":"laser"},"angle_min":-1.0,"angle_max":1.0,"angle_increment":0.1,"time_increment":0.0,"scan_time":0.1,"range_min":0.0,"range_max":10.0,"ranges":[0.0,1.0,2.0,3.0,4.0],"intensities":[]}"#
                }
                _ => {
                    r#"{"header":{"stamp":{"sec":5,"nanosec":5},"frame_id":"laser"},"position":[1.5,2.5,5.0],"names":["a","bc"],"when":{"sec":7,"nanosec":8},"howlong":{"sec":-1,"nanosec":9},"inner":[{"flag":-1,"letter":200,"big":-5},{"flag":2,"letter":65,"big":6}]}"#
                }
            };
            assert_eq!(json(&reader, message), expected, "{name}");
        }
    }
}

/// The index of a bag whose recorder was stopped is missing.
#[test]
fn a_torn_bag_of_ros_1_is_read_as_far_as_it_goes() {
    let whole = std::fs::read(fixture("plain.bag")).unwrap();
    let mut most = 0;
    for length in (4200..whole.len()).step_by(7) {
        let mut torn = whole[..length].to_vec();
        // index_pos=, eight bytes behind it.
        let at = torn.windows(10).position(|w| w == b"index_pos=").unwrap();
        torn[at + 10..at + 18].fill(0);
        let mut reader = BagReader::from_bytes(torn).unwrap();
        let count = all(&mut reader).len();
        assert!(count >= most, "{length}: {count} after {most}");
        assert!(!reader.is_complete());
        most = count;
    }
    assert_eq!(most, 29);
}

/// A field of a ROS 1 record's header.
fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend(
        u32::try_from(name.len() + 1 + value.len())
            .unwrap()
            .to_le_bytes(),
    );
    out.extend(name.as_bytes());
    out.push(b'=');
    out.extend(value);
}

/// A record of ROS 1.
fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    fields
        .iter()
        .for_each(|(name, value)| field(&mut header, name, value));
    let mut out = u32::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    out.extend(header);
    out.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    out.extend(data);
    out
}

/// A connection of ROS 1: topic, type, definition.
type Ros1Connection<'a> = (&'a str, &'a str, &'a str);

/// A bag of ROS 1 without an index: connections, and a message of each connection's
/// number, one a microsecond.
fn ros1_bag(connections: &[Ros1Connection], messages: &[(u32, &[u8])]) -> Vec<u8> {
    let mut chunk = Vec::new();
    for (number, (topic, kind, definition)) in (0u32..).zip(connections) {
        let mut more = Vec::new();
        field(&mut more, "type", kind.as_bytes());
        field(&mut more, "message_definition", definition.as_bytes());
        let number = number.to_le_bytes();
        let head: [(&str, &[u8]); 3] =
            [("op", &[7]), ("conn", &number), ("topic", topic.as_bytes())];
        chunk.extend(record(&head, &more));
    }
    for (nanos, (connection, data)) in (1u64..).zip(messages) {
        let (number, time) = (
            connection.to_le_bytes(),
            ((nanos * 1000) << 32).to_le_bytes(),
        );
        let head: [(&str, &[u8]); 3] = [("op", &[2]), ("conn", &number), ("time", &time)];
        chunk.extend(record(&head, data));
    }
    let mut bag = b"#ROSBAG V2.0\n".to_vec();
    bag.extend(record(&[("op", &[3]), ("index_pos", &[0; 8])], &[b' '; 64]));
    let size = u32::try_from(chunk.len()).unwrap().to_le_bytes();
    let head: [(&str, &[u8]); 3] = [("op", &[5]), ("compression", b"none"), ("size", &size)];
    bag.extend(record(&head, &chunk));
    bag
}

const WIDTH_FIRST: &str = "uint32 width\nuint32 height\n";
const HEIGHT_FIRST: &str = "uint32 height\nuint32 width\n";

/// A topic of a type of this definition.
fn size_topic(definition: &str) -> BagTopic {
    BagTopic {
        name: "/size".into(),
        type_name: "my_msgs/msg/Size".into(),
        definition: definition.into(),
        serialization_format: "cdr".into(),
        ..BagTopic::default()
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn cdr(values: &[u32]) -> Vec<u8> {
    [vec![0, 1, 0, 0], words(values)].concat()
}

/// A bag of one topic for each definition: each message has its width and its height where
/// its own definition says.
fn size_bag(folder: &Path, definitions: &[&str]) {
    let mut writer = BagWriter::create(folder, BagOptions::default()).unwrap();
    for (time, definition) in (1..).zip(definitions) {
        let channel = writer.add_topic(size_topic(definition)).unwrap();
        let mut fields = definition.lines().filter(|line| line.starts_with("uint32"));
        let first = fields.next().unwrap();
        let values = if first.contains("width") {
            [640, 480]
        } else {
            [480, 640]
        };
        writer.write(channel, time, time, &cdr(&values)).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
}

/// Width and height of each message, by its own definition.
fn sizes(reader: &mut BagReader) -> Vec<(i128, i128)> {
    let messages = all(reader);
    let value = |message: &BagMessage, field: &str| {
        let topic = &reader.topics()[message.topic].topic;
        let ty = message_type(topic, pteros::interfaces::library()).unwrap();
        let decoded = DynamicMessage::from_payload(&ty, &message.payload).unwrap();
        decoded.get(field).unwrap().as_integer().unwrap()
    };
    let sizes = messages
        .iter()
        .map(|message| (value(message, "width"), value(message, "height")));
    sizes.collect()
}

/// Log of kinds: a bag of ROS 1 that ends anywhere. All messages that are whole are read,
/// and something says that it ends early.
#[test]
fn a_bag_of_ros_1_that_ends_anywhere_is_read_up_to_there() {
    for (name, step) in [("plain.bag", 3), ("bz2.bag", 11), ("lz4.bag", 7)] {
        let whole = std::fs::read(fixture(name)).unwrap();
        let expected = all(&mut BagReader::from_bytes(whole.clone()).unwrap());
        let at = whole.windows(10).position(|w| w == b"index_pos=").unwrap() + 10;
        let index = u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
        let index = usize::try_from(index).unwrap();
        let mut most = 0;
        for length in (4200..whole.len()).step_by(step) {
            let mut reader = BagReader::from_bytes(whole[..length].to_vec()).unwrap();
            let read = all(&mut reader);
            assert!(
                read.len() >= most,
                "{name} {length}: {} after {most}",
                read.len()
            );
            assert!(
                read.iter().all(|message| expected.contains(message)),
                "{name} {length}"
            );
            assert_eq!(reader.message_count(), read.len() as u64, "{name} {length}");
            assert!(!reader.problems().is_empty(), "{name} {length}");
            assert!(!reader.is_complete());
            if length >= index {
                assert_eq!(
                    read.len(),
                    expected.len(),
                    "{name}, cut in its index at {length}"
                );
            }
            most = read.len();
        }
        assert_eq!(most, expected.len());
        // The front of an uncompressed chunk is read, message by message.
        if name == "plain.bag" {
            let half = BagReader::from_bytes(whole[..(4200 + index) / 2].to_vec()).unwrap();
            assert!(half.message_count() > 5, "{}", half.message_count());
        }
    }
}

/// Log of kinds: a connection of ROS 1 without a definition. It has that of another
/// connection, or of the standard type; else it is named, and the others are read.
#[test]
fn connections_of_ros_1_without_a_definition_are_read_where_their_type_is_known() {
    let text = |text: &str| [words(&[text.len() as u32]), text.as_bytes().to_vec()].concat();
    let stamped = [words(&[7, 12, 34]), text("map"), vec![0; 56]].concat();
    let bag = ros1_bag(
        &[
            ("/text", "std_msgs/String", ""),
            ("/pose", "geometry_msgs/PoseStamped", "\n"),
            ("/size", "my_msgs/Size", HEIGHT_FIRST),
            ("/size2", "my_msgs/Size", ""),
            ("/lost", "my_msgs/Unknown", ""),
        ],
        &[
            (0, &text("hello")),
            (1, &stamped),
            (2, &words(&[480, 640])),
            (3, &words(&[480, 640])),
            (4, &words(&[1])),
        ],
    );
    let mut reader = BagReader::from_bytes(bag).unwrap();
    let read: Vec<(String, String)> = all(&mut reader)
        .iter()
        .map(|m| (topic_of(&reader, m).to_owned(), json(&reader, m)))
        .collect();
    let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["/text", "/pose", "/size", "/size2"]);
    assert_eq!(read[0].1, r#"{"data":"hello"}"#);
    assert!(
        read[1]
            .1
            .contains(r#""stamp":{"sec":12,"nanosec":34},"frame_id":"map""#),
        "{}",
        read[1].1
    );
    assert_eq!(read[3].1, r#"{"height":480,"width":640}"#);
    let problems = reader.problems().join("\n");
    for expected in [
        "topic /text: the bag has no definition of std_msgs/String; it is read as std_msgs/msg/String",
        "topic /lost of type my_msgs/Unknown is left out: the bag has no definition of my_msgs/Unknown",
    ] {
        assert!(problems.contains(expected), "{problems}");
    }
}

fn mcap_record(op: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u64;
    [&[op], &length.to_le_bytes()[..], content].concat()
}

fn mcap_texts(texts: &[&str]) -> Vec<u8> {
    let each = texts.iter().map(|text| {
        let length = text.len() as u32;
        [&length.to_le_bytes()[..], text.as_bytes()].concat()
    });
    each.collect::<Vec<_>>().concat()
}

fn mcap_schema(id: u16, name: &str, encoding: &str, text: &str) -> Vec<u8> {
    let texts = mcap_texts(&[name, encoding, text]);
    mcap_record(3, &[&id.to_le_bytes()[..], &texts].concat())
}

fn mcap_channel(id: u16, schema: u16, topic: &str, encoding: &str) -> Vec<u8> {
    let numbers = [id.to_le_bytes(), schema.to_le_bytes()].concat();
    let texts = mcap_texts(&[topic, encoding]);
    mcap_record(4, &[&numbers[..], &texts, &[0; 4]].concat())
}

fn mcap_message(channel: u16, time: u64, payload: &[u8]) -> Vec<u8> {
    let times = [time.to_le_bytes(), 5_u64.to_le_bytes()].concat();
    let head = [&channel.to_le_bytes()[..], &[0; 4], &times].concat();
    mcap_record(5, &[&head[..], payload].concat())
}

/// A whole MCAP file of these records, without an index.
fn mcap_file(records: &[Vec<u8>]) -> Vec<u8> {
    let magic = b"\x89MCAP0\r\n".to_vec();
    let (header, end) = (mcap_record(1, &[0; 8]), mcap_record(0x0f, &[0; 4]));
    let footer = mcap_record(2, &[0; 20]);
    [magic.clone(), header, records.concat(), end, footer, magic].concat()
}

/// Topic, encoding of messages, schema (name, encoding, text), and a message.
type ForeignChannel<'a> = (&'a str, &'a str, (&'a str, &'a str, &'a str), &'a [u8]);

/// An MCAP file with one message on each channel.
fn foreign_mcap(channels: &[ForeignChannel<'_>]) -> Vec<u8> {
    let records = (1u16..).zip(channels).flat_map(|(id, channel)| {
        let (topic, encoding, schema, message) = channel;
        [
            mcap_schema(id, schema.0, schema.1, schema.2),
            mcap_channel(id, id, topic, encoding),
            mcap_message(id, id.into(), message),
        ]
    });
    mcap_file(&records.collect::<Vec<_>>())
}

/// Log of kinds: an id of MCAP that is given again, with another meaning. No message is
/// decoded by the wrong definition, and those that are left out are named.
#[test]
fn messages_of_a_channel_that_is_described_again_are_left_out_and_named() {
    let size = |id, text| mcap_schema(id, "my_msgs/msg/Size", "ros2msg", text);
    let begin = [
        size(1, WIDTH_FIRST),
        mcap_channel(1, 1, "/size", "cdr"),
        mcap_message(1, 1, &cdr(&[640, 480])),
    ]
    .concat();
    let other = mcap_message(1, 2, &cdr(&[480, 640]));
    let last = mcap_message(1, 3, &cdr(&[1, 2]));
    let again = [size(1, WIDTH_FIRST), mcap_channel(1, 1, "/size", "cdr")].concat();
    let chunk = |records: Vec<u8>| {
        let times = [0_u64.to_le_bytes(), 9_u64.to_le_bytes()].concat();
        let length = (records.len() as u64).to_le_bytes();
        mcap_record(
            6,
            &[&times[..], &length, &[0; 8], &length, &records].concat(),
        )
    };
    for (what, changed) in [
        ("schema", size(1, HEIGHT_FIRST)),
        (
            "schema, with the same channel",
            [size(1, HEIGHT_FIRST), mcap_channel(1, 1, "/size", "cdr")].concat(),
        ),
        ("topic", mcap_channel(1, 1, "/other", "cdr")),
        ("encoding", mcap_channel(1, 1, "/size", "json")),
        (
            "schema of the channel",
            [size(2, HEIGHT_FIRST), mcap_channel(1, 2, "/size", "cdr")].concat(),
        ),
    ] {
        let parts = [
            begin.clone(),
            changed,
            other.clone(),
            again.clone(),
            last.clone(),
        ];
        let whole = parts.concat();
        for file in [
            mcap_file(&parts),
            mcap_file(&[chunk(whole)]),
            mcap_file(&parts.clone().map(chunk)),
        ] {
            let mut reader = BagReader::from_bytes(file).unwrap();
            assert_eq!(sizes(&mut reader), [(640, 480), (1, 2)], "{what}");
            let [problem] = reader.problems() else {
                panic!("{what}: {:?}", reader.problems());
            };
            let says = "1 messages of channels that the file describes again";
            assert!(problem.contains(says), "{problem}");
        }
    }
    // The same once more is usual.
    let parts = [begin, again, last];
    let mut reader = BagReader::from_bytes(mcap_file(&parts)).unwrap();
    assert_eq!(sizes(&mut reader), [(640, 480), (1, 2)]);
    assert!(reader.problems().is_empty(), "{:?}", reader.problems());
}

/// Log of kinds: MCAP files of other tools. Messages of ROS 1 are converted, other formats
/// are named and never taken for CDR, and a whole file without an index is whole.
#[test]
fn foreign_messages_in_mcap_are_converted_or_named() {
    let hello = [words(&[5]), b"hello".to_vec()].concat();
    let file = foreign_mcap(&[
        (
            "text",
            "ros1",
            ("std_msgs/String", "ros1msg", "string data\n"),
            &hello,
        ),
        (
            "/size",
            "ros1",
            ("my_msgs/Size", "ros1msg", WIDTH_FIRST),
            &words(&[640, 480]),
        ),
        ("/odd", "ros1", ("my_msgs/Odd", "protobuf", "?"), &[1]),
        (
            "/json",
            "json",
            ("my_msgs/msg/J", "jsonschema", "{}"),
            b"{}",
        ),
        (
            "/size",
            "cdr",
            ("my_msgs/msg/Size", "ros2msg", HEIGHT_FIRST),
            &cdr(&[480, 640]),
        ),
    ]);
    let mut reader = BagReader::from_bytes(file).unwrap();
    assert!(reader.is_complete(), "{:?}", reader.problems());
    let library = pteros::interfaces::library();
    let read: Vec<(String, Result<String, String>)> = all(&mut reader)
        .iter()
        .map(|message| {
            let topic = &reader.topics()[message.topic].topic;
            let ty = message_type(topic, library);
            let decoded = ty.map(|ty| {
                DynamicMessage::from_payload(&ty, &message.payload)
                    .unwrap()
                    .to_json()
            });
            (topic.name.clone(), decoded)
        })
        .collect();
    let expect = |at: usize, name: &str, text: &str| {
        let (found, decoded) = &read[at];
        let decoded = decoded.clone().unwrap_or_else(|problem| problem);
        assert!(
            found == name && decoded.contains(text),
            "{found}: {decoded}"
        );
    };
    expect(0, "/text", r#"{"data":"hello"}"#);
    expect(1, "/size", r#"{"width":640,"height":480}"#);
    expect(2, "/odd", "its messages are ros1");
    expect(3, "/json", "its messages are json");
    expect(4, "/size", r#"{"height":480,"width":640}"#);
    // A copy keeps the schemas that Pteros does not read.
    let copied = Folder::absent("formats-foreign-copied");
    let everything = MessageFilter::default();
    copy(&mut reader, everything, &copied, BagOptions::default()).unwrap();
    let copied = BagReader::open(&copied).unwrap();
    let schema_of = |name: &str| {
        let mut topics = copied.topics().iter().map(|recorded| &recorded.topic);
        let topic = topics.find(|topic| topic.name == name).unwrap();
        let schema = topic.foreign_schema.as_ref().unwrap();
        (schema.encoding.clone(), schema.data.clone())
    };
    assert_eq!(schema_of("/odd"), ("protobuf".to_owned(), b"?".to_vec()));
    assert_eq!(
        schema_of("/json"),
        ("jsonschema".to_owned(), b"{}".to_vec())
    );
    let problems = reader.problems().join("\n");
    assert!(
        problems.contains("topic /odd: its messages of ROS 1 are not converted"),
        "{problems}"
    );
    assert_eq!(reader.problems().len(), 1, "{problems}");
}

/// A page that is its own child, a cell beyond its page, a row without an end.
#[test]
fn loops_in_a_database_end() {
    let whole = std::fs::read(fixture("version4.db3")).unwrap();
    let pages = whole.len() / 512;
    let mut interior = 0;
    for page in 1..pages {
        let start = page * 512;
        if whole[start] == 0x05 {
            let mut bad = whole.clone();
            let own = u32::try_from(page + 1).unwrap().to_be_bytes();
            bad[start + 8..start + 12].copy_from_slice(&own);
            let mut reader = BagReader::from_bytes(bad).unwrap();
            let problems = reader.problems().join("\n");
            assert!(
                problems.contains("levels") || problems.contains("loop"),
                "{page}: {problems}"
            );
            assert!(!all(&mut reader).is_empty());
            // A page that is the child of two cells is read once.
            let cell = usize::from(u16::from_be_bytes([whole[start + 12], whole[start + 13]]));
            let mut twice = whole.clone();
            twice.copy_within(start + cell..start + cell + 4, start + 8);
            let mut reader = BagReader::from_bytes(twice).unwrap();
            let problems = reader.problems().join("\n");
            assert!(problems.contains("loop"), "{page}: {problems}");
            assert!(!all(&mut reader).is_empty());
            interior += 1;
        }
    }
    assert!(interior > 0);
}

/// A row as a cell of a leaf page: its columns are texts.
fn cell(id: u8, columns: &[&str]) -> Vec<u8> {
    let mut head = Vec::new();
    for column in columns {
        let kind = 13 + 2 * column.len();
        head.extend([0x80 | (kind >> 14) as u8, 0x80 | (kind >> 7) as u8]);
        head.push(kind as u8 & 0x7f);
    }
    let mut record = vec![u8::try_from(head.len() + 1).unwrap()];
    record.extend(head);
    columns
        .iter()
        .for_each(|column| record.extend(column.as_bytes()));
    let length = record.len();
    let mut cell = vec![0x80 | (length >> 14) as u8, 0x80 | (length >> 7) as u8];
    cell.extend([length as u8 & 0x7f, id]);
    cell.extend(record);
    cell
}

/// A leaf page whose cells begin at these places.
fn leaf(page: &mut [u8], start: usize, places: &[usize]) {
    page[start] = 0x0d;
    page[start + 3..start + 5].copy_from_slice(&(places.len() as u16).to_be_bytes());
    for (at, place) in places.iter().enumerate() {
        let word = start + 8 + 2 * at;
        page[word..word + 2].copy_from_slice(&(*place as u16).to_be_bytes());
    }
}

/// 20000 topics whose cells are the same 20000 bytes: 400 MB of a file of 192 KiB.
#[test]
fn rows_that_lie_on_one_another_are_read_up_to_a_limit() {
    const PAGE: usize = 65_536;
    let mut file = vec![0; 3 * PAGE];
    file[..16].copy_from_slice(b"SQLite format 3\0");
    file[16..18].copy_from_slice(&[0, 1]);
    let tables = [
        ("topics", "CREATE TABLE topics(name, type)", 2),
        (
            "messages",
            "CREATE TABLE messages(topic_id, timestamp, data)",
            3,
        ),
    ];
    let mut places = Vec::new();
    for (name, sql, root) in tables {
        let mut row = cell(1, &["table", name, name, "?", sql]);
        // The fourth column is a number of one byte instead of a text.
        row[5 + 9..5 + 12].copy_from_slice(&[0x80, 0x80, 1]);
        let at = row.iter().position(|byte| *byte == b'?').unwrap();
        row[at] = root;
        let place = 1000 * (1 + places.len());
        file[place..place + row.len()].copy_from_slice(&row);
        places.push(place);
    }
    leaf(&mut file[..PAGE], 100, &places);
    let topic = cell(1, &["/t", &"x".repeat(20_000)]);
    file[PAGE + 45_000..][..topic.len()].copy_from_slice(&topic);
    leaf(&mut file[PAGE..2 * PAGE], 0, &[45_000; 20_000]);
    leaf(&mut file[2 * PAGE..], 0, &[]);
    let reader = BagReader::from_bytes(file).unwrap();
    let problems = reader.problems().join("\n");
    assert!(
        problems.contains("the table topics has more than"),
        "{problems}"
    );
    assert!(reader.topics().len() < 4000, "{}", reader.topics().len());
}

#[test]
fn whole_compressed_files_are_written_and_read() {
    let new = Folder::absent("formats-whole");
    let mut source = BagReader::open(&fixture("version4.db3")).unwrap();
    let options = BagOptions {
        compress_files: true,
        split_bytes: Some(12_000),
        repeat_transient_local: false,
        ..BagOptions::default()
    };
    let metadata = copy(&mut source, MessageFilter::default(), &new, options).unwrap();
    assert_eq!(
        (&*metadata.compression_format, &*metadata.compression_mode),
        ("zstd", "FILE")
    );
    assert!(metadata.files.len() > 1);
    for file in &metadata.files {
        assert!(file.path.ends_with(".mcap.zstd"), "{}", file.path);
        assert!(new.join(&file.path).exists());
        assert!(!new.join(file.path.trim_end_matches(".zstd")).exists());
    }
    let mut reader = BagReader::open(&new).unwrap();
    assert_eq!(reader.problems(), [""; 0]);
    let read = all(&mut reader);
    assert_eq!(read.len(), 200);
    assert_eq!(read[7].payload, all(&mut source)[7].payload);
    // As rosbag2 names them: in `files` without the ending.
    let yaml = new.join("metadata.yaml");
    let text = std::fs::read_to_string(&yaml).unwrap();
    let renamed = text.lines().map(|line| match line.contains("path: ") {
        true => line.trim_end_matches(".zstd"),
        false => line,
    });
    let renamed = renamed.collect::<Vec<_>>().join("\n");
    let name = "formats-whole_0.mcap";
    assert!(renamed.contains(&format!("path: {name}\n")), "{renamed}");
    assert!(renamed.contains(&format!("- {name}.zstd\n")), "{renamed}");
    std::fs::write(&yaml, renamed).unwrap();
    let mut reader = BagReader::open(&new).unwrap();
    assert_eq!((reader.problems().len(), all(&mut reader).len()), (0, 200));
    // And without metadata.yaml.
    std::fs::remove_file(&yaml).unwrap();
    let mut alone = BagReader::open(&new).unwrap();
    assert_eq!(all(&mut alone).len(), 200);
    let rebuilt = alone.reindex().unwrap();
    assert_eq!(rebuilt.compression_mode, "FILE");
    assert_eq!(rebuilt.files[0].path, metadata.files[0].path);
    assert_eq!(all(&mut BagReader::open(&new).unwrap()).len(), 200);
}

/// rosbag2's compression of single messages, which only sqlite3 has there.
#[test]
fn compressed_messages_are_decompressed_as_the_metadata_says() {
    let new = Folder::absent("formats-messages");
    let mut writer = BagWriter::create(&new, BagOptions::default()).unwrap();
    let topic = BagReader::open(&fixture("version4.db3")).unwrap().topics()[0]
        .topic
        .clone();
    let channel = writer.add_topic(topic).unwrap();
    let packed = zstd::bulk::compress(&[7; 5000], 1).unwrap();
    writer.write(channel, 1, 1, &packed).unwrap();
    writer.write(channel, 2, 2, b"no zstd").unwrap();
    writer.finish(&Default::default()).unwrap();
    let path = new.join("metadata.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("compression_format: \"\"", "compression_format: zstd");
    let text = text.replace("compression_mode: \"\"", "compression_mode: MESSAGE");
    std::fs::write(&path, &text).unwrap();
    let mut reader = BagReader::open(&new).unwrap();
    let read = all(&mut reader);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].payload, [7; 5000][..]);
    let problems = reader.problems().join("\n");
    assert!(
        problems.contains("a compressed message: zstd"),
        "{problems}"
    );
    std::fs::write(&path, text.replace("zstd", "lz77")).unwrap();
    let error = BagReader::open(&new).err().unwrap();
    assert!(
        error.to_string().contains("is \"lz77\"; Pteros reads zstd"),
        "{error}"
    );
}

#[test]
fn messages_are_ordered_by_publish_time_where_asked() {
    let new = Folder::absent("formats-order");
    let mut writer = BagWriter::create(
        &new,
        BagOptions {
            chunk_bytes: 200,
            ..BagOptions::default()
        },
    )
    .unwrap();
    let topic = BagReader::open(&fixture("version4.db3")).unwrap().topics()[0]
        .topic
        .clone();
    let channel = writer.add_topic(topic).unwrap();
    for (log, publish) in [
        (100, 50),
        (110, 20),
        (120, 70),
        (130, 10),
        (140, 60),
        (150, 0),
    ] {
        writer.write(channel, log, publish, &[0; 60]).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let mut reader = BagReader::open(&new).unwrap();
    let sent = MessageFilter {
        order: MessageOrder::Sent,
        from: Some(20),
        ..MessageFilter::default()
    };
    let times = reader.messages(sent).map(|m| m.time(MessageOrder::Sent));
    // An unknown publish time is that of the log.
    assert_eq!(times.collect::<Vec<_>>(), [20, 50, 60, 70, 150]);
    assert_eq!(reader.span_by(MessageOrder::Sent), Some((10, 150)));
    assert_eq!(reader.span_by(MessageOrder::Received), Some((100, 150)));
}
