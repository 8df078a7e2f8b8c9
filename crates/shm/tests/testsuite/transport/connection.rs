//! How connections are established and closed.

use crate::transport::pair::{Pair, connection, name, open, options, pattern, poll, receive, up};
use pteros_shm::{ConnectionEvent, DisconnectReason, SendRefusal, SharedMemoryTransport, ShmError};
use pteros_test_support::own_process;

#[test]
fn an_unknown_name_is_refused_with_a_reason() {
    let a = open(options());
    let refused = a.connect(name(), 0).expect_err("nobody there");
    assert!(matches!(
        refused,
        ShmError::Refused {
            reason: DisconnectReason::Unreachable,
            ..
        }
    ));
    assert!(refused.to_string().contains("other container"), "{refused}");
    assert_eq!(a.counts().handshakes_failed, 1);
}

/// In a process of its own: while another test starts a process, that inherits the
/// sockets until it executes its program, and the name seems to stay taken.
#[test]
fn a_name_is_taken_once() {
    if !own_process!() {
        return;
    }
    let a = open(options());
    let again = SharedMemoryTransport::open(a.name(), options()).expect_err("taken");
    assert!(
        again.to_string().contains("listen for connections"),
        "{again}"
    );
    let name = a.name();
    drop(a);
    SharedMemoryTransport::open(name, options()).expect("free again");
}

#[test]
fn options_out_of_range_are_named() {
    let mut odd = options();
    odd.ring_bytes = 5000;
    let error = SharedMemoryTransport::open(name(), odd).expect_err("not a power of two");
    assert!(error.to_string().contains("ring_bytes: 5000"), "{error}");
}

#[test]
fn simultaneous_connects_make_one_connection() {
    let (a, b) = (open(options()), open(options()));
    a.connect(b.name(), 0).expect("connect");
    b.connect(a.name(), 0).expect("connect");
    let mut ups = [0, 0];
    for _ in 0..10 {
        ups[0] += usize::from(up(&poll(&a, 0)).is_some());
        ups[1] += usize::from(up(&poll(&b, 0)).is_some());
    }
    assert_eq!(ups, [1, 1]);
    assert_eq!((a.counts().connections, b.counts().connections), (1, 1));
    assert_eq!(
        (a.counts().pending_handshakes, b.counts().pending_handshakes),
        (0, 0)
    );
    a.connect(b.name(), 0).expect("nothing to do");
    assert_eq!(a.counts().pending_handshakes, 0);
}

#[test]
fn a_silent_handshake_times_out() {
    let (a, b) = (open(options()), open(options()));
    a.connect(b.name(), 5).expect("connect");
    let due = a.poll(6, &mut |_| {}).expect("a deadline");
    assert_eq!(due, 1_000_000_005);
    assert_eq!(poll(&a, due - 1), []);
    let (peer, reason) = (b.name(), DisconnectReason::TimedOut);
    assert_eq!(poll(&a, due), [ConnectionEvent::Refused { peer, reason }]);
    assert_eq!(a.counts().pending_handshakes, 0);
    // The other side finds a caller that has left.
    assert_eq!(poll(&b, 0), []);
    assert_eq!(b.counts().pending_handshakes, 0);
    connection(&a, &b);
}

#[test]
fn connections_beyond_the_limit_are_refused_on_both_sides() {
    let mut one = options();
    one.connections_max = 1;
    let a = open(one);
    let (b, c) = (open(options()), open(options()));
    connection(&a, &b);
    let refused = a.connect(c.name(), 0).expect_err("one only");
    assert!(
        refused.to_string().contains("too many connections"),
        "{refused}"
    );
    c.connect(a.name(), 0).expect("asked");
    poll(&a, 0);
    let (peer, reason) = (a.name(), DisconnectReason::TooManyConnections);
    assert_eq!(poll(&c, 0), [ConnectionEvent::Refused { peer, reason }]);
}

#[test]
fn messages_sent_before_a_transport_closes_are_received_before_the_disconnect() {
    let pair = Pair::new(options(), options());
    let bytes = pattern(200_000, 9);
    pair.a.send(pair.ab, b"one", b"", b"").expect("sent");
    pair.a.send(pair.ab, b"two", &bytes, b"").expect("sent");
    let (peer, connection) = (pair.a.name(), pair.ba);
    drop(pair.a);
    assert_eq!(poll(&pair.b, 0), [], "there is more to read");
    assert_eq!(receive(&pair.b).expect("there").0, b"one");
    let (whole, record) = receive(&pair.b).expect("there");
    assert!(whole[3..] == bytes);
    assert!(receive(&pair.b).is_none());
    let reason = DisconnectReason::ClosedByPeer;
    assert_eq!(
        poll(&pair.b, 0),
        [ConnectionEvent::Disconnected {
            peer,
            connection,
            reason
        }]
    );
    assert!(
        record.body.expect("kept") == bytes,
        "memory outlives its owner"
    );
    assert_eq!(
        pair.b.send(connection, b"", b"", b""),
        Err(SendRefusal::Disconnected)
    );
    assert_eq!(pair.b.counts().connections, 0);
}

#[test]
fn chunks_held_beyond_a_connection_are_not_reused() {
    let mut small = options();
    small.pool_bytes = 1 << 20;
    let pair = Pair::new(small, options());
    let bytes = pattern(100_000, 5);
    pair.a.send(pair.ab, b"", &bytes, b"").expect("sent");
    let kept = receive(&pair.b).expect("there").1.body.expect("a chunk");
    pair.a.disconnect(pair.b.name());
    assert!(!pair.a.is_connected(pair.ab));
    let (peer, connection) = (pair.a.name(), pair.ba);
    let reason = DisconnectReason::ClosedByPeer;
    assert_eq!(
        poll(&pair.b, 0),
        [ConnectionEvent::Disconnected {
            peer,
            connection,
            reason
        }]
    );
    poll(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering_connections, 1);
    // All the rest of the pool is written; the kept one is not.
    let mut chunks = Vec::new();
    while let Ok(mut chunk) = pair.a.chunk(100_000) {
        chunk.fill(0xee);
        chunks.push(chunk);
    }
    assert!(!chunks.is_empty());
    assert!(kept == bytes);
    // A new connection is another one.
    let (again, _) = crate::transport::pair::connection(&pair.a, &pair.b);
    assert_ne!(again, pair.ab);
    drop(kept);
    poll(&pair.a, 0);
    let counts = pair.a.counts();
    assert_eq!((counts.lingering_connections, counts.connections), (0, 1));
    pair.a.chunk(100_000).expect("it came back");
}

#[test]
fn a_connection_without_chunks_on_loan_ends_at_once() {
    let pair = Pair::new(options(), options());
    pair.a.send(pair.ab, b"small", b"", b"").expect("sent");
    pair.a.disconnect(pair.b.name());
    let counts = pair.a.counts();
    assert_eq!((counts.connections, counts.lingering_connections), (0, 0));
    // Although the peer keeps its half of the socket until it has read all.
    assert_eq!(pair.b.counts().connections, 1);
    assert_eq!(receive(&pair.b).expect("there").0, b"small");
    assert_eq!(poll(&pair.b, 0).len(), 1);
    let counts = pair.b.counts();
    assert_eq!((counts.connections, counts.lingering_connections), (0, 0));
}

#[test]
fn both_sides_may_keep_samples_of_each_other_while_they_close() {
    let pair = Pair::new(options(), options());
    let bytes = pattern(10_000, 1);
    pair.a.send(pair.ab, b"", &bytes, b"").expect("sent");
    pair.b.send(pair.ba, b"", &bytes, b"").expect("sent");
    let at_b = receive(&pair.b).expect("there").1;
    let at_a = receive(&pair.a).expect("there").1;
    pair.b.disconnect(pair.a.name());
    poll(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering_connections, 1);
    assert_eq!(pair.b.counts().lingering_connections, 1);
    drop(at_b);
    poll(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering_connections, 0);
    drop(at_a);
    poll(&pair.b, 0);
    assert_eq!(pair.b.counts().lingering_connections, 0);
}

#[test]
fn chunks_held_beyond_the_readers_transport_are_not_reused() {
    let mut small = options();
    small.pool_bytes = 1 << 20;
    let pair = Pair::new(small, options());
    let bytes = pattern(100_000, 5);
    pair.a.send(pair.ab, b"", &bytes, b"").expect("sent");
    let kept = receive(&pair.b).expect("there").1.body.expect("a chunk");
    drop(pair.b);
    let events = poll(&pair.a, 0);
    let reason = DisconnectReason::ClosedByPeer;
    assert!(matches!(events[..], [ConnectionEvent::Disconnected { reason: r, .. }] if r == reason));
    assert_eq!(pair.a.counts().lingering_connections, 1);
    let mut held = Vec::new();
    while let Ok(mut chunk) = pair.a.chunk(100_000) {
        chunk.fill(0xee);
        held.push(chunk);
    }
    assert!(kept == bytes);
    drop(kept);
    poll(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering_connections, 0);
    held.push(pair.a.chunk(100_000).expect("it came back"));
}
