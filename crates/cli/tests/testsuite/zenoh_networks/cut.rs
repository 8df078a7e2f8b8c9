//! Links that are cut and restored, and addresses that change.

use std::time::{Duration, Instant};

use crate::namespaces::{Lab, Program};
use crate::zenoh_networks::host::{Host, SOON, connected_to, go_on};
use crate::zenoh_networks::parts::REQUEST;

/// Routers notice a silent link after this time, not after a minute.
const SHORT_LEASE: &str = "transport/link/tx/lease=3000";

/// A router each, host b's connects to that of host a.
fn two_hosts(lab: &Lab, settings: &str) -> ([Host; 2], [Program; 2]) {
    let hosts = [(); 2].map(|()| Host::on_zenoh(lab, ""));
    lab.attach(&hosts[0].namespace, 'a', 1, 1);
    lab.attach(&hosts[1].namespace, 'b', 1, 2);
    let of_b = [settings, &connected_to("10.1.0.1")].join(";");
    let routers = [hosts[0].router(settings), hosts[1].router(&of_b)];
    (hosts, routers)
}

/// Waits until a host lists the server of host a, or no longer does.
#[track_caller]
fn until_listed(host: &Host, is_listed: bool) {
    let end = Instant::now() + SOON;
    loop {
        let (_, out, log) = host.run_to_end(host.pteros("node list"));
        if out.contains("/server_of_a") == is_listed {
            return;
        }
        assert!(Instant::now() < end, "{out}{log}");
    }
}

/// The numbers that an echo prints until one that is published from now on, about.
#[track_caller]
fn numbers_until(echo: &mut Program, last: i64, heard: &mut Vec<i64>) {
    echo.wait_for_line(SOON, |line| {
        heard.extend(line.parse::<i64>());
        heard.last() >= Some(&last)
    });
}

/// A call whose server has the request and never responds.
#[track_caller]
fn open_call(host: &Host, server: &mut Program) -> Program {
    let call = Program::start(host.call("/a/silent", "--timeout 500"));
    server.wait_for_line(SOON, |line| line == REQUEST);
    call
}

#[test]
fn a_cut_longer_than_the_lease_ends_calls_and_loses_no_history() {
    let Some(lab) = Lab::new() else { return };
    let ([a, b], _routers) = two_hosts(&lab, SHORT_LEASE);
    let mut server = a.start_part("server /a");
    let _latched = a.start_part("latched /latched");
    let mut here = a.echo_latched("/latched");
    b.wait_for_info("/latched", "Publisher count: 1");
    let mut there = b.echo_latched("/latched");
    let mut of_there = Vec::new();
    numbers_until(&mut there, 10, &mut of_there);
    for round in 0..3 {
        let mut call = open_call(&b, &mut server);
        // Both ends keep their carrier: only silence tells them.
        lab.switch.ip("link set sb1 nomaster");
        let (code, _) = call.wait_for_end(SOON);
        let why = call.log();
        assert_eq!(code, Some(1), "round {round}: {why}");
        assert!(why.contains("its server left before it responded"), "{why}");
        until_listed(&b, false);
        // A host alone goes on.
        go_on(&mut here);

        lab.switch.ip("link set sb1 master br1");
        until_listed(&b, true);
        b.calls("/a/add");
        let last = of_there.last().copied().unwrap_or_default() + 20;
        numbers_until(&mut there, last, &mut of_there);
    }
    let last = *of_there.last().expect("numbers");
    let all: Vec<i64> = (1..=last).collect();
    assert!(of_there == all, "each once and in order: {of_there:?}");
}

#[test]
fn a_cut_shorter_than_the_lease_is_not_noticed() {
    let Some(lab) = Lab::new() else { return };
    let ([a, b], _routers) = two_hosts(&lab, "transport/link/tx/lease=60000");
    let _server = a.start_part("server /a");
    let _latched = a.start_part("latched /latched");
    b.wait_for_info("/latched", "Publisher count: 1");
    let mut there = b.echo_latched("/latched");
    let mut heard = Vec::new();
    numbers_until(&mut there, 10, &mut heard);
    // A cable that is pulled, and then a network that is silent.
    for (cut, restore) in [
        ("link set sb1 down", "link set sb1 up"),
        ("link set sb1 nomaster", "link set sb1 master br1"),
    ] {
        lab.switch.ip(cut);
        let mut call = Program::start(b.call("/a/add", "--timeout 60"));
        let answer = call.out.recv_timeout(Duration::from_secs(4));
        assert!(answer.is_err(), "an answer without a network");
        lab.switch.ip(restore);
        let (code, out) = call.wait_for_end(SOON);
        assert!(
            code == Some(0) && out.contains(r#""sum":3"#),
            "{out}{}",
            call.log()
        );
        let last = heard.last().copied().unwrap_or_default() + 60;
        numbers_until(&mut there, last, &mut heard);
    }
    let all: Vec<i64> = (1..=*heard.last().expect("numbers")).collect();
    assert!(heard == all, "each once and in order: {heard:?}");
}

#[test]
fn a_robot_that_roams_to_another_address_is_found_again() {
    let Some(lab) = Lab::new() else { return };
    let ([a, b], _routers) = two_hosts(&lab, SHORT_LEASE);
    let _server = a.start_part("server /a");
    let _numbers = [
        a.start_part("volatile /from_a"),
        b.start_part("volatile /from_b"),
    ];
    let mut echoes = [
        a.echo("/from_b", "--qos-reliability reliable"),
        b.echo("/from_a", "--qos-reliability reliable"),
    ];
    for address in ["10.1.0.77", "10.1.0.78"] {
        for echo in &mut echoes {
            go_on(echo);
        }
        b.namespace.ip("addr flush dev b1");
        b.namespace.ip(&format!("addr add {address}/24 dev b1"));
        for echo in &mut echoes {
            go_on(echo);
        }
        until_listed(&b, true);
        b.calls("/a/add");
    }
}
