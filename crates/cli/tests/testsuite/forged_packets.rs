//! An attacker on the network of a publisher and a subscription, each a process in a
//! network namespace of its own. It forges datagrams in the publisher's name, from its
//! own address and from the publisher's. The flow goes on, or is whole again within two
//! seconds after the last forged packet.
//!
//! `rtps/tests/testsuite/forged_discovery.rs` and `rtps/tests/testsuite/writer_reader/forged.rs` check the
//! effect of each forged submessage on fake time. Where
//! namespaces do not work, each test is skipped with a sentence.

#![allow(clippy::disallowed_methods, reason = "other processes take real time")]

use crate::namespaces::{FLOW, Lab, Namespace, TIMEOUT, echo, publish};
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The bound after the last forged packet.
const RECOVERY: Duration = Duration::from_secs(2);
const FAR: i64 = 1 << 40;
/// Rounds of all forged packets, and the pause between two.
const ROUNDS: u32 = 40;
const PAUSE: &str = "0.05";
/// The ports of the first processes of a host: discovery and user traffic.
const PORTS: [u16; 4] = [7410, 7411, 7412, 7413];

/// The GUID of the only publisher of a topic, as a process of that host sees it.
fn publisher_of(host: &Namespace, topic: &str) -> [u8; 16] {
    let end = Instant::now() + TIMEOUT;
    loop {
        let shown = host
            .pteros(&["topic", "info", "-v", "--json", topic])
            .output();
        let shown = shown.expect("topic info").stdout;
        let info = serde_json::from_slice::<serde_json::Value>(&shown).unwrap_or_default();
        if let Some(gid) = info["publishers"][0]["gid"].as_str() {
            let bytes = gid.split('.').map(|byte| u8::from_str_radix(byte, 16));
            let bytes: Vec<u8> = bytes.map(|byte| byte.expect("hexadecimal")).collect();
            return bytes.try_into().expect("16 bytes");
        }
        assert!(Instant::now() < end, "{topic} has no publisher");
    }
}

fn number(value: i64) -> Vec<u8> {
    let high = i32::try_from(value >> 32).expect("small");
    let low = u32::try_from(value & 0xffff_ffff).expect("32 bits");
    [high.to_le_bytes(), low.to_le_bytes()].concat()
}

fn submessage(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("small").to_le_bytes();
    [&[kind, flags | 1], &length[..], body].concat()
}

fn datagram(of: &[u8; 16], submessages: &[Vec<u8>]) -> Vec<u8> {
    let header = [b"RTPS", &[2, 4, 1, 3][..], &of[..12]].concat();
    [header, submessages.concat()].concat()
}

fn string(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len() + 1).expect("small").to_le_bytes();
    let mut bytes = [&length[..], text.as_bytes(), &[0]].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn parameter(id: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("small");
    [&id.to_le_bytes(), &length.to_le_bytes()[..], value].concat()
}

/// HEARTBEAT and GAP far ahead, of the publisher and of SEDP; SEDP dispose and change of
/// type; DATA. All in the name of a publisher.
fn forged(of: &[u8; 16], topic: &str, round: u32) -> Vec<Vec<u8>> {
    let (any, writer) = ([0; 4], &of[12..]);
    let sedp = ([0, 0, 3, 0xc7], [0, 0, 3, 0xc2]);
    let head = |reader: &[u8; 4], writer: &[u8]| [&reader[..], writer].concat();
    let count = (1_000 + round).to_le_bytes();
    let heartbeat = |to: Vec<u8>| [to, number(FAR), number(FAR), count.to_vec()].concat();
    let gap = |to: Vec<u8>| [to, number(1), number(FAR), vec![0; 4]].concat();
    let data_head = |to: Vec<u8>, sequence: i64| [vec![0, 0, 16, 0], to, number(sequence)].concat();
    let sentinel = [1, 0, 0, 0];
    let guid = parameter(0x5a, of);
    let sequence = i64::from(round) + 2;
    let removed = [
        data_head(head(&sedp.0, &sedp.1), sequence),
        parameter(0x70, of),
        parameter(0x71, &[0, 0, 0, 3]),
        sentinel.to_vec(),
        vec![0, 3, 0, 0],
        guid.clone(),
        sentinel.to_vec(),
    ];
    let changed = [
        data_head(head(&sedp.0, &sedp.1), sequence + 1),
        vec![0, 3, 0, 0],
        guid,
        parameter(5, &string(&format!("rt{topic}"))),
        parameter(7, &string("other::Type")),
        sentinel.to_vec(),
    ];
    let text = [vec![0, 1, 0, 0], string("forged")].concat();
    let data = [data_head(head(&any, writer), FAR + i64::from(round)), text];
    [
        submessage(7, 0, &heartbeat(head(&any, writer))),
        submessage(8, 0, &gap(head(&any, writer))),
        submessage(7, 0, &heartbeat(head(&sedp.0, &sedp.1))),
        submessage(0x15, 0x0a, &removed.concat()),
        submessage(0x15, 0x04, &changed.concat()),
        submessage(0x15, 0x04, &data.concat()),
    ]
    .map(|one| datagram(of, &[one]))
    .into()
}

/// Sends everything for two seconds from `attacker`, a process of its own.
fn attack(attacker: &Namespace, victim: &str, of: &[u8; 16], topic: &str) {
    let mut script = String::new();
    for round in 0..ROUNDS {
        for packet in forged(of, topic, round) {
            let mut bytes = String::new();
            for byte in packet {
                let _ = write!(bytes, "\\x{byte:02x}");
            }
            for port in PORTS {
                let _ = writeln!(script, "printf '{bytes}' > /dev/udp/{victim}/{port}");
            }
        }
        let _ = writeln!(script, "sleep {PAUSE}");
    }
    let mut shell = attacker.command(&["bash"]);
    let mut shell = shell
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash");
    let mut stdin = shell.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, script.as_bytes()).expect("script");
    drop(stdin);
    shell.wait().expect("bash");
}

/// The messages heard until the flow is whole again, and the delay of the first one.
struct Heard {
    lines: Vec<String>,
    silence: Duration,
}

fn heard_after(echo: &mut crate::namespaces::Program, already: Vec<String>) -> Heard {
    let last = Instant::now();
    let mut lines = already;
    lines.extend(echo.out.recv_timeout(TIMEOUT).map(|line| line.text));
    let silence = last.elapsed();
    let end = Instant::now() + RECOVERY;
    while let Ok(line) = echo
        .out
        .recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        lines.push(line.text);
    }
    Heard { lines, silence }
}

fn check_flow(heard: &Heard) {
    assert!(heard.silence < RECOVERY, "{:?} of silence", heard.silence);
    let true_ones = heard.lines.iter().filter(|line| line.contains("data: x"));
    let true_ones = true_ones.count();
    assert!(true_ones >= FLOW, "{true_ones} messages");
}

/// Publisher at 10.1.0.1, subscription at 10.1.0.2, attacker at 10.1.0.3.
fn hosts(lab: &Lab) -> [Namespace; 3] {
    let hosts = [lab.host(), lab.host(), lab.host()];
    for (host, (name, last)) in hosts.iter().zip([('a', 1), ('b', 2), ('c', 3)]) {
        lab.attach(host, name, 1, last);
    }
    hosts
}

#[test]
fn packets_forged_from_another_address_are_dropped_and_told() {
    let Some(lab) = Lab::new() else { return };
    let [talker, listener, attacker] = hosts(&lab);
    let mut publisher = publish(&talker, "/news", "reliable");
    let mut heard = echo(&listener, "/news", "reliable");
    heard.hears(FLOW);
    let of = publisher_of(&listener, "/news");
    while heard.out.try_recv().is_ok() {}
    for victim in ["10.1.0.2", "10.1.0.1"] {
        attack(&attacker, victim, &of, "/news");
    }
    let meanwhile: Vec<String> = heard.out.try_iter().map(|line| line.text).collect();
    let count = meanwhile.iter().filter(|line| line.contains("data: x"));
    assert!(count.count() >= 3 * FLOW, "the flow does not stop");
    let after = heard_after(&mut heard, meanwhile);
    check_flow(&after);
    let forged = after.lines.iter().filter(|line| line.contains("forged"));
    assert_eq!(forged.count(), 0, "forged DATA is delivered");
    heard.logs("come from 10.1.0.3, where it is not");
    assert_eq!(
        heard.log().matches("where it is not").count(),
        1,
        "told once"
    );
    assert!(!publisher.log().contains("panic"));
}

#[test]
fn a_flow_is_whole_two_seconds_after_packets_forged_from_its_own_address() {
    let Some(lab) = Lab::new() else { return };
    let [talker, listener, attacker] = hosts(&lab);
    let _publisher = publish(&talker, "/news", "reliable");
    let mut heard = echo(&listener, "/news", "reliable");
    heard.hears(FLOW);
    let of = publisher_of(&listener, "/news");
    // It takes the publisher's address without answering for it.
    let shown = listener
        .command(&["ip", "-o", "link", "show", "dev", "b1"])
        .output();
    let shown = String::from_utf8(shown.expect("ip").stdout).expect("text");
    let station = shown
        .split_whitespace()
        .skip_while(|word| *word != "link/ether")
        .nth(1);
    let station = station.expect("an Ethernet address");
    let quiet = "echo 8 > /proc/sys/net/ipv4/conf/all/arp_ignore";
    let quiet = attacker.command(&["sh", "-c", quiet]).status().expect("sh");
    assert!(quiet.success());
    attacker.ip("addr add 10.1.0.1/32 dev c1");
    attacker.ip(&format!(
        "neigh replace 10.1.0.2 lladdr {station} nud permanent dev c1"
    ));
    attacker.ip("route replace 10.1.0.2/32 dev c1 src 10.1.0.1");
    attack(&attacker, "10.1.0.2", &of, "/news");
    let _ = heard.out.try_iter().count();
    check_flow(&heard_after(&mut heard, Vec::new()));
    // The forged type is told, and undone.
    heard.logs("type: offered other::Type");
}

#[test]
fn a_pair_on_one_host_is_deaf_to_packets_of_another_host() {
    let Some(lab) = Lab::new() else { return };
    let [_, here, attacker] = hosts(&lab);
    let _publisher = publish(&here, "/news", "reliable");
    let mut heard = echo(&here, "/news", "reliable");
    heard.hears(FLOW);
    let of = publisher_of(&here, "/news");
    while heard.out.try_recv().is_ok() {}
    attack(&attacker, "10.1.0.2", &of, "/news");
    let meanwhile: Vec<String> = heard.out.try_iter().map(|line| line.text).collect();
    let count = meanwhile.iter().filter(|line| line.contains("data: x"));
    assert!(count.count() >= FLOW, "the flow does not stop");
    let after = heard_after(&mut heard, meanwhile);
    check_flow(&after);
    let forged = after.lines.iter().filter(|line| line.contains("forged"));
    assert_eq!(forged.count(), 0, "forged DATA is delivered");
    heard.logs("come from 10.1.0.3, where it is not");
}
