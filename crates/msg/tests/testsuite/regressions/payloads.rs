//! Payloads with wrong lengths.

use pteros_msg::cdr::{DecodeError, Representation, from_payload, to_payload};
use pteros_msg::dynamic::DynamicMessage;
use pteros_msg::message::Message;

use crate::regressions::interfaces::diagnostic_msgs::msg::{
    DiagnosticArray, DiagnosticStatus, KeyValue,
};
use crate::regressions::interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use crate::regressions::interfaces::sensor_msgs::msg::{JointState, PointCloud2};
use crate::regressions::interfaces::std_msgs::msg::{Float64MultiArray, String as Text};
use crate::regressions::interfaces::test_msgs::msg::{
    BoundedSequences, UnboundedSequences, WStrings,
};
use crate::regressions::{dynamic, within};

const BOTH: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

/// Headers of every encoding that is read.
const HEADERS: [[u8; 4]; 6] = [
    [0, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 6, 0, 0],
    [0, 7, 0, 0],
    [0, 8, 0, 0],
    [0, 9, 0, 0],
];

/// Counts that overflow when multiplied, or promise gigabytes.
const LIES: [u32; 8] = [
    0x1000_0000,
    0x1fff_ffff,
    0x2000_0001,
    0x4000_0001,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffc,
    u32::MAX,
];

/// `head` bytes of zero, then a wrong length, then `tail` bytes, in every encoding.
fn lies(head: usize, tail: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for header in HEADERS {
        for lie in LIES {
            let big = header[1] % 2 == 0;
            let number = if big {
                lie.to_be_bytes()
            } else {
                lie.to_le_bytes()
            };
            all.push([&header[..], &vec![0; head], &number, &vec![1; tail]].concat());
        }
    }
    all
}

fn refused<M: Message>(payload: &[u8]) {
    let read = within(64 << 10, || from_payload::<M>(payload));
    assert!(read.is_err(), "{} from {payload:02x?}", M::TYPE_NAME);
}

/// rmw_fastrtps #828 and ros2/ros2 #1690: the count of nodes in a
/// ParticipantEntitiesInfo was trusted, and any ROS 2 node ran out of memory. (The
/// production decoder is in `pteros-runtime`'s graph.)
#[test]
fn a_node_list_that_promises_four_billion_nodes() {
    for payload in lies(16, 200) {
        refused::<ParticipantEntitiesInfo>(&payload);
    }
}

/// CVE-2020-18735 (Cyclone DDS): a stream of CDR was normalised beyond its end.
/// Sequences of strings with nothing behind their count.
#[test]
fn sequences_of_missing_strings() {
    // header: stamp (8 bytes) and frame_id (4 and padding), then name[].
    for payload in lies(12, 40) {
        refused::<JointState>(&payload);
    }
    let strings = dynamic("string[] all");
    for payload in lies(0, 100) {
        let read = within(64 << 10, || {
            DynamicMessage::from_payload(&strings, &payload)
        });
        assert!(read.is_err());
    }
}

/// CVE-2025-62602 (Fast DDS): a count times a size wrapped round at 32 bits,
/// and the small result passed the check.
#[test]
fn a_count_times_a_size_does_not_wrap() {
    for payload in lies(8, 64) {
        refused::<Float64MultiArray>(&payload);
    }
    for fields in [
        "float64[] a",
        "int16[] a",
        "wstring[] a",
        "builtin_interfaces/Time[] a",
    ] {
        let ty = dynamic(fields);
        for payload in lies(0, 64) {
            let read = within(64 << 10, || DynamicMessage::from_payload(&ty, &payload));
            assert!(read.is_err(), "{fields}");
        }
    }
}

/// The same in a wide string, whose units are wider on the wire than in memory
/// (CVE-2021-38423, GurumDDS: a buffer's size computed wrongly).
#[test]
fn a_wide_string_of_four_billion_units() {
    for payload in lies(0, 64) {
        refused::<WStrings>(&payload);
    }
}

/// CVE-2024-30259 (Fast DDS): lengths of strings just beyond what is left.
#[test]
fn a_string_a_byte_longer_than_its_payload() {
    for left in 0..32_u32 {
        for more in 1..4 {
            let text = vec![b'x'; left as usize];
            let payload = [&[0, 1, 0, 0][..], &(left + more).to_le_bytes(), &text].concat();
            refused::<Text>(&payload);
        }
    }
}

/// CVE-2024-10838 (Cyclone DDS): the padding that the header's options announce
/// was subtracted from a payload shorter than that.
#[test]
fn padding_that_exceeds_the_payload() {
    for header in HEADERS {
        for length in 0..8 {
            for options in 0..=255 {
                let mut payload = [&header[..], &[0; 8]].concat();
                payload[3] = options;
                payload.truncate(length);
                let _ = within(4 << 10, || from_payload::<Text>(&payload));
                let _ = within(4 << 10, || from_payload::<PointCloud2>(&payload));
            }
        }
    }
    assert_eq!(from_payload::<Text>(&[]), Err(DecodeError::NoHeader));
}

/// Fast DDS CVE-2023-39948: what the decoder threw was not caught. Every cut of
/// a good payload is an error, none is more.
#[test]
fn every_cut_of_a_payload_is_an_error() {
    let value = KeyValue {
        key: "temperature".into(),
        value: "warm".into(),
    };
    let status = DiagnosticStatus {
        name: "motor".into(),
        values: vec![value; 3],
        ..DiagnosticStatus::default()
    };
    let message = DiagnosticArray {
        status: vec![status; 2],
        ..DiagnosticArray::default()
    };
    for representation in BOTH {
        let payload = to_payload(&message, representation);
        // The last bytes may be padding.
        for cut in 0..payload.len() - 8 {
            let read = within(64 << 10, || {
                from_payload::<DiagnosticArray>(&payload[..cut])
            });
            assert!(read.is_err(), "cut at {cut}");
        }
    }
}

/// Counts within counts: each inner list is short enough for what is left, and
/// all together would be the square of it (the shape behind rmw_fastrtps #828
/// once its first count is checked).
#[test]
fn lists_of_lists_stay_in_proportion() {
    let ty = dynamic("diagnostic_msgs/DiagnosticArray[] all");
    for word in [1_u32, 2, 16, 100, 250] {
        let payload = [&[0, 1, 0, 0][..], &word.to_le_bytes().repeat(1_000)].concat();
        let _ = within(1 << 20, || DynamicMessage::from_payload(&ty, &payload));
        let _ = within(1 << 20, || from_payload::<DiagnosticArray>(&payload));
        let _ = within(1 << 20, || from_payload::<UnboundedSequences>(&payload));
        let _ = within(1 << 20, || {
            from_payload::<ParticipantEntitiesInfo>(&payload)
        });
    }
}

/// Elements without size: a list of messages without fields costs one byte each
/// on the wire, so their count is bounded by what is there.
#[test]
fn lists_of_empty_elements_are_limited_by_their_bytes() {
    let ty = dynamic("std_msgs/Empty[] nothings");
    for payload in lies(0, 64) {
        let read = within(64 << 10, || DynamicMessage::from_payload(&ty, &payload));
        assert!(read.is_err());
    }
}

/// CVE-2026-45097: bounds of dynamic data were not looked at. A bounded list,
/// string and wide string, one element too long.
#[test]
fn bounds_hold_for_dynamic_data_too() {
    let pairs = [
        ("uint8[<=3] a", vec![4, 0, 0, 0, 1, 2, 3, 4]),
        ("string<=3 a", vec![5, 0, 0, 0, b'a', b'b', b'c', b'd', 0]),
        (
            "string<=3[] a",
            vec![1, 0, 0, 0, 5, 0, 0, 0, b'a', b'b', b'c', b'd', 0],
        ),
        ("wstring<=1 a", vec![2, 0, 0, 0, 65, 0, 0, 0, 66, 0, 0, 0]),
        ("std_msgs/Empty[<=1] a", vec![2, 0, 0, 0, 0, 0]),
    ];
    for (fields, body) in pairs {
        let payload = [vec![0, 1, 0, 0], body].concat();
        let read = DynamicMessage::from_payload(&dynamic(fields), &payload);
        assert!(matches!(read, Err(DecodeError::TooLong { .. })), "{fields}");
    }
    for payload in lies(0, 600) {
        refused::<BoundedSequences>(&payload);
    }
}

/// Sizes in front of structures and lists (D_CDR2, CDR2) that exceed what they
/// lie in, or end before what they hold (CVE-2021-38445, OpenDDS, in XTypes).
#[test]
fn wrong_delimiters() {
    let ty = dynamic("std_msgs/String[] texts\nstd_msgs/Header head");
    for size in [0_u32, 1, 4, 7, 60, 64, 65, 0x7fff_ffff, u32::MAX] {
        for inner in [0_u32, 1, 4, 1_000, u32::MAX] {
            for id in [7, 9] {
                let words = [size, inner, 1, inner, 6];
                let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let payload = [&[0, id, 0, 0][..], &body, &[b'x'; 44]].concat();
                let _ = within(64 << 10, || DynamicMessage::from_payload(&ty, &payload));
            }
        }
    }
}

/// Strings that are none: no final NUL, NULs inside, length zero, not UTF-8
/// (Fast CDR and Cyclone disagree on each; OpenDDS #4009 has such strings).
#[test]
fn malformed_strings_are_cheap() {
    for (length, bytes) in [
        (0_u32, &b""[..]),
        (1, b"\0"),
        (3, b"abc"),
        (4, b"a\0b\0"),
        (4, b"\xff\xfe\xfd\0"),
        (4, b"\xf0\x9f\x98\0"),
    ] {
        let payload = [&[0, 1, 0, 0][..], &length.to_le_bytes(), bytes].concat();
        let read = within(4 << 10, || from_payload::<Text>(&payload)).expect("forgiven");
        let again: Text = from_payload(&to_payload(&read, Representation::Xcdr1)).unwrap();
        assert_eq!(again, read);
    }
}

/// Our own, found by fuzzing: bytes that are no UTF-8 became characters of
/// three bytes each, and a bounded string read was longer than its bound.
#[test]
fn bad_bytes_do_not_stretch_a_string_beyond_its_bound() {
    let ty = dynamic("string<=8 a");
    for (bytes, good) in [(&b"\xff\xff\0"[..], true), (b"\xff\xff\xff\0", false)] {
        let length = u32::try_from(bytes.len()).unwrap();
        let payload = [&[0, 1, 0, 0][..], &length.to_le_bytes(), bytes].concat();
        let read = DynamicMessage::from_payload(&ty, &payload);
        assert_eq!(read.is_ok(), good, "{bytes:?}");
    }
}
