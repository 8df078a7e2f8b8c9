//! Traces: where each message was when, by which path it came, and what came of
//! it; and what they cost, which is nothing where nothing is traced.
#![allow(
    clippy::disallowed_methods,
    reason = "a thread of the user's passes answers on"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoInts_Request, AddTwoInts_Response,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::Presentation;
use pteros::trace::{
    BYTES_MIN, Cause, EXTENSION, NoTrace, Record, Recording, Step, Trace, TraceOptions,
};
use pteros::{ContextError, Guid, OpenError, Path, SharedMemoryOptions, SubscriptionOptions};

const PATIENCE: Duration = Duration::from_secs(30);

fn traced(domain: u32, linked: bool, trace: TraceOptions) -> Context {
    let options = ContextOptions {
        trace: Some(trace),
        shared_memory: SharedMemoryOptions {
            on: linked,
            ..SharedMemoryOptions::default()
        },
        ..ContextOptions::local(domain)
    };
    Context::with_options(options).unwrap()
}

fn text(data: &str) -> Text {
    Text { data: data.into() }
}

/// Spins nodes in turn, each a little, until something is so.
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

/// The records of a step on a sample.
fn of(recording: &Recording, step: Step, writer: Guid, sequence: i64) -> Vec<Record> {
    let is_it = |r: &&Record| (r.step, r.writer, r.sequence) == (step, writer, sequence);
    recording.records.iter().filter(is_it).copied().collect()
}

#[track_caller]
fn one(recording: &Recording, step: Step, writer: Guid, sequence: i64) -> Record {
    let found = of(recording, step, writer, sequence);
    assert_eq!(found.len(), 1, "{step:?}: {found:?}");
    found[0]
}

/// A record's times by the clock that the host's processes share.
fn times(recording: &Recording, record: &Record) -> Vec<u64> {
    let times = (0..5).filter_map(|at| record.time(at));
    times.map(|time| recording.head.origin + time).collect()
}

#[test]
fn a_message_and_what_came_of_it_are_followed_by_every_path() {
    for (domain, path) in [
        (70, Path::Network),
        (71, Path::SharedMemory),
        (72, Path::IntraProcess),
    ] {
        let context = |_| traced(domain, path == Path::SharedMemory, TraceOptions::default());
        let first = context(0);
        let contexts = match path {
            Path::IntraProcess => [first.clone(), first.clone(), first],
            _ => [first, context(1), context(2)],
        };
        let nodes = ["a", "b", "c"].map(|name| {
            contexts[(name.as_bytes()[0] - b'a') as usize]
                .node(name)
                .unwrap()
        });
        let heard = Arc::new(AtomicUsize::new(0));
        let onward = nodes[1].create_publisher::<Text>("onward", 10).unwrap();
        let (writer_b, to_c) = (onward.gid(), onward.clone());
        let relay = nodes[1]
            .create_subscription::<Text>("start", 10, move |m: Sample<Text>| {
                to_c.publish(&m).unwrap();
            })
            .unwrap();
        let sink = heard.clone();
        let last = nodes[2]
            .create_subscription::<Text>("onward", 10, move |_| {
                sink.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        let start = nodes[0].create_publisher::<Text>("start", 10).unwrap();
        let all = [&nodes[0], &nodes[1], &nodes[2]];
        let is_by = |guid: Guid, context: &Context| context.path_to(guid).path == path;
        spin_until(&all, || {
            let is_matched = start.matched_count() == 1
                && onward.matched_count() == 1
                && relay.matched_count() == 1
                && last.matched_count() == 1;
            is_matched
                && (path == Path::IntraProcess
                    || (is_by(relay.gid(), &contexts[0]) && is_by(last.gid(), &contexts[1])))
        });
        start.publish(&text("one")).unwrap();
        spin_until(&all, || heard.load(Ordering::Relaxed) == 1);

        let [a, b, c] = [0, 1, 2].map(|at: usize| contexts[at].recording().unwrap());
        let published = one(&a, Step::Published, start.gid(), 1);
        let arrived = one(&b, Step::Arrived, start.gid(), 1);
        let called = one(&b, Step::Called, start.gid(), 1);
        let passed_on = one(&b, Step::Published, writer_b, 1);
        let came = one(&c, Step::Arrived, writer_b, 1);
        let ended = one(&c, Step::Called, writer_b, 1);
        assert_eq!(published.cause, 0, "it came of nothing");
        assert_ne!(called.span, 0);
        assert_eq!(passed_on.cause, called.span, "{path:?}");
        assert_ne!(ended.span, called.span);
        assert_eq!((arrived.path, came.path, ended.path), (path, path, path));

        // Each step after the one before it, by the host's clock.
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
            Path::IntraProcess => assert_eq!(p.len(), 3, "not serialized: {p:?}"),
            _ => assert_eq!(p.len(), 5, "{p:?}"),
        }
        let of_hops = [p[0], r[0], k[0], q[0], s[0], e[0]];
        assert!(of_hops.is_sorted(), "{path:?}: {of_hops:?}");
        assert!(
            q[0] >= k[2] && q[q.len() - 1] <= k[3],
            "within the callback"
        );

        // Put together: each hop's layers are all of its time.
        let recordings = match path {
            Path::IntraProcess => vec![a.clone()],
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

        // What they are called.
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
fn what_a_timer_publishes_comes_of_its_tick_and_what_a_future_does_of_its_callback() {
    let context = traced(73, false, TraceOptions::default());
    let node = context.node("both").unwrap();
    let ticks = node.create_publisher::<Text>("ticks", 10).unwrap();
    let (by_timer, answers) = (
        ticks.gid(),
        node.create_publisher::<Text>("answers", 10).unwrap(),
    );
    let by_future = answers.gid();
    let _timer = node
        .create_timer(Duration::from_millis(50), move || {
            ticks.publish(&text("tick")).unwrap();
        })
        .unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let (sleeper, sink) = (node.clone(), done.clone());
    let options = SubscriptionOptions::new(10).callback_async(move |m: Sample<Text>| {
        let (answers, node, sink) = (answers.clone(), sleeper.clone(), sink.clone());
        async move {
            // Polled again, later and by itself.
            node.sleep(Duration::from_millis(1)).await;
            answers.publish(&m).unwrap();
            sink.fetch_add(1, Ordering::Relaxed);
        }
    });
    let _sub = node
        .create_subscription_with::<Text>("ticks", options)
        .unwrap();
    spin_until(&[&node], || done.load(Ordering::Relaxed) >= 2);

    let recording = context.recording().unwrap();
    let tick = one(&recording, Step::Published, by_timer, 1);
    let ticked: Vec<_> = recording
        .records
        .iter()
        .filter(|r| r.step == Step::Ticked)
        .collect();
    assert!(ticked.iter().any(|r| r.span == tick.cause), "{tick:?}");
    let called = one(&recording, Step::Called, by_timer, 1);
    let answer = one(&recording, Step::Published, by_future, 1);
    assert_eq!(answer.cause, called.span);
    assert!(
        answer.at > called.time(3).unwrap(),
        "after the callback itself"
    );
}

#[test]
fn the_answer_to_a_request_comes_of_it() {
    let context = traced(74, false, TraceOptions::default());
    let node = context.node("adder").unwrap();
    let _service = node
        .create_service::<AddTwoInts>("add", |r| AddTwoInts_Response { sum: r.a + r.b })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let call = client
        .call_async(&AddTwoInts_Request { a: 2, b: 3 })
        .unwrap();
    let answer = executor
        .spin_until_complete(call, PATIENCE)
        .unwrap()
        .unwrap();
    assert_eq!(answer.sum, 5);

    let recording = context.recording().unwrap();
    let step = |step| recording.records.iter().filter(move |r| r.step == step);
    let called = step(Step::Called).next().expect("the service's callback");
    let of_it = step(Step::Published)
        .filter(|r| r.cause == called.span)
        .count();
    assert_eq!(of_it, 1, "{:?}", recording.records);
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a callback that has another thread do its work"
)]
fn what_comes_of_answers_groups_and_polled_messages_is_followed_onto_other_threads() {
    let context = traced(77, false, TraceOptions::default());
    let node = context.node("both").unwrap();
    let hear = |topic: &str, heard: &Arc<AtomicUsize>| {
        let heard = heard.clone();
        let count = move |_: Sample<Text>| {
            heard.fetch_add(1, Ordering::Relaxed);
        };
        node.create_subscription(topic, 10, count).unwrap()
    };
    let tell = |topic: &str| node.create_publisher::<Text>(topic, 10).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let _ends = ["answered", "gathered", "made"].map(|topic| hear(topic, &heard));

    // A callback calls a service, whose answer another thread passes on.
    let _service = node
        .create_service::<AddTwoInts>("add", |r| AddTwoInts_Response { sum: r.a + r.b })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let answered = tell("answered");
    let ask = move |_: Sample<Text>| {
        let answered = answered.clone();
        let pass_on = move |_| {
            let cause = Cause::here();
            let work = move || cause.run(|| answered.publish(&text("5")).unwrap());
            std::thread::spawn(work).join().unwrap();
        };
        let request = AddTwoInts_Request { a: 2, b: 3 };
        client.call_then(&request, pass_on).unwrap();
    };
    let _asks = node.create_subscription("start", 10, ask).unwrap();
    // A member of a group.
    let group = node
        .create_subscription_group(Presentation::default())
        .unwrap();
    let gathered = tell("gathered");
    let gather = move |m: Sample<Text>| gathered.publish(&m).unwrap();
    let _member = group.create_subscription("part", 10, gather).unwrap();
    let polled = node.create_polled_subscription::<Text>("raw", 10).unwrap();

    tell("start").publish(&text("ask")).unwrap();
    tell("part").publish(&text("one")).unwrap();
    spin_until(&[&node], || heard.load(Ordering::Relaxed) == 2);
    // A program of its own, without callbacks; the second message comes of nothing.
    let (raw, made) = (tell("raw"), tell("made"));
    raw.publish(&text("raw")).unwrap();
    assert!(polled.take_timeout(PATIENCE).is_some());
    made.publish(&text("made of it")).unwrap();
    made.publish(&text("made up")).unwrap();
    spin_until(&[&node], || heard.load(Ordering::Relaxed) == 4);

    let trace = Trace::new(context.recording());
    let chains = trace.chains();
    let has = |topics: &[&str]| {
        let found = chains.iter().find(|(of, _)| of == topics);
        assert_eq!(found.map(|f| f.1), Some(1), "{topics:?} of {chains:?}");
    };
    has(&["/start", "/add (request)", "/add (reply)", "/answered"]);
    has(&["/part", "/gathered"]);
    has(&["/raw", "/made"]);
}

#[test]
fn a_full_trace_keeps_the_newest_and_counts_the_rest() {
    let small = TraceOptions {
        bytes_max: BYTES_MIN,
        ..TraceOptions::default()
    };
    let context = traced(75, false, small);
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("t", 10).unwrap();
    for _ in 0..3000 {
        publisher.publish(&text("again")).unwrap();
    }
    let recording = context.recording().unwrap();
    let kept = recording.records.len() as u64;
    assert!((500..700).contains(&kept), "{kept}");
    let told: Vec<i64> = of_writer(&recording, publisher.gid());
    assert_eq!(told.last(), Some(&3000));
    assert!(told.is_sorted() && told.len() > 400);
    // Its other publishers, /rosout's for one, have said little.
    let all = kept + recording.lost;
    assert!((3000..3100).contains(&all), "{all}");
}

fn of_writer(recording: &Recording, writer: Guid) -> Vec<i64> {
    let its = recording.records.iter().filter(|r| r.writer == writer);
    its.map(|r| r.sequence).collect()
}

#[test]
fn a_trace_is_a_file_that_stays_and_folders_that_cannot_be_are_refused() {
    let folder = std::env::temp_dir().join(format!("pteros-traces-{}", std::process::id()));
    let options = TraceOptions {
        folder: Some(folder.join("new")),
        bytes_max: BYTES_MIN,
    };
    let context = traced(76, false, options.clone());
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("t", 10).unwrap();
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
    assert_eq!(recording.head.process, std::process::id());
    one(&recording, Step::Published, gid, 1);

    let cut = Recording::read(&words[..words.len() - 1]).unwrap_err();
    assert!(matches!(cut, NoTrace::CutOff { .. }), "{cut}");
    assert_eq!(Recording::read(&[]).unwrap_err(), NoTrace::Other);
    let mut later = words.clone();
    later[1] = 77;
    let error = Recording::read(&later).unwrap_err();
    assert_eq!(error, NoTrace::Version { version: 77 });
    // Whatever is in it, it is read without harm.
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
    std::fs::remove_dir_all(&folder).unwrap();
}
