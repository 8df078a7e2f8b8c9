//! Deferred remote send: messages published in a callback are sent to other
//! processes after the waiting callbacks, unless these are slow, and are always
//! sent.

use pteros::NamedQosExt;
use pteros::Publisher;
use std::sync::atomic::AtomicU64;

use super::*;

/// A publisher's context with its own subscription, another context with one, and a
/// callback that runs a given function on request.
struct Fixture {
    near: CountingProcess,
    far: CountingProcess,
    publisher: Publisher<Text>,
    /// How often a message had been serialized when the last local callback ran.
    serialized: Arc<AtomicU64>,
    /// How long each local callback runs.
    span: Arc<Mutex<Duration>>,
    outside: Arc<Mutex<Vec<String>>>,
    _subscriptions: (Subscription<Text>, Subscription<Text>),
}

impl Fixture {
    fn new(connected: bool) -> Self {
        let domain = unused_domain();
        let (near, far) = (
            CountingProcess::open(domain, connected),
            CountingProcess::open(domain, connected),
        );
        let qos = QosProfile::default().keep_last(1);
        let publisher = near.node.create_publisher::<Text>("t".qos(&qos)).unwrap();
        let serialized = Arc::<AtomicU64>::default();
        let span = Arc::<Mutex<Duration>>::default();
        let local = {
            let (publisher, serialized, span) =
                (publisher.clone(), serialized.clone(), Arc::clone(&span));
            near.node
                .create_subscription::<Text>("t".keep_last(10), move |_| {
                    serialized.store(publisher.counts().serialized, Ordering::Relaxed);
                    busy(*span.lock().unwrap());
                })
        };
        let outside = Arc::<Mutex<Vec<String>>>::default();
        let callbacks = outside.clone();
        let remote = far
            .node
            .create_subscription::<Text>("t".keep_last(10), move |sample| {
                callbacks.lock().unwrap().push(sample.data.clone());
            });
        let subscriptions = (local.unwrap(), remote.unwrap());
        spin_both_until(&near, &far, || {
            publisher.matched_count() == 2 && subscriptions.1.matched_count() == 1
        });
        Self {
            near,
            far,
            publisher,
            serialized,
            span,
            outside,
            _subscriptions: subscriptions,
        }
    }

    /// Runs a function in a callback, and lets the executor finish its work.
    fn in_a_callback(&self, mut what: impl FnMut(&Publisher<Text>) + Send + 'static) {
        let ask = self
            .near
            .node
            .create_publisher::<Text>("ask".keep_last(10))
            .unwrap();
        let publisher = self.publisher.clone();
        let answer = move |_: Sample<Text>| what(&publisher);
        let _asked = self
            .near
            .node
            .create_subscription::<Text>("ask".keep_last(10), answer);
        ask.publish(&Text::default()).unwrap();
        while self.near.executor.spin_some() > 0 {}
    }

    #[track_caller]
    fn assert_received_remotely(&self, wanted: &[&str]) {
        let callbacks = || self.outside.lock().unwrap().len() >= wanted.len();
        spin_both_until(&self.near, &self.far, callbacks);
        assert_eq!(*self.outside.lock().unwrap(), wanted);
    }

    fn serialized_count(&self) -> u64 {
        self.serialized.load(Ordering::Relaxed)
    }
}

fn text(data: &str) -> Text {
    Text { data: data.into() }
}

#[allow(clippy::disallowed_methods, reason = "a callback that takes its time")]
fn busy(span: Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < span {}
}

#[test]
fn deferred_sends_are_serialized_after_waiting_callbacks() {
    for connected in [false, true] {
        let fixture = Fixture::new(connected);
        fixture.in_a_callback(|publisher| publisher.publish(&text("one")).unwrap());
        assert_eq!(fixture.serialized_count(), 0, "when the local callback ran");
        assert_eq!(fixture.publisher.counts().serialized, 1);
        fixture.assert_received_remotely(&["one"]);
    }
}

#[test]
fn after_a_slow_callback_sends_are_not_deferred() {
    let fixture = Fixture::new(false);
    *fixture.span.lock().unwrap() = Duration::from_millis(2);
    fixture.in_a_callback(|publisher| publisher.publish(&text("one")).unwrap());
    assert_eq!(fixture.serialized_count(), 0);
    for after in 2..8 {
        fixture.in_a_callback(|publisher| publisher.publish(&text("more")).unwrap());
        assert_eq!(
            fixture.serialized_count(),
            after,
            "before the local callback"
        );
    }
    fixture.assert_received_remotely(&["one", "more", "more", "more", "more", "more", "more"]);
}

#[test]
fn messages_of_one_callback_stay_in_order_and_are_not_replaced() {
    let fixture = Fixture::new(false);
    fixture.in_a_callback(|publisher| {
        for data in ["one", "two", "three", "four"] {
            publisher.publish(&text(data)).unwrap();
        }
    });
    fixture.assert_received_remotely(&["one", "two", "three", "four"]);
    // Outside of callbacks nothing is deferred.
    let before = fixture.publisher.counts().serialized;
    fixture.publisher.publish(&text("five")).unwrap();
    assert_eq!(fixture.publisher.counts().serialized, before + 1);
    fixture.assert_received_remotely(&["one", "two", "three", "four", "five"]);
}

#[test]
fn a_callback_that_waits_or_flushes_sends_deferred_messages_first() {
    let fixture = Fixture::new(false);
    let serialized = Arc::<Mutex<Vec<u64>>>::default();
    let seen = serialized.clone();
    fixture.in_a_callback(move |publisher| {
        let note = || seen.lock().unwrap().push(publisher.counts().serialized);
        publisher.publish(&text("one")).unwrap();
        note();
        assert!(!publisher.wait_for_all_acked(Duration::ZERO));
        note();
        publisher.publish(&text("two")).unwrap();
        publisher.flush();
        note();
    });
    assert_eq!(*serialized.lock().unwrap(), [0, 1, 2]);
    fixture.assert_received_remotely(&["one", "two"]);
}

#[test]
fn the_last_message_of_a_publisher_dropped_in_the_callback_arrives() {
    let fixture = Fixture::new(false);
    let last = fixture
        .near
        .node
        .create_publisher::<Text>("t".keep_last(10))
        .unwrap();
    spin_both_until(&fixture.near, &fixture.far, || {
        last.matched_count() == 2 && fixture._subscriptions.1.matched_count() == 2
    });
    let mut last = Some(last);
    fixture.in_a_callback(move |_| {
        let last = last.take().unwrap();
        last.publish(&text("farewell")).unwrap();
    });
    fixture.assert_received_remotely(&["farewell"]);
}
