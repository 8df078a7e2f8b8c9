//! Endpoint announcements of a discovered participant: endless names and lists,
//! thousands of endpoints, endpoints of others.

use pteros_rtps::id::EntityId;
use pteros_rtps::wire::pid;

use pteros_test_support::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, IMPERSONATED, endpoint,
};
use pteros_test_support::rtps::domain::{address, prefix};
use pteros_test_support::rtps::packet::{Packet, Plist};

const WRITER: u8 = EntityId::KIND_WRITER_NO_KEY;
const READER: u8 = EntityId::KIND_READER_NO_KEY;

/// A complete endpoint on the pair's topic.
fn on_chatter(number: u32, kind: u8) -> Plist {
    endpoint(number, kind)
        .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
        .string(pid::TYPE_NAME, 2, b"T\0")
}

/// Endpoints by the thousand from one participant (the 45 GB of cyclonedds
/// #2306, and Fast DDS #5900): 4 096 per participant are kept.
#[test]
fn thousands_of_endpoints_are_bounded() {
    let mut harness = DiscoveryHarness::new();
    for number in 0..6_500 {
        harness.announce_as_impersonated(true, &on_chatter(number, WRITER).end());
    }
    assert_eq!(harness.accepted_endpoints(), 4_096);
    assert!(harness.stats().endpoints_refused > 2_000);
    harness.memory_bytes_max = 32 << 20;
}

/// The class of CVE-2023-39948 for endpoints: a topic or type name whose length
/// lies, has no end, or is empty.
#[test]
fn invalid_names_make_no_endpoint() {
    let mut harness = DiscoveryHarness::new();
    let mut number = 0;
    for id in [pid::TOPIC_NAME, pid::TYPE_NAME] {
        for length in [0, 300, 60_000, 0x7fff_ffff, 0xffff_fffc, u32::MAX] {
            number += 1;
            let other = if id == pid::TOPIC_NAME {
                pid::TYPE_NAME
            } else {
                pid::TOPIC_NAME
            };
            let list = endpoint(number, WRITER)
                .string(other, 2, b"T\0")
                .string(id, length, b"x");
            harness.announce_as_impersonated(true, &list.end());
        }
        let long = vec![b'x'; 60_000];
        let list = endpoint(99, WRITER).string(id, 60_000, &long);
        harness.announce_as_impersonated(true, &list.end());
    }
    assert_eq!(harness.accepted_endpoints(), 0);
}

/// OpenDDS #4009 again, now as QoS of an endpoint: partitions whose count and
/// lengths exceed their parameter, and sixteen thousand partitions.
#[test]
fn oversized_partition_lists_are_refused() {
    let mut harness = DiscoveryHarness::new();
    for (number, count) in (1..).zip([1_u32, 10, 1 << 16, 1 << 30, u32::MAX]) {
        let mut value = count.to_le_bytes().to_vec();
        value.extend_from_slice(&[0xff, 0xff, 0xff, 0x7f, b'p', 0, 0, 0]);
        harness.announce_as_impersonated(
            true,
            &on_chatter(number, WRITER)
                .with(pid::PARTITION, &value)
                .end(),
        );
    }
    let mut many = 7_000_u32.to_le_bytes().to_vec();
    for _ in 0..7_000 {
        many.extend_from_slice(&[2, 0, 0, 0, b'p', 0, 0, 0]);
    }
    harness.announce_as_impersonated(
        true,
        &on_chatter(9, WRITER).with(pid::PARTITION, &many).end(),
    );
    assert_eq!(harness.accepted_endpoints(), 0);
}

/// CVE-2026-22591 (Fast DDS): a content filter's expression exhausted the
/// process. Thirty thousand parentheses are opaque bytes here, and too many.
#[test]
fn a_filter_of_parentheses_is_not_parsed() {
    let mut harness = DiscoveryHarness::new();
    for (number, depth) in (1..).zip([10_usize, 1_000, 12_000]) {
        let expression = [
            vec![b'('; depth],
            b"a=1".to_vec(),
            vec![b')'; depth],
            vec![0],
        ]
        .concat();
        let mut value = Vec::new();
        for text in [&b"f\0"[..], b"rt/chatter\0", b"DDSSQL\0", &expression] {
            value.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
            value.extend_from_slice(text);
            value.resize(value.len().next_multiple_of(4), 0);
        }
        value.extend_from_slice(&u32::MAX.to_le_bytes());
        harness.announce_as_impersonated(
            false,
            &on_chatter(number, READER)
                .with(pid::CONTENT_FILTER_PROPERTY, &value)
                .end(),
        );
    }
    harness.run_ms(200);
}

/// TypeInformation and type objects of any size and content (cyclonedds' and
/// Fast DDS's type graphs: recursion and sizes out of nowhere). We keep up to
/// 16 KiB as it came.
#[test]
fn type_information_is_stored_unparsed_up_to_its_limit() {
    let mut harness = DiscoveryHarness::new();
    for number in 1..200 {
        let list = on_chatter(number, WRITER).with(pid::TYPE_INFORMATION, &vec![0xff; 60_000]);
        harness.announce_as_impersonated(true, &list.end());
    }
    harness.run_ms(200);
    assert_eq!(harness.accepted_endpoints(), 199);
    harness.memory_bytes_max = 4 << 20;
}

/// CVE-2023-50257's sibling for endpoints: in its own name, a participant
/// announces or disposes the endpoints of another.
#[test]
fn a_participant_cannot_remove_endpoints_of_others() {
    let mut harness = DiscoveryHarness::new();
    for (from, entity) in [
        (EntityId::SEDP_PUBLICATIONS_WRITER, WRITER),
        (EntityId::SEDP_SUBSCRIPTIONS_WRITER, READER),
    ] {
        for node in 0..2 {
            let guid = prefix(node, 0).with(EntityId::new([0, 0, 1], entity));
            let gone = Plist::inline()
                .with(pid::KEY_HASH, &guid.to_bytes())
                .with(pid::STATUS_INFO, &[0, 0, 0, 3])
                .end();
            for sequence in 1..4 {
                let packet =
                    Packet::from(prefix(IMPERSONATED, 0)).data_with_qos(from, sequence, &gone, &[]);
                harness.attack(address(IMPERSONATED), &packet);
                harness.attack(ATTACKER, &packet);
            }
        }
    }
    harness.run_ms(200);
}

/// Endpoints that come and go and change without pause: matches follow, and
/// nothing grows (the matching storms of Fast DDS #3163).
#[test]
fn an_endpoint_added_and_removed_repeatedly_leaves_no_state() {
    let mut harness = DiscoveryHarness::new();
    for round in 0..1_000_u32 {
        let deadline = [round.to_le_bytes(), [0; 4]].concat();
        harness.announce_as_impersonated(
            true,
            &on_chatter(1, WRITER).with(pid::DEADLINE, &deadline).end(),
        );
        if round % 100 == 0 {
            harness.run_ms(10);
        }
    }
    assert_eq!(harness.accepted_endpoints(), 1);
    harness.memory_bytes_max = 8 << 20;
}

/// A heartbeat of the impersonated participant's SEDP writer that names more
/// endpoints than there can be, and a GAP over all of them (CVE-2025-65016 and
/// CVE-2025-64438 against discovery itself).
#[test]
fn discovery_does_not_loop_for_ever() {
    let mut harness = DiscoveryHarness::new();
    let impersonated = || Packet::from(prefix(IMPERSONATED, 0)).to(prefix(0, 0));
    for writer in [
        EntityId::SEDP_PUBLICATIONS_WRITER,
        EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        EntityId::WLP_WRITER,
    ] {
        harness.attack(
            address(IMPERSONATED),
            &impersonated().heartbeat(writer, 1, i64::MAX - 1, 1),
        );
        harness.attack(
            address(IMPERSONATED),
            &impersonated().gap(writer, 2, i64::MAX - 500, 256, &[0x5555_5555; 8]),
        );
        harness.attack(
            address(IMPERSONATED),
            &impersonated().heartbeat(writer, i64::MAX - 5, i64::MAX - 1, 2),
        );
    }
    harness.run_ms(5_000);
    assert!(harness.sent_to(address(IMPERSONATED)) < 100_000);
}
