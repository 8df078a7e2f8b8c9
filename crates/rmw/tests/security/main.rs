//! Secured contexts in simulated time: who is let in, and who is not.
#![allow(
    clippy::disallowed_methods,
    reason = "keystores are files in folders of their own"
)]

mod world;

use pteros_rmw::error::OpenError;
use pteros_rmw::rtps::id::EntityId;
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
}
