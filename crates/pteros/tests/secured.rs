//! Secured contexts in real time, with real sockets and shared memory. What is
//! secured is this test binary again, told so by ROS 2's environment variables.
#![allow(
    clippy::disallowed_methods,
    reason = "the test runs itself again and says so in variables"
)]

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pteros::Path;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;
use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};

const PART: &str = "PTEROS_TEST_PART";
const PATIENCE: Duration = Duration::from_secs(60);
const DOMAIN: u32 = 97;

fn open(enclave: &str) -> Context {
    Context::with_options(ContextOptions {
        use_environment: true,
        enclave: Some(enclave.into()),
        ..ContextOptions::local(DOMAIN)
    })
    .unwrap()
}

/// The secured process: a talker and two listeners, one of its own enclave and
/// one of another.
#[test]
fn child() {
    if std::env::var(PART).is_err() {
        return;
    }
    let contexts = ["/one", "/one", "/two"].map(open);
    let [a, b, c] = &contexts;
    let talker = a.node("talker").unwrap();
    let publisher = talker
        .create_publisher::<UInt8MultiArray>("image", QosProfile::default())
        .unwrap();
    let large = UInt8MultiArray {
        data: (0..200_000_u32).map(|n| n as u8).collect(),
        ..UInt8MultiArray::default()
    };
    let mut listeners = Vec::new();
    for (context, path) in [(b, Path::SharedMemory), (c, Path::Network)] {
        let node = context.node("listener").unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (sink, expected) = (heard.clone(), large.data.clone());
        let subscription = node
            .create_subscription::<UInt8MultiArray>("image", QosProfile::default(), move |sample| {
                assert_eq!(sample.data, expected);
                sink.lock().unwrap().push(sample.info().path);
            })
            .unwrap();
        listeners.push((node, subscription, heard, path));
    }
    assert!(publisher.wait_for_matched(2, PATIENCE));
    for (node, subscription, heard, path) in &listeners {
        assert!(subscription.wait_for_matched(1, PATIENCE));
        // A link may come up after the match; then it stays.
        let arrives = |by: Path| {
            publisher.publish(&large).unwrap();
            let last = || heard.lock().unwrap().last().copied() == Some(by);
            node.spin_until(last, Duration::from_millis(200))
        };
        let began = std::time::Instant::now();
        while !arrives(*path) {
            assert!(began.elapsed() < PATIENCE, "{path:?}: {heard:?}");
        }
    }
    let (_, _, heard, _) = &listeners[1];
    assert!(heard.lock().unwrap().iter().all(|by| *by == Path::Network));
    let reason = a.path_to(c.guid()).reason.unwrap_or_default();
    assert!(reason.contains("another enclave"), "{reason}");
    // Somebody else's view of it, as `topic why` asks for it.
    let onlooker = open("/two");
    let paths = || -> Vec<String> {
        let pairs = onlooker.graph().why("/image");
        let verdicts = pairs.into_iter().flat_map(|pair| pair.verdicts);
        let path = |verdict| match verdict {
            pteros::Verdict::Matched { path } => Some(path),
            _ => None,
        };
        verdicts.filter_map(path).collect()
    };
    let by_memory = |path: &String| path == "shared memory";
    let apart = |path: &String| path.contains("different enclaves");
    let seen = || paths().iter().any(by_memory) && paths().iter().any(apart);
    assert!(onlooker.graph().wait_until(PATIENCE, seen), "{:?}", paths());
    println!("all well");
}

#[test]
fn processes_of_one_enclave_share_memory_and_others_hear_over_the_network() {
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
    let said = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(PART, "secured")
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
