//! Acknowledgements as a writer and its readers know them.

use crate::*;

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
    assert!(writer.is_acked_by(own));
    assert!(!writer.is_acked_by(far));
    let stranger = pair::prefix(7).with(own.entity);
    assert!(writer.is_acked_by(stranger), "it awaits nothing");
    assert_eq!(writer.first_unacked(own), Some(SequenceNumber(4)));
    assert_eq!(writer.first_unacked(far), None);
    assert_eq!(writer.first_unacked(stranger), None);
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
