//! Participant announcements: reflection at third parties, table exhaustion, false
//! identities.

use std::time::Duration as WallTime;

use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::pid;

use pteros_test_support::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, IMPERSONATED, VICTIM, announce, announcement, locator_bytes,
    new_participant,
};
use pteros_test_support::rtps::domain::{GROUP, address, prefix};
use pteros_test_support::rtps::meter::Meter;
use pteros_test_support::rtps::packet::{Packet, Plist};

fn bare(prefix: GuidPrefix) -> Plist {
    Plist::payload()
        .with(pid::PROTOCOL_VERSION, &[2, 3, 0, 0])
        .with(pid::VENDOR_ID, &[1, 15, 0, 0])
        .with(
            pid::PARTICIPANT_GUID,
            &prefix.with(EntityId::PARTICIPANT).to_bytes(),
        )
}

/// CVE-2021-38425 (Fast DDS): one announcement with a victim's locator, and the
/// victim was shot at from then on.
#[test]
fn one_announcement_with_a_victims_address_sends_it_at_most_three_times_its_bytes() {
    let mut harness = DiscoveryHarness::new();
    let who = new_participant(1);
    let packet = announce(who, &announcement(who, VICTIM).end());
    harness.attack(ATTACKER, &packet);
    harness.run_ms(60_000);
    assert!(harness.sent_to(VICTIM) <= 2 * 3 * packet.0.len());
}

/// CVE-2021-38429 (OpenDDS): the same, repeated under one name, so that each
/// small renewal brings a full answer.
#[test]
fn repeated_announcements_send_a_victim_no_more_than_they_cost() {
    let mut harness = DiscoveryHarness::new();
    let who = new_participant(1);
    let packet = announce(who, &announcement(who, VICTIM).end());
    for _ in 0..200 {
        harness.attack(ATTACKER, &packet);
        harness.run_ms(50);
    }
    let sent = harness.sent_to(VICTIM);
    assert!(sent <= harness.received, "{sent} for {}", harness.received);
}

/// CVE-2021-38487 (RTI): the same with ever new GUIDs, each of which became a peer
/// that got all data.
#[test]
fn ever_new_guids_send_a_victim_no_more_than_they_cost() {
    let mut harness = DiscoveryHarness::new();
    for number in 0..2_000 {
        let who = new_participant(number);
        let packet = announce(who, &announcement(who, VICTIM).end());
        harness.attack(ATTACKER, &packet);
        harness.run_ms(1);
    }
    let sent = harness.sent_to(VICTIM);
    assert!(
        sent <= 3 * harness.received,
        "{sent} for {}",
        harness.received
    );
    harness.memory_bytes_max = 4 << 20;
}

/// CVE-2021-43547 (CoreDX, the same reflection): a multicast group as a unicast
/// locator multiplies each answer by its members.
#[test]
fn a_multicast_address_is_no_unicast_locator() {
    let mut harness = DiscoveryHarness::new();
    for (number, group) in (0..).zip([
        GROUP,
        Locator::udp_v4([224, 0, 0, 1], 7400),
        Locator::udp_v4([255, 255, 255, 255], 7400),
        Locator::udp_v4([10, 0, 0, 255], 7400),
        Locator::udp_v4([0, 0, 0, 0], 7400),
    ]) {
        let who = new_participant(number);
        let packet = announce(who, &announcement(who, group).end());
        harness.attack(ATTACKER, &packet);
    }
    let before = harness.sent_to(GROUP);
    harness.run_ms(2_000);
    // Only the periodic announcements of the two.
    assert!(harness.sent_to(GROUP) - before <= 2 * 600);
    let nobody = |to: &&Locator| **to != GROUP && (to.address[15] == 255 || !to.is_unicast());
    assert_eq!(harness.domain.sent.keys().find(nobody), None);
}

/// Fast DDS #2267 and #5380: the fix of CVE-2021-38425 looked at the first
/// announcement only. A participant that is known moves to a victim's address,
/// in words that come from elsewhere.
#[test]
fn a_known_participant_is_not_moved_to_a_victim() {
    let mut harness = DiscoveryHarness::new();
    let impersonated = prefix(IMPERSONATED, 0);
    for number in 1..100 {
        let list =
            announcement(impersonated, VICTIM).with(pid::USER_DATA, &[4, 0, 0, 0, number, 0, 0, 0]);
        harness.attack(ATTACKER, &announce(impersonated, &list.end()));
        harness.run_ms(20);
    }
    assert_eq!(harness.sent_to(VICTIM), 0);
    assert!(harness.stats().impersonation >= 99);
}

/// CVE-2021-38425's fix, with a forged source address (Fast DDS #5380): the
/// announcement seems to come from the victim itself. The victim is probed within
/// the amplification limit. It never answers, so the participant keeps its address.
#[test]
fn a_forged_source_address_moves_no_participant() {
    let mut harness = DiscoveryHarness::new();
    let known = prefix(1, 0);
    let mut moves = 0;
    for number in 1..200 {
        let list = announcement(known, VICTIM).with(pid::USER_DATA, &[4, 0, 0, 0, number, 0, 0, 0]);
        let packet = announce(known, &list.end());
        harness.received += packet.0.len();
        harness.domain.deliver(0, Some(VICTIM), &packet.0);
        harness.domain.flush(0);
        harness.run_ms(20);
        let announced = harness.domain.nodes[0].events.iter();
        moves = announced
            .filter(|e| matches!(e, ParticipantEvent::ParticipantChanged(_)))
            .count();
    }
    assert_eq!(moves, 0);
    let sent = harness.sent_to(VICTIM);
    assert!(
        sent <= 3 * harness.received,
        "{sent} for {}",
        harness.received
    );
    let known = harness.domain.nodes[0].machine.participants();
    let at = known.map(|p| p.metatraffic_unicast[0]);
    assert!(at.eq([address(1), address(2)]));
    harness.run_ms(6_000);
    assert_eq!(harness.domain.nodes[0].machine.unvalidated_count(), 0);
}

/// CVE-2026-45092 (Fast DDS): every name ever announced stayed in a list. Ours
/// holds 64 that have not proved to exist, for five seconds.
#[test]
fn participants_that_never_answer_are_dropped() {
    let mut harness = DiscoveryHarness::new();
    for number in 0..20_000 {
        let who = new_participant(number);
        let from = Locator::udp_v4([10, 0, (number >> 8) as u8, number as u8], 7410);
        let packet = announce(who, &announcement(who, from).end());
        harness.received += packet.0.len();
        harness.domain.deliver(0, Some(from), &packet.0);
        assert!(harness.domain.nodes[0].machine.unvalidated_count() <= 64);
    }
    harness.domain.flush(0);
    harness.run_ms(6_000);
    assert_eq!(harness.domain.nodes[0].machine.unvalidated_count(), 0);
}

/// The flood behind CVE-2026-45092 and ICSA-21-315-02: a hundred thousand GUIDs in
/// ten seconds, each from an address of its own, one in ten from that of a
/// discovered participant. The table keeps its limit, no living participant is
/// dropped, and the last GUID costs as much as the first one.
#[test]
fn a_hundred_thousand_guids_displace_no_peer() {
    let mut harness = DiscoveryHarness::new();
    let mut fastest = Vec::new();
    for number in 0..100_000_u32 {
        if number % 1_000 == 0 {
            fastest.push(WallTime::MAX);
        }
        let [_, b, c, d] = number.to_be_bytes();
        let from = Locator::udp_v4([10, 1 + b, c, d], 7410);
        let who = match number % 10 {
            0 => prefix((number / 10 % 2) as usize, 0),
            _ => new_participant(number),
        };
        let at = if number % 10 == 0 { VICTIM } else { from };
        let packet = announce(who, &announcement(who, at).end());
        harness.received += packet.0.len();
        let began = Meter::start();
        harness.domain.deliver(0, Some(from), &packet.0);
        let slice = fastest.last_mut().expect("one was pushed");
        *slice = (*slice).min(began.took());
        let machine = &harness.domain.nodes[0].machine;
        assert!(machine.unvalidated_count() <= 64);
        assert!(machine.participants().count() <= 3);
        if number % 100 == 99 {
            harness.domain.flush(0);
            harness.run_ms(10);
        }
    }
    let (early, late) = (fastest[1], fastest[99]);
    let bound = early * 20 + WallTime::from_micros(50);
    assert!(late <= bound, "{late:?} for a packet, {early:?} at first");
    let sent: usize = harness
        .domain
        .sent
        .iter()
        .map(|(to, (_, bytes))| {
            let known = [address(0), address(1), address(2), GROUP].contains(to);
            if known { 0 } else { *bytes }
        })
        .sum();
    assert!(
        sent <= 3 * harness.received,
        "{sent} for {}",
        harness.received
    );
    harness.memory_bytes_max = 32 << 20;
}

/// cyclonedds #1772: a locator with port 0, in the second announcement of a
/// participant that is known, made every later send fail.
#[test]
fn a_locator_with_port_zero_is_not_used() {
    let mut harness = DiscoveryHarness::new();
    let zero = Locator {
        port: 0,
        ..address(IMPERSONATED)
    };
    let impersonated = prefix(IMPERSONATED, 0);
    let list = announcement(impersonated, zero);
    harness.attack(address(IMPERSONATED), &announce(impersonated, &list.end()));
    for (number, port) in (0..).zip([0, 65_536, u32::MAX]) {
        let who = new_participant(number);
        let list = announcement(who, Locator { port, ..ATTACKER });
        harness.attack(ATTACKER, &announce(who, &list.end()));
    }
    harness.run_ms(1_000);
    let impossible = |to: &&Locator| to.port == 0 || to.port > 65_535;
    assert_eq!(harness.domain.sent.keys().find(impossible), None);
}

/// CVE-2024-30258 (Fast DDS): a malformed announcement led to a thread that could
/// not be created. Here locators of unknown kinds are ignored.
#[test]
fn locators_of_unknown_kinds_are_ignored() {
    let mut harness = DiscoveryHarness::new();
    for (number, kind) in (0..).zip([-1, 0, 2, 4, 8, 16, 0x0100_0000, i32::MAX, i32::MIN]) {
        let who = new_participant(number);
        let list = announcement(who, Locator { kind, ..ATTACKER });
        harness.attack(ATTACKER, &announce(who, &list.end()));
    }
    harness.run_ms(2_000);
    assert!(harness.sent_to(VICTIM) == 0);
    assert!(harness.stats().unreachable > 0);
}

/// cyclonedds #1758: an announcement without a lease duration met an assertion
/// that there is one. Announcements that lack each of their parts.
#[test]
fn announcements_may_lack_any_parameter() {
    let mut harness = DiscoveryHarness::new();
    let who = new_participant(1);
    let lists = [
        Plist::payload(),
        bare(who),
        Plist::payload().with(pid::METATRAFFIC_UNICAST_LOCATOR, &locator_bytes(ATTACKER)),
        Plist::payload().with(pid::PARTICIPANT_GUID, &[0; 16]),
        Plist::payload().with(pid::PARTICIPANT_GUID, &[0xff; 16]),
        bare(who).with(
            pid::PARTICIPANT_GUID,
            &new_participant(2).with(EntityId::PARTICIPANT).to_bytes(),
        ),
    ];
    for list in lists {
        harness.attack(ATTACKER, &announce(who, &list.clone().end()));
        harness.attack(ATTACKER, &announce(who, &list.unended()));
    }
    harness.attack(ATTACKER, &announce(who, &[]));
    harness.attack(ATTACKER, &announce(who, &[0, 3]));
    harness.attack(ATTACKER, &announce(who, &[0xff, 0xff, 0, 0]));
}

/// CVE-2023-50257 (9.7): anybody's word that a participant is gone ended its
/// connections. Without security, it must at least come from its address.
#[test]
fn a_dispose_from_another_address_is_ignored() {
    let mut harness = DiscoveryHarness::new();
    for node in 0..2 {
        let guid = prefix(node, 0).with(EntityId::PARTICIPANT);
        let gone = Plist::inline()
            .with(pid::KEY_HASH, &guid.to_bytes())
            .with(pid::STATUS_INFO, &[0, 0, 0, 3])
            .end();
        for (attacker, from) in [
            (prefix(node, 0), ATTACKER),
            (prefix(IMPERSONATED, 0), address(IMPERSONATED)),
        ] {
            let packet = Packet::from(attacker).data_with_qos(EntityId::SPDP_WRITER, 9, &gone, &[]);
            harness.attack(from, &packet);
        }
    }
    harness.run_ms(1_000);
}

/// Fast DDS #5004: peers that start again and again, under ever new names at
/// one address, left something of each behind.
#[test]
fn a_peer_that_restarts_for_ever_leaves_no_state() {
    let mut harness = DiscoveryHarness::new();
    let before = harness.domain.nodes[0].machine.participants().count();
    for generation in 1..120_u8 {
        let mut config = pteros_test_support::rtps::domain::config(9, generation);
        config.lease = Duration::from_secs(2);
        let node = harness.domain.join(config);
        harness
            .domain
            .add_writer(node, "rt/restarting", Default::default());
        harness.run_ms(200);
        harness.domain.nodes[node].dead = true;
    }
    harness.run_ms(25_000);
    let machine = &harness.domain.nodes[0].machine;
    // The lease of the impersonated participant has expired, too.
    assert!(machine.participants().count() <= before);
    assert_eq!(
        machine
            .endpoints()
            .remotes()
            .filter(|e| e.topic() == "rt/restarting")
            .count(),
        0
    );
    // The peers themselves live in the same memory.
    harness.memory_bytes_max = 256 << 20;
}

/// The first step of ICSA-21-315-02: a port scan. Any packet that is no
/// announcement gets no answer.
#[test]
fn a_port_scan_gets_no_answer() {
    let mut harness = DiscoveryHarness::new();
    harness.run_ms(3_100);
    harness.domain.sent.clear();
    let unmatched_sender = Packet::from(new_participant(7));
    for to in [prefix(0, 0), prefix(1, 0), GuidPrefix::UNKNOWN] {
        for writer in [
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SPDP_WRITER,
            EntityId::WLP_WRITER,
        ] {
            harness.attack(
                ATTACKER,
                &unmatched_sender.clone().to(to).heartbeat(writer, 1, 10, 1),
            );
            let reader = EntityId::SEDP_PUBLICATIONS_READER;
            harness.attack(
                ATTACKER,
                &unmatched_sender
                    .clone()
                    .to(to)
                    .acknack((reader, writer), 1, 32, &[u32::MAX], 1),
            );
        }
    }
    harness.run_ms(100);
    assert_eq!(harness.sent_to(ATTACKER), 0);
    let elsewhere = harness.domain.sent.keys().filter(|to| **to != GROUP);
    let known: Vec<_> = elsewhere
        .filter(|to| ![address(0), address(1), address(2)].contains(to))
        .collect();
    assert!(known.is_empty(), "{known:?}");
}
