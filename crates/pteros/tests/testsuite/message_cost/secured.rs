//! Cost of a secured message over UDP, protected as SROS 2's defaults: messages
//! signed, submessages and payloads encrypted. No additional allocation or system
//! call.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use pteros_test_support::folder::Folder;
use pteros_test_support::own_process;
use std::time::SystemTime;

use pteros_security::date::UnixTime;
use pteros_security::governance::Protection;
use pteros_security::keystore::{Keystore, Options};

use super::*;

const CHILD_ROLE: &str = "PTEROS_TEST_PART";
/// Of a process of its own.
const DOMAIN: u32 = 130;

/// Configured by its environment, reached by UDP.
fn secured() -> CountingProcess {
    CountingProcess::with(ContextOptions {
        use_environment: true,
        shared_memory: SharedMemoryOptions {
            enabled: false,
            ..SharedMemoryOptions::default()
        },
        ..ContextOptions::local(DOMAIN)
    })
}

/// A separate process, since the environment configures security.
#[test]
fn child() {
    if std::env::var(CHILD_ROLE).is_err() {
        return;
    }
    let (talker, listener) = (secured(), secured());
    let [sent, received] = small_messages(&talker, &listener);

    let (allocations, calls) = sent;
    assert!(allocations <= 2 * ROUNDS, "{allocations}, as without");
    let about_one_each = ROUNDS..=ROUNDS + ROUNDS / 10;
    assert!(about_one_each.contains(&calls.sends), "{calls:?}");
    let (allocations, calls) = received;
    assert!(allocations <= 2 * ROUNDS + ROUNDS / 10, "{allocations}");
    assert!(about_one_each.contains(&calls.receives), "{calls:?}");
    assert_eq!(calls.wakes, 0, "nobody else is woken");
    println!("all well");
}

#[test]
fn a_secured_message_allocates_nothing_more_and_is_one_datagram_too() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = UnixTime(i64::try_from(now.unwrap().as_secs()).unwrap());
    for rtps in [Protection::Sign, Protection::SignWithOriginAuthentication] {
        let root = Folder::absent("walk");
        let options = Options {
            domain: DOMAIN,
            rtps,
            ..Options::default()
        };
        let keystore = Keystore::create(&root, &options, now).unwrap();
        keystore.create_enclave("/", None, &options, now).unwrap();
        let said = own_process::command("message_cost::secured::child")
            .env(CHILD_ROLE, "secured")
            .env("ROS_SECURITY_ENABLE", "true")
            .env("ROS_SECURITY_KEYSTORE", &root)
            .env_remove("ROS_SECURITY_STRATEGY")
            .env_remove("ROS_SECURITY_ENCLAVE_OVERRIDE")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(text.contains("all well"), "{rtps:?}: {text}{errors}");
    }
}
