//! Somebody without a key, who can send whatever it likes from a place of its
//! own and in anybody's name: whoever is known stays known and where it is, who
//! is not known gets no further, and what was heard once proves nothing.

use pteros_rmw::rtps::id::{EntityId, GuidPrefix};
use pteros_rmw::rtps::receiver::MessageReader;
use pteros_security::keystore::Options;

use crate::world::{Keys, SECOND, World, address};

/// Two who know each other, and the attacker.
fn known() -> (Keys, World, usize) {
    let keys = Keys::new(&Options::default());
    let mut world = World::default();
    world.open(Some(&keys.enclave("/talker"))).unwrap();
    world.open(Some(&keys.enclave("/listener"))).unwrap();
    assert!(world.run_until(5 * SECOND, both));
    let attacker = world.attacker();
    (keys, world, attacker)
}

fn both(world: &World) -> bool {
    world.knows(0, 1) && world.knows(1, 0)
}

/// What a context has said last by this writer, to whom it may concern.
fn last_of(world: &World, from: usize, writer: EntityId) -> Vec<u8> {
    let own = world.prefix(from);
    let network = world.network();
    let mut all = network.sent.iter().filter(|sent| sent.from == from);
    let says = |bytes: &[u8]| {
        let mut message = MessageReader::new(bytes, own).unwrap();
        message.any(|(_, submessage)| submessage.writer() == Some(writer))
    };
    let found = all.rfind(|sent| says(&sent.bytes)).expect("it said so");
    found.bytes.clone()
}

/// Puts one sequence of bytes in place of another; how often it was there.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) -> usize {
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(old))
        .collect();
    for at in &places {
        bytes[*at..at + new.len()].copy_from_slice(new);
    }
    places.len()
}

/// Which submessages a datagram has.
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

/// The announcement's number becomes a later one.
fn make_newer(bytes: &mut [u8], writer: EntityId) {
    let id = writer.to_bytes();
    let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(&id));
    let number = at.unwrap() + 4 + 4;
    bytes[number..number + 4].copy_from_slice(&1_000_u32.to_le_bytes());
}

/// An announcement of context 0 that names another port for everything.
fn moved(world: &World, to: usize) -> Vec<u8> {
    let mut forged = last_of(world, 0, EntityId::SPDP_WRITER);
    let port = |index: usize| address(index).port.to_le_bytes();
    let moved = replace(&mut forged, &port(0), &port(to));
    assert!(moved > 0, "it names its port");
    make_newer(&mut forged, EntityId::SPDP_WRITER);
    forged
}

/// The last word of context 0, as anybody may write it.
fn goodbye(world: &World) -> Vec<u8> {
    let prefix = world.prefix(0);
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
fn nobody_moves_one_who_is_known_to_another_place() {
    let (_keys, mut world, attacker) = known();
    let forged = moved(&world, attacker);
    for _ in 0..20 {
        world.inject(attacker, 1, &forged);
        world.run(SECOND);
    }
    assert!(both(&world));
    // Announcements go to every place where somebody may be.
    let network = world.network();
    let heard = &network.mail[attacker];
    assert!(!heard.is_empty());
    for (_, bytes) in heard {
        for (_, submessage) in MessageReader::new(bytes, GuidPrefix([0; 12])).unwrap() {
            let writer = submessage.writer();
            let announced = writer.is_none_or(|writer| writer == EntityId::SPDP_WRITER);
            assert!(announced, "{submessage:?}");
        }
        // Nor anything sealed: INFO_TS, INFO_DST, DATA.
        let kinds = kinds(bytes);
        let plain = kinds.iter().all(|kind| [0x09, 0x0e, 0x15].contains(kind));
        assert!(plain, "{kinds:x?}");
    }
}

#[test]
fn nobody_says_goodbye_for_one_who_is_known() {
    let (_keys, mut world, attacker) = known();
    let forged = goodbye(&world);
    for _ in 0..5 {
        world.inject(attacker, 1, &forged);
        world.run(SECOND);
        assert!(both(&world));
    }
    // The same word ends what is not secured, so it is a good one.
    let mut open = World::default();
    open.open(None).unwrap();
    open.open(None).unwrap();
    let meets = |world: &World| world.core(1).graph().participants().len() == 1;
    assert!(open.run_until(5 * SECOND, meets));
    let attacker = open.attacker();
    let forged = goodbye(&open);
    open.inject(attacker, 1, &forged);
    assert!(open.run_until(SECOND, |world| !meets(world)));
}

#[test]
fn what_was_heard_once_proves_nothing_the_next_time() {
    let keys = Keys::new(&Options::default());
    let folders = ["/talker", "/listener"].map(|name| keys.enclave(name));
    let mut former = World::default();
    for folder in &folders {
        former.open(Some(folder)).unwrap();
    }
    assert!(former.run_until(5 * SECOND, both));
    former.run(10 * SECOND);
    let heard: Vec<Vec<u8>> = {
        let network = former.network();
        let said = network.sent.iter().filter(|sent| sent.from == 0);
        said.map(|sent| sent.bytes.clone()).collect()
    };
    let talker = former.prefix(0);
    // The listener starts again; the talker is away, and played by a stranger.
    let mut world = World::default();
    let attacker = world.attacker();
    world.open(Some(&folders[1])).unwrap();
    assert_eq!(world.prefix(1), former.prefix(1), "else nothing is for it");
    for _ in 0..3 {
        for datagram in &heard {
            world.inject(attacker, 1, datagram);
            world.run(SECOND / 50);
        }
        world.run(15 * SECOND);
    }
    let known = world.core(1).authenticated();
    assert!(
        known.iter().all(|(prefix, _)| *prefix != talker),
        "{known:?}"
    );
}

#[test]
fn a_flood_of_strangers_keeps_nobody_out_once_it_is_over() {
    let keys = Keys::new(&Options::default());
    let mut world = World::default();
    world.open(Some(&keys.enclave("/talker"))).unwrap();
    let attacker = world.attacker();
    world.run(SECOND);
    let own = world.prefix(0);
    // Its own announcement in a thousand other names, from the attacker's port.
    let announced = {
        let mut bytes = moved(&world, attacker);
        make_newer(&mut bytes, EntityId::SPDP_WRITER);
        bytes
    };
    for number in 0..1000_u32 {
        let mut name = GuidPrefix(own.0);
        name.0[8..12].copy_from_slice(&number.to_be_bytes());
        let mut forged = announced.clone();
        assert!(replace(&mut forged, &own.0, &name.0) >= 2);
        world.inject(attacker, 0, &forged);
        if number % 10 == 0 {
            world.run(SECOND / 10);
        }
    }
    assert!(world.core(0).authenticated().is_empty());
    let late = world.open(Some(&keys.enclave("/listener"))).unwrap();
    let meet = |world: &World| world.knows(0, late) && world.knows(late, 0);
    assert!(world.run_until(60 * SECOND, meet));
}
