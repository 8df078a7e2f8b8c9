//! What the operator is told, and how often. A test binary of its own: it
//! listens to the whole process.

use std::fmt::{Debug, Write};
use std::sync::Mutex;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::{Int8, String as Text};
use pteros::msg::dynamic::DynamicType;
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::InterfaceKind;
use pteros::prelude::*;
use pteros::{LifecycleNode, SubscriptionOptions};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

const PATIENCE: Duration = Duration::from_secs(20);

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the text of every warning.
struct Listener;

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        TOLD.lock().unwrap().push(words.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Waits for `count` warnings about a thing; they must not become more.
#[track_caller]
fn told(context: &Context, about: &str, count: usize) -> String {
    let matching = || -> Vec<String> {
        let told = TOLD.lock().unwrap();
        told.iter().filter(|t| t.contains(about)).cloned().collect()
    };
    let graph = context.graph();
    let enough = graph.wait_until(PATIENCE, || matching().len() >= count);
    assert!(enough, "{about}: {:?}", matching());
    graph.wait_until(Duration::from_millis(100), || false);
    assert_eq!(matching().len(), count, "{:?}", matching());
    matching().swap_remove(0)
}

#[test]
fn what_does_not_fit_is_told_once_per_pair_on_each_end() {
    tracing::subscriber::set_global_default(Listener).unwrap();
    let open = || Context::with_options(ContextOptions::local(196)).unwrap();
    let (a, b) = (open(), open());
    let (talker, listener) = (a.node("talker").unwrap(), b.node("listener").unwrap());

    // Two processes: both ends tell.
    let _scan = talker
        .create_publisher::<Text>("scan", QosProfile::sensor_data())
        .unwrap();
    let _wants = listener
        .create_polled_subscription::<Text>("scan", QosProfile::default())
        .unwrap();
    let text = told(&a, "\"/scan\"", 2);
    for word in [
        "RELIABILITY",
        "offered best effort",
        "requested reliable",
        "make the publisher",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }

    // One process: it is both ends.
    let _map = talker.create_publisher::<Text>("map", 1).unwrap();
    let latched = QosProfile::default().transient_local();
    let _late = talker
        .create_polled_subscription::<Text>("map", &latched)
        .unwrap();
    assert!(told(&a, "\"/map\"", 1).contains("DURABILITY"));

    // Another type.
    let _number = talker.create_publisher::<Int8>("value", 1).unwrap();
    let _words = listener
        .create_polled_subscription::<Text>("value", 1)
        .unwrap();
    let text = told(&b, "\"/value\"", 2);
    assert!(text.contains("Int8") && text.contains("String"), "{text}");

    // Another type of the same name.
    let defined = |text: &'static str| {
        let mut library = InterfaceLibrary::new();
        library.insert_text("made", InterfaceKind::Message, "Up", text, "here");
        DynamicType::new(&library.describe("made/msg/Up").unwrap()).unwrap()
    };
    let _wide = talker
        .create_dynamic_publisher("made", &defined("int64 a"), 1)
        .unwrap();
    let _narrow = listener
        .create_dynamic_subscription("made", &defined("int32 a"), SubscriptionOptions::new(1))
        .unwrap();
    let text = told(&b, "\"/made\"", 2);
    assert!(text.contains("definitions of it differ"), "{text}");

    // The same name twice, in another process and in this one.
    let _twin = b.node("talker").unwrap();
    told(&a, "\"/talker\"", 2);
    let _own_twin = b.node("listener").unwrap();
    told(&b, "\"/listener\"", 1);

    // A managed publisher that is not heard, once between two activations.
    let node = LifecycleNode::new(&a, NodeOptions::new("arm"), ()).unwrap();
    let publisher = node.create_publisher::<Text>("moved", 1).unwrap();
    let speak = || (0..3).for_each(|_| publisher.publish(&Text::default()).unwrap());
    speak();
    assert!(told(&a, "\"/moved\"", 1).contains("not active"));
    node.configure().unwrap();
    speak();
    node.activate().unwrap();
    speak();
    told(&a, "\"/moved\"", 1);
    node.deactivate().unwrap();
    speak();
    told(&a, "\"/moved\"", 2);
}
