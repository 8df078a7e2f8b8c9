//! Peers that leave, send false data, or restart.

use crate::writer_reader::*;

#[test]
fn samples_missing_from_an_unmatched_writer_are_reported_lost() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net
        .drop_next(1_000, |s| matches!(s, SubmessageSummary::Data(2 | 3)));
    pair.write_many(w, 4);
    pair.run_ms(30);
    assert_eq!(pair.numbers(r), [1]);
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.flush();
    assert_eq!(pair.numbers(r), [1, 4]);
    assert_eq!(lost(&pair, r), 2);
}

#[test]
fn ranges_of_any_size_cost_the_same() {
    // CVE-2025-64438, CVE-2025-65016.
    let (mut pair, w, r) = joined(reliable(), reliable());
    let source = source();
    let now = pair.now();
    let writer = pair.writer_guid(w).entity;
    let far = SequenceNumber(i64::MAX - 300);
    let gap = Gap::range(EntityId::UNKNOWN, writer, SequenceNumber(5), far);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer,
        first: SequenceNumber(2),
        last: SequenceNumber(i64::MAX - 1),
        count: 1_000,
        is_final: false,
        liveliness: false,
        group_info: None,
    };
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source, &heartbeat);
    // The second one confirms it.
    let now = now.after(Duration::from_micros(10));
    let heartbeat = Heartbeat {
        count: 1_001,
        ..heartbeat
    };
    machine.handle_heartbeat(now, &source, &heartbeat);
    machine.handle_gap(now, &source, &gap);
    let heartbeat = Heartbeat {
        first: SequenceNumber(i64::MAX - 1),
        count: 1_002,
        ..heartbeat
    };
    machine.handle_heartbeat(now, &source, &heartbeat);
    pair.flush();
    assert!(lost(&pair, r) > 0);
}

#[test]
fn a_full_reorder_buffer_does_not_lose_the_gap_at_its_end() {
    // Cyclone DDS ccbb237.
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_all(10_000));
    let r = pair.reader_with(1, reliable(), |c| c.limits.reorder_samples_max = 8);
    let elsewhere = pair.reader(2, reliable());
    pair.join(w, r);
    pair.join(w, elsewhere);
    pair.run_ms(50);
    pair.net.drop_next(3, is_data(1));
    pair.write_many(w, 40);
    for _ in 0..5 {
        pair.write_for(w, elsewhere, &[0; 4]);
    }
    pair.write_many(w, 1);
    pair.run_ms(1_000);
    let expected: Vec<i64> = (1..=40).chain([46]).collect();
    assert_eq!(pair.numbers(r), expected);
}

#[test]
fn a_peer_that_acknowledges_unsent_samples_gains_nothing() {
    let (mut pair, w, r) = joined(keep_all(4), reliable());
    let acknack = AckNack {
        reader: pair.guid(r).entity,
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::empty(SequenceNumber(1_000)),
        count: 5_000,
        is_final: true,
    };
    let now = pair.now();
    pair.writers[w.0]
        .machine
        .handle_acknack(now, pair::prefix(1), &acknack);
    pair.net.drop_next(1, is_data(1));
    pair.write_many(w, 1);
    assert!(!pair.writers[w.0].machine.readers().is_acked_by_all());
    pair.run_ms(700);
    assert_eq!(pair.numbers(r), [1]);
}

#[test]
fn submessages_of_unmatched_peers_are_counted_and_change_nothing() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let acknack = AckNack {
        reader: EntityId::new([9, 9, 9], 4),
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::empty(SequenceNumber(1)),
        count: 1,
        is_final: false,
    };
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.handle_acknack(now, pair::prefix(9), &acknack);
    assert_eq!(machine.stats().unknown_readers, 1);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId::new([9, 9, 9], 3),
        first: SequenceNumber(1),
        last: SequenceNumber(9),
        count: 1,
        is_final: false,
        liveliness: false,
        group_info: None,
    };
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source(), &heartbeat);
    assert_eq!(machine.stats().unknown_writers, 1);
    pair.net.log.clear();
    pair.run_ms(1_000);
    assert!(pair.net.log.is_empty());
}

#[test]
fn a_reader_that_counts_anew_is_accepted_after_half_a_second() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for _ in 0..40 {
        pair.write_many(w, 1);
        pair.run_ms(20);
    }
    // The reader unmatches the writer; the writer does not notice.
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.run_ms(10);
    pair.match_writer_only(r, w);
    pair.run_ms(10);
    pair.net.drop_next(1, is_data(42));
    pair.write_many(w, 3);
    pair.run_ms(1_500);
    assert_eq!(pair.numbers(r), (1..=43).collect::<Vec<_>>());
}

#[test]
fn a_reset_writer_is_reported_by_readers_that_read_its_history_again() {
    for rereads_history in [false, true] {
        let mut pair = Pair::new();
        let w = pair.writer(0, transient_local(10));
        let r = pair.reader_with(1, transient_local(10), |c| {
            c.rereads_history = rereads_history;
        });
        pair.join(w, r);
        pair.write_many(w, 3);
        pair.run_ms(50);
        let writer = pair.writer_guid(w).entity;
        let mut heartbeat = |count: u32, after_ms: i64| {
            pair.run_ms(after_ms);
            let heartbeat = Heartbeat {
                reader: EntityId::UNKNOWN,
                writer,
                first: SequenceNumber(1),
                last: SequenceNumber(3),
                count,
                is_final: true,
                liveliness: false,
                group_info: None,
            };
            let now = pair.now();
            let machine = &mut pair.readers[r.0].machine;
            machine.handle_heartbeat(now, &source(), &heartbeat);
            pair.flush();
            let mut events = pair.readers[r.0].events.iter();
            events.any(|event| matches!(event, ReaderEvent::WriterReset { .. }))
        };
        (1..10).for_each(|step| assert!(!heartbeat(10 * step, 10)));
        // It counts from one again, and names what it named before.
        assert!(!heartbeat(1, 600));
        assert!(!heartbeat(2, 400));
        assert_eq!(heartbeat(3, 1_000), rereads_history);
        assert_eq!(pair.numbers(r), [1, 2, 3]);
    }
}
