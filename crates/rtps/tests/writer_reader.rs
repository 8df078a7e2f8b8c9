//! A writer and readers on fake time: one story per rule of RTPS 2.5 §8.4 and
//! of the QoS policies, and one per failure known from other stacks.

mod pair;

use bytes::Bytes;
use pair::net::{Fate, Said};
use pair::{Pair, R, W};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::{EntityId, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability, ResourceLimits};
use pteros_rtps::reader::ReaderEvent;
use pteros_rtps::receiver::Source;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{AckNack, Gap, Header, Heartbeat, SequenceSet};
use pteros_rtps::writer::{NewChange, ReaderProxyConfig, WriteError, WriterEvent};

fn reliable() -> EndpointQos {
    EndpointQos::default()
}

fn best_effort() -> EndpointQos {
    EndpointQos {
        reliability: Reliability::BestEffort,
        ..EndpointQos::default()
    }
}

fn keep_all(max_samples: u32) -> EndpointQos {
    EndpointQos {
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples: Some(max_samples),
            ..ResourceLimits::default()
        },
        ..EndpointQos::default()
    }
}

fn latched(depth: u32) -> EndpointQos {
    EndpointQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(depth),
        ..EndpointQos::default()
    }
}

/// One writer on node 0, one reader on node 1, matched and quiet.
fn joined(writer: EndpointQos, reader: EndpointQos) -> (Pair, W, R) {
    let mut pair = Pair::new();
    let w = pair.writer(0, writer);
    let r = pair.reader(1, reader);
    pair.join(w, r);
    pair.run_ms(50);
    pair.net.log.clear();
    (pair, w, r)
}

fn is_data(number: i64) -> impl Fn(&Said) -> bool {
    move |said| matches!(said, Said::Data(n) if *n == number)
}

fn is_acknack(said: &Said) -> bool {
    matches!(said, Said::AckNack(..))
}

#[test]
fn a_sample_and_its_heartbeat_are_one_datagram_and_want_no_answer() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.write_many(w, 1);
    pair.run(Duration::from_millis(1));
    assert_eq!(pair.numbers(r), [1]);
    assert_eq!(
        pair.net.log,
        [vec![Said::Data(1), Said::Heartbeat(1, 1, true)]]
    );
}

#[test]
fn a_lost_sample_is_repaired_in_two_flights_when_the_next_one_comes() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1, is_data(2));
    pair.write_many(w, 3);
    pair.run(Duration::from_micros(200));
    assert_eq!(pair.numbers(r), [1, 2, 3]);
    assert_eq!(pair.readers[r.0].machine.stats().lost, 0);
}

#[test]
fn the_last_sample_is_repaired_though_nothing_follows_it() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net.drop_next(1, is_data(1));
    pair.write_many(w, 1);
    pair.run_ms(11);
    assert_eq!(pair.numbers(r), [1]);
}

// --- Reliability -----------------------------------------------------------

#[test]
fn a_quiet_pair_that_is_acknowledged_sends_nothing() {
    let (mut pair, w, _) = joined(reliable(), reliable());
    pair.write_many(w, 3);
    pair.run_ms(1_000);
    assert!(pair.writers[w.0].machine.is_acked_by_all());
    assert!(
        pair.writers[w.0]
            .events
            .contains(&WriterEvent::AllAcknowledged)
    );
    assert_eq!(
        pair.writers[w.0].machine.kept_count(),
        0,
        "nobody needs them"
    );
    pair.net.log.clear();
    pair.run_ms(60_000);
    assert_eq!(pair.net.log, Vec::<Vec<Said>>::new());
}

#[test]
fn heartbeats_back_off_from_10_to_200_ms_while_nobody_answers() {
    let (mut pair, w, _) = joined(reliable(), reliable());
    pair.net.drop_next(1_000, is_acknack);
    pair.write_many(w, 1);
    pair.run_ms(275);
    // The one along with the data, then 13 at 10 ms (sum 130), then after 20,
    // 40 and 80 (sum 270) ms.
    assert_eq!(pair.net.count(is_heartbeat), 1 + 13 + 3);
    pair.net.log.clear();
    pair.run_ms(10_000);
    let count = pair.net.count(is_heartbeat);
    assert!((49..=52).contains(&count), "{count} heartbeats in 10 s");
}

#[test]
fn fast_dds_is_asked_for_its_first_heartbeat_in_its_own_way() {
    for (vendor, base) in [(VendorId::FAST_DDS, 0), (VendorId::CYCLONE, 1)] {
        let mut pair = Pair::new();
        let w = pair.writer(0, reliable());
        let r = pair.reader(1, reliable());
        pair.writers[w.0].vendor = vendor;
        // It matches first, and its heartbeat comes before we know it.
        pair.writer_learns(w, r);
        pair.run_ms(1);
        pair.net.log.clear();
        pair.reader_learns(r, w);
        pair.run_ms(1);
        assert_eq!(pair.net.log[0], [Said::AckNack(base, 0)]);
    }
}

/// A reader that says nothing yet: Cyclone DDS begins a volatile one after the
/// last number of the first heartbeat it takes, and drops what comes before.
#[test]
fn no_heartbeat_names_a_sample_before_the_reader_has_answered() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader(1, reliable());
    pair.writer_learns(w, r);
    pair.run_ms(50);
    pair.write_many(w, 3);
    pair.run_ms(50);
    let names_a_sample = |said: &Said| matches!(said, Said::Heartbeat(_, 1.., _));
    assert!(pair.net.count(is_heartbeat) > 3);
    assert_eq!(pair.net.count(names_a_sample), 0);
    assert_eq!(
        pair.net.log[1][..2],
        [Said::Heartbeat(1, 0, false), Said::Data(1)],
        "the heartbeat comes first"
    );
    // It gets all that was written after the match, though not sent again
    // before it had the means to ask.
    pair.reader_learns(r, w);
    pair.run_ms(300);
    assert_eq!(pair.numbers(r), [1, 2, 3]);
    pair.net.log.clear();
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(pair.net.log[0][0], Said::Data(4));
}

#[test]
fn a_reader_that_never_answers_is_told_of_samples_in_the_end() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader(1, reliable());
    pair.writer_learns(w, r);
    pair.write_many(w, 1);
    pair.run_ms(3_000);
    let names_it = |said: &Said| matches!(said, Said::Heartbeat(1, 1, false));
    assert!(pair.net.count(names_it) > 0);
}

#[test]
fn an_acknack_that_comes_unasked_is_no_answer_to_a_heartbeat() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader(1, reliable());
    pair.writer_learns(w, r);
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
    assert_eq!(pair.net.log, [vec![Said::Heartbeat(1, 0, false)]]);
}

#[test]
fn only_the_first_fragment_of_a_first_sample_has_a_heartbeat_before_it() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader(1, reliable());
    pair.writer_learns(w, r);
    pair.run_ms(50);
    pair.reader_learns(r, w);
    pair.net.log.clear();
    pair.write(w, &[7; 200_000]);
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), [1]);
    let fragments: Vec<_> = pair
        .net
        .log
        .iter()
        .filter(|said| said.iter().any(|s| matches!(s, Said::Frag(1, _))))
        .collect();
    assert_eq!(
        fragments[0][..],
        [Said::Heartbeat(1, 0, false), Said::Frag(1, 1)]
    );
    for later in &fragments[1..] {
        assert!(matches!(later[0], Said::Frag(1, _)), "{later:?}");
    }
}

#[test]
fn new_samples_bring_the_heartbeat_back_to_10_ms() {
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
fn a_gap_seen_without_any_heartbeat_is_asked_for_after_a_moment() {
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
fn duplicates_and_overtaking_do_not_show() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net
        .rule(1, Fate::Delay(Duration::from_millis(3)), is_data(1));
    pair.net.rule(10, Fate::Duplicate, |said| {
        matches!(said, Said::Data(2) | Said::Heartbeat(..))
    });
    pair.write_many(w, 4);
    pair.run_ms(30);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4]);
    assert!(pair.readers[r.0].machine.stats().duplicates > 0);
}

#[test]
fn requests_that_cross_their_answer_cost_little() {
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
    // Four losses within one round trip. A repair's own heartbeat asks for all
    // that is missing, since a lost repair must not wait for a timer.
    let resent = pair.writers[w.0].machine.stats().samples_resent;
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
fn a_burst_is_paced_and_arrives_whole() {
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
fn a_reader_that_is_down_for_five_seconds_catches_up_at_once() {
    let (mut pair, w, r) = joined(keep_all(1_000), reliable());
    pair.net.faults.loss_percent = 100;
    pair.write_many(w, 900);
    pair.run_ms(5_000);
    pair.net.heal();
    pair.run_ms(220);
    assert_eq!(pair.numbers(r), (1..=900).collect::<Vec<_>>());
}

// --- History, limits, blocking ---------------------------------------------

#[test]
fn keep_last_overwrites_what_a_slow_reader_has_not_got_and_says_so() {
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
}

#[test]
fn a_blocked_writer_asks_at_once() {
    let (mut pair, w, _) = joined(keep_all(4), reliable());
    pair.write_many(w, 4);
    assert!(pair.try_write(w, NewChange::default()).is_err());
    pair.run(Duration::from_micros(150));
    assert!(pair.writers[w.0].events.contains(&WriterEvent::SpaceFreed));
}

#[test]
fn a_blocked_application_that_tries_again_and_again_makes_no_traffic() {
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
fn a_writer_whose_only_slow_reader_goes_away_can_write_again() {
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
fn a_keep_all_reader_that_is_not_emptied_holds_the_writer_up_and_loses_nothing() {
    let (mut pair, w, r) = joined(keep_all(4), keep_all(3));
    pair.readers[r.0].paused = true;
    let mut written = 0;
    for _ in 0..2_000 {
        if pair.try_write(w, number(written + 1)).is_ok() {
            written += 1;
        }
        pair.run_ms(5);
    }
    // Ready queue, reorder buffer and history are full.
    assert_eq!(written, 3 + 256 + 4);
    pair.readers[r.0].paused = false;
    pair.run_ms(1_000);
    pair.write_many(w, 1);
    pair.run_ms(500);
    assert_eq!(pair.numbers(r), (1..=written + 1).collect::<Vec<_>>());
}

#[test]
fn a_sample_over_the_limit_is_refused_by_name() {
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

// --- Durability --------------------------------------------------------------

#[test]
fn a_late_joiner_gets_the_last_ten_samples_in_order_though_every_third_datagram_is_lost() {
    let mut pair = Pair::with_seed(5);
    let w = pair.writer(0, latched(10));
    let r = pair.reader(1, latched(100));
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
        let w = pair.writer(0, latched(10));
        pair.writers[w.0].vendor = vendor;
        let r = pair.reader(1, latched(3));
        pair.write_many(w, 37);
        pair.writer_learns_of(w, r, vendor);
        pair.reader_learns(r, w);
        pair.run_ms(500);
        assert_eq!(pair.numbers(r), [35, 36, 37], "{vendor:?}");
    }
}

#[test]
fn a_volatile_reader_of_a_latched_writer_gets_only_what_comes_after() {
    for vendor in [VendorId::PTEROS, VendorId::CYCLONE] {
        for writer_first in [true, false] {
            let mut pair = Pair::new();
            let w = pair.writer(0, latched(10));
            pair.writers[w.0].vendor = vendor;
            let r = pair.reader(1, reliable());
            pair.write_many(w, 5);
            if writer_first {
                pair.writer_learns_of(w, r, vendor);
                pair.run_ms(30);
                pair.reader_learns(r, w);
            } else {
                pair.reader_learns(r, w);
                pair.run_ms(30);
                pair.writer_learns_of(w, r, vendor);
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
fn best_effort_late_joiners_get_the_kept_samples_once() {
    let mut pair = Pair::new();
    let w = pair.writer(0, latched(4));
    let qos = EndpointQos {
        reliability: Reliability::BestEffort,
        ..latched(4)
    };
    let r = pair.reader(1, qos);
    pair.write_many(w, 9);
    pair.reader_learns(r, w);
    pair.writer_learns(w, r);
    pair.write_many(w, 1);
    pair.run_ms(500);
    assert_eq!(pair.numbers(r), [6, 7, 8, 9, 10]);
    assert_eq!(pair.net.count(is_heartbeat), 0);
}

#[test]
fn what_is_written_between_the_two_sides_matching_is_not_lost() {
    // A reply written before its reader knows the writer (ros2 1253).
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader(1, reliable());
    pair.write_many(w, 5);
    pair.writer_learns(w, r);
    pair.write_many(w, 3);
    pair.run_ms(100);
    pair.reader_learns(r, w);
    pair.run_ms(300);
    assert_eq!(pair.numbers(r), [6, 7, 8]);
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn a_sample_that_comes_before_the_first_heartbeat_is_kept() {
    // rmw_cyclonedds 367.
    for (vendor, qos) in [
        (VendorId::PTEROS, reliable()),
        (VendorId::CYCLONE, latched(10)),
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
        assert_eq!(pair.writers[w.0].machine.stats().samples_resent, 0);
    }
}

#[test]
fn late_joiners_of_one_process_do_not_disturb_those_already_there() {
    let mut pair = Pair::new();
    let w = pair.writer(0, latched(5));
    let first = pair.reader(1, latched(5));
    let volatile = pair.reader(1, reliable());
    pair.join(w, first);
    pair.join(w, volatile);
    pair.write_many(w, 8);
    pair.run_ms(50);
    let late = pair.reader(1, latched(5));
    pair.join(w, late);
    pair.run_ms(50);
    pair.write_many(w, 1);
    pair.run_ms(50);
    assert_eq!(pair.numbers(first), (1..=9).collect::<Vec<_>>());
    assert_eq!(pair.numbers(volatile), (1..=9).collect::<Vec<_>>());
    assert_eq!(pair.numbers(late), (4..=9).collect::<Vec<_>>());
}

// --- Destinations ------------------------------------------------------------

#[test]
fn readers_of_one_process_share_one_datagram() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let readers: Vec<R> = (0..3).map(|_| pair.reader(1, reliable())).collect();
    let other = pair.reader(2, best_effort());
    for r in readers.iter().chain([&other]) {
        pair.join(w, *r);
    }
    pair.run_ms(50);
    pair.net.log.clear();
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(pair.net.count(is_data(1)), 2, "one per process");
    assert_eq!(pair.net.count(is_heartbeat), 1, "none for best effort");
    for r in readers.iter().chain([&other]) {
        assert_eq!(pair.numbers(*r), [1]);
    }
}

#[test]
fn a_directed_sample_reaches_one_reader_and_delays_no_other() {
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_all(100));
    let clients: Vec<R> = (1..=3).map(|node| pair.reader(node, reliable())).collect();
    for r in &clients {
        pair.join(w, *r);
    }
    pair.run_ms(50);
    pair.net.log.clear();
    for round in 0..10 {
        for r in &clients {
            pair.write_for(w, *r, &[round; 4]);
            pair.run(Duration::from_micros(100));
        }
    }
    for (index, r) in clients.iter().enumerate() {
        let expected: Vec<i64> = (0..10).map(|n| n * 3 + 1 + index as i64).collect();
        assert_eq!(pair.numbers(*r), expected);
        assert_eq!(lost(&pair, *r), 0);
    }
    assert_eq!(pair.net.count(|s| matches!(s, Said::Data(_))), 30);
    pair.run_ms(500);
    assert!(pair.writers[w.0].machine.is_acked_by_all());
    assert_eq!(pair.writers[w.0].machine.kept_count(), 0);
    pair.net.log.clear();
    pair.run_ms(10_000);
    assert!(pair.net.log.is_empty());
}

#[test]
fn directed_samples_are_repaired_like_others() {
    let mut pair = Pair::with_seed(3);
    let w = pair.writer(0, keep_all(1_000));
    let clients: Vec<R> = (0..4).map(|n| pair.reader(1 + n / 2, reliable())).collect();
    for r in &clients {
        pair.join(w, *r);
    }
    pair.run_ms(50);
    pair.net.faults.loss_percent = 30;
    for _ in 0..50 {
        for r in &clients {
            pair.write_for(w, *r, &[0; 4]);
        }
        pair.run_ms(1);
    }
    pair.run_ms(2_000);
    pair.net.heal();
    pair.run_ms(1_000);
    for (index, r) in clients.iter().enumerate() {
        let expected: Vec<i64> = (0..50).map(|n| n * 4 + 1 + index as i64).collect();
        assert_eq!(pair.numbers(*r), expected);
        assert_eq!(lost(&pair, *r), 0);
    }
    assert!(pair.writers[w.0].machine.is_acked_by_all());
}

#[test]
fn numbers_given_to_local_readers_only_are_declared_irrelevant() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for _ in 0..5 {
        let now = pair.now();
        pair.writers[w.0].machine.skip(now);
        pair.write_many(w, 1);
    }
    pair.run(Duration::from_micros(100));
    assert_eq!(pair.numbers(r), [2, 4, 6, 8, 10]);
    assert_eq!(lost(&pair, r), 0);
}

#[test]
fn a_destination_used_again_is_not_told_of_its_past() {
    let mut pair = Pair::new();
    let w = pair.writer(0, latched(20));
    let elsewhere = pair.reader(2, latched(20));
    let first = pair.reader(1, latched(20));
    pair.join(w, first);
    pair.join(w, elsewhere);
    pair.write_for(w, elsewhere, &[0; 4]);
    pair.run_ms(50);
    let guid = pair.guid(first);
    pair.writers[w.0].machine.unmatch_reader(guid);
    pair.write_many(w, 3);
    let second = pair.reader(1, latched(20));
    pair.join(w, second);
    pair.write_for(w, elsewhere, &[0; 4]);
    pair.write_many(w, 1);
    pair.run_ms(100);
    assert_eq!(pair.numbers(second), [2, 3, 4, 6]);
}

// --- Fragments ---------------------------------------------------------------

fn image(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 % 251) as u8).collect()
}

#[test]
fn a_large_sample_comes_in_fragments_and_single_ones_are_repaired() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let picture = image(1_000_000);
    pair.net.drop_next(1, |s| matches!(s, Said::Frag(1, 17)));
    pair.net.drop_next(1, |s| matches!(s, Said::Frag(1, 400)));
    pair.write(w, &picture);
    pair.run_ms(5);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
    let stats = pair.writers[w.0].machine.stats();
    assert_eq!(stats.fragments_sent, 1_000_000_u64.div_ceil(1_344));
    assert_eq!((stats.fragments_resent, stats.samples_resent), (2, 0));
}

#[test]
fn the_last_fragment_with_its_heartbeat_may_be_lost_too() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let picture = image(10_000);
    pair.net.drop_next(1, |s| matches!(s, Said::Frag(1, 8)));
    pair.write(w, &picture);
    pair.run_ms(15);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
}

#[test]
fn on_one_host_fragments_are_63_kb_and_the_size_is_fixed_per_sample() {
    let mut pair = Pair::new();
    let w = pair.writer(0, latched(5));
    let r = pair.reader(1, latched(5));
    let picture = image(4_000_000);
    let near = |pair: &Pair, r: R| ReaderProxyConfig {
        guid: pair.guid(r),
        qos: latched(5),
        route: Route {
            same_host: true,
            ..pair::route(pair.readers[r.0].node)
        },
        expects_inline_qos: false,
        vendor: VendorId::PTEROS,
        content_filter: None,
    };
    let now = pair.now();
    let config = near(&pair, r);
    pair.writers[w.0].machine.match_reader(now, config);
    pair.reader_learns(r, w);
    pair.write(w, &picture);
    pair.run_ms(5);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
    assert_eq!(pair.writers[w.0].machine.stats().fragments_sent, 64);
    // A reader elsewhere that joins later gets the same fragments.
    let far = pair.reader(2, latched(5));
    pair.join(w, far);
    pair.run_ms(100);
    assert_eq!(pair.readers[far.0].received[0].payload, picture);
    assert!(
        pair.net
            .log
            .iter()
            .flatten()
            .all(|s| !matches!(s, Said::Frag(_, 65..)))
    );
}

#[test]
fn the_payload_is_not_copied_on_its_way_out() {
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
fn a_burst_whose_end_is_lost_is_asked_for_within_three_milliseconds() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let picture = image(1_000_000);
    pair.net
        .drop_next(300, |s| matches!(s, Said::Frag(1, number) if *number > 445));
    pair.write(w, &picture);
    pair.run_ms(4);
    assert_eq!(pair.readers[r.0].received[0].payload, picture);
    assert_eq!(pair.writers[w.0].machine.stats().fragments_resent, 299 + 1);
}

#[test]
fn a_volatile_reader_that_lost_its_writer_for_a_while_gets_nothing_twice() {
    let (mut pair, w, r) = joined(latched(100), reliable());
    pair.write_many(w, 5);
    pair.run_ms(50);
    // Only one direction was cut: the writer never noticed.
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.write_many(w, 2);
    pair.run_ms(50);
    pair.reader_learns(r, w);
    pair.write_many(w, 1);
    pair.run_ms(100);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4, 5, 6, 7, 8]);
}

// --- Lifespan, deadline, liveliness --------------------------------------------

#[test]
fn an_expired_sample_is_not_sent_to_anybody() {
    let qos = EndpointQos {
        lifespan: Duration::from_millis(100),
        ..latched(10)
    };
    let mut pair = Pair::new();
    let w = pair.writer(0, qos);
    pair.write_many(w, 3);
    pair.run_ms(60);
    pair.write_many(w, 2);
    pair.run_ms(60);
    let r = pair.reader(1, latched(10));
    pair.join(w, r);
    pair.run_ms(30);
    assert_eq!(pair.numbers(r), [4, 5]);
    pair.run_ms(200);
    assert_eq!(pair.writers[w.0].machine.kept_count(), 0);
    assert_eq!(pair.writers[w.0].machine.stats().expired, 5);
}

#[test]
fn a_lost_sample_that_expires_holds_up_nobody_for_ever() {
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
    assert!(pair.writers[w.0].machine.is_acked_by_all());
}

#[test]
fn a_sample_that_expires_while_half_its_fragments_are_lost_holds_up_nobody_for_ever() {
    let qos = EndpointQos {
        lifespan: Duration::from_millis(30),
        ..reliable()
    };
    let (mut pair, w, r) = joined(qos, reliable());
    pair.net.drop_next(
        100_000,
        |s| matches!(s, Said::Frag(_, number) if *number > 5),
    );
    pair.write(w, &image(20_000));
    pair.run_ms(400);
    assert_eq!(pair.writers[w.0].machine.stats().expired, 1);
    assert!(pair.writers[w.0].machine.is_acked_by_all());
    pair.write(w, &image(20));
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [2]);
}

#[test]
fn a_sample_that_waits_in_the_reader_past_its_lifespan_is_not_delivered() {
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
fn a_writer_by_topic_lives_by_writing_and_by_asserting() {
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
fn an_automatic_writer_lives_by_what_its_participant_says() {
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
    // Back again, and gone again.
    pair.write_many(w, 1);
    pair.run_ms(1);
    assert_eq!(alive(&pair, r), (1, 0));
    pair.run_ms(150);
    assert_eq!(alive(&pair, r), (0, 1));
}

// --- Losing a writer -----------------------------------------------------------

#[test]
fn samples_missing_from_a_writer_that_goes_away_are_reported() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    pair.net
        .drop_next(1_000, |s| matches!(s, Said::Data(2 | 3)));
    pair.write_many(w, 4);
    pair.run_ms(30);
    assert_eq!(pair.numbers(r), [1]);
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.flush();
    assert_eq!(pair.numbers(r), [1, 4]);
    assert_eq!(lost(&pair, r), 2);
}

// --- Hostile and odd input -------------------------------------------------------

#[test]
fn ranges_of_any_size_cost_the_same() {
    // CVE-2025-64438, CVE-2025-65016.
    let (mut pair, w, r) = joined(reliable(), reliable());
    let source = source();
    let now = pair.now();
    let writer = pair.writer_guid(w).entity;
    let machine = &mut pair.readers[r.0].machine;
    let far = SequenceNumber(i64::MAX - 300);
    let gap = Gap::range(EntityId::UNKNOWN, writer, SequenceNumber(5), far);
    machine.handle_gap(now, &source, &gap);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer,
        first: SequenceNumber(2),
        last: SequenceNumber(i64::MAX - 1),
        count: 1_000,
        is_final: false,
        liveliness: false,
        group: None,
    };
    machine.handle_heartbeat(now, &source, &heartbeat);
    pair.run_ms(1_000);
    let machine = &mut pair.readers[r.0].machine;
    let heartbeat = Heartbeat {
        first: SequenceNumber(i64::MAX - 1),
        count: 1_001,
        ..heartbeat
    };
    machine.handle_heartbeat(now, &source, &heartbeat);
    pair.flush();
    assert!(lost(&pair, r) > 0);
}

#[test]
fn a_full_reorder_buffer_does_not_lose_the_gap_at_its_end() {
    // Cyclone DDS ccbb237.
    let mut pair = Pair::new();
    let w = pair.writer(0, keep_all(10_000));
    let r = pair.reader_with(1, reliable(), |c| c.limits.reorder_samples_max = 8);
    let elsewhere = pair.reader(2, reliable());
    pair.join(w, r);
    pair.join(w, elsewhere);
    pair.run_ms(50);
    pair.net.drop_next(3, is_data(1));
    pair.write_many(w, 40);
    for _ in 0..5 {
        pair.write_for(w, elsewhere, &[0; 4]);
    }
    pair.write_many(w, 1);
    pair.run_ms(1_000);
    let expected: Vec<i64> = (1..=40).chain([46]).collect();
    assert_eq!(pair.numbers(r), expected);
}

#[test]
fn a_peer_that_acknowledges_the_future_gains_nothing() {
    let (mut pair, w, r) = joined(keep_all(4), reliable());
    let acknack = AckNack {
        reader: pair.guid(r).entity,
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::empty(SequenceNumber(1_000)),
        count: 5_000,
        is_final: true,
    };
    let now = pair.now();
    pair.writers[w.0]
        .machine
        .handle_acknack(now, pair::prefix(1), &acknack);
    pair.net.drop_next(1, is_data(1));
    pair.write_many(w, 1);
    assert!(!pair.writers[w.0].machine.is_acked_by_all());
    pair.run_ms(700);
    assert_eq!(pair.numbers(r), [1]);
}

#[test]
fn submessages_of_strangers_are_counted_and_change_nothing() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    let acknack = AckNack {
        reader: EntityId::new([9, 9, 9], 4),
        writer: pair.writer_guid(w).entity,
        state: SequenceSet::empty(SequenceNumber(1)),
        count: 1,
        is_final: false,
    };
    let now = pair.now();
    let machine = &mut pair.writers[w.0].machine;
    machine.handle_acknack(now, pair::prefix(9), &acknack);
    assert_eq!(machine.stats().unknown_readers, 1);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId::new([9, 9, 9], 3),
        first: SequenceNumber(1),
        last: SequenceNumber(9),
        count: 1,
        is_final: false,
        liveliness: false,
        group: None,
    };
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source(), &heartbeat);
    assert_eq!(machine.stats().unknown_writers, 1);
    pair.net.log.clear();
    pair.run_ms(1_000);
    assert!(pair.net.log.is_empty());
}

#[test]
fn a_reader_that_was_forgotten_and_counts_anew_is_heard_after_half_a_second() {
    let (mut pair, w, r) = joined(reliable(), reliable());
    for _ in 0..40 {
        pair.write_many(w, 1);
        pair.run_ms(20);
    }
    // The reader side forgets the writer; the writer does not notice.
    let guid = pair.writer_guid(w);
    pair.readers[r.0].machine.unmatch_writer(guid);
    pair.run_ms(10);
    pair.reader_learns(r, w);
    pair.run_ms(10);
    pair.net.drop_next(1, is_data(42));
    pair.write_many(w, 3);
    pair.run_ms(1_500);
    assert_eq!(pair.numbers(r), (1..=43).collect::<Vec<_>>());
}

// --- Keyed instances --------------------------------------------------------------

fn keyed(key: u8, kind: ChangeKind) -> NewChange {
    NewChange {
        payload: Bytes::from(vec![0, 1, 0, 0, key, 0, 0, 0]),
        key_hash: Some([key; 16]),
        kind,
        ..NewChange::default()
    }
}

#[test]
fn of_each_instance_the_last_is_kept_and_one_that_was_left_not_at_all() {
    let mut pair = Pair::new();
    let w = pair.writer(0, latched(1));
    let early = pair.reader(1, latched(100));
    pair.join(w, early);
    for key in [1, 2, 3, 1, 2, 1] {
        pair.try_write(w, keyed(key, ChangeKind::Alive))
            .expect("room");
    }
    for (key, kind) in [
        (3, ChangeKind::Disposed),
        (2, ChangeKind::Unregistered),
        (4, ChangeKind::DisposedUnregistered),
    ] {
        pair.try_write(w, keyed(key, kind)).expect("room");
    }
    pair.run_ms(100);
    assert_eq!(pair.writers[w.0].machine.kept_count(), 2);
    let received = &pair.readers[early.0].received;
    let heard = |at: usize| {
        (
            received[at].kind,
            received[at].key_hash,
            received[at].key_only,
        )
    };
    assert_eq!(heard(6), (ChangeKind::Disposed, Some([3; 16]), true));
    assert_eq!(heard(7), (ChangeKind::Unregistered, Some([2; 16]), true));
    let both = ChangeKind::DisposedUnregistered;
    assert_eq!(heard(8), (both, Some([4; 16]), true));
    let late = pair.reader(2, latched(100));
    pair.join(w, late);
    pair.run_ms(100);
    assert_eq!(pair.numbers(late), [6, 7]);
    assert_eq!(lost(&pair, late), 0);
}

#[test]
fn a_keep_all_writer_waits_for_room_in_the_one_instance_alone() {
    let mut qos = keep_all(100);
    qos.resource_limits.max_samples_per_instance = Some(2);
    let (mut pair, w, _) = joined(qos.clone(), qos);
    let write = |pair: &mut Pair, key| pair.try_write(w, keyed(key, ChangeKind::Alive));
    for key in [1, 1, 2] {
        write(&mut pair, key).expect("room");
    }
    // Nobody has had time to acknowledge anything.
    match write(&mut pair, 1) {
        Err(WriteError::WouldBlock {
            samples,
            samples_max,
            ..
        }) => assert_eq!((samples, samples_max), (2, 2)),
        other => panic!("{other:?}"),
    }
    write(&mut pair, 2).expect("room in another instance");
    pair.run_ms(100);
    write(&mut pair, 1).expect("acknowledged meanwhile");
}

// --- Help for the stories -----------------------------------------------------------

fn is_heartbeat(said: &Said) -> bool {
    matches!(said, Said::Heartbeat(..))
}

fn number(n: i64) -> NewChange {
    NewChange {
        payload: Bytes::copy_from_slice(&n.to_le_bytes()),
        ..NewChange::default()
    }
}

fn lost(pair: &Pair, r: R) -> u64 {
    let stats = pair.readers[r.0].machine.stats().lost;
    let events: u64 = pair.readers[r.0]
        .events
        .iter()
        .map(|event| match event {
            ReaderEvent::SampleLost { count, .. } => *count,
            _ => 0,
        })
        .sum();
    assert_eq!(stats, events, "every loss is an event");
    stats
}

/// From now on no heartbeat arrives, though data does: as from a stack that
/// sends them apart and whose heartbeats are lost.
fn strip_heartbeats(pair: &mut Pair) {
    pair.net.strip_heartbeats = true;
}

fn source() -> Source {
    Source::of(Header::ours(pair::prefix(0)))
}
