//! Discovery between two to five participants on an in-memory network, under any
//! faults: they discover each other, match, notice changes and crashes, and stay
//! within their traffic budget.

use pteros_test_support::rtps::domain;

use std::sync::Arc;

use domain::{Domain, GROUP, address, config, endpoint, prefix};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::{Locator, Route};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{LostReason, ParticipantEvent, RemoteEndpoint};
use pteros_rtps::qos::{Durability, EndpointQos, Liveliness, PolicyId, Reliability};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{DataHead, Heartbeat};

pub(crate) fn secs(count: i64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn millis(count: i64) -> Duration {
    Duration::from_millis(count)
}

/// The reasons for which a node lost participants, in order.
pub(crate) fn losses(domain: &Domain, node: usize) -> Vec<LostReason> {
    let reason = |event: &ParticipantEvent| match event {
        ParticipantEvent::ParticipantLost { reason, .. } => Some(*reason),
        _ => None,
    };
    domain.nodes[node]
        .events
        .iter()
        .filter_map(reason)
        .collect()
}

fn count(domain: &Domain, node: usize, wanted: impl Fn(&ParticipantEvent) -> bool) -> usize {
    let events = &domain.nodes[node].events;
    events.iter().filter(|event| wanted(event)).count()
}

#[test]
fn a_talker_and_a_listener_match_within_ten_milliseconds_and_once() {
    let mut domain = Domain::new(1);
    domain.join(config(0, 0));
    let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
    domain.run_for(secs(2));
    domain.join(config(1, 0));
    let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
    domain.run_for(millis(10));
    assert_eq!(domain.matches(0), [(writer, reader)]);
    assert_eq!(domain.matches(1), [(reader, writer)]);
    domain.run_for(secs(60));
    assert_eq!(domain.matches(0).len() + domain.matches(1).len(), 2);
    assert!(losses(&domain, 0).is_empty() && losses(&domain, 1).is_empty());
    let route = domain.nodes[0].events.iter().find_map(|event| match event {
        ParticipantEvent::Matched { route, .. } => Some(route.locators.to_vec()),
        _ => None,
    });
    assert_eq!(route, Some(vec![Locator::udp_v4([10, 0, 0, 2], 7411)]));
}

#[test]
fn five_participants_agree_on_the_graph_at_33_percent_loss() {
    for seed in 1..=20 {
        let mut domain = Domain::new(seed);
        domain.loss = 30;
        domain.duplication = 20;
        for node in 0..5 {
            domain.join(config(node, 0));
            for topic in 0..10 {
                domain.add_writer(node, &format!("rt/{topic}"), EndpointQos::default());
                domain.add_reader(node, &format!("rt/{topic}"), EndpointQos::default());
            }
            domain.run_for(millis(300));
        }
        domain.run_for(secs(12));
        for node in 0..5 {
            let machine = &domain.nodes[node].machine;
            assert_eq!(machine.participants().count(), 4, "seed {seed}");
            assert_eq!(machine.endpoints().remotes().count(), 80, "seed {seed}");
            // Ten readers and ten writers, each with the four others' one.
            assert_eq!(domain.matches(node).len(), 80, "seed {seed}");
        }
    }
}

#[test]
fn a_thousand_endpoints_are_known_within_a_second() {
    let mut domain = Domain::new(3);
    domain.join(config(0, 0));
    for topic in 0..500 {
        domain.add_writer(0, &format!("rt/{topic}"), EndpointQos::default());
        domain.add_reader(0, &format!("rt/{topic}"), EndpointQos::default());
    }
    domain.join(config(1, 0));
    let reader = domain.add_reader(1, "rt/499", EndpointQos::default());
    domain.loss = 5;
    domain.run_for(secs(1));
    assert_eq!(domain.nodes[1].machine.endpoints().remotes().count(), 1000);
    assert_eq!(domain.matches(1).len(), 1);
    assert_eq!(domain.matches(1)[0].0, reader);
}

#[test]
fn an_idle_domain_sends_only_announcements() {
    let mut domain = Domain::met(5);
    for node in 0..5 {
        domain.add_writer(node, "rt/a", EndpointQos::default());
        domain.add_reader(node, "rt/a", EndpointQos::default());
    }
    domain.run_for(secs(5));
    domain.datagrams = 0;
    domain.run_for(secs(300));
    let per_node = domain.datagrams / 5;
    assert!((95..=115).contains(&per_node), "{per_node} in 300 s");
}

#[test]
fn a_deleted_endpoint_is_removed_everywhere_even_under_loss() {
    let mut domain = Domain::met(3);
    let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
    let other = domain.add_reader(2, "rt/a", EndpointQos::default());
    let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.run_for(millis(100));
    assert_eq!(domain.matches(0).len(), 2);
    domain.loss = 40;
    domain.remove(0, writer);
    domain.run_for(secs(5));
    domain.loss = 0;
    for node in [1, 2] {
        assert!(domain.matches(node).is_empty());
        assert!(
            domain.nodes[node]
                .events
                .contains(&ParticipantEvent::EndpointLost(writer))
        );
    }
    assert!(domain.matches(0).is_empty());
    // A later participant gets nothing of it, and all of the others.
    domain.join(config(3, 0));
    domain.run_for(secs(1));
    let known: Vec<Guid> = domain.nodes[3]
        .machine
        .endpoints()
        .remotes()
        .map(RemoteEndpoint::guid)
        .collect();
    assert_eq!(known, [reader, other]);
    assert_eq!(
        count(&domain, 3, |e| matches!(
            e,
            ParticipantEvent::EndpointDiscovered(_)
        )),
        2
    );
}

#[test]
fn a_dispose_of_the_participant_ends_everything_at_once() {
    let mut domain = Domain::met(2);
    domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.run_for(millis(100));
    domain.leave(0);
    domain.run_for(millis(1));
    assert!(domain.matches(1).is_empty());
    assert_eq!(losses(&domain, 1), [LostReason::Disposed]);
    assert_eq!(domain.nodes[1].machine.endpoints().remotes().count(), 0);
}

#[test]
fn a_crashed_participant_is_lost_when_its_lease_ends_and_not_before() {
    let mut domain = Domain::met(2);
    domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.run_for(secs(7));
    domain.nodes[0].dead = true;
    domain.run_for(secs(16));
    assert_eq!(domain.matches(1).len(), 1);
    domain.run_for(secs(5));
    assert!(domain.matches(1).is_empty());
    assert_eq!(losses(&domain, 1), [LostReason::LeaseExpired]);
}

/// Until a participant is useful its lease is at most 20 s. It is useful when it reads
/// our announcements, although it may match nothing, and all of them are of one kind.
#[test]
fn a_peer_that_acknowledged_endpoints_of_one_kind_keeps_its_announced_lease() {
    let mut domain = Domain::new(1);
    domain.join(config(0, 0));
    let mut peer = config(1, 0);
    peer.lease = secs(60);
    domain.join(peer);
    domain.add_writer(0, "rt/own", EndpointQos::default());
    domain.run_for(secs(2));
    domain.nodes[1].dead = true;
    domain.run_for(secs(50));
    assert_eq!(domain.nodes[0].machine.participants().count(), 1);
    domain.run_for(secs(15));
    assert_eq!(domain.nodes[0].machine.participants().count(), 0);
}

#[test]
fn any_traffic_renews_a_lease() {
    let mut domain = Domain::met(2);
    // No discovery traffic arrives any more; user data goes another way.
    domain.cuts = vec![(1, 0)];
    for _ in 0..10 {
        domain.run_for(secs(15));
        let now = domain.now;
        domain.nodes[0].machine.renew_lease(prefix(1, 0), now);
    }
    assert!(losses(&domain, 0).is_empty());
    domain.run_for(secs(21));
    assert_eq!(losses(&domain, 0), [LostReason::LeaseExpired]);
}

#[test]
fn a_restart_at_the_same_address_is_a_new_participant_and_the_old_one_is_lost_soon() {
    let mut domain = Domain::met(2);
    let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.run_for(millis(100));
    domain.nodes[0].dead = true;
    let again = domain.join(config(0, 1));
    let writer = domain.add_writer(again, "rt/a", EndpointQos::default());
    domain.run_for(millis(20));
    assert!(domain.matches(1).contains(&(reader, writer)));
    domain.run_for(secs(4));
    assert_eq!(losses(&domain, 1), [LostReason::AddressTakenOver]);
    assert_eq!(domain.matches(1), [(reader, writer)]);
}

#[test]
fn participants_that_share_a_socket_are_not_taken_for_restarts() {
    let mut domain = Domain::met(2);
    for generation in 1..4 {
        domain.join(config(0, generation));
        domain.run_for(secs(1));
    }
    domain.run_for(secs(30));
    assert_eq!(domain.nodes[1].machine.participants().count(), 4);
    assert!(losses(&domain, 1).is_empty());
}

/// Found by the simulator (seeds 16 and 48 with crash and return): a restarted
/// participant that had long exchanged data with others counted higher and had
/// written more than the dead one, and was taken for it.
#[test]
fn a_restarted_peer_with_the_same_guid_is_discovered_again_whatever_its_counts() {
    let mut domain = Domain::met(3);
    let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.add_writer(0, "rt/b", EndpointQos::default());
    domain.run_for(secs(1));
    domain.nodes[0].dead = true;
    let again = domain.join(config(0, 0));
    domain.cuts = vec![(again, 1), (1, again)];
    let writer = domain.add_writer(again, "rt/a", EndpointQos::default());
    for _ in 0..20 {
        domain.add_writer(again, "rt/c", EndpointQos::default());
        domain.run_for(millis(100));
    }
    assert!(domain.matches(1).is_empty());
    domain.cuts.clear();
    domain.run_for(secs(8));
    assert_eq!(losses(&domain, 1), [LostReason::Restarted]);
    assert_eq!(domain.matches(1), [(reader, writer)]);
    assert_eq!(domain.matches(again), [(writer, reader)]);
}

/// A peer that received nothing from us for a lease has dropped our state; its
/// counts continue.
#[test]
fn a_peer_that_only_lost_its_state_is_served_again_and_not_lost() {
    let mut domain = Domain::met(2);
    let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
    let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.run_for(secs(1));
    domain.cuts = vec![(0, 1)];
    domain.run_for(secs(25));
    assert_eq!(losses(&domain, 1), [LostReason::LeaseExpired]);
    domain.cuts.clear();
    domain.run_for(secs(8));
    assert_eq!(domain.matches(1), [(reader, writer)]);
    assert!(losses(&domain, 0).is_empty());
}

#[test]
fn a_shared_memory_connection_is_the_route_to_all_endpoints_of_a_peer_until_it_ends() {
    let mut domain = Domain::met(2);
    let writers = [
        domain.add_writer(1, "rt/a", EndpointQos::default()),
        domain.add_writer(1, "rt/b", EndpointQos::default()),
    ];
    domain.run_for(millis(100));
    let link = Locator::shared_memory(7, prefix(1, 0));
    let announced = |domain: &mut Domain, link| {
        let machine = &mut domain.nodes[0].machine;
        machine.set_shared_memory_route(prefix(1, 0), link);
        let mut routes = Vec::new();
        while let Some(event) = machine.poll_event() {
            let ParticipantEvent::EndpointChanged { remote, route } = event else {
                panic!("{event:?}");
            };
            routes.push((remote.guid, route));
        }
        routes
    };
    let via_shared_memory = announced(&mut domain, Some(link));
    assert_eq!(
        via_shared_memory,
        writers.map(|w| (w, Route::by_shared_memory(link)))
    );
    assert!(announced(&mut domain, Some(link)).is_empty(), "no news");
    // A later endpoint gets the same route; discovery keeps its own.
    let late = domain.add_writer(1, "rt/c", EndpointQos::default());
    domain.add_reader(0, "rt/c", EndpointQos::default());
    domain.run_for(millis(100));
    let routes = domain.nodes[0]
        .events
        .iter()
        .filter_map(|event| match event {
            ParticipantEvent::Matched { remote, route, .. } if remote.guid == late => Some(route),
            _ => None,
        });
    assert_eq!(routes.collect::<Vec<_>>(), [&Route::by_shared_memory(link)]);
    let by_socket = announced(&mut domain, None);
    assert_eq!(by_socket.len(), 3);
    assert!(by_socket.iter().all(|(_, route)| !route.is_shared_memory()));
}

#[test]
fn one_sided_loss_with_unequal_leases_is_rediscovered_with_all_endpoints() {
    for seed in 1..=50 {
        let mut domain = Domain::new(seed);
        let mut short = config(0, 0);
        short.lease = secs(5);
        let mut long = config(1, 0);
        long.lease = secs(100);
        domain.join(short);
        domain.join(long);
        let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
        let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
        domain.run_for(secs(1));
        // Node 1 forgets node 0 after 5 s; node 0 remembers node 1.
        domain.cuts = vec![(0, 1), (1, 0)];
        domain.run_for(secs(8));
        assert!(domain.matches(1).is_empty());
        assert_eq!(domain.matches(0).len(), 1);
        domain.cuts.clear();
        domain.loss = 20;
        domain.run_for(secs(12));
        assert_eq!(domain.matches(1), [(reader, writer)], "seed {seed}");
        assert_eq!(domain.matches(0), [(writer, reader)], "seed {seed}");
    }
}

#[test]
fn a_participant_that_received_nothing_recovers_when_it_receives_again() {
    let mut domain = Domain::met(2);
    domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.cuts = vec![(0, 1)];
    domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.run_for(secs(30));
    assert_eq!(losses(&domain, 1), [LostReason::LeaseExpired]);
    domain.cuts.clear();
    domain.run_for(secs(6));
    assert_eq!(domain.matches(1).len(), 1);
    assert_eq!(domain.matches(0).len(), 1);
}

#[test]
fn an_endpoint_deleted_while_a_peer_was_not_heard_is_removed_later() {
    let mut domain = Domain::met(2);
    let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.run_for(millis(100));
    // Node 0 loses node 1, but node 1 still receives from node 0.
    domain.cuts = vec![(1, 0)];
    domain.run_for(secs(25));
    assert_eq!(losses(&domain, 0), [LostReason::LeaseExpired]);
    assert_eq!(domain.matches(1).len(), 1);
    domain.remove(0, writer);
    domain.run_for(secs(25));
    domain.cuts.clear();
    domain.run_for(secs(6));
    assert!(domain.matches(1).is_empty());
    assert_eq!(domain.nodes[1].machine.endpoints().remotes().count(), 0);
}

#[test]
fn incompatible_qos_is_reported_once_on_both_sides_with_the_policies() {
    let mut domain = Domain::met(2);
    let best_effort = EndpointQos {
        reliability: Reliability::BestEffort,
        ..EndpointQos::default()
    };
    let demanding = EndpointQos {
        durability: Durability::TransientLocal,
        ..EndpointQos::default()
    };
    let writer = domain.add_writer(0, "rt/scan", best_effort);
    let reader = domain.add_reader(1, "rt/scan", demanding);
    domain.run_for(secs(10));
    for (node, local, remote) in [(0, writer, reader), (1, reader, writer)] {
        let announced: Vec<_> = domain.nodes[node]
            .events
            .iter()
            .filter_map(|event| match event {
                ParticipantEvent::IncompatibleQos {
                    local,
                    remote,
                    policies,
                } => Some((*local, remote.guid, policies.clone())),
                _ => None,
            })
            .collect();
        let policies = vec![PolicyId::Reliability, PolicyId::Durability];
        assert_eq!(announced, [(local, remote, policies)]);
        assert!(domain.matches(node).is_empty());
    }
}

#[test]
fn another_type_name_is_an_inconsistent_topic_and_another_partition_is_no_event() {
    let mut domain = Domain::met(2);
    domain.add_writer(0, "rt/a", EndpointQos::default());
    let guid = domain.new_guid(1, EntityId::KIND_READER_NO_KEY);
    domain.write_endpoint(1, endpoint(guid, "rt/a", "Other", EndpointQos::default()));
    let elsewhere = EndpointQos {
        partition: vec!["elsewhere".into()],
        ..EndpointQos::default()
    };
    domain.add_reader(1, "rt/a", elsewhere);
    domain.run_for(secs(1));
    for node in 0..2 {
        let inconsistent =
            |e: &ParticipantEvent| matches!(e, ParticipantEvent::InconsistentTopic { .. });
        let incompatible =
            |e: &ParticipantEvent| matches!(e, ParticipantEvent::IncompatibleQos { .. });
        assert_eq!(count(&domain, node, inconsistent), 1);
        assert_eq!(count(&domain, node, incompatible), 0);
        assert!(domain.matches(node).is_empty());
    }
}

#[test]
fn changed_qos_ends_a_match_or_makes_one() {
    let mut domain = Domain::met(2);
    let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
    let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.run_for(millis(100));
    assert_eq!(domain.matches(1), [(reader, writer)]);
    let slow = EndpointQos {
        deadline: secs(1),
        ..EndpointQos::default()
    };
    domain.write_endpoint(1, endpoint(reader, "rt/a", "T", slow.clone()));
    domain.run_for(millis(100));
    assert!(domain.matches(0).is_empty() && domain.matches(1).is_empty());
    domain.write_endpoint(0, endpoint(writer, "rt/a", "T", slow));
    domain.run_for(millis(100));
    assert_eq!(domain.matches(0), [(writer, reader)]);
    assert_eq!(domain.matches(1), [(reader, writer)]);
}

#[test]
fn changed_user_data_is_reported_without_a_new_match() {
    let mut domain = Domain::met(2);
    let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
    domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.run_for(millis(100));
    let marked = EndpointQos {
        user_data: b"typehash=RIHS01_00;".to_vec(),
        ..EndpointQos::default()
    };
    domain.write_endpoint(0, endpoint(writer, "rt/a", "T", marked));
    let now = domain.now;
    let machine = &mut domain.nodes[0].machine;
    machine.update_user_data(now, b"enclave=/other;".to_vec());
    domain.run_for(millis(100));
    assert_eq!(domain.matches(1).len(), 1);
    let changed = |e: &ParticipantEvent| match e {
        ParticipantEvent::EndpointChanged { remote, .. } => remote.qos.user_data.len() == 19,
        ParticipantEvent::ParticipantChanged(data) => data.user_data == b"enclave=/other;",
        _ => false,
    };
    // One for the endpoint, one for the participant.
    assert_eq!(count(&domain, 1, changed), 2);
}

#[test]
fn spoofed_announcements_cost_little_cause_little_traffic_and_evict_no_peer() {
    let mut domain = Domain::met(3);
    domain.add_writer(1, "rt/a", EndpointQos::default());
    domain.add_reader(0, "rt/a", EndpointQos::default());
    domain.run_for(secs(3));
    domain.sent.clear();
    let victim = Locator::udp_v4([10, 0, 0, 99], 7410);
    let attacker = Locator::udp_v4([10, 0, 0, 66], 9);
    let mut received = 0;
    for number in 0..20_000u32 {
        let mut claim = config(9, 0);
        claim.prefix.0[2..6].copy_from_slice(&number.to_be_bytes());
        claim.metatraffic_unicast = vec![victim];
        let bytes = one_announcement(claim);
        received += bytes.len();
        domain.deliver(0, Some(attacker), &bytes);
        domain.flush(0);
        if number % 100 == 0 {
            domain.run_for(millis(10));
        }
        assert!(domain.nodes[0].machine.unvalidated_count() <= 64);
    }
    let (_, sent) = domain.sent.get(&victim).copied().unwrap_or_default();
    assert!(sent <= 3 * received, "{sent} bytes for {received}");
    assert_eq!(domain.nodes[0].machine.participants().count(), 2);
    assert!(losses(&domain, 0).is_empty());
    assert_eq!(domain.matches(0).len(), 1);
    // A real new participant is discovered after the flood.
    domain.join(config(3, 0));
    domain.run_for(secs(1));
    assert_eq!(domain.nodes[0].machine.participants().count(), 3);
    // And the claims go.
    domain.run_for(secs(10));
    assert_eq!(domain.nodes[0].machine.unvalidated_count(), 0);
}

#[test]
fn a_single_spoofed_announcement_gets_no_more_than_three_times_its_bytes() {
    let mut domain = Domain::new(1);
    domain.join(config(0, 0));
    for topic in 0..100 {
        domain.add_writer(0, &format!("rt/{topic}"), EndpointQos::default());
    }
    domain.run_for(secs(1));
    let victim = Locator::udp_v4([10, 0, 0, 99], 7410);
    let mut claim = config(9, 0);
    claim.metatraffic_unicast = vec![victim];
    let bytes = one_announcement(claim);
    domain.deliver(0, Some(Locator::udp_v4([10, 0, 0, 66], 9)), &bytes);
    domain.run_for(secs(60));
    let (_, sent) = domain.sent.get(&victim).copied().unwrap_or_default();
    assert!(sent > 0 && sent <= 3 * bytes.len(), "{sent}");
}

/// A datagram sent in the name of `attacker` to `to`: an SEDP change, if any, and a
/// heartbeat.
fn forged(attacker: GuidPrefix, to: GuidPrefix, endpoint: Option<&EndpointData>) -> Vec<u8> {
    let nowhere: Arc<[Locator]> = Arc::from([address(0)]);
    let mut out = Outbox::new();
    let mut message = out.begin(attacker, &nowhere, 60_000);
    message.info_destination(to);
    if let Some(endpoint) = endpoint {
        let head = DataHead {
            reader: EntityId::SEDP_PUBLICATIONS_READER,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            sequence: SequenceNumber::FIRST,
            ..DataHead::default()
        };
        message.data(&head, &endpoint.encode());
    }
    message.heartbeat(&Heartbeat {
        reader: EntityId::SEDP_PUBLICATIONS_READER,
        writer: EntityId::SEDP_PUBLICATIONS_WRITER,
        first: SequenceNumber::FIRST,
        last: SequenceNumber(i64::from(endpoint.is_some())),
        count: 1000,
        is_final: true,
        liveliness: false,
        group_info: None,
    });
    message.finish();
    out.iter().next().map(|d| d.parts.concat()).unwrap()
}

#[test]
fn a_participant_is_not_validated_from_an_address_it_does_not_announce() {
    let mut domain = Domain::new(1);
    domain.join(config(0, 0));
    let unmatched_sender = Locator::udp_v4([10, 0, 0, 66], 9);
    let victim = Locator::udp_v4([10, 0, 0, 99], 7410);
    let mut claim = config(9, 0);
    claim.metatraffic_unicast = vec![victim];
    domain.deliver(0, Some(unmatched_sender), &one_announcement(claim));
    let proof = forged(prefix(9, 0), prefix(0, 0), None);
    domain.deliver(0, Some(unmatched_sender), &proof);
    assert_eq!(domain.nodes[0].machine.participants().count(), 0);
    domain.deliver(0, Some(victim), &proof);
    assert_eq!(domain.nodes[0].machine.participants().count(), 1);
}

#[test]
fn a_participant_cannot_announce_endpoints_of_others() {
    let mut domain = Domain::met(3);
    let theirs = prefix(2, 0).with(EntityId::new([0, 0, 1], EntityId::KIND_WRITER_NO_KEY));
    let lie = endpoint(theirs, "rt/a", "T", EndpointQos::default());
    let bytes = forged(prefix(1, 0), prefix(0, 0), Some(&lie));
    domain.deliver(0, Some(address(1)), &bytes);
    assert_eq!(domain.nodes[0].machine.stats().impersonation, 1);
    assert_eq!(domain.nodes[0].machine.endpoints().remotes().count(), 0);
}

#[test]
fn an_unknown_sender_can_neither_move_nor_dispose_a_participant() {
    let mut domain = Domain::met(2);
    let unmatched_sender = Locator::udp_v4([10, 0, 0, 66], 9);
    let mut moved = config(1, 0);
    moved.metatraffic_unicast = vec![Locator::udp_v4([10, 0, 0, 99], 7410)];
    let bytes = one_announcement(moved);
    domain.deliver(0, Some(unmatched_sender), &bytes);
    let mut leaving = Domain::new(1);
    let node = leaving.join(config(1, 0));
    let dispose = dispose_datagram_of(&mut leaving, node);
    domain.deliver(0, Some(unmatched_sender), &dispose);
    domain.flush(0);
    assert_eq!(domain.nodes[0].machine.stats().impersonation, 2);
    let told = ParticipantEvent::SourceRefused {
        prefix: prefix(1, 0),
        from: [10, 0, 0, 66].into(),
    };
    assert_eq!(domain.nodes[0].events, [told]);
    // From its own address it counts.
    domain.deliver(0, Some(address(1)), &dispose);
    domain.flush(0);
    assert_eq!(losses(&domain, 0), [LostReason::Disposed]);
}

#[test]
fn a_participant_that_moves_is_followed_once_it_answers_from_there() {
    let mut domain = Domain::met(2);
    let writer = domain.add_writer(0, "rt/a", EndpointQos::default());
    let reader = domain.add_reader(1, "rt/a", EndpointQos::default());
    domain.run_for(millis(500));
    let there = Locator::udp_v4([10, 0, 0, 77], 7410);
    let mut moved = config(1, 0);
    moved.metatraffic_unicast = vec![there];
    moved.default_unicast = vec![there];
    let announcement = one_announcement(moved);
    domain.nodes[1].address = there;
    domain.deliver(0, Some(there), &announcement);
    let home = |domain: &Domain| {
        let machine = &domain.nodes[0].machine;
        machine.participants().next().unwrap().metatraffic_unicast[0]
    };
    assert_eq!(home(&domain), address(1));
    domain.run_for(secs(1));
    assert_eq!(home(&domain), there);
    assert!(domain.matches(0).contains(&(writer, reader)));
    assert!(losses(&domain, 0).is_empty());
}

#[test]
fn automatic_liveliness_is_asserted_twice_per_lease_and_only_while_needed() {
    let mut domain = Domain::met(2);
    let lively = EndpointQos {
        lease_duration: secs(1),
        ..EndpointQos::default()
    };
    let asserted = |e: &ParticipantEvent| {
        matches!(
            e,
            ParticipantEvent::LivelinessAsserted {
                kind: Liveliness::Automatic,
                ..
            }
        )
    };
    domain.run_for(secs(5));
    assert_eq!(count(&domain, 1, asserted), 0);
    let writer = domain.add_writer(0, "rt/a", lively);
    domain.run_for(secs(10));
    let heard = count(&domain, 1, asserted);
    assert!((19..=22).contains(&heard), "{heard}");
    domain.remove(0, writer);
    domain.run_for(secs(1));
    domain.nodes[1].events.clear();
    domain.run_for(secs(10));
    assert_eq!(count(&domain, 1, asserted), 0);
}

#[test]
fn manual_liveliness_is_asserted_by_the_application() {
    let mut domain = Domain::met(2);
    let now = domain.now;
    let machine = &mut domain.nodes[0].machine;
    machine.assert_liveliness(now, Liveliness::ManualByParticipant);
    domain.run_for(millis(10));
    let event = ParticipantEvent::LivelinessAsserted {
        prefix: prefix(0, 0),
        kind: Liveliness::ManualByParticipant,
    };
    assert_eq!(count(&domain, 1, |e| *e == event), 1);
}

#[test]
fn participant_tables_have_limits() {
    let mut domain = Domain::new(1);
    let mut small = config(0, 0);
    small.limits.participants = 2;
    small.limits.endpoints_per_participant = 3;
    small.limits.endpoints = 5;
    domain.join(small);
    for node in 1..5 {
        domain.join(config(node, 0));
        for topic in 0..4 {
            domain.add_writer(node, &format!("rt/{topic}"), EndpointQos::default());
        }
        domain.run_for(secs(1));
    }
    domain.run_for(secs(30));
    let machine = &domain.nodes[0].machine;
    assert_eq!(machine.participants().count(), 2);
    assert_eq!(machine.endpoints().remotes().count(), 5);
    assert!(machine.stats().participants_refused > 0);
    assert!(machine.stats().endpoints_refused > 0);
    assert!(losses(&domain, 0).is_empty());
}

/// The first datagram of a participant with this configuration.
fn one_announcement(mut config: pteros_rtps::participant::ParticipantConfig) -> Vec<u8> {
    config.announce_to = vec![GROUP];
    let now = pteros_rtps::time::Instant::ZERO;
    let mut machine = pteros_rtps::participant::Participant::new(now, config);
    let mut out = Outbox::new();
    machine.poll_transmit(now, &mut out);
    out.iter().next().map(|d| d.parts.concat()).unwrap()
}

/// The last datagram of a participant that leaves.
fn dispose_datagram_of(domain: &mut Domain, node: usize) -> Vec<u8> {
    let mut out = Outbox::new();
    let now = domain.now;
    domain.nodes[node].machine.shut_down(now, &mut out);
    out.iter().last().map(|d| d.parts.concat()).unwrap()
}
