//! Every loss of a reliable reader is counted and is an event (SAMPLE_LOST, DDS 1.4
//! §2.2.4.1), whatever caused it.

use crate::writer_reader::*;

fn keep_last(depth: u32) -> EndpointQos {
    EndpointQos {
        history: History::KeepLast(depth),
        ..EndpointQos::default()
    }
}

fn cut(pair: &mut Pair) {
    pair.net.drop_next(usize::MAX, |_| true);
}

/// All of `1..=last` are received or lost.
fn assert_accounted(pair: &Pair, r: R, last: u64) {
    let received = pair.numbers(r).len() as u64;
    assert_eq!(received + lost(pair, r), last, "{:?}", pair.numbers(r));
}

#[test]
fn samples_overwritten_during_a_short_cut_are_reported() {
    let (mut pair, w, r) = joined(keep_last(10), keep_last(10));
    pair.write_many(w, 3);
    pair.run_ms(50);
    cut(&mut pair);
    for _ in 0..1_500 {
        pair.write_many(w, 1);
        pair.run_ms(2);
    }
    pair.net.heal();
    pair.run_ms(3_000);
    assert_eq!(lost(&pair, r), 1_490);
    assert_accounted(&pair, r, 1_503);
}

/// The first heartbeat that the reader knows names samples that it missed.
#[test]
fn samples_overwritten_before_a_new_reader_gets_them_are_reported() {
    let (mut pair, w, r) = Pair::unmatched(keep_last(3), keep_last(3));
    pair.match_reader_only(w, r);
    pair.write_many(w, 3);
    pair.run_ms(5);
    let requests = |summary: &_| matches!(summary, SubmessageSummary::AckNack(_, 1..));
    pair.net.drop_next(usize::MAX, requests);
    pair.match_writer_only(r, w);
    pair.run_ms(5);
    pair.write_many(w, 3);
    pair.run_ms(100);
    pair.net.heal();
    pair.run_ms(300);
    assert_eq!(pair.numbers(r), [4, 5, 6]);
    assert_eq!(lost(&pair, r), 3);
}

#[test]
fn samples_published_while_the_lease_was_expired_are_reported() {
    let (mut pair, w, r) = joined(keep_last(10), keep_last(10));
    pair.write_many(w, 3);
    pair.run_ms(50);
    let (writer, reader) = (pair.writer_guid(w), pair.guid(r));
    cut(&mut pair);
    pair.write_many(w, 500);
    // Both sides give each other up.
    pair.readers[r.0].machine.unmatch_writer(writer);
    pair.readers[r.0].machine.note_interruption(writer.prefix);
    pair.writers[w.0].machine.unmatch_reader(reader);
    pair.write_many(w, 1_000);
    pair.run_ms(100);
    assert_eq!(lost(&pair, r), 0, "nobody knows of them yet");
    pair.net.heal();
    pair.join(w, r);
    pair.run_ms(100);
    pair.write_many(w, 2);
    pair.run_ms(1_000);
    assert_eq!(pair.numbers(r), [1, 2, 3, 1_504, 1_505]);
    assert_eq!(lost(&pair, r), 1_500);
}

#[test]
fn samples_published_while_only_the_reader_had_given_up_are_reported() {
    let (mut pair, w, r) = joined(keep_last(10), keep_last(10));
    pair.write_many(w, 3);
    pair.run_ms(50);
    let writer = pair.writer_guid(w);
    cut(&mut pair);
    pair.readers[r.0].machine.unmatch_writer(writer);
    pair.readers[r.0].machine.note_interruption(writer.prefix);
    pair.write_many(w, 1_000);
    pair.run_ms(100);
    pair.net.heal();
    pair.match_writer_only(r, w);
    pair.run_ms(5_000);
    assert_eq!(lost(&pair, r), 990);
    assert_accounted(&pair, r, 1_003);
}

/// Seed 5364 with shared memory, pauses and stalls: a GAP with more holes than the reader
/// has intervals comes several times.
#[test]
fn a_gap_that_finds_no_room_and_is_repeated_counts_once() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_last(10));
    let r = pair.reader_with(1, keep_last(10), |config| config.limits.intervals_max = 2);
    pair.join(w, r);
    pair.write_many(w, 3);
    pair.run_ms(50);
    let writer = pair.writer_guid(w);
    cut(&mut pair);
    let now = pair.now();
    let machine = &mut pair.readers[r.0].machine;
    machine.unmatch_writer(writer);
    machine.note_interruption(writer.prefix);
    pair.match_writer_only(r, w);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        first: SequenceNumber(1),
        last: SequenceNumber(33),
        count: 1_000,
        is_final: false,
        liveliness: false,
        group_info: None,
    };
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source(), &heartbeat);
    for (first, last) in [(10, 10), (14, 14), (18, 18), (22, 22), (18, 22), (4, 33)] {
        let (first, last) = (SequenceNumber(first), SequenceNumber(last));
        let gap = Gap::range(EntityId::UNKNOWN, writer.entity, first, last);
        machine.handle_gap(now, &source(), &gap);
        machine.handle_gap(now, &source(), &gap);
    }
    pair.flush();
    assert_eq!(lost(&pair, r), 30);
}

#[test]
fn a_writer_that_was_unmatched_on_purpose_causes_no_loss() {
    let (mut pair, w, r) = joined(keep_last(10), keep_last(10));
    pair.write_many(w, 3);
    pair.run_ms(50);
    let (writer, reader) = (pair.writer_guid(w), pair.guid(r));
    pair.readers[r.0].machine.unmatch_writer(writer);
    pair.writers[w.0].machine.unmatch_reader(reader);
    pair.write_many(w, 100);
    pair.join(w, r);
    pair.run_ms(100);
    pair.write_many(w, 1);
    pair.run_ms(1_000);
    assert_eq!(pair.numbers(r), [1, 2, 3, 104]);
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn a_writer_that_counts_anew_after_an_interruption_causes_no_loss() {
    let (mut pair, w, r) = joined(keep_last(10), keep_last(10));
    pair.write_many(w, 50);
    pair.run_ms(50);
    let writer = pair.writer_guid(w);
    let machine = &mut pair.readers[r.0].machine;
    machine.unmatch_writer(writer);
    machine.note_interruption(writer.prefix);
    pair.match_writer_only(r, w);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        first: SequenceNumber(3),
        last: SequenceNumber(4),
        count: 1,
        is_final: true,
        liveliness: false,
        group_info: None,
    };
    let now = pair.now();
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source(), &heartbeat);
    pair.run_ms(10);
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn an_oversized_sample_is_reported() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_last(10));
    let r = pair.reader_with(1, reliable(), |c| c.limits.defrag.sample_bytes_max = 10_000);
    pair.join(w, r);
    pair.run_ms(50);
    pair.write(w, &image(1_000));
    pair.write(w, &image(20_000));
    pair.write(w, &image(100_000));
    pair.write(w, &image(1_000));
    pair.run_ms(1_000);
    assert_eq!(pair.numbers(r), [1, 4]);
    assert_eq!(lost(&pair, r), 2);
}

#[test]
fn a_slow_application_that_the_writer_overtakes_is_told() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_last(10));
    let r = pair.reader_with(1, reliable(), |c| {
        c.limits.ready_samples_max = 4;
        c.limits.reorder_samples_max = 4;
    });
    pair.join(w, r);
    pair.run_ms(50);
    pair.net.drop_next(5, is_data(1));
    pair.write_many(w, 200);
    pair.run_ms(3_000);
    assert!(lost(&pair, r) > 0);
    assert_accounted(&pair, r, 200);
}

#[test]
fn a_slow_shared_memory_reader_that_is_overtaken_is_told() {
    let (mut pair, w, r) = joined(keep_last(10), keep_last(10));
    pair.reroute(w, r, true);
    pair.write_many(w, 3);
    pair.run_ms(50);
    cut(&mut pair);
    pair.write_many(w, 100);
    pair.run_ms(50);
    pair.net.heal();
    pair.write_many(w, 1);
    pair.run_ms(3_000);
    assert!(lost(&pair, r) > 0);
    assert_accounted(&pair, r, 104);
}
