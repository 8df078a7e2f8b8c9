//! Batching for LATENCY_BUDGET, on fake time: small samples share datagrams.

use pteros_test_support::rtps::pair;

use bytes::Bytes;
use pair::net::SubmessageSummary;
use pair::{Pair, R, W};
use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::qos::{EndpointQos, History, Reliability};
use pteros_rtps::time::Duration;
use pteros_rtps::writer::NewChange;

fn budget(millis: i64) -> EndpointQos {
    EndpointQos {
        latency_budget: Duration::from_millis(millis),
        history: History::KeepLast(100),
        ..EndpointQos::default()
    }
}

/// One writer on node 0, readers on nodes from 1 on, matched and quiet.
fn joined<const N: usize>(qos: &EndpointQos) -> (Pair, W, [R; N]) {
    let mut pair = Pair::new();
    let w = pair.writer(0, qos.clone());
    let readers = std::array::from_fn(|at| {
        let r = pair.reader(1 + at, qos.clone());
        pair.join(w, r);
        r
    });
    pair.run_ms(100);
    pair.net.log.clear();
    (pair, w, readers)
}

fn data(summary: &SubmessageSummary) -> bool {
    matches!(
        summary,
        SubmessageSummary::Data(_) | SubmessageSummary::Frag(..)
    )
}

/// Datagrams that carry samples.
fn carriers(pair: &Pair) -> usize {
    let all = pair.net.log.iter();
    all.filter(|datagram| datagram.iter().any(data)).count()
}

#[test]
fn samples_are_held_until_the_latency_budget_of_the_first_ends() {
    let (mut pair, w, [r]) = joined(&budget(5));
    for _ in 0..4 {
        pair.write_many(w, 1);
        pair.run_ms(1);
    }
    assert!(pair.net.log.is_empty());
    pair.run_ms(2);
    let expected = [
        SubmessageSummary::Data(1),
        SubmessageSummary::Data(2),
        SubmessageSummary::Data(3),
        SubmessageSummary::Data(4),
        SubmessageSummary::Heartbeat(1, 4, true),
    ];
    assert_eq!(pair.net.log, [expected]);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4]);
    // The next one has a budget of its own.
    pair.write_many(w, 1);
    pair.run_ms(4);
    assert_eq!(carriers(&pair), 1);
    pair.run_ms(2);
    assert_eq!(carriers(&pair), 2);
}

#[test]
fn a_batch_for_best_effort_readers_has_no_heartbeat() {
    let best_effort = EndpointQos {
        reliability: Reliability::BestEffort,
        ..budget(5)
    };
    let (mut pair, w, [r]) = joined(&best_effort);
    pair.write_many(w, 2);
    pair.run_ms(10);
    let expected = [SubmessageSummary::Data(1), SubmessageSummary::Data(2)];
    assert_eq!(pair.net.log, [expected]);
    assert_eq!(pair.numbers(r), [1, 2]);
}

/// Found by the simulator (seed 67): the heartbeat at the match began with the sample that
/// was held back, and the reader counted it as lost.
#[test]
fn a_reader_that_joins_while_samples_are_held_back_loses_none() {
    let qos = budget(20);
    let (mut pair, w, [early]) = joined(&qos);
    pair.write_many(w, 2);
    pair.run_ms(50);
    // Held back for the first reader.
    pair.write_many(w, 1);
    pair.run_ms(5);
    let late = pair.reader(2, qos);
    // Its answers are lost, so the next datagram begins with a heartbeat.
    pair.net.drop_next(usize::MAX, |summary| {
        matches!(summary, SubmessageSummary::AckNack(..))
    });
    pair.join(w, late);
    pair.run_ms(50);
    pair.net.heal();
    pair.write_many(w, 2);
    pair.run_ms(100);
    assert_eq!(pair.numbers(early), [1, 2, 3, 4, 5]);
    assert_eq!(pair.numbers(late), [4, 5]);
    assert_eq!(pair.readers[late.0].machine.stats().lost, 0);
}

#[test]
fn without_a_budget_each_sample_is_sent_at_once() {
    let (mut pair, w, [_]) = joined(&budget(0));
    pair.write_many(w, 20);
    assert_eq!(carriers(&pair), 20);
}

#[test]
fn a_thousand_samples_take_fifty_datagrams_instead_of_a_thousand() {
    for qos in [
        budget(20),
        EndpointQos {
            reliability: Reliability::BestEffort,
            ..budget(20)
        },
    ] {
        let (mut pair, w, [r]) = joined(&qos);
        for _ in 0..1_000 {
            pair.write(w, &[7; 16]);
            pair.run(Duration::from_micros(500));
        }
        pair.run_ms(50);
        assert_eq!(pair.numbers(r), (1..=1_000).collect::<Vec<_>>());
        let sent = carriers(&pair);
        // 24 of 52 bytes fill 1,400; 40 come in a budget.
        assert!((38..=50).contains(&sent), "{sent}");
    }
}

#[test]
fn a_batch_has_a_heartbeat_for_reliable_readers_alone() {
    let best_effort = EndpointQos {
        reliability: Reliability::BestEffort,
        ..budget(5)
    };
    let (mut pair, w, [reliable]) = joined(&budget(5));
    let other = pair.reader(2, best_effort);
    pair.join(w, other);
    pair.run_ms(100);
    pair.net.log.clear();
    pair.write_many(w, 2);
    pair.run_ms(5);
    let samples = [SubmessageSummary::Data(1), SubmessageSummary::Data(2)];
    let heartbeat = SubmessageSummary::Heartbeat(1, 2, true);
    let to_reliable = [&samples[..], &[heartbeat]].concat();
    assert_eq!(pair.net.log, [to_reliable, samples.to_vec()]);
    pair.run_ms(10);
    assert_eq!(pair.numbers(reliable), [1, 2]);
    assert_eq!(pair.numbers(other), [1, 2]);
}

#[test]
fn a_full_datagram_is_sent_at_once_and_none_is_larger() {
    let (mut pair, w, [r]) = joined(&budget(1_000));
    pair.net.mtu = 1_400;
    for _ in 0..20 {
        pair.write(w, &[1; 400]);
    }
    pair.run_ms(1);
    assert_eq!(pair.numbers(r).len(), 20);
    assert_eq!(carriers(&pair), 10);
    let full = EndpointQos {
        history: History::KeepLast(1_000),
        ..budget(1_000)
    };
    for bytes in 1..=512 {
        let (mut pair, w, [r]) = joined(&full);
        pair.net.mtu = 1_400;
        while carriers(&pair) == 0 {
            pair.write(w, &vec![1; bytes]);
        }
        pair.run_ms(1);
        assert!(pair.numbers(r).len() >= 2, "{bytes}");
    }
}

#[test]
fn a_large_sample_flushes_the_held_ones_in_order() {
    let (mut pair, w, [r]) = joined(&budget(1_000));
    pair.write_many(w, 3);
    pair.write(w, &[0; 600]);
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4]);
    assert_eq!(carriers(&pair), 2);
    pair.writers[w.0].machine.flush();
    pair.flush();
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4, 5]);
}

#[test]
fn no_held_sample_is_replaced() {
    let (mut pair, w, [r]) = joined(&EndpointQos {
        history: History::KeepLast(4),
        ..budget(1_000)
    });
    pair.write_many(w, 41);
    pair.run_ms(5);
    assert_eq!(pair.numbers(r), (1..=40).collect::<Vec<_>>());
    assert_eq!(carriers(&pair), 10);
}

#[test]
fn no_reader_requests_held_samples_and_a_lost_batch_is_retransmitted() {
    let (mut pair, w, [r]) = joined(&budget(300));
    pair.write_many(w, 5);
    pair.run_ms(299);
    assert!(pair.net.log.is_empty(), "{:?}", pair.net.log);
    pair.net
        .drop_next(1, |summary| matches!(summary, SubmessageSummary::Data(1)));
    pair.run_ms(40);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4, 5]);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

#[test]
fn each_reader_gets_its_samples_without_loss() {
    let (mut pair, w, [a, b]) = joined(&budget(5));
    pair.write_for(w, a, b"for a");
    pair.write_many(w, 2);
    pair.write_for(w, b, b"for b");
    pair.write_for(w, a, b"for a");
    pair.run_ms(100);
    assert_eq!(pair.numbers(a), [1, 2, 3, 5]);
    assert_eq!(pair.numbers(b), [2, 3, 4]);
    assert_eq!(carriers(&pair), 2);
    for r in [a, b] {
        let stats = pair.readers[r.0].machine.stats();
        assert_eq!((stats.lost, stats.nack_frags), (0, 0));
    }
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
    assert_eq!(pair.writers[w.0].machine.stats().samples_retransmitted, 0);
}

#[test]
fn the_end_of_a_coherent_set_flushes_the_set() {
    let (mut pair, w, [_]) = joined(&budget(1_000));
    pair.write_many(w, 3);
    let end = NewChange {
        payload: Bytes::new(),
        coherent_mark: Some(Box::new(CoherentMark {
            kind: CoherentMarkKind::SetEnd,
            ..CoherentMark::default()
        })),
        ..NewChange::default()
    };
    pair.try_write(w, end).unwrap();
    pair.run_ms(1);
    assert_eq!(carriers(&pair), 1);
}

#[test]
fn batches_arrive_complete_under_loss() {
    let keep_all = EndpointQos {
        history: History::KeepAll,
        ..budget(3)
    };
    let (mut pair, w, [r]) = joined(&keep_all);
    pair.net.faults.loss_percent = 20;
    for _ in 0..500 {
        pair.write_many(w, 1);
        pair.run(Duration::from_micros(400));
    }
    pair.net.heal();
    pair.run_ms(1_000);
    assert_eq!(pair.numbers(r), (1..=500).collect::<Vec<_>>());
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}
