//! One host fills the tables of participants and endpoints: newcomers get in, the
//! filler keeps a share, and the owner is told who it is.

use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::locator::{IpAddress, Locator};
use pteros_rtps::participant::{ParticipantEvent, Table};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::pid;

use pteros_test_support::rtps::discovery_harness::{announce, announcement, new_participant};
use pteros_test_support::rtps::domain::{Domain, address, config, prefix};
use pteros_test_support::rtps::packet::{Packet, Plist};

/// A participant with an endpoint, alone in its domain.
fn victim() -> Domain {
    victim_on_link_of(24)
}

/// The same with a network of `prefix_length` bits, whose addresses are on the link.
fn victim_on_link_of(prefix_length: u8) -> Domain {
    let mut domain = Domain::new(1);
    let mut config = config(0, 0);
    for own in &mut config.network.addresses {
        own.prefix_length = prefix_length;
    }
    domain.join(config);
    domain.add_writer(0, "rt/chatter", EndpointQos::default());
    domain.run_for(Duration::from_secs(2));
    domain
}

fn attacker(number: u32) -> Locator {
    Locator::udp_v4([10, 0, 0, 100 + (number % 18) as u8], 7410)
}

fn deliver(domain: &mut Domain, from: Locator, packet: &Packet) {
    domain.deliver(0, Some(from), &packet.0);
    domain.flush(0);
}

/// An answer to a probe, in the name of a fake participant.
fn answer(fake: GuidPrefix, base: i64, count: u32) -> Packet {
    let pair = (
        EntityId::SEDP_PUBLICATIONS_READER,
        EntityId::SEDP_PUBLICATIONS_WRITER,
    );
    Packet::from(fake)
        .to(prefix(0, 0))
        .acknack(pair, base, 0, &[], count)
}

/// A fake participant with a lease of 1 000 s that announces itself and answers.
fn join_fake(domain: &mut Domain, number: u32, from: Locator) -> GuidPrefix {
    let fake = new_participant(number);
    let payload = announcement(fake, from)
        .with(
            pid::PARTICIPANT_LEASE_DURATION,
            &[0xe8, 3, 0, 0, 0, 0, 0, 0],
        )
        .end();
    deliver(domain, from, &announce(fake, &payload));
    deliver(domain, from, &answer(fake, 1, 1));
    fake
}

fn knows(domain: &Domain, whom: GuidPrefix) -> bool {
    let mut known = domain.nodes[0].machine.participants();
    known.any(|peer| peer.prefix == whom)
}

fn full_events(domain: &Domain, of: Table) -> Vec<Option<IpAddress>> {
    let events = domain.nodes[0].events.iter();
    let full = events.filter_map(|event| match event {
        ParticipantEvent::TableFull { table, holder, .. } if *table == of => Some(holder.address),
        _ => None,
    });
    full.collect()
}

/// 600 participants of 18 addresses that answer once and are never useful.
#[test]
fn fake_participants_do_not_keep_newcomers_out() {
    let mut domain = victim();
    for number in 0..600 {
        join_fake(&mut domain, number, attacker(number));
    }
    assert_eq!(domain.nodes[0].machine.participants().count(), 512);
    let late = domain.join(config(1, 0));
    domain.run_for(Duration::from_millis(500));
    assert!(knows(&domain, prefix(1, 0)), "another host");
    assert_eq!(domain.nodes[late].machine.participants().count(), 1);
    let told = full_events(&domain, Table::Participants);
    assert_eq!(told.len(), 1, "told once");
    assert!(told[0].is_some(), "who it is");
    // Their announced lease of 1 000 s is not granted.
    domain.run_for(Duration::from_secs(25));
    assert_eq!(domain.nodes[0].machine.participants().count(), 1);
}

#[test]
fn participants_of_this_host_get_in_though_every_other_is_useful() {
    let mut domain = victim_on_link_of(16);
    for number in 0..600 {
        let from = Locator::udp_v4(
            [10, 0, (1 + number / 200) as u8, (number % 200) as u8],
            7410,
        );
        let fake = join_fake(&mut domain, number, from);
        // It acknowledges the endpoint.
        deliver(&mut domain, from, &answer(fake, 2, 2));
    }
    assert_eq!(domain.nodes[0].machine.participants().count(), 512);
    // A useful one from an address with one participant is not displaced by others,
    let refused = Locator::udp_v4([10, 0, 9, 9], 7410);
    assert!(!{
        let fake = join_fake(&mut domain, 9_000, refused);
        knows(&domain, fake)
    });
    // but by one of this host.
    let here = Locator::udp_v4([10, 0, 0, 1], 7420);
    let local = join_fake(&mut domain, 9_001, here);
    assert!(knows(&domain, local));
}

#[test]
fn a_static_peer_gets_in_though_the_table_is_full() {
    let mut domain = Domain::new(1);
    let mut own = config(0, 0);
    own.announce_to.push(address(1));
    domain.join(own);
    domain.add_writer(0, "rt/chatter", EndpointQos::default());
    for number in 0..600 {
        let from = Locator::udp_v4(
            [10, 0, (1 + number / 200) as u8, (number % 200) as u8],
            7410,
        );
        let fake = join_fake(&mut domain, number, from);
        deliver(&mut domain, from, &answer(fake, 2, 2));
    }
    domain.join(config(1, 0));
    domain.run_for(Duration::from_secs(2));
    assert!(knows(&domain, prefix(1, 0)));
}

/// Eight participants of one host with 1 024 endpoints each.
#[test]
fn endpoints_of_one_host_do_not_keep_those_of_others_out() {
    let mut domain = victim();
    let from = attacker(0);
    for participant in 0..8 {
        let fake = join_fake(&mut domain, participant, from);
        deliver(&mut domain, from, &answer(fake, 2, 2));
        let heartbeat = Packet::from(fake).to(prefix(0, 0)).heartbeat(
            EntityId::SEDP_PUBLICATIONS_WRITER,
            1,
            1_024,
            1,
        );
        deliver(&mut domain, from, &heartbeat);
        for number in 1..=1_024_u32 {
            let key = number.to_be_bytes();
            let entity = EntityId::new([key[1], key[2], key[3]], EntityId::KIND_WRITER_NO_KEY);
            let list = Plist::payload()
                .with(pid::ENDPOINT_GUID, &fake.with(entity).to_bytes())
                .string(pid::TOPIC_NAME, 8, b"rt/fill\0")
                .string(pid::TYPE_NAME, 2, b"T\0");
            let packet = Packet::from(fake).to(prefix(0, 0)).data(
                EntityId::SEDP_PUBLICATIONS_WRITER,
                i64::from(number),
                &list.end(),
            );
            deliver(&mut domain, from, &packet);
        }
    }
    assert_eq!(domain.nodes[0].machine.endpoints().remotes().count(), 8_192);
    let late = domain.join(config(1, 0));
    let reader = domain.add_reader(late, "rt/chatter", EndpointQos::default());
    domain.run_for(Duration::from_secs(1));
    assert!(
        domain
            .matches(0)
            .iter()
            .any(|(_, remote)| *remote == reader)
    );
    assert_eq!(
        full_events(&domain, Table::Endpoints),
        [Some([10, 0, 0, 100].into())]
    );
    assert!(domain.nodes[0].machine.endpoints().remotes().count() <= 8_192);
}
