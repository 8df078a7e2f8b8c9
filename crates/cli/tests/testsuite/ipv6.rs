//! Hosts without IPv4, as network namespaces: discovery and data over link-local and
//! other IPv6 addresses, with processes of Pteros, Cyclone DDS and Fast DDS.

#![allow(clippy::disallowed_methods, reason = "other processes take real time")]

use crate::namespaces::{
    FLOW, Lab, Namespace, Program, TIMEOUT, echo, publish, publisher, subscriber,
};
use pteros_test_support::peer;
use std::process::Command;
use std::time::Instant;

/// Two hosts on one network without IPv4. `None`, and a sentence, where the kernel has no
/// IPv6.
fn two_hosts() -> Option<(Lab, [Namespace; 2])> {
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        println!("skipped: the kernel has no IPv6");
        return None;
    }
    let lab = Lab::new()?;
    let hosts = [lab.host(), lab.host()];
    for (host, name) in hosts.iter().zip(['a', 'b']) {
        lab.attach_v6(host, name, 1);
        wait_for_link_local(host, &format!("{name}1"));
    }
    Some((lab, hosts))
}

/// Waits until the kernel has found no duplicate of the link-local address.
fn wait_for_link_local(host: &Namespace, device: &str) {
    let end = Instant::now() + TIMEOUT;
    loop {
        let shown = output(host.command(&["ip", "-6", "addr", "show", "dev", device]));
        if shown.contains("fe80::") && !shown.contains("tentative") {
            return;
        }
        assert!(Instant::now() < end, "{shown}");
    }
}

fn output(mut command: Command) -> String {
    let output = command.output().expect("start");
    [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat()
}

/// The link-local address of a host on its first network.
fn link_local(host: &Namespace, device: &str) -> String {
    let shown = output(host.command(&["ip", "-6", "-o", "addr", "show", "dev", device]));
    let mut words = shown.split_ascii_whitespace();
    let address = words.find(|word| word.starts_with("fe80::"));
    let (address, _) = address.and_then(|a| a.split_once('/')).expect("link-local");
    address.to_owned()
}

#[test]
fn hosts_with_link_local_addresses_alone_meet_and_are_shown_with_their_interface() {
    let Some((_lab, [here, there])) = two_hosts() else {
        return;
    };
    let mut publisher = publish(&here, "/news", "reliable");
    let mut back = publish(&there, "/answers", "reliable");
    echo(&there, "/news", "reliable").hears(FLOW);
    echo(&here, "/answers", "reliable").hears(FLOW);
    let doctor = output(there.pteros(&["doctor"]));
    let own = link_local(&there, "b1");
    for part in [
        format!("b1 {own}/64, MTU 1500"),
        "multicast on b1 with IPv6 is received".into(),
    ] {
        assert!(doctor.contains(&part), "no {part:?} in:\n{doctor}");
    }
    let _hello = Program::start(here.pteros(&["doctor", "hello"]));
    let mut hello = Program::start(there.pteros(&["doctor", "hello", "--json"]));
    let greeter = link_local(&here, "a1");
    hello.wait_for_line(TIMEOUT, |line| {
        let by_multicast = line.split_once("\"multicast\":{");
        by_multicast.is_some_and(|(_, callers)| callers.contains(&greeter))
    });
    let why = output(there.pteros(&["topic", "why", "/news"]));
    assert!(why.contains("/news"), "{why}");
    assert!(publisher.is_running() && back.is_running());
}

#[test]
fn a_static_peer_is_an_address_with_its_interface_and_port() {
    let Some((_lab, [here, there])) = two_hosts() else {
        return;
    };
    let own = link_local(&here, "a1");
    // Nothing of discovery arrives by itself.
    for (host, device) in [(&here, "a1"), (&there, "b1")] {
        host.ip(&format!("link set {device} multicast off"));
    }
    let _publisher = publish(&here, "/news", "reliable");
    for peer in [format!("{own}%b1"), format!("[{own}%b1]:7410")] {
        let mut command = subscriber(&there, "/news", "reliable");
        command.env("ROS_STATIC_PEERS", &peer);
        Program::start(command).hears(FLOW);
    }
    for (peer, part) in [
        (own.clone(), format!("write {own}%eth0")),
        (
            format!("{own}%b7"),
            "no interface \"b7\" is up (up: b1, lo)".into(),
        ),
        (format!("[{own}%b1]:none"), "\":none\" is no port".into()),
    ] {
        let mut command = there.pteros(&["topic", "list"]);
        command.env("ROS_STATIC_PEERS", &peer);
        let shown = output(command);
        assert!(shown.contains(&part), "{peer}: {shown}");
    }
}

#[test]
fn other_addresses_are_used_and_followed_when_they_change() {
    let Some((_lab, [here, there])) = two_hosts() else {
        return;
    };
    here.ip("addr add fd00:7::1/64 dev a1 nodad");
    there.ip("addr add fd00:7::2/64 dev b1 nodad");
    let _publisher = publish(&here, "/news", "reliable");
    let mut listener = echo(&there, "/news", "reliable");
    listener.hears(FLOW);
    here.ip("addr del fd00:7::1/64 dev a1");
    here.ip("addr add fd00:7::9/64 dev a1 nodad");
    listener.hears(FLOW);
    echo(&there, "/news", "reliable").hears(FLOW);
}

#[test]
fn the_same_link_local_address_on_two_links_is_two_hosts() {
    let Some((lab, [here, there])) = two_hosts() else {
        return;
    };
    let third = lab.host();
    lab.attach_v6(&there, 'b', 2);
    lab.attach_v6(&third, 'c', 2);
    for (host, device, last) in [
        (&here, "a1", 1),
        (&third, "c2", 1),
        (&there, "b1", 2),
        (&there, "b2", 2),
    ] {
        host.ip(&format!("addr flush dev {device}"));
        host.ip(&format!("addr add fe80::{last}/64 dev {device} nodad"));
    }
    let _publishers = [
        publish(&here, "/from_a", "reliable"),
        publish(&third, "/from_c", "reliable"),
    ];
    let mut echoes = ["/from_a", "/from_c"].map(|topic| echo(&there, topic, "reliable"));
    for echo in &mut echoes {
        echo.hears(FLOW);
    }
    let doctor = output(there.pteros(&["doctor"]));
    assert!(!doctor.contains("never answers"), "{doctor}");
}

#[test]
fn a_host_with_ipv4_opens_no_ipv6_socket_unless_it_is_told_to() {
    let Some((lab, [here, _])) = two_hosts() else {
        return;
    };
    here.ip("addr add 10.1.0.1/24 dev a1");
    let other = lab.host();
    lab.attach(&other, 'c', 1, 3);
    wait_for_link_local(&other, "c1");
    let sockets = |host: &Namespace| {
        let list = output(host.command(&["cat", "/proc/net/udp6"]));
        list.lines().count() - 1
    };
    let _publisher = publish(&here, "/news", "reliable");
    echo(&other, "/news", "reliable").hears(1);
    assert_eq!((sockets(&here), sockets(&other)), (0, 0));
    let mut command = subscriber(&other, "/news", "reliable");
    command.env("PTEROS_IP_VERSIONS", "4,6");
    let mut listener = Program::start(command);
    listener.hears(1);
    assert_eq!(sockets(&other), 2, "unicast and the discovery groups");
    let mut command = publisher(&here, "/both", "reliable");
    command.env("PTEROS_IP_VERSIONS", "4,6");
    let mut both = Program::start(command);
    let mut command = subscriber(&other, "/both", "reliable");
    command.env("PTEROS_IP_VERSIONS", "4,6");
    let mut listener = Program::start(command);
    listener.hears(2 * FLOW);
    // Without IPv4 the flow goes on.
    other.ip("addr del 10.1.0.3/24 dev c1");
    listener.hears(FLOW);
    for log in [both.log(), listener.log()] {
        assert!(!log.contains("where it is not"), "{log}");
    }
}

/// A peer of another stack in a namespace.
fn start_peer(host: &Namespace, stack: &str, options: &str) -> Option<Program> {
    let program = match peer::program(&format!("{stack}-peer")) {
        Ok(program) => program,
        Err(why) => {
            println!("skipped {stack}: {why}");
            return None;
        }
    };
    let path = program.to_str().expect("text");
    let mut command = host.command(&[path]);
    command.args(options.split(' '));
    command.env(
        "CYCLONEDDS_URI",
        "<General><Transport>udp6</Transport></General>",
    );
    Some(Program::start(command))
}

#[test]
fn cyclone_dds_is_heard_and_hears_us_over_ipv6() {
    let Some((_lab, [here, there])) = two_hosts() else {
        return;
    };
    for address in [None, Some("fd00:7::")] {
        if let Some(network) = address {
            here.ip(&format!("addr add {network}1/64 dev a1 nodad"));
            there.ip(&format!("addr add {network}2/64 dev b1 nodad"));
        }
        let _ours = publish(&here, "/chatter", "reliable");
        let options = "sub --topic rt/chatter --count 20 --timeout 30";
        let Some(mut theirs) = start_peer(&there, "cyclone", options) else {
            return;
        };
        theirs.wait_for_line(2 * TIMEOUT, |line| line.starts_with("ended received=20"));
        let options = "pub --topic rt/back --rate 20 --timeout 60";
        let Some(_theirs) = start_peer(&there, "cyclone", options) else {
            return;
        };
        echo(&here, "/back", "reliable").hears(FLOW);
    }
}
