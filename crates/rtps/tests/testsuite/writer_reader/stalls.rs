//! A process that has no processor for a while: it publishes, but handles no timer and
//! no answer.

use crate::writer_reader::*;

/// Found by a soak of ROS 2 programs on a busy machine: a process published, and had no time
/// to receive the answers of a reader that had lost the first sample.
#[test]
fn a_writer_that_hears_no_answers_contradicts_nothing() {
    let (mut pair, w, r) = Pair::unmatched(keep_all(100), reliable());
    pair.stall(0);
    pair.join(w, r);
    pair.net.drop_next(1, is_data(1));
    for _ in 0..15 {
        pair.write_many(w, 1);
        pair.run_ms(100);
    }
    assert_eq!(pair.readers[r.0].machine.stats().resynchronised, 0);
    pair.end_stall();
    pair.run_ms(200);
    assert_eq!(pair.numbers(r), (1..=15).collect::<Vec<_>>());
}

/// As before, with two readers of one process that matched at different times.
#[test]
fn heartbeats_for_an_earlier_reader_contradict_nothing() {
    let (mut pair, w, first) = Pair::unmatched(keep_all(100), reliable());
    pair.stall(0);
    pair.join(w, first);
    pair.write_many(w, 5);
    pair.run_ms(1);
    let second = pair.reader(1, reliable());
    pair.join(w, second);
    for _ in 0..15 {
        pair.write_many(w, 1);
        pair.run_ms(100);
    }
    for r in [first, second] {
        assert_eq!(pair.readers[r.0].machine.stats().resynchronised, 0, "{r:?}");
    }
    pair.end_stall();
    pair.run_ms(200);
    assert_eq!(pair.numbers(first), (1..=20).collect::<Vec<_>>());
    assert_eq!(pair.numbers(second), (6..=20).collect::<Vec<_>>());
}
