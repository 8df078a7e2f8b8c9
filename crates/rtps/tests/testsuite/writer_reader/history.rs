//! The writer's history cache: keep last, keep all, and refused writes.

use crate::writer_reader::*;

#[test]
fn keep_last_overwrites_unacknowledged_samples_and_counts_them() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.faults.loss_percent = 100;
    pair.write_many(w, 25);
    pair.run_ms(100);
    pair.net.heal();
    pair.run_ms(300);
    // The depth is 10.
    assert_eq!(pair.numbers(r), (16..=25).collect::<Vec<_>>());
    assert_eq!(pair.writers[w.0].machine.stats().overwritten, 15);
    assert_eq!(lost(&pair, r), 15);
}

#[test]
fn keep_all_refuses_a_write_until_the_reader_has_caught_up() {
    let (mut pair, w, r) = joined(keep_all(4), reliable());
    pair.net.drop_next(1_000, is_acknack);
    pair.write_many(w, 4);
    let refused = pair.try_write(w, NewChange::default());
    assert!(matches!(
        refused,
        Err(WriteError::WouldBlock {
            samples: 4,
            samples_max: 4,
            ..
        })
    ));
    assert_eq!(
        pair.writers[w.0].machine.next_sequence().0,
        5,
        "no number is used"
    );
    pair.run_ms(1);
    assert!(!pair.writers[w.0].events.contains(&WriterEvent::SpaceFreed));
    pair.net.heal();
    pair.run_ms(210);
    assert!(pair.writers[w.0].events.contains(&WriterEvent::SpaceFreed));
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4, 5]);
    // Once for the write that was refused.
    pair.write_many(w, 1);
    pair.run_ms(210);
    let events = pair.writers[w.0].events.iter();
    let freed = events.filter(|event| **event == WriterEvent::SpaceFreed);
    assert_eq!(freed.count(), 1);
}

#[test]
fn a_blocked_writer_requests_acknowledgements_at_once() {
    let (mut pair, w, _) = joined(keep_all(4), reliable());
    pair.write_many(w, 4);
    assert!(pair.try_write(w, NewChange::default()).is_err());
    pair.run(Duration::from_micros(150));
    assert!(pair.writers[w.0].events.contains(&WriterEvent::SpaceFreed));
}

#[test]
fn a_blocked_application_that_retries_causes_no_traffic() {
    let (mut pair, w, _) = joined(keep_all(4), reliable());
    pair.net.drop_next(10_000, is_acknack);
    pair.write_many(w, 4);
    for _ in 0..1_000 {
        assert!(pair.try_write(w, NewChange::default()).is_err());
        pair.run(Duration::from_micros(10));
    }
    let heartbeats = pair.net.count(is_heartbeat);
    assert!(heartbeats < 10, "{heartbeats} heartbeats in 10 ms");
}

#[test]
fn a_writer_whose_only_slow_reader_is_unmatched_can_write_again() {
    let (mut pair, w, r) = joined(keep_all(2), reliable());
    pair.net.faults.loss_percent = 100;
    pair.write_many(w, 2);
    assert!(pair.try_write(w, NewChange::default()).is_err());
    let guid = pair.guid(r);
    pair.writers[w.0].machine.unmatch_reader(guid);
    pair.flush();
    assert!(pair.writers[w.0].events.contains(&WriterEvent::SpaceFreed));
    pair.write_many(w, 5);
}

#[test]
fn a_keep_all_reader_that_is_not_polled_blocks_the_writer_and_loses_nothing() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_all(4));
    let r = pair.reader_with(1, keep_all(3), |config| {
        config.limits.reorder_samples_max = 16
    });
    pair.join(w, r);
    pair.run_ms(50);
    pair.readers[r.0].paused = true;
    let mut written = 0;
    for _ in 0..100 {
        if pair.try_write(w, number(written + 1)).is_ok() {
            written += 1;
        }
        pair.run_ms(5);
    }
    // Ready queue, reorder buffer and history are full.
    assert_eq!(written, 3 + 16 + 4);
    pair.readers[r.0].paused = false;
    pair.run_ms(1_000);
    pair.write_many(w, 1);
    pair.run_ms(500);
    assert_eq!(pair.numbers(r), (1..=written + 1).collect::<Vec<_>>());
}

#[test]
fn a_sample_over_the_size_limit_is_refused() {
    let mut pair = Pair::new();
    let w = pair.writer_with(0, reliable(), |c| c.limits.sample_bytes_max = 100);
    let change = NewChange {
        payload: Bytes::from(vec![0; 101]),
        ..NewChange::default()
    };
    let error = pair.try_write(w, change).expect_err("too large");
    assert_eq!(
        error,
        WriteError::TooLarge {
            bytes: 101,
            bytes_max: 100
        }
    );
    assert!(error.to_string().contains("101 bytes"));
}

#[test]
fn a_history_is_filled_to_its_last_byte() {
    // The smallest limit under which so many samples of 8 bytes are kept.
    let smallest = |samples: usize| {
        let is_enough = |bytes: &usize| {
            let mut pair = Pair::new();
            let w = pair.writer_with(0, transient_local(10), |c| {
                c.limits.history_bytes_max = *bytes;
            });
            for _ in 0..samples {
                let _ = pair.try_write(w, number(0));
            }
            pair.writers[w.0].machine.cached_samples() == samples
        };
        (1..10_000).find(is_enough).unwrap()
    };
    let (two, three) = (smallest(2), smallest(3));
    let each = three - two;
    assert_eq!((two, three), (2 * each, 3 * each));
}
