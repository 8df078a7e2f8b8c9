//! Publishing into a network that is slower than the program: a full socket is
//! waited for, or what is left is sent later; nothing is thrown away.

use pteros_rmw::flow::FlowController;
use pteros_rmw::rtps::time::Duration;

use super::world::{Socket, World};
use super::{MS, best_effort, last, message, now};
use pteros_rmw::flow::Pace;
use pteros_rmw::rtps::qos::EndpointQos;

/// A cable of 100 Mbit/s, and a socket for half a sample.
fn cable() -> Socket {
    Socket::new(80, 2_200_000)
}

const SAMPLE: usize = 4_000_000;
/// What the cable needs for it.
const SAMPLE_MS: u64 = 320;

fn within(qos: EndpointQos, max_blocking_time: Duration) -> EndpointQos {
    EndpointQos {
        max_blocking_time,
        ..qos
    }
}

/// Datagrams that were thrown away.
fn lost(world: &World) -> u64 {
    world.talker().counts().send_errors
}

#[test]
fn large_messages_on_a_slow_cable_wait_for_room_and_all_arrive() {
    for qos in [best_effort(1), last(1), last(20)] {
        let mut world = World::new(Vec::new());
        let writer = world.plain_writer("t", qos.clone());
        let reader = world.reader(
            "t",
            EndpointQos {
                reliability: qos.reliability,
                ..last(20)
            },
        );
        world.run_ms(200);
        world.network().socket = Some(cable());
        let begin = now(&world);
        for n in 0..10 {
            world.publish(&writer, message(SAMPLE, n));
            world.run_ms(1);
        }
        let published_ms = (now(&world) - begin) / MS;
        assert!(
            published_ms > 8 * SAMPLE_MS && published_ms < 11 * SAMPLE_MS,
            "as fast as the cable: {published_ms} ms"
        );
        world.run_ms(1_000);
        assert_eq!(world.taken(&reader), (0..10).collect::<Vec<_>>(), "{qos:?}");
        assert!(world.talker().counts().send_waits > 0);
        assert_eq!(lost(&world), 0);
    }
}

#[test]
fn who_must_not_wait_publishes_at_once_and_the_driver_sends_the_rest() {
    for qos in [best_effort(1), last(1)] {
        let mut world = World::new(Vec::new());
        let writer = world.plain_writer("t", within(qos, Duration::ZERO));
        let reader = world.reader("t", best_effort(10));
        world.run_ms(200);
        world.network().socket = Some(cable());
        for n in 0..5 {
            let begin = now(&world);
            world.publish(&writer, message(SAMPLE, n));
            assert_eq!(now(&world), begin, "not a moment");
            world.run_ms(2 * SAMPLE_MS);
        }
        assert_eq!(world.taken(&reader), [0, 1, 2, 3, 4]);
        assert_eq!(lost(&world), 0);
        assert_eq!(world.talker().counts().send_waits, 0);
    }
}

#[test]
fn who_publishes_faster_than_the_cable_without_waiting_loses_whole_samples_by_history() {
    let mut world = World::new(Vec::new());
    let writer = world.plain_writer("t", within(best_effort(1), Duration::ZERO));
    let reader = world.reader("t", best_effort(10));
    world.run_ms(200);
    world.network().socket = Some(cable());
    for n in 0..10 {
        world.publish(&writer, message(SAMPLE, n));
        world.run_ms(100);
    }
    world.run_ms(2 * SAMPLE_MS);
    let taken = world.taken(&reader);
    // 1 600 ms of cable: the one on its way is never cut off, the newest follows.
    assert!(taken.len() >= 4, "{taken:?}");
    assert_eq!(taken.last(), Some(&9));
}

#[test]
fn a_network_that_is_stuck_holds_a_publisher_no_longer_than_it_may_block() {
    for qos in [best_effort(1), last(1)] {
        let mut world = World::new(Vec::new());
        let writer = world.plain_writer("t", within(qos, Duration::from_millis(30)));
        let reader = world.reader("t", best_effort(10));
        world.run_ms(200);
        world.network().socket = Some(Socket::new(1_000_000, 2_200_000));
        let begin = now(&world);
        world.publish(&writer, message(SAMPLE, 1));
        assert_eq!((now(&world) - begin) / MS, 30);
        // The driver tries now and then, and does not wait.
        world.run_ms(500);
        assert_eq!((now(&world) - begin) / MS, 530);
        assert!(world.taken(&reader).is_empty());
        let mut socket = cable();
        socket.busy_until = now(&world);
        world.network().socket = Some(socket);
        world.run_ms(2 * SAMPLE_MS);
        // Nothing that it had was thrown away.
        world.publish(&writer, message(SAMPLE, 2));
        world.run_ms(2 * SAMPLE_MS);
        assert!(world.taken(&reader).ends_with(&[2]));
    }
}

#[test]
fn a_flow_controller_that_is_faster_than_the_cable_waits_for_room() {
    let flow = FlowController::new("fast")
        .bytes_per_period(10_000_000)
        .period(std::time::Duration::from_millis(5));
    let mut world = World::new(vec![flow]);
    let writer = world.writer("t", best_effort(20), Pace::new("fast"));
    let reader = world.reader("t", best_effort(20));
    world.run_ms(200);
    // Half of it takes what is sent between two looks.
    world.network().socket = Some(Socket::new(80, 5_000_000));
    for n in 0..10 {
        world.publish(&writer, message(SAMPLE, n));
    }
    world.run_ms(11 * SAMPLE_MS);
    assert_eq!(world.taken(&reader), (0..10).collect::<Vec<_>>());
    assert_eq!(lost(&world), 0);
}
