//! Wires as the command line chooses them: `--wire rtps`, `zenoh` and `rtps,zenoh`.
//!
//! `cargo xtask test --all` runs it with the feature `zenoh`.
#![allow(clippy::disallowed_methods, reason = "real sessions")]

use pteros_test_support::folder::Folder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pteros::args::Arguments;
use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};
use pteros_test_support::own_process;

/// How long anything may take on a loaded machine.
const SOON: Duration = Duration::from_secs(20);

/// A process with these ROS arguments, as far as others see it.
struct Process {
    context: Context,
    publisher: Publisher<Text>,
    subscription: Subscription<Text>,
}

impl Process {
    fn start(domain: u32, words: &str) -> Self {
        let words = std::iter::once("--ros-args").chain(words.split(' '));
        let context = Context::with_options(ContextOptions {
            domain_id: Some(domain),
            discovery_range: Some(DiscoveryRange::Localhost),
            arguments: Arguments::parse(words).unwrap().0,
            ..ContextOptions::default()
        });
        let context = context.unwrap();
        let node = context.create_node("node").unwrap();
        Self {
            publisher: node.create_publisher("chatter".keep_last(10)).unwrap(),
            subscription: node
                .create_polled_subscription("chatter".keep_last(10))
                .unwrap(),
            context,
        }
    }

    /// Publishes to another process, both ways, and expects each message once.
    #[track_caller]
    fn talks_to(&self, other: &Self) {
        let long = "x".repeat(100_000);
        for (from, to) in [(self, other), (other, self)] {
            for _ in 0..3 {
                let data = long.clone();
                from.publisher.publish(&Text { data }).unwrap();
                for at in [from, to] {
                    let sample = at.subscription.take_timeout(SOON).expect("a message");
                    assert_eq!(sample.data.len(), long.len());
                }
            }
            assert!(to.subscription.take().is_none());
        }
    }

    #[track_caller]
    fn meets(&self, others: usize) {
        // Its own endpoints match each other.
        assert!(self.publisher.wait_for_matched(others + 1, SOON));
        assert!(self.subscription.wait_for_matched(others + 1, SOON));
    }

    /// Messages with a body that left by shared memory; acknowledgements have none.
    fn carried(&self) -> u64 {
        let counts = self.context.connection_counts();
        counts.map_or(0, |counts| counts.zero_copy + counts.copied)
    }
}

#[test]
fn processes_on_zenoh_use_shared_memory_on_one_host() {
    let [here, there] = [(); 2].map(|()| Process::start(201, "--wire zenoh"));
    here.meets(1);
    there.meets(1);
    // Messages before the connection stands go over the loopback interface.
    let end = Instant::now() + SOON;
    while here.carried() == 0 || there.carried() == 0 {
        assert!(Instant::now() < end, "no connection");
        here.talks_to(&there);
    }
    let before = [&here, &there].map(Process::carried);
    here.talks_to(&there);
    let since = [here.carried() - before[0], there.carried() - before[1]];
    assert_eq!(since, [3, 3], "each message");
    // One that has none gets the same by Zenoh.
    let without = Process::start(201, "--wire zenoh --shared-memory off");
    without.meets(2);
    here.meets(2);
    without.publisher.publish(&Text::default()).unwrap();
    for at in [&here, &there, &without] {
        assert!(at.subscription.take_timeout(SOON).is_some());
        assert!(at.subscription.take().is_none());
    }
    assert_eq!(without.carried(), 0);
}

#[test]
fn a_process_with_both_wires_meets_those_with_one() {
    let zenoh = Process::start(202, "--wire zenoh");
    let rtps = Process::start(202, "--wire rtps");
    let both = Process::start(202, "--wire rtps,zenoh");
    both.meets(2);
    zenoh.meets(1);
    rtps.meets(1);
    both.talks_to(&zenoh);
    while rtps.subscription.take().is_some() {}
    // These two have nothing in common.
    rtps.publisher.publish(&Text::default()).unwrap();
    assert!(both.subscription.take_timeout(SOON).is_some());
    assert!(zenoh.subscription.take().is_none());
    assert_eq!(zenoh.publisher.matched_count(), 2);
}

/// Zenoh's own settings come from the environment, which a test cannot change for a
/// part of its process. So the secured process is this test binary again.
#[test]
fn a_secured_process_refuses_zenoh_and_names_the_way() {
    const CHILD: &str = "PTEROS_TEST_SECURED";
    if std::env::var_os(CHILD).is_some() {
        let words = ["--ros-args", "--wire", "zenoh"];
        let context = Context::with_options(ContextOptions {
            use_environment: true,
            arguments: Arguments::parse(words).unwrap().0,
            ..ContextOptions::default()
        });
        println!("refused: {}", context.err().unwrap());
        return;
    }
    let keystore = Folder::absent("choice");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = UnixTime(now.as_secs().try_into().unwrap());
    let options = Options::default();
    let made = Keystore::create(&keystore, &options, now).unwrap();
    made.create_enclave("/", None, &options, now).unwrap();
    let child =
        own_process::command("zenoh_choice::a_secured_process_refuses_zenoh_and_names_the_way")
            .env(CHILD, "1")
            .env("ROS_SECURITY_ENABLE", "true")
            .env("ROS_SECURITY_STRATEGY", "Enforce")
            .env("ROS_SECURITY_KEYSTORE", &keystore)
            .output()
            .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(
        text.contains("refused: ROS_SECURITY_ENABLE=true protects RTPS"),
        "{text}"
    );
    assert!(
        text.contains("pteros security create_zenoh_config"),
        "{text}"
    );
}
