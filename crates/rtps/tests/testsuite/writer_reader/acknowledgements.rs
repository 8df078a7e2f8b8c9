//! Acknowledgements as a writer and its readers know them.

use crate::writer_reader::*;

#[test]
fn what_one_reader_has_acknowledged_does_not_count_for_another() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let other = pair.reader(2, reliable());
    // It does not know the writer yet.
    pair.match_reader_only(w, other);
    pair.write_many(w, 3);
    pair.run_ms(200);
    let (own, far) = (pair.guid(r), pair.guid(other));
    let writer = &pair.writers[w.0].machine;
    assert!(writer.readers().is_acked_by(own));
    assert!(!writer.readers().is_acked_by(far));
    let stranger = pair::prefix(7).with(own.entity);
    assert!(writer.readers().is_acked_by(stranger), "it awaits nothing");
    assert_eq!(writer.readers().first_unacked(own), Some(SequenceNumber(4)));
    assert_eq!(writer.readers().first_unacked(far), None);
    assert_eq!(writer.readers().first_unacked(stranger), None);
    let guid = writer.guid();
    let missing = |r: R| pair.readers[r.0].machine.first_missing(guid);
    assert_eq!(missing(r), Some(SequenceNumber(4)));
    assert_eq!(missing(other), None);
}

#[test]
fn a_number_that_is_skipped_at_an_earlier_time_does_not_turn_back_the_clock() {
    let (mut pair, w, _) = joined(reliable(), reliable());
    pair.run_ms(100);
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.write(now, number(1)).unwrap();
    assert_eq!(
        machine.next_timeout(),
        Some(now),
        "it has something to send"
    );
    machine.skip_sequence_number(pteros_rtps::time::Instant::ZERO);
    assert_eq!(machine.next_timeout(), Some(now));
}

/// A claim beyond the announced numbers needs a HEARTBEAT that confirms it. A GAP of
/// announced numbers claims nothing new.
#[test]
fn a_gap_of_announced_numbers_needs_no_confirmation() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.write_many(w, 3);
    pair.run_ms(200);
    pair.net.log.clear();
    let writer = pair.writer_guid(w).entity;
    let last = SequenceNumber(3);
    let gap = Gap::range(EntityId::UNKNOWN, writer, last, last);
    let now = pair.now();
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_gap(now, &source(), &gap);
    pair.run_ms(200);
    assert_eq!(pair.net.count(is_acknack), 0, "no heartbeat is requested");
    assert_eq!(pair.numbers(r), [1, 2, 3]);
}

/// The heartbeat that a reader answers may be older than the last sample, whose own
/// heartbeat came before the reader knew the writer.
#[test]
fn the_first_acknack_that_lacks_the_last_sample_gets_a_heartbeat_at_once() {
    let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
    pair.match_reader_only(w, r);
    pair.write_many(w, 1);
    pair.run_ms(1);
    pair.net.log.clear();
    let acknack = AckNack {
        reader: pair.guid(r).entity,
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::empty(SequenceNumber(1)),
        count: 1,
        is_final: true,
    };
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.handle_acknack(now, pair::prefix(1), &acknack);
    pair.flush();
    assert_eq!(pair.net.count(is_heartbeat), 1);
}

/// Numbers that were skipped without being announced before are acknowledged once a
/// HEARTBEAT agrees. One that names less, as the writer's own does here, disagrees.
#[test]
fn skipped_numbers_are_not_acknowledged_while_heartbeats_name_less() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.write_many(w, 3);
    pair.run_ms(200);
    pair.net.log.clear();
    let forged = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: pair.writer_guid(w).entity,
        first: SequenceNumber(10),
        last: SequenceNumber(10),
        count: 50,
        is_final: false,
        liveliness: false,
        group_info: None,
    };
    for (first, last, count) in [(10, 10, 50), (1, 5, 51)] {
        let heartbeat = Heartbeat {
            first: SequenceNumber(first),
            last: SequenceNumber(last),
            count,
            ..forged
        };
        let now = pair.now();
        let machine = &mut pair.readers[r.0].machine;
        machine.handle_heartbeat(now, &source(), &heartbeat);
        pair.run_ms(1);
    }
    let acknowledged = pair.net.log.iter().flatten().filter_map(|s| match s {
        SubmessageSummary::AckNack(base, _) => Some(*base),
        _ => None,
    });
    assert_eq!(acknowledged.max(), Some(4));
}

/// A stack that does not compare what we compare takes our reader for matched, and its
/// writer waits for it.
#[test]
fn a_reader_that_refused_a_writer_does_not_block_it_and_receives_nothing() {
    let (mut pair, w, r) = joined(keep_all(4), reliable());
    let refusing = pair.reader(2, reliable());
    let uninvolved = pair.reader(2, best_effort());
    pair.match_reader_only(w, refusing);
    pair.write_many(w, 4);
    pair.run_ms(2_000);
    assert!(
        pair.try_write(w, number(5)).is_err(),
        "the test has a blocked writer"
    );
    pair.readers[refusing.0].refuses = true;
    pair.readers[uninvolved.0].refuses = true;
    for n in 5..100 {
        pair.run_ms(1_000);
        pair.try_write(w, number(n)).expect("acknowledged");
    }
    pair.run_ms(1_000);
    assert_eq!(pair.numbers(r), (1..100).collect::<Vec<_>>());
    assert_eq!(lost(&pair, r), 0);
    let of_refusing = &pair.readers[refusing.0];
    assert_eq!(
        (of_refusing.received.len(), of_refusing.events.len()),
        (0, 0)
    );
    assert_eq!(of_refusing.machine.matched_count(), 0);
    assert_eq!(of_refusing.machine.next_timeout(), None);
    assert_eq!(pair.readers[uninvolved.0].machine.stats().acknacks, 0);
    // Matched later, it counts on and receives what comes then.
    pair.readers[refusing.0].refuses = false;
    pair.match_writer_only(refusing, w);
    pair.run_ms(100);
    pair.write_many(w, 3);
    pair.run_ms(200);
    assert_eq!(pair.numbers(refusing), [100, 101, 102]);
    assert!(
        pair.writers[w.0]
            .machine
            .readers()
            .is_acked_by(pair.guid(refusing))
    );
}

#[test]
fn a_refusing_reader_answers_only_heartbeats_that_ask_it() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let refusing = pair.reader(2, reliable());
    let (matched, writer) = (pair.guid(r).entity, pair.writer_guid(w));
    let own = pair.guid(refusing).entity;
    let mut out = Outbox::new();
    let mut answers = |of: R, reader: EntityId, is_final: bool, last: i64| {
        let heartbeat = Heartbeat {
            reader,
            writer: writer.entity,
            first: SequenceNumber(1),
            last: SequenceNumber(last),
            count: 1,
            is_final,
            liveliness: false,
            group_info: None,
        };
        let machine = &mut pair.readers[of.0].machine;
        machine.acknowledge_refused(writer.prefix, &heartbeat, &pair::route(0), &mut out);
        let count = out.iter().count();
        out.clear();
        count
    };
    assert_eq!(answers(refusing, own, false, 3), 1);
    assert_eq!(answers(refusing, EntityId::UNKNOWN, false, 0), 1);
    assert_eq!(answers(refusing, own, false, i64::MAX), 1);
    assert_eq!(answers(refusing, own, true, 3), 0, "nothing is asked");
    assert_eq!(answers(refusing, matched, false, 3), 0, "another is asked");
    assert_eq!(answers(r, matched, false, 3), 0, "it answers by itself");
}
