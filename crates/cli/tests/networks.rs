//! Two hosts on two networks, as network namespaces on two bridges: links that lose
//! their carrier, networks that die unseen, interfaces and addresses that come late or
//! change. The processes are those that users run, in both directions.
//!
//! How fast traffic moves is checked on fake time (`rtps/tests/paths.rs`). Where
//! namespaces do not work, each test is skipped with a sentence.

#[path = "support/namespaces.rs"]
mod namespaces;

use namespaces::{FLOW, Lab, Namespace, Program, echo, publish};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Hosts on both networks, with a flow in each direction.
fn with_flows(lab: &Lab, reliability: &str) -> Flows {
    let hosts = [lab.host(), lab.host()];
    for network in [1, 2] {
        lab.attach(&hosts[0], 'a', network, 1);
        lab.attach(&hosts[1], 'b', network, 2);
    }
    let topics = ["/from_a", "/from_b"];
    let publish = |host: usize| publish(&hosts[host], topics[host], reliability);
    let echo = |host: usize| echo(&hosts[host], topics[1 - host], reliability);
    let mut flows = Flows {
        publishers: [publish(0), publish(1)],
        echoes: [echo(0), echo(1)],
        hosts,
    };
    flows.go_on();
    flows
}

struct Flows {
    publishers: [Program; 2],
    echoes: [Program; 2],
    hosts: [Namespace; 2],
}

impl Flows {
    #[track_caller]
    fn go_on(&mut self) {
        for echo in &mut self.echoes {
            echo.hears(FLOW);
        }
    }
}

#[test]
fn a_lost_carrier_moves_both_directions_to_the_other_network_and_back() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = with_flows(&lab, "reliable");
    lab.switch.ip("link set sa1 down");
    flows.go_on();
    flows.echoes[0].logs("network interface a1 (10.1.0.1) has no carrier");
    flows.publishers[0].logs("traffic to 10.1.0.2 goes to 10.2.0.2");
    flows.publishers[1].logs("traffic to 10.1.0.1 goes to 10.2.0.1");

    let mut info = flows.hosts[0].pteros(&["topic", "info", "--details", "/from_a"]);
    let shown = String::from_utf8(info.output().expect("info").stdout).expect("text");
    assert!(
        shown.contains("10.2.0.2 is in use; 10.1.0.2 is behind a link of this host that is down"),
        "{shown}"
    );
    let mut doctor = flows.hosts[0].pteros(&["doctor"]);
    let shown = String::from_utf8(doctor.output().expect("doctor").stdout).expect("text");
    assert!(
        shown.contains("a1 10.1.0.1/24, MTU 1500, without a carrier"),
        "{shown}"
    );
    assert!(shown.contains("10.1.0.2 of "), "{shown}");

    lab.switch.ip("link set sa1 up");
    flows.go_on();
    // Whichever network is in use now, the other one carries on without it.
    lab.switch.ip("link set sb2 down");
    flows.go_on();
    let told = flows.publishers[0].log().matches("has no carrier").count();
    assert_eq!(told, 1, "told once per change");
}

#[test]
fn best_effort_traffic_leaves_a_network_that_dies_unseen() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = with_flows(&lab, "best_effort");
    // Both links keep their carrier.
    lab.switch.ip("link set sa1 nomaster");
    flows.go_on();
    flows.publishers[0].logs("10.1.0.2 does not answer");
    lab.switch.ip("link set sa1 master br1");
    lab.switch.ip("link set sb2 nomaster");
    flows.go_on();
}

#[test]
fn a_network_that_fails_in_one_direction_is_left() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = with_flows(&lab, "reliable");
    // Unicast of the first host to the second one there goes to a station that is
    // gone. Its multicast still arrives.
    flows.hosts[0].ip("neigh replace 10.1.0.2 lladdr 02:00:00:00:00:99 nud permanent dev a1");
    flows.publishers[0].logs("traffic to 10.1.0.2 goes to 10.2.0.2");
    flows.publishers[1].logs("traffic to 10.1.0.1 goes to 10.2.0.1");
    flows.go_on();
}

#[test]
fn an_interface_that_comes_late_is_used() {
    let Some(lab) = Lab::new() else { return };
    let (here, late) = (lab.host(), lab.host());
    lab.attach(&here, 'a', 1, 1);
    let _publisher = publish(&here, "/news", "reliable");
    let mut late_echo = echo(&late, "/news", "reliable");
    // Another listener, on the first host, shows that the publisher runs.
    echo(&here, "/news", "reliable").hears(1);
    lab.attach(&late, 'b', 1, 2);
    late_echo.hears(FLOW);
}

#[test]
fn a_changed_address_is_announced_to_newcomers_and_old_peers() {
    let Some(lab) = Lab::new() else { return };
    let (here, there) = (lab.host(), lab.host());
    lab.attach(&here, 'a', 1, 1);
    lab.attach(&there, 'b', 1, 2);
    let mut publisher = publish(&here, "/news", "reliable");
    let mut old = echo(&there, "/news", "reliable");
    old.hears(FLOW);
    here.ip("addr del 10.1.0.1/24 dev a1");
    here.ip("addr add 10.1.0.77/24 dev a1");
    old.hears(FLOW);
    let newcomer = lab.host();
    lab.attach(&newcomer, 'c', 1, 3);
    echo(&newcomer, "/news", "reliable").hears(FLOW);
    // A USB tether that is plugged in again: another interface, another address.
    there.ip("link del b1");
    lab.attach(&there, 'b', 1, 55);
    old.hears(FLOW);
    publisher.logs("goes to 10.1.0.55");
}

#[test]
fn a_multicast_datagram_goes_from_host_to_host() {
    let Some(lab) = Lab::new() else { return };
    let hosts = [lab.host(), lab.host()];
    lab.attach(&hosts[0], 'a', 1, 1);
    lab.attach(&hosts[1], 'b', 1, 2);
    let mut command = hosts[0].pteros(&["multicast", "receive", "--timeout", "60"]);
    let mut receiver = command.stdout(Stdio::piped()).spawn().expect("receive");
    let mut lines = BufReader::new(receiver.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert_eq!(line(), "Waiting for UDP multicast datagram...");
    let sent = hosts[1].pteros(&["multicast", "send"]).output();
    let sent = sent.expect("send");
    assert_eq!(
        String::from_utf8(sent.stdout).expect("text"),
        "Sending one UDP multicast datagram...\n"
    );
    assert!(sent.status.success());
    let received = line();
    assert!(
        received.starts_with("Received from 10.1.0.2:") && received.ends_with(": 'Hello World!'"),
        "{received}"
    );
    assert!(receiver.wait().expect("its end").success());
}
