//! What a message allocates once everything has been used once: nothing, but
//! for the count of owners of a body in a chunk, once where it is written and
//! once where it is read.

#[path = "../../pteros/tests/walk/allocations.rs"]
mod allocations;

use pteros_shm::{Hub, HubOptions, LinkEvent, Name};

#[global_allocator]
static COUNTING: allocations::Counting = allocations::Counting;

const ROUNDS: u64 = 1_000;

fn name(number: u8) -> Name {
    let mut name = *b"steady......";
    name[6..10].copy_from_slice(&std::process::id().to_le_bytes());
    name[10] = number;
    name
}

/// Allocations per round of `what`, once it has run for a while.
fn allocations(mut what: impl FnMut()) -> f64 {
    (0..ROUNDS).for_each(|_| what());
    let before = allocations::so_far().0;
    (0..ROUNDS).for_each(|_| what());
    (allocations::so_far().0 - before) as f64 / ROUNDS as f64
}

#[test]
fn a_message_allocates_its_count_of_owners_and_nothing_else() {
    let open = |number| Hub::open(name(number), HubOptions::default()).expect("a hub");
    let (a, b) = (open(1), open(2));
    a.connect(b.name(), 0).expect("connect");
    let mut up = None;
    while up.is_none() {
        b.turn(0, &mut |_| {});
        a.turn(0, &mut |event| {
            if let LinkEvent::Up { link, .. } = event {
                up = Some(link);
            }
        });
    }
    b.turn(0, &mut |_| {});
    let link = up.expect("a link");
    let mut head = Vec::new();

    let small = allocations(|| {
        a.send(link, &[1; 64], b"", b"tail").expect("sent");
        assert!(b.receive(&mut head).is_some());
        assert!(b.before_sleep());
        b.awake();
    });
    assert_eq!(small, 0.0, "a small message");

    let named = allocations(|| {
        let chunk = a.chunk(100_000).expect("a chunk");
        let body = chunk.freeze(100_000);
        a.send(link, &[1; 64], &body, b"").expect("sent");
        drop(body);
        assert!(b.receive(&mut head).expect("there").body.is_some());
    });
    assert_eq!(named, 2.0, "one owner's count on each side");

    let heap = vec![7; 50_000];
    let copied = allocations(|| {
        a.send(link, &[1; 64], &heap, b"").expect("sent");
        assert!(b.receive(&mut head).expect("there").body.is_some());
    });
    assert_eq!(copied, 1.0, "the reader's");
}
