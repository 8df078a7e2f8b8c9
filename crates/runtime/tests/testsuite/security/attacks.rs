//! An attacker without keys, which can send any datagram from its own address in
//! any name. Authenticated peers stay known at their locators, unauthenticated ones
//! get no further, and replayed messages prove nothing.

use pteros_runtime::rtps::id::{EntityId, GuidPrefix};
use pteros_runtime::rtps::receiver::MessageReader;
use pteros_security::keystore::Options;
use std::time::Duration;

use crate::security::harness::{PLACES_OF_HOST, SECOND, SecuredContexts, TestKeystore, address};

/// Two authenticated contexts, and the attacker.
fn known() -> (TestKeystore, SecuredContexts, usize) {
    let keys = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    contexts.open(Some(&keys.enclave("/listener"))).unwrap();
    assert!(contexts.run_until(5 * SECOND, both));
    let attacker = contexts.attacker();
    (keys, contexts, attacker)
}

fn both(contexts: &SecuredContexts) -> bool {
    contexts.has_authenticated(0, 1) && contexts.has_authenticated(1, 0)
}

/// The last datagram of a context from this writer, addressed to any reader.
fn last_of(contexts: &SecuredContexts, from: usize, writer: EntityId) -> Vec<u8> {
    let own = contexts.prefix(from);
    let network = contexts.network();
    let mut all = network.sent.iter().filter(|sent| sent.from == from);
    let says = |bytes: &[u8]| {
        let mut message = MessageReader::new(bytes, own).unwrap();
        message.any(|(_, submessage)| submessage.writer() == Some(writer))
    };
    let found = all.rfind(|sent| says(&sent.bytes)).expect("it said so");
    found.bytes.clone()
}

/// Replaces one sequence of bytes by another. Returns how often it occurred.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) -> usize {
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(old))
        .collect();
    for at in &places {
        bytes[*at..at + new.len()].copy_from_slice(new);
    }
    places.len()
}

/// The submessage kinds of a datagram.
fn kinds(datagram: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    let mut rest = &datagram[20..];
    while let [kind, _, low, high, after @ ..] = rest {
        kinds.push(*kind);
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        rest = after.get(length..).unwrap_or_default();
    }
    kinds
}

/// Increases the sequence number of an announcement.
fn make_newer(bytes: &mut [u8], writer: EntityId) {
    let id = writer.to_bytes();
    let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(&id));
    let number = at.unwrap() + 4 + 4;
    bytes[number..number + 4].copy_from_slice(&1_000_u32.to_le_bytes());
}

/// An announcement of context 0 with another port in all locators.
fn moved(contexts: &SecuredContexts, to: usize) -> Vec<u8> {
    let mut forged = last_of(contexts, 0, EntityId::SPDP_WRITER);
    let port = |index: usize| address(index).port.to_le_bytes();
    let moved = replace(&mut forged, &port(0), &port(to));
    assert!(moved > 0, "it names its port");
    make_newer(&mut forged, EntityId::SPDP_WRITER);
    forged
}

/// A goodbye of context 0, as anybody can write it.
fn goodbye(contexts: &SecuredContexts) -> Vec<u8> {
    let prefix = contexts.prefix(0);
    let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
    let mut body = vec![0, 0, 16, 0];
    body.extend(EntityId::UNKNOWN.to_bytes());
    body.extend(EntityId::SPDP_WRITER.to_bytes());
    body.extend([0, 0, 0, 0, 0, 4, 0, 0]);
    // KEY_HASH; STATUS_INFO: disposed and unregistered; the end.
    body.extend([&[0x70, 0, 16, 0], &guid[..]].concat());
    body.extend([0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0]);
    // The key: PARTICIPANT_GUID.
    body.extend([&[0, 3, 0, 0, 0x50, 0, 16, 0], &guid[..], &[1, 0, 0, 0]].concat());
    let mut bytes = b"RTPS\x02\x03\x01\x50".to_vec();
    bytes.extend(prefix.0);
    let length = u16::try_from(body.len()).unwrap().to_le_bytes();
    // Little-endian, inline QoS, a key.
    bytes.extend([0x15, 0x0b, length[0], length[1]]);
    bytes.extend(body);
    bytes
}

#[test]
fn a_forged_announcement_changes_no_locator_of_an_authenticated_peer() {
    let (_keys, mut contexts, attacker) = known();
    let forged = moved(&contexts, attacker);
    for _ in 0..20 {
        contexts.inject(attacker, 1, &forged);
        contexts.run(SECOND);
    }
    assert!(both(&contexts));
    // Announcements go to every port where a participant may be.
    let network = contexts.network();
    let recorded = &network.arrived[attacker];
    assert!(!recorded.is_empty());
    for (_, bytes) in recorded {
        for (_, submessage) in MessageReader::new(bytes, GuidPrefix([0; 12])).unwrap() {
            let writer = submessage.writer();
            let announced = writer.is_none_or(|writer| writer == EntityId::SPDP_WRITER);
            assert!(announced, "{submessage:?}");
        }
        // Nor anything protected: INFO_TS, INFO_DST, DATA.
        let kinds = kinds(bytes);
        let plain = kinds.iter().all(|kind| [0x09, 0x0e, 0x15].contains(kind));
        assert!(plain, "{kinds:x?}");
    }
}

#[test]
fn a_forged_goodbye_removes_no_authenticated_peer() {
    let (_keys, mut contexts, attacker) = known();
    let forged = goodbye(&contexts);
    for _ in 0..5 {
        contexts.inject(attacker, 1, &forged);
        contexts.run(SECOND);
        assert!(both(&contexts));
    }
    // The same goodbye ends an unsecured participant, so it is well-formed.
    let mut open = SecuredContexts::default();
    open.open(None).unwrap();
    open.open(None).unwrap();
    let meets = |contexts: &SecuredContexts| contexts.core(1).graph().participants().len() == 1;
    assert!(open.run_until(5 * SECOND, meets));
    let attacker = open.attacker();
    let forged = goodbye(&open);
    open.inject(attacker, 1, &forged);
    assert!(open.run_until(SECOND, |contexts| !meets(contexts)));
}

#[test]
fn a_replayed_handshake_proves_nothing() {
    let keys = TestKeystore::new(&Options::default());
    let folders = ["/talker", "/listener"].map(|name| keys.enclave(name));
    let mut former = SecuredContexts::default();
    for folder in &folders {
        former.open(Some(folder)).unwrap();
    }
    assert!(former.run_until(5 * SECOND, both));
    former.run(10 * SECOND);
    let recorded: Vec<Vec<u8>> = {
        let network = former.network();
        let said = network.sent.iter().filter(|sent| sent.from == 0);
        said.map(|sent| sent.bytes.clone()).collect()
    };
    let talker = former.prefix(0);
    // The subscribing context restarts. The publishing one is away, and an attacker
    // replays its messages.
    let mut contexts = SecuredContexts::default();
    let attacker = contexts.attacker();
    contexts.open(Some(&folders[1])).unwrap();
    assert_eq!(
        contexts.prefix(1),
        former.prefix(1),
        "else nothing is for it"
    );
    for _ in 0..3 {
        for datagram in &recorded {
            contexts.inject(attacker, 1, datagram);
            contexts.run(SECOND / 50);
        }
        contexts.run(15 * SECOND);
    }
    let known = contexts.core(1).security().authenticated();
    assert!(
        known.iter().all(|(prefix, _)| *prefix != talker),
        "{known:?}"
    );
}

#[test]
fn a_flood_of_forged_participants_blocks_nobody_once_it_is_over() {
    let keys = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    let attacker = contexts.attacker();
    contexts.run(SECOND);
    let own = contexts.prefix(0);
    // Its own announcement under a thousand other names, from the attacker's port.
    let announced = {
        let mut bytes = moved(&contexts, attacker);
        make_newer(&mut bytes, EntityId::SPDP_WRITER);
        bytes
    };
    for number in 0..1000_u32 {
        let mut name = GuidPrefix(own.0);
        name.0[8..12].copy_from_slice(&number.to_be_bytes());
        let mut forged = announced.clone();
        assert!(replace(&mut forged, &own.0, &name.0) >= 2);
        contexts.inject(attacker, 0, &forged);
        if number % 10 == 0 {
            contexts.run(SECOND / 10);
        }
    }
    assert!(contexts.core(0).security().authenticated().is_empty());
    let late = contexts.open(Some(&keys.enclave("/listener"))).unwrap();
    let meet = |contexts: &SecuredContexts| {
        contexts.has_authenticated(0, late) && contexts.has_authenticated(late, 0)
    };
    assert!(contexts.run_until(60 * SECOND, meet));
}

/// A claim of an identity under another name from another address: the announcement
/// of context 0, and a message that proves to receive our answers.
fn claim(announcement: &[u8], own: GuidPrefix, number: u32, from: usize) -> [Vec<u8>; 2] {
    let mut name = own;
    name.0[8..12].copy_from_slice(&number.to_be_bytes());
    let mut claim = announcement.to_vec();
    assert!(replace(&mut claim, &own.0, &name.0) >= 2);
    let locator = |index: usize| address(index).address;
    assert!(replace(&mut claim, &locator(0), &locator(from)) > 0);
    let mut proof = b"RTPS\x02\x03\x01\x50".to_vec();
    proof.extend(name.0);
    // INFO_DST.
    proof.extend([0x0e, 1, 12, 0]);
    proof.extend(own.0);
    // ACKNACK of the SPDP writer.
    proof.extend([6, 1, 24, 0]);
    proof.extend(EntityId::SPDP_READER.to_bytes());
    proof.extend(EntityId::SPDP_WRITER.to_bytes());
    proof.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    [claim, proof]
}

#[test]
fn a_message_that_addresses_nobody_validates_no_address() {
    let keys = TestKeystore::new(&Options::default());
    let mut contexts = SecuredContexts::default();
    contexts.open(Some(&keys.enclave("/talker"))).unwrap();
    // The last of these has the port of the talker and another IP address.
    let from = PLACES_OF_HOST;
    while contexts.attacker() < from {}
    contexts.run(SECOND);
    let announcement = last_of(&contexts, 0, EntityId::SPDP_WRITER);
    for (number, is_whole) in [(1, false), (2, true)] {
        let [claim, proof] = claim(&announcement, contexts.prefix(0), number, from);
        contexts.inject(from, 0, &claim);
        contexts.run(SECOND / 100);
        // Its header names the sender alone.
        let message = if is_whole { &proof[..] } else { &proof[..20] };
        contexts.inject(from, 0, message);
        contexts.run(SECOND / 100);
        assert_eq!(contexts.was_sent(0, "dds.sec.auth"), is_whole);
    }
}

/// CPU time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let after_name = text.rsplit(')').next().unwrap();
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().unwrap().parse::<u64>().unwrap();
    Duration::from_millis((ticks() + ticks()) * 10)
}

#[test]
fn a_thousand_claims_a_second_from_ten_addresses_keep_no_newcomer_out() {
    for proves_address in [false, true] {
        let keys = TestKeystore::new(&Options::default());
        let mut contexts = SecuredContexts::default();
        contexts.open(Some(&keys.enclave("/talker"))).unwrap();
        // Somebody to announce itself to.
        contexts.attacker();
        contexts.run(SECOND);
        let own = contexts.prefix(0);
        let announcement = last_of(&contexts, 0, EntityId::SPDP_WRITER);
        let mut number = 0;
        let mut flood = |contexts: &mut SecuredContexts| {
            let from = PLACES_OF_HOST * (1 + number as usize % 10);
            let [claim, proof] = claim(&announcement, own, number, from);
            contexts.inject(from, 0, &claim);
            contexts.run(SECOND / 2_000);
            if proves_address {
                contexts.inject(from, 0, &proof);
            }
            number += 1;
            contexts.run(SECOND / 2_000);
        };
        (0..2_000).for_each(|_| flood(&mut contexts));
        let late = contexts.open(Some(&keys.enclave("/listener"))).unwrap();
        let before = processor_time();
        (0..1_000).for_each(|_| flood(&mut contexts));
        // The second of the simulated clock takes less than a real one.
        let spent = processor_time() - before;
        assert!(
            spent < Duration::from_secs(1),
            "{spent:?} of processor time"
        );
        // Some claims were answered, and the table was full.
        let asks = |bytes: &[u8]| bytes.windows(12).any(|at| at == b"dds.sec.auth");
        assert!(contexts.network().sent.iter().any(|sent| asks(&sent.bytes)));
        assert!(contexts.has_authenticated(0, late), "{proves_address}");
        assert!(contexts.has_authenticated(late, 0), "{proves_address}");
    }
}
