//! Whole contexts on simulated time: asynchronous publishers and flow controllers
//! (rates, priorities, loss), what else leaves a context, what stays within, and how
//! threads poll.

mod back_pressure;
mod harness;
mod outgoing;
mod polling;
mod within;

use std::time::Duration as Span;

use harness::{ContextPair, TALKER};
use pteros_runtime::flow_controller::{AsyncPublishMode, FlowController};
use pteros_runtime::rtps::qos::{EndpointQos, History, Reliability};

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

/// Bytes that the publishing context sent from `from` on.
fn sent_since(pair: &ContextPair, from: u64) -> usize {
    let network = pair.network();
    let ours = network
        .sent
        .iter()
        .filter(|(at, who, _)| *at >= from && *who == TALKER);
    ours.map(|(_, _, bytes)| bytes).sum()
}

fn now(pair: &ContextPair) -> u64 {
    pair.network().now
}

#[test]
fn a_simulated_second_carries_the_bytes_of_the_rate_limit() {
    for size in [500, 20_000, 1_000_000] {
        let mut pair = ContextPair::new(vec![ten_megabytes()]);
        let rounds = 15_000_000 / size;
        let all = last(u32::try_from(rounds).unwrap());
        let writer = pair.writer("t", all.clone(), AsyncPublishMode::new("link"));
        let reader = pair.reader("t", all);
        pair.run_ms(200);
        let begin = now(&pair);
        for n in 0..rounds {
            pair.publish(&writer, message(size, n as u8));
            if n % 100 == 99 {
                pair.run_ms(1);
            }
        }
        pair.run_until(begin + 1_000 * MS, |_| false);
        let sent = sent_since(&pair, begin);
        assert!(sent.abs_diff(10_000_000) <= 500_000, "{size}: {sent}");
        assert!(!pair.taken(&reader).is_empty());
    }
}

#[test]
fn publish_itself_sends_no_datagram() {
    let mut pair = ContextPair::new(vec![FlowController::new("free")]);
    let writer = pair.writer("t", last(10), AsyncPublishMode::new("free"));
    let reader = pair.reader("t", last(10));
    pair.run_ms(200);
    let begin = now(&pair);
    let before = pair.network().sent.len();
    pair.publish(&writer, message(1_000_000, 7));
    assert_eq!(pair.network().sent.len(), before);
    assert_eq!(
        (writer.unsent_count(), writer.is_acknowledged()),
        (1, false)
    );
    pair.run_until(begin + 5 * MS, |_| writer.is_acknowledged());
    assert_eq!(writer.unsent_count(), 0);
    assert_eq!(pair.taken(&reader), [7]);
}

#[test]
fn a_small_urgent_message_overtakes_a_large_one_between_two_fragments() {
    let mut pair = ContextPair::new(vec![ten_megabytes()]);
    let bulk = pair.writer("image", last(5), AsyncPublishMode::new("link"));
    let urgent = pair.writer("stop", last(5), AsyncPublishMode::new("link").priority(1));
    let (image, stop) = (pair.reader("image", last(5)), pair.reader("stop", last(5)));
    pair.run_ms(200);
    let begin = now(&pair);
    pair.publish(&bulk, message(4_000_000, 1));
    for n in 0..20 {
        pair.run_until(begin + n * 17 * MS + 3 * MS, |_| false);
        let published = now(&pair);
        pair.publish(&urgent, message(64, 2));
        let mut got = Vec::new();
        pair.run_until(published + 100 * MS, |pair| {
            got.extend(pair.taken(&stop));
            !got.is_empty()
        });
        let took = now(&pair) - published;
        // The rest of the period, and the debt of a fragment; not the 400 ms of the
        // image.
        assert!(took <= 15 * MS, "{took} ns");
        assert_eq!(pair.taken(&image), [0; 0], "the image is on its way");
    }
    pair.run_until(begin + 450 * MS, |_| false);
    assert_eq!(pair.taken(&image), [1]);
}

#[test]
fn writers_of_equal_priority_share_by_bytes() {
    let mut pair = ContextPair::new(vec![ten_megabytes()]);
    let sizes = [400, 3_000, 200_000];
    let ends: Vec<_> = sizes
        .iter()
        .map(|size| {
            let topic = format!("t{size}");
            let writer = pair.writer(
                &topic,
                best_effort(4_000_000 / size),
                AsyncPublishMode::new("link"),
            );
            (
                writer,
                pair.reader(&topic, best_effort(20_000)),
                *size as usize,
            )
        })
        .collect();
    pair.run_ms(200);
    let begin = now(&pair);
    let mut carried = vec![0; ends.len()];
    for _ in 0..100 {
        for (writer, _, size) in &ends {
            while writer.unsent_count() * size < 600_000 {
                pair.publish(writer, message(*size, 1));
            }
        }
        pair.run_ms(10);
        for (bytes, (_, reader, size)) in carried.iter_mut().zip(&ends) {
            *bytes += pair.taken(reader).len() * size;
        }
    }
    let sent = sent_since(&pair, begin);
    assert!(sent.abs_diff(10_000_000) <= 500_000, "{sent}");
    // Headers count: a fifth of a datagram of 400 bytes.
    for (bytes, size) in carried.iter().zip(sizes) {
        assert!(
            (2_500_000..=3_500_000).contains(bytes),
            "{size}: {carried:?}"
        );
    }
}

#[test]
fn transport_priority_orders_writers_without_a_priority_of_their_own() {
    let mut pair = ContextPair::new(vec![ten_megabytes()]);
    let ranked = EndpointQos {
        transport_priority: 10,
        ..best_effort(100)
    };
    let low = pair.writer("low", best_effort(100), AsyncPublishMode::new("link"));
    let high = pair.writer("high", ranked, AsyncPublishMode::new("link"));
    let (slow, fast) = (
        pair.reader("low", best_effort(100)),
        pair.reader("high", best_effort(100)),
    );
    pair.run_ms(200);
    for n in 0..50 {
        pair.publish(&low, message(20_000, n));
        pair.publish(&high, message(20_000, n));
    }
    // 50 times 20 kB take 100 ms.
    pair.run_ms(105);
    assert_eq!(pair.taken(&fast).len(), 50);
    assert!(pair.taken(&slow).len() <= 3);
    pair.run_ms(105);
    assert!(pair.taken(&slow).len() >= 46);
}

#[test]
fn retransmissions_are_rate_limited_too_and_every_sample_arrives() {
    let mut pair = ContextPair::new(vec![ten_megabytes()]);
    let keep_all = EndpointQos {
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let writer = pair.writer("t", keep_all.clone(), AsyncPublishMode::new("link"));
    let reader = pair.reader("t", keep_all);
    pair.run_ms(200);
    let begin = now(&pair);
    pair.network().lose_every = 7;
    for n in 0..40 {
        pair.publish(&writer, message(100_000, n));
    }
    pair.run_until(begin + 2_000 * MS, |_| writer.is_acknowledged());
    let took = now(&pair) - begin;
    assert!(writer.is_acknowledged());
    assert_eq!(pair.taken(&reader), (0..40).collect::<Vec<u8>>());
    // 4 MB take 400 ms, and a seventh of it again.
    assert!((400 * MS..800 * MS).contains(&took), "{took}");
    let network = pair.network();
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
fn a_removed_writer_does_not_delay_the_others() {
    let mut pair = ContextPair::new(vec![ten_megabytes()]);
    let removed = pair.writer("gone", last(5), AsyncPublishMode::new("link").priority(9));
    let remaining = pair.writer("stays", last(5), AsyncPublishMode::new("link"));
    let (lost, kept) = (pair.reader("gone", last(5)), pair.reader("stays", last(5)));
    pair.run_ms(200);
    pair.publish(&removed, message(8_000_000, 1));
    pair.publish(&remaining, message(1_000, 2));
    pair.run_ms(50);
    assert_eq!(pair.taken(&kept), [0; 0]);
    pair.talker().remove_writer(&removed);
    pair.run_ms(50);
    assert_eq!(pair.taken(&kept), [2]);
    assert_eq!(pair.taken(&lost), [0; 0]);
}

#[test]
fn an_unknown_controller_is_refused_by_name() {
    let pair = ContextPair::new(vec![ten_megabytes()]);
    let spec = harness::spec("t", last(1));
    let refused = pair
        .talker()
        .create_flow_controlled_writer(spec, &AsyncPublishMode::new("lnik"));
    let text = refused.err().unwrap().to_string();
    assert!(
        text.contains("\"lnik\"") && text.contains("\"link\""),
        "{text}"
    );
}
