//! Same-host peers that exchange on-host announcements in place of SPDP, SEDP and
//! WLP: they match, notice changes and removals, and send no datagram.

use pteros_test_support::rtps::domain;
use pteros_test_support::rtps::packet::{Packet, Plist};

use domain::{Domain, GROUP, address, config, endpoint, prefix};
use pteros_rtps::discovery::data::ParticipantMessageData;
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::locator::{Locator, OwnAddress};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{
    Announcement, Announcements, LocalLinks, LostReason, Participant, ParticipantConfig,
    ParticipantEvent, RemoteEndpoint,
};
use pteros_rtps::qos::{EndpointQos, Liveliness};
use pteros_rtps::time::Duration;
use pteros_rtps::wire::pid;

/// A participant with on-host announcements, which sends no SPDP announcement.
fn with_announcements(index: usize) -> ParticipantConfig {
    ParticipantConfig {
        announces_on_host: true,
        announce_to: Vec::new(),
        metatraffic_multicast: Vec::new(),
        topics_not_announced_on_host: vec!["of_the_host".into()],
        ..config(index, 0)
    }
}

/// Same-host peers that have handled each other's announcements.
fn same_host_pair(count: usize) -> Domain {
    let mut domain = Domain::new(1);
    for index in 0..count {
        domain.join(with_announcements(index));
    }
    deliver_announcements(&mut domain);
    domain
}

/// Passes the announcements of each to all others, as the owner does.
fn deliver_announcements(domain: &mut Domain) {
    for from in 0..domain.nodes.len() {
        let Some(notices) = domain.nodes[from].machine.take_announcements() else {
            continue;
        };
        let (all, list) = match notices {
            Announcements::Full(list) => (true, list),
            Announcements::New(list) => (false, list),
        };
        for to in (0..domain.nodes.len()).filter(|to| *to != from) {
            announce(domain, from, to, &list);
            if all {
                let announced: Vec<Guid> = list.iter().filter_map(guid_of).collect();
                let machine = &mut domain.nodes[to].machine;
                machine.retain_endpoints(prefix(from, 0), &announced);
            }
            domain.flush(to);
        }
    }
}

fn announce(domain: &mut Domain, from: usize, to: usize, list: &[Announcement]) {
    let now = domain.now;
    let machine = &mut domain.nodes[to].machine;
    for notice in list {
        let posted = Announcement::parse(&notice.encode()).expect("our own");
        assert_eq!(&posted, notice);
        assert!(
            machine.handle_announcement(now, prefix(from, 0), &posted),
            "{notice:?}"
        );
    }
}

fn guid_of(notice: &Announcement) -> Option<Guid> {
    let Announcement::Endpoint(payload) = notice else {
        return None;
    };
    let data = pteros_rtps::discovery::data::EndpointData::parse(payload);
    Some(data.expect("our own").guid)
}

#[test]
fn same_host_peers_match_without_a_datagram() {
    let mut domain = same_host_pair(3);
    let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
    let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
    domain.add_writer(0, "of_the_host", EndpointQos::default());
    domain.add_reader(2, "of_the_host", EndpointQos::default());
    deliver_announcements(&mut domain);
    assert_eq!(domain.matches(0), [(writer, reader)]);
    assert_eq!(domain.matches(1), [(reader, writer)]);
    assert!(
        domain.matches(2).is_empty(),
        "a topic excluded from on-host announcements was announced"
    );
    assert_eq!(domain.nodes[2].machine.endpoints().remotes().count(), 2);
    domain.run_for(Duration::from_secs(10));
    assert_eq!(domain.datagrams, 0);
    domain.remove(0, writer);
    deliver_announcements(&mut domain);
    let gone = ParticipantEvent::EndpointLost(writer);
    assert!(domain.nodes[2].events.contains(&gone));
    let unmatched = ParticipantEvent::Unmatched {
        local: reader,
        remote: writer,
    };
    assert!(domain.nodes[1].events.contains(&unmatched));
}

#[test]
fn a_same_host_peer_lives_while_its_lease_is_renewed_and_its_process_runs() {
    let mut domain = same_host_pair(3);
    domain.run_for(Duration::from_secs(15));
    let now = domain.now;
    domain.nodes[0].machine.renew_lease(prefix(1, 0), now);
    domain.run_for(Duration::from_secs(15));
    let known: Vec<_> = {
        let participants = domain.nodes[0].machine.participants();
        participants.map(|data| data.prefix).collect()
    };
    assert_eq!(
        known,
        [prefix(1, 0)],
        "its lease of 20 s was renewed at 15 s"
    );
    let machine = &mut domain.nodes[0].machine;
    machine.remove_same_host_peer(prefix(1, 0), LostReason::Disposed);
    assert_eq!(machine.participants().count(), 0);
}

#[test]
fn liveliness_assertions_reach_same_host_peers_without_a_datagram() {
    let mut domain = same_host_pair(2);
    let manual = EndpointQos {
        liveliness: Liveliness::ManualByParticipant,
        lease_duration: Duration::from_millis(100),
        ..EndpointQos::default()
    };
    domain.add_writer(0, "rt/a", manual);
    let automatic = EndpointQos {
        lease_duration: Duration::from_millis(100),
        ..EndpointQos::default()
    };
    domain.add_writer(0, "rt/b", automatic);
    deliver_announcements(&mut domain);
    let now = domain.now;
    let kind = Liveliness::ManualByParticipant;
    domain.nodes[0].machine.assert_liveliness(now, kind);
    for _ in 0..10 {
        domain.run_for(Duration::from_millis(50));
        deliver_announcements(&mut domain);
    }
    let asserted = |kind: Liveliness| {
        let announced = ParticipantEvent::LivelinessAsserted {
            prefix: prefix(0, 0),
            kind,
        };
        let events = &domain.nodes[1].events;
        events.iter().filter(|event| **event == announced).count()
    };
    assert_eq!(asserted(Liveliness::ManualByParticipant), 1);
    assert!((9..=11).contains(&asserted(Liveliness::Automatic)));
    assert_eq!(domain.datagrams, 0);
}

#[test]
fn a_late_or_restarted_reader_gets_all_announcements_and_drops_removed_endpoints() {
    let mut domain = same_host_pair(1);
    let first = domain.add_writer(0, "rt/a", EndpointQos::default());
    let second = domain.add_writer(0, "rt/b", EndpointQos::default());
    deliver_announcements(&mut domain);
    domain.join(with_announcements(1));
    let all = domain.nodes[0].machine.all_announcements();
    announce(&mut domain, 0, 1, &all);
    let known = |domain: &Domain| -> Vec<Guid> {
        let endpoints = domain.nodes[1].machine.endpoints().remotes();
        endpoints.map(RemoteEndpoint::guid).collect()
    };
    assert_eq!(known(&domain), [first, second]);
    domain.remove(0, first);
    let all = domain.nodes[0].machine.all_announcements();
    announce(&mut domain, 0, 1, &all);
    let machine = &mut domain.nodes[1].machine;
    machine.retain_endpoints(prefix(0, 0), &[second]);
    assert_eq!(known(&domain), [second]);
}

#[test]
fn an_overflow_of_new_announcements_becomes_a_full_set() {
    let mut domain = same_host_pair(2);
    let guid = domain.new_guid(0, EntityId::KIND_WRITER_NO_KEY);
    for round in 0..1025 {
        let mut data = endpoint(guid, "rt/a", "T", EndpointQos::default());
        data.qos.user_data = round.to_string().into_bytes();
        domain.write_endpoint(0, data);
    }
    let Some(Announcements::Full(all)) = domain.nodes[0].machine.take_announcements() else {
        panic!("1 025 changes are too many to keep");
    };
    assert_eq!(all.len(), 2, "itself and its one endpoint");
    assert_eq!(domain.nodes[0].machine.take_announcements(), None);
}

#[test]
fn announcements_are_accepted_for_their_author_only() {
    let mut domain = same_host_pair(3);
    let now = domain.now;
    let writer = domain.add_writer(1, "rt/a", EndpointQos::default());
    deliver_announcements(&mut domain);
    let machine = &mut domain.nodes[0].machine;
    let liar = prefix(2, 0);
    let data = endpoint(writer, "rt/b", "T", EndpointQos::default());
    assert!(!machine.handle_announcement(now, liar, &Announcement::Endpoint(data.encode())));
    assert!(!machine.handle_announcement(now, liar, &Announcement::EndpointRemoved(writer)));
    assert_eq!(machine.stats().impersonation, 2);
    for posted in [&b""[..], &[9], &[3, 1, 2], &[1], &[2, 0, 3, 0, 0]] {
        if let Some(notice) = Announcement::parse(posted) {
            assert!(
                !machine.handle_announcement(now, liar, &notice),
                "{posted:?}"
            );
        }
    }
    let unmatched_sender = prefix(7, 0);
    let alive = Announcement::LivelinessAsserted(Liveliness::Automatic);
    assert!(!machine.handle_announcement(now, unmatched_sender, &alive));
    assert_eq!(
        machine
            .endpoints()
            .remote(writer)
            .map(RemoteEndpoint::topic),
        Some("rt/a")
    );
}

/// Every local user can send from the address of a same-host peer, so a datagram in its
/// name changes nothing: an end, a move, endpoints, their ends, acknowledgements.
#[test]
fn discovery_datagrams_in_the_name_of_a_same_host_peer_change_nothing() {
    let mut domain = same_host_pair(2);
    let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
    let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
    deliver_announcements(&mut domain);
    let known = domain.nodes[1].machine.participant(prefix(0, 0)).cloned();
    let before = domain.nodes[1].events.len();
    let elsewhere = Locator {
        port: 60_000,
        ..address(0)
    };
    for at in [address(0), elsewhere, address(1)] {
        for forged in forged_discovery(&mut domain, writer) {
            domain.deliver(1, Some(at), &forged);
            domain.flush(1);
        }
    }
    domain.run_for(Duration::from_secs(2));
    let events = domain.nodes[1].events.get(before..);
    assert_eq!(events, Some(&[][..]));
    assert_eq!(domain.matches(1), [(reader, writer)]);
    let machine = &domain.nodes[1].machine;
    assert_eq!(machine.participant(prefix(0, 0)).cloned(), known);
    assert_eq!(machine.endpoints().remotes().count(), 1);
}

/// Datagrams of node 0 about its end and its writer, as a forger writes them.
fn forged_discovery(domain: &mut Domain, writer: Guid) -> Vec<Vec<u8>> {
    let sedp = EntityId::SEDP_PUBLICATIONS_WRITER;
    let pair = (EntityId::SEDP_SUBSCRIPTIONS_READER, sedp);
    let packet = || Packet::from(prefix(0, 0));
    let other = endpoint(writer, "rt/chatter", "Other", EndpointQos::default());
    let new = prefix(0, 0).with(EntityId::new([0, 9, 9], EntityId::KIND_WRITER_NO_KEY));
    let new = endpoint(new, "rt/chatter", "T", EndpointQos::default());
    let ended = Plist::inline()
        .with(pid::KEY_HASH, &writer.to_bytes())
        .with(pid::STATUS_INFO, &[0, 0, 0, 3])
        .end();
    let alive = ParticipantMessageData::liveliness(prefix(0, 0), Liveliness::Automatic);
    let mut forged = vec![
        packet().data(sedp, 1, &other.encode()).0,
        packet().data(sedp, 2, &new.encode()).0,
        packet().data_with_qos(sedp, 3, &ended, &[]).0,
        packet().heartbeat(sedp, 5, 9, 7).0,
        packet().gap(sedp, 1, 9, 0, &[]).0,
        packet().to(prefix(1, 0)).acknack(pair, 9, 0, &[], 7).0,
        packet().data(EntityId::WLP_WRITER, 1, &alive.encode()).0,
    ];
    // It moves, and it ends.
    let moved = ParticipantConfig {
        metatraffic_unicast: vec![address(5)],
        default_unicast: vec![address(5)],
        ..config(0, 0)
    };
    let mut leaving = Participant::new(domain.now, moved);
    let mut out = Outbox::new();
    leaving.poll_transmit(domain.now, &mut out);
    leaving.shut_down(domain.now, &mut out);
    forged.extend(out.iter().map(|datagram| datagram.parts.concat()));
    assert!(forged.len() >= 9);
    forged
}

/// Many participants of one host announce themselves rarely to the network. The first
/// peer there may be one of many that are reachable now; a further one means nothing.
#[test]
fn only_the_first_network_peer_causes_an_announcement_to_the_network() {
    let mut domain = Domain::new(1);
    domain.join(ParticipantConfig {
        announces_on_host: true,
        ..config(0, 0)
    });
    for index in 1..=8 {
        domain.join(with_announcements(index));
    }
    deliver_announcements(&mut domain);
    domain.run_for(Duration::from_secs(4));
    for (index, expected) in [(9, true), (10, false)] {
        let newcomer = domain.join(config(index, 0));
        domain.run_for(Duration::from_millis(500));
        let known = domain.nodes[0].machine.participants();
        assert_eq!(known.count(), index, "the newcomer is discovered");
        domain.nodes[newcomer].dead = true;
        domain.sent.clear();
        domain.run_for(Duration::from_secs(4));
        assert_eq!(domain.sent.contains_key(&GROUP), expected, "{index}");
    }
}

/// Same-host peers know a participant by its locators. A link that goes down concerns
/// them only if it changes those.
#[test]
fn same_host_peers_are_informed_of_changed_locators_only() {
    let mut domain = same_host_pair(1);
    let now = domain.now;
    let machine = &mut domain.nodes[0].machine;
    let mut links = LocalLinks {
        addresses: config(0, 0).network.addresses,
        down: vec![OwnAddress {
            ip: [10, 0, 9, 1].into(),
            prefix_length: 24,
        }],
        unicast: vec![address(0)],
        multicast: Vec::new(),
    };
    machine.set_local_links(now, links.clone());
    assert_eq!(machine.take_announcements(), None);
    links.unicast.push(Locator::udp_v4([10, 0, 9, 1], 7410));
    machine.set_local_links(now, links);
    assert!(matches!(
        machine.take_announcements(),
        Some(Announcements::New(list)) if matches!(list[..], [Announcement::Participant(_)])
    ));
}
