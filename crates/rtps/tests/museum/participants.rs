//! Announcements of participants: reflection at third parties, tables without
//! end, and lies about who one is.

use std::time::Duration as WallTime;

use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::pid;

use crate::domain::{GROUP, address, prefix};
use crate::meter::Meter;
use crate::packet::{Packet, Plist};
use crate::town::{ATTACKER, MULE, Town, VICTIM, locator_bytes};

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
fn one_announcement_at_a_victim_brings_it_at_most_three_times_its_bytes() {
    let mut town = Town::open();
    let who = Town::newcomer(1);
    let packet = Town::announce(who, &Town::announcement(who, VICTIM).end());
    town.hit(ATTACKER, &packet);
    town.run_ms(60_000);
    assert!(town.sent_to(VICTIM) <= 2 * 3 * packet.0.len());
    town.close();
}

/// CVE-2021-38429 (OpenDDS): the same, repeated under one name, so that each
/// small renewal brings a full answer.
#[test]
fn renewals_bring_a_victim_no_more_than_they_cost() {
    let mut town = Town::open();
    let who = Town::newcomer(1);
    let packet = Town::announce(who, &Town::announcement(who, VICTIM).end());
    for _ in 0..200 {
        town.hit(ATTACKER, &packet);
        town.run_ms(50);
    }
    let sent = town.sent_to(VICTIM);
    assert!(sent <= town.received, "{sent} for {}", town.received);
    town.close();
}

/// CVE-2021-38487 (RTI): the same under ever new names, each of which was a
/// peer to be told everything.
#[test]
fn ever_new_names_bring_a_victim_no_more_than_they_cost() {
    let mut town = Town::open();
    for number in 0..2_000 {
        let who = Town::newcomer(number);
        let packet = Town::announce(who, &Town::announcement(who, VICTIM).end());
        town.hit(ATTACKER, &packet);
        town.run_ms(1);
    }
    let sent = town.sent_to(VICTIM);
    assert!(sent <= 3 * town.received, "{sent} for {}", town.received);
    town.memory_bytes_max = 4 << 20;
    town.close();
}

/// CVE-2021-43547 (CoreDX, the same reflection): a group as somebody's unicast address multiplies
/// each answer by all who listen.
#[test]
fn nobody_lives_at_a_multicast_address() {
    let mut town = Town::open();
    for (number, group) in (0..).zip([
        GROUP,
        Locator::udp_v4([224, 0, 0, 1], 7400),
        Locator::udp_v4([255, 255, 255, 255], 7400),
        Locator::udp_v4([10, 0, 0, 255], 7400),
        Locator::udp_v4([0, 0, 0, 0], 7400),
    ]) {
        let who = Town::newcomer(number);
        let packet = Town::announce(who, &Town::announcement(who, group).end());
        town.hit(ATTACKER, &packet);
    }
    let before = town.sent_to(GROUP);
    town.run_ms(2_000);
    // Only the periodic announcements of the two.
    assert!(town.sent_to(GROUP) - before <= 2 * 600);
    let nobody = |to: &&Locator| **to != GROUP && (to.address[15] == 255 || !to.is_unicast());
    assert_eq!(town.domain.sent.keys().find(nobody), None);
    town.close();
}

/// Fast DDS #2267 and #5380: the fix of CVE-2021-38425 looked at the first
/// announcement only. A participant that is known moves to a victim's address,
/// in words that come from elsewhere.
#[test]
fn a_known_participant_is_not_moved_to_a_victim() {
    let mut town = Town::open();
    let mule = prefix(MULE, 0);
    for number in 1..100 {
        let list =
            Town::announcement(mule, VICTIM).with(pid::USER_DATA, &[4, 0, 0, 0, number, 0, 0, 0]);
        town.hit(ATTACKER, &Town::announce(mule, &list.end()));
        town.run_ms(20);
    }
    assert_eq!(town.sent_to(VICTIM), 0);
    assert!(town.stats().impersonation >= 99);
    town.close();
}

/// CVE-2021-38425's fix, with a forged source address (Fast DDS #5380): the announcement comes, as far as
/// anybody can tell, from the victim itself. It is asked, within its three
/// times, and since it never answers the participant stays where it is.
#[test]
fn a_forged_source_address_moves_nobody() {
    let mut town = Town::open();
    let known = prefix(1, 0);
    let mut moves = 0;
    for number in 1..200 {
        let list =
            Town::announcement(known, VICTIM).with(pid::USER_DATA, &[4, 0, 0, 0, number, 0, 0, 0]);
        let packet = Town::announce(known, &list.end());
        town.received += packet.0.len();
        town.domain.deliver(0, Some(VICTIM), &packet.0);
        town.domain.flush(0);
        town.run_ms(20);
        let told = town.domain.nodes[0].events.iter();
        moves = told
            .filter(|e| matches!(e, ParticipantEvent::ParticipantChanged(_)))
            .count();
    }
    assert_eq!(moves, 0);
    let sent = town.sent_to(VICTIM);
    assert!(sent <= 3 * town.received, "{sent} for {}", town.received);
    let known = town.domain.nodes[0].machine.participants();
    let at = known.map(|p| p.metatraffic_unicast[0]);
    assert!(at.eq([address(1), address(2)]));
    town.run_ms(6_000);
    assert_eq!(town.domain.nodes[0].machine.candidate_count(), 0);
    town.close();
}

/// CVE-2026-45092 (Fast DDS): every name ever announced stayed in a list. Ours
/// holds 64 that have not proved to exist, for five seconds.
#[test]
fn names_that_never_answer_are_forgotten() {
    let mut town = Town::open();
    for number in 0..20_000 {
        let who = Town::newcomer(number);
        let from = Locator::udp_v4([10, 0, (number >> 8) as u8, number as u8], 7410);
        let packet = Town::announce(who, &Town::announcement(who, from).end());
        town.received += packet.0.len();
        town.domain.deliver(0, Some(from), &packet.0);
        assert!(town.domain.nodes[0].machine.candidate_count() <= 64);
    }
    town.domain.flush(0);
    town.run_ms(6_000);
    assert_eq!(town.domain.nodes[0].machine.candidate_count(), 0);
    town.close();
}

/// The flood behind CVE-2026-45092 and ICSA-21-315-02: a hundred thousand names
/// in ten seconds, each from an address of its own, one in ten that of somebody who is
/// known. The table has its limit, who lives is never given up, and the last
/// name costs what the first one did.
#[test]
fn a_hundred_thousand_names_push_nobody_out() {
    let mut town = Town::open();
    let mut fastest = Vec::new();
    for number in 0..100_000_u32 {
        if number % 1_000 == 0 {
            fastest.push(WallTime::MAX);
        }
        let [_, b, c, d] = number.to_be_bytes();
        let from = Locator::udp_v4([10, 1 + b, c, d], 7410);
        let who = match number % 10 {
            0 => prefix((number / 10 % 2) as usize, 0),
            _ => Town::newcomer(number),
        };
        let at = if number % 10 == 0 { VICTIM } else { from };
        let packet = Town::announce(who, &Town::announcement(who, at).end());
        town.received += packet.0.len();
        let began = Meter::start();
        town.domain.deliver(0, Some(from), &packet.0);
        let slice = fastest.last_mut().expect("one was pushed");
        *slice = (*slice).min(began.took());
        let machine = &town.domain.nodes[0].machine;
        assert!(machine.candidate_count() <= 64);
        assert!(machine.participants().count() <= 3);
        if number % 100 == 99 {
            town.domain.flush(0);
            town.run_ms(10);
        }
    }
    let (early, late) = (fastest[1], fastest[99]);
    let bound = early * 20 + WallTime::from_micros(50);
    assert!(late <= bound, "{late:?} for a packet, {early:?} at first");
    let sent: usize = town
        .domain
        .sent
        .iter()
        .map(|(to, (_, bytes))| {
            let known = [address(0), address(1), address(2), GROUP].contains(to);
            if known { 0 } else { *bytes }
        })
        .sum();
    assert!(sent <= 3 * town.received, "{sent} for {}", town.received);
    town.memory_bytes_max = 32 << 20;
    town.close();
}

/// cyclonedds #1772: a locator with port 0, in the second announcement of a
/// participant that is known, made every later send fail.
#[test]
fn a_locator_with_port_zero_is_not_used() {
    let mut town = Town::open();
    let zero = Locator {
        port: 0,
        ..address(MULE)
    };
    let mule = prefix(MULE, 0);
    let list = Town::announcement(mule, zero);
    town.hit(address(MULE), &Town::announce(mule, &list.end()));
    for (number, port) in (0..).zip([0, 65_536, u32::MAX]) {
        let who = Town::newcomer(number);
        let list = Town::announcement(who, Locator { port, ..ATTACKER });
        town.hit(ATTACKER, &Town::announce(who, &list.end()));
    }
    town.run_ms(1_000);
    let impossible = |to: &&Locator| to.port == 0 || to.port > 65_535;
    assert_eq!(town.domain.sent.keys().find(impossible), None);
    town.close();
}

/// CVE-2024-30258 (Fast DDS): a malformed announcement led to a thread that
/// could not be created. Locators of kinds nobody knows open nothing here.
#[test]
fn locators_of_unknown_kinds_open_nothing() {
    let mut town = Town::open();
    for (number, kind) in (0..).zip([-1, 0, 2, 4, 8, 16, 0x0100_0000, i32::MAX, i32::MIN]) {
        let who = Town::newcomer(number);
        let list = Town::announcement(who, Locator { kind, ..ATTACKER });
        town.hit(ATTACKER, &Town::announce(who, &list.end()));
    }
    town.run_ms(2_000);
    assert!(town.sent_to(VICTIM) == 0);
    assert!(town.stats().unreachable > 0);
    town.close();
}

/// cyclonedds #1758: an announcement without a lease duration met an assertion
/// that there is one. Announcements that lack each of their parts.
#[test]
fn announcements_may_lack_anything() {
    let mut town = Town::open();
    let who = Town::newcomer(1);
    let lists = [
        Plist::payload(),
        bare(who),
        Plist::payload().with(pid::METATRAFFIC_UNICAST_LOCATOR, &locator_bytes(ATTACKER)),
        Plist::payload().with(pid::PARTICIPANT_GUID, &[0; 16]),
        Plist::payload().with(pid::PARTICIPANT_GUID, &[0xff; 16]),
        bare(who).with(
            pid::PARTICIPANT_GUID,
            &Town::newcomer(2).with(EntityId::PARTICIPANT).to_bytes(),
        ),
    ];
    for list in lists {
        town.hit(ATTACKER, &Town::announce(who, &list.clone().end()));
        town.hit(ATTACKER, &Town::announce(who, &list.unended()));
    }
    town.hit(ATTACKER, &Town::announce(who, &[]));
    town.hit(ATTACKER, &Town::announce(who, &[0, 3]));
    town.hit(ATTACKER, &Town::announce(who, &[0xff, 0xff, 0, 0]));
    town.close();
}

/// CVE-2023-50257 (9.7): anybody's word that a participant is gone ended its
/// connections. Without security, it must at least come from its address.
#[test]
fn a_goodbye_from_elsewhere_is_not_believed() {
    let mut town = Town::open();
    for node in 0..2 {
        let guid = prefix(node, 0).with(EntityId::PARTICIPANT);
        let gone = Plist::inline()
            .with(pid::KEY_HASH, &guid.to_bytes())
            .with(pid::STATUS_INFO, &[0, 0, 0, 3])
            .end();
        for (speaker, from) in [
            (prefix(node, 0), ATTACKER),
            (prefix(MULE, 0), address(MULE)),
        ] {
            let packet = Packet::from(speaker).data_with_qos(EntityId::SPDP_WRITER, 9, &gone, &[]);
            town.hit(from, &packet);
        }
    }
    town.run_ms(1_000);
    town.close();
}

/// Fast DDS #5004: peers that start again and again, under ever new names at
/// one address, left something of each behind.
#[test]
fn a_peer_that_restarts_for_ever_leaves_nothing_behind() {
    let mut town = Town::open();
    let before = town.domain.nodes[0].machine.participants().count();
    for generation in 1..120_u8 {
        let mut config = crate::domain::config(9, generation);
        config.lease = Duration::from_secs(2);
        let node = town.domain.join(config);
        town.domain
            .add_writer(node, "rt/restarting", Default::default());
        town.run_ms(200);
        town.domain.nodes[node].dead = true;
    }
    town.run_ms(25_000);
    let machine = &town.domain.nodes[0].machine;
    // The mule's lease has ended too.
    assert!(machine.participants().count() <= before);
    assert_eq!(
        machine
            .endpoints()
            .filter(|e| e.topic() == "rt/restarting")
            .count(),
        0
    );
    // The peers themselves live in the same memory.
    town.memory_bytes_max = 256 << 20;
    town.close();
}

/// ICSA-21-315-02's first scene: a scan. Any packet from anywhere that is no
/// announcement gets no answer at all.
#[test]
fn a_scan_hears_nothing() {
    let mut town = Town::open();
    town.run_ms(3_100);
    town.domain.sent.clear();
    let stranger = Packet::from(Town::newcomer(7));
    for to in [prefix(0, 0), prefix(1, 0), GuidPrefix::UNKNOWN] {
        for writer in [
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SPDP_WRITER,
            EntityId::WLP_WRITER,
        ] {
            town.hit(
                ATTACKER,
                &stranger.clone().to(to).heartbeat(writer, 1, 10, 1),
            );
            let reader = EntityId::SEDP_PUBLICATIONS_READER;
            town.hit(
                ATTACKER,
                &stranger
                    .clone()
                    .to(to)
                    .acknack((reader, writer), 1, 32, &[u32::MAX], 1),
            );
        }
    }
    town.run_ms(100);
    assert_eq!(town.sent_to(ATTACKER), 0);
    let elsewhere = town.domain.sent.keys().filter(|to| **to != GROUP);
    let known: Vec<_> = elsewhere
        .filter(|to| ![address(0), address(1), address(2)].contains(to))
        .collect();
    assert!(known.is_empty(), "{known:?}");
    town.close();
}
