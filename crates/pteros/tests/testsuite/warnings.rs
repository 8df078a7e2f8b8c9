//! Warnings for the operator, and how often they are logged. A process for each test:
//! it subscribes to the logs of the whole process.

use std::fmt::{Debug, Write};
use std::sync::Mutex;
use std::time::Duration;

use pteros::PublisherOptions;
use pteros::interfaces::std_msgs::msg::{Int8, String as Text};
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::dynamic::DynamicType;
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::InterfaceKind;
use pteros::prelude::*;
use pteros::{SubscriptionOptions, lifecycle::LifecycleNode};
use pteros_test_support::own_process;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

const TIMEOUT: Duration = Duration::from_secs(20);

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records the text of every warning.
struct Listener;

struct MessageText(String);

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = MessageText(String::new());
        event.record(&mut words);
        WARNINGS.lock().unwrap().push(words.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Waits for `count` warnings about something, and checks that there are no more.
#[track_caller]
fn wait_for_warnings(context: &Context, about: &str, count: usize) -> String {
    let matching = || -> Vec<String> {
        let wait_for_warnings = WARNINGS.lock().unwrap();
        wait_for_warnings
            .iter()
            .filter(|t| t.contains(about))
            .cloned()
            .collect()
    };
    let graph = context.graph();
    let enough = graph.wait_until(TIMEOUT, || matching().len() >= count);
    assert!(enough, "{about}: {:?}", matching());
    graph.wait_until(Duration::from_millis(100), || false);
    assert_eq!(matching().len(), count, "{:?}", matching());
    matching().swap_remove(0)
}

#[test]
fn incompatible_endpoints_are_warned_of_once_per_pair_on_each_end() {
    if !own_process!() {
        return;
    }
    tracing::subscriber::set_global_default(Listener).unwrap();
    let open = || Context::with_options(ContextOptions::local(200)).unwrap();
    let (a, b) = (open(), open());
    let (talker, listener) = (
        a.create_node("talker").unwrap(),
        b.create_node("listener").unwrap(),
    );

    // Two processes: both endpoints warn.
    let _scan = talker
        .create_publisher::<Text>("scan".sensor_data())
        .unwrap();
    let _wants = listener.create_polled_subscription::<Text>("scan").unwrap();
    let text = wait_for_warnings(&a, "\"/scan\"", 2);
    for word in [
        "RELIABILITY",
        "offered best effort",
        "requested reliable",
        "make the publisher",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }

    // One process has both endpoints.
    let _map = talker.create_publisher::<Text>("map".keep_last(1)).unwrap();
    let latched = QosProfile::default().transient_local();
    let _late = talker
        .create_polled_subscription::<Text>("map".qos(&latched))
        .unwrap();
    assert!(wait_for_warnings(&a, "\"/map\"", 1).contains("DURABILITY"));

    // Another type.
    let _number = talker
        .create_publisher::<Int8>("value".keep_last(1))
        .unwrap();
    let _words = listener
        .create_polled_subscription::<Text>("value".keep_last(1))
        .unwrap();
    let text = wait_for_warnings(&b, "\"/value\"", 2);
    assert!(text.contains("Int8") && text.contains("String"), "{text}");

    // Another type of the same name.
    let defined = |text: &'static str| {
        let mut library = InterfaceLibrary::new();
        library.insert_text("made", InterfaceKind::Message, "Up", text, "here");
        DynamicType::new(&library.describe("made/msg/Up").unwrap()).unwrap()
    };
    let _wide = talker
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(
            &defined("int64 a"),
            "made".keep_last(1),
        ))
        .unwrap();
    let _narrow = listener
        .create_polled_subscription::<DynamicMessage>(SubscriptionOptions::of_type(
            &defined("int32 a"),
            "made".keep_last(1),
        ))
        .unwrap();
    let text = wait_for_warnings(&b, "\"/made\"", 2);
    assert!(text.contains("of different versions"), "{text}");

    undecodable_messages_are_warned_of(&talker, &listener);

    // The same name twice, in another process and in this one.
    let _twin = b.create_node("talker").unwrap();
    wait_for_warnings(&a, "\"/talker\"", 2);
    let _own_twin = b.create_node("listener").unwrap();
    wait_for_warnings(&b, "\"/listener\"", 1);

    // A lifecycle publisher that is inactive, once between two activations.
    let node = LifecycleNode::new(&a, NodeOptions::new("arm"), ()).unwrap();
    let publisher = node.create_publisher::<Text>("moved".keep_last(1)).unwrap();
    let speak = || (0..3).for_each(|_| publisher.publish(&Text::default()).unwrap());
    speak();
    assert!(wait_for_warnings(&a, "\"/moved\"", 1).contains("not active"));
    node.configure().unwrap();
    speak();
    node.activate().unwrap();
    speak();
    wait_for_warnings(&a, "\"/moved\"", 1);
    node.deactivate().unwrap();
    speak();
    wait_for_warnings(&a, "\"/moved\"", 2);

    // A reliable subscription loses messages: too large ones, three at once.
    let small = Context::with_options(ContextOptions {
        limits: pteros::limits::Limits {
            sample_bytes: 64 << 10,
            ..Default::default()
        },
        ..ContextOptions::local(200)
    });
    let small = small.unwrap().create_node("small").unwrap();
    let pictures = talker
        .create_publisher::<Text>("picture".keep_last(10))
        .unwrap();
    let shown = small
        .create_polled_subscription::<Text>("picture".keep_last(10))
        .unwrap();
    assert!(pictures.wait_for_matched(1, TIMEOUT));
    for bytes in [100_000, 200_000, 300_000, 10] {
        let data = "x".repeat(bytes);
        pictures.publish(&Text { data }).unwrap();
    }
    let graph = b.graph();
    assert!(graph.wait_until(TIMEOUT, || shown.take().is_some()));
    assert_eq!(shown.counts().lost, 3);
    let text = wait_for_warnings(&b, "\"/picture\"", 1);
    assert!(text.contains("subscription lost"), "{text}");
}

/// Messages that are not of the type, of two publishers: one line each, on both ends.
fn undecodable_messages_are_warned_of(talker: &Node, listener: &Node) {
    let (a, b) = (talker.context(), listener.context());
    let mouths = [(); 2].map(|()| {
        talker
            .create_publisher::<Text>("garbled".keep_last(10))
            .unwrap()
    });
    let ear = listener
        .create_polled_subscription::<Text>("garbled".keep_last(10))
        .unwrap();
    assert!(ear.wait_for_matched(2, TIMEOUT));
    for mouth in &mouths {
        assert!(mouth.wait_for_matched(1, TIMEOUT));
        for _ in 0..3 {
            mouth.publish_serialized(vec![0, 1, 0, 0].into()).unwrap();
        }
    }
    let all_taken = || ear.take().is_none() && ear.undecodable_count() == 6;
    assert!(b.graph().wait_until(TIMEOUT, all_taken));
    let text = wait_for_warnings(b, "our subscription dropped a message", 2);
    assert!(
        text.contains("\"/garbled\"") && text.contains("std_msgs/msg/String: payload ends early"),
        "{text}"
    );
    wait_for_warnings(a, "messages of our publisher", 2);
}

/// The child process of the test below.
#[test]
#[ignore = "needs a descriptor limit; the test below runs it"]
fn child_with_few_descriptors() {
    tracing::subscriber::set_global_default(Listener).unwrap();
    let context = Context::with_options(ContextOptions::local(197)).unwrap();
    let _node = context.create_node("thirsty").unwrap();
    context
        .graph()
        .wait_until(Duration::from_millis(300), || false);
    let early = WARNINGS.lock().unwrap().clone();
    assert!(
        early.iter().all(|w| !w.contains("RLIMIT_NOFILE")),
        "{early:?}"
    );
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    taken.truncate(taken.len() - 5);
    let text = wait_for_warnings(&context, "RLIMIT_NOFILE", 1);
    assert!(text.contains("of 128 descriptors"), "{text}");
    println!("it was warned");
}

#[test]
fn a_process_near_its_descriptor_limit_is_warned_once() {
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "warnings::child_with_few_descriptors"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("it was warned"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
