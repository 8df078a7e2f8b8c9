//! Chains from hand-written records.

use pteros_runtime::rtps::id::{EntityId, GuidPrefix};
use pteros_runtime::sample::DeliveryPath;

use super::*;

const READER: u32 = 0x0000_0104;
const WRITER: u32 = 0x0000_0203;

/// The only writer of a context.
fn writer(context: u8) -> pteros_runtime::rtps::id::Guid {
    GuidPrefix([context; 12]).with(EntityId::from_bytes(WRITER.to_be_bytes()))
}

fn record(step: TraceEvent, from: u8, sequence: i64, at: u64) -> TraceRecord {
    TraceRecord {
        event: step,
        path: DeliveryPath::Network,
        bytes: 100,
        first_time: at,
        later_times: [Some(10), Some(20), Some(30), Some(40)],
        writer: writer(from),
        sequence,
        entity: READER,
        thread: 1,
        span: 0,
        cause: 0,
    }
}

/// A context that subscribes to one topic and publishes on another.
fn recording(
    context: u8,
    origin: u64,
    (subscribes, publishes): (&str, &str),
    records: Vec<TraceRecord>,
) -> Recording {
    Recording {
        header: TraceHeader {
            process: 100 + u32::from(context),
            prefix: GuidPrefix([context; 12]),
            origin,
            wall: 0,
            clock_read_picos: 20_000,
        },
        names: format!(
            "node 1 /n{context}\nreader {READER:08x} rt{subscribes} T\nwriter {WRITER:08x} rt{publishes} T\n\
             owner {READER:08x} 1\nowner {WRITER:08x} 1\nlater words of another version\n"
        ),
        names_lost: 0,
        records,
        lost: 0,
    }
}

#[test]
fn two_nodes_that_respond_to_each_other_are_a_bounded_chain() {
    // n1 publishes /a and subscribes to /b, n2 the other way round. Its clock
    // starts later.
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for round in 0..500_u64 {
        let number = round as i64 + 1;
        let at = 10_000 + round * 2_000;
        first.push(TraceRecord {
            cause: round,
            ..record(TraceEvent::Published, 1, number, at)
        });
        second.push(record(TraceEvent::Arrived, 1, number, at + 200 - 5_000));
        second.push(TraceRecord {
            span: 1 + round,
            ..record(TraceEvent::Called, 1, number, at + 300 - 5_000)
        });
        second.push(TraceRecord {
            cause: 1 + round,
            ..record(TraceEvent::Published, 2, number, at + 325 - 5_000)
        });
        first.push(record(TraceEvent::Arrived, 2, number, at + 600));
        first.push(TraceRecord {
            span: 1 + round,
            ..record(TraceEvent::Called, 2, number, at + 700)
        });
    }
    let trace = Trace::new([
        recording(1, 0, ("/b", "/a"), first),
        recording(2, 5_000, ("/a", "/b"), second),
    ]);
    assert_eq!(trace.hops().count(), 1000);
    let hop = trace.hops().next().unwrap();
    assert_eq!(
        (hop.topic, hop.publisher.unwrap().node.as_str()),
        ("/a", "/n1")
    );
    assert_eq!(hop.subscriber.unwrap().node, "/n2");
    assert_eq!(hop.latency(), 320);
    assert_eq!(hop.layers, [10, 30, 160, 10, 90, 20]);
    assert_eq!((hop.serializing, hop.decoding, hop.stamping), (10, 10, 200));

    let chains = trace.chains();
    assert_eq!(chains.len(), 1, "one message began it all");
    assert_eq!((chains[0].0.len(), chains[0].1), (TOPICS_MAX, 1));
    let runs = trace.runs(&["/a", "/b", "/a"]);
    assert_eq!(runs.len(), 499);
    assert_eq!(runs[0].latency(), 2_320);
    assert_eq!((runs[0].processing(0), runs[0].processing(2)), (5, 0));
    assert!(trace.runs(&[]).is_empty());
    assert!(trace.runs(&["/a"; TOPICS_MAX + 1]).is_empty());
}

#[test]
fn messages_after_a_poll_are_caused_by_it_until_the_next_poll() {
    // n1 publishes /a; n2's thread polls /a and publishes /b, in its own loop.
    let taken = |number, at| record(TraceEvent::Taken, 1, number, at);
    let (mut published, mut polled, mut received) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=3 {
        let at = 10_000 * number as u64;
        published.push(record(TraceEvent::Published, 1, number, at));
        polled.push(record(TraceEvent::Arrived, 1, number, at + 200));
        polled.push(taken(number, at + 300));
    }
    // After the first sample only another thread publishes, after the second two
    // messages follow, and after the last one within a callback.
    for (number, at, thread, cause) in [
        (1, 15_000, 2, 0),
        (2, 25_000, 1, 0),
        (3, 26_000, 1, 0),
        (4, 35_000, 1, 7),
    ] {
        polled.push(TraceRecord {
            thread,
            cause,
            ..record(TraceEvent::Published, 2, number, at)
        });
        received.push(record(TraceEvent::Arrived, 2, number, at + 200));
        received.push(TraceRecord {
            span: number as u64,
            ..record(TraceEvent::Called, 2, number, at + 300)
        });
    }
    let others = [
        recording(1, 0, ("/x", "/a"), published),
        recording(3, 0, ("/b", "/y"), received),
    ];
    let trace = |polled| Trace::new(others.clone().into_iter().chain([polled]));
    let runs_of = |trace: &Trace| -> Vec<(i64, i64)> {
        let runs = trace.runs(&["/a", "/b"]);
        let pair = |run: &ChainRun<'_>| (run.hops[0].sequence, run.hops[1].sequence);
        runs.iter().map(pair).collect()
    };
    let outside_callbacks = trace(recording(2, 0, ("/a", "/b"), polled.clone()));
    assert_eq!(runs_of(&outside_callbacks), [(2, 2)]);
    assert_eq!(outside_callbacks.chains(), [(vec!["/a", "/b"], 1)]);
    let run = &outside_callbacks.runs(&["/a", "/b"])[0];
    assert_eq!(run.processing(0), 25_000 - 20_300);

    // Polled within a timer's callback: that callback publishes afterwards.
    for record in polled.iter_mut().filter(|r| r.event == TraceEvent::Taken) {
        record.cause = 7;
    }
    let ticked = trace(recording(2, 0, ("/a", "/b"), polled));
    assert_eq!(runs_of(&ticked), [(1, 4), (2, 4), (3, 4)]);
}

#[test]
fn chains_with_missing_records_are_left_out() {
    let outside_callbacks = record(TraceEvent::Called, 9, 1, 5_000);
    let unfinished = TraceRecord {
        later_times: [None; 4],
        ..record(TraceEvent::Published, 1, 2, 100)
    };
    let trace = Trace::new([recording(
        1,
        0,
        ("/a", "/a"),
        vec![outside_callbacks, unfinished],
    )]);
    assert_eq!(trace.hops().count(), 0);
    assert!(trace.chains().is_empty());
}

#[test]
fn percentiles_use_the_nearest_rank() {
    let spread = LatencyStats::of((1..=200).rev());
    let (min, max) = (spread.min, spread.max);
    assert_eq!((spread.count, min, spread.median, max), (200, 1, 100, 200));
    assert_eq!((spread.p95, spread.p99), (190, 198));
    assert_eq!(LatencyStats::of([7]).p99, 7);
    assert_eq!(LatencyStats::of([]), LatencyStats::default());
}
