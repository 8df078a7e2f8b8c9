//! Configuration files that are made from a keystore: a router enforces what the
//! enclaves' permissions allow.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_security::keystore::{Keystore, Options};
use pteros_security::policy::{Policy, PolicyAction, PolicyEnclave};
use pteros_security::zenoh::{ZenohOptions, zenoh_files};
use zenoh::Wait as _;

use crate::harness::{SOON, free_port, next, text, until};
use crate::tls::{Files, now, open, start_router};
use pteros_test_support::spin_thread::SpinThread;

use PolicyAction::{Publish, Reply, Request, Subscribe};

/// A keystore with a router and enclaves that may do what the rules say, and the files
/// for Zenoh.
struct Fleet {
    files: Files,
    keystore: Keystore,
    port: u16,
}

impl Fleet {
    fn new(test: &str, rules: &[(&str, PolicyAction, &str)]) -> Self {
        let files = Files::new(test);
        let keystore = Keystore::create(&files.0.join("ks"), &Options::default(), now()).unwrap();
        let mut policy = Policy::default();
        for (enclave, action, name) in rules {
            policy.allow(enclave, "/", "node", *action, name);
        }
        policy.enclaves.push(PolicyEnclave {
            path: "/zenohd".into(),
            profiles: Vec::new(),
        });
        for enclave in &policy.enclaves {
            let options = Options::default();
            let made = keystore.create_enclave(&enclave.path, Some(enclave), &options, now());
            made.unwrap();
        }
        let fleet = Self {
            files,
            keystore,
            port: free_port(),
        };
        fleet.write("/zenohd");
        fleet
    }

    /// Writes the files, with this enclave as that of the router.
    fn write(&self, router: &str) {
        let endpoint = format!("tls/127.0.0.1:{}", self.port);
        let options = ZenohOptions {
            domain: 0,
            routers: vec![router.into()],
            sessions: Vec::new(),
            listen: vec![endpoint.clone()],
            connect: vec![endpoint],
            keystore_path: self.files.0.join("ks"),
        };
        let made = zenoh_files(&self.keystore, &options, now()).unwrap();
        assert_eq!(made.warnings, []);
        made.write().unwrap();
    }

    fn file(&self, enclave: &str, name: &str) -> PathBuf {
        self.files.0.join(format!("ks/enclaves{enclave}/{name}"))
    }

    fn router(&self) -> pteros_zenoh::Router {
        start_router(self.file("/zenohd", "zenoh_router.json5")).unwrap()
    }

    fn open(&self, enclave: &str) -> Context {
        open(self.file(enclave, "zenoh_session.json5")).unwrap()
    }

    /// A session of Zenoh with the certificate of an enclave, which may send anything.
    fn plain(&self, enclave: &str) -> zenoh::Session {
        let file = self.file(enclave, "zenoh_session.json5");
        let config = zenoh::Config::from_file(file).unwrap();
        zenoh::open(config).wait().unwrap()
    }
}

#[test]
fn topics_and_services_pass_where_both_enclaves_may() {
    let fleet = Fleet::new(
        "access",
        &[
            ("/talker", Publish, "/chatter"),
            ("/talker", Publish, "/map"),
            ("/talker", Publish, "/secret"),
            ("/talker", Reply, "/add"),
            ("/talker", Reply, "/shut_down"),
            ("/listener", Subscribe, "/chatter"),
            ("/listener", Subscribe, "/map"),
            ("/listener", Subscribe, "/command"),
            ("/listener", Request, "/add"),
        ],
    );
    let router = fleet.router();
    let [here, there] = ["/talker", "/listener"].map(|name| fleet.open(name));
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let publish = |topic| -> Publisher<Text> { talker.create_publisher(topic).unwrap() };
    let subscribe =
        |topic| -> Subscription<Text> { listener.create_polled_subscription(topic).unwrap() };
    let [command, secret, chatter] = ["command", "secret", "chatter"].map(publish);
    let heard = ["command", "secret", "chatter"].map(subscribe);
    assert!(chatter.wait_for_matched(1, SOON) && heard[2].wait_for_matched(1, SOON));
    for publisher in [&command, &secret, &chatter] {
        publisher.publish(&text("hello")).unwrap();
    }
    assert_eq!(next(&heard[2]), "hello");
    for (denied, publisher) in [(&heard[0], &command), (&heard[1], &secret)] {
        assert!(denied.take().is_none());
        assert_eq!(
            denied.matched_count(),
            0,
            "nobody announces it to the listener"
        );
        assert_eq!(
            publisher.matched_count(),
            0,
            "the talker may not publish it, or nobody may read it"
        );
    }

    // The history of a publisher is allowed with its topic.
    let map = || "map".keep_last(1).transient_local();
    let latched: Publisher<Text> = talker.create_publisher(map()).unwrap();
    latched.publish(&text("plan")).unwrap();
    let late: Subscription<Text> = listener.create_polled_subscription(map()).unwrap();
    assert_eq!(next(&late), "plan");

    let serve = |name| {
        let service = talker.create_service::<AddTwoInts>(name, |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        });
        service.unwrap()
    };
    let spin = SpinThread::of_node(&talker, ["shut_down", "add"].map(serve));
    let [shut_down, add] =
        ["shut_down", "add"].map(|name| listener.create_client::<AddTwoInts>(name).unwrap());
    assert!(add.wait_for_service(SOON));
    let answer = add.call(&AddTwoIntsRequest { a: 2, b: 3 }, SOON);
    assert_eq!(answer.unwrap().sum, 5);
    assert!(!shut_down.service_is_ready(), "it may not be called");
    drop(spin);

    drop(router);
    until(&here, || chatter.matched_count() == 0);
    until(&there, || heard[2].matched_count() == 0);
    let _again = fleet.router();
    assert!(chatter.wait_for_matched(1, SOON) && heard[2].wait_for_matched(1, SOON));
    chatter.publish(&text("again")).unwrap();
    assert_eq!(next(&heard[2]), "again");
}

/// The router decides, whatever a session sends or declares.
#[test]
fn a_hostile_session_gets_and_sends_only_what_its_enclave_may() {
    let fleet = Fleet::new(
        "hostile",
        &[
            ("/talker", Publish, "/chatter"),
            ("/talker", Publish, "/secret"),
            ("/listener", Subscribe, "/chatter"),
            ("/listener", Subscribe, "/command"),
        ],
    );
    let _router = fleet.router();
    let [talker, listener] = ["/talker", "/listener"].map(|name| fleet.plain(name));
    let key = |topic: &str| format!("0/{topic}/std_msgs::msg::dds_::String_/RIHS01_0");
    let counts = ["chatter", "secret", "command"].map(|_| Arc::new(AtomicUsize::new(0)));
    let subscribe = |key: String, count: &Arc<AtomicUsize>| {
        let count = count.clone();
        let declared = listener.declare_subscriber(key).callback(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        declared.wait().unwrap()
    };
    let _heard = [
        subscribe(key("chatter"), &counts[0]),
        subscribe(key("secret"), &counts[1]),
        subscribe(key("command"), &counts[2]),
    ];
    // A wildcard that the router let pass would bring the other topics, too.
    let others = Arc::new(AtomicUsize::new(0));
    let count = others.clone();
    let all = listener.declare_subscriber("0/**").callback(move |sample| {
        let is_other = !sample.key_expr().as_str().contains("/chatter/");
        count.fetch_add(usize::from(is_other), Ordering::SeqCst);
    });
    let _all = all.wait().unwrap();
    // Only a subscriber that the router knows gets anything.
    let end = Instant::now() + SOON;
    while counts[0].load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < end, "what is allowed does not pass");
        for topic in ["secret", "command", "chatter"] {
            talker.put(key(topic), "x").wait().unwrap();
        }
        talker.put("0/**", "x").wait().unwrap();
        std::thread::yield_now();
    }
    // In order, so that what passed would have come before this.
    let seen = counts[0].load(Ordering::SeqCst);
    for topic in ["secret", "command", "chatter"] {
        talker.put(key(topic), "x").wait().unwrap();
    }
    while counts[0].load(Ordering::SeqCst) == seen {
        assert!(Instant::now() < end);
        std::thread::yield_now();
    }
    let [_, secret, command] = counts.map(|count| count.load(Ordering::SeqCst));
    assert_eq!((secret, command, others.load(Ordering::SeqCst)), (0, 0, 0));
}

/// A certificate of the keystore is not enough to be a router.
#[test]
fn a_session_gives_nothing_to_a_router_of_another_enclave() {
    let fleet = Fleet::new(
        "rogue",
        &[
            ("/talker", Publish, "/chatter"),
            ("/listener", Publish, "/chatter"),
        ],
    );
    let session_file = |enclave| fleet.file(enclave, "zenoh_session.json5");
    let trusting = std::fs::read(session_file("/talker")).unwrap();
    // The listener's certificate, as that of a router.
    fleet.write("/listener");
    let deceived = std::fs::read(session_file("/talker")).unwrap();
    assert_ne!(trusting, deceived);
    let mut config =
        zenoh::Config::from_file(fleet.file("/listener", "zenoh_router.json5")).unwrap();
    config
        .insert_json5("access_control/enabled", "false")
        .unwrap();
    let rogue = zenoh::open(config).wait().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let subscriber = rogue.declare_subscriber("0/**").callback(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let _subscriber = subscriber.wait().unwrap();
    for (file, arrive) in [(deceived, 1), (trusting, 0)] {
        count.store(0, Ordering::SeqCst);
        std::fs::write(session_file("/talker"), file).unwrap();
        let talker = fleet.plain("/talker");
        let end = Instant::now() + SOON;
        let is_connected = || rogue.info().transports().wait().next().is_some();
        while !is_connected() {
            assert!(Instant::now() < end, "no transport");
            std::thread::yield_now();
        }
        talker.put("0/chatter/a/b", "x").wait().unwrap();
        // Closing comes after all that was sent.
        talker.close().wait().unwrap();
        while is_connected() {
            assert!(Instant::now() < end, "the transport stays");
            std::thread::yield_now();
        }
        assert_eq!(count.load(Ordering::SeqCst), arrive);
    }
}
