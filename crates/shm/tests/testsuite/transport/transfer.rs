//! Messages of every kind are received in order, and their chunks are returned.

use crate::transport::pair::{Pair, open, options, pattern, poll, receive};
use pteros_shm::{PoolExhausted, SendRefusal};
use rustix::event::epoll;

#[test]
fn a_body_in_a_chunk_is_zero_copy_and_returned_when_dropped() {
    let pair = Pair::new(options(), options());
    let bytes = pattern(1 << 20, 3);
    let mut chunk = pair.a.chunk(bytes.len()).expect("a chunk");
    chunk.copy_from_slice(&bytes);
    let body = chunk.freeze(bytes.len());
    assert_eq!(body.as_ptr() as usize % 64, 60, "CDR's body is aligned");

    pair.a.send(pair.ab, b"head", &body, b"tail").expect("sent");
    drop(body);
    let counts = pair.a.counts();
    assert_eq!((counts.zero_copy, counts.copied), (1, 0));
    assert_eq!((counts.loans, counts.chunks_used), (1, 1));

    let (whole, record) = receive(&pair.b).expect("it is there");
    assert_eq!(whole, [b"head", &bytes[..], b"tail"].concat());
    assert_eq!((record.connection, record.peer), (pair.ba, pair.a.name()));
    assert_eq!((record.head_len, record.tail_len), (4, 4));
    let kept = record.body.expect("not copied").slice(10..20);
    assert_eq!(pair.a.counts().chunks_used, 1, "a slice holds it");
    drop(kept);
    let counts = pair.a.counts();
    assert_eq!((counts.loans, counts.chunks_used), (0, 0));
    assert!(receive(&pair.b).is_none());
}

#[test]
fn small_messages_arrive_in_one_piece_and_in_order() {
    let pair = Pair::new(options(), options());
    for round in 0..3_000_u32 {
        let len = round as usize % 250;
        let head = round.to_le_bytes();
        let body = pattern(len, round as u8);
        let tail = &head[..round as usize % 5];
        pair.a.send(pair.ab, &head, &body, tail).expect("sent");
        if round % 7 != 6 {
            continue;
        }
        for earlier in round - 6..=round {
            let head = earlier.to_le_bytes();
            let body = pattern(earlier as usize % 250, earlier as u8);
            let (whole, record) = receive(&pair.b).expect("it is there");
            assert!(record.body.is_none());
            assert_eq!(
                whole,
                [&head[..], &body, &head[..earlier as usize % 5]].concat()
            );
        }
    }
}

#[test]
fn a_body_outside_the_pool_is_copied_into_the_ring_or_a_chunk() {
    let pair = Pair::new(options(), options());
    for (len, copied) in [(257, 0), (4096, 0), (4097, 1), (100_000, 2)] {
        let body = pattern(len, 1);
        pair.a.send(pair.ab, b"", &body, b"").expect("sent");
        let (whole, record) = receive(&pair.b).expect("it is there");
        assert_eq!(whole, body);
        assert_eq!(record.body.is_some(), len > 4096);
        assert_eq!(pair.a.counts().copied, copied);
    }
    assert_eq!(pair.a.counts().chunks_used, 0);
}

#[test]
fn one_chunk_serves_every_reader_and_messages_use_it_again() {
    let a = open(options());
    let readers: Vec<_> = (0..5).map(|_| open(options())).collect();
    let connections: Vec<_> = readers
        .iter()
        .map(|b| crate::transport::pair::connection(&a, b).0)
        .collect();
    for round in 0..50 {
        let bytes = pattern(300_000, round);
        let mut chunk = a.chunk(bytes.len()).expect("a chunk");
        chunk.copy_from_slice(&bytes);
        let body = chunk.freeze(bytes.len());
        for connection in &connections {
            a.send(*connection, b"x", &body, b"").expect("sent");
        }
        drop(body);
        assert_eq!(a.counts().chunks_used, 1);
        for reader in &readers {
            assert_eq!(receive(reader).expect("there").0[1..], bytes);
        }
    }
    let counts = a.counts();
    assert_eq!((counts.segments, counts.chunks_used), (1, 0));
    assert_eq!(counts.zero_copy, 250);
}

#[test]
fn a_full_ring_refuses_until_it_is_read() {
    let mut small = options();
    small.ring_bytes = 4096;
    let pair = Pair::new(small, options());
    let mut sent = 0;
    let refused = loop {
        match pair.a.send(pair.ab, &[7; 100], &[], &[]) {
            Ok(()) => sent += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, SendRefusal::RingFull);
    // Four words of header, thirteen of head.
    assert_eq!(sent, 512 / 17);
    assert_eq!(pair.a.counts().refused_ring_full, 1);
    let too_long = pair.a.send(pair.ab, &[7; 4096], &[], &[]);
    assert_eq!(too_long, Err(SendRefusal::TooLong));
    while receive(&pair.b).is_some() {
        sent -= 1;
    }
    assert_eq!(sent, 0);
    pair.a.send(pair.ab, &[7; 4000], &[], &[]).expect("room");
    assert_eq!(receive(&pair.b).expect("there").0, [7; 4000]);
}

#[test]
fn a_pool_at_its_limit_refuses_and_reports_a_returned_chunk() {
    let mut small = options();
    small.pool_bytes = 4 << 20;
    let pair = Pair::new(small, options());
    let mut chunks = Vec::new();
    let full = loop {
        match pair.a.chunk(1 << 20) {
            Ok(chunk) => chunks.push(chunk.freeze(1 << 20)),
            Err(full) => break full,
        }
    };
    assert_eq!(chunks.len(), 3, "each has a page of slack");
    assert!(matches!(full, PoolExhausted::Full { limit, .. } if limit == 4 << 20));
    let text = full.to_string();
    assert!(text.contains("4194304 bytes"), "{text}");
    // A smaller message has what is left, and then nothing.
    while let Ok(chunk) = pair.a.chunk(1000) {
        chunks.push(chunk.freeze(1000));
    }
    let counts = pair.a.counts();
    assert_eq!(counts.pool_exhausted, 2);
    assert!(counts.segment_bytes <= 4 << 20);

    // A reader holds one for a while.
    let lent = chunks.swap_remove(0);
    pair.a.send(pair.ab, b"", &lent, b"").expect("sent");
    drop(lent);
    assert!(pair.a.chunk(1 << 20).is_err());
    assert_eq!(poll(&pair.a, 0), []);
    drop(receive(&pair.b));
    assert_eq!(
        poll(&pair.a, 0),
        [pteros_shm::ConnectionEvent::ChunkAvailable]
    );
    pair.a.chunk(1 << 20).expect("room");
    let large = pair.a.chunk((64 << 20) + 4096).expect_err("too large");
    assert!(matches!(large, PoolExhausted::TooLarge { .. }));
}

#[test]
fn a_chunk_waiter_is_woken_once_per_wait() {
    const LEN: usize = 500_000;
    let mut small = options();
    small.pool_bytes = 4 << 20;
    let pair = Pair::new(small, options());
    // Edge-triggered, as a context watches it: how often it rang shows in no counter.
    let watched = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
    let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
    let data = epoll::EventData::new_u64(0);
    epoll::add(&watched, pair.a.doorbell(), data, edge).expect("watched");
    let rings = || {
        let mut events = Vec::with_capacity(4);
        let buffer = rustix::buffer::spare_capacity(&mut events);
        let at_once = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        epoll::wait(&watched, buffer, Some(&at_once)).expect("a look")
    };
    // Its counter is above zero from the beginning.
    assert_eq!(rings(), 1);
    let mut own = Vec::new();
    while let Ok(chunk) = pair.a.chunk(LEN) {
        own.push(chunk.freeze(LEN));
    }
    let lent: Vec<_> = own
        .drain(..3)
        .map(|body| {
            pair.a.send(pair.ab, b"", &body, b"").expect("sent");
            receive(&pair.b).expect("there")
        })
        .collect();
    assert_eq!(rings(), 0);
    // Each returned chunk counts: the first ring makes the waiter collect all of
    // them.
    drop(lent);
    assert_eq!(rings(), 1);
    assert_eq!(
        poll(&pair.a, 0),
        [pteros_shm::ConnectionEvent::ChunkAvailable]
    );
    drop(own.pop());
    assert_eq!(rings(), 0, "nobody lacks one");
    while let Ok(chunk) = pair.a.chunk(LEN) {
        own.push(chunk.freeze(LEN));
    }
    // A poll that finds nothing does not end the wait: a chunk that this process
    // returns is reported.
    assert_eq!(poll(&pair.a, 0), []);
    assert_eq!(rings(), 0);
    drop(own);
    assert_eq!(rings(), 1, "a lack of its own");
}

#[test]
fn a_message_that_is_little_more_than_a_power_of_two_takes_no_chunk_twice_its_size() {
    let pair = Pair::new(options(), options());
    for (len, segment_bytes) in [(1 << 20, 1 << 20), ((1 << 20) + 4036, 1 << 20)] {
        let before = pair.a.counts().segment_bytes;
        let chunk = pair.a.chunk(len).expect("room");
        assert_eq!(chunk.len(), len);
        let made = pair.a.counts().segment_bytes - before;
        assert!(made <= segment_bytes + 4096, "{made} bytes for {len}");
        drop(chunk);
    }
    let before = pair.a.counts().segment_bytes;
    pair.a.chunk((1 << 20) + 4037).expect("room");
    assert!(pair.a.counts().segment_bytes - before >= 2 << 20);
}

#[test]
fn prefaulted_chunks_are_distinguished_from_new_and_held_ones() {
    let pair = Pair::new(options(), options());
    assert!(
        pair.a.prefaulted_chunk(100_000).is_none(),
        "nothing was used"
    );
    let chunk = pair.a.chunk(100_000).expect("room").freeze(100_000);
    pair.a.send(pair.ab, b"", &chunk, b"").expect("sent");
    let place = chunk.as_ptr();
    drop(chunk);
    assert!(
        pair.a.prefaulted_chunk(100_000).is_none(),
        "its reader has it"
    );
    drop(receive(&pair.b));
    let chunk = pair.a.prefaulted_chunk(100_000).expect("it came back");
    assert_eq!(chunk.as_ptr(), place);
    drop(chunk);
    assert!(
        pair.a.prefaulted_chunk(120_000).is_none(),
        "never used so far"
    );
}

#[test]
fn one_chunk_is_prefaulted_ahead() {
    let mut small = options();
    small.pool_bytes = 4 << 20;
    let pair = Pair::new(small, options());
    let mut kept = Vec::new();
    for made in 0..4 {
        pair.a.prefault(1_000_000);
        pair.a.prefault(1_000_000);
        let Some(chunk) = pair.a.prefaulted_chunk(1_000_000) else {
            // A chunk has a page of slack: three fit.
            assert_eq!((made, pair.a.counts().pool_exhausted), (3, 0));
            return;
        };
        let next = pair.a.prefaulted_chunk(1_000_000);
        assert!(next.is_none(), "for one, after {made}");
        kept.push(chunk);
    }
    panic!("{} chunks beyond the limit", kept.len());
}

#[test]
fn a_reader_may_hold_at_most_half_of_the_pool() {
    let mut small = options();
    small.pool_bytes = 16 << 20;
    let pair = Pair::new(small, options());
    let mut kept = Vec::new();
    let refused = loop {
        let body = pair.a.chunk(1 << 20).expect("a chunk").freeze(1 << 20);
        match pair.a.send(pair.ab, b"", &body, b"") {
            Ok(()) => kept.push(receive(&pair.b).expect("there")),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, SendRefusal::PoolShareExceeded);
    assert_eq!(kept.len(), 7, "each is a megabyte and a page");
    kept.pop();
    let body = pair.a.chunk(1 << 20).expect("a chunk").freeze(1 << 20);
    pair.a.send(pair.ab, b"", &body, b"").expect("room");

    let mut small = Vec::new();
    let refused = loop {
        let body = pair.b.chunk(600).expect("a chunk").freeze(600);
        match pair.b.send(pair.ba, b"", &body, b"") {
            Ok(()) => small.push(receive(&pair.a).expect("there")),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, SendRefusal::TooManyLoans);
    assert_eq!(small.len(), pteros_shm::LOANS_MAX);
}

#[test]
fn new_segments_are_sent_before_they_are_used() {
    let pair = Pair::new(options(), options());
    let mut kept = Vec::new();
    for class in 10..24 {
        for _ in 0..4 {
            let bytes = pattern(1 << class, class);
            let mut chunk = pair.a.chunk(bytes.len()).expect("a chunk");
            chunk.copy_from_slice(&bytes);
            let body = chunk.freeze(bytes.len());
            pair.a.send(pair.ab, b"", &body, b"").expect("sent");
            let (whole, record) = receive(&pair.b).expect("there");
            assert!(whole == bytes, "class {class}");
            kept.push((record, bytes));
        }
    }
    for (record, bytes) in kept {
        assert!(record.body.expect("a chunk") == bytes, "nobody wrote it");
    }
    assert!(pair.a.counts().segments > 14);
}

#[test]
fn each_further_segment_of_a_size_doubles_its_chunks() {
    // Small chunks fill 256 KiB; a large one is a segment of its own.
    for (len, first) in [(1_000, 240), (10_000, 12), (500_000, 1)] {
        let transport = open(options());
        let mut held = Vec::new();
        let mut total = first;
        for segments in 1..5 {
            while held.len() < total {
                held.push(transport.chunk(len).expect("a chunk"));
                let counts = transport.counts();
                let chunks = counts.chunks_used + counts.chunks_free;
                assert_eq!((counts.segments, chunks), (segments, total), "{len}");
            }
            total *= 2;
        }
    }
}

#[test]
fn unused_segments_are_retired_for_other_sizes() {
    let mut small = options();
    small.pool_bytes = 32 << 20;
    let pair = Pair::new(small, options());
    for (round, len) in [600, 5_000, 3 << 20, 70_000, 1_000, 8 << 20, 2_000]
        .into_iter()
        .enumerate()
    {
        // All that there is, in this size; a few of them over the connection.
        let mut bodies = Vec::new();
        while let Ok(chunk) = pair.a.chunk(len) {
            bodies.push(chunk.freeze(len));
        }
        let counts = pair.a.counts();
        assert!(counts.segment_bytes <= 32 << 20);
        assert!(counts.segment_bytes > 15 << 20, "{len}: {counts:?}");
        drop(bodies.split_off(3.min(bodies.len())));
        let first = bodies.remove(0);
        drop(bodies);
        pair.a
            .send(pair.ab, &[round as u8], &first, b"")
            .expect("sent");
        let (whole, record) = receive(&pair.b).expect("there");
        assert_eq!(whole.len(), len + 1);
        drop((first, record));
    }
}

#[test]
fn a_sleeper_is_woken_once_per_sleep_and_never_when_awake() {
    let pair = Pair::new(options(), options());
    let send = || pair.a.send(pair.ab, b"x", b"", b"").expect("sent");
    send();
    assert_eq!(pair.a.counts().doorbells_rung, 0);
    assert!(!pair.b.arm_doorbell(), "something waits");
    send();
    assert_eq!(pair.a.counts().doorbells_rung, 0);
    while receive(&pair.b).is_some() {}
    for sleep in 1..4 {
        assert!(pair.b.arm_doorbell());
        send();
        send();
        assert_eq!(pair.a.counts().doorbells_rung, sleep);
        pair.b.disarm_doorbell();
        while receive(&pair.b).is_some() {}
    }
}

#[test]
fn a_deferred_sleeper_is_woken_once_half_a_ring_waits_and_not_before() {
    let mut small = options();
    small.ring_bytes = 4096;
    let pair = Pair::new(small, options());
    // 128 bytes with its header.
    let send = || pair.a.send(pair.ab, &[0; 96], b"", b"").expect("sent");
    let rung = || pair.a.counts().doorbells_rung;
    for sleep in 1..4 {
        assert!(pair.b.defer_doorbell());
        for sent in 1..=20 {
            send();
            assert_eq!(rung(), sleep - 1 + u64::from(sent >= 16), "{sent}");
        }
        pair.b.disarm_doorbell();
        while receive(&pair.b).is_some() {}
    }
    (0..20).for_each(|_| send());
    assert_eq!(rung(), 3, "it is awake");
    // Nobody would ring for what it did not see.
    assert!(!pair.b.defer_doorbell(), "something waits");
    while receive(&pair.b).is_some() {}
    assert!(pair.b.defer_doorbell());
}

#[test]
fn a_deferred_sleeper_is_woken_before_its_share_of_the_pool_is_exhausted() {
    let mut small = options();
    small.pool_bytes = 32 << 20;
    let pair = Pair::new(small, options());
    assert!(pair.b.defer_doorbell());
    let mut sent = 0;
    while pair.a.counts().doorbells_rung == 0 {
        let chunk = pair.a.chunk(1 << 20).expect("a chunk");
        let body = chunk.freeze(1 << 20);
        pair.a.send(pair.ab, b"x", &body, b"").expect("sent");
        sent += 1;
    }
    assert!((2..16).contains(&sent), "{sent}");
}
