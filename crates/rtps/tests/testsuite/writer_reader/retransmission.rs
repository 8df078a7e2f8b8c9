//! Retransmission, the heartbeat period and its back-off; an idle pair sends
//! nothing.

use crate::writer_reader::*;

#[test]
fn a_sample_and_its_heartbeat_share_a_datagram_and_the_next_one_is_final() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for n in 1..=2 {
        pair.write_many(w, 1);
        pair.run(Duration::from_millis(1));
        assert_eq!(pair.numbers(r).last(), Some(&n));
    }
    assert_eq!(
        pair.net.log,
        [
            vec![
                SubmessageSummary::Data(1),
                SubmessageSummary::Heartbeat(1, 1, false)
            ],
            vec![SubmessageSummary::AckNack(2, 0)],
            vec![
                SubmessageSummary::Data(2),
                SubmessageSummary::Heartbeat(1, 2, true)
            ],
        ]
    );
}

#[test]
fn a_lost_sample_is_retransmitted_one_round_trip_after_the_next_one() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1, is_data(2));
    pair.write_many(w, 3);
    pair.run(Duration::from_micros(200));
    assert_eq!(pair.numbers(r), [1, 2, 3]);
    assert_eq!(pair.readers[r.0].machine.stats().lost, 0);
}

#[test]
fn the_last_sample_is_retransmitted_though_nothing_follows_it() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1, is_data(1));
    pair.write_many(w, 1);
    pair.run_ms(11);
    assert_eq!(pair.numbers(r), [1]);
}

#[test]
fn an_idle_acknowledged_pair_sends_nothing() {
    let (mut pair, w, _) = joined(reliable(), reliable());
    pair.write_many(w, 3);
    pair.run_ms(1_000);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
    assert!(
        pair.writers[w.0]
            .events
            .contains(&WriterEvent::AllAcknowledged)
    );
    assert_eq!(
        pair.writers[w.0].machine.cached_samples(),
        0,
        "no reader needs them"
    );
    pair.net.log.clear();
    pair.run_ms(60_000);
    assert_eq!(pair.net.log, Vec::<Vec<SubmessageSummary>>::new());
}

#[test]
fn the_heartbeat_period_backs_off_from_10_to_200_ms_without_an_answer() {
    let (mut pair, w, _) = joined(reliable(), reliable());
    pair.net.drop_next(1_000, is_acknack);
    pair.write_many(w, 1);
    pair.run_ms(275);
    // The one with the data, then 13 at 10 ms (sum 130), then after 20, 40 and 80
    // (sum 270) ms.
    assert_eq!(pair.net.count(is_heartbeat), 1 + 13 + 3);
    pair.net.log.clear();
    pair.run_ms(4_000);
    let count = pair.net.count(is_heartbeat);
    assert!((19..=22).contains(&count), "{count} heartbeats in 4 s");
}

/// A reader may answer late or never, for instance when its process hangs.
#[test]
fn the_heartbeat_period_grows_for_a_silent_reader_and_resets_with_its_answer() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1_000_000, |_| true);
    pair.write_many(w, 1);
    pair.run_ms(60_000);
    pair.net.log.clear();
    pair.run_ms(60_000);
    let count = pair.net.count(is_heartbeat);
    assert!((29..=31).contains(&count), "{count} heartbeats in a minute");
    pair.net.heal();
    pair.net.log.clear();
    // It gets a heartbeat within two seconds, and from then on as after a write.
    pair.net.drop_next(6, is_data(1));
    pair.run_ms(2_100);
    assert_eq!(pair.numbers(r), [1]);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

#[test]
fn fast_dds_gets_a_preemptive_acknack_with_base_zero() {
    for (vendor, base) in [(VendorId::FAST_DDS, 0), (VendorId::CYCLONE, 1)] {
        let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
        pair.writers[w.0].vendor = vendor;
        // The reader matches first, and its preemptive ACKNACK comes before the
        // writer matches.
        pair.match_reader_only(w, r);
        pair.run_ms(1);
        pair.net.log.clear();
        pair.match_writer_only(r, w);
        pair.run_ms(1);
        assert_eq!(pair.net.log[0], [SubmessageSummary::AckNack(base, 0)]);
    }
}

/// A reader that has not answered. Cyclone DDS starts a volatile one after the last
/// number of the first heartbeat it receives, and drops earlier samples.
#[test]
fn no_heartbeat_names_a_sample_before_the_reader_has_answered() {
    let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
    pair.match_reader_with(w, r, VendorId::CYCLONE);
    pair.run_ms(50);
    pair.write_many(w, 3);
    pair.run_ms(50);
    let names_a_sample =
        |summary: &SubmessageSummary| matches!(summary, SubmessageSummary::Heartbeat(_, 1.., _));
    assert!(pair.net.count(is_heartbeat) > 3);
    assert_eq!(pair.net.count(names_a_sample), 0);
    assert_eq!(
        pair.net.log[1][..2],
        [
            SubmessageSummary::Heartbeat(1, 0, false),
            SubmessageSummary::Data(1)
        ],
        "the heartbeat comes first"
    );
    // It gets everything written after the match, though nothing is retransmitted
    // before it could request it.
    pair.match_writer_only(r, w);
    pair.run_ms(300);
    assert_eq!(pair.numbers(r), [1, 2, 3]);
    pair.net.log.clear();
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(pair.net.log[0][0], SubmessageSummary::Data(4));
}

#[test]
fn a_reader_that_never_answers_finally_gets_the_true_last_number() {
    let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
    pair.match_reader_with(w, r, VendorId::CYCLONE);
    pair.write_many(w, 1);
    pair.run_ms(3_000);
    let names_it =
        |summary: &SubmessageSummary| matches!(summary, SubmessageSummary::Heartbeat(1, 1, false));
    assert!(pair.net.count(names_it) > 0);
}

#[test]
fn a_reader_that_answered_gets_no_heartbeat_while_nothing_was_written() {
    let (mut pair, ..) = Pair::matched(reliable(), reliable());
    pair.run_ms(500);
    // On a match the writer sends a heartbeat and the reader a preemptive ACKNACK,
    // and both are answered: either may arrive before the other side has matched.
    assert_eq!(pair.net.count(is_heartbeat), 2);
    assert_eq!(pair.net.count(is_acknack), 1 + 2);
}

#[test]
fn a_preemptive_acknack_is_no_answer_to_a_heartbeat() {
    let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
    pair.match_reader_with(w, r, VendorId::CYCLONE);
    pair.write_many(w, 1);
    pair.run_ms(5);
    pair.net.log.clear();
    let unasked = AckNack {
        reader: pair.guid(r).entity,
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::empty(SequenceNumber::FIRST),
        count: 1,
        is_final: false,
    };
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.handle_acknack(now, pair::prefix(1), &unasked);
    pair.run_ms(1);
    assert_eq!(
        pair.net.log,
        [vec![SubmessageSummary::Heartbeat(1, 0, false)]]
    );
}

/// Found at 300 000 messages a second: a buffer of 256 samples refused all that came while
/// a lost sample was requested, so each round trip moved on by 256.
#[test]
fn what_follows_a_lost_sample_for_a_thousand_samples_is_sent_once() {
    let (mut pair, w, r) = joined(keep_all(5_000), reliable());
    pair.net.drop_next(1, is_data(1));
    for _ in 0..20 {
        pair.write_many(w, 100);
    }
    pair.run_ms(500);
    assert_eq!(pair.numbers(r), (1..=2_000).collect::<Vec<_>>());
    for number in 2..=2_000 {
        assert_eq!(pair.net.count(is_data(number)), 1, "{number}");
    }
}

#[test]
fn only_the_first_fragment_of_a_first_sample_has_a_heartbeat_before_it() {
    let (mut pair, w, r) = Pair::unmatched(reliable(), reliable());
    pair.match_reader_only(w, r);
    pair.run_ms(50);
    pair.match_writer_only(r, w);
    pair.net.log.clear();
    pair.write(w, &[7; 200_000]);
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), [1]);
    let fragments: Vec<_> = pair
        .net
        .log
        .iter()
        .filter(|summary| {
            summary
                .iter()
                .any(|s| matches!(s, SubmessageSummary::Frag(1, _)))
        })
        .collect();
    assert_eq!(
        fragments[0][..],
        [
            SubmessageSummary::Heartbeat(1, 0, false),
            SubmessageSummary::Frag(1, 1)
        ]
    );
    for later in &fragments[1..] {
        assert!(
            matches!(later[0], SubmessageSummary::Frag(1, _)),
            "{later:?}"
        );
    }
}

#[test]
fn new_samples_reset_the_heartbeat_period_to_10_ms() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1_000, is_acknack);
    pair.write_many(w, 1);
    pair.run_ms(5_000);
    pair.net.heal();
    pair.net.drop_next(1, is_data(2));
    pair.write_many(w, 1);
    pair.run_ms(11);
    assert_eq!(pair.numbers(r), [1, 2]);
}

#[test]
fn a_request_is_repeated_until_it_is_answered_even_if_every_heartbeat_is_lost() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1, is_data(1));
    pair.net.drop_next(3, is_acknack);
    pair.write_many(w, 2);
    pair.net.drop_next(10_000, is_heartbeat);
    // Requests at 0, then 20, 40 and 80 ms after one another.
    pair.run_ms(145);
    assert_eq!(pair.numbers(r), [1, 2]);
}

#[test]
fn a_gap_without_a_heartbeat_is_requested_after_a_delay() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.write_many(w, 1);
    pair.run_ms(50);
    strip_heartbeats(&mut pair);
    pair.net.drop_next(1, is_data(2));
    pair.write_many(w, 2);
    pair.run_ms(6);
    assert_eq!(pair.numbers(r), [1, 2, 3]);
}

#[test]
fn duplicated_and_reordered_datagrams_have_no_effect() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net
        .rule(1, DatagramFate::Delay(Duration::from_millis(3)), is_data(1));
    pair.net.rule(10, DatagramFate::Duplicate, |summary| {
        matches!(
            summary,
            SubmessageSummary::Data(2) | SubmessageSummary::Heartbeat(..)
        )
    });
    pair.write_many(w, 4);
    pair.run_ms(30);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4]);
    assert!(pair.readers[r.0].machine.stats().duplicates > 0);
}

#[test]
fn requests_that_cross_the_retransmission_are_suppressed() {
    let (mut pair, w, r) = joined(keep_all(100), reliable());
    pair.net.latency = Duration::from_millis(2);
    for number in [1, 4, 7, 10] {
        pair.net.drop_next(1, is_data(number));
    }
    for _ in 0..20 {
        pair.write_many(w, 1);
        pair.run(Duration::from_micros(400));
    }
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), (1..=20).collect::<Vec<_>>());
    // Four losses within one round trip. The heartbeat after a retransmission
    // requests all missing samples, since a lost retransmission must not wait for a
    // timer.
    let resent = pair.writers[w.0].machine.stats().samples_retransmitted;
    assert!(resent <= 10, "sent again {resent} times");
}

#[test]
fn a_steady_stream_is_acknowledged_every_256_samples_or_10_ms_not_each_time() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for _ in 0..1_000 {
        pair.write_many(w, 1);
        pair.run(Duration::from_micros(100));
    }
    pair.run_ms(50);
    assert_eq!(pair.numbers(r).len(), 1_000);
    let acknacks = pair.net.count(is_acknack);
    assert!((9..=14).contains(&acknacks), "{acknacks} acknowledgements");
}

#[test]
fn a_burst_is_sent_in_parts_and_arrives_complete() {
    let (mut pair, w, r) = joined(keep_all(10_000), reliable());
    for number in 1..=500_i64 {
        let change = NewChange {
            payload: Bytes::copy_from_slice(&number.to_le_bytes()),
            ..NewChange::default()
        };
        let now = pair.now();
        pair.writers[w.0].machine.write(now, change).expect("room");
    }
    let mut out = Outbox::new();
    let now = pair.now();
    assert!(pair.writers[w.0].machine.poll_transmit(now, &mut out));
    assert_eq!(out.len(), 64);
    pair.net.send(&mut out);
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), (1..=500).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_is_unreachable_for_five_seconds_catches_up_at_once() {
    let (mut pair, w, r) = joined(keep_all(1_000), reliable());
    pair.net.faults.loss_percent = 100;
    pair.write_many(w, 900);
    pair.run_ms(5_000);
    pair.net.heal();
    pair.run_ms(220);
    assert_eq!(pair.numbers(r), (1..=900).collect::<Vec<_>>());
}

/// A retransmission of many samples takes several bursts.
#[test]
fn a_requested_sample_that_is_replaced_between_bursts_is_skipped() {
    let last_three = EndpointQos {
        history: History::KeepLast(3),
        ..EndpointQos::default()
    };
    let (mut pair, w, r) = joined(last_three.clone(), last_three);
    pair.net.faults.loss_percent = 100;
    for _ in 0..3 {
        pair.write(w, &image(1000));
    }
    pair.net.heal();
    let mut state = SequenceSet::empty(SequenceNumber(1));
    for number in 1..=3 {
        state.insert(SequenceNumber(number));
    }
    let acknack = AckNack {
        reader: pair.guid(r).entity,
        writer: pair.writer_guid(w).entity,
        state,
        count: 50,
        is_final: true,
    };
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.handle_acknack(now, pair::prefix(1), &acknack);
    let one = Burst {
        datagrams: 1,
        bytes: usize::MAX,
    };
    let mut first = Outbox::new();
    assert!(machine.poll_transmit_up_to(now, one, &mut first));
    assert_eq!(machine.stats().samples_retransmitted, 1);
    // The second requested sample is replaced.
    for n in 4..=5 {
        machine.write(now, number(n)).expect("room");
    }
    pair.run_ms(100);
    assert_eq!(pair.numbers(r), [3, 4, 5]);
}
