//! Required behaviour of every writer and reader (RTPS 2.5 §8.4.2) on a faulty
//! network, checked on the sent datagrams.

use pteros_test_support::rtps::pair;

use std::collections::BTreeSet;

use pair::net::SubmessageSummary;
use pair::{Pair, R};
use pteros_rtps::qos::{EndpointQos, History, Reliability};
use pteros_rtps::time::Duration;

/// A pair that loses, repeats and reorders a lot, while a writer that
/// keeps little writes in bursts; then it heals.
fn troubled(seed: u64, reliability: Reliability) -> (Pair, R) {
    let qos = EndpointQos {
        history: History::KeepLast(8),
        reliability,
        ..EndpointQos::default()
    };
    let mut pair = Pair::with_seed(seed);
    let w = pair.writer(0, qos.clone());
    let r = pair.reader(1, qos);
    pair.join(w, r);
    pair.net.faults.loss_percent = 30;
    pair.net.faults.duplicate_percent = 20;
    pair.net.faults.jitter = Duration::from_millis(5);
    for burst in 0..20 {
        pair.write_many(w, 1 + burst % 12);
        pair.run_ms(7);
    }
    pair.net.heal();
    pair.run_ms(1_000);
    (pair, r)
}

#[test]
fn an_acknowledgement_is_never_taken_back() {
    for seed in 0..50 {
        let (pair, _) = troubled(seed, Reliability::Reliable);
        let mut highest = 0;
        for summary in pair.net.log.iter().flatten() {
            if let SubmessageSummary::AckNack(base, _) = *summary {
                assert!(base >= highest, "seed {seed}: {base} after {highest}");
                highest = base;
            }
        }
        let last: usize = (0..20).map(|burst| 1 + burst % 12).sum();
        assert_eq!(highest, i64::try_from(last).unwrap() + 1, "seed {seed}");
    }
}

#[test]
fn no_sample_is_sent_before_an_earlier_one() {
    for seed in 0..50 {
        let (pair, _) = troubled(seed, Reliability::Reliable);
        let mut seen = BTreeSet::new();
        let mut repairs = 0;
        for summary in pair.net.log.iter().flatten() {
            let SubmessageSummary::Data(number) = *summary else {
                continue;
            };
            let highest = seen.last().copied().unwrap_or_default();
            if seen.insert(number) {
                assert!(number > highest, "seed {seed}: {number} after {highest}");
            } else {
                repairs += 1;
            }
        }
        assert!(repairs > 0, "seed {seed} repairs nothing");
    }
}

/// §8.4.12.1: what is overtaken is given up, for there is nothing to wait for.
#[test]
fn a_best_effort_reader_never_goes_back() {
    for seed in 0..50 {
        let (pair, r) = troubled(seed, Reliability::BestEffort);
        let numbers = pair.numbers(r);
        let rises = numbers.is_sorted_by(|earlier, later| earlier < later);
        assert!(rises, "seed {seed}: {numbers:?}");
        assert!(!numbers.is_empty(), "seed {seed} brings nothing");
        let asked = |summary: &SubmessageSummary| {
            matches!(
                summary,
                SubmessageSummary::AckNack(..) | SubmessageSummary::Heartbeat(..)
            )
        };
        assert_eq!(pair.net.count(asked), 0, "seed {seed}");
    }
}
