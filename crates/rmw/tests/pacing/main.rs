//! Asynchronous publishers and their flow controllers, whole contexts on fake
//! time: rates, priorities, loss.

mod room;
mod world;

use std::time::Duration as Span;

use pteros_rmw::flow::{FlowController, Pace};
use pteros_rmw::rtps::qos::{EndpointQos, History, Reliability};
use world::{TALKER, World};

const MS: u64 = 1_000_000;

/// 10 MB/s in periods of 5 ms.
fn ten_megabytes() -> FlowController {
    FlowController::new("link")
        .bytes_per_period(50_000)
        .period(Span::from_millis(5))
}

fn last(depth: u32) -> EndpointQos {
    EndpointQos {
        history: History::KeepLast(depth),
        ..EndpointQos::default()
    }
}

fn best_effort(depth: u32) -> EndpointQos {
    EndpointQos {
        reliability: Reliability::BestEffort,
        ..last(depth)
    }
}

fn message(bytes: usize, mark: u8) -> Vec<u8> {
    let mut payload = vec![0; bytes];
    payload[1] = 1;
    payload[4] = mark;
    payload
}

/// Bytes that the talker sent from `from` on.
fn sent_since(world: &World, from: u64) -> usize {
    let network = world.network();
    let ours = network
        .sent
        .iter()
        .filter(|(at, who, _)| *at >= from && *who == TALKER);
    ours.map(|(_, _, bytes)| bytes).sum()
}

fn now(world: &World) -> u64 {
    world.network().now
}

#[test]
fn a_simulated_second_carries_what_the_controller_allows() {
    for size in [500, 20_000, 1_000_000] {
        let mut world = World::new(vec![ten_megabytes()]);
        let rounds = 15_000_000 / size;
        let all = last(u32::try_from(rounds).unwrap());
        let writer = world.writer("t", all.clone(), Pace::new("link"));
        let reader = world.reader("t", all);
        world.run_ms(200);
        let begin = now(&world);
        for n in 0..rounds {
            world.publish(&writer, message(size, n as u8));
            if n % 100 == 99 {
                world.run_ms(1);
            }
        }
        world.run_until(begin + 1_000 * MS, |_| false);
        let sent = sent_since(&world, begin);
        assert!(sent.abs_diff(10_000_000) <= 500_000, "{size}: {sent}");
        assert!(!world.taken(&reader).is_empty());
    }
}

#[test]
fn publishing_sends_nothing_itself() {
    let mut world = World::new(vec![FlowController::new("free")]);
    let writer = world.writer("t", last(10), Pace::new("free"));
    let reader = world.reader("t", last(10));
    world.run_ms(200);
    let begin = now(&world);
    let before = world.network().sent.len();
    world.publish(&writer, message(1_000_000, 7));
    assert_eq!(world.network().sent.len(), before);
    assert_eq!(
        (writer.unsent_count(), writer.is_acknowledged()),
        (1, false)
    );
    world.run_until(begin + 5 * MS, |_| writer.is_acknowledged());
    assert_eq!(writer.unsent_count(), 0);
    assert_eq!(world.taken(&reader), [7]);
}

#[test]
fn a_small_urgent_message_overtakes_a_large_one_between_two_fragments() {
    let mut world = World::new(vec![ten_megabytes()]);
    let bulk = world.writer("image", last(5), Pace::new("link"));
    let urgent = world.writer("stop", last(5), Pace::new("link").priority(1));
    let (image, stop) = (
        world.reader("image", last(5)),
        world.reader("stop", last(5)),
    );
    world.run_ms(200);
    let begin = now(&world);
    world.publish(&bulk, message(4_000_000, 1));
    for n in 0..20 {
        world.run_until(begin + n * 17 * MS + 3 * MS, |_| false);
        let published = now(&world);
        world.publish(&urgent, message(64, 2));
        let mut got = Vec::new();
        world.run_until(published + 100 * MS, |world| {
            got.extend(world.taken(&stop));
            !got.is_empty()
        });
        let took = now(&world) - published;
        // The rest of the period, and a fragment's debt; not the image's 400 ms.
        assert!(took <= 15 * MS, "{took} ns");
        assert_eq!(world.taken(&image), [0; 0], "the image is on its way");
    }
    world.run_until(begin + 450 * MS, |_| false);
    assert_eq!(world.taken(&image), [1]);
}

#[test]
fn writers_of_equal_priority_share_by_bytes() {
    let mut world = World::new(vec![ten_megabytes()]);
    let sizes = [400, 3_000, 200_000];
    let ends: Vec<_> = sizes
        .iter()
        .map(|size| {
            let topic = format!("t{size}");
            let writer = world.writer(&topic, best_effort(4_000_000 / size), Pace::new("link"));
            (
                writer,
                world.reader(&topic, best_effort(20_000)),
                *size as usize,
            )
        })
        .collect();
    world.run_ms(200);
    let begin = now(&world);
    let mut carried = vec![0; ends.len()];
    for _ in 0..100 {
        for (writer, _, size) in &ends {
            while writer.unsent_count() * size < 600_000 {
                world.publish(writer, message(*size, 1));
            }
        }
        world.run_ms(10);
        for (bytes, (_, reader, size)) in carried.iter_mut().zip(&ends) {
            *bytes += world.taken(reader).len() * size;
        }
    }
    let sent = sent_since(&world, begin);
    assert!(sent.abs_diff(10_000_000) <= 500_000, "{sent}");
    // Small messages pay for their heads: a fifth of a datagram of 400 bytes.
    for (bytes, size) in carried.iter().zip(sizes) {
        assert!(
            (2_500_000..=3_500_000).contains(bytes),
            "{size}: {carried:?}"
        );
    }
}

#[test]
fn transport_priority_ranks_unless_told_otherwise() {
    let mut world = World::new(vec![ten_megabytes()]);
    let ranked = EndpointQos {
        transport_priority: 10,
        ..best_effort(100)
    };
    let low = world.writer("low", best_effort(100), Pace::new("link"));
    let high = world.writer("high", ranked, Pace::new("link"));
    let (slow, fast) = (
        world.reader("low", best_effort(100)),
        world.reader("high", best_effort(100)),
    );
    world.run_ms(200);
    for n in 0..50 {
        world.publish(&low, message(20_000, n));
        world.publish(&high, message(20_000, n));
    }
    // 50 times 20 kB are 100 ms.
    world.run_ms(105);
    assert_eq!(world.taken(&fast).len(), 50);
    assert!(world.taken(&slow).len() <= 3);
    world.run_ms(105);
    assert!(world.taken(&slow).len() >= 46);
}

#[test]
fn repairs_are_paced_too_and_all_arrives() {
    let mut world = World::new(vec![ten_megabytes()]);
    let keep_all = EndpointQos {
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let writer = world.writer("t", keep_all.clone(), Pace::new("link"));
    let reader = world.reader("t", keep_all);
    world.run_ms(200);
    let begin = now(&world);
    world.network().lose_every = 7;
    for n in 0..40 {
        world.publish(&writer, message(100_000, n));
    }
    world.run_until(begin + 2_000 * MS, |_| writer.is_acknowledged());
    let took = now(&world) - begin;
    assert!(writer.is_acknowledged());
    assert_eq!(world.taken(&reader), (0..40).collect::<Vec<u8>>());
    // 4 MB are 400 ms, and a seventh of it again.
    assert!((400 * MS..800 * MS).contains(&took), "{took}");
    let network = world.network();
    let mut period = begin;
    while period < begin + took {
        let within = |at: &u64| (period..period + 50 * MS).contains(at);
        let sent = network
            .sent
            .iter()
            .filter(|(at, who, _)| within(at) && *who == TALKER);
        let bytes: usize = sent.map(|(_, _, bytes)| bytes).sum();
        assert!(bytes <= 500_000 + 2 * 50_000, "{bytes}");
        period += 50 * MS;
    }
}

#[test]
fn a_writer_that_goes_leaves_the_others_their_turn() {
    let mut world = World::new(vec![ten_megabytes()]);
    let gone = world.writer("gone", last(5), Pace::new("link").priority(9));
    let stays = world.writer("stays", last(5), Pace::new("link"));
    let (lost, kept) = (
        world.reader("gone", last(5)),
        world.reader("stays", last(5)),
    );
    world.run_ms(200);
    world.publish(&gone, message(8_000_000, 1));
    world.publish(&stays, message(1_000, 2));
    world.run_ms(50);
    assert_eq!(world.taken(&kept), [0; 0]);
    world.talker().remove_writer(&gone);
    world.run_ms(50);
    assert_eq!(world.taken(&kept), [2]);
    assert_eq!(world.taken(&lost), [0; 0]);
}

#[test]
fn an_unknown_controller_is_refused_by_name() {
    let world = World::new(vec![ten_megabytes()]);
    let spec = world::spec("t", last(1));
    let refused = world.talker().create_paced_writer(spec, &Pace::new("lnik"));
    let text = refused.err().unwrap().to_string();
    assert!(
        text.contains("\"lnik\"") && text.contains("\"link\""),
        "{text}"
    );
}
