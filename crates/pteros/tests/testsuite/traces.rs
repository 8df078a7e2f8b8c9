//! Tracing: where each message was and when, by which path it travelled, and what
//! it caused; and its cost, which is nothing where tracing is off.
#![allow(clippy::disallowed_methods, reason = "a user's thread passes answers")]

use pteros_test_support::folder::Folder;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::log::LogFileOptions;
use pteros::prelude::*;
use pteros::qos::Presentation;
use pteros::subscription::SubscriptionGroup;
use pteros::trace::{
    BYTES_MIN, CurrentCallback, EXTENSION, Recording, Trace, TraceEvent, TraceOptions,
    TraceReadError, TraceRecord,
};
use pteros::{
    error::{ContextError, OpenError},
    graph::Guid,
    shared_memory::SharedMemoryOptions,
    subscription::DeliveryPath,
};

const TIMEOUT: Duration = Duration::from_secs(30);

fn traced(domain: u32, shared_memory: bool, trace: TraceOptions) -> Context {
    let options = ContextOptions {
        trace: Some(trace),
        shared_memory: SharedMemoryOptions {
            enabled: shared_memory,
            ..SharedMemoryOptions::default()
        },
        ..ContextOptions::local(domain)
    };
    Context::with_options(options).unwrap()
}

fn text(data: &str) -> Text {
    Text { data: data.into() }
}

/// Spins nodes in turn for a short time each, until `done` is true.
#[track_caller]
fn spin_until(nodes: &[&Node], mut done: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if done() {
            return;
        }
        for node in nodes {
            node.spin_once(Duration::from_micros(500));
        }
    }
    panic!("it did not come to that");
}

/// The trace records of an event of a sample.
fn records_of(
    recording: &Recording,
    step: TraceEvent,
    writer: Guid,
    sequence: i64,
) -> Vec<TraceRecord> {
    let is_it = |r: &&TraceRecord| (r.event, r.writer, r.sequence) == (step, writer, sequence);
    recording.records.iter().filter(is_it).copied().collect()
}

#[track_caller]
fn single_record(
    recording: &Recording,
    step: TraceEvent,
    writer: Guid,
    sequence: i64,
) -> TraceRecord {
    let found = records_of(recording, step, writer, sequence);
    assert_eq!(found.len(), 1, "{step:?}: {found:?}");
    found[0]
}

/// A record's times by the host's monotonic clock.
fn times(recording: &Recording, record: &TraceRecord) -> Vec<u64> {
    let times = (0..5).filter_map(|at| record.time(at));
    times.map(|time| recording.header.origin + time).collect()
}

fn text_publisher(node: &Node, topic: &str) -> Publisher<Text> {
    node.create_publisher(topic.keep_last(10)).unwrap()
}

#[test]
fn a_causal_chain_is_traced_over_every_delivery_path() {
    for (domain, path) in [
        (70, DeliveryPath::Network),
        (71, DeliveryPath::SharedMemory),
        (72, DeliveryPath::IntraProcess),
    ] {
        let context = |_| {
            traced(
                domain,
                path == DeliveryPath::SharedMemory,
                TraceOptions::default(),
            )
        };
        let first = context(0);
        let contexts = match path {
            DeliveryPath::IntraProcess => [first.clone(), first.clone(), first],
            _ => [first, context(1), context(2)],
        };
        let nodes = ["a", "b", "c"].map(|name| {
            contexts[(name.as_bytes()[0] - b'a') as usize]
                .create_node(name)
                .unwrap()
        });
        let heard = Arc::new(AtomicUsize::new(0));
        let onward = text_publisher(&nodes[1], "onward");
        let (writer_b, to_c) = (onward.gid(), onward.clone());
        let relay = nodes[1]
            .create_subscription::<Text>("start".keep_last(10), move |m: Sample<Text>| {
                to_c.publish(&m).unwrap();
            })
            .unwrap();
        let sink = heard.clone();
        let last = nodes[2]
            .create_subscription::<Text>("onward".keep_last(10), move |_| {
                sink.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        let start = text_publisher(&nodes[0], "start");
        let all = [&nodes[0], &nodes[1], &nodes[2]];
        let is_by = |guid: Guid, context: &Context| context.delivery_path_to(guid).path == path;
        spin_until(&all, || {
            let is_matched = start.matched_count() == 1
                && onward.matched_count() == 1
                && relay.matched_count() == 1
                && last.matched_count() == 1;
            is_matched
                && (path == DeliveryPath::IntraProcess
                    || (is_by(relay.gid(), &contexts[0]) && is_by(last.gid(), &contexts[1])))
        });
        start.publish(&text("one")).unwrap();
        spin_until(&all, || heard.load(Ordering::Relaxed) == 1);

        let [a, b, c] = [0, 1, 2].map(|at: usize| contexts[at].trace_recording().unwrap());
        let published = single_record(&a, TraceEvent::Published, start.gid(), 1);
        let arrived = single_record(&b, TraceEvent::Arrived, start.gid(), 1);
        let called = single_record(&b, TraceEvent::Called, start.gid(), 1);
        let passed_on = single_record(&b, TraceEvent::Published, writer_b, 1);
        let came = single_record(&c, TraceEvent::Arrived, writer_b, 1);
        let ended = single_record(&c, TraceEvent::Called, writer_b, 1);
        assert_eq!(published.cause, 0, "it came of nothing");
        assert_ne!(called.span, 0);
        assert_eq!(passed_on.cause, called.span, "{path:?}");
        assert_ne!(ended.span, called.span);
        assert_eq!((arrived.path, came.path, ended.path), (path, path, path));

        // Each event after the one before it, by the host's clock.
        let [p, r, k] = [
            times(&a, &published),
            times(&b, &arrived),
            times(&b, &called),
        ];
        let [q, s, e] = [times(&b, &passed_on), times(&c, &came), times(&c, &ended)];
        for steps in [&p, &r, &k, &q, &s, &e] {
            assert!(steps.is_sorted(), "{path:?}: {steps:?}");
        }
        assert_eq!((k.len(), e.len()), (4, 4));
        match path {
            DeliveryPath::IntraProcess => assert_eq!(p.len(), 3, "not serialized: {p:?}"),
            _ => assert_eq!(p.len(), 5, "{p:?}"),
        }
        let of_hops = [p[0], r[0], k[0], q[0], s[0], e[0]];
        assert!(of_hops.is_sorted(), "{path:?}: {of_hops:?}");
        assert!(
            q[0] >= k[2] && q[q.len() - 1] <= k[3],
            "within the callback"
        );

        // Joined: each hop's layers add up to its time.
        let recordings = match path {
            DeliveryPath::IntraProcess => vec![a.clone()],
            _ => vec![a.clone(), b.clone(), c.clone()],
        };
        let trace = Trace::new(recordings);
        let runs = trace.runs(&["/start", "/onward"]);
        assert_eq!(runs.len(), 1, "{path:?}");
        for hop in &runs[0].hops {
            assert_eq!(hop.layers.iter().sum::<u64>(), hop.latency(), "{hop:?}");
        }
        let (first, second) = (&runs[0].hops[0], &runs[0].hops[1]);
        let whole = first.latency() + runs[0].processing(0) + second.latency();
        assert_eq!(runs[0].latency(), whole);
        assert_eq!(trace.chains(), [(vec!["/start", "/onward"], 1)]);
        let nodes = [first.publisher, first.subscriber, second.subscriber];
        let nodes = nodes.map(|owner| owner.map_or("", |owner| &owner.node));
        assert_eq!(nodes, ["/a", "/b", "/c"]);

        // The names.
        let line = format!(
            "{:02x}{:02x}",
            start.gid().to_bytes()[14],
            start.gid().to_bytes()[15]
        );
        let named =
            |l: &str| l.starts_with("writer ") && l.contains(&line) && l.contains("rt/start");
        assert!(a.names.lines().any(named), "{}", a.names);
        assert!(b.names.contains("/b\n"), "{}", b.names);
        assert_eq!((a.lost, b.lost, c.lost), (0, 0, 0));
    }
}

#[test]
fn messages_of_timers_and_futures_are_caused_by_tick_and_callback() {
    let context = traced(73, false, TraceOptions::default());
    let node = context.create_node("both").unwrap();
    let ticks = node
        .create_publisher::<Text>("ticks".keep_last(10))
        .unwrap();
    let (by_timer, answers) = (
        ticks.gid(),
        node.create_publisher::<Text>("answers".keep_last(10))
            .unwrap(),
    );
    let by_future = answers.gid();
    let _timer = node
        .create_timer(Duration::from_millis(50), move || {
            ticks.publish(&text("tick")).unwrap();
        })
        .unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let (sleeper, sink) = (node.clone(), done.clone());
    let answer = move |m: Sample<Text>| {
        let (answers, node, sink) = (answers.clone(), sleeper.clone(), sink.clone());
        Box::pin(async move {
            // Polled again, later and by itself.
            node.sleep(Duration::from_millis(1)).await;
            answers.publish(&m).unwrap();
            sink.fetch_add(1, Ordering::Relaxed);
        })
    };
    let _sub = node
        .create_subscription("ticks".keep_last(10), answer)
        .unwrap();
    spin_until(&[&node], || done.load(Ordering::Relaxed) >= 2);

    let recording = context.trace_recording().unwrap();
    let tick = single_record(&recording, TraceEvent::Published, by_timer, 1);
    let ticked: Vec<_> = recording
        .records
        .iter()
        .filter(|r| r.event == TraceEvent::TimerFired)
        .collect();
    assert!(ticked.iter().any(|r| r.span == tick.cause), "{tick:?}");
    let called = single_record(&recording, TraceEvent::Called, by_timer, 1);
    let answer = single_record(&recording, TraceEvent::Published, by_future, 1);
    assert_eq!(answer.cause, called.span);
    assert!(
        answer.first_time > called.time(3).unwrap(),
        "after the callback itself"
    );
}

#[test]
fn a_response_is_caused_by_its_request() {
    let context = traced(74, false, TraceOptions::default());
    let node = context.create_node("adder").unwrap();
    let _service = node
        .create_service::<AddTwoInts>("add", |r| AddTwoIntsResponse { sum: r.a + r.b })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let call = client
        .call_async(&AddTwoIntsRequest { a: 2, b: 3 })
        .unwrap();
    let answer = executor
        .spin_until_future_complete(call, TIMEOUT)
        .unwrap()
        .unwrap();
    assert_eq!(answer.sum, 5);

    let recording = context.trace_recording().unwrap();
    let step = |step| recording.records.iter().filter(move |r| r.event == step);
    let called = step(TraceEvent::Called)
        .next()
        .expect("the service's callback");
    let of_it = step(TraceEvent::Published)
        .filter(|r| r.cause == called.span)
        .count();
    assert_eq!(of_it, 1, "{:?}", recording.records);
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a callback that has another thread do its work"
)]
fn causes_of_responses_groups_and_polled_messages_cross_threads() {
    let context = traced(77, false, TraceOptions::default());
    let node = context.create_node("both").unwrap();
    let hear = |topic: &str, heard: &Arc<AtomicUsize>| {
        let heard = heard.clone();
        let count = move |_: Sample<Text>| {
            heard.fetch_add(1, Ordering::Relaxed);
        };
        node.create_subscription(topic.keep_last(10), count)
            .unwrap()
    };
    let tell = |topic: &str| node.create_publisher::<Text>(topic.keep_last(10)).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let _ends = ["answered", "gathered", "made"].map(|topic| hear(topic, &heard));

    // A callback calls a service, whose response another thread publishes.
    let _service = node
        .create_service::<AddTwoInts>("add", |r| AddTwoIntsResponse { sum: r.a + r.b })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let answered = tell("answered");
    let ask = move |_: Sample<Text>| {
        let answered = answered.clone();
        let pass_on = move |_| {
            let cause = CurrentCallback::current();
            let work = move || cause.run(|| answered.publish(&text("5")).unwrap());
            std::thread::spawn(work).join().unwrap();
        };
        let request = AddTwoIntsRequest { a: 2, b: 3 };
        client.call_then(&request, pass_on).unwrap();
    };
    let _asks = node
        .create_subscription("start".keep_last(10), ask)
        .unwrap();
    // A member of a group.
    let group = SubscriptionGroup::new(&node, Presentation::default()).unwrap();
    let gathered = tell("gathered");
    let gather = move |m: Sample<Text>| gathered.publish(&m).unwrap();
    let _member = group
        .create_subscription("part".keep_last(10), gather)
        .unwrap();
    let polled = node
        .create_polled_subscription::<Text>("raw".keep_last(10))
        .unwrap();

    tell("start").publish(&text("ask")).unwrap();
    tell("part").publish(&text("one")).unwrap();
    spin_until(&[&node], || heard.load(Ordering::Relaxed) == 2);
    // A program of its own, without callbacks; the second message has no cause.
    let (raw, made) = (tell("raw"), tell("made"));
    raw.publish(&text("raw")).unwrap();
    assert!(polled.take_timeout(TIMEOUT).is_some());
    made.publish(&text("made of it")).unwrap();
    made.publish(&text("made up")).unwrap();
    spin_until(&[&node], || heard.load(Ordering::Relaxed) == 4);

    let trace = Trace::new(context.trace_recording());
    let chains = trace.chains();
    let has = |topics: &[&str]| {
        let found = chains.iter().find(|(records_of, _)| records_of == topics);
        assert_eq!(found.map(|f| f.1), Some(1), "{topics:?} of {chains:?}");
    };
    has(&["/start", "/add (request)", "/add (reply)", "/answered"]);
    has(&["/part", "/gathered"]);
    has(&["/raw", "/made"]);
}

#[test]
fn a_full_trace_keeps_the_newest_records_and_counts_the_rest() {
    let small = TraceOptions {
        bytes_max: BYTES_MIN,
        ..TraceOptions::default()
    };
    let context = traced(75, false, small);
    let node = context.create_node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    for _ in 0..3000 {
        publisher.publish(&text("again")).unwrap();
    }
    let recording = context.trace_recording().unwrap();
    let kept = recording.records.len() as u64;
    assert!((500..700).contains(&kept), "{kept}");
    let told: Vec<i64> = of_writer(&recording, publisher.gid());
    assert_eq!(told.last(), Some(&3000));
    assert!(told.is_sorted() && told.len() > 400);
    // Its other publishers, /rosout's for one, have published little.
    let all = kept + recording.lost;
    assert!((3000..3100).contains(&all), "{all}");
}

fn of_writer(recording: &Recording, writer: Guid) -> Vec<i64> {
    let its = recording.records.iter().filter(|r| r.writer == writer);
    its.map(|r| r.sequence).collect()
}

#[test]
fn a_trace_file_persists_and_invalid_folders_are_refused() {
    let folder = Folder::absent("traces");
    let options = TraceOptions {
        folder: Some(folder.join("new")),
        bytes_max: BYTES_MIN,
    };
    let context = traced(76, false, options.clone());
    let node = context.create_node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    publisher.publish(&text("kept")).unwrap();
    let gid = publisher.gid();
    drop((publisher, node, context));

    let files: Vec<_> = std::fs::read_dir(folder.join("new"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(files.len(), 1);
    let path = files[0].path();
    assert_eq!(path.extension().unwrap(), EXTENSION);
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() <= BYTES_MIN);
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let recording = Recording::read(&words).unwrap();
    assert_eq!(recording.header.process, std::process::id());
    single_record(&recording, TraceEvent::Published, gid, 1);

    let cut = Recording::read(&words[..words.len() - 1]).unwrap_err();
    assert!(matches!(cut, TraceReadError::Truncated { .. }), "{cut}");
    assert_eq!(Recording::read(&[]).unwrap_err(), TraceReadError::NotATrace);
    let mut later = words.clone();
    later[1] = 77;
    let error = Recording::read(&later).unwrap_err();
    assert_eq!(error, TraceReadError::Version { version: 77 });
    // Arbitrary contents are read without harm.
    for (at, word) in later.iter_mut().enumerate().skip(2) {
        *word = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    later[1] = 1;
    let _ = Recording::read(&later);

    let open = |trace| {
        let options = ContextOptions {
            trace: Some(trace),
            ..ContextOptions::local(76)
        };
        Context::with_options(options).map(drop).unwrap_err()
    };
    let file = TraceOptions {
        folder: Some(path.clone()),
        ..options.clone()
    };
    let error = open(file);
    assert!(
        matches!(&error, ContextError::Open(OpenError::Trace { .. })),
        "{error:?}"
    );
    assert!(
        error.to_string().contains(&*path.to_string_lossy()),
        "{error}"
    );
    let tiny = TraceOptions {
        bytes_max: 10,
        ..options
    };
    assert!(open(tiny).to_string().contains("10 bytes"));
}

/// The trace in a folder with one file.
fn recording_in(folder: &Path) -> Recording {
    let mut files = std::fs::read_dir(folder).unwrap().flatten();
    let bytes = std::fs::read(files.next().unwrap().path()).unwrap();
    let words = bytes.chunks_exact(8);
    let words: Vec<u64> = words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    Recording::read(&words).unwrap()
}

/// The file was mapped, and the next record after a truncation was a SIGBUS.
#[test]
fn a_truncated_trace_file_ends_no_process_and_is_written_again() {
    let folder = Folder::absent("cut");
    let options = TraceOptions {
        folder: Some(folder.to_path_buf()),
        bytes_max: BYTES_MIN,
    };
    let context = traced(77, false, options);
    let node = context.create_node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    publisher.publish(&text("before")).unwrap();
    let file = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    let all = file.metadata().unwrap().len();
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(file.path())
        .unwrap();
    for _ in 0..2_000 {
        publisher.publish(&text("after")).unwrap();
    }
    let gid = publisher.gid();
    drop((publisher, node, context));
    assert_eq!(std::fs::metadata(file.path()).unwrap().len(), all);
    let recording = recording_in(&folder);
    assert!(recording.names.contains("/talker"), "{}", recording.names);
    let numbers = of_writer(&recording, gid);
    assert_eq!(numbers.last(), Some(&2_001));
    assert_eq!(numbers.len() as u64 + recording.lost, 2_001, "{numbers:?}");
}

/// The background I/O thread drives the context while it is dropped, and may be the
/// last that holds its parts.
#[test]
fn the_trace_file_is_complete_when_the_context_was_dropped() {
    let folder = Folder::absent("whole");
    for run in 0..40 {
        let folder = folder.join(run.to_string());
        let options = TraceOptions {
            folder: Some(folder.to_path_buf()),
            bytes_max: BYTES_MIN,
        };
        let context = traced(79, false, options);
        let node = context.create_node("talker").unwrap();
        let publisher = node.create_publisher::<Text>("t".keep_last(1)).unwrap();
        publisher.publish(&text("last")).unwrap();
        let gid = publisher.gid();
        drop((publisher, node, context));
        let numbers = of_writer(&recording_in(&folder), gid);
        assert_eq!(numbers, [1], "run {run}");
    }
}

/// All but the last moment is in the file of a process that is killed.
#[test]
fn a_trace_file_follows_the_records_while_the_context_runs() {
    let folder = Folder::absent("live");
    let options = TraceOptions {
        folder: Some(folder.to_path_buf()),
        bytes_max: BYTES_MIN,
    };
    let context = traced(78, false, options);
    let node = context.create_node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    publisher.publish(&text("kept")).unwrap();
    let gid = publisher.gid();
    spin_until(&[&node], || of_writer(&recording_in(&folder), gid) == [1]);
    drop((publisher, node, context));
}

/// The child process of the test below.
#[test]
#[ignore = "needs a file size limit; the test below runs it"]
fn child_with_a_file_size_limit() {
    let folder = Folder::absent("limit");
    let trace = TraceOptions {
        folder: Some(folder.join("trace")),
        bytes_max: BYTES_MIN,
    };
    let options = |trace| ContextOptions {
        trace,
        log_files: LogFileOptions {
            folder: Some(folder.join("log")),
            ..LogFileOptions::default()
        },
        ..ContextOptions::local(79)
    };
    let refused = Context::with_options(options(Some(trace)));
    let error = format!("{:?}", refused.err().unwrap());
    assert!(error.contains("ulimit -f"), "{error}");
    let context = Context::with_options(options(None)).unwrap();
    let node = context.create_node("talker").unwrap();
    for n in 0..1_000 {
        pteros::info!(node.logger(), "a line of the log, number {n}");
    }
    drop((node, context));
    println!("it has survived");
}

#[test]
fn a_file_size_limit_ends_no_process() {
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "traces::child_with_a_file_size_limit"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("it has survived"),
        "{}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
