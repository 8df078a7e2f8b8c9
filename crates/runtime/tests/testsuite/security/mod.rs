//! Secured contexts in simulated time: authentication and access control.
mod attacks;
mod harness;
mod many_peers;
mod revalidation;

use harness::{SECOND, SecuredContexts, TestKeystore};
use pteros_runtime::error::{EndpointError, OpenError};
use pteros_runtime::qos::QosProfile;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::rtps::id::EntityId;
use pteros_runtime::rtps::locator::Locator;
use pteros_runtime::rtps::outbox::Outbox;
use pteros_runtime::rtps::participant::{Participant, ParticipantConfig};
use pteros_runtime::rtps::receiver::MessageReader;
use pteros_runtime::rtps::time::Instant;
use pteros_runtime::rtps::wire::{SecureKind, Submessage};
use pteros_security::keystore::Options;

fn same_keystore() -> (TestKeystore, SecuredContexts) {
    let keys = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    contexts.open(Some(&keys.enclave("/listener"))).unwrap();
    (keys, contexts)
}

#[test]
fn two_contexts_of_one_keystore_authenticate_each_other() {
    let (_keys, mut contexts) = same_keystore();
    let both = |contexts: &SecuredContexts| {
        contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0)
    };
    assert!(contexts.run_until(5 * SECOND, both));
    let known = contexts.core(0).security().authenticated();
    assert_eq!(known.len(), 1);
    assert!(known[0].1.contains("/listener"), "{known:?}");
    // Half of the prefix comes from the certificate.
    assert_eq!(contexts.prefix(0).0[0] & 0x80, 0x80);
}

#[test]
fn authentication_succeeds_on_a_lossy_network() {
    for seed in 0..20 {
        let (_keys, mut contexts) = same_keystore();
        contexts.network().make_lossy(25, seed);
        let both = |contexts: &SecuredContexts| {
            contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0)
        };
        assert!(contexts.run_until(60 * SECOND, both), "seed {seed}");
    }
}

#[test]
fn an_unauthenticated_peer_gets_only_announcements_and_the_handshake() {
    let keys = TestKeystore::new(&Options::default());
    let others = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    contexts.open(Some(&others.enclave("/listener"))).unwrap();
    contexts.open(None).unwrap();
    contexts.run(30 * SECOND);
    for one in 0..2 {
        assert!(contexts.core(one).security().authenticated().is_empty());
        assert!(contexts.core(one).graph().participants().is_empty());
        let mut handshakes = 0;
        contexts.for_each_sent(one, |submessage| {
            let Some(writer) = submessage.writer() else {
                return;
            };
            let is_open = [EntityId::SPDP_WRITER, EntityId::STATELESS_WRITER].contains(&writer);
            assert!(is_open, "{submessage:?}");
            handshakes += usize::from(writer == EntityId::STATELESS_WRITER);
        });
        assert!(handshakes > 0);
    }
    // Unprotected announcements contain no names.
    let sent = &contexts.network().sent;
    let secured = sent.iter().filter(|sent| sent.from < 2);
    let says = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
    assert!(secured.clone().count() > 10);
    assert!(secured.into_iter().all(|s| !says(&s.bytes, b"enclave=")));
}

#[test]
fn an_unusable_enclave_is_an_error_with_file_and_remedy() {
    let keys = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    let missing = keys.root.join("enclaves/nobody");
    let Err(OpenError::Enclave(faults)) = contexts.open(Some(&missing)) else {
        panic!("opened");
    };
    assert!(faults[0].contains("enclaves/nobody"));
    let mut contexts = SecuredContexts::default();
    let folder = keys.enclave("/talker");
    std::fs::remove_file(folder.join("key.pem")).unwrap();
    let refusal = contexts.open(Some(&folder)).unwrap_err().to_string();
    assert!(refusal.contains("key.pem"), "{refusal}");
    // The missing permission, and the remedy.
    let nodes = "<topic>ros_discovery_info</topic>";
    let domain = "<id>0</id>";
    for (edit, lacks) in [
        ((nodes, ""), "publish 'ros_discovery_info'"),
        ((domain, "<id>7</id>"), "add the domain to a rule"),
    ] {
        let folder = keys.enclave("/listener");
        keys.edit("enclaves/listener/permissions.xml", &[edit]);
        let refusal = SecuredContexts::default().open(Some(&folder)).unwrap_err();
        let refusal = refusal.to_string();
        assert!(refusal.contains(lacks), "{refusal}");
        assert!(refusal.contains("permissions.p7s:"), "{refusal}");
        assert!(refusal.contains("sign it again"), "{refusal}");
    }
}

/// Neither side would accept anything from the other; the reason is reported at
/// once.
#[test]
fn no_handshake_begins_with_a_peer_whose_governance_protects_differently() {
    let keys = TestKeystore::new(&Options::default());
    let (talker, listener) = (keys.enclave("/talker"), keys.enclave("/listener"));
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&talker)).unwrap();
    let kind = |kind: &str| format!("<rtps_protection_kind>{kind}<");
    keys.edit_governance(&[(&kind("ENCRYPT"), &kind("SIGN"))]);
    contexts.open(Some(&listener)).unwrap();
    contexts.run(30 * SECOND);
    for one in 0..2 {
        assert!(contexts.core(one).security().authenticated().is_empty());
        assert!(!contexts.was_sent(one, "dds.sec.auth"));
    }
    // A peer with the same governance is authenticated.
    contexts.open(Some(&keys.enclave("/third"))).unwrap();
    assert!(contexts.run_until(10 * SECOND, |contexts| contexts.has_authenticated(1, 2)));
    assert!(!contexts.has_authenticated(0, 2));
}

#[test]
fn messages_arrive_and_neither_they_nor_names_are_readable_on_the_wire() {
    let (_keys, mut contexts) = same_keystore();
    let writer = contexts.writer(0, "rt/secret_topic");
    let reader = contexts.reader(1, "rt/secret_topic");
    contexts.core(0).discovery().add_node("secret_node", "/");
    let matched = |_: &SecuredContexts| writer.matched_count() == 1;
    assert!(contexts.run_until(10 * SECOND, matched));
    for text in ["secret one", "secret two"] {
        contexts.publish(0, &writer, text);
    }
    contexts.run(SECOND);
    assert_eq!(contexts.taken(1, &reader), ["secret one", "secret two"]);
    let nodes = contexts.core(1).graph().nodes();
    assert!(nodes.iter().any(|node| node.name == "secret_node"));
    assert_eq!(nodes[0].enclave.as_deref(), Some("/"));
    assert!(!contexts.was_sent(0, "secret") && !contexts.was_sent(1, "secret"));
}

#[test]
fn messages_arrive_on_a_lossy_network_whatever_is_lost() {
    for seed in 0..10 {
        let (_keys, mut contexts) = same_keystore();
        let writer = contexts.writer(0, "rt/chatter");
        let reader = contexts.reader(1, "rt/chatter");
        contexts.network().make_lossy(20, seed);
        let matched = |_: &SecuredContexts| writer.matched_count() == 1;
        assert!(contexts.run_until(60 * SECOND, matched), "seed {seed}");
        let sent: Vec<String> = (0..20).map(|n| format!("message {n}")).collect();
        for text in &sent {
            contexts.publish(0, &writer, text);
            contexts.run(SECOND / 10);
        }
        contexts.run(20 * SECOND);
        assert_eq!(contexts.taken(1, &reader), sent, "seed {seed}");
    }
}

/// Permissions to publish on one topic and to subscribe to another.
const POLICY_OF_TALKER: &[(&str, &str)] = &[("<topic>rt/*</topic>", "<topic>rt/allowed*</topic>")];

#[test]
fn an_endpoint_without_permission_is_refused_with_the_rule() {
    let keys = TestKeystore::new(&Options::default());
    let talker = keys.enclave("/talker");
    keys.edit("enclaves/talker/permissions.xml", POLICY_OF_TALKER);
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&talker)).unwrap();
    let core = contexts.core(0);
    assert!(core.create_writer(harness::spec("rt/allowed_one")).is_ok());
    let refused = core.create_writer(harness::spec("rt/other"));
    let Err(EndpointError::Denied(why)) = refused.map(|_| ()) else {
        panic!("not refused");
    };
    assert!(why.contains("permissions.p7s:"), "{why}");
    let refused = core.create_reader(harness::spec("rt/other"), DeliveryForm::Bytes, false);
    assert!(matches!(refused.map(|_| ()), Err(EndpointError::Denied(_))));
}

#[test]
fn a_remote_writer_without_permission_is_not_matched_and_the_rule_is_reported() {
    // The publishing context has a governance of its own that requires no
    // permission.
    let keys = TestKeystore::new(&Options::default());
    let talker = keys.enclave("/talker");
    let listener = keys.enclave("/listener");
    keys.edit("enclaves/talker/permissions.xml", POLICY_OF_TALKER);
    let strict = std::fs::read(keys.root.join("enclaves/governance.p7s")).unwrap();
    std::fs::remove_file(listener.join("governance.p7s")).unwrap();
    std::fs::write(listener.join("governance.p7s"), strict).unwrap();
    let lax = "<enable_write_access_control>false</enable_write_access_control>";
    keys.edit_governance(&[(&lax.replace("false", "true"), lax)]);
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&talker)).unwrap();
    contexts.open(Some(&listener)).unwrap();
    let allowed = contexts.writer(0, "rt/allowed");
    let denied = contexts.writer(0, "rt/other");
    let readers = ["rt/allowed", "rt/other"].map(|topic| contexts.reader(1, topic));
    let matched = |_: &SecuredContexts| allowed.matched_count() == 1;
    assert!(contexts.run_until(10 * SECOND, matched));
    contexts.publish(0, &denied, "not for you");
    contexts.publish(0, &allowed, "for you");
    contexts.run(5 * SECOND);
    assert_eq!(contexts.taken(1, &readers[0]), ["for you"]);
    assert_eq!(contexts.taken(1, &readers[1]), Vec::<String>::new());
    let why = contexts
        .core(1)
        .security()
        .why_unmatched(readers[1].data.guid, denied.guid());
    let why = why.unwrap();
    assert!(why.contains("denied by permissions of peer"), "{why}");
}

#[test]
fn forgeable_announcements_and_goodbyes_affect_no_peer() {
    let (_keys, mut contexts) = same_keystore();
    let writer = contexts.writer(0, "rt/chatter");
    let reader = contexts.reader(1, "rt/chatter");
    let matched = |_: &SecuredContexts| writer.matched_count() == 1;
    assert!(contexts.run_until(10 * SECOND, matched));
    // Everything that was sent unprotected is replayed, at the wrong time, and with
    // it a goodbye in the name of the publishing context.
    let mut participant = Participant::new(
        Instant::ZERO,
        ParticipantConfig {
            announce_to: vec![Locator::udp_v4([127, 0, 0, 1], 7412)],
            ..ParticipantConfig::new(contexts.prefix(0), 0)
        },
    );
    let mut outbox = Outbox::new();
    participant.poll_transmit(Instant::ZERO, &mut outbox);
    participant.shut_down(Instant::ZERO, &mut outbox);
    let forged: Vec<Vec<u8>> = outbox.iter().map(|datagram| datagram.to_vec()).collect();
    assert!(forged.len() >= 2);
    let replayed: Vec<_> = contexts.network().sent.clone();
    {
        let mut network = contexts.network();
        for bytes in forged {
            network.forge(0, 1, bytes);
        }
        for sent in replayed {
            network.forge(sent.from, 1 - sent.from, sent.bytes);
        }
    }
    contexts.run(5 * SECOND);
    assert!(contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0));
    contexts.publish(0, &writer, "still here");
    contexts.run(SECOND);
    assert_eq!(contexts.taken(1, &reader), ["still here"]);
    assert_eq!(writer.matched_count(), 1);
}

#[test]
fn a_peer_that_says_goodbye_is_removed_at_once() {
    let (_keys, mut contexts) = same_keystore();
    let both = |contexts: &SecuredContexts| {
        contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0)
    };
    assert!(contexts.run_until(10 * SECOND, both));
    contexts.run(SECOND);
    contexts.cores[1].take().unwrap().close();
    contexts.run(SECOND);
    assert_eq!(contexts.core(0).security().authenticated(), []);
    assert!(contexts.core(0).graph().participants().is_empty());
}

/// A governance that admits participants without identity to open topics.
fn open_topics(keys: &TestKeystore) {
    keys.edit_governance(&[
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
fn a_peer_without_identity_gets_only_open_topics_and_only_if_the_governance_admits_it() {
    let keys = TestKeystore::new(&Options::default());
    let talker = keys.enclave("/talker");
    open_topics(&keys);
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&talker)).unwrap();
    contexts.open(None).unwrap();
    let writers = ["rt/open", "rt/closed"].map(|topic| contexts.writer(0, topic));
    let readers = ["rt/open", "rt/closed"].map(|topic| contexts.reader(1, topic));
    let matched = |_: &SecuredContexts| writers[0].matched_count() == 1;
    assert!(contexts.run_until(10 * SECOND, matched));
    contexts.publish(0, &writers[0], "for all");
    contexts.publish(0, &writers[1], "for few");
    contexts.run(5 * SECOND);
    assert_eq!(contexts.taken(1, &readers[0]), ["for all"]);
    assert_eq!(contexts.taken(1, &readers[1]), Vec::<String>::new());
    assert!(!contexts.was_sent(0, "for few") && !contexts.was_sent(0, "rt/closed"));
}

#[test]
fn a_revoked_or_expired_peer_is_removed_within_five_seconds() {
    let keys = TestKeystore::new(&Options::default());
    let talker = keys.enclave("/talker");
    let listener = keys.enclave("/listener");
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&talker)).unwrap();
    contexts.open(Some(&listener)).unwrap();
    let both = |contexts: &SecuredContexts| {
        contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0)
    };
    assert!(contexts.run_until(10 * SECOND, both));
    contexts.run(20 * SECOND);
    assert!(both(&contexts));
    keys.keystore
        .revoke("/listener", &Options::default(), harness::NOW)
        .unwrap();
    contexts.run(5 * SECOND + SECOND / 10);
    assert_eq!(contexts.core(0).security().authenticated(), []);
    assert!(contexts.core(0).graph().participants().is_empty());
    // It does not come back.
    contexts.run(60 * SECOND);
    assert_eq!(contexts.core(0).security().authenticated(), []);

    let days = Options {
        days: 1,
        ..Options::default()
    };
    let keys = TestKeystore::new(&Options::default());
    let brief = keys
        .keystore
        .create_enclave("/brief", None, &days, harness::NOW);
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    contexts.open(Some(&brief.unwrap())).unwrap();
    let day = 86_400 * SECOND;
    contexts.network().now = day - 60 * SECOND;
    assert!(contexts.run_until(10 * SECOND, both));
    let left = day - contexts.network().now;
    contexts.run(left - 2 * SECOND);
    assert!(both(&contexts));
    contexts.run(4 * SECOND);
    assert_eq!(contexts.core(0).security().authenticated(), []);
}

#[test]
fn an_endpoint_that_changes_while_its_keys_are_awaited_is_matched_alone() {
    let keys = TestKeystore::new(&Options::default());
    // Endpoints are announced in plain text. Their keys are encrypted.
    let edit = |name: &str, from: &str, to: &str| {
        keys.edit_governance(&[(&format!("<{name}>{from}<"), &format!("<{name}>{to}<"))]);
    };
    edit("rtps_protection_kind", "ENCRYPT", "NONE");
    edit("enable_discovery_protection", "true", "false");
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    contexts.open(Some(&keys.enclave("/listener"))).unwrap();
    contexts.run(5 * SECOND);
    assert!(contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0));
    let to = contexts.prefix(0);
    contexts.network().delivery = Some(Box::new(move |from, bytes| {
        let mut message = MessageReader::new(bytes, to).unwrap();
        let is_encrypted = message
            .any(|(_, submessage)| matches!(submessage, Submessage::Secure(SecureKind::Prefix, _)));
        usize::from(from == 0 || !is_encrypted)
    }));
    let topics = ["rt/changed", "rt/other"];
    let writers = topics.map(|topic| contexts.writer(0, topic));
    let readers = topics.map(|topic| contexts.reader(1, topic));
    contexts.run(2 * SECOND);
    for (writer, reader) in writers.iter().zip(&readers) {
        let why = contexts
            .core(0)
            .security()
            .why_unmatched(writer.guid(), reader.data.guid);
        assert_eq!(why.as_deref(), Some("its keys have not arrived yet"));
    }
    let changed = QosProfile {
        user_data: b"changed".to_vec(),
        ..QosProfile::from_endpoint(&readers[0].announced().qos)
    };
    contexts
        .core(1)
        .set_reader_qos(&readers[0], &changed)
        .unwrap();
    contexts.run(SECOND);
    contexts.network().delivery = None;
    let all = |_: &SecuredContexts| writers.iter().all(|writer| writer.matched_count() == 1);
    assert!(contexts.run_until(10 * SECOND, all));
    for (writer, topic) in writers.iter().zip(topics) {
        contexts.publish(0, writer, topic);
    }
    contexts.run(SECOND);
    for (reader, topic) in readers.iter().zip(topics) {
        assert_eq!(contexts.taken(1, reader), [topic]);
    }
}
