//! Secured contexts in real time, with real sockets and shared memory. The secured
//! processes are this test binary again, configured by ROS 2's environment
//! variables.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;
use pteros::subscription::DeliveryPath;
use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};
use pteros_sim::TransportBus;
use pteros_test_support::own_process;

const CHILD_ROLE: &str = "PTEROS_TEST_PART";
const TIMEOUT: Duration = Duration::from_secs(60);
const DOMAIN: u32 = 87;

fn options(enclave: &str) -> ContextOptions {
    ContextOptions {
        use_environment: true,
        enclave: Some(enclave.into()),
        ..ContextOptions::local(DOMAIN)
    }
}

fn open(enclave: &str) -> Context {
    Context::with_options(options(enclave)).unwrap()
}

/// The secured process: a publisher and two subscriptions, one in its own enclave
/// and one in another.
#[test]
fn child() {
    if std::env::var(CHILD_ROLE).is_err() {
        return;
    }
    let unprotected = Context::with_options(ContextOptions {
        transports: vec![TransportBus::new(Duration::ZERO).transport()],
        ..options("/one")
    });
    let refused = unprotected.map(|_| ()).unwrap_err().to_string();
    let expected = "the transport \"bus\" does not protect messages, and this context is secured";
    assert!(refused.starts_with(expected), "{refused}");
    let contexts = ["/one", "/one", "/two"].map(open);
    let [a, b, c] = &contexts;
    let talker = a.create_node("talker").unwrap();
    let publisher = talker.create_publisher::<UInt8MultiArray>("image").unwrap();
    let large = UInt8MultiArray {
        data: (0..200_000_u32).map(|n| n as u8).collect(),
        ..UInt8MultiArray::default()
    };
    let mut listeners = Vec::new();
    for (context, path) in [(b, DeliveryPath::SharedMemory), (c, DeliveryPath::Network)] {
        let node = context.create_node("listener").unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (sink, expected) = (heard.clone(), large.data.clone());
        let subscription = node
            .create_subscription::<UInt8MultiArray>("image", move |sample| {
                assert_eq!(sample.data, expected);
                sink.lock().unwrap().push(sample.info().delivery_path);
            })
            .unwrap();
        listeners.push((node, subscription, heard, path));
    }
    assert!(publisher.wait_for_matched(2, TIMEOUT));
    for (node, subscription, heard, path) in &listeners {
        assert!(subscription.wait_for_matched(1, TIMEOUT));
        // A shared-memory connection may follow the match; then it stays.
        let arrives = |by: DeliveryPath| {
            publisher.publish(&large).unwrap();
            let last = || heard.lock().unwrap().last().copied() == Some(by);
            node.spin_until(last, Duration::from_millis(200))
        };
        let began = std::time::Instant::now();
        while !arrives(*path) {
            assert!(began.elapsed() < TIMEOUT, "{path:?}: {heard:?}");
        }
    }
    let (_, _, heard, _) = &listeners[1];
    assert!(
        heard
            .lock()
            .unwrap()
            .iter()
            .all(|by| *by == DeliveryPath::Network)
    );
    let reason = a.delivery_path_to(c.guid()).reason.unwrap_or_default();
    assert!(reason.contains("another enclave"), "{reason}");
    // A third participant's view of it, as `topic why` requests it.
    let onlooker = open("/two");
    let paths = || -> Vec<String> {
        let pairs = onlooker.graph().match_reports("/image");
        let outcomes = pairs.into_iter().flat_map(|pair| pair.outcomes);
        let path = |outcome| match outcome {
            pteros::graph::MatchOutcome::Matched { path } => Some(path),
            _ => None,
        };
        outcomes.filter_map(path).collect()
    };
    let by_memory = |path: &String| path == "shared memory";
    let apart = |path: &String| path.contains("different enclaves");
    let seen = || paths().iter().any(by_memory) && paths().iter().any(apart);
    assert!(onlooker.graph().wait_until(TIMEOUT, seen), "{:?}", paths());
    println!("all well");
}

#[test]
fn processes_of_one_enclave_share_memory_and_others_use_the_network() {
    let root = std::env::temp_dir().join(format!("pteros-secured-{}", std::process::id()));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = UnixTime(i64::try_from(now.unwrap().as_secs()).unwrap());
    let options = Options {
        domain: DOMAIN,
        ..Options::default()
    };
    let keystore = Keystore::create(&root, &options, now).unwrap();
    for enclave in ["/one", "/two"] {
        keystore
            .create_enclave(enclave, None, &options, now)
            .unwrap();
    }
    let said = own_process::command("secured::child")
        .env(CHILD_ROLE, "secured")
        .env("ROS_SECURITY_ENABLE", "true")
        .env("ROS_SECURITY_KEYSTORE", &root)
        .env_remove("ROS_SECURITY_STRATEGY")
        .env_remove("ROS_SECURITY_ENCLAVE_OVERRIDE")
        .env_remove("PTEROS_SHARED_MEMORY")
        .output()
        .unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}{errors}");
    assert!(text.contains("all well"), "{text}{errors}");
}
