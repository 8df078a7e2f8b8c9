//! The capture counts the same submessages as tshark's RTPS dissector.
//!
//! Needs the permission for packet sockets, and tshark for the comparison. Without
//! them the test prints that and checks less.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;
use pteros::{config::DiscoveryRange, shared_memory::SharedMemoryOptions};
use pteros_lab::capture::{Capture, CaptureResult, Counts, SubmessageKind, TrafficClass};
use pteros_test_support::folder::Folder;

const SMALL: u64 = 50;
const LARGE: u64 = 10;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Submessage ids (RTPS 2.5 §9.4.5.1.1).
const IDS: [(u8, SubmessageKind); 9] = [
    (0x15, SubmessageKind::Data),
    (0x16, SubmessageKind::DataFrag),
    (0x07, SubmessageKind::Heartbeat),
    (0x13, SubmessageKind::HeartbeatFrag),
    (0x06, SubmessageKind::AckNack),
    (0x12, SubmessageKind::NackFrag),
    (0x08, SubmessageKind::Gap),
    (0x09, SubmessageKind::InfoTimestamp),
    (0x0e, SubmessageKind::InfoDestination),
];

/// A context without shared memory, limited to this host.
fn context() -> Context {
    let options = ContextOptions {
        domain_id: Some(119),
        discovery_range: Some(DiscoveryRange::Localhost),
        shared_memory: SharedMemoryOptions {
            enabled: false,
            ..SharedMemoryOptions::default()
        },
        ..ContextOptions::default()
    };
    Context::with_options(options).expect("a context")
}

/// Small and large messages from one context to another over UDP.
fn talk() {
    let (here, there) = (context(), context());
    let (talker, listener) = (here.create_node("talker"), there.create_node("listener"));
    let (talker, listener) = (talker.expect("a node"), listener.expect("a node"));
    let qos = QosProfile::default().keep_last(1000);
    let topic = format!("captured_{}", std::process::id());
    let publisher = talker.create_publisher::<UInt8MultiArray>(topic.as_str().qos(qos.clone()));
    let publisher = publisher.expect("a publisher");
    let mut received = 0;
    let (count, counted) = std::sync::mpsc::channel();
    let _subscription =
        listener.create_subscription::<UInt8MultiArray>(topic.as_str().qos(qos), move |_| {
            received += 1;
            let _ = count.send(received);
        });
    assert!(
        publisher.wait_for_matched(1, TIMEOUT),
        "the endpoints match"
    );
    for number in 0..SMALL + LARGE {
        let bytes = if number < SMALL { 100 } else { 200_000 };
        let data = vec![number as u8; bytes];
        let message = UInt8MultiArray {
            data,
            ..UInt8MultiArray::default()
        };
        publisher.publish(&message).expect("published");
    }
    let mut last = 0;
    let all = || {
        last = counted.try_iter().last().unwrap_or(last);
        last == SMALL + LARGE
    };
    assert!(listener.spin_until(all, TIMEOUT), "all arrive");
    assert!(
        publisher.wait_for_all_acked(TIMEOUT),
        "all are acknowledged"
    );
}

/// Number of submessages of each id that tshark finds.
fn of_tshark(file: &Path) -> Option<BTreeMap<u8, u64>> {
    // ICMP "port unreachable" quotes the datagram, which tshark would decode as
    // well.
    let fields = ["-Y", "!icmp", "-T", "fields", "-e", "rtps.sm.id"];
    let outcome = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(fields)
        .output();
    let outcome = outcome.ok().filter(|outcome| outcome.status.success())?;
    let mut found = BTreeMap::new();
    for word in
        String::from_utf8_lossy(&outcome.stdout).split(|c: char| c == ',' || c.is_whitespace())
    {
        let Some(id) = word.strip_prefix("0x") else {
            continue;
        };
        *found
            .entry(u8::from_str_radix(id, 16).expect("an id"))
            .or_default() += 1;
    }
    Some(found)
}

fn complete(counts: &Counts) {
    assert!(counts.of(SubmessageKind::Data, TrafficClass::User) >= SMALL);
    assert!(counts.of(SubmessageKind::DataFrag, TrafficClass::User) >= LARGE * 200_000 / 65_000);
    assert!(counts.of(SubmessageKind::Data, TrafficClass::Builtin) > 0);
    assert!(counts.of(SubmessageKind::AckNack, TrafficClass::User) > 0);
    assert!(counts.messages().count() as u64 >= SMALL + LARGE);
    assert!(counts.user_data.bytes > LARGE * 200_000);
}

#[test]
fn submessages_are_counted_as_tshark_counts_them() {
    let file = Folder::absent("capture.pcap");
    let capture = match Capture::start("lo", Some(&file), 0) {
        Ok(capture) => capture,
        Err(why) => {
            println!("not looked at: {why:#}");
            return;
        }
    };
    talk();
    let CaptureResult { counts, missed } = capture.stop().expect("captured");
    match missed {
        // Other tests may use loopback, too. At least our packets are in it.
        0 => complete(&counts),
        // Without permission for a large buffer the kernel drops bursts.
        missed => println!("{missed} packets were missed; completeness is not looked at"),
    }
    let Some(theirs) = of_tshark(&file) else {
        println!("no tshark to compare with");
        return;
    };
    for (id, kind) in IDS {
        let sides = [
            TrafficClass::User,
            TrafficClass::Builtin,
            TrafficClass::None,
        ];
        let ours: u64 = sides.iter().map(|side| counts.of(kind, *side)).sum();
        assert_eq!(ours, theirs.get(&id).copied().unwrap_or(0), "{kind}");
    }
}

#[test]
fn an_unknown_device_is_named() {
    let why = Capture::start("nothere0", None, 0).expect_err("no such device");
    assert!(
        why.to_string().contains("nothere0: no such network device"),
        "{why:#}"
    );
}
