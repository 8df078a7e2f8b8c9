//! Fragmentation: samples larger than a datagram.

use crate::writer_reader::*;

#[test]
fn a_large_sample_is_fragmented_and_single_fragments_are_retransmitted() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let picture = image(1_000_000);
    pair.net
        .drop_next(1, |s| matches!(s, SubmessageSummary::Frag(1, 17)));
    pair.net
        .drop_next(1, |s| matches!(s, SubmessageSummary::Frag(1, 400)));
    pair.write(w, &picture);
    pair.run_ms(5);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
    let stats = pair.writers[w.0].machine.stats();
    assert_eq!(stats.fragments_sent, 1_000_000_u64.div_ceil(1_344));
    assert_eq!(
        (stats.fragments_retransmitted, stats.samples_retransmitted),
        (2, 0)
    );
}

#[test]
fn the_last_fragment_with_its_heartbeat_may_be_lost_too() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let picture = image(10_000);
    pair.net
        .drop_next(1, |s| matches!(s, SubmessageSummary::Frag(1, 8)));
    pair.write(w, &picture);
    pair.run_ms(15);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
}

#[test]
fn on_one_host_fragments_are_63_kb_and_the_size_is_fixed_per_sample() {
    let (mut pair, w, r) = Pair::unmatched(transient_local(5), transient_local(5));
    let picture = image(4_000_000);
    let near = |pair: &Pair, r: R| ReaderProxyConfig {
        guid: pair.guid(r),
        qos: transient_local(5).into(),
        route: Route {
            kind: RouteKind::SameHost,
            ..pair::route(pair.readers[r.0].node)
        },
        expects_inline_qos: false,
        vendor: VendorId::PTEROS,
        content_filter: None,
        payload_form: None,
    };
    let now = pair.now();
    let config = near(&pair, r);
    pair.writers[w.0].machine.match_reader(now, config);
    pair.match_writer_only(r, w);
    pair.write(w, &picture);
    pair.run_ms(5);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
    assert_eq!(pair.writers[w.0].machine.stats().fragments_sent, 64);
    // A later reader on another host gets the same fragments.
    let far = pair.reader(2, transient_local(5));
    pair.join(w, far);
    pair.run_ms(100);
    assert_eq!(pair.readers[far.0].received[0].payload, picture);
    assert!(
        pair.net
            .log
            .iter()
            .flatten()
            .all(|s| !matches!(s, SubmessageSummary::Frag(_, 65..)))
    );
}

/// `ros_discovery_info` has another layout in Humble under the same type name.
#[test]
fn each_reader_gets_the_payload_in_the_form_that_it_reads() {
    fn three_times(payload: &Bytes) -> Bytes {
        payload.repeat(3).into()
    }
    // Whole in both forms, fragmented in one of them, and in both.
    for size in [100, 1_000, 10_000] {
        for budget in [Duration::ZERO, Duration::from_millis(2)] {
            let qos = EndpointQos {
                latency_budget: budget,
                ..transient_local(1)
            };
            let mut pair = Pair::new();
            let w = pair.writer(0, qos.clone());
            let [plain, other] = [1, 2].map(|node| pair.reader(node, qos.clone()));
            pair.join(w, plain);
            pair.write(w, &vec![1; size]);
            let form = Some(PayloadForm(three_times));
            pair.match_reader_in_form(w, other, VendorId::FAST_DDS, form);
            pair.match_writer_only(other, w);
            pair.run_ms(50);
            pair.net.drop_next(2, |s| {
                matches!(
                    s,
                    SubmessageSummary::Frag(2, 3) | SubmessageSummary::Data(2)
                )
            });
            pair.write(w, &vec![2; size]);
            pair.run_ms(500);
            for (reader, times) in [(plain, 1), (other, 3)] {
                let received = &pair.readers[reader.0].received;
                let received: Vec<_> = received.iter().map(|one| one.payload.to_vec()).collect();
                assert_eq!(received, [vec![1; size * times], vec![2; size * times]]);
            }
            assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
        }
    }
}

/// Bytes sent while `send` runs, by a writer that omits INFO_DST, or not.
fn bytes_of(
    spares: bool,
    (kind, vendor): (RouteKind, VendorId),
    send: impl Fn(&mut Pair, W, R),
) -> usize {
    let mut pair = Pair::new();
    let w = pair.writer_with(0, reliable(), |config| {
        config.omits_info_dst = spares;
    });
    let r = pair.reader(1, reliable());
    let config = ReaderProxyConfig {
        guid: pair.guid(r),
        qos: reliable().into(),
        route: Route {
            kind,
            ..pair::route(pair.readers[r.0].node)
        },
        expects_inline_qos: false,
        vendor,
        content_filter: None,
        payload_form: None,
    };
    let now = pair.now();
    pair.writers[w.0].machine.match_reader(now, config);
    pair.match_writer_only(r, w);
    pair.run_ms(50);
    let before = pair.net.bytes_sent;
    send(&mut pair, w, r);
    pair.run_ms(50);
    assert_eq!(pair.readers[r.0].received[0].payload, image(10_000));
    pair.net.bytes_sent - before
}

#[test]
fn fragments_for_all_readers_omit_info_dst_except_the_last_and_retransmitted_ones() {
    let spared =
        |to, send: fn(&mut Pair, W, R)| bytes_of(false, to, send) - bytes_of(true, to, send);
    let plain = |pair: &mut Pair, w, _| {
        pair.write(w, &image(10_000));
    };
    let repaired = |pair: &mut Pair, w, _| {
        pair.net
            .drop_next(2, |s| matches!(s, SubmessageSummary::Frag(1, 3 | 5)));
        pair.write(w, &image(10_000));
    };
    let directed = |pair: &mut Pair, w, r| {
        pair.write_for(w, r, &image(10_000));
    };
    let far = (RouteKind::Network, VendorId::PTEROS);
    let info_dst_bytes = 16;
    // Eight fragments.
    assert_eq!(spared(far, plain), 7 * info_dst_bytes);
    assert_eq!(spared(far, repaired), 7 * info_dst_bytes);
    assert_eq!(spared(far, directed), 0);
    assert_eq!(spared((RouteKind::SameHost, VendorId::PTEROS), plain), 0);
}

#[test]
fn a_pteros_peer_gets_the_timestamp_with_the_last_fragment_and_others_with_each() {
    const TIME: Timestamp = Timestamp::from_nanos(1_700_000_000_123_456_789);
    fn write(pair: &mut Pair, w: W) {
        let change = NewChange {
            payload: Bytes::from(image(10_000)),
            source_timestamp: Some(TIME),
            ..NewChange::default()
        };
        pair.try_write(w, change).expect("room");
    }
    let whole = |pair: &mut Pair, w, r: R| {
        write(pair, w);
        pair.run_ms(20);
        assert_eq!(pair.readers[r.0].received[0].source_timestamp, Some(TIME));
    };
    let without_its_end = |pair: &mut Pair, w, r: R| {
        pair.net
            .drop_next(1, |s| matches!(s, SubmessageSummary::Frag(1, 8)));
        write(pair, w);
        pair.run_ms(20);
        assert_eq!(pair.readers[r.0].received[0].source_timestamp, Some(TIME));
    };
    let spared = |vendor, send: fn(&mut Pair, W, R)| {
        let to = (RouteKind::Network, vendor);
        bytes_of(false, to, send) - bytes_of(true, to, send)
    };
    let (info_dst_bytes, info_ts_bytes) = (16, 12);
    let both = 7 * (info_dst_bytes + info_ts_bytes);
    assert_eq!(spared(VendorId::PTEROS, whole), both);
    assert_eq!(spared(VendorId::PTEROS, without_its_end), both);
    assert_eq!(spared(VendorId::FAST_DDS, whole), 7 * info_dst_bytes);
}

#[test]
fn the_payload_is_not_copied_for_sending() {
    let (mut pair, w, _) = joined(reliable(), reliable());
    let payload = Bytes::from(image(5_000));
    let change = NewChange {
        payload: payload.clone(),
        ..NewChange::default()
    };
    let now = pair.now();
    pair.writers[w.0].machine.write(now, change).expect("room");
    let mut out = Outbox::new();
    pair.writers[w.0].machine.poll_transmit(now, &mut out);
    let mut at = payload.as_ptr();
    for datagram in out.iter() {
        assert_eq!(datagram.parts[1].as_ptr(), at);
        at = at.wrapping_add(datagram.parts[1].len());
    }
    assert_eq!(out.len(), 4);
}

#[test]
fn large_samples_arrive_under_loss_on_best_effort_too_or_are_counted() {
    let (mut pair, w, r) = joined(best_effort(), best_effort());
    pair.net.faults.loss_percent = 5;
    for _ in 0..200 {
        pair.write(w, &image(20_000));
        pair.run_ms(1);
    }
    pair.net.heal();
    pair.write(w, &image(20));
    pair.run_ms(1);
    let received = pair.numbers(r).len() as u64;
    assert!(received > 50);
    assert_eq!(received + lost(&pair, r), 201);
    let whole = &pair.readers[r.0].received[..received as usize - 1];
    assert!(whole.iter().all(|change| change.payload == image(20_000)));
}

#[test]
fn the_lost_end_of_a_burst_is_requested_within_three_milliseconds() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let picture = image(1_000_000);
    pair.net.drop_next(
        300,
        |s| matches!(s, SubmessageSummary::Frag(1, number) if *number > 445),
    );
    pair.write(w, &picture);
    pair.run_ms(4);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
    assert_eq!(
        pair.writers[w.0].machine.stats().fragments_retransmitted,
        299 + 1
    );
}

#[test]
fn a_volatile_reader_that_lost_its_writer_for_a_while_gets_nothing_twice() {
    let (mut pair, w, r) = joined(transient_local(100), reliable());
    pair.write_many(w, 5);
    pair.run_ms(50);
    // Only one direction was cut: the writer never noticed.
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.write_many(w, 2);
    pair.run_ms(50);
    pair.match_writer_only(r, w);
    pair.write_many(w, 1);
    pair.run_ms(100);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4, 5, 6, 7, 8]);
}
