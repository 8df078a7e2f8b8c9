//! Many who meet at once on a host that has no time for all of them: who has been
//! let in and does not get to answering is not asked the more often, the more others
//! there are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pteros_security::keystore::Options;

use crate::world::{Keys, SECOND, World};

/// How many others there are.
const OTHERS: usize = 8;
/// How long after one another they come.
const PAUSE: u64 = SECOND / 10;

#[test]
fn who_has_no_time_to_answer_is_asked_for_the_keys_alone() {
    let keys = Keys::new(&Options::default());
    let enclave = keys.enclave("/crowd");
    let mut world = World::default();
    world.open(Some(&enclave)).unwrap();
    let busy = Arc::new(Mutex::new(BTreeSet::new()));
    let silent = busy.clone();
    world.network().fate = Some(Box::new(move |from, _| {
        usize::from(!silent.lock().unwrap().contains(&from))
    }));
    for _ in 0..OTHERS {
        let other = world.open(Some(&enclave)).unwrap();
        assert!(world.run_until(5 * SECOND, |world| world.knows(0, other)));
        busy.lock().unwrap().insert(other);
        world.run(PAUSE);
    }
    world.network().sent.clear();
    world.run(SECOND);
    let asked = world.network().sent.iter().filter(|s| s.from == 0).count();
    // Each about every 200 ms, after a first half of a second.
    assert!(asked < OTHERS * 10, "{asked} datagrams in a second");

    busy.lock().unwrap().clear();
    assert!(world.run_until(5 * SECOND, |world| {
        (1..=OTHERS).all(|other| world.knows(other, 0))
    }));
    let (writer, reader) = (world.writer(0, "rt/chatter"), world.reader(1, "rt/chatter"));
    assert!(world.run_until(5 * SECOND, |_| writer.matched_count() == 1));
    world.publish(0, &writer, "all of them heard of it");
    assert!(world.run_until(SECOND, |world| world.taken(1, &reader).len() == 1));
}
