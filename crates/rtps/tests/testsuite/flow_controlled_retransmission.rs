//! Retransmission by flow-controlled writers with small bursts, on fake time:
//! requests come faster than they can be served.

use pteros_test_support::rtps::pair;

use pair::net::SubmessageSummary;
use pair::{Pair, R, W, prefix};
use pteros_rtps::qos::{EndpointQos, History};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::wire::{AckNack, SequenceSet};

const FRAGMENTS: usize = 20;

fn qos() -> EndpointQos {
    EndpointQos {
        history: History::KeepLast(100),
        ..EndpointQos::default()
    }
}

/// A flow-controlled writer on node 0 and readers on nodes of their own, matched
/// and quiet.
fn joined(readers: usize) -> (Pair, W, Vec<R>) {
    let mut pair = Pair::new();
    let w = pair.writer_with(0, qos(), |config| config.flow_controlled = true);
    let readers = (1..=readers).map(|node| pair.reader(node, qos()));
    let readers: Vec<R> = readers.collect();
    for r in &readers {
        pair.join(w, *r);
    }
    for _ in 0..5 {
        pair.send(w, 10);
        pair.run_ms(10);
    }
    pair.net.log.clear();
    (pair, w, readers)
}

fn image(first: u8) -> Vec<u8> {
    let mut image = vec![0; FRAGMENTS * 1_344];
    image[0] = first;
    image
}

/// A datagram each millisecond.
fn poll_small_burst(pair: &mut Pair, w: W, millis: usize) {
    for _ in 0..millis {
        pair.send(w, 1);
        pair.run_ms(1);
    }
}

/// Requests all samples up to a number, as a reader that receives none.
fn request_all(pair: &mut Pair, w: W, r: R, last: i64, count: u32) {
    let acknack = AckNack {
        reader: pair.guid(r).entity,
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::from_numbers(SequenceNumber(1), (1..=last).map(SequenceNumber)),
        count: 1_000 + count,
        is_final: true,
    };
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.handle_acknack(now, prefix(1), &acknack);
}

// Found by the simulator, seed 192: each request restarted the retransmission. The
// missing fragments of the oldest samples, the only ones that the reader could
// store, came last.
#[test]
fn a_slow_retransmission_ends_though_the_reader_keeps_requesting() {
    let (mut pair, w, r) = joined(1);
    let r = r[0];
    for n in 1..=30 {
        pair.write(w, &image(n));
    }
    // Of all samples something comes, of none enough.
    let beyond_first =
        |summary: &SubmessageSummary| matches!(summary, SubmessageSummary::Frag(_, 2..));
    pair.net.drop_next(usize::MAX, beyond_first);
    while pair.send(w, 50) {
        pair.run_ms(1);
    }
    pair.net.heal();
    assert!(pair.numbers(r).is_empty());
    pair.net.log.clear();
    // Slower by far than the reader's requests.
    poll_small_burst(&mut pair, w, 800);
    assert_eq!(pair.numbers(r), (1..=30).collect::<Vec<_>>());
    let asked = |summary: &SubmessageSummary| {
        matches!(
            summary,
            SubmessageSummary::AckNack(_, 1..) | SubmessageSummary::NackFrag(..)
        )
    };
    assert!(pair.net.count(asked) >= 10);
    let sent = pair
        .net
        .count(|summary| matches!(summary, SubmessageSummary::Frag(..)));
    assert!(sent <= 30 * FRAGMENTS + 150, "{sent} fragments");
    poll_small_burst(&mut pair, w, 20);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

#[test]
fn a_large_sample_requested_again_and_again_is_sent_to_its_end() {
    let (mut pair, w, _) = joined(0);
    let r = pair.reader(1, qos());
    pair.match_reader_only(w, r);
    for n in 1..=30 {
        pair.write(w, &image(n));
    }
    while pair.send(w, 50) {}
    pair.net.log.clear();
    // Each time for one sample more, and heartbeats come between.
    for count in 0..FRAGMENTS as u32 + 5 {
        request_all(&mut pair, w, r, 1 + i64::from(count), count);
        pair.send(w, 1);
        pair.run_ms(1);
    }
    let last = FRAGMENTS as u32;
    let ends = |summary: &SubmessageSummary| *summary == SubmessageSummary::Frag(1, last);
    assert_eq!(pair.net.count(ends), 1, "{:?}", pair.net.log);
}

#[test]
fn a_reader_that_requests_all_the_time_delays_neither_others_nor_new_samples() {
    let (mut pair, w, _) = joined(0);
    let never_content = pair.reader(1, qos());
    pair.match_reader_only(w, never_content);
    let other = pair.reader(2, qos());
    pair.join(w, other);
    poll_small_burst(&mut pair, w, 20);
    pair.net
        .drop_next(2, |summary| *summary == SubmessageSummary::Data(3));
    for n in 1..=8 {
        pair.write(w, &[n; 1_000]);
    }
    while pair.send(w, 50) {}
    pair.run_ms(1);
    assert_eq!(pair.numbers(other), [1, 2]);
    for count in 0..60 {
        request_all(&mut pair, w, never_content, 8, count);
        if count == 30 {
            assert_eq!(pair.numbers(other), (1..=8).collect::<Vec<_>>());
            pair.write(w, &[9; 1_000]);
        }
        pair.send(w, 1);
        pair.run_ms(1);
    }
    assert_eq!(pair.numbers(other), (1..=9).collect::<Vec<_>>());
}

/// The timer requested in vain while the sample was partly sent; it requests again
/// when the sample is complete.
#[test]
fn the_end_of_a_slow_directed_sample_is_retransmitted_though_nothing_follows() {
    let (mut pair, w, readers) = joined(2);
    pair.net.drop_next(
        1,
        |summary| matches!(summary, SubmessageSummary::Frag(_, last) if *last as usize == FRAGMENTS),
    );
    pair.write_for(w, readers[0], &image(1));
    poll_small_burst(&mut pair, w, FRAGMENTS);
    assert!(pair.numbers(readers[0]).is_empty(), "the last one is lost");
    poll_small_burst(&mut pair, w, 100);
    assert_eq!(pair.numbers(readers[0]), [1]);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

/// Found by the simulator (seed 1001015926): without credit each probe of this writer was of
/// the highest request. The lowest one, behind which all others waited, never came.
#[test]
fn each_probe_begins_with_the_lowest_request() {
    let (mut pair, w, _) = joined(0);
    let r = pair.reader(1, qos());
    pair.match_reader_only(w, r);
    for n in 1..=60 {
        pair.write(w, &image(n));
    }
    while pair.send(w, 50) {}
    // More than the initial window.
    request_all(&mut pair, w, r, 60, 0);
    while pair.send(w, 50) {}
    pair.net.log.clear();
    for count in 1..=100 {
        request_all(&mut pair, w, r, 60, count);
        poll_small_burst(&mut pair, w, 10);
    }
    let is_lowest = |summary: &SubmessageSummary| matches!(summary, SubmessageSummary::Frag(1, _));
    let is_fragment = |summary: &SubmessageSummary| matches!(summary, SubmessageSummary::Frag(..));
    let (lowest, all) = (pair.net.count(is_lowest), pair.net.count(is_fragment));
    assert!(lowest >= 3, "{lowest} fragments of the lowest");
    assert_eq!(lowest, all, "nothing else while that is not acknowledged");
}
