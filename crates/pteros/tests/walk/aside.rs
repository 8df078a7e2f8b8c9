//! What a callback publishes goes to other processes after the callbacks that
//! wait, but not if those are slow, and whatever else happens it goes.

use std::sync::atomic::AtomicU64;

use super::*;

/// A publisher's context with a subscription of its own, another context with
/// one, and a callback that does what it is told to when it is asked.
struct Scene {
    near: Party,
    far: Party,
    publisher: Publisher<Text>,
    /// How often a message had been serialized when the last local callback ran.
    serialized: Arc<AtomicU64>,
    /// For so long each local callback runs.
    span: Arc<Mutex<Duration>>,
    outside: Arc<Mutex<Vec<String>>>,
    _subscriptions: (Subscription<Text>, Subscription<Text>),
}

impl Scene {
    fn new(domain: u32, linked: bool) -> Self {
        let (near, far) = (Party::open(domain, linked), Party::open(domain, linked));
        let qos = QosProfile::default().keep_last(1);
        let publisher = near.node.create_publisher::<Text>("t", &qos).unwrap();
        let serialized = Arc::<AtomicU64>::default();
        let span = Arc::<Mutex<Duration>>::default();
        let local = {
            let (publisher, serialized, span) =
                (publisher.clone(), serialized.clone(), Arc::clone(&span));
            near.node.create_subscription::<Text>("t", 10, move |_| {
                serialized.store(publisher.counts().serialized, Ordering::Relaxed);
                busy(*span.lock().unwrap());
            })
        };
        let outside = Arc::<Mutex<Vec<String>>>::default();
        let heard = outside.clone();
        let remote = far
            .node
            .create_subscription::<Text>("t", 10, move |sample| {
                heard.lock().unwrap().push(sample.data.clone());
            });
        let subscriptions = (local.unwrap(), remote.unwrap());
        until(&near, &far, || {
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

    /// Does something in a callback, and lets the executor run out of work.
    fn in_a_callback(&self, mut what: impl FnMut(&Publisher<Text>) + Send + 'static) {
        let ask = self.near.node.create_publisher::<Text>("ask", 10).unwrap();
        let publisher = self.publisher.clone();
        let answer = move |_: Sample<Text>| what(&publisher);
        let _asked = self
            .near
            .node
            .create_subscription::<Text>("ask", 10, answer);
        ask.publish(&Text::default()).unwrap();
        while self.near.executor.spin_some() > 0 {}
    }

    #[track_caller]
    fn hears_outside(&self, wanted: &[&str]) {
        let heard = || self.outside.lock().unwrap().len() >= wanted.len();
        until(&self.near, &self.far, heard);
        assert_eq!(*self.outside.lock().unwrap(), wanted);
    }

    fn was_serialized(&self) -> u64 {
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
fn what_a_callback_publishes_is_serialized_after_the_callbacks_that_wait() {
    for (domain, linked) in [(207, false), (208, true)] {
        let scene = Scene::new(domain, linked);
        scene.in_a_callback(|publisher| publisher.publish(&text("one")).unwrap());
        assert_eq!(scene.was_serialized(), 0, "when the local callback ran");
        assert_eq!(scene.publisher.counts().serialized, 1);
        scene.hears_outside(&["one"]);
    }
}

#[test]
fn after_a_slow_callback_messages_go_at_once() {
    let scene = Scene::new(209, false);
    *scene.span.lock().unwrap() = Duration::from_millis(2);
    scene.in_a_callback(|publisher| publisher.publish(&text("one")).unwrap());
    assert_eq!(scene.was_serialized(), 0);
    for after in 2..8 {
        scene.in_a_callback(|publisher| publisher.publish(&text("more")).unwrap());
        assert_eq!(scene.was_serialized(), after, "before the local callback");
    }
    scene.hears_outside(&["one", "more", "more", "more", "more", "more", "more"]);
}

#[test]
fn messages_of_one_callback_stay_in_order_and_are_not_replaced() {
    let scene = Scene::new(210, false);
    scene.in_a_callback(|publisher| {
        for data in ["one", "two", "three", "four"] {
            publisher.publish(&text(data)).unwrap();
        }
    });
    scene.hears_outside(&["one", "two", "three", "four"]);
    // Outside of callbacks nothing waits.
    let before = scene.publisher.counts().serialized;
    scene.publisher.publish(&text("five")).unwrap();
    assert_eq!(scene.publisher.counts().serialized, before + 1);
    scene.hears_outside(&["one", "two", "three", "four", "five"]);
}

#[test]
fn a_callback_that_waits_or_flushes_sends_first() {
    let scene = Scene::new(211, false);
    let serialized = Arc::<Mutex<Vec<u64>>>::default();
    let seen = serialized.clone();
    scene.in_a_callback(move |publisher| {
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
    scene.hears_outside(&["one", "two"]);
}

#[test]
fn the_last_word_of_a_publisher_dropped_in_the_callback_arrives() {
    let scene = Scene::new(212, false);
    let last = scene.near.node.create_publisher::<Text>("t", 10).unwrap();
    until(&scene.near, &scene.far, || {
        last.matched_count() == 2 && scene._subscriptions.1.matched_count() == 2
    });
    let mut last = Some(last);
    scene.in_a_callback(move |_| {
        let last = last.take().unwrap();
        last.publish(&text("farewell")).unwrap();
    });
    scene.hears_outside(&["farewell"]);
}
