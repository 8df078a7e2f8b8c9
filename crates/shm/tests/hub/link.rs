//! How links begin, and how they end.

use crate::pair::{Pair, link, name, open, options, pattern, receive, turn, up};
use pteros_shm::{Hub, LinkEvent, Reason, Refused, ShmError};

#[test]
fn nobody_of_that_name_is_a_refusal_with_a_reason() {
    let a = open(options());
    let refused = a.connect(name(), 0).expect_err("nobody there");
    assert!(matches!(
        refused,
        ShmError::Refused {
            reason: Reason::Unreachable,
            ..
        }
    ));
    assert!(refused.to_string().contains("other container"), "{refused}");
    assert_eq!(a.counts().handshakes_failed, 1);
}

#[test]
fn a_name_is_taken_once() {
    let a = open(options());
    let again = Hub::open(a.name(), options()).expect_err("taken");
    assert!(again.to_string().contains("listen for links"), "{again}");
    let name = a.name();
    drop(a);
    Hub::open(name, options()).expect("free again");
}

#[test]
fn options_out_of_range_are_named() {
    let mut odd = options();
    odd.ring_bytes = 5000;
    let error = Hub::open(name(), odd).expect_err("not a power of two");
    assert!(error.to_string().contains("ring_bytes: 5000"), "{error}");
}

#[test]
fn a_link_that_is_asked_for_from_both_sides_is_one_link() {
    let (a, b) = (open(options()), open(options()));
    a.connect(b.name(), 0).expect("connect");
    b.connect(a.name(), 0).expect("connect");
    let mut ups = [0, 0];
    for _ in 0..10 {
        ups[0] += usize::from(up(&turn(&a, 0)).is_some());
        ups[1] += usize::from(up(&turn(&b, 0)).is_some());
    }
    assert_eq!(ups, [1, 1]);
    assert_eq!((a.counts().links, b.counts().links), (1, 1));
    assert_eq!((a.counts().pending, b.counts().pending), (0, 0));
    a.connect(b.name(), 0).expect("nothing to do");
    assert_eq!(a.counts().pending, 0);
}

#[test]
fn silence_is_given_up_in_time() {
    let (a, b) = (open(options()), open(options()));
    a.connect(b.name(), 5).expect("connect");
    let due = a.turn(6, &mut |_| {}).expect("a deadline");
    assert_eq!(due, 1_000_000_005);
    assert_eq!(turn(&a, due - 1), []);
    let (peer, reason) = (b.name(), Reason::TimedOut);
    assert_eq!(turn(&a, due), [LinkEvent::Refused { peer, reason }]);
    assert_eq!(a.counts().pending, 0);
    // The other side finds a caller that has left.
    assert_eq!(turn(&b, 0), []);
    assert_eq!(b.counts().pending, 0);
    link(&a, &b);
}

#[test]
fn more_links_than_allowed_are_refused_here_and_there() {
    let mut one = options();
    one.links_max = 1;
    let a = open(one);
    let (b, c) = (open(options()), open(options()));
    link(&a, &b);
    let refused = a.connect(c.name(), 0).expect_err("one only");
    assert!(refused.to_string().contains("too many links"), "{refused}");
    c.connect(a.name(), 0).expect("asked");
    turn(&a, 0);
    let (peer, reason) = (a.name(), Reason::TooManyLinks);
    assert_eq!(turn(&c, 0), [LinkEvent::Refused { peer, reason }]);
}

#[test]
fn messages_sent_before_a_hub_closes_are_received_before_its_end() {
    let pair = Pair::new(options(), options());
    let bytes = pattern(200_000, 9);
    pair.a.send(pair.ab, b"one", b"", b"").expect("sent");
    pair.a.send(pair.ab, b"two", &bytes, b"").expect("sent");
    let (peer, link) = (pair.a.name(), pair.ba);
    drop(pair.a);
    assert_eq!(turn(&pair.b, 0), [], "there is more to read");
    assert_eq!(receive(&pair.b).expect("there").0, b"one");
    let (whole, record) = receive(&pair.b).expect("there");
    assert!(whole[3..] == bytes);
    assert!(receive(&pair.b).is_none());
    let reason = Reason::Closed;
    assert_eq!(turn(&pair.b, 0), [LinkEvent::Down { peer, link, reason }]);
    assert!(
        record.body.expect("kept") == bytes,
        "memory outlives its owner"
    );
    assert_eq!(pair.b.send(link, b"", b"", b""), Err(Refused::Down));
    assert_eq!(pair.b.counts().links, 0);
}

#[test]
fn what_a_reader_keeps_beyond_its_link_is_not_written_again() {
    let mut small = options();
    small.pool_bytes = 1 << 20;
    let pair = Pair::new(small, options());
    let bytes = pattern(100_000, 5);
    pair.a.send(pair.ab, b"", &bytes, b"").expect("sent");
    let kept = receive(&pair.b).expect("there").1.body.expect("a chunk");
    pair.a.disconnect(pair.b.name());
    assert!(!pair.a.is_up(pair.ab));
    let (peer, link) = (pair.a.name(), pair.ba);
    let reason = Reason::Closed;
    assert_eq!(turn(&pair.b, 0), [LinkEvent::Down { peer, link, reason }]);
    turn(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering, 1);
    // All the rest of the pool is written; the kept one is not.
    let mut chunks = Vec::new();
    while let Ok(mut chunk) = pair.a.chunk(100_000) {
        chunk.fill(0xee);
        chunks.push(chunk);
    }
    assert!(!chunks.is_empty());
    assert!(kept == bytes);
    // A new link is another one.
    let (again, _) = crate::pair::link(&pair.a, &pair.b);
    assert_ne!(again, pair.ab);
    drop(kept);
    turn(&pair.a, 0);
    let counts = pair.a.counts();
    assert_eq!((counts.lingering, counts.links), (0, 1));
    pair.a.chunk(100_000).expect("it came back");
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
    turn(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering, 1);
    assert_eq!(pair.b.counts().lingering, 1);
    drop(at_b);
    turn(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering, 0);
    drop(at_a);
    turn(&pair.b, 0);
    assert_eq!(pair.b.counts().lingering, 0);
}

#[test]
fn what_outlives_its_readers_hub_is_not_written_again() {
    let mut small = options();
    small.pool_bytes = 1 << 20;
    let pair = Pair::new(small, options());
    let bytes = pattern(100_000, 5);
    pair.a.send(pair.ab, b"", &bytes, b"").expect("sent");
    let kept = receive(&pair.b).expect("there").1.body.expect("a chunk");
    drop(pair.b);
    let events = turn(&pair.a, 0);
    let reason = Reason::Closed;
    assert!(matches!(events[..], [LinkEvent::Down { reason: r, .. }] if r == reason));
    assert_eq!(pair.a.counts().lingering, 1);
    while let Ok(mut chunk) = pair.a.chunk(100_000) {
        chunk.fill(0xee);
        std::mem::forget(chunk);
    }
    assert!(kept == bytes);
    drop(kept);
    turn(&pair.a, 0);
    assert_eq!(pair.a.counts().lingering, 0);
    pair.a.chunk(100_000).expect("it came back");
}
