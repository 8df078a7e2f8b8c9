//! Participant messages: too short, too long, in the name of others.

use pteros_rtps::id::EntityId;

use pteros_test_support::rtps::discovery_harness::{ATTACKER, DiscoveryHarness, IMPERSONATED};
use pteros_test_support::rtps::domain::{address, prefix};
use pteros_test_support::rtps::packet::Packet;

/// Delivers payloads to the WLP reader in the name of the impersonated participant.
fn announced(payloads: &[Vec<u8>]) {
    let mut harness = DiscoveryHarness::new();
    for (sequence, payload) in (1..).zip(payloads) {
        for from in [address(IMPERSONATED), ATTACKER] {
            let packet = Packet::from(prefix(IMPERSONATED, 0)).to(prefix(0, 0)).data(
                EntityId::WLP_WRITER,
                sequence,
                payload,
            );
            harness.attack(from, &packet);
        }
    }
    harness.run_ms(100);
}

/// cyclonedds #1751: a participant message labelled as a parameter list met an
/// assertion that there are only two labels.
#[test]
fn participant_messages_of_any_label() {
    let label = |id: u16| [&id.to_be_bytes()[..], &[0; 30]].concat();
    announced(
        &(0..0x20)
            .chain([0x8000, 0xffff])
            .map(label)
            .collect::<Vec<_>>(),
    );
}

/// cyclonedds #1771: a participant message of nothing but its label was read
/// for its sixteen bytes of key.
#[test]
fn participant_messages_of_any_length() {
    announced(&(0..40).map(|length| vec![0; length]).collect::<Vec<_>>());
}

/// CVE-2025-62603 (Fast DDS): the message's data was allocated in full, by the
/// counts inside it, before any check whether it was needed. Here lengths are
/// checked against the available bytes, and data over 1 KiB is left out.
#[test]
fn participant_messages_with_large_declared_lengths() {
    let promise = |length: u32| {
        let mut payload = vec![0, 1, 0, 0];
        payload.extend_from_slice(&prefix(IMPERSONATED, 0).0);
        payload.extend_from_slice(&[0, 0, 0, 1]);
        payload.extend_from_slice(&length.to_le_bytes());
        payload.resize(40_000, 0xff);
        payload
    };
    announced(&[0, 1, 30_000, 50_000, 1 << 30, 0xffff_fff0, u32::MAX].map(promise));
}
