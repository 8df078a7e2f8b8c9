//! Changes between authenticated contexts: changed files (revalidation,
//! revocation), and one of two peers that has lost the other.

use pteros_runtime::rtps::id::EntityId;
use pteros_runtime::rtps::wire::Submessage;
use pteros_security::keystore::Options;

use crate::security::harness::{SECOND, SecuredContexts, TestKeystore};

const PERMISSIONS: &str = "enclaves/talker/permissions.xml";
const WIDE: &str = "<topic>rt/*</topic>";
const NARROW: &str = "<topic>rt/allowed*</topic>";

fn known() -> (TestKeystore, SecuredContexts) {
    let keys = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    contexts.open(Some(&keys.enclave("/listener"))).unwrap();
    assert!(contexts.run_until(5 * SECOND, both));
    (keys, contexts)
}

fn both(contexts: &SecuredContexts) -> bool {
    contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0)
}

#[test]
fn changed_permissions_apply_to_live_matches_without_a_restart() {
    let (keys, mut contexts) = known();
    let topics = ["rt/allowed", "rt/other"];
    let writers = topics.map(|topic| contexts.writer(0, topic));
    let readers = topics.map(|topic| contexts.reader(1, topic));
    let here = contexts.reader(0, "rt/other");
    let matched = |other: usize| {
        let counts = [&writers[0], &writers[1]].map(|writer| writer.matched_count());
        counts == [1, other]
    };
    assert!(contexts.run_until(10 * SECOND, |_| matched(2)));

    keys.edit(PERMISSIONS, &[(WIDE, NARROW)]);
    // Checked within five seconds, and authenticated again.
    assert!(contexts.run_until(6 * SECOND, |_| matched(0)
        || writers[0].matched_count() == 0));
    assert!(contexts.run_until(5 * SECOND, |contexts| both(contexts) && matched(0)));
    contexts.publish(0, &writers[0], "for you");
    contexts.publish(0, &writers[1], "for nobody");
    contexts.run(10 * SECOND);
    assert!(matched(0));
    assert_eq!(contexts.taken(1, &readers[0]), ["for you"]);
    assert_eq!(contexts.taken(1, &readers[1]), Vec::<String>::new());
    assert_eq!(contexts.taken(0, &here), Vec::<String>::new());
    // Both sides know the denying rule; the remote side has the new permissions.
    for core in [0, 1] {
        let (writer, reader) = (writers[1].announced(), readers[1].announced());
        let why = contexts
            .core(core)
            .security()
            .why_denied(&writer, &reader)
            .unwrap();
        assert!(
            why.contains("denied by") && why.contains("/talker") || core == 0,
            "{why}"
        );
        assert!(why.contains("permissions"), "{why}");
    }
    // Nor can it be created again.
    assert!(
        contexts
            .core(0)
            .create_writer(crate::security::harness::spec("rt/other"))
            .is_err()
    );

    keys.edit(PERMISSIONS, &[(NARROW, WIDE)]);
    assert!(contexts.run_until(11 * SECOND, |_| matched(2)));
    contexts.publish(0, &writers[1], "for both");
    contexts.run(SECOND);
    assert_eq!(contexts.taken(1, &readers[1]), ["for both"]);
    assert_eq!(contexts.taken(0, &here), ["for both"]);
}

#[test]
fn a_writer_that_lost_its_permission_loses_readers_without_identity_too() {
    let keys = TestKeystore::new(&Options::default());
    let talker = keys.enclave("/talker");
    crate::security::open_topics(&keys);
    // Anybody may read them, but not write.
    let control = |on: bool| format!("<enable_write_access_control>{on}<");
    keys.edit_governance(&[(&control(false), &control(true))]);
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&talker)).unwrap();
    contexts.open(None).unwrap();
    let writer = contexts.writer(0, "rt/open");
    let reader = contexts.reader(1, "rt/open");
    assert!(contexts.run_until(10 * SECOND, |_| writer.matched_count() == 1));
    keys.edit(PERMISSIONS, &[(WIDE, NARROW)]);
    assert!(contexts.run_until(6 * SECOND, |_| writer.matched_count() == 0));
    contexts.publish(0, &writer, "for nobody");
    contexts.run(10 * SECOND);
    assert_eq!(writer.matched_count(), 0);
    assert_eq!(contexts.taken(1, &reader), Vec::<String>::new());
    let (own, remote) = (writer.guid(), reader.data.guid);
    let why = contexts
        .core(0)
        .security()
        .why_unmatched(own, remote)
        .unwrap();
    assert!(why.contains("permissions of this context"), "{why}");

    keys.edit(PERMISSIONS, &[(NARROW, WIDE)]);
    assert!(contexts.run_until(11 * SECOND, |_| writer.matched_count() == 1));
    contexts.publish(0, &writer, "for all");
    contexts.run(SECOND);
    assert_eq!(contexts.taken(1, &reader), ["for all"]);
}

#[test]
fn a_broken_or_unchanged_file_affects_no_peer() {
    let (keys, mut contexts) = known();
    let writer = contexts.writer(0, "rt/chatter");
    let reader = contexts.reader(1, "rt/chatter");
    assert!(contexts.run_until(10 * SECOND, |_| writer.matched_count() == 1));
    keys.keystore.sign(crate::security::harness::NOW).unwrap();
    let stays = |contexts: &mut SecuredContexts| {
        let parted = |contexts: &SecuredContexts| !both(contexts) || writer.matched_count() != 1;
        !contexts.run_until(12 * SECOND, parted)
    };
    assert!(stays(&mut contexts));
    let file = keys.root.join("enclaves/talker/permissions.p7s");
    std::fs::write(&file, "half of i").unwrap();
    assert!(stays(&mut contexts));
    std::fs::remove_file(&file).unwrap();
    assert!(stays(&mut contexts));
    keys.edit_governance(&[("ENCRYPT", "SIGN")]);
    assert!(stays(&mut contexts));
    contexts.publish(0, &writer, "as ever");
    contexts.run(SECOND);
    assert_eq!(contexts.taken(1, &reader), ["as ever"]);
}

#[test]
fn a_context_that_lost_a_peer_authenticates_it_again_at_once() {
    for deaf in [0, 1] {
        let (_keys, mut contexts) = known();
        let writers = [0, 1].map(|index| contexts.writer(index, "rt/chatter"));
        let readers = [0, 1].map(|index| contexts.reader(index, "rt/chatter"));
        // One matches the remote reader and its own.
        let matched = || writers.iter().all(|writer| writer.matched_count() == 2);
        assert!(contexts.run_until(10 * SECOND, |_| matched()));
        let speaks = 1 - deaf;
        contexts.network().delivery = Some(Box::new(move |from, _| usize::from(from != speaks)));
        // As long as the lease.
        assert!(contexts.run_until(30 * SECOND, |contexts| {
            !contexts.has_authenticated(deaf, speaks)
        }));
        assert!(contexts.has_authenticated(speaks, deaf));
        contexts.network().delivery = None;
        assert!(contexts.run_until(8 * SECOND, both));
        assert!(contexts.run_until(5 * SECOND, |_| matched()), "{deaf}");
        let taken =
            |contexts: &SecuredContexts, index: usize| contexts.taken(index, &readers[index]);
        for index in [0, 1] {
            taken(&contexts, index);
        }
        contexts.publish(0, &writers[0], "from 0");
        contexts.publish(1, &writers[1], "from 1");
        contexts.run(SECOND);
        for index in [0, 1] {
            let mut all = taken(&contexts, index);
            all.sort();
            assert_eq!(all, ["from 0", "from 1"]);
        }
    }
}

/// Cyclone DDS and Fast DDS reply to no handshake of a known peer. After an outage
/// longer than only one of the two leases, neither would discover the other.
#[test]
fn a_peer_that_still_knows_us_and_replies_to_nothing_gets_a_goodbye_and_a_new_handshake() {
    let (_keys, mut contexts) = known();
    let writer = contexts.writer(1, "rt/chatter");
    let reader = contexts.reader(0, "rt/chatter");
    assert!(contexts.run_until(10 * SECOND, |_| writer.matched_count() == 1));
    contexts.network().delivery = Some(Box::new(|from, _| usize::from(from != 1)));
    assert!(contexts.run_until(30 * SECOND, |contexts| !contexts.has_authenticated(0, 1)));
    // Handshake messages of context 0 are ignored, the rest is not.
    let is_handshake = |bytes: &[u8]| bytes.windows(12).any(|w| w == b"dds.sec.auth");
    contexts.network().delivery = Some(Box::new(move |from, bytes| {
        usize::from(from != 0 || !is_handshake(bytes))
    }));
    assert!(contexts.run_until(25 * SECOND, |contexts| !contexts.has_authenticated(1, 0)));
    assert!(!contexts.has_authenticated(0, 1));
    contexts.network().delivery = None;
    assert!(contexts.run_until(15 * SECOND, both));
    assert!(contexts.run_until(5 * SECOND, |_| writer.matched_count() == 1));
    contexts.publish(1, &writer, "again");
    contexts.run(SECOND);
    assert_eq!(contexts.taken(0, &reader), ["again"]);
}

/// Fast DDS 2.9 accepts only an unprotected goodbye, and of announcements and
/// goodbyes the one with the highest sequence number.
#[test]
fn an_unprotected_goodbye_has_a_sequence_number_after_past_and_before_later_announcements() {
    let (keys, mut contexts) = known();
    keys.edit(PERMISSIONS, &[(WIDE, NARROW)]);
    assert!(contexts.run_until(6 * SECOND, |contexts| !both(contexts)));
    assert!(contexts.run_until(5 * SECOND, both));
    let mut said = Vec::new();
    contexts.for_each_sent(0, |message| {
        if let Submessage::Data(data) = message
            && data.writer == EntityId::SPDP_WRITER
        {
            said.push((data.sequence, data.key_only));
        }
    });
    assert!(said.is_sorted(), "{said:?}");
    let goodbyes: Vec<_> = said.iter().filter(|(_, ends)| *ends).collect();
    let (first, last) = (said.first().unwrap(), said.last().unwrap());
    assert!(!goodbyes.is_empty() && !first.1 && !last.1, "{said:?}");
    for (number, _) in goodbyes {
        let same = said.iter().filter(|(other, _)| other == number);
        assert!(same.clone().all(|(_, ends)| *ends), "{said:?}");
    }
}
