//! Addresses that a participant announces for its endpoints: a victim's, or those
//! of its second network.

use pteros_rtps::id::EntityId;
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::wire::pid;

use pteros_test_support::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, IMPERSONATED, VICTIM, announce, endpoint, locator_bytes,
    new_participant,
};
use pteros_test_support::rtps::domain::prefix;
use pteros_test_support::rtps::packet::{Packet, Plist};

/// A reader of the impersonated participant on the pair's topic, at this address.
fn reader_at(number: u32, at: Locator) -> Plist {
    endpoint(number, EntityId::KIND_READER_NO_KEY)
        .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
        .string(pid::TYPE_NAME, 2, b"T\0")
        .with(pid::UNICAST_LOCATOR, &locator_bytes(at))
}

/// Every address that the first participant reported as a route.
fn destinations(harness: &DiscoveryHarness) -> Vec<Locator> {
    let announced = harness.domain.nodes[0].events.iter();
    let routes = announced.filter_map(|event| match event {
        ParticipantEvent::Matched { route, .. }
        | ParticipantEvent::EndpointChanged { route, .. } => Some(route),
        _ => None,
    });
    routes.flat_map(|route| route.locators.to_vec()).collect()
}

/// CVE-2021-38425 once more, of endpoints: the participant is known and answers,
/// but its readers live at the victim's, who would get all that is published.
#[test]
fn an_endpoint_does_not_direct_its_data_to_a_victim() {
    let mut harness = DiscoveryHarness::new();
    for number in 1..50 {
        harness.announce_as_impersonated(false, &reader_at(number, VICTIM).end());
        harness.run_ms(50);
    }
    // The same one over and over, each time a little other.
    for port in 1..50 {
        let at = Locator {
            port: 8_000 + port,
            ..VICTIM
        };
        harness.announce_as_impersonated(false, &reader_at(1, at).end());
        harness.run_ms(50);
    }
    harness.run_ms(5_000);
    assert_eq!(harness.accepted_endpoints(), 49);
    let at_victim = |to: &&Locator| to.address == VICTIM.address;
    assert_eq!(destinations(&harness).iter().find(at_victim), None);
    let sent = harness.domain.sent.iter().filter(|(to, _)| at_victim(to));
    let sent: usize = sent.map(|(_, (_, bytes))| *bytes).sum();
    assert!(
        (1..=3 * harness.received).contains(&sent),
        "{sent} for {}",
        harness.received
    );
}

/// The same for the addresses that a participant announces for all its endpoints.
/// It sends from its announced address and answers there, but its data would go
/// elsewhere.
#[test]
fn a_new_participant_does_not_direct_its_data_to_a_victim() {
    let mut harness = DiscoveryHarness::new();
    let who = new_participant(1);
    let list = Plist::payload()
        .with(pid::PROTOCOL_VERSION, &[2, 3, 0, 0])
        .with(pid::VENDOR_ID, &[1, 15, 0, 0])
        .with(
            pid::PARTICIPANT_GUID,
            &who.with(EntityId::PARTICIPANT).to_bytes(),
        )
        .with(pid::BUILTIN_ENDPOINT_SET, &0xc3f_u32.to_le_bytes())
        .with(pid::METATRAFFIC_UNICAST_LOCATOR, &locator_bytes(ATTACKER))
        .with(pid::DEFAULT_UNICAST_LOCATOR, &locator_bytes(VICTIM));
    harness.attack(ATTACKER, &announce(who, &list.end()));
    let reader = who.with(EntityId::new([0, 0, 1], EntityId::KIND_READER_NO_KEY));
    let endpoint = Plist::payload()
        .with(pid::ENDPOINT_GUID, &reader.to_bytes())
        .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
        .string(pid::TYPE_NAME, 2, b"T\0");
    let answer = Packet::from(who).to(prefix(0, 0)).data(
        EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        1,
        &endpoint.end(),
    );
    harness.attack(ATTACKER, &answer);
    harness.run_ms(2_000);
    let matched = harness.domain.matches(0);
    assert!(matched.iter().any(|(_, remote)| *remote == reader));
    assert!(!destinations(&harness).contains(&VICTIM));
    // It was discovered, so it gets discovery data; the victim does not.
    let sent = harness.sent_to(VICTIM);
    assert!(
        sent <= 3 * harness.received,
        "{sent} for {}",
        harness.received
    );
    let met = harness.domain.sent.remove(&ATTACKER);
    assert!(met.is_some());
    harness.domain.deliver(0, Some(ATTACKER), &dispose(who).0);
}

fn dispose(who: pteros_rtps::id::GuidPrefix) -> Packet {
    let key = who.with(EntityId::PARTICIPANT).to_bytes();
    let list = Plist::inline().with(pid::KEY_HASH, &key);
    let qos = list.with(pid::STATUS_INFO, &[0, 0, 0, 3]).end();
    Packet::from(who).data_with_qos(EntityId::SPDP_WRITER, 2, &qos, &[])
}

/// No advisory: a host with two networks, whose endpoints use the second one. That
/// address is probed, and used once it has answered.
#[test]
fn a_second_network_is_used_once_it_has_answered() {
    let mut harness = DiscoveryHarness::new();
    let second = Locator::udp_v4([10, 0, 7, 3], 7_411);
    harness.announce_as_impersonated(false, &reader_at(1, second).end());
    harness.run_ms(200);
    assert!(!destinations(&harness).contains(&second));
    assert!(
        harness.sent_to(second) > 0,
        "the second address was not probed"
    );
    // An answer of another participant from there does not count.
    let asked = EntityId::SEDP_PUBLICATIONS_WRITER;
    let answer = |who| Packet::from(who).to(prefix(0, 0)).heartbeat(asked, 1, 0, 9);
    let other = Packet::from(prefix(1, 0)).heartbeat(asked, 1, 0, 9);
    harness.domain.deliver(0, Some(second), &other.0);
    harness.domain.flush(0);
    assert!(!destinations(&harness).contains(&second));
    let packet = answer(prefix(IMPERSONATED, 0));
    harness.domain.deliver(
        0,
        Some(Locator {
            port: 40_000,
            ..second
        }),
        &packet.0,
    );
    harness.domain.flush(0);
    assert!(destinations(&harness).contains(&second));
    let before = harness.sent_to(second);
    harness.run_ms(5_000);
    assert_eq!(
        harness.sent_to(second),
        before,
        "probed though it has answered"
    );
    // Further endpoints there need no probe.
    harness.domain.nodes[0]
        .events
        .retain(|event| !matches!(event, ParticipantEvent::EndpointChanged { .. }));
    harness.announce_as_impersonated(false, &reader_at(2, second).end());
    assert!(destinations(&harness).contains(&second));
    assert_eq!(harness.sent_to(second), before);
}
