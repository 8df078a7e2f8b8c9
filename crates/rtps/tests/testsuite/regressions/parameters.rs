//! Parameter lists with false lengths, endless strings and counts that multiply: as
//! inline QoS against the pair, as announcements against discovery.

use pteros_rtps::wire::pid;

use pteros_test_support::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, announce, announcement, new_participant,
};
use pteros_test_support::rtps::endpoint_harness::{EndpointHarness, INTRUDER_WRITER, intruder};
use pteros_test_support::rtps::packet::Plist;

/// Announces a new participant with one more parameter, then runs the common
/// checks.
fn announced_with(parameters: &[Plist]) {
    let mut harness = DiscoveryHarness::new();
    for (number, more) in (0..).zip(parameters) {
        let prefix = new_participant(number);
        let mut payload = announcement(prefix, ATTACKER).unended();
        payload.extend_from_slice(&more.clone().end());
        harness.attack(ATTACKER, &announce(prefix, &payload));
        harness.run_ms(1);
    }
    harness.run_ms(500);
}

/// cyclonedds #1555: the quick look through a message's inline QoS walked
/// beyond its end when the list had no sentinel.
#[test]
fn inline_qos_without_sentinel_is_refused() {
    let mut harness = EndpointHarness::new();
    let lists = [
        Plist::inline().with(pid::KEY_HASH, &[7; 16]).unended(),
        Plist::inline()
            .claiming(pid::KEY_HASH, 0xfffc, &[])
            .unended(),
        Plist::inline()
            .claiming(pid::STATUS_INFO, 8, &[0; 4])
            .unended(),
        vec![0x70],
        vec![0x70, 0, 4],
        Vec::new(),
    ];
    for (number, list) in (1..).zip(&lists) {
        harness.send_to_both(&intruder().data_with_qos(INTRUDER_WRITER, number, list, &[]));
    }
    assert_eq!(harness.samples_of_intruder(), []);
}

/// OpenDDS #4009: single parameters in inline QoS (PARTITION and others, with
/// counts of strings beyond the value) ended the process. Every id, with values
/// too short, too long and full of counts.
#[test]
fn any_inline_parameter_value_is_harmless() {
    let mut harness = EndpointHarness::new();
    let values: [&[u8]; 5] = [
        &[],
        &[0xff; 4],
        &[10, 0, 0, 0, 255, 255, 255, 127],
        &[0xff; 24],
        &[0; 64],
    ];
    for number in 0..0x90_u16 {
        for flag in [0, 0x4000, 0x8000] {
            for value in values {
                let list = Plist::inline().with(number | flag, value).end();
                let sequence = i64::from(number) + 1;
                let packet =
                    intruder().data_with_qos(INTRUDER_WRITER, sequence, &list, b"\0\x01\0\0");
                harness.send_to_both(&packet);
            }
        }
    }
}

/// A key hash or status of the wrong size (similar to CVE-2023-42459): four bytes
/// are not read as sixteen.
#[test]
fn a_short_key_hash_is_not_read_to_its_full_length() {
    let mut harness = EndpointHarness::new();
    for length in (0..16).step_by(4) {
        for id in [
            pid::KEY_HASH,
            pid::STATUS_INFO,
            pid::RELATED_SAMPLE_IDENTITY,
            0x800f,
        ] {
            let list = Plist::inline().with(id, &vec![0xff; length]).end();
            let packet = intruder().data_with_qos(INTRUDER_WRITER, 1, &list, b"\0\x01\0\0");
            harness.send_to_both(&packet);
        }
    }
}

/// CVE-2023-39946 (Fast DDS): a string in PID_PROPERTY_LIST longer than the
/// parameter was copied behind its buffer.
#[test]
fn a_property_longer_than_its_parameter() {
    let property = |length: u32| {
        let mut value = 1_u32.to_le_bytes().to_vec();
        value.extend_from_slice(&length.to_le_bytes());
        value.extend_from_slice(b"name\0\0\0\0");
        Plist::inline().with(pid::PROPERTY_LIST, &value)
    };
    let lengths = [
        0,
        1,
        9,
        100,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fff8,
        u32::MAX,
    ];
    announced_with(&lengths.map(property));
}

/// CVE-2023-39947 (the fix of 39946 was not enough): the lie is in the second
/// string, or in how many there are.
#[test]
fn properties_more_than_their_parameter_holds() {
    let property = |count: u32| {
        let mut value = count.to_le_bytes().to_vec();
        value.extend_from_slice(&[2, 0, 0, 0, b'n', 0, 0, 0]);
        value.extend_from_slice(&count.wrapping_mul(8).to_le_bytes());
        value.extend_from_slice(b"v\0\0\0");
        Plist::inline().with(pid::PROPERTY_LIST, &value)
    };
    announced_with(&[0, 2, 1 << 16, 1 << 28, 1 << 29, 0x2000_0001, u32::MAX].map(property));
}

/// CVE-2023-39945 and 39948 (Fast DDS): a parameter with a bad value threw an
/// uncaught exception. Here every discovery parameter with every kind of wrong
/// value only refuses the announcement.
#[test]
fn any_announced_parameter_value_is_harmless() {
    let mut all = Vec::new();
    for id in (2..0x90).chain([0x1001, 0x1002, 0x1004, 0x1005, 0x1006, 0x4014, 0x800f]) {
        for value in [&[][..], &[0xff; 4], &[0xff; 12], &[0xff; 40]] {
            all.push(Plist::inline().with(id, value));
        }
    }
    announced_with(&all);
}

/// CVE-2025-62600, 62602 and 64098 (Fast DDS with security): the size of a
/// vector inside PID_IDENTITY_TOKEN or PID_PERMISSIONS_TOKEN was multiplied or
/// resized to before anybody looked whether so much was there. We keep tokens
/// as they came, up to a limit.
#[test]
fn tokens_with_vectors_of_impossible_size() {
    let token = |id: u16, size: u32| {
        let mut value = vec![4, 0, 0, 0, b'D', b'D', b'S', 0];
        value.extend_from_slice(&size.to_le_bytes());
        value.extend_from_slice(&[2, 0, 0, 0, b'a', 0, 0, 0]);
        value.extend_from_slice(&size.to_le_bytes());
        Plist::inline().with(id, &value)
    };
    let ids = [
        pid::IDENTITY_TOKEN,
        pid::PERMISSIONS_TOKEN,
        pid::IDENTITY_STATUS_TOKEN,
    ];
    let sizes = [1 << 30, 0x4000_0001, 0x8000_0000, u32::MAX];
    let all: Vec<Plist> = ids
        .iter()
        .flat_map(|id| sizes.map(|size| token(*id, size)))
        .collect();
    announced_with(&all);
}

/// Tokens in their thousands and of the largest size a parameter has (the
/// memory side of CVE-2025-62599 to 62603).
#[test]
fn thousands_of_tokens() {
    let mut many = Plist::inline();
    for _ in 0..3_000 {
        many = many.with(pid::IDENTITY_TOKEN, &[7; 16]);
    }
    let large = Plist::inline()
        .with(pid::IDENTITY_TOKEN, &[7; 20_000])
        .with(pid::PERMISSIONS_TOKEN, &[7; 20_000])
        .with(pid::USER_DATA, &[0xff; 20_000]);
    announced_with(&[many, large]);
}

/// CVE-2021-38435 (RTI): a buffer's size was computed wrongly from what was
/// received. Lists of fourteen thousand empty parameters or of padding only.
#[test]
fn a_parameter_list_of_headers_only() {
    let list = |id: u16| {
        let mut list = Plist::inline();
        for _ in 0..14_000 {
            list = list.with(id, &[]);
        }
        list
    };
    announced_with(&[list(pid::PAD), list(0x7ff0), list(0x8001)]);
}

/// Similar to CVE-2025-62601, for locators: thousands of them in one announcement
/// (each was a destination of every message elsewhere). The first 32 are kept.
#[test]
fn thousands_of_locators() {
    let mut harness = DiscoveryHarness::new();
    let prefix = new_participant(1);
    let mut list = announcement(prefix, ATTACKER);
    for port in 1..2_000 {
        let victim = pteros_rtps::locator::Locator::udp_v4([10, 0, 0, 99], port);
        list = list.with(
            pid::METATRAFFIC_UNICAST_LOCATOR,
            &pteros_test_support::rtps::discovery_harness::locator_bytes(victim),
        );
    }
    let packet = announce(prefix, &list.end());
    harness.attack(ATTACKER, &packet);
    harness.run_ms(10_000);
    let destinations = harness.domain.sent.keys().filter(|to| to.address[15] == 99);
    assert!(destinations.count() <= 1);
}
