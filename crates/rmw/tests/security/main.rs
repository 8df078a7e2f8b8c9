//! Secured contexts in simulated time: who is let in, and who is not.
mod attacks;
mod changes;
mod crowd;
mod world;

use pteros_rmw::error::{EndpointError, OpenError};
use pteros_rmw::reader::Wants;
use pteros_rmw::rtps::id::EntityId;
use pteros_rmw::rtps::locator::Locator;
use pteros_rmw::rtps::outbox::Outbox;
use pteros_rmw::rtps::participant::{Participant, ParticipantConfig};
use pteros_rmw::rtps::time::Instant;
use pteros_security::keystore::Options;
use world::{Keys, SECOND, World};

fn same_keystore() -> (Keys, World) {
    let keys = Keys::new(&Options::default());
    let mut world = World::default();
    world.open(Some(&keys.enclave("/talker"))).unwrap();
    world.open(Some(&keys.enclave("/listener"))).unwrap();
    (keys, world)
}

#[test]
fn two_contexts_of_one_keystore_prove_to_each_other_who_they_are() {
    let (_keys, mut world) = same_keystore();
    let both = |world: &World| world.knows(0, 1) && world.knows(1, 0);
    assert!(world.run_until(5 * SECOND, both));
    let known = world.core(0).authenticated();
    assert_eq!(known.len(), 1);
    assert!(known[0].1.contains("/listener"), "{known:?}");
    // Half of the prefix comes from the certificate.
    assert_eq!(world.prefix(0).0[0] & 0x80, 0x80);
}

#[test]
fn through_a_bad_cable_they_do_as_well() {
    for seed in 0..20 {
        let (_keys, mut world) = same_keystore();
        world.network().spoil(25, seed);
        let both = |world: &World| world.knows(0, 1) && world.knows(1, 0);
        assert!(world.run_until(60 * SECOND, both), "seed {seed}");
    }
}

#[test]
fn nothing_but_announcements_and_the_handshake_is_said_to_a_stranger() {
    let keys = Keys::new(&Options::default());
    let others = Keys::new(&Options::default());
    let mut world = World::default();
    world.open(Some(&keys.enclave("/talker"))).unwrap();
    world.open(Some(&others.enclave("/listener"))).unwrap();
    world.open(None).unwrap();
    world.run(30 * SECOND);
    for one in 0..2 {
        assert!(world.core(one).authenticated().is_empty());
        assert!(world.core(one).graph().participants().is_empty());
        let mut handshakes = 0;
        world.each_sent(one, |submessage| {
            let Some(writer) = submessage.writer() else {
                return;
            };
            let is_open = [EntityId::SPDP_WRITER, EntityId::STATELESS_WRITER].contains(&writer);
            assert!(is_open, "{submessage:?}");
            handshakes += usize::from(writer == EntityId::STATELESS_WRITER);
        });
        assert!(handshakes > 0);
    }
    // What is announced in the open names nobody.
    let sent = &world.network().sent;
    let secured = sent.iter().filter(|sent| sent.from < 2);
    let says = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
    assert!(secured.clone().count() > 10);
    assert!(secured.into_iter().all(|s| !says(&s.bytes, b"enclave=")));
}

#[test]
fn an_enclave_that_cannot_be_used_is_an_error_with_file_and_remedy() {
    let keys = Keys::new(&Options::default());
    let mut world = World::default();
    let missing = keys.root.join("enclaves/nobody");
    let Err(OpenError::Enclave(faults)) = world.open(Some(&missing)) else {
        panic!("opened");
    };
    assert!(faults[0].to_string().contains("enclaves/nobody"));
    let mut world = World::default();
    let folder = keys.enclave("/talker");
    std::fs::remove_file(folder.join("key.pem")).unwrap();
    let refusal = world.open(Some(&folder)).unwrap_err().to_string();
    assert!(refusal.contains("key.pem"), "{refusal}");
    // What it lacks to be here, and what to do.
    let nodes = "<topic>ros_discovery_info</topic>";
    let domain = "<id>0</id>";
    for (edit, lacks) in [
        ((nodes, ""), "publish 'ros_discovery_info'"),
        ((domain, "<id>7</id>"), "add the domain to a rule"),
    ] {
        let folder = keys.enclave("/listener");
        keys.edit("enclaves/listener/permissions.xml", &[edit]);
        let refusal = World::default().open(Some(&folder)).unwrap_err();
        let refusal = refusal.to_string();
        assert!(refusal.contains(lacks), "{refusal}");
        assert!(refusal.contains("permissions.p7s:"), "{refusal}");
        assert!(refusal.contains("sign it anew"), "{refusal}");
    }
}

/// Nothing that one says would be believed by the other; the reason is told at once.
#[test]
fn whose_governance_protects_otherwise_is_not_begun_with() {
    let keys = Keys::new(&Options::default());
    let (talker, listener) = (keys.enclave("/talker"), keys.enclave("/listener"));
    let mut world = World::default();
    world.open(Some(&talker)).unwrap();
    let kind = |kind: &str| format!("<rtps_protection_kind>{kind}<");
    keys.govern(&[(&kind("ENCRYPT"), &kind("SIGN"))]);
    world.open(Some(&listener)).unwrap();
    world.run(30 * SECOND);
    for one in 0..2 {
        assert!(world.core(one).authenticated().is_empty());
        assert!(!world.was_said(one, "dds.sec.auth"));
    }
    // Who has the same is met.
    world.open(Some(&keys.enclave("/third"))).unwrap();
    assert!(world.run_until(10 * SECOND, |world| world.knows(1, 2)));
    assert!(!world.knows(0, 2));
}

#[test]
fn messages_arrive_and_neither_they_nor_names_are_readable_on_the_way() {
    let (_keys, mut world) = same_keystore();
    let writer = world.writer(0, "rt/secret_topic");
    let reader = world.reader(1, "rt/secret_topic");
    world.core(0).add_node("secret_node", "/");
    let matched = |_: &World| writer.matched_count() == 1;
    assert!(world.run_until(10 * SECOND, matched));
    for text in ["secret one", "secret two"] {
        world.publish(0, &writer, text);
    }
    world.run(SECOND);
    assert_eq!(world.taken(1, &reader), ["secret one", "secret two"]);
    let nodes = world.core(1).graph().nodes();
    assert!(nodes.iter().any(|node| node.name == "secret_node"));
    assert_eq!(nodes[0].enclave.as_deref(), Some("/"));
    assert!(!world.was_said(0, "secret") && !world.was_said(1, "secret"));
}

#[test]
fn messages_arrive_through_a_bad_cable_whatever_is_lost() {
    for seed in 0..10 {
        let (_keys, mut world) = same_keystore();
        let writer = world.writer(0, "rt/chatter");
        let reader = world.reader(1, "rt/chatter");
        world.network().spoil(20, seed);
        let matched = |_: &World| writer.matched_count() == 1;
        assert!(world.run_until(60 * SECOND, matched), "seed {seed}");
        let sent: Vec<String> = (0..20).map(|n| format!("message {n}")).collect();
        for text in &sent {
            world.publish(0, &writer, text);
            world.run(SECOND / 10);
        }
        world.run(20 * SECOND);
        assert_eq!(world.taken(1, &reader), sent, "seed {seed}");
    }
}

/// Permissions to publish on one topic and to subscribe to another.
const POLICY_OF_TALKER: &[(&str, &str)] = &[("<topic>rt/*</topic>", "<topic>rt/allowed*</topic>")];

#[test]
fn an_endpoint_that_the_permissions_do_not_name_is_refused_with_the_rule() {
    let keys = Keys::new(&Options::default());
    let talker = keys.enclave("/talker");
    keys.edit("enclaves/talker/permissions.xml", POLICY_OF_TALKER);
    let mut world = World::default();
    world.open(Some(&talker)).unwrap();
    let core = world.core(0);
    assert!(core.create_writer(world::spec("rt/allowed_one")).is_ok());
    let refused = core.create_writer(world::spec("rt/other"));
    let Err(EndpointError::Denied(why)) = refused.map(|_| ()) else {
        panic!("not refused");
    };
    assert!(why.contains("permissions.p7s:"), "{why}");
    let refused = core.create_reader(world::spec("rt/other"), Wants::Bytes, false);
    assert!(matches!(refused.map(|_| ()), Err(EndpointError::Denied(_))));
}

#[test]
fn what_a_peer_writes_without_permission_is_not_matched_and_the_rule_is_told() {
    // The talker has a governance of its own that asks for no permission.
    let keys = Keys::new(&Options::default());
    let talker = keys.enclave("/talker");
    let listener = keys.enclave("/listener");
    keys.edit("enclaves/talker/permissions.xml", POLICY_OF_TALKER);
    let strict = std::fs::read(keys.root.join("enclaves/governance.p7s")).unwrap();
    std::fs::remove_file(listener.join("governance.p7s")).unwrap();
    std::fs::write(listener.join("governance.p7s"), strict).unwrap();
    let lax = "<enable_write_access_control>false</enable_write_access_control>";
    keys.govern(&[(&lax.replace("false", "true"), lax)]);
    let mut world = World::default();
    world.open(Some(&talker)).unwrap();
    world.open(Some(&listener)).unwrap();
    let allowed = world.writer(0, "rt/allowed");
    let denied = world.writer(0, "rt/other");
    let readers = ["rt/allowed", "rt/other"].map(|topic| world.reader(1, topic));
    let matched = |_: &World| allowed.matched_count() == 1;
    assert!(world.run_until(10 * SECOND, matched));
    world.publish(0, &denied, "not for you");
    world.publish(0, &allowed, "for you");
    world.run(5 * SECOND);
    assert_eq!(world.taken(1, &readers[0]), ["for you"]);
    assert_eq!(world.taken(1, &readers[1]), Vec::<String>::new());
    let why = world.core(1).why_shut(readers[1].data.guid, denied.guid());
    let why = why.unwrap();
    assert!(why.contains("denied by permissions of peer"), "{why}");
}

#[test]
fn announcements_and_goodbyes_that_anybody_could_send_touch_no_peer() {
    let (_keys, mut world) = same_keystore();
    let writer = world.writer(0, "rt/chatter");
    let reader = world.reader(1, "rt/chatter");
    let matched = |_: &World| writer.matched_count() == 1;
    assert!(world.run_until(10 * SECOND, matched));
    // Everything that was sent in the open comes again, at the wrong time, and
    // with it a goodbye in the talker's name.
    let mut participant = Participant::new(
        Instant::ZERO,
        ParticipantConfig {
            announce_to: vec![Locator::udp_v4([127, 0, 0, 1], 7412)],
            ..ParticipantConfig::new(world.prefix(0), 0)
        },
    );
    let mut outbox = Outbox::new();
    participant.poll_transmit(Instant::ZERO, &mut outbox);
    participant.farewell(Instant::ZERO, &mut outbox);
    let forged: Vec<Vec<u8>> = outbox.iter().map(|datagram| datagram.to_vec()).collect();
    assert!(forged.len() >= 2);
    let replayed: Vec<_> = world.network().sent.clone();
    {
        let mut network = world.network();
        for bytes in forged {
            network.forge(0, 1, bytes);
        }
        for sent in replayed {
            network.forge(sent.from, 1 - sent.from, sent.bytes);
        }
    }
    world.run(5 * SECOND);
    assert!(world.knows(0, 1) && world.knows(1, 0));
    world.publish(0, &writer, "still here");
    world.run(SECOND);
    assert_eq!(world.taken(1, &reader), ["still here"]);
    assert_eq!(writer.matched_count(), 1);
}

#[test]
fn who_says_goodbye_is_gone_at_once() {
    let (_keys, mut world) = same_keystore();
    let both = |world: &World| world.knows(0, 1) && world.knows(1, 0);
    assert!(world.run_until(10 * SECOND, both));
    world.run(SECOND);
    world.cores[1].take().unwrap().close();
    world.run(SECOND);
    assert_eq!(world.core(0).authenticated(), []);
    assert!(world.core(0).graph().participants().is_empty());
}

/// Governance that lets those without identity take part in what is open.
fn open_topics(keys: &Keys) {
    keys.govern(&[
        (
            "<allow_unauthenticated_participants>false",
            "<allow_unauthenticated_participants>true",
        ),
        (
            "<rtps_protection_kind>ENCRYPT",
            "<rtps_protection_kind>NONE",
        ),
        (
            "<topic_rule>",
            "<topic_rule><topic_expression>rt/open*</topic_expression>\
             <enable_discovery_protection>false</enable_discovery_protection>\
             <enable_liveliness_protection>false</enable_liveliness_protection>\
             <enable_read_access_control>false</enable_read_access_control>\
             <enable_write_access_control>false</enable_write_access_control>\
             <metadata_protection_kind>NONE</metadata_protection_kind>\
             <data_protection_kind>NONE</data_protection_kind></topic_rule><topic_rule>",
        ),
    ]);
}

#[test]
fn who_has_no_identity_gets_open_topics_alone_if_the_governance_lets_it_in() {
    let keys = Keys::new(&Options::default());
    let talker = keys.enclave("/talker");
    open_topics(&keys);
    let mut world = World::default();
    world.open(Some(&talker)).unwrap();
    world.open(None).unwrap();
    let writers = ["rt/open", "rt/closed"].map(|topic| world.writer(0, topic));
    let readers = ["rt/open", "rt/closed"].map(|topic| world.reader(1, topic));
    let matched = |_: &World| writers[0].matched_count() == 1;
    assert!(world.run_until(10 * SECOND, matched));
    world.publish(0, &writers[0], "for all");
    world.publish(0, &writers[1], "for few");
    world.run(5 * SECOND);
    assert_eq!(world.taken(1, &readers[0]), ["for all"]);
    assert_eq!(world.taken(1, &readers[1]), Vec::<String>::new());
    assert!(!world.was_said(0, "for few") && !world.was_said(0, "rt/closed"));
}

#[test]
fn who_is_revoked_or_whose_certificate_ends_is_gone_within_five_seconds() {
    let keys = Keys::new(&Options::default());
    let talker = keys.enclave("/talker");
    let listener = keys.enclave("/listener");
    let mut world = World::default();
    world.open(Some(&talker)).unwrap();
    world.open(Some(&listener)).unwrap();
    let both = |world: &World| world.knows(0, 1) && world.knows(1, 0);
    assert!(world.run_until(10 * SECOND, both));
    world.run(20 * SECOND);
    assert!(both(&world));
    keys.keystore
        .revoke("/listener", &Options::default(), world::NOW)
        .unwrap();
    world.run(5 * SECOND + SECOND / 10);
    assert_eq!(world.core(0).authenticated(), []);
    assert!(world.core(0).graph().participants().is_empty());
    // It does not come back.
    world.run(60 * SECOND);
    assert_eq!(world.core(0).authenticated(), []);

    let days = Options {
        days: 1,
        ..Options::default()
    };
    let keys = Keys::new(&Options::default());
    let brief = keys
        .keystore
        .create_enclave("/brief", None, &days, world::NOW);
    let mut world = World::default();
    world.open(Some(&keys.enclave("/talker"))).unwrap();
    world.open(Some(&brief.unwrap())).unwrap();
    let day = 86_400 * SECOND;
    world.network().now = day - 60 * SECOND;
    assert!(world.run_until(10 * SECOND, both));
    let left = day - world.network().now;
    world.run(left - 2 * SECOND);
    assert!(both(&world));
    world.run(4 * SECOND);
    assert_eq!(world.core(0).authenticated(), []);
}
