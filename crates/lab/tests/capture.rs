//! What the capture counts is what tshark's dissector of RTPS counts in the same packets.
//!
//! Needs the right to open packet sockets, and tshark for the comparison; where one is
//! missing the test says so and looks at what it can.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;
use pteros::{SharedMemoryOptions, config::DiscoveryRange};
use pteros_lab::capture::{Capture, Counts, Heard, Kind, Side};

const SMALL: u64 = 50;
const LARGE: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// Submessage ids (RTPS 2.5 §9.4.5.1.1).
const IDS: [(u8, Kind); 9] = [
    (0x15, Kind::Data),
    (0x16, Kind::DataFrag),
    (0x07, Kind::Heartbeat),
    (0x13, Kind::HeartbeatFrag),
    (0x06, Kind::AckNack),
    (0x12, Kind::NackFrag),
    (0x08, Kind::Gap),
    (0x09, Kind::InfoTimestamp),
    (0x0e, Kind::InfoDestination),
];

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A context whose messages take the network, within this host.
fn context() -> Context {
    let options = ContextOptions {
        domain_id: Some(119),
        discovery_range: Some(DiscoveryRange::Localhost),
        shared_memory: SharedMemoryOptions {
            on: false,
            ..SharedMemoryOptions::default()
        },
        ..ContextOptions::default()
    };
    Context::with_options(options).expect("a context")
}

/// Small and large messages from one context to another, by UDP.
fn talk() {
    let (here, there) = (context(), context());
    let (talker, listener) = (here.node("talker"), there.node("listener"));
    let (talker, listener) = (talker.expect("a node"), listener.expect("a node"));
    let qos = QosProfile::default().keep_last(1000);
    let topic = format!("captured_{}", std::process::id());
    let publisher = talker.create_publisher::<UInt8MultiArray>(&topic, qos.clone());
    let publisher = publisher.expect("a publisher");
    let mut received = 0;
    let (count, counted) = std::sync::mpsc::channel();
    let _subscription = listener.create_subscription::<UInt8MultiArray>(&topic, qos, move |_| {
        received += 1;
        let _ = count.send(received);
    });
    assert!(publisher.wait_for_matched(1, PATIENCE), "they meet");
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
    assert!(listener.spin_until(all, PATIENCE), "all arrive");
    assert!(
        publisher.wait_for_all_acked(PATIENCE),
        "all are acknowledged"
    );
}

/// How many submessages of each id tshark finds.
fn of_tshark(file: &Path) -> Option<BTreeMap<u8, u64>> {
    // ICMP's "port unreachable" quotes the datagram, which tshark would read, too.
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
    assert!(counts.of(Kind::Data, Side::User) >= SMALL);
    assert!(counts.of(Kind::DataFrag, Side::User) >= LARGE * 200_000 / 65_000);
    assert!(counts.of(Kind::Data, Side::Builtin) > 0);
    assert!(counts.of(Kind::AckNack, Side::User) > 0);
    assert!(counts.messages().count() as u64 >= SMALL + LARGE);
    assert!(counts.user_data.bytes > LARGE * 200_000);
}

#[test]
fn submessages_are_counted_as_tshark_counts_them() {
    let own = format!("pteros-capture-{}.pcap", std::process::id());
    let file = File(std::env::temp_dir().join(own));
    let capture = match Capture::start("lo", Some(&file.0), 0) {
        Ok(capture) => capture,
        Err(why) => {
            println!("not looked at: {why:#}");
            return;
        }
    };
    talk();
    let Heard { counts, missed } = capture.stop().expect("captured");
    match missed {
        // Other tests may talk on loopback, too; ours is in there at least.
        0 => complete(&counts),
        // Without the right to a large buffer the kernel drops what comes in bursts.
        missed => println!("{missed} packets were missed; completeness is not looked at"),
    }
    let Some(theirs) = of_tshark(&file.0) else {
        println!("no tshark to compare with");
        return;
    };
    for (id, kind) in IDS {
        let sides = [Side::User, Side::Builtin, Side::None];
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
