//! LIFESPAN, DEADLINE and LIVELINESS on fake time.

use crate::writer_reader::*;

#[test]
fn an_expired_sample_is_not_sent() {
    let qos = EndpointQos {
        lifespan: Duration::from_millis(100),
        ..transient_local(10)
    };
    let mut pair = Pair::new();
    let w = pair.writer(0, qos);
    pair.write_many(w, 3);
    pair.run_ms(60);
    pair.write_many(w, 2);
    pair.run_ms(60);
    let r = pair.reader(1, transient_local(10));
    pair.join(w, r);
    pair.run_ms(30);
    assert_eq!(pair.numbers(r), [4, 5]);
    pair.run_ms(200);
    assert_eq!(pair.writers[w.0].machine.cached_samples(), 0);
    assert_eq!(pair.writers[w.0].machine.stats().expired, 5);
}

#[test]
fn a_lost_sample_that_expires_blocks_no_reader() {
    let qos = EndpointQos {
        lifespan: Duration::from_millis(30),
        ..reliable()
    };
    let (mut pair, w, r) = joined(qos, reliable());
    pair.net.drop_next(100, is_data(1));
    pair.write_many(w, 2);
    pair.run_ms(31);
    pair.write_many(w, 1);
    pair.run_ms(100);
    assert_eq!(pair.numbers(r).last(), Some(&3));
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

#[test]
fn a_sample_that_expires_with_half_its_fragments_lost_blocks_no_reader() {
    let qos = EndpointQos {
        lifespan: Duration::from_millis(30),
        ..reliable()
    };
    let (mut pair, w, r) = joined(qos, reliable());
    pair.net.drop_next(
        100_000,
        |s| matches!(s, SubmessageSummary::Frag(_, number) if *number > 5),
    );
    pair.write(w, &image(20_000));
    pair.run_ms(400);
    assert_eq!(pair.writers[w.0].machine.stats().expired, 1);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
    pair.write(w, &image(20));
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [2]);
}

#[test]
fn a_sample_that_expires_in_the_receive_queue_is_not_delivered() {
    let qos = EndpointQos {
        lifespan: Duration::from_millis(30),
        ..reliable()
    };
    let (mut pair, w, r) = joined(qos, reliable());
    pair.readers[r.0].paused = true;
    pair.write_many(w, 1);
    pair.run_ms(40);
    pair.write_many(w, 1);
    pair.run_ms(1);
    pair.readers[r.0].paused = false;
    pair.flush();
    assert_eq!(pair.numbers(r), [2]);
    assert_eq!(pair.readers[r.0].machine.stats().expired, 1);
}

#[test]
fn both_sides_report_each_missed_deadline() {
    let qos = EndpointQos {
        deadline: Duration::from_millis(100),
        ..reliable()
    };
    let (mut pair, w, r) = joined(qos.clone(), qos);
    pair.run_ms(1_000);
    assert!(
        pair.writers[w.0].events.is_empty(),
        "it begins with the first sample"
    );
    for _ in 0..5 {
        pair.write_many(w, 1);
        pair.run_ms(90);
    }
    pair.run_ms(250);
    let total = |n| WriterEvent::DeadlineMissed { total: n };
    let missed: Vec<_> = pair.writers[w.0]
        .events
        .iter()
        .filter(|e| matches!(e, WriterEvent::DeadlineMissed { .. }))
        .collect();
    assert_eq!(missed, [&total(1), &total(2), &total(3)]);
    let missed = pair.readers[r.0]
        .events
        .iter()
        .filter(|e| matches!(e, ReaderEvent::DeadlineMissed { .. }));
    assert_eq!(missed.count(), 3);
}

fn liveliness(kind: Liveliness) -> EndpointQos {
    EndpointQos {
        liveliness: kind,
        lease_duration: Duration::from_millis(100),
        ..reliable()
    }
}

fn alive(pair: &Pair, r: R) -> (u32, u32) {
    pair.readers[r.0]
        .events
        .iter()
        .rev()
        .find_map(|event| match event {
            ReaderEvent::LivelinessChanged {
                alive_count,
                not_alive_count,
                ..
            } => Some((*alive_count, *not_alive_count)),
            _ => None,
        })
        .unwrap_or((0, 0))
}

#[test]
fn a_manual_by_topic_writer_is_alive_by_writing_and_by_asserting() {
    let qos = liveliness(Liveliness::ManualByTopic);
    let (mut pair, w, r) = joined(qos.clone(), qos);
    assert_eq!(alive(&pair, r), (1, 0));
    for _ in 0..3 {
        pair.write_many(w, 1);
        pair.run_ms(90);
    }
    for _ in 0..3 {
        let now = pair.now();
        pair.writers[w.0].machine.assert_liveliness(now);
        pair.flush();
        pair.run_ms(90);
    }
    assert_eq!(alive(&pair, r), (1, 0));
    pair.run_ms(50);
    assert_eq!(alive(&pair, r), (0, 1));
    let lost = WriterEvent::LivelinessLost { total: 1 };
    assert_eq!(
        pair.writers[w.0]
            .events
            .iter()
            .filter(|e| **e == lost)
            .count(),
        1
    );
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(alive(&pair, r), (1, 0));
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.flush();
    assert_eq!(alive(&pair, r), (0, 0));
}

#[test]
fn an_automatic_writer_is_alive_by_the_assertions_of_its_participant() {
    let qos = liveliness(Liveliness::Automatic);
    let (mut pair, w, r) = joined(qos.clone(), qos);
    for _ in 0..5 {
        pair.run_ms(45);
        let now = pair.now();
        let machine = &mut pair.readers[r.0].machine;
        machine.handle_liveliness_assertion(now, pair::prefix(0), Liveliness::Automatic);
        machine.handle_liveliness_assertion(now, pair::prefix(3), Liveliness::Automatic);
    }
    pair.flush();
    assert_eq!(alive(&pair, r), (1, 0));
    pair.run_ms(101);
    assert_eq!(alive(&pair, r), (0, 1));
    // Alive again, and not alive again.
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(alive(&pair, r), (1, 0));
    pair.run_ms(150);
    assert_eq!(alive(&pair, r), (0, 1));
}

/// Reliable, with this depth.
fn last(depth: u32) -> EndpointQos {
    EndpointQos {
        history: History::KeepLast(depth),
        ..reliable()
    }
}

fn stalls(pair: &Pair, w: W) -> Vec<WriterEvent> {
    let events = pair.writers[w.0].events.iter().copied();
    let is_stall = |event: &WriterEvent| {
        matches!(
            event,
            WriterEvent::ReaderStalled { .. } | WriterEvent::StallEnded { .. }
        )
    };
    events.filter(is_stall).collect()
}

#[test]
fn a_reader_that_acknowledges_nothing_for_two_seconds_is_told_once_and_when_it_goes_on() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let reader = pair.guid(r);
    pair.write_many(w, 3);
    pair.run_ms(5_000);
    assert_eq!(stalls(&pair, w), [], "nothing is outstanding");
    pair.net.faults.loss_percent = 100;
    pair.write_many(w, 1);
    pair.run_ms(1_900);
    assert_eq!(stalls(&pair, w), []);
    pair.run_ms(200);
    assert_eq!(stalls(&pair, w), [WriterEvent::ReaderStalled { reader }]);
    let stalled = |pair: &Pair| {
        pair.writers[w.0]
            .machine
            .readers()
            .stalled()
            .collect::<Vec<_>>()
    };
    assert_eq!(stalled(&pair), [reader]);
    pair.write_many(w, 1);
    pair.run_ms(5_000);
    assert_eq!(stalls(&pair, w).len(), 1, "once per state change");
    pair.net.faults.loss_percent = 0;
    pair.run_ms(2_500);
    let told = [
        WriterEvent::ReaderStalled { reader },
        WriterEvent::StallEnded { reader },
    ];
    assert_eq!(stalls(&pair, w), told);
    assert_eq!(stalled(&pair), []);
    pair.write_many(w, 3);
    pair.run_ms(5_000);
    assert_eq!(stalls(&pair, w), told);
}

/// A network carried no large datagrams. Fragments of the later samples, which are smaller
/// datagrams, arrived one by one, and each began the two seconds anew (seed 5001004577).
#[test]
fn a_reader_that_lacks_the_first_sample_is_stalled_whatever_it_has_of_later_ones() {
    let (mut pair, w, r) = joined(keep_all(100), keep_all(100));
    let told = WriterEvent::ReaderStalled {
        reader: pair.guid(r),
    };
    let is_of_first =
        |submessage: &SubmessageSummary| matches!(submessage, SubmessageSummary::Frag(1, _));
    pair.net.drop_next(usize::MAX, is_of_first);
    pair.net.faults.loss_percent = 10;
    for _ in 0..26 {
        pair.write(w, &[7; 50_000]);
        pair.run_ms(100);
    }
    assert!(
        pair.net
            .count(|of| matches!(of, SubmessageSummary::NackFrag(2.., _)))
            > 10
    );
    assert_eq!(stalls(&pair, w), [told]);
}

/// Fragments of the first sample that the reader lacks count as progress.
#[test]
fn a_late_joiner_on_a_slow_network_with_loss_receives_8_mb_without_a_stall() {
    for loss_percent in [2, 10] {
        let mut pair = Pair::new();
        pair.net.latency = Duration::from_millis(100);
        pair.net.faults.loss_percent = loss_percent;
        let w = pair.writer(0, transient_local(1));
        pair.write(w, &[7; 8_000_000]);
        let r = pair.reader(1, transient_local(1));
        pair.join(w, r);
        pair.run_ms(10_000);
        assert_eq!(pair.numbers(r), [1], "{loss_percent} %");
        assert_eq!(stalls(&pair, w), [], "{loss_percent} %");
    }
}

#[test]
fn a_stalled_reader_that_is_unmatched_is_no_longer_stalled() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let reader = pair.guid(r);
    pair.net.faults.loss_percent = 100;
    pair.write_many(w, 1);
    pair.run_ms(2_500);
    pair.writers[w.0].machine.unmatch_reader(reader);
    pair.flush();
    let ended = WriterEvent::StallEnded { reader };
    assert_eq!(stalls(&pair, w).last(), Some(&ended));
}

/// A publisher of 1 kHz asks for acknowledgements with its samples, so its heartbeat
/// timer never fired. Every sample is replaced within 20 ms.
#[test]
fn a_stopped_reader_is_told_though_a_fast_writer_replaces_every_sample() {
    for (heartbeat, period_ms) in [
        (Duration::from_millis(10), 1),
        (Duration::from_secs(1), 100),
    ] {
        let mut pair = Pair::new();
        let w = pair.writer_with(0, last(20), |config| {
            config.heartbeat.period = heartbeat;
            config.heartbeat.ack_request_samples = 5;
        });
        let r = pair.reader(1, reliable());
        pair.join(w, r);
        let reader = pair.guid(r);
        let publish_for = |pair: &mut Pair, ms: i64| {
            for _ in 0..ms / period_ms {
                pair.write_many(w, 1);
                pair.run_ms(period_ms);
            }
        };
        publish_for(&mut pair, 3_000);
        assert_eq!(stalls(&pair, w), [], "it acknowledges");
        pair.net.faults.loss_percent = 100;
        // The slower one has acknowledged half a second before.
        publish_for(&mut pair, 1_400);
        assert_eq!(stalls(&pair, w), []);
        publish_for(&mut pair, 1_000);
        let told = WriterEvent::ReaderStalled { reader };
        assert_eq!(stalls(&pair, w), [told], "{heartbeat:?}");
        publish_for(&mut pair, 5_000);
        assert_eq!(stalls(&pair, w).len(), 1, "once per state change");
        pair.net.faults.loss_percent = 0;
        publish_for(&mut pair, 1_000);
        assert_eq!(stalls(&pair, w), [told, WriterEvent::StallEnded { reader }]);
    }
}

#[test]
fn a_slow_reader_that_acknowledges_now_and_then_is_not_stalled() {
    let (mut pair, w, _) = joined(last(5), reliable());
    for _ in 0..5 {
        pair.net.faults.loss_percent = 100;
        for _ in 0..18 {
            pair.write_many(w, 1);
            pair.run_ms(100);
        }
        pair.net.faults.loss_percent = 0;
        pair.run_ms(300);
    }
    assert_eq!(stalls(&pair, w), []);
}
