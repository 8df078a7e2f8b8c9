//! The number of datagrams that reliability costs, in both directions.

use crate::writer_reader::*;

/// Datagrams of `count` samples with `pause_us` between them, all of which must be
/// acknowledged 20 ms after the last.
fn datagrams(count: usize, pause_us: i64) -> usize {
    let (mut pair, w, r) = joined(keep_all(2_000), reliable());
    pair.run_ms(100);
    let before = pair.net.log.len();
    for _ in 0..count {
        pair.write_many(w, 1);
        pair.run(Duration::from_micros(pause_us));
    }
    pair.run_ms(20);
    assert_eq!(pair.numbers(r).len(), count);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
    pair.net.log.len() - before
}

#[test]
fn a_slow_stream_costs_one_acknack_per_message_and_no_separate_heartbeat() {
    for hz in [1, 10, 50, 100, 150] {
        let sent = datagrams(100, 1_000_000 / hz);
        assert_eq!(sent, 200, "{hz} Hz");
    }
}

#[test]
fn a_fast_stream_and_a_burst_cost_few_acknacks() {
    // One per 10 ms, and the acknowledgement of the last is requested.
    for (pause_us, most) in [(1_000, 1_130), (100, 1_020), (0, 1_007)] {
        let sent = datagrams(1_000, pause_us);
        assert!(sent <= most, "{pause_us} us: {sent}");
    }
}

#[test]
fn a_sample_lost_at_the_end_of_a_slow_stream_is_retransmitted_as_soon_as_before() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for _ in 0..5 {
        pair.write_many(w, 1);
        pair.run_ms(100);
    }
    pair.net.drop_next(1, is_data(6));
    pair.write_many(w, 1);
    // The heartbeat period, and three one-way latencies.
    pair.run_ms(10);
    pair.run(pair.net.latency.times(4));
    assert_eq!(pair.numbers(r).last(), Some(&6));
}

#[test]
fn positive_acknacks_are_deferrable_and_requests_are_not() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.write_many(w, 1);
    pair.run_ms(1);
    let (source, now) = (source(), pair.now());
    let writer = pair.writer_guid(w).entity;
    let machine = &mut pair.readers[r.0].machine;
    assert!(!machine.has_only_positive_acks(), "there is nothing to say");
    for (last, confirms) in [(1, true), (2, false)] {
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first: SequenceNumber(1),
            last: SequenceNumber(last),
            count: 1_000 + u32::try_from(last).unwrap(),
            is_final: false,
            liveliness: false,
            group_info: None,
        };
        machine.handle_heartbeat(now, &source, &heartbeat);
        assert_eq!(machine.has_only_positive_acks(), confirms, "up to {last}");
    }
}
