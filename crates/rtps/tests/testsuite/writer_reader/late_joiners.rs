//! Late joiners: a reader gets the history that its durability requests, once and
//! in order.

use pteros_rtps::seq::SampleIdentity;

use crate::writer_reader::*;

#[test]
fn a_late_joiner_gets_the_last_ten_samples_in_order_though_every_third_datagram_is_lost() {
    let mut pair = Pair::with_seed(5);
    let w = pair.writer(0, transient_local(10));
    let r = pair.reader(1, transient_local(100));
    pair.write_many(w, 37);
    pair.net.faults.loss_percent = 33;
    pair.join(w, r);
    pair.run_ms(2_000);
    pair.net.heal();
    pair.write_many(w, 2);
    pair.run_ms(500);
    assert_eq!(pair.numbers(r), (28..=39).collect::<Vec<_>>());
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn a_late_joiner_with_a_smaller_depth_gets_that_many() {
    for vendor in [VendorId::PTEROS, VendorId::CYCLONE] {
        let mut pair = Pair::new();
        let w = pair.writer(0, transient_local(10));
        pair.writers[w.0].vendor = vendor;
        let r = pair.reader(1, transient_local(3));
        pair.write_many(w, 37);
        pair.match_reader_with(w, r, vendor);
        pair.match_writer_only(r, w);
        pair.run_ms(500);
        assert_eq!(pair.numbers(r), [35, 36, 37], "{vendor:?}");
    }
}

/// The writer knew a round trip of 200 ms from its last changes, and took requests of a late
/// joiner for ones that had crossed their answers.
#[test]
fn a_late_joiner_after_a_slow_network_does_not_wait_for_its_former_round_trip() {
    let (mut pair, w, _) = joined(transient_local(20), transient_local(20));
    pair.net.latency = Duration::from_millis(100);
    for _ in 0..20 {
        pair.write(w, &[7; 20_000]);
        pair.run_ms(500);
    }
    pair.net.latency = Duration::from_micros(300);
    let late = pair.reader(1, transient_local(20));
    pair.net
        .drop_next(15, |s| matches!(s, SubmessageSummary::Frag(10, _)));
    pair.join(w, late);
    pair.run_ms(30);
    assert_eq!(pair.numbers(late), (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_volatile_reader_of_a_transient_local_writer_gets_only_later_samples() {
    for vendor in [VendorId::PTEROS, VendorId::CYCLONE] {
        for writer_first in [true, false] {
            let mut pair = Pair::new();
            let w = pair.writer(0, transient_local(10));
            pair.writers[w.0].vendor = vendor;
            let r = pair.reader(1, reliable());
            pair.write_many(w, 5);
            if writer_first {
                pair.match_reader_with(w, r, vendor);
                pair.run_ms(30);
                pair.match_writer_only(r, w);
            } else {
                pair.match_writer_only(r, w);
                pair.run_ms(30);
                pair.match_reader_with(w, r, vendor);
            }
            pair.run_ms(500);
            pair.write_many(w, 2);
            pair.run_ms(50);
            assert_eq!(pair.numbers(r), [6, 7], "{vendor:?} {writer_first}");
            assert_eq!(lost(&pair, r), 0);
        }
    }
}

#[test]
fn best_effort_late_joiners_get_the_history_once() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(4));
    let qos = EndpointQos {
        reliability: Reliability::BestEffort,
        ..transient_local(4)
    };
    let r = pair.reader(1, qos);
    pair.write_many(w, 9);
    pair.match_writer_only(r, w);
    pair.match_reader_only(w, r);
    pair.write_many(w, 1);
    pair.run_ms(500);
    assert_eq!(pair.numbers(r), [6, 7, 8, 9, 10]);
    assert_eq!(pair.net.count(is_heartbeat), 0);
}

#[test]
fn samples_written_between_the_matches_of_both_sides_are_not_lost() {
    // A reply written before its reader matches the writer (ros2 1253).
    let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
    pair.write_many(w, 5);
    pair.match_reader_only(w, r);
    pair.write_many(w, 3);
    pair.run_ms(100);
    pair.match_writer_only(r, w);
    pair.run_ms(300);
    assert_eq!(pair.numbers(r), [6, 7, 8]);
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn a_sample_that_comes_before_the_first_heartbeat_is_kept() {
    // rmw_cyclonedds 367.
    for (vendor, qos) in [
        (VendorId::PTEROS, reliable()),
        (VendorId::CYCLONE, transient_local(10)),
    ] {
        let mut pair = Pair::new();
        let w = pair.writer(0, qos);
        pair.writers[w.0].vendor = vendor;
        let r = pair.reader(1, reliable());
        pair.write_many(w, 3);
        strip_heartbeats(&mut pair);
        pair.join(w, r);
        pair.write_many(w, 2);
        pair.run_ms(5);
        pair.net.heal();
        pair.run_ms(300);
        assert_eq!(pair.numbers(r), [4, 5], "{vendor:?}");
        assert_eq!(pair.writers[w.0].machine.stats().samples_retransmitted, 0);
    }
}

#[test]
fn late_joiners_of_one_process_do_not_disturb_those_already_there() {
    let mut pair = Pair::new();
    let w = pair.writer(0, transient_local(5));
    let first = pair.reader(1, transient_local(5));
    let volatile = pair.reader(1, reliable());
    pair.join(w, first);
    pair.join(w, volatile);
    pair.write_many(w, 8);
    pair.run_ms(50);
    let late = pair.reader(1, transient_local(5));
    pair.join(w, late);
    pair.run_ms(50);
    pair.write_many(w, 1);
    pair.run_ms(50);
    assert_eq!(pair.numbers(first), (1..=9).collect::<Vec<_>>());
    assert_eq!(pair.numbers(volatile), (1..=9).collect::<Vec<_>>());
    assert_eq!(pair.numbers(late), (4..=9).collect::<Vec<_>>());
}

/// A match over another transport ends, and RTPS goes on with the same writer.
#[test]
fn a_history_that_came_by_another_transport_is_not_delivered_again() {
    for durable in [true, false] {
        let qos = || {
            if durable {
                transient_local(10)
            } else {
                reliable()
            }
        };
        let mut pair = Pair::new();
        let w = pair.writer(0, qos());
        let r = pair.reader(1, qos());
        pair.write_many(w, 5);
        let writer = pair.writer_guid(w);
        let proxy = WriterProxyConfig {
            guid: writer,
            qos: EndpointQos {
                reliability: Reliability::BestEffort,
                ..EndpointQos::default()
            }
            .into(),
            route: Route::by_socket(&[], false),
            vendor: VendorId::PTEROS,
        };
        let now = pair.now();
        let machine = &mut pair.readers[r.0].machine;
        assert!(machine.match_writer(now, proxy));
        for number in 1..=3 {
            let payload = Bytes::from_static(b"\0\x01\0\0data");
            let change = CacheChange::new(writer, SequenceNumber(number), payload);
            machine.handle_whole_sample(now, change);
        }
        machine.set_resume_point(writer);
        machine.unmatch_writer(writer);
        pair.join(w, r);
        pair.write_many(w, 1);
        pair.run_ms(500);
        // A volatile reader gets what is written after the match.
        let expected: &[i64] = if durable {
            &[1, 2, 3, 4, 5, 6]
        } else {
            &[1, 2, 3, 6]
        };
        assert_eq!(pair.numbers(r), expected);
        assert_eq!(lost(&pair, r), 0);
    }
}

/// Regression: over Zenoh one forged request with a high number hid the client's own ones, and
/// its calls had no response.
#[test]
fn a_forged_request_by_another_transport_hides_none_of_its_client() {
    for forged in [310, 1 << 40, i64::MAX, 0, 3] {
        let mut pair = Pair::new();
        let r = pair.reader(1, best_effort());
        let w = pair.writer(0, best_effort());
        let writer = pair.writer_guid(w);
        let proxy = WriterProxyConfig {
            guid: writer,
            qos: best_effort().into(),
            route: Route::by_socket(&[], false),
            vendor: VendorId::PTEROS,
        };
        let now = pair.now();
        let machine = &mut pair.readers[r.0].machine;
        assert!(machine.match_writer(now, proxy));
        let expected = [1, 2, 3, 4, forged, forged, 5, 6, forged, 7];
        for number in expected {
            let payload = Bytes::from_static(b"\0\x01\0\0data");
            let request = CacheChange {
                related_sample_identity: Some(SampleIdentity {
                    writer,
                    sequence: SequenceNumber::UNKNOWN,
                }),
                ..CacheChange::new(writer, SequenceNumber(number), payload)
            };
            machine.handle_whole_sample(now, request);
        }
        pair.run_ms(1);
        assert_eq!(pair.numbers(r), expected);
    }
}

/// One sample in the name of a living writer silenced its readers for good: its number
/// was believed whatever came later.
#[test]
fn a_forged_sample_by_another_transport_silences_its_writer_for_two_seconds_at_most() {
    for forged in [310, 70_000, i64::MAX] {
        let mut pair = Pair::new();
        let r = pair.reader(1, best_effort());
        let w = pair.writer(0, best_effort());
        let writer = pair.writer_guid(w);
        let proxy = WriterProxyConfig {
            guid: writer,
            qos: best_effort().into(),
            route: Route::by_socket(&[], false),
            vendor: VendorId::PTEROS,
        };
        let now = pair.now();
        assert!(pair.readers[r.0].machine.match_writer(now, proxy));
        let take = |pair: &mut Pair, number: i64| {
            let payload = Bytes::from_static(b"\0\x01\0\0data");
            let change = CacheChange::new(writer, SequenceNumber(number), payload);
            let now = pair.now();
            pair.readers[r.0].machine.handle_whole_sample(now, change);
            pair.run_ms(100);
        };
        for number in 1..=10 {
            take(&mut pair, number);
        }
        take(&mut pair, forged);
        for number in 11..=40 {
            take(&mut pair, number);
        }
        let numbers = pair.numbers(r);
        let back: Vec<i64> = numbers
            .iter()
            .copied()
            .filter(|n| (11..=40).contains(n))
            .collect();
        assert!(
            back.starts_with(&[back[0], back[0] + 1]) && back[0] <= 30,
            "{numbers:?}"
        );
        assert_eq!(back.last(), Some(&40));
        // A repetition is still one.
        take(&mut pair, 40);
        take(&mut pair, 12);
        assert_eq!(pair.numbers(r), numbers);
    }
}

#[test]
fn samples_by_another_transport_keep_their_writer_alive() {
    let manual = EndpointQos {
        liveliness: Liveliness::ManualByTopic,
        lease_duration: Duration::from_millis(100),
        ..best_effort()
    };
    let mut pair = Pair::new();
    let r = pair.reader(1, manual.clone());
    let w = pair.writer(0, manual.clone());
    let writer = pair.writer_guid(w);
    let proxy = WriterProxyConfig {
        guid: writer,
        qos: manual.into(),
        route: Route::by_socket(&[], false),
        vendor: VendorId::PTEROS,
    };
    let now = pair.now();
    assert!(pair.readers[r.0].machine.match_writer(now, proxy));
    let ends = |pair: &Pair| {
        let events = pair.readers[r.0].events.iter();
        let ends = events.filter(|event| {
            matches!(
                event,
                ReaderEvent::LivelinessChanged {
                    not_alive_change: 1,
                    ..
                }
            )
        });
        ends.count()
    };
    for number in 1..=10 {
        let now = pair.now();
        let payload = Bytes::from_static(b"\0\x01\0\0data");
        let change = CacheChange::new(writer, SequenceNumber(number), payload);
        pair.readers[r.0].machine.handle_whole_sample(now, change);
        pair.run_ms(60);
    }
    assert_eq!(ends(&pair), 0);
    pair.run_ms(100);
    assert_eq!(ends(&pair), 1);
}
