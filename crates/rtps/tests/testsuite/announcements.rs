//! Participant announcements: to whom they go, and which of them count.

use pteros_test_support::rtps::domain::{Domain, GROUP, address, config};

use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::Participant;
use pteros_rtps::time::Instant;

use crate::participants::{losses, millis, secs};

#[test]
fn participants_of_other_domains_are_ignored() {
    let mut domain = Domain::new(1);
    domain.join(config(0, 0));
    let mut other = config(1, 0);
    other.domain_id = 7;
    domain.join(other);
    domain.run_for(secs(10));
    for node in &domain.nodes {
        assert_eq!(node.machine.participants().count(), 0);
        assert_eq!(node.machine.unvalidated_count(), 0);
        assert!(node.machine.stats().other_domain > 0);
    }
}

/// As of a context that another transport joins with the network.
#[test]
fn a_participant_that_ignores_announcements_is_discovered_by_nobody() {
    let mut domain = Domain::new(1);
    domain.join(config(0, 0));
    let mut ignorant = config(1, 0);
    ignorant.ignores_announcements = true;
    ignorant.announce_to.clear();
    domain.join(ignorant);
    domain.run_for(secs(10));
    for node in &domain.nodes {
        assert_eq!(node.machine.participants().count(), 0);
        assert_eq!(node.machine.unvalidated_count(), 0);
    }
    assert!(domain.nodes[1].machine.stats().announcements_received > 0);
}

#[test]
fn a_static_peer_is_discovered_and_kept_without_multicast() {
    let mut domain = Domain::new(1);
    let mut knows = config(0, 0);
    knows.metatraffic_multicast.clear();
    knows.announce_to = vec![address(1), address(5)];
    let mut knows_nobody = config(1, 0);
    knows_nobody.metatraffic_multicast.clear();
    knows_nobody.announce_to.clear();
    domain.join(knows);
    domain.join(knows_nobody);
    domain.run_for(secs(120));
    assert!(!domain.sent.contains_key(&GROUP));
    for node in 0..2 {
        assert_eq!(domain.nodes[node].machine.participants().count(), 1);
        assert!(losses(&domain, node).is_empty());
    }
}

#[test]
fn on_this_host_only_bound_ports_get_announcements() {
    let local = |port| Locator::udp_v4([127, 0, 0, 1], port);
    let mut config = config(0, 0);
    config.metatraffic_unicast = vec![local(7410)];
    let ports = [7410, 7412, 7414, 7416];
    config.announce_to = [GROUP, address(5)]
        .into_iter()
        .chain(ports.map(local))
        .collect();
    let everybody = config.announce_to.clone();
    let mut now = Instant::ZERO;
    let mut machine = Participant::new(now, config);
    let mut out = Outbox::new();
    // A participant does not announce itself to its own bound port.
    let all_but_ours = vec![GROUP, address(5), local(7412), local(7414), local(7416)];
    for (bound, expected) in [
        (None, everybody.clone()),
        (
            Some(vec![7410, 7414, 7400]),
            vec![GROUP, address(5), local(7414)],
        ),
        (Some(vec![7410]), vec![GROUP, address(5)]),
        (Some(ports.to_vec()), all_but_ours),
        (None, everybody),
    ] {
        now = now.after(secs(4));
        assert!(machine.spdp_writer().is_announcement_due(now));
        machine.spdp_writer_mut().set_bound_ports(bound.clone());
        out.clear();
        machine.poll_transmit(now, &mut out);
        assert!(!machine.spdp_writer().is_announcement_due(now));
        let to: Vec<_> = out
            .iter()
            .flat_map(|datagram| datagram.to.to_vec())
            .collect();
        assert_eq!(to, expected, "{bound:?}");
    }
}

/// The address of the participant at `index` where all share a host without multicast.
fn port(index: usize) -> Locator {
    Locator::udp_v4([127, 0, 0, 1], 7410 + 2 * index as u16)
}

/// Participants of one host that call its first four ports.
fn on_one_host(count: usize) -> Domain {
    let mut domain = Domain::new(1);
    for index in 0..count {
        let mut config = config(index, 0);
        config.metatraffic_multicast.clear();
        config.metatraffic_unicast = vec![port(index)];
        config.announce_to = (0..4).map(port).filter(|at| *at != port(index)).collect();
        domain.join(config);
    }
    domain
}

#[test]
fn peers_that_answered_skip_the_startup_repeats_and_later_ones_do_not() {
    let mut domain = on_one_host(2);
    let heard = |domain: &Domain| domain.nodes[1].machine.stats().announcements_received;
    domain.run_for(millis(50));
    assert_eq!(domain.nodes[0].machine.participants().count(), 1);
    let at_first = heard(&domain);
    domain.run_for(millis(700));
    assert_eq!(heard(&domain), at_first);
    // To unbound ports, all of the burst was sent by both: after 0, 100, 200 and
    // 400 ms.
    assert_eq!(domain.sent[&port(3)].0, 2 * 4);
    // The last of it and what comes each period after are for all: leases live by it.
    domain.run_for(millis(100));
    assert_eq!(heard(&domain), at_first + 1);
    domain.run_for(secs(3));
    assert_eq!(heard(&domain), at_first + 2);
}

#[test]
fn a_peer_that_missed_the_answer_gets_a_startup_repeat() {
    let mut domain = on_one_host(2);
    // The first announces itself, and only its third announcement arrives.
    domain.cuts = vec![(0, 1), (1, 0)];
    domain.run_for(millis(150));
    domain.cuts.clear();
    domain.run_for(millis(60));
    for node in 0..2 {
        assert_eq!(domain.nodes[node].machine.participants().count(), 1);
    }
}

#[test]
fn a_changed_announcement_is_repeated_to_discovered_peers() {
    let mut domain = on_one_host(2);
    domain.run_for(millis(50));
    domain.cuts = vec![(0, 1)];
    let now = domain.now;
    let machine = &mut domain.nodes[0].machine;
    machine.update_user_data(now, b"enclave=/elsewhere;".to_vec());
    domain.run_for(millis(50));
    domain.cuts.clear();
    domain.run_for(millis(60));
    let announced = domain.nodes[1].machine.participants().next();
    assert_eq!(
        announced.expect("the first").user_data,
        b"enclave=/elsewhere;"
    );
}
