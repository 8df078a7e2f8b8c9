//! Latency of reliable samples on a lossy network, on fake time, and the cost of
//! retransmission.

use pteros_test_support::rtps::pair;

use pair::{Pair, R, W};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{EndpointQos, History};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{AckNack, SequenceSet};

/// A reliable pair, matched before anything is lost.
fn joined(seed: u64, one_way: Duration) -> (Pair, W, R) {
    let qos = EndpointQos {
        history: History::KeepLast(1_000),
        ..EndpointQos::default()
    };
    let mut pair = Pair::with_seed(seed);
    pair.net.latency = one_way;
    let w = pair.writer(0, qos.clone());
    let r = pair.reader(1, qos);
    pair.join(w, r);
    pair.run_ms(1_000);
    (pair, w, r)
}

/// Writes `count` samples `period_ms` apart; how late each came, in ms.
fn lateness((pair, w, r): &mut (Pair, W, R), count: usize, period_ms: i64) -> Vec<i64> {
    let mut late = Vec::new();
    let mut now = 0;
    let period = usize::try_from(period_ms).unwrap();
    while late.len() < count {
        if now % period == 0 && now / period < count {
            pair.write(*w, b"sample");
        }
        pair.run_ms(1);
        now += 1;
        // In order, as a reliable reader hands them on.
        while late.len() < pair.numbers(*r).len() {
            late.push(i64::try_from(now - late.len() * period).unwrap());
        }
        assert!(now < count * period + 60_000, "{} of {count}", late.len());
    }
    late
}

#[test]
fn at_30_percent_loss_and_2_hz_no_sample_is_later_than_200_ms() {
    for seed in 0..40 {
        let mut lossy_pair = joined(seed, Duration::from_micros(500));
        lossy_pair.0.net.faults.loss_percent = 30;
        let late = lateness(&mut lossy_pair, 120, 500);
        let worst = late.iter().max().unwrap();
        assert!(*worst <= 200, "seed {seed}: {worst} ms");
    }
}

#[test]
fn at_5_percent_loss_and_1_khz_99_of_100_take_at_most_two_round_trips_and_2_ms() {
    for (seed, one_way_ms) in [(1, 0), (2, 1), (3, 1)] {
        let mut lossy_pair = joined(seed, Duration::from_millis(one_way_ms));
        lossy_pair.0.net.faults.loss_percent = 5;
        let mut late = lateness(&mut lossy_pair, 20_000, 1);
        late.sort_unstable();
        let p99 = late[late.len() * 99 / 100];
        assert!(
            p99 <= 4 * one_way_ms + 2,
            "{one_way_ms} ms one way: {p99} ms"
        );
    }
}

/// 4 MB are 3 121 fragments, and a NACK_FRAG spans 256. With one NACK_FRAG per round
/// trip of 40 ms, the sample came after half a second.
#[test]
fn lost_fragments_of_a_large_sample_take_at_most_two_round_trips() {
    for seed in 0..20 {
        let mut lossy_pair = joined(seed, Duration::from_millis(20));
        // The writer learns the round trip.
        lateness(&mut lossy_pair, 10, 100);
        let (mut pair, w, r) = lossy_pair;
        pair.net.faults.loss_percent = 1;
        pair.write(w, &vec![7; 4 << 20]);
        let mut took_ms = 0;
        while pair.numbers(r).len() < 11 {
            pair.run_ms(1);
            took_ms += 1;
            assert!(took_ms <= 20 + 2 * 40, "seed {seed}: {took_ms} ms");
        }
        let stats = pair.writers[w.0].machine.stats();
        let percent = stats.fragments_retransmitted * 100 / stats.fragments_sent;
        assert!(percent <= 3, "seed {seed}: {stats:?}");
    }
}

#[test]
fn a_long_round_trip_does_not_cause_repeated_retransmissions() {
    let mut lossy_pair = joined(5, Duration::from_millis(50));
    lossy_pair.0.net.faults.loss_percent = 5;
    lateness(&mut lossy_pair, 5_000, 10);
    let (pair, w, _) = &lossy_pair;
    let stats = pair.writers[w.0].machine.stats();
    // One in twenty is lost, and as many of the retransmissions. Over the seeds 350
    // to 460 are retransmitted.
    assert!(
        (200..500).contains(&stats.samples_retransmitted),
        "{stats:?}"
    );
}

#[test]
fn a_suppressed_request_outlives_an_acknack_that_does_not_repeat_it() {
    let (mut pair, w, r) = joined(6, Duration::from_micros(50));
    pair.net.faults.loss_percent = 100;
    pair.write(w, b"one");
    pair.write(w, b"two");
    pair.run(Duration::from_micros(10));
    let now = pair.now();
    let reader = pair.guid(r);
    let writer = pair.writer_guid(w);
    let machine = &mut pair.writers[w.0].machine;
    let mut answer = |now, count, wanted: &[i64]| {
        let mut state = SequenceSet::empty(SequenceNumber(1));
        for number in wanted {
            state.insert(SequenceNumber(*number));
        }
        let acknack = AckNack {
            reader: reader.entity,
            writer: writer.entity,
            state,
            count,
            is_final: true,
        };
        machine.handle_acknack(now, reader.prefix, &acknack);
        let mut out = Outbox::new();
        machine.poll_transmit(now, &mut out);
        machine.stats().samples_retransmitted
    };
    let at = |us| now.after(Duration::from_micros(us));
    assert_eq!(answer(at(0), 1_000, &[1]), 1, "served at once");
    assert_eq!(answer(at(300), 1_001, &[2]), 1, "so soon, it is put off");
    assert_eq!(answer(at(400), 1_002, &[]), 1);
    assert_eq!(answer(at(1_500), 1_003, &[]), 2, "and was not forgotten");
}

#[test]
fn a_flood_of_acknacks_is_answered_once_per_millisecond_and_in_the_end() {
    let (mut pair, w, r) = joined(6, Duration::from_micros(50));
    pair.write(w, b"one");
    pair.run_ms(10);
    let (start, reader, writer) = (pair.now(), pair.guid(r), pair.writer_guid(w));
    let machine = &mut pair.writers[w.0].machine;
    let before = machine.stats().heartbeats;
    // When each answer was sent, in us.
    let mut answered = Vec::new();
    for us in 0..20_000 {
        let now = start.after(Duration::from_micros(us));
        if us % 10 == 0 && us < 10_000 {
            let acknack = AckNack {
                reader: reader.entity,
                writer: writer.entity,
                state: SequenceSet::empty(SequenceNumber(2)),
                count: 1_000 + u32::try_from(us).unwrap(),
                is_final: false,
            };
            machine.handle_acknack(now, reader.prefix, &acknack);
        }
        machine.handle_timeout(now);
        machine.poll_transmit(now, &mut Outbox::new());
        let total = machine.stats().heartbeats - before;
        answered.extend((answered.len() as u64..total).map(|_| us));
    }
    let expected: Vec<_> = (0..=10).map(|ms| ms * 1_000).collect();
    assert_eq!(answered, expected);
}
