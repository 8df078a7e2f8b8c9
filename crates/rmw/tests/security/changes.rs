//! What changes while contexts know each other: files of theirs, and that one of
//! two has lost the other.

use pteros_rmw::rtps::id::EntityId;
use pteros_rmw::rtps::wire::Submessage;
use pteros_security::keystore::Options;

use crate::world::{Keys, SECOND, World};

const PERMISSIONS: &str = "enclaves/talker/permissions.xml";
const WIDE: &str = "<topic>rt/*</topic>";
const NARROW: &str = "<topic>rt/allowed*</topic>";

fn known() -> (Keys, World) {
    let keys = Keys::new(&Options::default());
    let mut world = World::default();
    world.open(Some(&keys.enclave("/talker"))).unwrap();
    world.open(Some(&keys.enclave("/listener"))).unwrap();
    assert!(world.run_until(5 * SECOND, both));
    (keys, world)
}

fn both(world: &World) -> bool {
    world.knows(0, 1) && world.knows(1, 0)
}

#[test]
fn changed_permissions_hold_on_live_links_without_a_restart() {
    let (keys, mut world) = known();
    let topics = ["rt/allowed", "rt/other"];
    let writers = topics.map(|topic| world.writer(0, topic));
    let readers = topics.map(|topic| world.reader(1, topic));
    let here = world.reader(0, "rt/other");
    let matched = |other: usize| {
        let counts = [&writers[0], &writers[1]].map(|writer| writer.matched_count());
        counts == [1, other]
    };
    assert!(world.run_until(10 * SECOND, |_| matched(2)));

    keys.edit(PERMISSIONS, &[(WIDE, NARROW)]);
    // Looked at within five seconds, and met anew.
    assert!(world.run_until(6 * SECOND, |_| matched(0)
        || writers[0].matched_count() == 0));
    assert!(world.run_until(5 * SECOND, |world| both(world) && matched(0)));
    world.publish(0, &writers[0], "for you");
    world.publish(0, &writers[1], "for nobody");
    world.run(10 * SECOND);
    assert!(matched(0));
    assert_eq!(world.taken(1, &readers[0]), ["for you"]);
    assert_eq!(world.taken(1, &readers[1]), Vec::<String>::new());
    assert_eq!(world.taken(0, &here), Vec::<String>::new());
    // Both ends can tell by which rule; the other end has the new permissions.
    for core in [0, 1] {
        let (writer, reader) = (writers[1].announced(), readers[1].announced());
        let why = world.core(core).why_denied(&writer, &reader).unwrap();
        assert!(
            why.contains("denied by") && why.contains("/talker") || core == 0,
            "{why}"
        );
        assert!(why.contains("permissions"), "{why}");
    }
    // Nor may it be made anew.
    assert!(
        world
            .core(0)
            .create_writer(crate::world::spec("rt/other"))
            .is_err()
    );

    keys.edit(PERMISSIONS, &[(NARROW, WIDE)]);
    assert!(world.run_until(11 * SECOND, |_| matched(2)));
    world.publish(0, &writers[1], "for both");
    world.run(SECOND);
    assert_eq!(world.taken(1, &readers[1]), ["for both"]);
    assert_eq!(world.taken(0, &here), ["for both"]);
}

#[test]
fn a_changed_file_that_is_broken_or_the_same_touches_nobody() {
    let (keys, mut world) = known();
    let writer = world.writer(0, "rt/chatter");
    let reader = world.reader(1, "rt/chatter");
    assert!(world.run_until(10 * SECOND, |_| writer.matched_count() == 1));
    keys.keystore.sign(crate::world::NOW).unwrap();
    let stays = |world: &mut World| {
        let parted = |world: &World| !both(world) || writer.matched_count() != 1;
        !world.run_until(12 * SECOND, parted)
    };
    assert!(stays(&mut world));
    let file = keys.root.join("enclaves/talker/permissions.p7s");
    std::fs::write(&file, "half of i").unwrap();
    assert!(stays(&mut world));
    std::fs::remove_file(&file).unwrap();
    assert!(stays(&mut world));
    keys.govern(&[("ENCRYPT", "SIGN")]);
    assert!(stays(&mut world));
    world.publish(0, &writer, "as ever");
    world.run(SECOND);
    assert_eq!(world.taken(1, &reader), ["as ever"]);
}

#[test]
fn who_lost_a_peer_that_knows_it_still_meets_it_again_at_once() {
    for deaf in [0, 1] {
        let (_keys, mut world) = known();
        let writers = [0, 1].map(|index| world.writer(index, "rt/chatter"));
        let readers = [0, 1].map(|index| world.reader(index, "rt/chatter"));
        // One matches the other's and its own.
        let matched = || writers.iter().all(|writer| writer.matched_count() == 2);
        assert!(world.run_until(10 * SECOND, |_| matched()));
        let speaks = 1 - deaf;
        world.network().fate = Some(Box::new(move |from, _| usize::from(from != speaks)));
        // As long as the lease is.
        assert!(world.run_until(30 * SECOND, |world| !world.knows(deaf, speaks)));
        assert!(world.knows(speaks, deaf));
        world.network().fate = None;
        assert!(world.run_until(8 * SECOND, both));
        assert!(world.run_until(5 * SECOND, |_| matched()), "{deaf}");
        let taken = |world: &World, index: usize| world.taken(index, &readers[index]);
        for index in [0, 1] {
            taken(&world, index);
        }
        world.publish(0, &writers[0], "from 0");
        world.publish(1, &writers[1], "from 1");
        world.run(SECOND);
        for index in [0, 1] {
            let mut all = taken(&world, index);
            all.sort();
            assert_eq!(all, ["from 0", "from 1"]);
        }
    }
}

/// Cyclone DDS and Fast DDS answer no handshake of one that they know: after a
/// network was away for longer than one lease and not the other, nobody would meet.
#[test]
fn who_knows_us_still_and_answers_nothing_is_told_goodbye_and_met_anew() {
    let (_keys, mut world) = known();
    let writer = world.writer(1, "rt/chatter");
    let reader = world.reader(0, "rt/chatter");
    assert!(world.run_until(10 * SECOND, |_| writer.matched_count() == 1));
    world.network().fate = Some(Box::new(|from, _| usize::from(from != 1)));
    assert!(world.run_until(30 * SECOND, |world| !world.knows(0, 1)));
    // What 0 says of a handshake is not heeded, though the rest is.
    let is_handshake = |bytes: &[u8]| bytes.windows(12).any(|w| w == b"dds.sec.auth");
    world.network().fate = Some(Box::new(move |from, bytes| {
        usize::from(from != 0 || !is_handshake(bytes))
    }));
    assert!(world.run_until(25 * SECOND, |world| !world.knows(1, 0)));
    assert!(!world.knows(0, 1));
    world.network().fate = None;
    assert!(world.run_until(15 * SECOND, both));
    assert!(world.run_until(5 * SECOND, |_| writer.matched_count() == 1));
    world.publish(1, &writer, "again");
    world.run(SECOND);
    assert_eq!(world.taken(0, &reader), ["again"]);
}

/// Fast DDS 2.9 heeds a goodbye in the open alone, and of announcements and goodbyes
/// the one of the highest number.
#[test]
fn a_goodbye_in_the_open_is_later_than_what_was_announced_and_earlier_than_what_is_next() {
    let (keys, mut world) = known();
    keys.edit(PERMISSIONS, &[(WIDE, NARROW)]);
    assert!(world.run_until(6 * SECOND, |world| !both(world)));
    assert!(world.run_until(5 * SECOND, both));
    let mut said = Vec::new();
    world.each_sent(0, |message| {
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
