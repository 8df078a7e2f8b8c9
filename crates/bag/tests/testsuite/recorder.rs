//! The recorder in a graph: topics that fail, pauses, and its end.
#![allow(
    clippy::disallowed_methods,
    reason = "tests wait for other threads with a deadline"
)]

use pteros_test_support::folder::Folder;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pteros::NamedQos;
use pteros::interfaces::std_msgs::msg::Int32;
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, HistoryPolicy};
use pteros_bag::{BagOptions, BagReader, FileCompression, Recorder, RecorderOptions, TopicFilter};

const TIMEOUT: Duration = Duration::from_secs(60);

static NEXT_DOMAIN: AtomicU32 = AtomicU32::new(0);

/// A context with a publisher's node and the recorder's.
struct Graph {
    node: Node,
    recorder: Node,
    executor: SingleThreadedExecutor,
}

impl Graph {
    fn new() -> Self {
        let next = NEXT_DOMAIN.fetch_add(1, Ordering::Relaxed);
        let domain = 20 + (std::process::id() * 7 + next) % 80;
        let context = Context::with_options(ContextOptions::local(domain)).unwrap();
        let node = context.create_node("robot").unwrap();
        let recorder = context.create_node("recorder").unwrap();
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).unwrap();
        executor.add_node(&recorder).unwrap();
        Self {
            node,
            recorder,
            executor,
        }
    }

    fn publisher(&self, topic: &str) -> Publisher<Int32> {
        self.node.create_publisher(topic.keep_last(100)).unwrap()
    }

    fn record(&self, folder: &Path, topics: &[&str], options: RecorderOptions) -> Recorder {
        let filter = TopicFilter {
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            ..TopicFilter::default()
        };
        let options = RecorderOptions { filter, ..options };
        Recorder::start(&self.recorder, folder, options).unwrap()
    }

    /// Spins and polls until it is so, and returns the notes.
    #[track_caller]
    fn poll_until(&self, recorder: &mut Recorder, done: impl Fn(&Recorder) -> bool) -> Vec<String> {
        let end = Instant::now() + TIMEOUT;
        let mut notes = Vec::new();
        while !done(recorder) {
            assert!(Instant::now() < end, "it does not come to that: {notes:?}");
            notes.extend(recorder.poll(Instant::now()));
            self.executor.spin_once(Duration::from_millis(1));
        }
        notes
    }

    /// Spins until so many messages of a topic have arrived, paused or not.
    #[track_caller]
    fn spin_until_arrived(&self, recorder: &Recorder, topic: &str, count: u64) {
        let end = Instant::now() + TIMEOUT;
        let arrived = || {
            let accounts = recorder.accounts();
            let account = accounts.get(topic);
            account.map_or(0, |account| account.received + account.paused)
        };
        while arrived() < count {
            assert!(Instant::now() < end, "{} of {count} arrive", arrived());
            self.executor.spin_once(Duration::from_millis(1));
        }
    }
}

fn is_recorded(recorder: &Recorder, topic: &str) -> bool {
    recorder.topics().any(|known| known == topic)
}

#[test]
fn a_topic_that_cannot_be_subscribed_to_does_not_stop_the_others() {
    let graph = Graph::new();
    let folder = Folder::absent("recorder-unrecorded");
    let _publishers = ["/a", "/b"].map(|topic| graph.publisher(topic));
    let qos = QosProfile::default().keep_last(usize::MAX);
    let options = RecorderOptions {
        qos_overrides: [("/a".to_owned(), qos)].into(),
        ..RecorderOptions::default()
    };
    let mut recorder = graph.record(&folder, &["/a", "/b", "/c"], options);
    let mut notes = graph.poll_until(&mut recorder, |recorder| is_recorded(recorder, "/b"));
    // The graph changes, so /a is tried once more.
    let _later = graph.publisher("/c");
    notes.extend(graph.poll_until(&mut recorder, |recorder| is_recorded(recorder, "/c")));
    let told = notes
        .iter()
        .filter(|note| note.contains("[/a] is not recorded"));
    assert_eq!(told.count(), 1, "{notes:?}");
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.unrecorded.len(), 1);
    assert!(summary.unrecorded["/a"].contains("HISTORY"), "{summary:?}");
    // The topic is in the bag once, without messages.
    let bag = BagReader::open(&folder).unwrap();
    assert_eq!(bag.problems(), [""; 0]);
    assert!(bag.is_complete());
}

#[test]
fn the_profile_of_a_later_publisher_is_in_the_metadata() {
    let graph = Graph::new();
    let folder = Folder::absent("recorder-later");
    let first = graph.publisher("/a");
    let latched: Publisher<Int32> = graph
        .node
        .create_publisher("/latched".keep_last(7).transient_local())
        .unwrap();
    let mut recorder = graph.record(&folder, &["/a", "/latched"], RecorderOptions::default());
    graph.poll_until(&mut recorder, |_| {
        first.matched_count() == 1 && latched.matched_count() == 1
    });
    first.publish(&Int32 { data: 1 }).unwrap();
    graph.spin_until_arrived(&recorder, "/a", 1);
    recorder.split();
    let join = |recorder: &mut Recorder, profile: NamedQos| {
        let publisher: Publisher<Int32> = graph.node.create_publisher(profile).unwrap();
        graph.poll_until(recorder, |_| publisher.matched_count() == 1);
        recorder.look_again();
        recorder.poll(Instant::now());
        publisher
    };
    // It restarts: that is one publisher.
    drop(join(&mut recorder, "/a".keep_last(7)));
    graph.poll_until(&mut recorder, |_| {
        graph.node.context().graph().publishers("/a").len() == 1
    });
    recorder.look_again();
    recorder.poll(Instant::now());
    let second = join(&mut recorder, "/a".keep_last(7));
    let _third = join(&mut recorder, "/a".keep_last(7));
    // A latched topic stays one. This publisher does not change it.
    let late: Publisher<Int32> = graph
        .node
        .create_publisher("/latched".keep_last(7))
        .unwrap();
    graph.poll_until(&mut recorder, |_| {
        graph.node.context().graph().publishers("/latched").len() == 2
    });
    recorder.look_again();
    recorder.poll(Instant::now());
    assert_eq!(late.topic(), "/latched");
    second.publish(&Int32 { data: 2 }).unwrap();
    graph.spin_until_arrived(&recorder, "/a", 2);
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.metadata.files.len(), 2);
    let offered = |name: &str| {
        let mut topics = summary.metadata.topics.iter();
        let topic = topics.find(|topic| topic.name == name);
        topic
            .unwrap_or_else(|| panic!("{name}"))
            .offered_qos
            .clone()
    };
    let [ref kept] = offered("/latched")[..] else {
        panic!("{:?}", offered("/latched"));
    };
    assert_eq!(kept.durability, DurabilityPolicy::TransientLocal);
    let offered = offered("/a");
    let depths = offered.iter().map(|profile| profile.history);
    let [one, other] = [100, 7].map(HistoryPolicy::KeepLast);
    assert_eq!(depths.collect::<Vec<_>>(), [one, other, other]);
    let text = std::fs::read_to_string(folder.join("metadata.yaml")).unwrap();
    assert_eq!(text.matches("depth: 7").count(), 3, "{text}");
    // A file describes a channel once: the first has the later profiles in its copy of
    // the metadata only.
    let count = |file: u8| {
        let path = folder.join(format!("recorder-later_{file}.mcap"));
        let bytes = std::fs::read(path).unwrap();
        let found = bytes.windows(8).filter(|part| *part == b"depth: 7");
        found.count()
    };
    assert_eq!(count(0), 3);
    assert!(count(1) > 3, "{}", count(1));
}

#[test]
fn messages_of_a_pause_are_not_lost() {
    let graph = Graph::new();
    let folder = Folder::absent("recorder-paused");
    let publisher = graph.publisher("/a");
    let mut recorder = graph.record(&folder, &["/a"], RecorderOptions::default());
    graph.poll_until(&mut recorder, |_| publisher.matched_count() == 1);
    for round in 0..3 {
        recorder.set_paused(round == 1);
        for data in 0..10 {
            publisher.publish(&Int32 { data }).unwrap();
        }
        graph.spin_until_arrived(&recorder, "/a", 10 * (round + 1));
    }
    let summary = recorder.finish().unwrap();
    let account = &summary.accounts["/a"];
    assert_eq!(summary.lost(), 0, "{account}");
    assert_eq!(
        (account.received, account.written, account.paused),
        (20, 20, 10)
    );
    assert_eq!(
        BagReader::open(&folder).unwrap().accounts()["/a"].paused,
        10
    );
}

#[test]
fn a_dropped_recorder_ends_its_bag() {
    let graph = Graph::new();
    let folder = Folder::absent("recorder-dropped");
    let publisher = graph.publisher("/a");
    let options = RecorderOptions {
        // The sum with the time of a look is beyond every clock.
        polling_interval: Duration::MAX,
        ..RecorderOptions::default()
    };
    let mut recorder = graph.record(&folder, &["/a"], options);
    graph.poll_until(&mut recorder, |_| publisher.matched_count() == 1);
    publisher.publish(&Int32 { data: 7 }).unwrap();
    graph.spin_until_arrived(&recorder, "/a", 1);
    drop(recorder);
    let bag = BagReader::open(&folder).unwrap();
    assert!(bag.is_complete());
    assert_eq!(bag.metadata().unwrap().message_count, 1);
    assert_eq!(bag.accounts()["/a"].written, 1);
}

#[test]
fn complete_files_are_compressed_beside_the_writer() {
    let graph = Graph::new();
    let folder = Folder::absent("recorder-compressed");
    let publisher = graph.publisher("/a");
    let options = RecorderOptions {
        bag: BagOptions {
            compress_files: true,
            ..BagOptions::default()
        },
        file_compression: FileCompression {
            threads: 2,
            queue: 1,
            nice: Some(5),
        },
        ..RecorderOptions::default()
    };
    let mut recorder = graph.record(&folder, &["/a"], options);
    graph.poll_until(&mut recorder, |_| publisher.matched_count() == 1);
    for file in 0..4 {
        for data in 0..10 {
            publisher.publish(&Int32 { data }).unwrap();
        }
        graph.spin_until_arrived(&recorder, "/a", 10 * (file + 1));
        recorder.split();
    }
    let summary = recorder.finish().unwrap();
    assert_eq!((summary.lost(), summary.problem), (0, None));
    assert_eq!(summary.metadata.files.len(), 4);
    for file in &summary.metadata.files {
        assert!(file.path.ends_with(".mcap.zstd"), "{}", file.path);
        assert!(folder.join(&file.path).exists());
    }
    let mut bag = BagReader::open(&folder).unwrap();
    assert_eq!(bag.problems(), [""; 0]);
    assert_eq!(bag.messages(Default::default()).count(), 40);
}
