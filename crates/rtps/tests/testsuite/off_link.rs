//! Participants beyond a router: ignored, unless they are static peers.

use pteros_test_support::rtps::domain;

use domain::{Domain, config};
use pteros_rtps::locator::{Locator, OwnAddress};
use pteros_rtps::participant::ParticipantConfig;
use pteros_rtps::time::Duration;

const FAR: [u8; 4] = [192, 168, 77, 9];

/// A participant beyond a router, which has the first one as a static peer.
fn far() -> ParticipantConfig {
    let mut far = config(1, 0);
    let here = Locator::udp_v4(FAR, 7410);
    far.network.addresses = vec![OwnAddress {
        ip: FAR.into(),
        prefix_length: 24,
    }];
    far.metatraffic_unicast = vec![here];
    far.default_unicast = vec![Locator { port: 7411, ..here }];
    far.announce_to = vec![domain::address(0)];
    far
}

/// How many peers the near one has after 5 s, and the datagrams it has sent to the
/// far one.
fn meet(near: ParticipantConfig) -> (usize, usize, u64) {
    let mut domain = Domain::new(3);
    let near = domain.join(near);
    domain.join(far());
    domain.run_for(Duration::from_secs(5));
    let sent = domain.sent.get(&Locator::udp_v4(FAR, 7410));
    let machine = &domain.nodes[near].machine;
    (
        machine.participants().count(),
        sent.map_or(0, |(datagrams, _)| *datagrams),
        machine.stats().off_link,
    )
}

#[test]
fn a_participant_beyond_a_router_is_not_answered() {
    let (peers, sent, ignored) = meet(config(0, 0));
    assert_eq!((peers, sent), (0, 0));
    assert!(ignored > 0);
}

#[test]
fn a_static_peer_beyond_a_router_is_answered() {
    let mut near = config(0, 0);
    near.announce_to.push(Locator::udp_v4(FAR, 7412));
    let (peers, sent, ignored) = meet(near);
    assert_eq!((peers, ignored), (1, 0));
    assert!(sent > 0);
}

#[test]
fn behind_a_tunnel_nothing_is_judged_by_its_address() {
    let mut near = config(0, 0);
    near.network.addresses[0].prefix_length = 32;
    assert_eq!(meet(near).0, 1);
    // A network of two hosts says nothing either, one of four does.
    for (prefix_length, peers) in [(31, 1), (30, 0)] {
        let mut near = config(0, 0);
        near.network.addresses[0].prefix_length = prefix_length;
        assert_eq!(meet(near).0, peers, "/{prefix_length}");
    }
}
