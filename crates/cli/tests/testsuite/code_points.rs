//! TRANSPORT_PRIORITY on the wire: the differentiated services code point (RFC 2474) of
//! datagrams that another host receives, over IPv4 and over IPv6.

#![allow(
    clippy::disallowed_methods,
    reason = "a variable says what the process is for"
)]

use crate::namespaces::{FLOW, Lab, Namespace, Program, TIMEOUT, echo, subscriber};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};
use std::io::Write;
use std::process::Command;

/// Set for the process that watches.
const VARIABLE: &str = "PTEROS_TEST_CODE_POINTS";
/// Expedited forwarding.
const URGENT: u8 = 46;
/// History for late joiners.
const LATCHED: [&str; 4] = ["--qos-durability", "transient_local", "--qos-depth", "100"];

/// The process in the receiving host prints IP version, code point and text of
/// each datagram with a message of the test.
#[test]
fn watch() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let (family, flags) = (AddressFamily::PACKET, SocketFlags::empty());
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(eth::ALL)).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "watching").unwrap();
    loop {
        let mut packet = [0; 2_000];
        let (len, _) = recv(&socket, &mut packet, RecvFlags::empty()).unwrap();
        let packet = &packet[..len];
        let (version, field) = match packet {
            [first @ 0x40..=0x4f, field, ..] => (first >> 4, *field),
            [first @ 0x60..=0x6f, second, ..] => (first >> 4, first << 4 | second >> 4),
            _ => continue,
        };
        let texts = ["urgent", "calm"].into_iter();
        let mut texts =
            texts.filter(|text| packet.windows(text.len()).any(|w| w == text.as_bytes()));
        if let Some(text) = texts.next() {
            writeln!(out, "IPv{version} {} {text}", field >> 2).unwrap();
        }
    }
}

fn watch_in(host: &Namespace) -> Program {
    let own = std::env::current_exe().unwrap();
    let words = ["--exact", "code_points::watch", "--nocapture"];
    let mut command = host.command(&[own.to_str().unwrap()]);
    command.args(words).env(VARIABLE, "1");
    let mut watch = Program::start(command);
    watch.wait_for_line(TIMEOUT, |line| line.ends_with("watching"));
    watch
}

fn publish(host: &Namespace, topic: &str, text: &str, options: &[&str]) -> Program {
    let mut command: Command = host.pteros(&["topic", "pub", "-r", "50"]);
    command.args(LATCHED).args(options);
    command.args([topic, "std_msgs/msg/String", &format!("data: {text}")]);
    Program::start(command)
}

#[test]
fn a_writer_with_a_transport_priority_marks_its_messages_and_their_repetitions() {
    let Some(lab) = Lab::new() else { return };
    let [here, there] = [lab.host(), lab.host()];
    lab.attach(&here, 'a', 1, 1);
    lab.attach(&there, 'b', 1, 2);
    let has_ipv6 = std::path::Path::new("/proc/net/if_inet6").exists();
    for version in [4, 6]
        .into_iter()
        .filter(|version| *version == 4 || has_ipv6)
    {
        if version == 6 {
            for (host, device, address) in [(&here, "a1", "10.1.0.1"), (&there, "b1", "10.1.0.2")] {
                host.ip(&format!("addr del {address}/24 dev {device}"));
                let last = &address[7..];
                host.ip(&format!("addr add fd00:7::{last}/64 dev {device} nodad"));
            }
        }
        let watch = watch_in(&there);
        let priority = URGENT.to_string();
        let _urgent = publish(
            &here,
            "/first",
            "urgent",
            &["--qos-transport-priority", &priority],
        );
        let _calm = publish(&here, "/second", "calm", &[]);
        let mut echoes = ["/first", "/second"].map(|topic| echo(&there, topic, "reliable"));
        for echo in &mut echoes {
            echo.hears(FLOW);
        }
        // Late joiners get what was published before, on request.
        let mut late = ["/first", "/second"].map(|topic| {
            let mut command = subscriber(&there, topic, "reliable");
            command.args(LATCHED);
            Program::start(command)
        });
        for echo in &mut late {
            echo.hears(2 * FLOW);
        }
        let mut seen = [0; 2];
        while let Ok(line) = watch.out.try_recv() {
            let is_urgent = line.text.ends_with("urgent");
            let expected = match is_urgent {
                true => format!("IPv{version} {URGENT} urgent"),
                false => format!("IPv{version} 0 calm"),
            };
            assert_eq!(line.text, expected);
            seen[usize::from(is_urgent)] += 1;
        }
        assert!(seen.into_iter().all(|count| count > 2 * FLOW), "{seen:?}");
    }
}
