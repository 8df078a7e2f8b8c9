//! Who matches late gets what its durability says, once and in order.

use crate::*;

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
