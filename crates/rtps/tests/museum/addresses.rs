//! Addresses that a participant names for its endpoints: of somebody else, or of
//! a second network of its.

use pteros_rtps::id::EntityId;
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::wire::pid;

use crate::domain::prefix;
use crate::packet::{Packet, Plist};
use crate::town::{ATTACKER, MULE, Town, VICTIM, locator_bytes};

/// A reader of the mule's on the pair's topic, at this address.
fn reader_at(number: u32, at: Locator) -> Plist {
    Town::endpoint(number, EntityId::KIND_READER_NO_KEY)
        .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
        .string(pid::TYPE_NAME, 2, b"T\0")
        .with(pid::UNICAST_LOCATOR, &locator_bytes(at))
}

/// Every address that the first participant's endpoints were told to send to.
fn destinations(town: &Town) -> Vec<Locator> {
    let told = town.domain.nodes[0].events.iter();
    let routes = told.filter_map(|event| match event {
        ParticipantEvent::Matched { route, .. }
        | ParticipantEvent::EndpointChanged { route, .. } => Some(route),
        _ => None,
    });
    routes.flat_map(|route| route.locators.to_vec()).collect()
}

/// CVE-2021-38425 once more, of endpoints: the participant is known and answers,
/// but its readers live at the victim's, who would get all that is published.
#[test]
fn an_endpoint_does_not_bring_its_data_to_a_victim() {
    let mut town = Town::open();
    for number in 1..50 {
        town.mule_tells(false, &reader_at(number, VICTIM).end());
        town.run_ms(50);
    }
    // The same one over and over, each time a little other.
    for port in 1..50 {
        let at = Locator {
            port: 8_000 + port,
            ..VICTIM
        };
        town.mule_tells(false, &reader_at(1, at).end());
        town.run_ms(50);
    }
    town.run_ms(5_000);
    assert_eq!(town.believed(), 49);
    let at_victim = |to: &&Locator| to.address == VICTIM.address;
    assert_eq!(destinations(&town).iter().find(at_victim), None);
    let sent = town.domain.sent.iter().filter(|(to, _)| at_victim(to));
    let sent: usize = sent.map(|(_, (_, bytes))| *bytes).sum();
    assert!(
        (1..=3 * town.received).contains(&sent),
        "{sent} for {}",
        town.received
    );
    town.close();
}

/// The same of the addresses that a participant names for all its endpoints: it
/// comes from where it says, and answers there, but would be served elsewhere.
#[test]
fn a_newcomer_does_not_bring_its_data_to_a_victim() {
    let mut town = Town::open();
    let who = Town::newcomer(1);
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
    town.hit(ATTACKER, &Town::announce(who, &list.end()));
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
    town.hit(ATTACKER, &answer);
    town.run_ms(2_000);
    let matched = town.domain.matches(0);
    assert!(matched.iter().any(|(_, remote)| *remote == reader));
    assert!(!destinations(&town).contains(&VICTIM));
    // It was met, so it is told what every participant is; the victim is not.
    let sent = town.sent_to(VICTIM);
    assert!(sent <= 3 * town.received, "{sent} for {}", town.received);
    let met = town.domain.sent.remove(&ATTACKER);
    assert!(met.is_some());
    town.domain.deliver(0, Some(ATTACKER), &goodbye(who).0);
    town.close();
}

fn goodbye(who: pteros_rtps::id::GuidPrefix) -> Packet {
    let key = who.with(EntityId::PARTICIPANT).to_bytes();
    let list = Plist::inline().with(pid::KEY_HASH, &key);
    let qos = list.with(pid::STATUS_INFO, &[0, 0, 0, 3]).end();
    Packet::from(who).data_with_qos(EntityId::SPDP_WRITER, 2, &qos, &[])
}

/// None: a host of two networks, whose endpoints listen on the other one. It is
/// asked there, and served there once it has answered.
#[test]
fn a_second_network_is_used_once_it_has_answered() {
    let mut town = Town::open();
    let second = Locator::udp_v4([10, 0, 7, 3], 7_411);
    town.mule_tells(false, &reader_at(1, second).end());
    town.run_ms(200);
    assert!(!destinations(&town).contains(&second));
    assert!(town.sent_to(second) > 0, "nobody asked there");
    // Somebody else's answer from there is none.
    let asked = EntityId::SEDP_PUBLICATIONS_WRITER;
    let answer = |who| Packet::from(who).to(prefix(0, 0)).heartbeat(asked, 1, 0, 9);
    let other = Packet::from(prefix(1, 0)).heartbeat(asked, 1, 0, 9);
    town.domain.deliver(0, Some(second), &other.0);
    town.domain.flush(0);
    assert!(!destinations(&town).contains(&second));
    let packet = answer(prefix(MULE, 0));
    town.domain.deliver(
        0,
        Some(Locator {
            port: 40_000,
            ..second
        }),
        &packet.0,
    );
    town.domain.flush(0);
    assert!(destinations(&town).contains(&second));
    let before = town.sent_to(second);
    town.run_ms(5_000);
    assert_eq!(town.sent_to(second), before, "asked though it has answered");
    // Further endpoints there need not be asked.
    town.domain.nodes[0]
        .events
        .retain(|event| !matches!(event, ParticipantEvent::EndpointChanged { .. }));
    town.mule_tells(false, &reader_at(2, second).end());
    assert!(destinations(&town).contains(&second));
    assert_eq!(town.sent_to(second), before);
    town.close();
}
