//! A writer and readers on fake time: one story per rule of RTPS 2.5 §8.4 and
//! of the QoS policies, and one per failure known from other stacks.

mod pair;

use pair::net::{Fate, Said};
use pair::{Pair, R, W};
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability, ResourceLimits};
use pteros_rtps::time::Duration;

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
