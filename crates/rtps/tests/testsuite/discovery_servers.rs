//! Clients of discovery servers on fake time: they announce themselves to their servers
//! only, and learn of each other by them.

use std::sync::Arc;

use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::{MessageBuilder, Outbox};
use pteros_rtps::participant::{
    DiscoveryServerState, DiscoveryServers, LostReason, ParticipantConfig, ParticipantEvent,
};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{DataHead, InlineQosHead, StatusInfo};
use pteros_test_support::rtps::discovery_server::{DiscoveryServer, run_with, server_address};
use pteros_test_support::rtps::domain::{self, Domain, GROUP, address, endpoint, prefix};

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count)
}

/// A client of the servers with these ids.
fn client(index: usize, servers: &[u8]) -> ParticipantConfig {
    let mut config = domain::config(index, 0);
    config.metatraffic_multicast.clear();
    config.announce_to.clear();
    config.discovery_servers = Some(DiscoveryServers {
        servers: servers.iter().map(|id| vec![server_address(*id)]).collect(),
        is_super_client: false,
    });
    config
}

/// Two clients with a writer and a reader of one topic.
struct Fleet {
    domain: Domain,
    writer: Guid,
    reader: Guid,
}

impl Fleet {
    fn of(servers: &[u8]) -> Self {
        let mut domain = Domain::new(1);
        for index in 0..2 {
            domain.join(client(index, servers));
        }
        let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
        let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
        Self {
            domain,
            writer,
            reader,
        }
    }

    fn matched(&self) -> [bool; 2] {
        [
            self.domain.matches(0) == [(self.writer, self.reader)],
            self.domain.matches(1) == [(self.reader, self.writer)],
        ]
    }

    fn knows(&self, node: usize, peer: GuidPrefix) -> bool {
        self.domain.nodes[node].machine.participant(peer).is_some()
    }

    /// The reasons for which node 1 lost node 0.
    fn losses(&self) -> Vec<LostReason> {
        let events = self.domain.nodes[1].events.iter();
        let losses = events.filter_map(|event| match event {
            ParticipantEvent::ParticipantLost { prefix, reason }
                if *prefix == domain::prefix(0, 0) =>
            {
                Some(*reason)
            }
            _ => None,
        });
        losses.collect()
    }
}

#[test]
fn clients_learn_of_each_other_by_their_server_alone() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    assert_eq!(fleet.matched(), [true, true]);
    assert_eq!(server.nameless, 0);
    assert!(!fleet.domain.sent.contains_key(&GROUP), "no multicast");
    for (node, other) in [(0, prefix(1, 0)), (1, prefix(0, 0))] {
        let machine = &fleet.domain.nodes[node].machine;
        let states = DiscoveryServerState::all(machine);
        assert_eq!(states.len(), 1);
        assert_eq!(states[0].prefix, Some(server.prefix()));
        assert_eq!(states[0].relayed, 1);
        assert_eq!(
            machine.participants().count(),
            2,
            "the server and the client"
        );
        assert!(fleet.knows(node, other));
        let stats = machine.stats();
        assert_eq!(
            (stats.impersonation, stats.not_relayed, stats.malformed),
            (0, 0, 0)
        );
    }
    // Announcements of endpoints go to the server only; liveliness is asserted directly.
    let (before, _) = fleet.domain.sent[&address(1)];
    fleet
        .domain
        .add_writer(0, "rt/other", EndpointQos::default());
    run_with(
        &mut fleet.domain,
        &mut [&mut server],
        Duration::from_millis(20),
    );
    assert_eq!(fleet.domain.sent[&address(1)].0 - before, 0);
}

#[test]
fn an_announcement_names_the_role_and_others_know_the_vendor_by_the_prefix() {
    for (is_super_client, role) in [(false, "CLIENT"), (true, "SUPER_CLIENT")] {
        let mut config = client(0, &[0]);
        config.discovery_servers.as_mut().unwrap().is_super_client = is_super_client;
        config.prefix.0[..2].copy_from_slice(&VendorId::PTEROS.0);
        let mut domain = Domain::new(1);
        domain.join(config);
        domain.run_for(Duration::from_millis(10));
        let (to, bytes) = &domain.undelivered[0];
        assert_eq!(*to, server_address(0));
        let role = [role.as_bytes(), b"\0"].concat();
        let vendor = [0x16, 0, 4, 0, 0x01, 0x0f];
        for part in [
            &b"PARTICIPANT_TYPE\0"[..],
            &role,
            &b"DS_VERSION\0"[..],
            &vendor,
        ] {
            assert!(bytes.windows(part.len()).any(|at| at == part), "{part:?}");
        }
        let start = bytes.windows(4).position(|at| at == [0, 3, 0, 0]).unwrap();
        let data = ParticipantData::parse(&bytes[start..]).unwrap();
        assert_eq!(data.vendor, VendorId::PTEROS);
    }
}

#[test]
fn an_end_is_relayed_and_so_is_the_end_of_an_endpoint() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    fleet.domain.remove(0, fleet.writer);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(1));
    assert_eq!(fleet.domain.matches(1), []);
    assert!(fleet.knows(1, prefix(0, 0)));
    fleet.domain.leave(0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(1));
    assert!(!fleet.knows(1, prefix(0, 0)));
    assert_eq!(fleet.losses(), [LostReason::Disposed]);
}

#[test]
fn a_client_that_dies_is_lost_when_its_server_says_so() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    fleet.domain.nodes[0].dead = true;
    run_with(&mut fleet.domain, &mut [&mut server], seconds(60));
    assert!(fleet.knows(1, prefix(0, 0)), "the server decides");
    server.drop_client(fleet.domain.now, prefix(0, 0));
    run_with(&mut fleet.domain, &mut [&mut server], seconds(1));
    assert_eq!(fleet.losses(), [LostReason::Disposed]);
}

#[test]
fn a_server_may_start_late_go_and_come_back() {
    let mut fleet = Fleet::of(&[0]);
    run_with(&mut fleet.domain, &mut [], seconds(30));
    assert_eq!(fleet.matched(), [false, false]);
    let state = &DiscoveryServerState::all(&fleet.domain.nodes[0].machine)[0];
    assert!(state.prefix.is_none() && state.age >= seconds(29));
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(2));
    assert_eq!(fleet.matched(), [true, true]);
    // It is killed. The clients lose it, and keep each other.
    drop(server);
    run_with(&mut fleet.domain, &mut [], seconds(60));
    let state = &DiscoveryServerState::all(&fleet.domain.nodes[0].machine)[0];
    assert_eq!(state.prefix, None);
    assert_eq!(fleet.matched(), [true, true]);
    // It comes back with the same GUID: nothing is lost, and a new client is found.
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    fleet.domain.join(client(2, &[0]));
    let late = fleet
        .domain
        .add_reader(2, "rt/chatter", EndpointQos::default());
    run_with(&mut fleet.domain, &mut [&mut server], seconds(60));
    assert_eq!(fleet.domain.matches(2), [(late, fleet.writer)]);
    assert_eq!(fleet.losses(), []);
    assert!(fleet.matched()[1]);
}

#[test]
fn a_server_that_restarts_at_once_relays_again() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    fleet.domain.join(client(2, &[0]));
    let late = fleet
        .domain
        .add_reader(2, "rt/chatter", EndpointQos::default());
    run_with(&mut fleet.domain, &mut [&mut server], seconds(20));
    assert_eq!(fleet.domain.matches(2), [(late, fleet.writer)]);
    assert_eq!(fleet.losses(), []);
    assert!(fleet.matched()[1]);
}

#[test]
fn who_dies_while_the_server_is_away_is_lost_after_its_lease() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    drop(server);
    run_with(&mut fleet.domain, &mut [], seconds(30));
    fleet.domain.nodes[0].dead = true;
    run_with(&mut fleet.domain, &mut [], seconds(30));
    assert_eq!(fleet.losses(), []);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(30));
    assert_eq!(fleet.losses(), [LostReason::LeaseExpired]);
}

#[test]
fn one_of_two_servers_is_enough() {
    let mut fleet = Fleet::of(&[0, 1]);
    let mut servers = [0, 1].map(|id| DiscoveryServer::new(fleet.domain.now, id));
    let [first, second] = &mut servers;
    run_with(&mut fleet.domain, &mut [first, second], seconds(3));
    assert_eq!(fleet.matched(), [true, true]);
    let relayed = |fleet: &Fleet| {
        let states = DiscoveryServerState::all(&fleet.domain.nodes[1].machine);
        [states[0].relayed, states[1].relayed]
    };
    assert_eq!(relayed(&fleet), [1, 1]);
    // The first one loses sight of a client that the second one has.
    first.drop_client(fleet.domain.now, prefix(0, 0));
    run_with(
        &mut fleet.domain,
        &mut [first, second],
        Duration::from_millis(200),
    );
    assert_eq!(fleet.losses(), []);
    run_with(&mut fleet.domain, &mut [second], seconds(60));
    assert_eq!(fleet.matched(), [true, true]);
    assert_eq!(relayed(&fleet), [0, 1]);
    fleet.domain.leave(0);
    run_with(&mut fleet.domain, &mut [second], seconds(1));
    assert_eq!(fleet.losses(), [LostReason::Disposed]);
}

/// The address of somebody who is no server.
const STRANGER: Locator = Locator::udp_v4([10, 0, 0, 66], 11811);

/// A datagram of `from` to node 1.
fn say(
    fleet: &mut Fleet,
    sender: GuidPrefix,
    from: Locator,
    write: impl FnOnce(&mut MessageBuilder<'_>),
) {
    let to: Arc<[Locator]> = Arc::from([address(1)]);
    let mut out = Outbox::new();
    let mut message = out.begin(sender, &to, 60_000);
    message.info_destination(prefix(1, 0));
    write(&mut message);
    message.finish();
    let bytes = out.iter().next().unwrap().parts.concat();
    fleet.domain.deliver(1, Some(from), &bytes);
    fleet.domain.flush(1);
}

fn head(writer: EntityId, reader: EntityId, sequence: i64) -> DataHead<'static> {
    DataHead {
        reader,
        writer,
        sequence: SequenceNumber(sequence),
        ..DataHead::default()
    }
}

#[test]
fn what_a_stranger_relays_is_refused_and_counted() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    let victim = prefix(0, 0);
    let stats = |fleet: &Fleet| *fleet.domain.nodes[1].machine.stats();
    // The announcement of a participant that no server relays, and of a false server.
    let before = stats(&fleet);
    let stranger = GuidPrefix([9; 12]);
    let mut own = ParticipantData::new(stranger);
    own.metatraffic_unicast = vec![STRANGER];
    own.domain_id = Some(0);
    let spdp = |sequence| head(EntityId::SPDP_WRITER, EntityId::SPDP_READER, sequence);
    for is_server in [false, true] {
        if is_server {
            own.properties = vec![("PARTICIPANT_TYPE".into(), "SERVER".into())];
        }
        let payload = own.encode();
        say(&mut fleet, stranger, STRANGER, |message| {
            message.data(&spdp(1), &payload);
        });
    }
    assert_eq!(stats(&fleet).not_relayed - before.not_relayed, 2);
    // Another participant's announcement and its end, in the stranger's name.
    let mut relayed = ParticipantData::new(GuidPrefix([8; 12]));
    relayed.metatraffic_unicast = vec![STRANGER];
    let payload = relayed.encode();
    say(&mut fleet, stranger, STRANGER, |message| {
        message.data(&spdp(2), &payload);
    });
    let mut end = spdp(3);
    end.key_only = true;
    end.inline_qos = InlineQosHead {
        status_info: Some(StatusInfo::DISPOSED_UNREGISTERED),
        key_hash: Some(victim.with(EntityId::PARTICIPANT).to_bytes()),
        ..InlineQosHead::NONE
    };
    let key = ParticipantData::encode_key(victim);
    say(&mut fleet, stranger, STRANGER, |message| {
        message.data(&end, &key);
    });
    assert_eq!(stats(&fleet).impersonation - before.impersonation, 2);
    // The same in the server's name, from an address where the server is not.
    let before = stats(&fleet);
    for sequence in 2..5 {
        let payload = payload.clone();
        say(&mut fleet, server.prefix(), STRANGER, |message| {
            message.data(&spdp(sequence), &payload);
        });
    }
    assert!(stats(&fleet).foreign_sources - before.foreign_sources >= 3);
    // An endpoint of another participant, relayed by a client.
    let before = stats(&fleet);
    let guid = victim.with(EntityId::new([0, 0, 9], EntityId::KIND_WRITER_NO_KEY));
    let data: EndpointData = endpoint(guid, "rt/chatter", "T", EndpointQos::default());
    let sedp = head(
        EntityId::SEDP_PUBLICATIONS_WRITER,
        EntityId::SEDP_PUBLICATIONS_READER,
        1,
    );
    say(&mut fleet, victim, address(0), |message| {
        message.data(&sedp, &data.encode());
    });
    run_with(&mut fleet.domain, &mut [&mut server], seconds(2));
    let machine = &fleet.domain.nodes[1].machine;
    assert!(machine.endpoints().remote(guid).is_none());
    assert!(machine.participant(stranger).is_none());
    assert!(machine.participant(GuidPrefix([8; 12])).is_none());
    assert_eq!(stats(&fleet).returned, before.returned);
    assert_eq!(fleet.matched(), [true, true]);
    assert_eq!(fleet.losses(), []);
}

#[test]
fn a_static_peer_is_met_beside_the_servers() {
    let mut fleet = Fleet::of(&[0]);
    let mut server = DiscoveryServer::new(fleet.domain.now, 0);
    let mut config = client(2, &[0]);
    config.announce_to = vec![address(3)];
    fleet.domain.join(config);
    fleet.domain.join(domain::config(3, 0));
    run_with(&mut fleet.domain, &mut [&mut server], seconds(3));
    assert!(fleet.knows(2, prefix(3, 0)) && fleet.knows(3, prefix(2, 0)));
    assert!(!fleet.knows(0, prefix(3, 0)));
    assert!(fleet.knows(2, prefix(0, 0)));
}
