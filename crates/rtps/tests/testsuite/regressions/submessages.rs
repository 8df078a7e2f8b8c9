//! Datagrams and submessages with invalid framing: truncated headers, lengths that
//! point elsewhere, endless chains.

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::wire::Submessage;

use crate::vectors::{SCENARIOS, load};
use pteros_test_support::rtps::endpoint_harness::{
    EndpointHarness, INTRUDER, INTRUDER_WRITER, intruder, unmatched_sender,
};
use pteros_test_support::rtps::packet::{Packet, data_head, id};
use pteros_test_support::rtps::pair::prefix;

/// ros2/ros2 #1690: a malformed datagram sent to the discovery port ended ROS 2
/// nodes of any kind. Here captured datagrams arrive cut off at many places.
#[test]
fn datagrams_cut_off_anywhere_do_nothing() {
    let mut harness = EndpointHarness::new();
    let few = |scenario: &&&str| scenario.ends_with("chatter");
    for scenario in SCENARIOS.iter().filter(few) {
        for captured in load(scenario).into_iter().take(40) {
            for cut in (0..captured.message.len()).step_by(7) {
                harness.send_to_both(&Packet(captured.message[..cut].to_vec()));
            }
        }
    }
}

/// CVE-2024-52057 to 52066 and CVE-2025-1255 (RTI): the core parser of a closed
/// stack wrote past its buffers on malformed messages. Every byte of a datagram
/// of each shape takes the extreme values.
#[test]
fn any_byte_may_have_any_value() {
    let mut harness = EndpointHarness::new();
    let packet = intruder()
        .submessage(id::INFO_TS, 0, &[1, 0, 0, 0, 2, 0, 0, 0])
        .data(INTRUDER_WRITER, 1, b"\0\x01\0\0 payload")
        .heartbeat(INTRUDER_WRITER, 1, 2, 1)
        .gap(INTRUDER_WRITER, 3, 4, 40, &[5, 6])
        .heartbeat_frag(INTRUDER_WRITER, 5, 3, 2);
    for at in 20..packet.0.len() {
        for byte in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut changed = packet.clone();
            changed.0[at] = byte;
            harness.send_to_both(&changed);
        }
    }
}

/// CVE-2021-38445 (OpenDDS): a length that exceeds what was received was
/// believed, and memory behind the datagram read.
#[test]
fn a_submessage_longer_than_its_datagram_ends_the_message() {
    let mut harness = EndpointHarness::new();
    for length in [25, 64, 1_000, u16::MAX] {
        let body = data_head(INTRUDER_WRITER, 1);
        harness.send_to_both(&intruder().claiming(id::DATA, 4, length, &body));
    }
    assert_eq!(harness.samples_of_intruder(), []);
}

/// CVE-2021-38447 (OpenDDS, length handling): one crafted packet ate the
/// resources of its receiver. A length of zero means "all the rest", and must not be read
/// as "nothing, look again".
#[test]
fn a_length_of_zero_does_not_loop_for_ever() {
    let mut harness = EndpointHarness::new();
    for id in 0..=255 {
        let packet = intruder().claiming(id, 0, 0, &[0; 64]);
        harness.send_to_both(&packet);
        let idle = intruder().raw(&[id, 1, 0, 0].repeat(10_000));
        harness.send_to_both(&idle);
    }
    harness.memory_bytes_max = 2 << 20;
}

/// Fast DDS #3207: 76 bytes with a DATA whose offset to its inline QoS points
/// far behind the message made it free memory that was never its own.
#[test]
fn an_offset_behind_the_message_frees_nothing() {
    let mut harness = EndpointHarness::new();
    for (flags, offset) in [(0x17_u8, 0x9210_u16), (0x07, 0xffff), (0x05, 0), (0x05, 15)] {
        let mut body = data_head(INTRUDER_WRITER, 1);
        body[2..4].copy_from_slice(&offset.to_le_bytes());
        harness.send_to_both(&intruder().claiming(
            id::DATA,
            flags,
            24,
            &[&body[..], &[0; 4]].concat(),
        ));
    }
    assert_eq!(harness.samples_of_intruder(), []);
}

/// CVE-2024-28231 (Fast DDS): the payload's size was the submessage's length
/// minus what had been read, and wrapped round below zero.
#[test]
fn a_payload_of_negative_length_is_refused() {
    let mut harness = EndpointHarness::new();
    for length in 0..24 {
        let body = data_head(INTRUDER_WRITER, 1);
        let at_the_end = intruder().claiming(id::DATA, 4, length.max(1), &body);
        harness.send_to_both(&at_the_end);
        harness.send_to_both(&at_the_end.heartbeat(INTRUDER_WRITER, 1, 0, 1));
    }
    assert_eq!(harness.samples_of_intruder(), []);
}

/// CVE-2023-42459 (Fast DDS): a DATA with inline QoS where neither payload nor
/// key was announced by its flags led to a free of what was never allocated.
#[test]
fn flags_that_contradict_the_contents_are_harmless() {
    let mut harness = EndpointHarness::new();
    for flags in 0..=255 {
        let mut body = data_head(INTRUDER_WRITER, i64::from(flags) + 1);
        body.extend_from_slice(&[0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0]);
        harness.send_to_both(&intruder().submessage(id::DATA, flags, &body));
        harness.send_to_both(&intruder().submessage(id::DATA, flags, &body[..20]));
    }
}

/// cyclonedds #2402: a message too short for what its first submessage
/// promises was scanned for security submessages beyond its end.
#[test]
fn short_messages_with_protected_parts_are_dropped() {
    let mut harness = EndpointHarness::new();
    for id in [
        0x30,
        id::SEC_PREFIX,
        id::SEC_POSTFIX,
        id::SRTPS_PREFIX,
        0x34,
    ] {
        for length in 0..40_u16 {
            let body = vec![0xff; usize::from(length)];
            harness.send_to_both(&intruder().submessage(id, 0, &body));
            harness.send_to_both(&intruder().claiming(id, 0, length + 8, &body));
        }
    }
    for length in 0..20 {
        harness.send_to_both(&Packet(intruder().0[..length].to_vec()));
    }
    assert_eq!(harness.sent_to(INTRUDER), 0);
}

/// CVE-2023-23932 (OpenDDS): badly formed input of many kinds ended the
/// process from within its parser. Unknown ids, versions and vendors.
#[test]
fn unknown_submessages_are_skipped() {
    let mut harness = EndpointHarness::new();
    for id in 0..=255_u8 {
        for body in [&[][..], &[0xff; 3], &[0; 16], &[0xff; 80]] {
            harness.send_to_both(&intruder().submessage(id, 0, body));
            harness.send_to_both(&unmatched_sender().submessage(id, 0xfe, body));
        }
    }
    for version in 0..=255 {
        let mut packet = intruder().data(INTRUDER_WRITER, 99, b"\0\x01\0\0");
        packet.0[4] = version;
        harness.send_to_both(&packet);
    }
}

/// CVE-2021-38439 and 38423 (GurumDDS): a heap overflow, and a buffer's size
/// computed wrongly. The largest datagram there is, full of
/// the smallest samples.
#[test]
fn a_datagram_full_of_samples_costs_its_size() {
    let mut harness = EndpointHarness::new();
    let mut packet = intruder().heartbeat(INTRUDER_WRITER, 1, 0, 1);
    let mut number = 0;
    while packet.0.len() < 65_000 {
        number += 1;
        packet = packet.data(INTRUDER_WRITER, number, b"\0\x01\0\0");
    }
    harness.send_to_both(&packet);
    assert_eq!(harness.samples_of_intruder().len(), number as usize);
    harness.memory_bytes_max = 2 << 20;
}

/// ros2/rmw_zenoh #240: arithmetic on a received number overflowed, the
/// receiving thread panicked, and its poisoned lock ended all others. Every
/// number of every submessage at its extremes (tests check for overflow).
#[test]
fn extreme_numbers_do_not_overflow() {
    let mut harness = EndpointHarness::new();
    let pair = harness.request();
    let extremes = [
        0,
        1,
        -1,
        i64::MAX,
        i64::MAX - 1,
        i64::MIN,
        1 << 32,
        (1 << 32) - 1,
        -(1 << 32),
    ];
    for (n, a) in extremes.into_iter().enumerate() {
        for b in extremes {
            let count = u32::MAX - n as u32;
            let packets = [
                intruder().heartbeat(INTRUDER_WRITER, a, b, count),
                intruder().gap(INTRUDER_WRITER, a, b, 256, &[u32::MAX; 8]),
                intruder().data(INTRUDER_WRITER, a, b"\0\x01\0\0"),
                intruder().heartbeat_frag(INTRUDER_WRITER, a, b as u32, count),
                intruder().acknack(pair, a, 256, &[u32::MAX; 8], count),
                intruder().nack_frag(pair, a, (b as u32, 256, &[u32::MAX; 8]), count),
            ];
            for packet in packets {
                harness.send_to_both(&packet);
            }
        }
    }
}

/// INFO submessages as a means of CVE-2021-38487's reflection (RTI): INFO_REPLY
/// names a victim for the answers. None goes there. INFO_SRC changes the source to
/// an unknown participant, INFO_DST sends the rest elsewhere.
#[test]
fn info_submessages_only_change_later_ones() {
    let mut harness = EndpointHarness::new();
    let somebody = [[0, 0, 0, 0, 2, 4, 1, 15].as_slice(), &[0xee; 12]].concat();
    let victim = [
        [1, 0, 0, 0].as_slice(),
        &[1, 0, 0, 0, 242, 28, 0, 0],
        &[9; 16],
    ]
    .concat();
    let packet = intruder()
        .submessage(id::INFO_SRC, 0, &somebody)
        .submessage(id::INFO_REPLY, 0, &victim)
        .data(INTRUDER_WRITER, 1, b"\0\x01\0\0")
        .heartbeat(INTRUDER_WRITER, 1, 100, 1);
    harness.send_to_both(&packet);
    let elsewhere = intruder()
        .to(prefix(9))
        .heartbeat(INTRUDER_WRITER, 1, 100, 1);
    harness.send_to_both(&elsewhere);
    assert_eq!(harness.samples_of_intruder(), []);
    assert_eq!(harness.sent_to(INTRUDER), 0);
    let chain = intruder().submessage(id::INFO_REPLY, 0, &victim);
    let mut chain = chain.heartbeat(INTRUDER_WRITER, 1, 3, 2);
    while chain.0.len() < 60_000 {
        chain = chain.submessage(id::INFO_SRC, 0, &somebody);
    }
    harness.send_to_both(&chain);
}

/// The lists of locators in INFO_REPLY: Fast DDS's CVE-2025-62601 is a count
/// times a size that wraps round at 32 bits; a count of 2^27 locators does.
#[test]
fn a_count_times_a_size_does_not_wrap() {
    let mut harness = EndpointHarness::new();
    for count in [1_u32, 2, 1 << 27, (1 << 27) + 1, 0x0aaa_aaab, u32::MAX] {
        let body = [count.to_le_bytes().as_slice(), &[0; 24]].concat();
        let packet = intruder().submessage(id::INFO_REPLY, 2, &body);
        harness.send_to_both(&packet);
        let reader = MessageReader::new(&packet.0, GuidPrefix::UNKNOWN).unwrap();
        for (_, submessage) in reader {
            let Submessage::InfoReply(reply) = submessage else {
                continue;
            };
            assert!(reply.unicast.iter().count() <= 1);
        }
    }
}
