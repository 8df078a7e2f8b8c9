//! Many participants that authenticate at once on an overloaded host. The number of
//! other peers does not increase how often a participant is asked for its keys.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pteros_security::keystore::Options;

use crate::security::harness::{SECOND, SecuredContexts, TestKeystore};

/// The number of other participants.
const OTHERS: usize = 8;
/// The interval at which they start.
const PAUSE: u64 = SECOND / 10;

#[test]
fn an_overloaded_peer_is_asked_for_its_keys_only() {
    let keys = TestKeystore::new(&Options::default());
    let enclave = keys.enclave("/crowd");
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&enclave)).unwrap();
    let busy = Arc::new(Mutex::new(BTreeSet::new()));
    let silent = busy.clone();
    contexts.network().delivery = Some(Box::new(move |from, _| {
        usize::from(!silent.lock().unwrap().contains(&from))
    }));
    for _ in 0..OTHERS {
        let other = contexts.open(Some(&enclave)).unwrap();
        assert!(contexts.run_until(5 * SECOND, |contexts| contexts.has_authenticated(0, other)));
        busy.lock().unwrap().insert(other);
        contexts.run(PAUSE);
    }
    contexts.network().sent.clear();
    contexts.run(SECOND);
    let asked = contexts
        .network()
        .sent
        .iter()
        .filter(|s| s.from == 0)
        .count();
    // Each about every 200 ms, after a first half of a second.
    assert!(asked < OTHERS * 10, "{asked} datagrams in a second");

    busy.lock().unwrap().clear();
    assert!(contexts.run_until(5 * SECOND, |contexts| {
        (1..=OTHERS).all(|other| contexts.has_authenticated(other, 0))
    }));
    let (writer, reader) = (
        contexts.writer(0, "rt/chatter"),
        contexts.reader(1, "rt/chatter"),
    );
    assert!(contexts.run_until(5 * SECOND, |_| writer.matched_count() == 1));
    contexts.publish(0, &writer, "all of them heard of it");
    assert!(contexts.run_until(SECOND, |contexts| contexts.taken(1, &reader).len() == 1));
}
