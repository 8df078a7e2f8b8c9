//! Back-pressure: publishing into a network slower than the program. A full send
//! buffer blocks the publisher, or the rest is sent later; no datagram is lost.

use pteros_runtime::flow_controller::FlowController;
use pteros_runtime::rtps::time::Duration;

use super::harness::{ContextPair, Socket};
use super::{MS, best_effort, last, message, now};
use pteros_runtime::flow_controller::AsyncPublishMode;
use pteros_runtime::rtps::qos::EndpointQos;

/// A cable of 100 Mbit/s, and a send buffer for half a sample.
fn cable() -> Socket {
    Socket::new(80, 2_200_000)
}

const SAMPLE: usize = 4_000_000;
/// How long the cable needs for a sample.
const SAMPLE_MS: u64 = 320;

fn within(qos: EndpointQos, max_blocking_time: Duration) -> EndpointQos {
    EndpointQos {
        max_blocking_time,
        ..qos
    }
}

/// Datagrams that were lost.
fn lost(pair: &ContextPair) -> u64 {
    pair.talker().counts().send_errors
}

#[test]
fn large_messages_block_on_a_slow_cable_and_all_arrive() {
    for qos in [best_effort(1), last(1), last(20)] {
        let mut pair = ContextPair::new(Vec::new());
        let writer = pair.plain_writer("t", qos.clone());
        let reader = pair.reader(
            "t",
            EndpointQos {
                reliability: qos.reliability,
                ..last(20)
            },
        );
        pair.run_ms(200);
        pair.network().socket = Some(cable());
        let begin = now(&pair);
        for n in 0..10 {
            pair.publish(&writer, message(SAMPLE, n));
            pair.run_ms(1);
        }
        let published_ms = (now(&pair) - begin) / MS;
        assert!(
            published_ms > 8 * SAMPLE_MS && published_ms < 11 * SAMPLE_MS,
            "as fast as the cable: {published_ms} ms"
        );
        pair.run_ms(1_000);
        assert_eq!(pair.taken(&reader), (0..10).collect::<Vec<_>>(), "{qos:?}");
        assert!(pair.talker().counts().send_waits > 0);
        assert_eq!(lost(&pair), 0);
    }
}

#[test]
fn a_non_blocking_publisher_returns_at_once_and_the_driver_sends_the_rest() {
    for qos in [best_effort(1), last(1)] {
        let mut pair = ContextPair::new(Vec::new());
        let writer = pair.plain_writer("t", within(qos, Duration::ZERO));
        let reader = pair.reader("t", best_effort(10));
        pair.run_ms(200);
        pair.network().socket = Some(cable());
        for n in 0..5 {
            let begin = now(&pair);
            pair.publish(&writer, message(SAMPLE, n));
            assert_eq!(now(&pair), begin, "not a moment");
            pair.run_ms(2 * SAMPLE_MS);
        }
        assert_eq!(pair.taken(&reader), [0, 1, 2, 3, 4]);
        assert_eq!(lost(&pair), 0);
        assert_eq!(pair.talker().counts().send_waits, 0);
    }
}

#[test]
fn a_non_blocking_publisher_faster_than_the_cable_loses_whole_samples_by_history() {
    let mut pair = ContextPair::new(Vec::new());
    let writer = pair.plain_writer("t", within(best_effort(1), Duration::ZERO));
    let reader = pair.reader("t", best_effort(10));
    pair.run_ms(200);
    pair.network().socket = Some(cable());
    for n in 0..10 {
        pair.publish(&writer, message(SAMPLE, n));
        pair.run_ms(100);
    }
    pair.run_ms(2 * SAMPLE_MS);
    let taken = pair.taken(&reader);
    // 1 600 ms of cable: a sample in flight is never cut off, the newest follows.
    assert!(taken.len() >= 4, "{taken:?}");
    assert_eq!(taken.last(), Some(&9));
}

#[test]
fn a_stuck_network_blocks_a_publisher_no_longer_than_max_blocking_time() {
    for qos in [best_effort(1), last(1)] {
        let mut pair = ContextPair::new(Vec::new());
        let writer = pair.plain_writer("t", within(qos, Duration::from_millis(30)));
        let reader = pair.reader("t", best_effort(10));
        pair.run_ms(200);
        pair.network().socket = Some(Socket::new(1_000_000, 2_200_000));
        let begin = now(&pair);
        pair.publish(&writer, message(SAMPLE, 1));
        assert_eq!((now(&pair) - begin) / MS, 30);
        // The driver retries now and then, and does not block.
        pair.run_ms(500);
        assert_eq!((now(&pair) - begin) / MS, 530);
        assert!(pair.taken(&reader).is_empty());
        let mut socket = cable();
        socket.busy_until = now(&pair);
        pair.network().socket = Some(socket);
        pair.run_ms(2 * SAMPLE_MS);
        // None of its data was lost.
        pair.publish(&writer, message(SAMPLE, 2));
        pair.run_ms(2 * SAMPLE_MS);
        assert!(pair.taken(&reader).ends_with(&[2]));
    }
}

#[test]
fn a_flow_controller_faster_than_the_cable_waits_for_socket_space() {
    let flow = FlowController::new("fast")
        .bytes_per_period(10_000_000)
        .period(std::time::Duration::from_millis(5));
    let mut pair = ContextPair::new(vec![flow]);
    let writer = pair.writer("t", best_effort(20), AsyncPublishMode::new("fast"));
    let reader = pair.reader("t", best_effort(20));
    pair.run_ms(200);
    // Half of it holds what is sent between two checks.
    pair.network().socket = Some(Socket::new(80, 5_000_000));
    for n in 0..10 {
        pair.publish(&writer, message(SAMPLE, n));
    }
    pair.run_ms(11 * SAMPLE_MS);
    assert_eq!(pair.taken(&reader), (0..10).collect::<Vec<_>>());
    assert_eq!(lost(&pair), 0);
}
