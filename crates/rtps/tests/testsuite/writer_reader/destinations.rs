//! Several readers of one process, and directed writes to one of them.

use crate::writer_reader::*;

#[test]
fn readers_of_one_process_share_one_datagram() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let readers: Vec<R> = (0..3).map(|_| pair.reader(1, reliable())).collect();
    let other = pair.reader(2, best_effort());
    for r in readers.iter().chain([&other]) {
        pair.join(w, *r);
    }
    pair.run_ms(50);
    pair.net.log.clear();
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(pair.net.count(is_data(1)), 2, "one per process");
    assert_eq!(pair.net.count(is_heartbeat), 1, "none for best effort");
    for r in readers.iter().chain([&other]) {
        assert_eq!(pair.numbers(*r), [1]);
    }
}

#[test]
fn a_directed_write_reaches_one_reader_and_delays_no_other() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_all(100));
    let clients: Vec<R> = (1..=3).map(|node| pair.reader(node, reliable())).collect();
    for r in &clients {
        pair.join(w, *r);
    }
    pair.run_ms(50);
    pair.net.log.clear();
    for round in 0..10 {
        for r in &clients {
            pair.write_for(w, *r, &[round; 4]);
            pair.run(Duration::from_micros(100));
        }
    }
    for (index, r) in clients.iter().enumerate() {
        let expected: Vec<i64> = (0..10).map(|n| n * 3 + 1 + index as i64).collect();
        assert_eq!(pair.numbers(*r), expected);
        assert_eq!(lost(&pair, *r), 0);
    }
    assert_eq!(
        pair.net.count(|s| matches!(s, SubmessageSummary::Data(_))),
        30
    );
    pair.run_ms(500);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
    assert_eq!(pair.writers[w.0].machine.cached_samples(), 0);
    pair.net.log.clear();
    pair.run_ms(10_000);
    assert!(pair.net.log.is_empty());
}

#[test]
fn directed_writes_are_retransmitted_like_others() {
    let mut pair = Pair::with_seed(3);
    let w = pair.writer(0, keep_all(1_000));
    let clients: Vec<R> = (0..4).map(|n| pair.reader(1 + n / 2, reliable())).collect();
    for r in &clients {
        pair.join(w, *r);
    }
    pair.run_ms(50);
    pair.net.faults.loss_percent = 30;
    for _ in 0..50 {
        for r in &clients {
            pair.write_for(w, *r, &[0; 4]);
        }
        pair.run_ms(1);
    }
    pair.run_ms(2_000);
    pair.net.heal();
    pair.run_ms(1_000);
    for (index, r) in clients.iter().enumerate() {
        let expected: Vec<i64> = (0..50).map(|n| n * 4 + 1 + index as i64).collect();
        assert_eq!(pair.numbers(*r), expected);
        assert_eq!(lost(&pair, *r), 0);
    }
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

#[test]
fn numbers_given_to_local_readers_only_are_declared_irrelevant() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for _ in 0..5 {
        let now = pair.now();
        pair.writers[w.0].machine.skip_sequence_number(now);
        pair.write_many(w, 1);
    }
    pair.run(Duration::from_micros(100));
    assert_eq!(pair.numbers(r), [2, 4, 6, 8, 10]);
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn a_reused_destination_gets_no_earlier_gap() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(20));
    let elsewhere = pair.reader(2, transient_local(20));
    let first = pair.reader(1, transient_local(20));
    pair.join(w, first);
    pair.join(w, elsewhere);
    pair.write_for(w, elsewhere, &[0; 4]);
    pair.run_ms(50);
    let guid = pair.guid(first);
    pair.writers[w.0].machine.unmatch_reader(guid);
    pair.write_many(w, 3);
    let second = pair.reader(1, transient_local(20));
    pair.join(w, second);
    pair.write_for(w, elsewhere, &[0; 4]);
    pair.write_many(w, 1);
    pair.run_ms(100);
    assert_eq!(pair.numbers(second), [2, 3, 4, 6]);
}

/// With many readers few answer at once. Each answer of one must not cause
/// heartbeats to all the others.
#[test]
fn an_acknack_of_one_reader_causes_no_heartbeat_to_others() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_all(10_000));
    let (quick, hung) = (pair.reader(1, reliable()), pair.reader(2, reliable()));
    pair.join(w, quick);
    pair.run_ms(50);
    pair.match_reader_only(w, hung);
    pair.write_many(w, 1);
    pair.run_ms(5_000);
    let before = pair.net.bytes_to[&pair::locator(2)];
    for _ in 0..250 {
        pair.write_for(w, quick, &[0; 4]);
        pair.run_ms(20);
    }
    assert_eq!(pair.numbers(quick).len(), 251);
    let heartbeats = (pair.net.bytes_to[&pair::locator(2)] - before) / 68;
    // As if there were no quick reader: every 200 ms, then more rarely.
    assert!((10..=30).contains(&heartbeats), "{heartbeats} in 5 s");
}
