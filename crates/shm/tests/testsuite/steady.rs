//! Allocations per message in steady state: none, except the reference count of a
//! body in a chunk, once at the writer and once at the reader.

use pteros_shm::{ConnectionEvent, PeerName, SharedMemoryTransport, SharedMemoryTransportOptions};
use pteros_test_support::allocations;

const ROUNDS: u64 = 1_000;

fn name(number: u8) -> PeerName {
    let mut name = *b"steady......";
    name[6..10].copy_from_slice(&std::process::id().to_le_bytes());
    name[10] = number;
    name
}

/// Allocations per round of `what`, once it has run for a while.
fn allocations(mut what: impl FnMut()) -> f64 {
    (0..ROUNDS).for_each(|_| what());
    let before = allocations::snapshot().0;
    (0..ROUNDS).for_each(|_| what());
    (allocations::snapshot().0 - before) as f64 / ROUNDS as f64
}

#[test]
fn a_message_allocates_only_its_reference_count() {
    let open = |number| {
        SharedMemoryTransport::open(name(number), SharedMemoryTransportOptions::default())
            .expect("a transport")
    };
    let (a, b) = (open(1), open(2));
    a.connect(b.name(), 0).expect("connect");
    let mut up = None;
    while up.is_none() {
        b.poll(0, &mut |_| {});
        a.poll(0, &mut |event| {
            if let ConnectionEvent::Connected { connection, .. } = event {
                up = Some(connection);
            }
        });
    }
    b.poll(0, &mut |_| {});
    let connection = up.expect("a connection");
    let mut head = Vec::new();

    let small = allocations(|| {
        a.send(connection, &[1; 64], b"", b"tail").expect("sent");
        assert!(b.receive(&mut head).is_some());
        assert!(b.arm_doorbell());
        b.disarm_doorbell();
    });
    assert_eq!(small, 0.0, "a small message");

    let named = allocations(|| {
        let chunk = a.chunk(100_000).expect("a chunk");
        let body = chunk.freeze(100_000);
        a.send(connection, &[1; 64], &body, b"").expect("sent");
        drop(body);
        assert!(b.receive(&mut head).expect("there").body.is_some());
    });
    assert_eq!(named, 2.0, "one owner's count on each side");

    let heap = vec![7; 50_000];
    let copied = allocations(|| {
        a.send(connection, &[1; 64], &heap, b"").expect("sent");
        assert!(b.receive(&mut head).expect("there").body.is_some());
    });
    assert_eq!(copied, 1.0, "the reader's");
}
